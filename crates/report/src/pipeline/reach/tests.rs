//! Runs of two ranks whose reach was worked out on paper. Times are nanoseconds.

use lapscope_fixture::messages::{Rows, What};
use lapscope_fixture::tables::{Rank as RankRow, Watch, Watcher};
use lapscope_fixture::{Fixture, FIRST_TOUCH, SECOND_TOUCH};

use crate::pipeline::{report, OpenRun};
use crate::report::ReportOptions;
use lapscope_advise::advice::Cure;
use lapscope_advise::reach_in_words::sentence;
use lapscope_data::model::{Nanos, Side, Toucher};
use lapscope_data::places::group::Grouping;
use lapscope_measure::overlap;
use lapscope_measure::reach::bounds::ConfidenceBounds;
use lapscope_measure::reach::document::Reach;
use lapscope_measure::reach::document::ReachInputs;
use lapscope_measure::reach::estimate::estimate;
use lapscope_measure::reach::order::AccessOrder;
use lapscope_measure::reach::site::{Movability, Note, SiteReach};
use lapscope_trace::watched::bounds::TimeBounds;
use lapscope_trace::watched::words::{Buffer, Word};

const STEPS: i64 = 12;
const STEP: i64 = 1_000_000;
const BYTES: i64 = 8_000;
const RECEIVE: What = ("MPI_Irecv", "recv", BYTES, 1, 7);
const SEND: What = ("MPI_Isend", "send", BYTES, 0, 7);
/// The first and the last word, and two between them.
const OFFSETS: [i64; 4] = [0, 1_600, 4_800, 7_992];
/// The operation of the completing call and of the requests, as [`Rows`] numbers them.
const REQUEST: i64 = 2;
const WAIT_NS: i64 = 100_000;

/// Rank 0 posts a receive at each step and is in MPI_Waitall from 1 to 101 us behind that; what comes is sent by rank 1 at 50 us.
fn write(
    receives: impl Fn(&Fixture, i64, i64),
    sends: impl Fn(&Fixture, i64),
) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let steps = || (1..=STEPS).map(|step| step * STEP);
    let rank = |rank| RankRow { end_ns: (STEPS + 2) * STEP, ..RankRow::plain(rank) };
    rank(0).write(directory.path(), |file| {
        let mut rows = Rows::default();
        for begin in steps() {
            rows.complete("MPI_Waitall", begin + 1_000, WAIT_NS, &[(RECEIVE, begin, 500, 0)]);
            receives(file, begin, begin + 1_000 + WAIT_NS);
        }
        rows.write(file);
        file.insert(Watcher { hit_ns: Some(1_000), ..Watcher::default() });
    });
    rank(1).write(directory.path(), |file| {
        let mut rows = Rows::default();
        for begin in steps().map(|begin| begin + 50_000) {
            rows.complete("MPI_Waitall", begin + 1_000, 60_000, &[(SEND, begin, 500, 0)]);
            sends(file, begin);
        }
        rows.write(file);
        file.insert(Watcher { hit_ns: Some(1_000), ..Watcher::default() });
    });
    directory
}

fn run(receives: impl Fn(&Fixture, i64, i64), sends: impl Fn(&Fixture, i64)) -> Reach {
    let directory = write(receives, sends);
    let mut open = OpenRun::open(Some(directory.path())).unwrap();
    let trace = open.trace(&[], Grouping::Line).unwrap();
    let reference = lapscope_measure::reference::Reference::of_run(&trace);
    let eager = overlap::EagerLimits::default();
    let measured = overlap::Measuring {
        trace: &trace,
        reference: &reference,
        eager,
        ranks: &[],
        progress: &|_| (),
    }
    .sums();
    let known =
        ReachInputs { trace: &trace, reference: &reference, measured: &measured, networks: &[] };
    open.reach(&[], known).expect("words were watched")
}

fn nothing(_: &Fixture, _: i64) {}

