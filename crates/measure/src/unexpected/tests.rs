use super::*;
use crate::no_names::NoNames;
use lapscope_data::model::Ended;
use lapscope_trace::made_up::MadeUp;

const MS: i64 = 1_000_000;

fn find(trace: &Trace) -> Unexpected {
    find_of(trace, &[])
}

fn find_of(trace: &Trace, ranks: &[Rank]) -> Unexpected {
    KeptSums::collect(trace, KeptLimits::default(), ranks).name(trace, &mut NoNames)
}

fn volume(messages: u64, bytes: u64) -> Volume {
    Volume { messages, bytes: Bytes(bytes) }
}

/// Early, low and high.
fn volumes(found: &Unexpected) -> [Volume; 3] {
    [found.early, found.low, found.high]
}

/// Rank 0 sends so many messages of 100 bytes from 1 ms on; rank 1 receives them in order from 50 ms on.
fn ahead(messages: u64) -> MadeUp {
    let mut run = MadeUp::new(2);
    run.compute(0, MS);
    run.compute(1, 50 * MS);
    for _ in 0..messages {
        run.send(0, 1, 1, 100, 10);
    }
    for _ in 0..messages {
        run.receive(1, 2, 0, 100);
        run.compute(1, 10);
    }
    run.compute(1, MS);
    run
}

#[test]
fn a_send_counts_for_certain_once_it_is_complete() {
    let mut run = MadeUp::new(2);
    let early = run.ireceive(1, 1, 0, 8, 10);
    run.compute(0, MS);
    run.send(0, 2, 1, 8, 10); // its receive was there
    run.send(0, 3, 1, 20, 10); // complete before its receive
    let open = run.isend(0, 4, 1, 300, 10); // complete after it
    run.compute(1, 20 * MS);
    run.wait(1, 5, &[early]);
    run.receive(1, 6, 0, 20);
    run.receive(1, 7, 0, 300);
    run.compute(0, 60 * MS);
    run.wait(0, 8, &[open]);
    let found = find(&run.finish());
    assert_eq!(found.all, volume(3, 328));
    assert_eq!(volumes(&found), [volume(1, 8), volume(1, 20), volume(2, 320)]);
    assert!(found.ranks.is_empty() && found.over_time.is_none());
    assert_eq!(found.early_share, Some(1.0 / 3.0));
}

#[test]
fn of_a_message_above_the_limit_no_more_than_that_may_have_left() {
    let run = || {
        let mut run = MadeUp::new(2);
        let open = run.isend(0, 1, 1, 10_000, 10);
        run.compute(1, 20 * MS);
        run.receive(1, 2, 0, 10_000);
        run.compute(0, 60 * MS);
        run.wait(0, 3, &[open]);
        run.finish()
    };
    let trace = run();
    let mut search = KeptSearch::new(&trace, KeptLimits::default());
    assert_eq!(search.sum(1, &[]).sums.high, volume(1, 10_000));
    search.limits = KeptLimits([Some(4096); 3]);
    assert_eq!(search.sum(1, &[]).sums.high, volume(1, 4096));
}

#[test]
fn buffered_sends_are_counted_besides_and_copies_are_not_certain() {
    let mut trace = ahead(3).finish();
    trace.ranks[0].operations[0].mode = Mode::Buffered;
    let found = find(&trace);
    assert_eq!(volumes(&found), [volume(0, 0), volume(3, 300), volume(3, 300)]);
    assert_eq!(found.buffered, volume(1, 100));
    trace.ranks[0].operations[1].mode = Mode::Synchronous;
    assert_eq!(find(&trace).low, volume(2, 200));
}

#[test]
fn many_at_once_are_told_with_who_sent_them_and_since_when() {
    assert!(find(&ahead(999).finish()).ranks.is_empty());
    let found = find(&ahead(1500).finish());
    let [pile] = found.ranks.as_slice() else { panic!("{found:#?}") };
    assert_eq!([pile.low, pile.high], [volume(1500, 150_000); 2]);
    assert_eq!(pile.since_ns.0, MS + 10);
    assert_eq!(pile.peak_ns.0, MS + 1500 * 10);
    assert_eq!(pile.until_ns.0, 50 * MS + 1499 * 10);
    assert_eq!((pile.senders, pile.from[0].volume), (1, volume(1500, 150_000)));
    assert_eq!((pile.sent[0].call.as_str(), pile.sent[0].messages), ("MPI_Send", 1500));
    assert_eq!((pile.received[0].call.as_str(), pile.tags.as_slice()), ("MPI_Recv", &[0][..]));
    assert_eq!((pile.overtaken, pile.any_source, pile.never_received), (0, 0, 0));
    let kept = found.over_time.as_ref().expect("a rank has much");
    assert_eq!(kept.low_bytes.iter().max(), Some(&150_000));
    assert_eq!((kept.low_bytes[100], kept.low_bytes.last()), (150_000, Some(&0)));
}

#[test]
fn a_receiver_that_waits_for_what_the_sender_does_later_is_known() {
    let run = |barrier_first: bool| {
        let mut run = MadeUp::new(2);
        if barrier_first {
            run.collective("MPI_Barrier", 9, 0, 10);
        }
        for _ in 0..1000 {
            run.send(0, 1, 1, 100, 10);
        }
        run.compute(1, 50 * MS);
        if !barrier_first {
            run.collective("MPI_Barrier", 9, 0, 10);
        }
        for _ in 0..1000 {
            run.receive(1, 2, 0, 100);
            run.compute(1, 10);
        }
        run.finish()
    };
    assert_eq!(find(&run(false)).ranks[0].overtaken, 1000);
    assert_eq!(find(&run(true)).ranks[0].overtaken, 0);
}

#[test]
fn messages_that_nobody_received_stay_to_the_end() {
    let mut run = MadeUp::new(2);
    for _ in 0..1200 {
        run.send(0, 1, 1, 100, 10);
    }
    run.compute(1, 50 * MS);
    run.info(1).ended = Ended::Killed;
    let mut trace = run.finish();
    trace.matching.unmatched_sends = 1200;
    let found = find(&trace);
    let pile = &found.ranks[0];
    assert_eq!((pile.low, pile.never_received), (volume(1200, 120_000), 1200));
    assert_eq!((pile.until_ns.0, found.unknown), (50 * MS, 0));
    trace.ranks[1].info_mut().lost_records = 1;
    let found = find(&trace);
    assert_eq!((found.ranks.len(), found.all.messages, found.unknown), (0, 0, 1200));
}

#[test]
fn ranks_that_are_not_asked_for_are_left_out() {
    let trace = ahead(1500).finish();
    let ask = |rank: i64| find_of(&trace, &[Rank::of_first_world(rank)]).all.messages;
    assert_eq!([0, 1].map(ask), [0, 1500]);
}
