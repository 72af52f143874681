//! What is to be done first. The head of a report, its lists, the page and JSON have this order.

use std::cmp::Ordering;

use super::{Advice, Cure};

/// From this share of the run time on advice is worth following.
const WORTH_DOING: f64 = 0.005;
/// Where no replay says what even work gains, so many times as much must be at stake as with a cure for it to go first; so it must
/// with cures that only the program's author can tell to be possible.
const FAR_MORE: f64 = 2.0;

/// Puts first what helps, then what nothing in the communication mends; each by what it may gain, and [`first_to_do`] first
/// of its kind.
pub(super) fn sort(advice: &mut [Advice]) {
    share_out_gain(advice);
    advice.sort_by(in_order);
    if let Some(first) = first_to_do(advice) {
        let begin = advice.iter().position(|it| it.helps == advice[first].helps).unwrap_or(first);
        advice[begin..=first].rotate_right(1);
    }
}

/// Tests gain what they do together: each piece of advice to test has the part that it has of the time at stake.
fn share_out_gain(advice: &mut [Advice]) {
    let all: i64 = advice.iter().filter(|it| it.is_for_tests()).map(|it| it.time_ns.0).sum();
    for piece in advice.iter_mut().filter(|it| it.cure == Cure::Test) {
        let part = piece.time_ns.0 as f64 / all.max(1) as f64;
        piece.replay = piece.replay.map(|replay| super::Replay { part, ..replay });
    }
}

fn in_order(a: &Advice, b: &Advice) -> Ordering {
    let by_gain = promise(b).total_cmp(&promise(a));
    b.helps.cmp(&a.helps).then(by_gain).then(b.time_ns.cmp(&a.time_ns)).then(a.cure.cmp(&b.cure))
}

/// The share of the run time that it gains, as far as that is known.
fn promise(advice: &Advice) -> f64 {
    if advice.helps {
        let part = if advice.cure.is_for_independent_kernels() { FAR_MORE } else { 1.0 };
        return advice.win_at_most() / part;
    }
    // for sure: by more than the replay is off
    let replay = advice.replay.filter(|replay| replay.is_gain);
    let gain = replay.map_or(0.0, |replay| replay.gain - replay.error);
    gain.max(advice.share_at_most() / FAR_MORE)
}

/// The place of what gains most of what helps, or by even work, which overlap does not bring, or where calls block; where there
/// is none of these, of the largest finding. `None`: nothing is worth a change.
pub fn first_to_do(advice: &[Advice]) -> Option<usize> {
    let most = |is_meant: &dyn Fn(&Advice) -> bool| {
        let meant = (0..advice.len()).filter(|&at| is_meant(&advice[at]));
        let worth = meant.filter(|&at| advice[at].win_at_most() >= WORTH_DOING);
        worth.rev().max_by(|&a, &b| promise(&advice[a]).total_cmp(&promise(&advice[b])))
        // of equal ones the first
    };
    most(&|it| it.helps || it.cure == Cure::PartnerLate || it.is_blocking_transfer())
        .or_else(|| most(&|_| true))
}

#[cfg(test)]
mod tests {
    use super::super::{AdviceCause, AdviceEvidence, CallSite, Replay};
    use super::*;
    use lapscope_data::model::Nanos;

    fn place() -> CallSite {
        let call = "MPI_Wait".to_owned();
        CallSite { call, transfers: None, completes: None, site: None, other_lines: Vec::new() }
    }

    /// On so many thousandths of the run time; with what a replay of its cure gains.
    fn piece(cure: Cure, thousandths: i64, gain: Option<f64>) -> Advice {
        let error = 0.01;
        let replay = gain.map(|gain| Replay {
            gain,
            is_gain: gain > error,
            of_region: false,
            error,
            part: 1.0,
        });
        let time = Nanos(thousandths);
        Advice {
            cure,
            helps: cure.helps(),
            cause: AdviceCause::NoLocalProgress,
            time_ns: time,
            time_low_ns: time,
            time_high_ns: time,
            share: thousandths as f64 / 1e3,
            waiting: place(),
            waiting_sites: 1,
            waiting_ranks: Vec::new(),
            change: Vec::new(),
            or_test: None,
            or_copy: None,
            change_ranks: Vec::new(),
            everywhere: false,
            of_ranks: 2,
            rests_on_upper_bound: false,
            threaded: false,
            replay,
            computes: None,
            uneven: None,
            began: None,
            headline: String::new(),
            sentence: String::new(),
            predicted: Default::default(),
            verified: None,
            evidence: AdviceEvidence::default(),
        }
    }

    fn sorted(mut advice: Vec<Advice>) -> (Vec<(Cure, i64)>, Option<usize>) {
        sort(&mut advice);
        (advice.iter().map(|it| (it.cure, it.time_ns.0)).collect(), first_to_do(&advice))
    }

    /// Messages that move gain 300 thousandths, of which these waits have two thirds.
    #[test]
    fn tests_that_gain_more_than_processors_go_first() {
        let tests = |thousandths| piece(Cure::Test, thousandths, Some(0.3));
        let mut advice = vec![piece(Cure::GiveProcessors, 170, None), tests(50), tests(100)];
        sort(&mut advice);
        assert_eq!(advice[0].time_ns, Nanos(100));
        let wins: Vec<f64> = advice.iter().map(Advice::win_at_most).collect();
        assert!((wins[0] - 0.2).abs() < 1e-9 && (wins[2] - 0.1).abs() < 1e-9, "{wins:?}");

        let (order, _) = sorted(vec![
            piece(Cure::Test, 100, Some(0.12)),
            piece(Cure::GiveProcessors, 170, None),
        ]);
        assert_eq!(order[0].0, Cure::GiveProcessors);
    }

    /// What even work gains by a replay counts in full, what is at stake with it alone by half.
    #[test]
    fn even_work_goes_first_where_it_gains_most() {
        let with = |gain| {
            let cure = piece(Cure::PostReceiveEarlier, 150, None);
            let nothing = piece(Cure::NothingToHideBehind, 500, None);
            sorted(vec![nothing, cure, piece(Cure::PartnerLate, 200, gain)])
        };
        let (order, first) = with(Some(0.18));
        let cures: Vec<Cure> = order.iter().map(|it| it.0).collect();
        // even work is in the second list, and first in it
        let expected = [Cure::PostReceiveEarlier, Cure::PartnerLate, Cure::NothingToHideBehind];
        assert_eq!((cures.as_slice(), first), (expected.as_slice(), Some(1)));
        let (order, first) = with(None);
        assert_eq!(order[first.unwrap()].0, Cure::PostReceiveEarlier);
    }

    #[test]
    fn where_nothing_helps_the_largest_finding_is_first() {
        let little = piece(Cure::SlowTransfer, 20, None);
        let (order, first) = sorted(vec![little, piece(Cure::NothingToHideBehind, 500, None)]);
        assert_eq!(order[first.unwrap()].0, Cure::NothingToHideBehind);
        assert_eq!(sorted(vec![piece(Cure::SlowTransfer, 1, None)]).1, None);
    }
}
