//! How runs of growing rank counts scale, against the one of fewest ranks, by POP's definitions (pop-coe.eu, standard metrics):
//! global efficiency = parallel efficiency × computation scaling, computation scaling = instruction scaling × IPC scaling ×
//! frequency scaling.

use serde::Serialize;

use crate::efficiency::{Bounds, Efficiency};
use lapscope_data::model::Nanos;

/// What more ranks were given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScalingMode {
    /// A share of the same work.
    #[default]
    Strong,
    /// As much work each.
    Weak,
}

/// What is known of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunAtScale {
    pub ranks: u64,
    pub runtime: Nanos,
    pub efficiency: Option<Efficiency>,
    /// Counted outside of MPI, on all ranks; `None`: not on all of them.
    pub instructions: Option<i64>,
    pub cycles: Option<i64>,
}

impl RunAtScale {
    /// Time that ranks computed, a sum.
    fn useful(&self) -> Option<f64> {
        self.efficiency.map(|it| it.useful_ns.0 as f64).filter(|useful| *useful > 0.0)
    }

    fn ipc(&self) -> Option<f64> {
        ratio(self.instructions? as f64, self.cycles? as f64)
    }

    fn frequency_hz(&self) -> Option<f64> {
        ratio(self.cycles? as f64, self.useful()? / 1e9)
    }
}

/// A run against the reference. Scalings are 1 where nothing changed, less where it became worse. Keys are documented in
/// `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScalingRow {
    pub ranks: u64,
    pub runtime_ns: Nanos,
    pub speedup: Option<f64>,
    /// Of the speedup that as many more ranks could give.
    pub speedup_efficiency: Option<f64>,
    pub global_efficiency: Option<f64>,
    pub efficiency: Option<Efficiency>,
    pub computation_scaling: Option<f64>,
    pub instruction_scaling: Option<f64>,
    pub ipc_scaling: Option<f64>,
    pub frequency_scaling: Option<f64>,
    pub instructions: Option<i64>,
    pub cycles: Option<i64>,
    pub ipc: Option<f64>,
    pub frequency_hz: Option<f64>,
}

/// `None` of nothing, or by nothing.
fn ratio(of: f64, by: f64) -> Option<f64> {
    (of > 0.0 && by > 0.0).then(|| of / by)
}

impl ScalingRow {
    pub fn new(run: &RunAtScale, reference: &RunAtScale, mode: ScalingMode) -> ScalingRow {
        let more_ranks = run.ranks as f64 / reference.ranks.max(1) as f64;
        // what all ranks do together grows with them
        let more_work = if mode == ScalingMode::Weak { more_ranks } else { 1.0 };
        let against = |of: Option<f64>, by: Option<f64>| ratio(of?, by?);
        let speedup = ratio(reference.runtime.0 as f64 * more_work, run.runtime.0 as f64);
        let work = |run: &RunAtScale| run.instructions.map(|count| count as f64);
        let more = |scaling: Option<f64>| scaling.map(|scaling| scaling * more_work);
        let computation_scaling = more(against(reference.useful(), run.useful()));
        let parallel = run.efficiency.map(|it| it.parallel_efficiency);
        ScalingRow {
            ranks: run.ranks,
            runtime_ns: run.runtime,
            speedup,
            speedup_efficiency: speedup.map(|speedup| speedup / more_ranks),
            global_efficiency: parallel.zip(computation_scaling).map(|(a, b)| a * b),
            efficiency: run.efficiency,
            computation_scaling,
            instruction_scaling: more(against(work(reference), work(run))),
            ipc_scaling: against(run.ipc(), reference.ipc()),
            frequency_scaling: against(run.frequency_hz(), reference.frequency_hz()),
            instructions: run.instructions,
            cycles: run.cycles,
            ipc: run.ipc(),
            frequency_hz: run.frequency_hz(),
        }
    }
}

/// How a number of a [`ScalingLine`] is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalingUnit {
    Count,
    Time,
    /// So many times.
    Factor,
    Share,
    Hertz,
}

/// A number of all runs: what it is called, its key in a row of the document, and its bounds, the same where it is known.
pub struct ScalingLine {
    pub label: &'static str,
    pub key: String,
    pub unit: ScalingUnit,
    pub value: Option<Bounds>,
}

