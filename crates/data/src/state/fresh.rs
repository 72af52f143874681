//! What came to the records since a sink was told last: summed up while they are read, as a program that exchanges small messages
//! at full speed writes millions of them a second.

use super::definitions::place;
use super::layout::{record, u16_at, u64_at};

/// Calls that are told of one by one, at most.
const MOST_SINGLE: usize = 1 << 16;

/// A call that ended, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct SingleCall {
    pub thread: u16,
    pub operation: u32,
    pub begin: u64,
    pub duration: u64,
}

/// Calls of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallSum {
    pub count: u64,
    /// Inside of them.
    pub ticks: u64,
}

/// Sums by id, with the ids that have one.
#[derive(Debug)]
struct ById<T> {
    sums: Vec<T>,
    ids: Vec<u32>,
}

/// What came since.
#[derive(Debug, Default)]
pub struct Fresh {
    /// By operation.
    calls: ById<CallSum>,
    /// By outcome.
    requests: ById<u64>,
    /// Those that began before this, in ticks, may have been open at the last look.
    pub single_until: u64,
    pub single: Vec<SingleCall>,
}

impl<T> Default for ById<T> {
    fn default() -> ById<T> {
        ById { sums: Vec::new(), ids: Vec::new() }
    }
}

impl<T: Default + Clone> ById<T> {
    /// Takes those that somebody wants; the others stay.
    fn take(&mut self, mut wants: impl FnMut(u32, &T) -> bool) {
        let sums = &mut self.sums;
        self.ids.retain(|&id| {
            let is_wanted = wants(id, &sums[id as usize]);
            if is_wanted {
                sums[id as usize] = T::default();
            }
            !is_wanted
        });
    }
}

impl Fresh {
    /// Counts a call; `false`: of an operation that cannot be.
    #[inline]
    pub fn call(&mut self, call: SingleCall, room: u64) -> bool {
        if call.begin < self.single_until && self.single.len() < MOST_SINGLE {
            self.single.push(call);
            return true;
        }
        let Some(sum) = place(&mut self.calls.sums, room, call.operation) else { return false };
        if sum.count == 0 {
            self.calls.ids.push(call.operation);
        }
        sum.count += 1;
        sum.ticks = sum.ticks.saturating_add(call.duration);
        true
    }

    /// Counts a request; `false`: of an outcome that cannot be.
    #[inline]
    pub fn request(&mut self, outcome: u32, room: u64) -> bool {
        let Some(count) = place(&mut self.requests.sums, room, outcome) else { return false };
        if *count == 0 {
            self.requests.ids.push(outcome);
        }
        *count += 1;
        true
    }

    /// Takes the sums of operations that are told.
    pub fn take_calls(&mut self, tell: impl FnMut(u32, &CallSum) -> bool) {
        self.calls.take(tell);
    }

    /// Takes the counts of outcomes that are told.
    pub fn take_requests(&mut self, tell: impl FnMut(u32, &u64) -> bool) {
        self.requests.take(tell);
    }
}

/// Hands over the outcomes of REQUESTs that stand one behind the other, as far as whole words can be read; says how many bytes they
/// are. Most have lengths like those of the one before, so that the processor knows where the next one begins before it has read
/// this one.
#[inline]
pub fn skim_requests(bytes: &[u8], mut take: impl FnMut(u32)) -> usize {
    let (mut at, mut lengths, mut size) = (0, 0, record::HOT_HEAD);
    while let Some(window) = bytes[at..].first_chunk::<{ record::HOT_MOST }>() {
        if window[0] != record::REQUEST {
            break;
        }
        let own = u16_at(window, 1);
        if own != lengths {
            (lengths, size) = (own, size_of(own));
        }
        take((u64_at(window, record::HOT_HEAD) & ((1 << (8 * (own & 7))) - 1)) as u32);
        at += size;
    }
    at
}

/// Bytes of a record, by the five lengths of three bits each. Apart, that it is a branch.
#[cold]
#[inline(never)]
fn size_of(lengths: u16) -> usize {
    record::HOT_HEAD + (0..5).map(|field| usize::from(lengths >> (3 * field) & 7)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_skimmed_up_to_what_is_no_request() {
        let mut bytes = Vec::new();
        let outcomes = [7, 7, 300, 7, 70_000];
        for (outcome, lengths) in outcomes.iter().zip([0o00231, 0o00231, 0o10002, 0o7, 0o77773]) {
            let from = bytes.len();
            bytes.extend([record::REQUEST]);
            bytes.extend(u16::to_le_bytes(lengths));
            bytes.extend(u64::to_le_bytes(0x5555_5555_0000_0000 | outcome));
            bytes.resize(from + size_of(lengths), 0x55);
            // what lies behind the outcome belongs to the next field
            let own = usize::from(lengths & 7).min(8);
            let field = &mut bytes[from + record::HOT_HEAD..][..own];
            field.copy_from_slice(&u64::to_le_bytes(*outcome)[..own]);
        }
        let all = bytes.len();
        bytes.extend([record::CALL]);
        bytes.resize(all + record::HOT_MOST, 0);
        let mut seen = Vec::new();
        assert_eq!(skim_requests(&bytes, |outcome| seen.push(u64::from(outcome))), all);
        assert_eq!(seen, outcomes);
        assert_eq!(skim_requests(&bytes[..all], |_| ()), 9 + 9 + 6, "then no words");
    }

    #[test]
    fn what_nobody_understands_yet_is_told_later() {
        let mut fresh = Fresh { single_until: 100, ..Fresh::default() };
        for (operation, begin) in [(1, 50), (1, 150), (2, 160), (1, 170)] {
            assert!(fresh.call(SingleCall { thread: 0, operation, begin, duration: 5 }, 10));
        }
        assert!(!fresh.call(SingleCall { thread: 0, operation: 11, begin: 180, duration: 5 }, 10));
        assert_eq!(fresh.single.len(), 1);
        let mut told = Vec::new();
        for known in [1, 2] {
            fresh.take_calls(|id, sum| {
                told.extend((id == known).then_some((id, sum.count, sum.ticks)));
                id == known
            });
        }
        fresh.take_calls(|id, _| panic!("{id} was told"));
        assert_eq!(told, [(1, 2, 10), (2, 1, 5)]);
    }
}
