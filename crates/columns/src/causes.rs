//! What the time of every call is laid to, kept for all ranks at once: a message has two ends, and both are in its row.

use lapscope_analysis::overlap::exposure::Exposure;
use lapscope_analysis::overlap::request::Achieved;
use lapscope_analysis::overlap::witness::{Awaited, Waited, Witness};
use lapscope_analysis::trace::{Half, RankTrace, Trace, NONE};
use rustc_hash::FxHashMap;

/// Of one call: 28 bytes, as a run has millions of them.
#[derive(Debug, Clone, Copy)]
struct OfCall {
    /// In the order of [`Exposure::parts`], nanoseconds; all of them [`LONG`] where one does not fit.
    parts: [u32; 5],
    /// Endpoint that it waited for.
    half: u32,
    /// Place of the rank that it waited for.
    awaited: u32,
}

const LONG: u32 = u32::MAX;

/// Of the calls of one rank.
#[derive(Debug, Default)]
pub struct Causes {
    /// By place in [`RankTrace::calls`]; those that were not told of have no half.
    calls: Vec<OfCall>,
    long: FxHashMap<u32, Exposure>,
    /// Requests among the endpoints of a call.
    known: Vec<u32>,
    /// By place in [`RankTrace::endpoints`]: which of these it is.
    numbers: Vec<u32>,
}

impl Causes {
    pub fn new(rank: &RankTrace) -> Causes {
        let unknown = OfCall { parts: [0; 5], half: NONE, awaited: NONE };
        let mut known = vec![0; rank.calls.len()];
        let number = |endpoint: &lapscope_analysis::trace::Endpoint| {
            let count = known.get_mut(endpoint.call as usize);
            let operation = &rank.operations[endpoint.operation as usize];
            count.filter(|_| !operation.is_second_half).map_or(0, |count| {
                *count += 1;
                *count - 1
            })
        };
        let numbers = rank.endpoints.iter().map(number).collect();
        Causes {
            calls: vec![unknown; rank.calls.len()],
            long: FxHashMap::default(),
            known,
            numbers,
        }
    }

    /// All of a call; `None`: no start of what it completed was seen, or it neither communicates nor completes anything.
    pub fn of_call(&self, call: u32) -> Option<Exposure> {
        let of = self.calls.get(call as usize).filter(|of| of.half != NONE)?;
        if of.parts == [LONG; 5] {
            return self.long.get(&call).copied();
        }
        let [late_partner, no_remote_progress, no_local_progress, transfer, no_processor] =
            of.parts.map(i64::from);
        Some(Exposure {
            late_partner,
            no_remote_progress,
            no_local_progress,
            transfer,
            no_processor,
        })
    }

    /// Place of the rank that a call waited for.
    pub fn awaited(&self, call: u32) -> Option<u32> {
        let awaited = self.calls.get(call as usize)?.awaited;
        (awaited != NONE).then_some(awaited)
    }

    /// What a request, or a blocking message, has of the call that completed it: an equal part, as in all sums by site. Of a
    /// blocking call that sends and receives the half that it waited for has all, of a request that does the sending half.
    pub fn of_half(&self, trace: &Trace, half: &Half<'_>) -> Option<Exposure> {
        let rank = &trace.ranks[half.rank];
        let call = half.call?;
        let all = self.of_call(call)?;
        let is_awaited = match half.operation.is_request {
            true => !half.operation.is_second_half,
            false => self.calls[call as usize].half as usize == half.index,
        };
        if !is_awaited {
            return Some(Exposure::default());
        }
        if !half.operation.is_request {
            return Some(all);
        }
        let completed = rank.calls[call as usize].completed;
        let of = u64::from(self.known[call as usize].max(completed));
        Some(all.share(self.numbers[half.index].into(), of))
    }
}

impl Witness for Causes {
    fn call(&mut self, waited: &Waited<'_>) {
        let Some(call) = waited.half.call else { return };
        let parts = waited.exposed.parts();
        let fits = parts.iter().all(|part| (0..i64::from(LONG)).contains(part));
        if !fits {
            self.long.insert(call, waited.exposed);
        }
        self.calls[call as usize] = OfCall {
            parts: if fits { parts.map(|part| part as u32) } else { [LONG; 5] },
            half: waited.half.index as u32,
            awaited: match waited.awaited {
                Awaited::Partner(half) => half.rank as u32,
                Awaited::Member(rank) => rank,
                Awaited::Unknown => NONE,
            },
        };
    }
}

/// What was overlapped of every request of one rank, by place in [`RankTrace::endpoints`].
#[derive(Debug, Default)]
pub struct Overlapped(FxHashMap<usize, Achieved>);

impl Overlapped {
    /// `None`: it has no reference time, or no end.
    pub fn of(&self, half: &Half<'_>) -> Option<Achieved> {
        self.0.get(&half.index).copied()
    }
}

impl Witness for Overlapped {
    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        self.0.insert(half.index, *achieved);
    }
}
