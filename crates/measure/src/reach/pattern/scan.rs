//! Where messages of all ranks lead.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{TimedMessage, Traffic};

/// Messages that one look takes into account, at most.
const MOST: usize = 20_000;

/// Looks along the messages of a run.
pub struct Scan<'t> {
    messages: &'t [TimedMessage],
}

impl<'t> Scan<'t> {
    pub fn new(traffic: &'t Traffic<'_>) -> Scan<'t> {
        Scan { messages: &traffic.messages }
    }

    /// Messages posted from `begin` to before `end`.
    fn posted(&self, begin: i64, end: i64) -> &'t [TimedMessage] {
        let place = |moment| self.messages.partition_point(|message| message.sent < moment);
        let first = place(begin);
        &self.messages[first..place(end).max(first)]
    }

    /// Whether messages posted from `begin` to `end` lead from one rank to another, whatever their order in time. Of very many
    /// those in the middle are looked at.
    pub fn leads(&self, from: u32, to: u32, begin: i64, end: i64) -> bool {
        let all = self.posted(begin, end);
        let spare = all.len().saturating_sub(MOST);
        let mut next: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
        for message in &all[spare / 2..all.len() - (spare - spare / 2)] {
            next.entry(message.source).or_default().insert(message.destination);
        }
        let mut found: FxHashSet<u32> = FxHashSet::from_iter([from]);
        let mut left = vec![from];
        while let Some(rank) = left.pop() {
            for &rank in next.get(&rank).into_iter().flatten() {
                if rank == to {
                    return true;
                }
                if found.insert(rank) {
                    left.push(rank);
                }
            }
        }
        false
    }

    /// Whether something that `from` knew at `begin` may have come to `to` by `end`: by messages each of which was posted after
    /// the one before it had been received.
    pub fn follows(&self, from: u32, to: u32, begin: i64, end: i64) -> bool {
        let mut known: FxHashMap<u32, i64> = FxHashMap::from_iter([(from, begin)]);
        // a message that another one depends on was posted before it
        for message in self.posted(begin, end).iter().take(MOST) {
            let is_behind = known.get(&message.source).is_some_and(|&at| at <= message.sent);
            if is_behind && message.received <= end {
                if message.destination == to {
                    return true;
                }
                let at = known.entry(message.destination).or_insert(message.received);
                *at = message.received.min(*at);
            }
        }
        false
    }
}