fn no_receive(_: &Fixture, _: i64, _: i64) {}

/// The word at each offset is touched `first` ns behind the edge and 100 ns a word; each hit before may have cost 1 us less than
/// was taken off for it.
fn in_order(first: i64) -> impl Fn(&Fixture, i64, i64) {
    move |file, begin, edge| {
        for offset in OFFSETS {
            let away = first + offset / 8 * 100;
            file.insert(Watch::receive(REQUEST, (begin, edge), (offset, BYTES), away));
        }
    }
}

fn only(reach: &Reach) -> &SiteReach {
    assert_eq!(reach.sites.len(), 1, "{reach:?}");
    &reach.sites[0]
}

fn exactly(ns: f64) -> Option<ConfidenceBounds> {
    Some(ConfidenceBounds { low: ns, estimate: Some(ns), high: Some(ns) })
}

#[test]
fn a_receive_whose_words_are_used_in_order() {
    let reach = run(in_order(200_000), nothing);
    let site = only(&reach);
    assert_eq!((site.place.call.as_str(), site.side), ("MPI_Irecv", Side::Receive));
    assert_eq!((site.buffers, site.words, site.ranks), (12, 48, 1));
    assert_eq!(site.order.order, AccessOrder::Same);
    assert_eq!(site.all, exactly(200_000.0));
    // of the words that were drawn half are at 220 us, half at 260 us; up to two hits lie before
    assert_eq!(site.half.map(|half| (half.low, half.high)), Some((220_000.0, Some(262_000.0))));
    let word = site.word.unwrap();
    // 99.9 us and three hits lie between the first and the last of 1000 words
    assert!((word.estimate.unwrap() - 101.4 / 0.999).abs() < 0.2 && word.low > 98.0, "{word:?}");
    let [line] = site.touchers.as_slice() else { panic!("{:?}", site.touchers) };
    assert_eq!((line.toucher, line.words, line.share), (Toucher::Program, 48, 1.0));
    assert_eq!(line.decisive_share, 1.0);
    assert_eq!(line.site.as_ref().unwrap().short(), "app+0x700");
    assert_eq!((site.verdict, site.notes.as_slice()), (Movability::Movable, [].as_slice()));
}

#[test]
fn a_wait_saves_no_more_than_it_took() {
    let reach = run(in_order(200_000), nothing);
    let worth = only(&reach).worth;
    assert_eq!((worth.transfers, worth.exposed_ns), (12, Nanos(12 * WAIT_NS)));
    assert_eq!(worth.recoverable_ns, Nanos(12 * WAIT_NS), "it could move by 200 us each");
    let [wait] = reach.waits.as_slice() else { panic!("{:?}", reach.waits) };
    assert_eq!((wait.place.call.as_str(), wait.first), ("MPI_Waitall", Some(0)));
    // rank 1 is in the same call for its sends
    let all = Nanos(12 * (WAIT_NS + 60_000));
    assert_eq!((wait.all, wait.exposed_ns, wait.recoverable_ns), (only(&reach).all, all, all));
    assert_eq!((wait.verdict, wait.completes_sends), (Movability::Movable, true));
    let reach = run(in_order(40_000), nothing);
    assert_eq!(only(&reach).worth.recoverable_ns, Nanos(12 * 40_000));
    assert_eq!(reach.recoverable_ns, Nanos(12 * 40_000));
}

#[test]
fn data_that_are_used_at_once_keep_the_wait_where_it_is() {
    let reach = run(in_order(500), nothing);
    let site = only(&reach);
    assert_eq!(site.all, exactly(500.0));
    assert_eq!(site.verdict, Movability::HalfMovable, "20 and 60 us pass before the drawn words");
    let reach = run(at_once, nothing);
    assert_eq!(only(&reach).order.order, AccessOrder::AtOnce);
    assert_eq!(
        (only(&reach).verdict, reach.waits[0].verdict),
        (Movability::AtOnce, Movability::AtOnce)
    );
}

