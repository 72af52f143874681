//! Who has locked the memory of a window, and not unlocked it.

use rustc_hash::FxHashMap;

use super::job::Job;
use lapscope_data::model::Rank;
use lapscope_data::state::{Lock, OpenOperation};

/// Calls that return when a lock is there.
const LOCKING: [&str; 5] =
    ["MPI_Win_lock", "MPI_Win_lock_all", "MPI_Win_unlock", "MPI_Win_flush", "MPI_Win_flush_local"];
/// Holders of a lock that are looked at.
const MOST: usize = 64;

/// Ranks by their places in the job, with what they hold: of a world and a window.
pub struct Locks(FxHashMap<(i64, u32), Vec<(usize, Lock)>>);

impl Locks {
    pub fn collect(job: &Job<'_>) -> Locks {
        let mut held: FxHashMap<(i64, u32), Vec<(usize, Lock)>> = FxHashMap::default();
        for (at, rank) in job.ranks().iter().enumerate() {
            let Rank { world, .. } = rank.rank;
            for lock in &rank.history.locks {
                held.entry((world, lock.communicator)).or_default().push((at, *lock));
            }
        }
        Locks(held)
    }

    /// Other ranks that have locked the memory that a call waits to lock.
    pub fn holders(&self, job: &Job<'_>, at: usize, operation: &OpenOperation) -> Vec<usize> {
        let window = operation.communicator.map(|window| (job.rank(at).rank.world, window));
        let is_locking = LOCKING.contains(&job.call(operation.call).name.as_str());
        let Some(held) = window.filter(|_| is_locking).and_then(|it| self.0.get(&it)) else {
            return Vec::new();
        };
        let wanted = operation.peer_world;
        let is_same = |(other, lock): &&(usize, Lock)| {
            let target = lock.target_world;
            *other != at && (target.is_none() || wanted.is_none() || target == wanted)
        };
        let mut holders: Vec<usize> =
            held.iter().filter(is_same).map(|(at, _)| *at).take(MOST).collect();
        holders.dedup();
        holders
    }
}
