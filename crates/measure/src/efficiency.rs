//! The efficiencies that centres speak of, by the definitions of POP (Wagner, Mohr, Giménez, Labarta, A Structured Approach to
//! Performance Analysis, 2019; pop-coe.eu, standard metrics): parallel efficiency = load balance × communication efficiency,
//! communication efficiency = serialisation × transfer.
//!
//! Useful is what a rank computes: its time outside MPI. What lies between the tests of a loop that waits is none of it.

use serde::{Deserialize, Serialize};

use lapscope_data::model::{Nanos, Rank};

use crate::overlap::groups::RankOverlap;
use crate::totals::RankRow;

/// What ranks computed in some of their time; what of ranks is put together in any order comes to the same. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Useful {
    pub ranks: u64,
    pub sum: i64,
    pub most: i64,
    /// The time of the rank that took longest.
    pub longest: i64,
    /// Ranks of which that is not known: several threads call MPI, or something is not on record.
    pub unknown: u64,
}

impl Useful {
    /// One rank, which computed so long of a time.
    pub fn of_rank(time: i64, useful: i64) -> Useful {
        let useful = useful.clamp(0, time.max(0));
        Useful { ranks: 1, sum: useful, most: useful, longest: time, unknown: 0 }
    }

    /// One rank of which it is not known.
    pub fn unknown() -> Useful {
        Useful { ranks: 1, unknown: 1, ..Useful::default() }
    }

    pub fn merge(&mut self, other: &Useful) {
        self.ranks += other.ranks;
        self.sum = self.sum.saturating_add(other.sum);
        self.most = self.most.max(other.most);
        self.longest = self.longest.max(other.longest);
        self.unknown += other.unknown;
    }

    /// All that ranks did. Unsuccessful tests lie in loops that wait, or outside of them: where in a rank is both, what lies between
    /// the former is counted as far as it is more than all tests took.
    pub fn of_run(rows: &[RankRow], overlaps: &[RankOverlap]) -> Useful {
        let key = |rank: Rank, life: i64| (rank, life);
        let loops: std::collections::BTreeMap<_, &RankOverlap> =
            overlaps.iter().map(|row| (key(row.rank, row.life), row)).collect();
        let mut all = Useful::default();
        for row in rows {
            let found = loops.get(&key(row.rank, row.life));
            let Some(found) = found.filter(|found| !found.has_gaps) else {
                all.merge(&Useful::unknown());
                continue;
            };
            let totals = &row.totals;
            let tests = totals.unsuccessful_test_ns.max(found.waiting_loop_ns);
            let in_mpi = totals.mpi_ns - totals.unsuccessful_test_ns + tests;
            all.merge(&Useful::of_rank(totals.run_ns.0, (totals.run_ns - in_mpi).0));
        }
        all
    }
}

/// A share that is known to lie between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    pub low: f64,
    pub high: f64,
}

/// Fractions, 1 at best. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Efficiency {
    pub useful_ns: Nanos,
    pub most_useful_ns: Nanos,
    /// Of the rank that took longest.
    pub runtime_ns: Nanos,
    /// Mean useful time over the run time.
    pub parallel_efficiency: f64,
    /// Mean useful time over the most.
    pub load_balance: f64,
    /// Most useful time over the run time.
    pub communication_efficiency: f64,
    /// Most useful time over the run time on an ideal network; `None`: no replay tells that.
    pub serialisation_efficiency: Option<Bounds>,
    /// Run time on an ideal network over the run time.
    pub transfer_efficiency: Option<Bounds>,
}

impl Efficiency {
    /// `transfer`: the share of its run time that the run takes on an ideal network, replayed, and the error of that. `None`:
    /// nothing was computed, or it is not known of a rank what it computed.
    pub fn new(useful: &Useful, transfer: Option<(f64, f64)>) -> Option<Efficiency> {
        if useful.unknown > 0 || useful.ranks == 0 || useful.most <= 0 || useful.longest <= 0 {
            return None;
        }
        let mean = useful.sum as f64 / useful.ranks as f64;
        let (most, run) = (useful.most as f64, useful.longest as f64);
        let communication = most / run;
        // no run is shorter than what its busiest rank computes
        let share = |share: f64| share.clamp(communication, 1.0);
        let transfer = transfer
            .map(|(ideal, error)| Bounds { low: share(ideal - error), high: share(ideal + error) });
        Some(Efficiency {
            useful_ns: Nanos(useful.sum),
            most_useful_ns: Nanos(useful.most),
            runtime_ns: Nanos(useful.longest),
            parallel_efficiency: mean / run,
            load_balance: mean / most,
            communication_efficiency: communication,
            serialisation_efficiency: transfer.map(|transfer| Bounds {
                low: communication / transfer.high,
                high: communication / transfer.low,
            }),
            transfer_efficiency: transfer,
        })
    }
}