#[test]
fn sites_that_are_not_shown_have_their_verdicts() {
    let mut reach = run(at_once, ready);
    let verdicts: Vec<Movability> = reach.sites.iter().map(|site| site.verdict).collect();
    assert!(verdicts.contains(&Movability::AtOnce) && verdicts.contains(&Movability::Movable));
    reach.truncate(1);
    assert_eq!((reach.sites.len(), reach.verdicts), (1, verdicts));
}

#[test]
fn a_send_whose_last_word_is_written_long_before_the_post() {
    let sends = |file: &Fixture, begin: i64| {
        for (at, offset) in (0..).zip(OFFSETS) {
            // written from the first word to the last; each hit delays what is written behind it
            let away = 30_000 + (BYTES - 8 - offset) / 8 * 100 + (3 - at) * 1_000;
            let path = if offset > 4_000 { SECOND_TOUCH } else { FIRST_TOUCH };
            let watch = Watch::send(REQUEST, begin, (offset, BYTES), away).touched(path);
            file.insert(watch);
        }
    };
    let reach = run(no_receive, sends);
    let site = only(&reach);
    assert_eq!((site.place.call.as_str(), site.order.order), ("MPI_Isend", AccessOrder::Same));
    // its own hit held the program up before the post: 1 us was taken off for that, which may be too much
    let about = ConfidenceBounds { low: 30_000.0, estimate: Some(30_500.0), high: Some(31_000.0) };
    assert_eq!(site.all, Some(about));
    // the last word, which decides, is written by the second instruction
    let lines: Vec<(String, f64, f64)> = site
        .touchers
        .iter()
        .map(|line| (line.site.as_ref().unwrap().short(), line.share, line.decisive_share))
        .collect();
    assert_eq!(lines, [("app+0x800".into(), 0.5, 1.0), ("app+0x700".into(), 0.5, 0.0)]);
    // rank 0 came 49 us before each send, and waited for it that long
    assert_eq!(site.worth.waited_for_ns, Nanos(12 * 49_000));
    assert!(reach.waits.is_empty());
}

#[test]
fn words_that_nobody_touched_or_that_were_written_often_are_bounds() {
    let untouched = |file: &Fixture, begin: i64, edge: i64| {
        for offset in OFFSETS {
            let watch = Watch::receive(REQUEST, (begin, edge), (offset, BYTES), 300_000);
            file.insert(Watch { let_go: Some("reused"), ..watch.untouched() });
        }
    };
    let reach = run(untouched, nothing);
    let site = only(&reach);
    let at_least = Some(ConfidenceBounds { low: 300_000.0, estimate: None, high: None });
    assert_eq!((site.all, site.half), (at_least, at_least));
    assert_eq!(site.notes, [Note::Untouched { share: 1.0, reused: 1.0 }, Note::NoOrder]);
    assert_eq!(site.worth.recoverable_ns, Nanos(12 * WAIT_NS));
    let often = |file: &Fixture, begin: i64| {
        for offset in OFFSETS {
            let watch = Watch::send(REQUEST, begin, (offset, BYTES), 1_500);
            file.insert(Watch { result: "often", hits: 8, ..watch });
        }
    };
    let reach = run(no_receive, often);
    let at_most = Some(ConfidenceBounds { low: 0.0, estimate: None, high: Some(2_500.0) });
    assert_eq!((only(&reach).all, only(&reach).half), (at_most, at_most), "with the last hit");
    assert_eq!(only(&reach).notes, [Note::Often { share: 1.0 }], "all within two hits");
    assert_eq!(only(&reach).verdict, Movability::AtOnce);
}

