//! Ranks that the others wait for and that are not in MPI: what their processes do there.
//!
//! A thread that has not called MPI yet is in no record, and may be about to send. So where any thread may call MPI the
//! threads of the process are listed, too. The MPI library's own are among them; they wait for events, as no thread
//! does that is about to send.

use super::document::Activity;
use super::graph::{Freedom, Graph, Target};
use super::job::Job;
use super::needs::Why;
use lapscope_data::state::{Condition, ThreadState};

/// What a rank does that is not inside of MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutsideActivity {
    Stopped,
    Asleep,
    /// In a function that MPI calls.
    AsleepWithin,
    Computes,
    /// Where it runs, it cannot be seen.
    Unseen,
}

/// What a rank that takes part in the job does: `None` for what waits inside of MPI, has ended, or tests.
pub fn outside(job: &Job<'_>, at: usize) -> Option<OutsideActivity> {
    let rank = job.rank(at);
    if !job.progressed[at] && job.sleeps_within(at).is_some() {
        return Some(OutsideActivity::AsleepWithin);
    }
    if rank.is_over() || job.progressed[at] || rank.condition == Condition::Finalizing {
        return is_stopped(job, at).then_some(OutsideActivity::Stopped);
    }
    if is_stopped(job, at) {
        return Some(OutsideActivity::Stopped);
    }
    let is_outside = |it: &&ThreadState| it.open.is_none() && !job.polls(at, it);
    let is_held = rank.threads.iter().any(|it| !is_outside(&it));
    if is_held && !rank.is_multithreaded() {
        return None;
    }
    let outside = rank.threads.iter().filter(is_outside);
    let activities: Vec<Activity> = outside.map(|it| job.activity(at, it)).collect();
    let has = |activity| activities.contains(&activity);
    match () {
        () if has(Activity::Busy) => Some(OutsideActivity::Computes),
        () if is_held || activities.is_empty() => None,
        () if has(Activity::Asleep) => Some(OutsideActivity::Asleep),
        () => Some(OutsideActivity::Unseen),
    }
}

/// Stopped as a whole: by a signal, or a debugger.
fn is_stopped(job: &Job<'_>, at: usize) -> bool {
    let threads = &job.rank(at).threads;
    threads.iter().any(|it| job.activity(at, it) == Activity::Stopped)
}

/// How many threads wait for each rank that is free to act, straight or as one of many.
pub fn waited_for(graph: &Graph<Why>) -> Vec<usize> {
    let is_free = |at: &&usize| graph.ranks[**at] == Freedom::Free;
    let mut through = vec![0; graph.junctions.len()];
    let mut waiters = vec![0; graph.ranks.len()];
    for need in graph.nodes.iter().flat_map(|node| &node.needs) {
        match need.target {
            Target::Rank(at) => waiters[at] += 1,
            Target::Junction(at) => through[at] += 1,
            Target::Free | Target::Nobody => {}
        }
    }
    for (junction, count) in graph.junctions.iter().zip(through) {
        junction.over.iter().filter(is_free).for_each(|&at| waiters[at] += count);
    }
    waiters
}