/// A line of them: what it is called, what it is, its key in the document, and its bounds, which are the same where it is known.
pub struct EfficiencyLine {
    pub label: &'static str,
    pub of_what: &'static str,
    pub key: &'static str,
    pub value: Option<Bounds>,
}

impl Efficiency {
    /// As they are told, each before those that it is the product of.
    pub fn lines(&self) -> [EfficiencyLine; 5] {
        Efficiency::of_none_or(Some(*self))
    }

    /// The same, without values where nothing is known.
    pub fn of_none_or(known: Option<Efficiency>) -> [EfficiencyLine; 5] {
        let exactly = |of: fn(&Efficiency) -> f64| {
            known.as_ref().map(of).map(|value| Bounds { low: value, high: value })
        };
        let bounds = |of: fn(&Efficiency) -> Option<Bounds>| known.as_ref().and_then(of);
        let line = |label, of_what, key, value| EfficiencyLine { label, of_what, key, value };
        [
            line(
                "Parallel efficiency",
                "mean useful time over run time",
                "parallel_efficiency",
                exactly(|it| it.parallel_efficiency),
            ),
            line(
                "  Load balance",
                "mean useful time over the most of a rank",
                "load_balance",
                exactly(|it| it.load_balance),
            ),
            line(
                "  Communication efficiency",
                "most useful time over run time",
                "communication_efficiency",
                exactly(|it| it.communication_efficiency),
            ),
            line(
                "    Serialisation efficiency",
                "most useful time over run time on an ideal network",
                "serialisation_efficiency",
                bounds(|it| it.serialisation_efficiency),
            ),
            line(
                "    Transfer efficiency",
                "run time on an ideal network over run time",
                "transfer_efficiency",
                bounds(|it| it.transfer_efficiency),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful times of 80, 60, 40 and 60 s of a run of 100 s: their mean is 60, the most 80.
    fn four_ranks() -> Useful {
        let mut all = Useful::default();
        for useful in [80, 60, 40, 60] {
            all.merge(&Useful::of_rank(100, useful));
        }
        all
    }

    #[test]
    fn products_of_hand_arithmetic() {
        // on an ideal network the run takes 90 s, known to within 2 % of the run time
        let found = Efficiency::new(&four_ranks(), Some((0.9, 0.02))).unwrap();
        assert_eq!((found.parallel_efficiency, found.load_balance), (0.6, 0.75));
        assert_eq!(found.communication_efficiency, 0.8);
        assert_eq!(found.transfer_efficiency, Some(Bounds { low: 0.88, high: 0.92 }));
        let serialisation = found.serialisation_efficiency.unwrap();
        assert!((serialisation.low - 80.0 / 92.0).abs() < 1e-12, "{serialisation:?}");
        assert!((serialisation.high - 80.0 / 88.0).abs() < 1e-12, "{serialisation:?}");
    }

    #[test]
    fn an_ideal_network_is_no_quicker_than_the_busiest_rank() {
        let found = Efficiency::new(&four_ranks(), Some((0.81, 0.04))).unwrap();
        let transfer = found.transfer_efficiency.unwrap();
        assert!(transfer.low == 0.8 && (transfer.high - 0.85).abs() < 1e-12, "{transfer:?}");
        assert_eq!(found.serialisation_efficiency.unwrap().high, 1.0);
        let slower = Efficiency::new(&four_ranks(), Some((1.01, 0.0))).unwrap();
        assert_eq!(slower.transfer_efficiency, Some(Bounds { low: 1.0, high: 1.0 }));
    }

    #[test]
    fn nothing_is_said_of_ranks_that_are_not_known() {
        let mut all = four_ranks();
        all.merge(&Useful::unknown());
        assert_eq!(Efficiency::new(&all, None), None);
        assert_eq!(Efficiency::new(&Useful::default(), None), None);
        assert_eq!(Efficiency::new(&Useful::of_rank(100, 0), None), None);
        let without_replay = Efficiency::new(&four_ranks(), None).unwrap();
        assert_eq!(without_replay.transfer_efficiency, None);
        assert_eq!(without_replay.serialisation_efficiency, None);
    }
}