/// Most words are never used, the first one is used at once: nothing can be moved.
#[test]
fn one_word_that_is_needed_at_once_decides() {
    let receives = |file: &Fixture, begin: i64, edge: i64| {
        let of_first = begin / STEP % 2 == 0;
        let offset = if of_first { 0 } else { OFFSETS[begin as usize / STEP as usize % 3 + 1] };
        let watch = Watch::receive(REQUEST, (begin, edge), (offset, BYTES), 300_000);
        let watch = if of_first { Watch { away_ns: 700, ..watch } } else { watch.untouched() };
        file.insert(watch);
    };
    let reach = run(receives, nothing);
    let site = only(&reach);
    assert_eq!(site.all, Some(ConfidenceBounds { low: 0.0, estimate: None, high: Some(700.0) }));
    assert_eq!(site.verdict, Movability::AtOnce);
}

/// Every fifth message of the line is for a neighbour whose data are ready late.
#[test]
fn a_line_is_moved_no_further_than_nearly_all_of_its_messages_allow() {
    let buffer = |at: u64| {
        let ns = if at % 5 == 0 { 20_000.0 } else { 900_000.0 + (at % 7) as f64 * 100.0 };
        let word = |offset: i64| Word::at(offset as u64, BYTES as u64, TimeBounds::exactly(ns));
        Buffer::new(BYTES as u64, OFFSETS.into_iter().map(word).collect())
    };
    let differ: Vec<Buffer> = (0..60).map(buffer).collect();
    let found = estimate(&differ, Side::Send, 1_000.0);
    let all = found.all.unwrap();
    assert_eq!((all.low, all.estimate, found.tenth), (20_000.0, None, Some(20_000.0)));
    let alike: Vec<Buffer> = (0..60).filter(|at| at % 5 != 0).map(buffer).collect();
    let found = estimate(&alike, Side::Send, 1_000.0);
    assert!(found.all.unwrap().low > 890_000.0 && found.tenth.is_none(), "{found:?}");
}

/// Every word is copied within 500 ns, and used 300 us behind the wait: by both together the wait could be later.
#[test]
fn what_only_copies_can_be_moved_with_the_wait() {
    let receives = |file: &Fixture, begin: i64, edge: i64| {
        for offset in OFFSETS {
            file.insert(Watch::receive(REQUEST, (begin, edge), (offset, BYTES), 500));
            let copied = Watch::receive(REQUEST, (begin, edge), (offset, BYTES), 300_000);
            file.insert(Watch { copy_path_id: Some(SECOND_TOUCH), ..copied.touched(3) });
        }
    };
    let reach = run(receives, nothing);
    let site = only(&reach);
    assert_eq!(site.verdict, Movability::MovableWithCopy);
    let later = site.all_with_copy.unwrap();
    assert!(later.low >= 290_000.0 && later.high.unwrap() <= 320_000.0, "{later:?}");
    let [wait] = reach.waits.as_slice() else { panic!("{:?}", reach.waits) };
    assert_eq!((wait.verdict, wait.all_with_copy), (Movability::MovableWithCopy, Some(later)));
    assert_eq!(site.worth.recoverable_ns, Nanos(12 * WAIT_NS), "all of it");
    let told = sentence(site);
    assert!(told.contains("with that copying the wait could be"), "{told}");
}

#[test]
fn what_mpi_reads_next_and_what_is_copied() {
    let receives = |file: &Fixture, begin: i64, edge: i64| {
        let (posted, first) = ((begin, edge), (OFFSETS[0], BYTES));
        // inside MPI for all that time: the program needs it at once
        let by_mpi = Watch::receive(REQUEST, posted, first, 90_000).touched(3);
        file.insert(Watch { toucher: Some("mpi"), away_mpi_ns: 90_000, ..by_mpi });
        let copied = Watch::receive(REQUEST, posted, (OFFSETS[1], BYTES), 400_000);
        file.insert(Watch { copy_path_id: Some(SECOND_TOUCH), ..copied });
    };
    let reach = run(receives, nothing);
    let site = only(&reach);
    assert_eq!((site.words, site.all.unwrap().high), (12, Some(0.0)));
    let [line] = site.touchers.as_slice() else { panic!("{:?}", site.touchers) };
    assert_eq!((line.toucher, line.call.as_deref()), (Toucher::Mpi, Some("MPI_Waitall")));
    let [copy] = site.copies.as_slice() else { panic!("{:?}", site.copies) };
    assert_eq!(copy.site.as_ref().unwrap().short(), "app+0x800");
    assert_eq!((copy.words, copy.touchers[0].words), (12, 12));
    // the touch of the first word came before; 1 us was taken off for it, which may be too much
    let about =
        ConfidenceBounds { low: 400_000.0, estimate: Some(400_500.0), high: Some(401_000.0) };
    assert_eq!(copy.all, Some(about));
}

