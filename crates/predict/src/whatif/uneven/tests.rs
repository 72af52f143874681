//! Runs whose unequal work is known.

use super::*;
use crate::replay::work::even;
use lapscope_measure::uneven::UnevenPattern;
use lapscope_trace::made_up::MadeUp;

const RANKS: usize = 4;
const VISITS: usize = 100;
/// What a rank computes where it has no more to do than others, nanoseconds.
const WORK: i64 = 100_000;
/// Lines of the barriers before and behind the first region; the second is from the latter to the former.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

/// Four ranks that compute twice an iteration, each time with a barrier behind it; `times`: by region, rank and iteration, as multiples
/// of the work.
fn found(times: impl Fn(usize, usize, usize) -> i64) -> (Trace, UnevenWorks) {
    let mut run = MadeUp::new(RANKS);
    run.collective("MPI_Barrier", FIRST, 0, 100);
    let mut waits = Vec::new();
    for visit in 0..VISITS {
        for (region, line) in [SECOND, FIRST].into_iter().enumerate() {
            (0..RANKS).for_each(|rank| run.compute(rank, WORK * times(region, rank, visit)));
            let last = (0..RANKS).max_by_key(|&rank| run.now(rank)).unwrap();
            let of_others = (0..RANKS).map(|rank| (run.now(rank), run.now(last)));
            waits.extend(of_others.map(|(begin, end)| (line, last as u32, begin, end)));
            run.collective("MPI_Barrier", line, 0, 100);
        }
    }
    let trace = run.finish();
    let site_of = |line| trace.ranks[0].operations[if line == FIRST { 0 } else { 1 }].site;
    let waits = waits.into_iter().filter(|&(.., begin, end)| end > begin);
    let waits: Vec<ComputingWait> = waits
        .map(|(line, whom, begin, end)| ComputingWait { by: site_of(line), whom, begin, end })
        .collect();
    let found = UnevenWorks::find(&trace, &Program::new(&trace), &waits);
    (trace, found)
}

/// From line to line.
fn lines(trace: &Trace, work: &UnevenWork) -> [u64; 2] {
    let line = |site: Option<SiteId>| trace.places.site(site.unwrap()).frame.unwrap().address;
    [line(work.region.0), line(work.region.1)]
}

#[test]
fn the_uneven_one_of_two_regions_is_named() {
    let (trace, found) = found(|region, rank, _| if (region, rank) == (1, 2) { 2 } else { 1 });
    let [work] = found.works.as_slice() else { panic!("{found:?}") };
    assert_eq!(lines(&trace, work), [SECOND, FIRST]);
    let it = &work.unevenness;
    assert_eq!((it.pattern, it.slow.as_slice()), (UnevenPattern::Always, [2].as_slice()));
    assert!((it.factor() - 2.0).abs() < 0.01, "{it:?}");
    assert_eq!(work.waits, found.waits, "nobody waits elsewhere");
}

#[test]
fn the_same_work_of_all_is_named_nowhere() {
    let (_, found) = found(|_, _, visit| 1 + (visit % 3) as i64);
    assert!(found.works.is_empty() && found.waits.is_empty(), "{found:?}");
}

#[test]
fn who_is_slow_by_turns_or_now_and_then_is_told_so() {
    let (_, turns) =
        found(|region, rank, visit| if region == 0 && visit % RANKS == rank { 3 } else { 1 });
    let [work] = turns.works.as_slice() else { panic!("{turns:?}") };
    assert_eq!(work.unevenness.pattern, UnevenPattern::ByTurns);
    let (_, seldom) =
        found(|region, rank, visit| if (region, rank, visit % 10) == (0, 1, 7) { 8 } else { 1 });
    let [work] = seldom.works.as_slice() else { panic!("{seldom:?}") };
    let it = &work.unevenness;
    assert_eq!((it.pattern, it.uneven_visits), (UnevenPattern::NowAndThen, 10));
    assert!((it.factor() - 8.0).abs() < 0.01, "{it:?}");
}

#[test]
fn even_work_takes_the_mean() {
    let (trace, found) = found(|region, rank, _| if (region, rank) == (1, 2) { 5 } else { 1 });
    let program = Program::new(&trace);
    let evened = even(&trace, &program, found.works[0].region).unwrap();
    let all: Vec<i64> = evened.ranks.iter().map(|rank| rank.compute()).collect();
    // once as recorded and once the mean of five and three times one
    assert!(all.iter().all(|&all| (all - 3 * WORK * VISITS as i64).abs() < WORK), "{all:?}");
}

#[test]
fn what_is_not_all_on_record_is_not_judged() {
    let uneven = |_, rank, _| if rank == 2 { 2 } else { 1 };
    let (mut trace, known) = found(uneven);
    assert!(!known.works.is_empty());
    trace.ranks[1].info_mut().lost_records = 1;
    assert!(UnevenWorks::find(&trace, &Program::new(&trace), &[]).waits.is_empty());
}
