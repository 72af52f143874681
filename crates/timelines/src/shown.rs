//! What of a run is on the timeline: some of its ranks, and of each what touches a stretch of time.

use lapscope_data::model::RankList;
use lapscope_trace::{Direction, Half, Trace};

/// By place in [`Trace::ranks`]: from when to when, nanoseconds on the run's clock; `None`: nothing of that rank.
#[derive(Debug, Clone)]
pub struct ShownWindows(Vec<Option<(i64, i64)>>);

impl ShownWindows {
    /// All that the ranks of `list` did; of each, where `stretch` says from when to when by its place, what touches that.
    pub fn new(trace: &Trace, list: &RankList, stretch: Option<&[(i64, i64)]>) -> ShownWindows {
        let all = (i64::MIN, i64::MAX);
        let of = |place: usize| stretch.map_or(all, |stretch| stretch[place]);
        let is_listed = |place: usize| match list {
            RankList::All => true,
            RankList::Some(_) => list.contains(trace.ranks[place].info().rank),
        };
        let ranks = 0..trace.ranks.len();
        ShownWindows(ranks.map(|place| is_listed(place).then(|| of(place))).collect())
    }

    pub fn has_rank(&self, place: usize) -> bool {
        self.0[place].is_some()
    }

    /// Places of the ranks of which something is shown.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).filter(|&place| self.has_rank(place))
    }

    /// From when to when.
    pub fn window(&self, place: usize) -> Option<(i64, i64)> {
        self.0[place]
    }

    /// Whether what a rank did from `begin` to `end` is shown, which it is whole.
    #[inline]
    pub fn touches(&self, place: usize, begin: i64, end: i64) -> bool {
        self.0[place].is_some_and(|(from, to)| begin < to && (end > from || begin >= from))
    }

    /// The message that `half` is an end of, where both its ends are shown.
    #[inline]
    pub fn message(&self, trace: &Trace, half: &Half<'_>) -> Option<MatchedMessage> {
        let other = trace.partner(half)?;
        let (send, receive) = match half.operation.direction {
            Direction::Send => (half, &other),
            _ => (&other, half),
        };
        let (source, sink) = (source(trace, send), sink(trace, receive));
        let is_shown = self.touches(send.rank, source.0, source.1)
            && self.touches(receive.rank, sink.0, sink.1);
        is_shown.then_some(MatchedMessage {
            id: ((send.rank as u64 + 1) << 32) | send.index as u64,
            peer: other.rank,
            is_backwards: sink.1 < source.0,
        })
    }
}

/// A matched message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedMessage {
    /// The same at both ends, and of no other message of the run; never 0.
    pub id: u64,
    /// Place of the rank at the other end.
    pub peer: usize,
    /// By its ends' clocks it arrived before it was sent: within what clocks may be off.
    pub is_backwards: bool,
}

/// From when to when the call took that sent a message.
fn source(trace: &Trace, send: &Half<'_>) -> (i64, i64) {
    match send.operation.is_request {
        true => (send.post_begin, send.post_end),
        false => sink(trace, send),
    }
}

/// From when to when the call took that received a message; of a receive that nothing completed, its lifetime.
fn sink(trace: &Trace, receive: &Half<'_>) -> (i64, i64) {
    let rank = &trace.ranks[receive.rank];
    match receive.call.map(|call| &rank.calls[call as usize]) {
        Some(call) if call.returned() => (call.begin, call.begin + call.duration),
        Some(call) => (call.begin, rank.end.max(call.begin)),
        None => (receive.post_begin, rank.end.max(receive.post_end)),
    }
}