#[test]
fn threads_that_were_not_watched_make_it_an_upper_bound() {
    let receives = |file: &Fixture, begin: i64, edge: i64| {
        in_order(200_000)(file, begin, edge);
    };
    let directory = tempfile::tempdir().unwrap();
    let write = |other: i64| {
        RankRow { end_ns: (STEPS + 2) * STEP, ..RankRow::plain(0) }.write(
            directory.path(),
            |file| {
                let mut rows = Rows::default();
                for begin in (1..=STEPS).map(|step| step * STEP) {
                    rows.complete(
                        "MPI_Waitall",
                        begin + 1_000,
                        WAIT_NS,
                        &[(RECEIVE, begin, 500, 0)],
                    );
                    receives(file, begin, begin + 1_000 + WAIT_NS);
                }
                rows.write(file);
                file.insert(Watcher { other_cpu_ns: Some(other), ..Watcher::default() });
            },
        )
    };
    let path = write(STEP);
    let mut open = OpenRun::open(Some(&path)).unwrap();
    let places = open.places(Grouping::Line).unwrap();
    let (watches, failed) =
        lapscope_trace::watched::read_files(&open.files.databases, &places, &[]);
    assert!(failed.is_empty() && watches.ranks[0].others_may_touch, "{watches:?}");
    let sites = lapscope_measure::reach::sites::group(watches.buffers, 1_000.0);
    let all = sites[0].found.all.unwrap();
    assert_eq!((all.low, all.estimate), (0.0, None));
    assert!(all.high.is_some_and(|high| high >= 170_000.0), "{all:?}");
}

#[test]
fn sizes_that_differ_much_are_told_apart() {
    let receives = |file: &Fixture, begin: i64, edge: i64| {
        let is_small = begin / STEP % 2 == 0;
        let bytes = if is_small { 1_024 } else { BYTES };
        let away = if is_small { 100_000 } else { 300_000 };
        file.insert(Watch::receive(REQUEST, (begin, edge), (0, bytes), away));
    };
    let reach = run(receives, nothing);
    let mut told: Vec<(u64, u64, f64)> = reach
        .sites
        .iter()
        .map(|site| (site.max_bytes, site.buffers, site.all.unwrap().high.unwrap()))
        .collect();
    told.sort_by_key(|it| it.0);
    assert_eq!(told, [(1_024, 6, 100_000.0), (8_000, 6, 300_000.0)]);
    assert_eq!(reach.waits[0].all.unwrap().high, Some(100_000.0), "the wait is for both");
}

/// The advice of the report: cure, time, sentence.
fn advice(
    receives: impl Fn(&Fixture, i64, i64),
    sends: impl Fn(&Fixture, i64),
) -> Vec<(Cure, Nanos, String)> {
    let directory = write(receives, sends);
    let mut open = OpenRun::open(Some(directory.path())).unwrap();
    let report = report::build(&mut open, &[], ReportOptions::default()).unwrap();
    report.advice.into_iter().map(|it| (it.cure, it.time_ns, it.sentence)).collect()
}

