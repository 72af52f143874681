//! What the time of every call is laid to: found in a first look at the run, used in a second. A message has two ends, and its
//! row has the causes of both, which may be in different parts of the run.

use std::fs;
use std::io;
use std::path::Path;

use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::request::Achieved;
use lapscope_measure::overlap::witness::{Awaited, Waited, Witness};
use lapscope_trace::{Half, RankTrace, Trace, NONE};
use rustc_hash::FxHashMap;

/// The cause of one call's time: 32 bytes, as a run has millions of them.
#[derive(Debug, Clone, Copy)]
struct CallCause {
    /// In the order of [`parts`], nanoseconds; all of them [`LONG`] where one does not fit.
    parts: [u32; PARTS],
    /// Endpoint that it waited for.
    half: u32,
    /// Place of the rank that it waited for.
    awaited: u32,
}

const LONG: u32 = u32::MAX;
/// The causes, and what is none: time beside a GPU.
const PARTS: usize = 6;

fn parts(exposed: &Exposure) -> [i64; PARTS] {
    let [late, remote, local, transfer, processor] = exposed.parts();
    [late, remote, local, transfer, processor, exposed.beside_gpu]
}

impl CallCause {
    const BYTES: usize = 4 * (PARTS + 2);
}

/// The exposure of so many parts, in the order of [`parts`].
fn exposure(parts: &[i64]) -> Exposure {
    Exposure {
        late_partner: parts[0],
        no_remote_progress: parts[1],
        no_local_progress: parts[2],
        transfer: parts[3],
        no_processor: parts[4],
        beside_gpu: parts[5],
    }
}

/// The causes of the time of one rank's calls.
#[derive(Debug, Clone, Default)]
pub struct CallCauses {
    /// By place in [`RankTrace::calls`]; those that were not told of have no half.
    calls: Vec<CallCause>,
    long: FxHashMap<u32, Exposure>,
    /// Requests among the endpoints of a call.
    known: Vec<u32>,
    /// By place in [`RankTrace::endpoints`]: which of these it is.
    numbers: Vec<u32>,
}

impl CallCauses {
    pub fn new(rank: &RankTrace) -> CallCauses {
        let unknown = CallCause { parts: [0; PARTS], half: NONE, awaited: NONE };
        let mut known = vec![0; rank.calls.len()];
        let number = |endpoint: &lapscope_trace::Endpoint| {
            let count = known.get_mut(endpoint.call as usize);
            let operation = &rank.operations[endpoint.operation as usize];
            count.filter(|_| !operation.is_second_half).map_or(0, |count| {
                *count += 1;
                *count - 1
            })
        };
        let numbers = rank.endpoints.iter().map(number).collect();
        CallCauses {
            calls: vec![unknown; rank.calls.len()],
            long: FxHashMap::default(),
            known,
            numbers,
        }
    }

    /// Keeps what was told of the calls in a file: little-endian numbers of 32 bits, and behind them, for each call with parts
    /// that do not fit, its parts in 64 bits.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.calls.len() * CallCause::BYTES);
        for CallCause { parts, half, awaited } in &self.calls {
            let words = parts.iter().chain([half, awaited]);
            words.for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        for call in self.long_calls() {
            let parts = self.long.get(&call).map(parts).unwrap_or_default();
            parts.iter().for_each(|part| bytes.extend(part.to_le_bytes()));
        }
        fs::write(path, bytes)
    }

    /// Loads the causes of a rank whose rows were read again.
    ///
    /// # Errors
    /// The file cannot be read, or is of another number of calls.
    pub fn load(rank: &RankTrace, path: &Path) -> io::Result<CallCauses> {
        let mut causes = CallCauses::new(rank);
        let bytes = fs::read(path)?;
        let of_calls = causes.calls.len() * CallCause::BYTES;
        let (calls, long) = bytes.split_at_checked(of_calls).ok_or(io::ErrorKind::InvalidData)?;
        for (call, bytes) in causes.calls.iter_mut().zip(calls.chunks_exact(CallCause::BYTES)) {
            let word =
                |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[4 * at + byte]));
            let (half, awaited) = (word(PARTS), word(PARTS + 1));
            *call = CallCause { parts: std::array::from_fn(word), half, awaited };
        }
        let parts = long
            .chunks_exact(8)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes")));
        let parts: Vec<i64> = parts.collect();
        let numbered: Vec<u32> = causes.long_calls().collect();
        causes.long = numbered.into_iter().zip(parts.chunks_exact(PARTS).map(exposure)).collect();
        Ok(causes)
    }

    fn long_calls(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.calls).filter(|(_, of)| of.parts == [LONG; PARTS]).map(|(call, _)| call)
    }

    /// All of a call; `None`: no start of what it completed was seen, or it neither communicates nor completes anything.
    pub fn of_call(&self, call: u32) -> Option<Exposure> {
        let of = self.calls.get(call as usize).filter(|of| of.half != NONE)?;
        if of.parts == [LONG; PARTS] {
            return self.long.get(&call).copied();
        }
        Some(exposure(&of.parts.map(i64::from)))
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
        let completed = rank.calls[call as usize].completed();
        let of = u64::from(self.known[call as usize].max(completed));
        Some(all.share(self.numbers[half.index].into(), of))
    }
}

impl Witness for CallCauses {
    fn call(&mut self, waited: &Waited<'_>) {
        let Some(call) = waited.half.call else { return };
        let parts = parts(&waited.exposed);
        let fits = parts.iter().all(|part| (0..i64::from(LONG)).contains(part));
        if !fits {
            self.long.insert(call, waited.exposed);
        }
        self.calls[call as usize] = CallCause {
            parts: if fits { parts.map(|part| part as u32) } else { [LONG; PARTS] },
            half: waited.half.index as u32,
            awaited: match waited.awaited {
                Awaited::Partner(half) => half.rank as u32,
                Awaited::Member(rank) => rank,
                Awaited::Unknown => NONE,
            },
        };
    }
}

/// What was overlapped of every request of one rank.
#[derive(Debug)]
pub struct Overlapped {
    /// The place of the rank.
    pub place: usize,
    /// By place in [`RankTrace::endpoints`].
    requests: FxHashMap<usize, Achieved>,
}

impl Overlapped {
    pub fn new(place: usize) -> Overlapped {
        Overlapped { place, requests: FxHashMap::default() }
    }

    /// `None`: it has no reference time, or no end.
    pub fn achieved(&self, half: &Half<'_>) -> Option<Achieved> {
        self.requests.get(&half.index).copied()
    }
}

impl Witness for Overlapped {
    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        self.requests.insert(half.index, *achieved);
    }
}
