//! What sentences of verdicts are made of.

use super::super::document::{Activity, Verdict, VerdictKind};
use super::super::job::Job;
use super::super::words::Words;
use lapscope_data::model::Rank;
use lapscope_data::state::ThreadState;

/// A verdict on the ranks at these places.
pub fn verdict(
    job: &Job<'_>,
    kind: VerdictKind,
    certain: bool,
    sentence: String,
    places: &[usize],
) -> Verdict {
    let mut ranks: Vec<Rank> = places.iter().map(|&at| job.rank(at).rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    Verdict { kind, certain, sentence, ranks, cycle: Vec::new(), candidates: Vec::new() }
}

/// "thread 2 of rank 0, which sleeps outside of MPI (last in MPI_Send (main x.c:7))"
pub fn other_threads(job: &Job<'_>, at: usize, words: &mut Words<'_>) -> String {
    let rank = job.rank(at);
    let outside = |it: &&ThreadState| it.open.is_none() && !job.polls(at, it);
    let Some(thread) = rank.threads.iter().find(outside) else {
        return format!("a thread of rank {} that has not called MPI so far", rank.rank);
    };
    let does = match job.activity(at, thread) {
        Activity::Asleep => "sleeps",
        Activity::Busy => "computes",
        _ => "is",
    };
    let last = words.last(thread.last);
    format!("thread {} of rank {}, which {does} outside of MPI ({last}),", thread.number, rank.rank)
}
