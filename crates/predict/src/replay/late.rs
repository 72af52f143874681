//! What a rank lost inside a call for want of a processor, after all that the call waited for could have come.
//!
//! Such losses are the machine's, not the network's: a replay keeps them where they were recorded, as it keeps those in
//! computation. What a rank lost while it had to wait anyway cost nothing, and is not kept.
//!
//! The kernel counts such losses by intervals of 10 ms. A call that took far more than is usual may have all of its
//! interval, others get their share by length. Collectives have them in their mean durations already.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::replayed::is_replayed;
use lapscope_trace::{Call, Direction, Endpoint, Half, Operation, RankTrace, Trace};

/// By direction and size class: what messages usually take from when both ends were there, nanoseconds.
#[derive(Debug, Default)]
pub struct Usual {
    medians: FxHashMap<LatenessClass, i64>,
}

/// Whether it is a send; size class.
type LatenessClass = (bool, u32);

/// What took longer than this many times the usual time was held up.
const FAR: i64 = 3;
/// Messages up to this size are eager under every MPI.
const EAGER: u64 = 4_096;
/// Enough of a rank to know what is usual.
const SAMPLE: usize = 100_000;

impl Usual {
    /// Measures a run. One whose ranks had processors all the time needs nothing.
    pub fn measure(trace: &Trace) -> Usual {
        if !trace.is_starved() {
            return Usual::default();
        }
        let of_rank = |rank: usize| trace.halves(rank).filter_map(|half| taken(trace, &half));
        let ranks = (0..trace.ranks.len()).into_par_iter();
        let all: Vec<(LatenessClass, i64)> =
            ranks.flat_map_iter(|rank| of_rank(rank).take(SAMPLE)).collect();
        let mut times: FxHashMap<LatenessClass, Vec<i64>> = FxHashMap::default();
        for (key, ns) in all {
            times.entry(key).or_default().push(ns);
        }
        let median = |(key, mut times): (LatenessClass, Vec<i64>)| {
            let middle = times.len() / 2;
            (key, *times.select_nth_unstable(middle).1)
        };
        Usual { medians: times.into_iter().map(median).collect() }
    }

    /// What a call lost, nanoseconds: no more than it was without a processor, and than it took beyond what is usual.
    pub fn lost<'a>(
        &self,
        trace: &Trace,
        rank: &RankTrace,
        call: &Call,
        endpoints: impl Iterator<Item = (&'a Endpoint, &'a Operation)>,
    ) -> i64 {
        if rank.starvation.is_empty() {
            return 0;
        }
        let (mut ready, mut usual) = (call.begin, 0);
        let end = call.begin + call.duration;
        for (endpoint, operation) in endpoints {
            let Some(peer) = operation.peer.filter(|_| is_message(operation)) else { return 0 };
            if is_replayed(trace, endpoint, operation) {
                let partner = trace.half(peer as usize, endpoint.partner as usize);
                ready = ready.max(there(trace, &partner, call.begin).unwrap_or(end));
            }
            usual = usual.max(self.medians.get(&key(operation)).copied().unwrap_or(0));
        }
        let beyond = (end - ready).max(0) - usual;
        let without = match beyond > usual * FAR {
            // a slice without a processor is in one place, and this is where it shows
            true => rank.starvation.most_within(ready, end),
            false => rank.starvation.within(ready, end),
        };
        beyond.min(without).max(0)
    }
}

/// When the other end of a message is where the message can move, and this one has come at `begin`. A large message may need it
/// inside MPI.
fn there(trace: &Trace, partner: &Half<'_>, begin: i64) -> Option<i64> {
    match partner.bytes().0 <= EAGER {
        true => Some(partner.post_begin),
        false => trace.next_inside(partner, partner.post_begin.max(begin)),
    }
}

fn is_message(operation: &Operation) -> bool {
    matches!(operation.direction, Direction::Send | Direction::Receive)
}

fn key(operation: &Operation) -> LatenessClass {
    let class = u64::BITS - operation.bytes.0.leading_zeros();
    (operation.direction == Direction::Send, class)
}

/// From when both ends were there, and this one in the call that completes it.
fn taken(trace: &Trace, half: &Half<'_>) -> Option<(LatenessClass, i64)> {
    let partner = trace.partner(half)?;
    let (begin, end) = (half.completion_begin?, half.completion_end?);
    let ready = begin.max(there(trace, &partner, begin)?);
    (ready <= end).then(|| (key(half.operation), end - ready))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Program;
    use lapscope_trace::script::{Act, Message, Script};
    use lapscope_trace::{Starvation, Starved};

    /// The receiver of one small message is in its call for 2 ms, 1.5 ms of them without a processor.
    fn held_up() -> Trace {
        let mut script = Script::new(2);
        script.act(0, Act::Send(Message::new(1, 0, 8)));
        script.act(1, Act::Recv(Message::new(0, 0, 8)));
        let mut trace = script.trace();
        let receiver = &mut trace.ranks[1];
        receiver.calls[0].duration = 2_000_000;
        receiver.end = receiver.calls[0].begin + 2_000_100;
        let starved = Starved { begin: 0, end: 10_000_000, wait: 1_500_000 };
        receiver.starvation = Starvation::new(vec![starved]);
        trace
    }

    fn late(trace: &Trace) -> i64 {
        let step = Program::new(trace).ranks[1].threads[0].steps[0];
        step.late.or_zero()
    }

    #[test]
    fn what_a_call_lost_without_a_processor_is_kept() {
        assert_eq!(late(&held_up()), 1_500_000);
        let mut undisturbed = held_up();
        undisturbed.ranks[1].starvation = Starvation::default();
        assert_eq!(late(&undisturbed), 0);
    }

    #[test]
    fn who_would_have_waited_anyway_lost_nothing() {
        let mut trace = held_up();
        let end = trace.ranks[1].calls[0].begin + 2_000_000;
        trace.ranks[0].endpoints[0].begin = end - 300_000;
        assert_eq!(late(&trace), 300_000);
        trace.ranks[0].endpoints[0].begin = end;
        assert_eq!(late(&trace), 0);
    }
}
