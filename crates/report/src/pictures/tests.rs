//! Pictures of made runs, whose times are known.

use super::bins::Bins;
use super::timeline::{collect, Chosen, RanksChosen, Role, Timeline, TimelineWindow};
use super::*;
use crate::findings::{find, By, Findings, FindingsChoice};
use lapscope_data::model::{Bytes, Nanos, Rank};
use lapscope_data::symbols::Symbols;
use lapscope_measure::overlap::EagerLimits;
use lapscope_measure::reference::Reference;
use lapscope_measure::unexpected::KeptLimits;
use lapscope_trace::made_up::MadeUp;

const WANTED: FindingsChoice =
    FindingsChoice { advice: false, pictures: true, steps: false, kept: false };

/// Each rank but the last sends to the next, which waits for it, `rounds` times; the first computes ten times as long.
fn chain(ranks: usize, rounds: usize) -> Trace {
    let mut run = MadeUp::new(ranks);
    for _ in 0..rounds {
        for rank in 0..ranks {
            let own = if rank == 0 { 10_000 } else { 1_000 };
            let received = (rank > 0).then(|| run.ireceive(rank, 1, rank - 1, 100, 10));
            run.compute(rank, own);
            if let Some(request) = received {
                run.wait(rank, 2, &[request]);
                // the wait is of no length: what follows is
                run.compute(rank, 10);
            }
            if rank + 1 < ranks {
                run.send(rank, 3, rank + 1, 100, 20);
            }
        }
    }
    run.finish()
}

fn of_ranks(trace: &Trace, ranks: &[Rank]) -> Findings {
    let reference = Reference::default();
    let by = By {
        reference: &reference,
        eager: EagerLimits::default(),
        kept: KeptLimits::default(),
        steps: None,
    };
    find(trace, by, ranks, WANTED, &|_| ())
}

fn found(trace: &Trace) -> Findings {
    of_ranks(trace, &[])
}

fn pictures(trace: &Trace) -> Pictures {
    Pictures::build(trace, &found(trace).drawn, Err("not wanted".to_owned()))
}

fn timeline(trace: &Trace, begin: i64, end: i64) -> Timeline {
    let window = TimelineWindow {
        begin,
        end,
        ranks: (0..trace.ranks.len() as u32).collect(),
        steps: None,
        chosen: Chosen::Asked,
        ranks_chosen: RanksChosen::All,
        may_be_fitted: false,
    };
    let known = (&Reference::default(), EagerLimits::default());
    collect(trace, window, known, &mut Symbols::default())
}

#[test]
fn ranks_are_put_into_bins_of_one_size() {
    for (ranks, count, of_last) in
        [(1, 1, 1), (64, 64, 1), (65, 33, 1), (1000, 63, 8), (10_000, 64, 109)]
    {
        let bins = Bins::of_count(ranks);
        assert_eq!(bins.count(), count, "{ranks}");
        assert_eq!(bins.places(count - 1).len(), of_last, "{ranks}");
        assert_eq!(bins.of_place(ranks - 1), count - 1);
        assert_eq!((0..count).map(|bin| bins.places(bin).len()).sum::<usize>(), ranks);
    }
}

#[test]
fn a_heat_map_holds_all_exposed_time_and_all_run_time() {
    let trace = chain(3, 40);
    let Heat { run_ns, exposed_ns, .. } = pictures(&trace).heat;
    let run: i64 = run_ns.iter().map(|ns| ns.0).sum();
    assert_eq!(run, trace.ranks.iter().map(|rank| rank.end - rank.init_end).sum::<i64>());
    let exposed: i64 = exposed_ns.iter().flatten().map(|ns| ns.0).sum();
    let calls = trace.ranks.iter().flat_map(|rank| &rank.calls);
    let inside: i64 = calls.map(|call| call.duration).sum();
    assert!(inside > 0);
    // a call over several slices is cut, and each part of each cause rounded down
    assert!(
        (inside - 10 * trace.ranks.len() as i64 * 160..=inside).contains(&exposed),
        "{exposed} of {inside}"
    );
}

#[test]
fn a_matrix_counts_messages_from_sender_to_receiver() {
    let trace = chain(4, 5);
    let pictures = pictures(&trace);
    let cells = &pictures.matrix.cells;
    let ends: Vec<(u32, u32)> = cells.iter().map(|cell| (cell.from, cell.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 2), (2, 3)]);
    assert!(cells.iter().all(|cell| (cell.messages, cell.bytes) == (5, Bytes(500))), "{cells:?}");
    let waited = |cell| (pictures.waited_at_ends(cell).0, cell.exposed_ns.0 / 2);
    assert!(cells.iter().map(waited).all(|(mean, half)| mean == half && half > 0), "{cells:?}");
    let alone = MatrixCell { to: 0, ..cells[0].clone() };
    assert_eq!(pictures.waited_at_ends(&alone), alone.exposed_ns, "of a rank with itself");
}