impl ScalingRow {
    /// As they are told, each before those that it is the product of.
    pub fn lines(&self) -> Vec<ScalingLine> {
        use ScalingUnit::{Count, Factor, Hertz, Share, Time};
        let exactly = |value: f64| Bounds { low: value, high: value };
        let line = |label, key: &str, unit, value: Option<f64>| ScalingLine {
            label,
            key: key.to_owned(),
            unit,
            value: value.map(exactly),
        };
        let mut lines = vec![
            line("Ranks", "ranks", Count, Some(self.ranks as f64)),
            line("Run time", "runtime_ns", Time, Some(self.runtime_ns.0 as f64)),
            line("Speedup", "speedup", Factor, self.speedup),
            line("Efficiency of the speedup", "speedup_efficiency", Share, self.speedup_efficiency),
            line("Global efficiency", "global_efficiency", Share, self.global_efficiency),
        ];
        lines.extend(Efficiency::of_none_or(self.efficiency).map(|of| ScalingLine {
            label: of.label,
            key: format!("efficiency/{}", of.key),
            unit: Share,
            value: of.value,
        }));
        lines.extend([
            line("Computation scaling", "computation_scaling", Share, self.computation_scaling),
            line("  Instruction scaling", "instruction_scaling", Share, self.instruction_scaling),
            line("  IPC scaling", "ipc_scaling", Share, self.ipc_scaling),
            line("  Frequency scaling", "frequency_scaling", Share, self.frequency_scaling),
            line("Instructions a cycle", "ipc", Factor, self.ipc),
            line("Frequency", "frequency_hz", Hertz, self.frequency_hz),
        ]);
        lines
    }
}

/// From this on the work of a rank is as much in all runs.
const AS_MUCH: f64 = 0.8;

