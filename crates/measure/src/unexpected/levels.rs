//! How much is kept at once.

/// Slots of time that a run is cut into.
const SLOTS: usize = 256;

/// What was added and taken in each slot: enough to say of most ranks, without putting anything in order, that little was kept.
pub struct Slots {
    begin: i64,
    width: i64,
    /// Messages and bytes.
    added: Vec<(i64, i64)>,
    taken: Vec<(i64, i64)>,
}

impl Slots {
    pub fn new(begin: i64, end: i64) -> Slots {
        let none = vec![(0, 0); SLOTS];
        Slots { begin, width: slot_width(begin, end), added: none.clone(), taken: none }
    }

    pub fn add(&mut self, from: i64, until: i64, bytes: u64) {
        let [added, taken] = [from, until].map(|moment| slot(moment, self.begin, self.width));
        for it in [&mut self.added[added], &mut self.taken[taken]] {
            it.0 += 1;
            it.1 = it.1.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
    }

    /// Whether there may have been so much at once: as if all of a slot were added before anything is taken.
    pub fn may_reach(&self, messages: i64, bytes: i64) -> bool {
        let mut level = (0i64, 0i64);
        self.added.iter().zip(&self.taken).any(|(added, taken)| {
            let most = (level.0 + added.0, level.1.saturating_add(added.1));
            level = (most.0 - taken.0, most.1.saturating_sub(taken.1));
            most.0 >= messages || most.1 >= bytes
        })
    }
}

pub fn slot_width(begin: i64, end: i64) -> i64 {
    (end.saturating_sub(begin) / SLOTS as i64).saturating_add(1).max(1)
}

fn slot(moment: i64, begin: i64, width: i64) -> usize {
    (moment.saturating_sub(begin).max(0) / width).min(SLOTS as i64 - 1) as usize
}

/// The most that was kept at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peak {
    pub most: i64,
    pub at: i64,
    /// Nothing was kept before and after, as far as that is so.
    pub since: i64,
    pub until: i64,
}

/// Messages and bytes over time.
pub struct Levels {
    pub messages: Peak,
    pub bytes: Peak,
    /// The most bytes in each slot.
    pub over_time: Vec<u64>,
}

impl Levels {
    /// Of intervals and their bytes.
    pub fn sweep(
        kept: impl Iterator<Item = (i64, i64, u64)> + Clone,
        (begin, end): (i64, i64),
    ) -> Levels {
        let added = kept
            .clone()
            .map(|(from, _, bytes)| (from, 1, i64::try_from(bytes).unwrap_or(i64::MAX)));
        let taken =
            kept.map(|(_, until, bytes)| (until, -1, -i64::try_from(bytes).unwrap_or(i64::MAX)));
        let mut events: Vec<(i64, i64, i64)> = added.chain(taken).collect();
        // what is taken goes first; quick, since both are nearly in order
        events.sort();
        let mut levels = Levels {
            messages: Peak { until: end, ..Peak::default() },
            bytes: Peak { until: end, ..Peak::default() },
            over_time: vec![0; SLOTS],
        };
        let width = slot_width(begin, end);
        let (mut messages, mut bytes, mut since, mut last) = (0i64, 0i64, begin, 0);
        for (moment, message, size) in events {
            let now = slot(moment, begin, width);
            // what stood since then stands in all slots between
            levels.over_time[last.min(now)..=now]
                .iter_mut()
                .for_each(|it| *it = (*it).max(bytes.max(0) as u64));
            last = now;
            if messages == 0 {
                since = moment;
            }
            messages += message;
            bytes = size.saturating_add(bytes);
            levels.messages.follow(messages, moment, since, end);
            levels.bytes.follow(bytes, moment, since, end);
            if messages == 0 {
                for peak in [&mut levels.messages, &mut levels.bytes] {
                    peak.until = peak.until.min(moment);
                }
            }
            levels.over_time[now] = levels.over_time[now].max(bytes.max(0) as u64);
        }
        levels
    }
}

impl Peak {
    fn follow(&mut self, level: i64, at: i64, since: i64, end: i64) {
        if level > self.most {
            *self = Peak { most: level, at, since, until: end };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_at_once_and_from_when_to_when() {
        let kept = [(10, 20, 5), (30, 90, 7), (40, 50, 100), (50, 60, 1), (95, 99, 3)];
        let levels = Levels::sweep(kept.into_iter(), (0, 256));
        assert_eq!(levels.messages, Peak { most: 2, at: 40, since: 30, until: 90 });
        assert_eq!(levels.bytes, Peak { most: 107, at: 40, since: 30, until: 90 });
        let at = |moment: usize| levels.over_time[moment / 2];
        assert_eq!([0, 12, 24, 34, 46, 56, 70, 96, 120].map(at), [0, 5, 0, 7, 107, 8, 7, 3, 0]);
    }

    #[test]
    fn slots_never_say_less_than_the_sweep() {
        let kept = [(10, 20, 5), (30, 90, 7), (40, 50, 100), (50, 60, 1)];
        let mut slots = Slots::new(0, 10_000);
        kept.iter().for_each(|&(from, until, bytes)| slots.add(from, until, bytes));
        assert!(slots.may_reach(2, 1000) && slots.may_reach(1000, 107));
        assert!(!slots.may_reach(5, 1000));
    }
}