#[test]
fn what_parts_have_drawn_comes_to_the_same_in_any_order() {
    let trace = chain(70, 3);
    let all = found(&trace);
    let of = |ranks: &[i64]| {
        let ranks: Vec<Rank> = ranks.iter().map(|&rank| Rank::of_first_world(rank)).collect();
        of_ranks(&trace, &ranks).drawn
    };
    let (even, odd): (Vec<i64>, Vec<i64>) = (0..70).partition(|rank| rank % 2 == 0);
    let mut parts = of(&odd);
    parts.merge(of(&even));
    let text = |drawn: &Drawn| format!("{:?}", Pictures::build(&trace, drawn, Err(String::new())));
    assert_eq!(text(&parts), text(&all.drawn));
}

#[test]
fn a_timeline_has_calls_requests_and_messages() {
    let trace = chain(2, 2);
    let Timeline { tracks, messages, places, .. } = timeline(&trace, 0, trace.ranks[0].end);
    assert_eq!(tracks.len(), 2);
    let roles = |track: usize| tracks[track].spans.iter().map(|span| span.role).collect::<Vec<_>>();
    assert_eq!(roles(0), [Role::Block, Role::Block]);
    assert_eq!(roles(1), [Role::Post, Role::Complete, Role::Post, Role::Complete]);
    assert_eq!(tracks[1].requests.len(), 2);
    assert_eq!(tracks[1].lanes, 1);
    let first = &tracks[1].requests[0];
    assert_eq!((first.begin_ns, first.peer), (Nanos(0), Some(Rank::of_first_world(0))));
    assert_eq!(messages.len(), 2);
    assert_eq!((messages[0].from, messages[0].to, messages[0].sent_ns), (0, 1, Nanos(10_000)));
    assert_eq!(places[tracks[1].spans[1].place as usize].call, "MPI_Waitall");
}

#[test]
fn a_timeline_has_only_what_reaches_into_it() {
    let trace = chain(2, 10);
    let second = trace.ranks[0].calls[1].begin;
    let shown = timeline(&trace, second, second + 5);
    assert_eq!(shown.tracks[0].spans.len(), 1);
    assert_eq!(shown.tracks[0].spans[0].begin_ns, Nanos(0));
    assert!(shown.messages.iter().all(|message| message.received_ns.0 >= 0));
}

/// One rank may wait for longer than the costliest part of the run is.
#[test]
fn a_stretch_that_nobody_asked_for_is_wide_enough_to_show_something() {
    let trace = chain(2, 30);
    let middle = trace.ranks[0].end / 2;
    let window = |chosen| TimelineWindow {
        begin: middle,
        end: middle + 100,
        ranks: vec![0, 1],
        steps: None,
        chosen,
        ranks_chosen: RanksChosen::All,
        may_be_fitted: chosen != Chosen::Asked,
    };
    let known = (&Reference::default(), EagerLimits::default());
    let calls = |chosen| {
        let shown = collect(&trace, window(chosen), known, &mut Symbols::default());
        assert!(!shown.is_shortened);
        shown.tracks.iter().map(|track| track.spans.len()).sum::<usize>()
    };
    assert!(calls(Chosen::Asked) <= 2);
    assert!(calls(Chosen::CostliestStep) <= 2, "a step is as long as it is");
    let wide = calls(Chosen::CostliestSlice);
    assert!((40..=90).contains(&wide), "{wide}");
}

/// However much there is, a page has room for it.
#[test]
fn a_timeline_of_very_many_calls_is_bounded() {
    let trace = chain(4, 20_000);
    let shown = timeline(&trace, 0, trace.ranks[0].end);
    let spans: usize = shown.tracks.iter().map(|track| track.spans.len()).sum();
    let requests: usize = shown.tracks.iter().map(|track| track.requests.len()).sum();
    assert!((100..=8_000).contains(&spans), "{spans}");
    assert!(shown.resolution_ns.0 > 0);
    assert_eq!(requests, 3_000);
    assert_eq!(shown.left_out_requests, 57_000);
    assert_eq!((shown.messages.len(), shown.left_out_messages), (3_000, 57_000));
    let calls: u32 =
        shown.tracks.iter().flat_map(|track| &track.spans).map(|span| span.calls).sum();
    assert_eq!(calls, 180_000);
}