/// Whether ranks compute about as long in every run, and so each got as much work, however many they were.
pub fn is_work_per_rank_constant(runs: &[RunAtScale]) -> bool {
    let each = |run: &RunAtScale| Some(run.useful()? / run.ranks.max(1) as f64);
    let Some(each) = runs.iter().map(each).collect::<Option<Vec<f64>>>() else { return false };
    let least = each.iter().copied().fold(f64::INFINITY, f64::min);
    let most = each.iter().copied().fold(0.0, f64::max);
    let ranks = || runs.iter().map(|run| run.ranks);
    ranks().min() < ranks().max() && least >= AS_MUCH * most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::efficiency::Useful;

    fn run(ranks: u64, [mean, most, time]: [f64; 3], ideal: Option<f64>) -> RunAtScale {
        let ns = |seconds: f64| (seconds * 1e9).round() as i64;
        let sum = ns(mean * ranks as f64);
        let useful = Useful { ranks, sum, most: ns(most), longest: ns(time), unknown: 0 };
        let efficiency = Efficiency::new(&useful, ideal.map(|ideal| (ideal / time, 0.0)));
        RunAtScale { ranks, runtime: Nanos(ns(time)), efficiency, ..RunAtScale::default() }
    }

    fn near(found: Option<f64>, expected: f64, what: &str) {
        let found = found.unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-9, "{what}: {found}, not {expected}");
    }

    /// Two ranks compute 8 s each of 10 s; eight ranks 2.5 and at most 3 s each of 4 s. They execute 16e9 and 20e9 instructions in
    /// 32e9 and 50e9 cycles.
    fn two_and_eight() -> [RunAtScale; 2] {
        let counted = |run, instructions, cycles| RunAtScale {
            instructions: Some(instructions),
            cycles: Some(cycles),
            ..run
        };
        [
            counted(run(2, [8.0, 8.0, 10.0], None), 16_000_000_000, 32_000_000_000),
            counted(run(8, [2.5, 3.0, 4.0], None), 20_000_000_000, 50_000_000_000),
        ]
    }

    #[test]
    fn factors_of_hand_arithmetic() {
        let [two, eight] = two_and_eight();
        let row = ScalingRow::new(&eight, &two, ScalingMode::Strong);
        near(row.speedup, 2.5, "10 s to 4 s");
        near(row.speedup_efficiency, 0.625, "by four times the ranks");
        near(row.computation_scaling, 0.8, "16 s to 20 s");
        near(row.global_efficiency, 0.5, "0.625 times 0.8");
        near(row.instruction_scaling, 0.8, "16e9 to 20e9");
        near(row.ipc_scaling, 0.8, "0.5 to 0.4");
        near(row.frequency_scaling, 1.25, "2 GHz to 2.5 GHz");
        near(row.frequency_hz, 2.5e9, "50e9 cycles in 20 s");
        let product = row.instruction_scaling.unwrap() * row.ipc_scaling.unwrap();
        near(row.computation_scaling, product * row.frequency_scaling.unwrap(), "the product");
        let itself = ScalingRow::new(&two, &two, ScalingMode::Strong);
        near(itself.speedup, 1.0, "of itself");
        near(itself.computation_scaling, 1.0, "of itself");
        near(itself.global_efficiency, 0.8, "parallel efficiency");
    }

    #[test]
    fn as_much_work_each_grows_with_the_ranks() {
        let [two, eight] = two_and_eight();
        let row = ScalingRow::new(&eight, &two, ScalingMode::Weak);
        near(row.speedup, 10.0, "four times the work in 4 s instead of 10 s");
        near(row.speedup_efficiency, 2.5, "10 of 4");
        near(row.instruction_scaling, 3.2, "16e9 for two, 20e9 for eight");
        near(row.ipc_scaling, 0.8, "no work is in it");
        assert!(!is_work_per_rank_constant(&[two, eight]));
        let same = [run(2, [8.0, 8.0, 10.0], None), run(8, [7.0, 8.0, 11.0], None)];
        assert!(is_work_per_rank_constant(&same));
        assert!(!is_work_per_rank_constant(&[two, two]), "as many ranks");
    }

    #[test]
    fn what_is_not_known_is_none() {
        let [two, eight] = two_and_eight();
        let uncounted = RunAtScale { instructions: None, ..two };
        let row = ScalingRow::new(&eight, &uncounted, ScalingMode::Strong);
        assert_eq!((row.instruction_scaling, row.ipc_scaling), (None, None));
        near(row.frequency_scaling, 1.25, "cycles are known");
        let threaded = RunAtScale { efficiency: None, ..two };
        let row = ScalingRow::new(&threaded, &two, ScalingMode::Strong);
        assert_eq!((row.global_efficiency, row.computation_scaling), (None, None));
        assert_eq!((row.frequency_hz, row.lines().len()), (None, 16));
        let empty = RunAtScale::default();
        let row = ScalingRow::new(&empty, &empty, ScalingMode::Strong);
        assert_eq!((row.speedup, row.speedup_efficiency), (None, None));
    }

    /// The example that comes with OTF-CPT of RWTH Aachen (github.com/RWTH-HPC/OTF-CPT, script/data: a program on 64 to 1024 processes;
    /// Protze et al., Euro-Par 2022): mean and most computation, run time, and run time on the ideal network, in seconds; and its table
    /// of parallel efficiency, load balance, communication, serialisation and transfer efficiency, with six digits.
    const OTF_CPT: [(u64, [f64; 3], f64, [f64; 5]); 5] = [
        (
            64,
            [32.554_688, 33.338_641, 40.009_749],
            39.388_323,
            [0.813_669, 0.976_485, 0.833_263, 0.846_409, 0.984_468],
        ),
        (
            128,
            [13.426_047, 14.003_071, 19.656_685],
            18.433_987,
            [0.683_027, 0.958_793, 0.712_382, 0.759_633, 0.937_797],
        ),
        (
            256,
            [7.402_236, 7.826_016, 14.083_169],
            11.941_295,
            [0.525_609, 0.945_850, 0.555_700, 0.655_374, 0.847_913],
        ),
        (
            512,
            [4.234_199, 4.605_570, 13.792_879],
            8.514_002,
            [0.306_984, 0.919_365, 0.333_909, 0.540_941, 0.617_275],
        ),
        (
            1024,
            [2.769_027, 3.137_317, 17.400_619],
            7.168_600,
            [0.159_134, 0.882_610, 0.180_299, 0.437_647, 0.411_974],
        ),
    ];

    #[test]
    fn a_published_table_is_found_again() {
        let runs = OTF_CPT.map(|(ranks, times, ideal, _)| run(ranks, times, Some(ideal)));
        for (run, (ranks, .., expected)) in runs.iter().zip(OTF_CPT) {
            let found = run.efficiency.unwrap().lines();
            for (line, expected) in found.iter().zip(expected) {
                let value = line.value.unwrap().low;
                assert!((value - expected).abs() < 1.5e-6, "{ranks}, {}: {value}", line.label);
            }
        }
        // 64 × 32.554688 s of computation became 1024 × 2.769027 s
        let row = ScalingRow::new(&runs[4], &runs[0], ScalingMode::Strong);
        let expected = 32.554_688 / (16.0 * 2.769_027);
        let found = row.computation_scaling.unwrap();
        assert!((found - expected).abs() < 1e-8, "{found}");
        // (T × P) of one against the other is what both efficiencies say of it
        let ratio = row.global_efficiency.unwrap() / OTF_CPT[0].3[0];
        assert!((row.speedup_efficiency.unwrap() - ratio).abs() < 1e-6, "{row:?}");
    }
}
