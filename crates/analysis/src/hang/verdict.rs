//! What is the matter, as sentences: the root of it first.

mod outside;
mod standing;

use super::document::{Kind, Verdict};
use super::graph::Doubt;
use super::job::Job;
use super::words::Words;
use super::{causes, Found};
use lapscope_data::model::Rank;
use lapscope_data::state::Condition;
use lapscope_data::text::plural;

/// What is the matter, the most important first, at least one; and the nodes of those who stand.
pub fn verdicts(found: &Found<'_>, words: &mut Words<'_>) -> (Vec<Verdict>, Vec<usize>) {
    let job = found.job;
    if job.ranks().is_empty() {
        let sentence = "Nothing can be read of any rank.".to_owned();
        return (vec![verdict(job, Kind::Unknown, false, sentence, &[])], Vec::new());
    }
    if let Some(ended) = ended(job) {
        return (vec![ended], Vec::new());
    }
    let has_progressed = job.progressed.contains(&true);
    let mut causes = causes::causes(found, &found.graph.solve(Doubt::ForGoing));
    let mut verdicts = standing::verdicts(found, &causes, true, words);
    if verdicts.is_empty() && !has_progressed {
        causes = causes::causes(found, &found.graph.solve(Doubt::ForStanding));
        verdicts = standing::verdicts(found, &causes, false, words);
    }
    let stands = !verdicts.is_empty();
    verdicts.extend(outside::verdicts(found, stands, words));
    if has_progressed {
        verdicts.push(progress(job));
    } else if verdicts.is_empty() {
        verdicts.push(slow(found, words));
    }
    verdicts.sort_by_key(|it| it.kind);
    (verdicts, causes.standing)
}

fn verdict(
    job: &Job<'_>,
    kind: Kind,
    certain: bool,
    sentence: String,
    places: &[usize],
) -> Verdict {
    let mut ranks: Vec<Rank> = places.iter().map(|&at| job.rank(at).rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    Verdict { kind, certain, sentence, ranks, cycle: Vec::new(), candidates: Vec::new() }
}

/// Of a job that came to its end.
fn ended(job: &Job<'_>) -> Option<Verdict> {
    let is_final = |at: usize| job.rank(at).condition == Condition::Finalized;
    let all: Vec<usize> = (0..job.ranks().len()).collect();
    let sentence = "The job has ended: its ranks reached MPI_Finalize.".to_owned();
    let is_seen = job.state.unseen.is_empty();
    all.iter().all(|&at| is_final(at)).then(|| verdict(job, Kind::Ended, is_seen, sentence, &all))
}

fn progress(job: &Job<'_>) -> Verdict {
    let all = 0..job.ranks().len();
    let went_on: Vec<usize> = all.filter(|&at| job.progressed[at]).collect();
    let (count, of) = (went_on.len(), job.ranks().len());
    let who = match count == of {
        true => "all ranks".to_owned(),
        false => format!("{count} of {of} ranks"),
    };
    let sentence = format!("The job goes on: MPI calls of {who} ended between the two looks.");
    verdict(job, Kind::Progress, true, sentence, &went_on)
}

/// Nothing ended, nobody is outside of MPI, and nothing is in anybody's way.
fn slow(found: &Found<'_>, words: &mut Words<'_>) -> Verdict {
    let job = found.job;
    let all: Vec<usize> = (0..job.ranks().len()).collect();
    if job.is_over {
        let sentence = "The job has ended, and what its ranks did then does not show that it hung: what they waited for was under way.";
        return verdict(job, Kind::Slow, false, sentence.to_owned(), &all);
    }
    let first = found.graph.nodes.first();
    let call = first.and_then(|node| {
        let open = job.rank(node.rank).threads.get(node.thread)?.open.as_ref()?;
        Some((node.rank, words.operation(&open.operation)))
    });
    let inside = match call {
        Some((rank, call)) => format!(" Rank {} is inside {call}.", job.rank(rank).rank),
        None => String::new(),
    };
    let sentence = format!(
        "No MPI call ended between the two looks, and nothing shows that none ever will: what the ranks wait for is under way, or cannot be told.{inside}"
    );
    verdict(job, Kind::Slow, false, sentence, &all)
}

/// What was not seen, and what that means.
pub fn notes(job: &Job<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let seen = job.ranks().len() as u64;
    let size = job.ranks().iter().map(|rank| rank.world_size).max().unwrap_or(0).max(0) as u64;
    let of_first =
        job.ranks().iter().filter(|it| it.rank.world == Rank::FIRST_WORLD).count() as u64;
    if of_first < size && of_first == seen {
        notes.push(format!(
            "{} of {size} ranks cannot be seen from here: they are taken for able to go on, so that who waits for them is not called deadlocked",
            size - of_first
        ));
    }
    let in_part = job.ranks().iter().filter(|it| !it.history.is_whole).count() as u64;
    if in_part > 0 {
        notes.push(format!(
            "of {in_part} rank{} not all messages and collectives are on record: what they wait for is said with a perhaps",
            plural(in_part)
        ));
    }
    notes
}
