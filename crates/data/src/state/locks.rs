//! Locks of windows: those that were taken more often than released.

use rustc_hash::FxHashMap;

use super::Lock;

/// How often each was taken, less how often it was released.
#[derive(Debug, Default)]
pub struct Locks(FxHashMap<Lock, i64>);

impl Locks {
    /// Adds any call, if it locks or unlocks.
    pub fn add(&mut self, call: &str, communicator: u32, target_world: Option<i64>, count: u64) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let (change, target_world) = match call {
            "MPI_Win_lock" => (count, target_world),
            "MPI_Win_unlock" => (-count, target_world),
            "MPI_Win_lock_all" => (count, None),
            "MPI_Win_unlock_all" => (-count, None),
            _ => return,
        };
        *self.0.entry(Lock { communicator, target_world }).or_default() += change;
    }

    pub fn list(self) -> Vec<Lock> {
        let held = self.0.into_iter().filter(|(_, held)| *held > 0);
        let mut locks: Vec<Lock> = held.map(|(lock, _)| lock).collect();
        locks.sort_unstable();
        locks
    }
}