/// All words of a receive are touched within what watching makes unsure.
fn at_once(file: &Fixture, begin: i64, edge: i64) {
    for (at, offset) in (0..).zip(OFFSETS) {
        let away = 300 + at * 1_000;
        file.insert(Watch::receive(REQUEST, (begin, edge), (offset, BYTES), away));
    }
}

/// All words of a send were written 30 us before its post.
fn ready(file: &Fixture, begin: i64) {
    for offset in OFFSETS {
        file.insert(Watch::send(REQUEST, begin, (offset, BYTES), 30_000));
    }
}

#[test]
fn advice_moves_the_wait_to_the_line_that_needs_its_data() {
    // MPI_Waitall takes 100 us on rank 0 and 60 us on rank 1; all but the posts' 500 ns that were transferred meanwhile could be
    // saved
    let told = advice(in_order(200_000), nothing);
    let [(Cure::WaitLater, time, sentence)] = told.as_slice() else { panic!("{told:#?}") };
    assert!((1_900_000..=1_920_000).contains(&time.0), "{time:?}");
    assert_eq!(
        sentence,
        "Move MPI_Waitall app+0x300 to before app+0x700, on every rank: its data are first touched there, 200 µs later; \
         hides 100.0 % of a transfer. It completes sends, too: their buffers must not be written before."
    );
}

#[test]
fn advice_on_a_wait_saves_no_more_than_it_could_be_later() {
    let told = advice(in_order(20_000), nothing);
    let [(Cure::WaitLater, Nanos(240_000), sentence), rest @ ..] = told.as_slice() else {
        panic!("{told:#?}")
    };
    // from the post of the send to the end of MPI_Waitall a transfer takes 51 us
    assert!(sentence.contains("20.0 µs later; hides 39.2 % of a transfer."));
    let cures: Vec<Cure> = rest.iter().map(|(cure, ..)| *cure).collect();
    assert_eq!(cures, [Cure::PartnerLate, Cure::NothingToHideBehind]);
    let before: i64 = advice(no_receive, ready_at_post).iter().map(|(_, time, _)| time.0).sum();
    let after: i64 = told.iter().map(|(_, time, _)| time.0).sum();
    assert_eq!(before, after, "no time is promised twice, and none is lost");
}

fn ready_at_post(file: &Fixture, begin: i64) {
    for offset in OFFSETS {
        file.insert(Watch::send(REQUEST, begin, (offset, BYTES), 0));
    }
}

#[test]
fn advice_says_what_cannot_be_moved() {
    let told = advice(at_once, nothing);
    assert!(told.iter().all(|(cure, ..)| *cure != Cure::WaitLater), "{told:#?}");
    let gains_nothing =
        " Waiting later gains nothing: its data are used at once, first touched at app+0x700.";
    assert!(told.iter().all(|(.., sentence)| sentence.ends_with(gains_nothing)), "{told:#?}");
    let told = advice(no_receive, ready_at_post);
    let late = told.iter().find(|(cure, ..)| *cure == Cure::PartnerLate).unwrap();
    let ends = " MPI_Isend app+0x100 cannot be posted earlier: its data are written until then, last at app+0x700.";
    assert!(late.2.ends_with(ends), "{}", late.2);
}

#[test]
fn advice_posts_sends_when_their_data_are_ready() {
    let told = advice(at_once, ready);
    let [(Cure::PostEarlier, Nanos(372_000), sentence), rest @ ..] = told.as_slice() else {
        panic!("{told:#?}")
    };
    assert_eq!(
        sentence,
        "Post MPI_Isend app+0x100 30.5 µs (29.0 to 31.0 µs) earlier, on rank 1: its data are last written at app+0x700; rank 0 \
         waits for it in MPI_Waitall app+0x300."
    );
    // of the 49 us that rank 0 waits for each send 18 are left
    let late = rest.iter().find(|(cure, ..)| *cure == Cure::PartnerLate).unwrap();
    assert_eq!(late.1, Nanos(12 * 18_000));
}
