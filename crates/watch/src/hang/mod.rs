//! What is everybody waiting for: two looks at a job, half a second apart, and from them who can still go on and who cannot, and
//! why (docs/hang.md).
//!
//! `job` compares the looks, `messages` and `collectives` match what is open, `needs` says what each thread waits for, `graph`
//! who can go on, `causes` and `processes` find the reasons, `verdict` says them; `rollcall` says who is where.

mod candidates;
mod causes;
mod collectives;
mod document;
mod graph;
mod job;
mod locks;
mod messages;
mod needs;
mod processes;
mod rollcall;
mod running;
mod unreceived;
mod verdict;
mod waits;
mod words;

#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;

use lapscope_data::state::JobState;
use lapscope_data::symbols::NameFrames;

pub use document::{
    Activity, Diagnosis, Edge, Needs, On, RankPlace, Standing, ThreadPlace, ThreadWait, Unreceived,
    Verdict, VerdictKind,
};

pub use running::{running, Running, RunningItem};

use collectives::Collectives;
use graph::Graph;
use job::Job;
use messages::Messages;
use needs::Why;
use words::Words;

type ThreadIndex = Option<usize>;

/// What two looks have found.
struct HangEvidence<'a> {
    job: &'a Job<'a>,
    messages: Messages,
    collectives: Collectives<'a>,
    graph: Graph<Why>,
}

/// Tells from two looks at a job what its ranks wait for. Of a job that has ended, both looks are the same.
pub fn diagnose(before: &JobState, after: &JobState, names: &mut dyn NameFrames) -> Diagnosis {
    let job = Job::new(before, after);
    let (messages, collectives) = (Messages::match_open(&job), Collectives::match_open(&job));
    let graph = needs::graph(&job, &messages, &collectives);
    let found = HangEvidence { job: &job, messages, collectives, graph };
    let mut words = Words::new(&job, names);
    let (mut verdicts, standing) = verdict::verdicts(&found, &mut words);
    let verdict = verdicts.remove(0);
    let unreceived = unreceived::find(&job, &found.messages);
    let mut notes = verdict::notes(&job, &mut words);
    notes.extend(unreceived::notes(&job, &unreceived));
    let observed = (0..job.ranks().len()).map(|at| job.elapsed(at)).max().unwrap_or_default();
    Diagnosis {
        observed_ns: observed,
        verdict,
        further: verdicts,
        places: rollcall::places(&job, &mut words),
        ranks: rollcall::ranks(&job, &mut words),
        waits: waits::waits(&found, &standing, &mut words),
        unseen: after.unseen.clone(),
        unreceived,
        notes,
    }
}
