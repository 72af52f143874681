//! Exchanges of `lapscope calibrate` in its recorded run: what interposer/calibrate/round_trips.c did is told by tags, and by
//! the moments of its calls.

use std::collections::BTreeMap;

use lapscope_trace::{Half, Locality, Operation, Trace};

/// As in interposer/calibrate/round_trips.c.
const TAG_ONE: i64 = 20481;
const TAG_BURST: i64 = 20482;
const TAG_DELAYED: i64 = 20483;
const TAG_AWAY: i64 = 20484;
const TAG_LATE: i64 = 20485;
const TAG_ANSWER: i64 = 20486;
const TAG_READY: i64 = 20487;
const TAG_PLAN: i64 = 20488;

/// Whether a message belongs to such an exchange. These are no reference times: several are on their way at once.
pub fn is_of_round_trip(operation: &Operation) -> bool {
    operation.tag.is_some_and(|tag| (TAG_ONE..=TAG_PLAN).contains(&tag))
}

/// What an exchange is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// PRTT(1, 0, s).
    One,
    /// PRTT(n, 0, s).
    Burst,
    /// PRTT(n, d, s).
    Delayed,
    /// The answer is taken when it has long arrived.
    Away,
}

/// One exchange, of messages of `bytes`. Times are nanoseconds; those of the receiver, whose clock may be another, are
/// durations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    pub kind: ExchangeKind,
    pub bytes: u64,
    /// n.
    pub messages: u32,
    /// From the begin of the first send to the end of the receive of the answer, without what the receiver did in between
    /// that is no part of an exchange: the recorder's own time.
    pub total: f64,
    /// In the posts of the sends, all together.
    pub posts: f64,
    /// Between the posts: n - 1 times d, as it was.
    pub delays: f64,
    /// In the call that received the answer.
    pub answer: f64,
    /// The post of a receive, in the mean.
    pub receive_post: f64,
}

/// A send to a receiver who stayed away, looked, stayed away, and then received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    pub bytes: u64,
    /// Complete without its receive.
    pub is_kept: bool,
}

/// The exchanges of a locality.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchanges {
    pub round_trips: Vec<Exchange>,
    pub late: Vec<Late>,
}

/// All exchanges of a run of `lapscope calibrate`; nothing of any other run.
pub fn exchanges(trace: &Trace) -> BTreeMap<Locality, Exchanges> {
    let mut found: BTreeMap<Locality, Exchanges> = BTreeMap::new();
    for rank in 0..trace.ranks.len() {
        let mut halves: Vec<Half<'_>> =
            trace.halves(rank).filter(|half| is_of_round_trip(half.operation)).collect();
        halves.sort_by_key(|half| half.post_begin);
        let mut open = Open::default();
        for half in halves {
            let tag = half.operation.tag.unwrap_or_default();
            match (half.operation.is_send(), tag) {
                (false, TAG_READY) => open = Open { ready: Some(half), sends: Vec::new() },
                (true, TAG_ONE..=TAG_LATE) => open.sends.push(half),
                (false, TAG_ANSWER) => {
                    let Open { ready, sends } = std::mem::take(&mut open);
                    let Some(peer) = half.operation.peer else { continue };
                    let of_locality = found.entry(trace.locality(rank, peer as usize)).or_default();
                    of_locality.round_trips.extend(exchange(trace, &sends, &half));
                    let late = ready.and_then(|ready| late(trace, &ready, &sends));
                    of_locality.late.extend(late);
                }
                _ => {}
            }
        }
    }
    found.retain(|_, of_locality| !of_locality.round_trips.is_empty());
    found
}

/// An exchange whose answer has not come yet, on the side that paces.
#[derive(Default)]
struct Open<'a> {
    /// The message by which the other side said that it is ready.
    ready: Option<Half<'a>>,
    sends: Vec<Half<'a>>,
}

fn kind_of(half: &Half<'_>) -> Option<ExchangeKind> {
    match half.operation.tag? {
        TAG_ONE => Some(ExchangeKind::One),
        TAG_BURST => Some(ExchangeKind::Burst),
        TAG_DELAYED => Some(ExchangeKind::Delayed),
        TAG_AWAY => Some(ExchangeKind::Away),
        _ => None,
    }
}

fn exchange(trace: &Trace, sends: &[Half<'_>], answer: &Half<'_>) -> Option<Exchange> {
    let (first, kind) = (sends.first()?, kind_of(sends.first()?)?);
    let receives: Option<Vec<Half<'_>>> = sends.iter().map(|send| trace.partner(send)).collect();
    let receives = receives?;
    let complete = receives.iter().map(|receive| receive.completion_end);
    let complete = complete.collect::<Option<Vec<i64>>>()?.into_iter().max()?;
    let end = answer.completion_end?;
    let between = (trace.partner(answer)?.post_begin - complete).max(0);
    let post = |half: &Half<'_>| half.post_end - half.post_begin;
    let delays = sends.windows(2).map(|pair| pair[1].post_begin - pair[0].post_end);
    Some(Exchange {
        kind,
        bytes: first.bytes().0,
        messages: sends.len() as u32,
        total: (end - first.post_begin - between) as f64,
        posts: sends.iter().map(post).sum::<i64>() as f64,
        delays: delays.sum::<i64>() as f64,
        answer: (end - answer.post_begin) as f64,
        receive_post: receives.iter().map(post).sum::<i64>() as f64 / receives.len() as f64,
    })
}

/// The receiver was away twice for the same time, from when it was ready until it posted the receive, and looked in between.
fn late(trace: &Trace, ready: &Half<'_>, sends: &[Half<'_>]) -> Option<Late> {
    let send = sends.first().filter(|send| send.operation.tag == Some(TAG_LATE))?;
    let (ready, receive) = (trace.partner(ready)?, trace.partner(send)?);
    let away = receive.post_begin - ready.completion_end?;
    let is_kept = send.completion_end? < receive.post_begin - away / 4;
    Some(Late { bytes: send.bytes().0, is_kept })
}
