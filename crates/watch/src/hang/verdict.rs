//! What is the matter, as sentences: the root of it first.
//!
//! The root is said before the circle: who waits for a dead rank, for a message with another tag, or in a collective
//! that the others do not call, is in a circle, too, often with all other ranks.

mod finalize;
mod outside;
mod sentence;
mod standing;

use std::collections::BTreeMap;

use self::sentence::{other_threads, verdict};
use super::collectives::Meeting;
use super::document::{Verdict, VerdictKind};
use super::graph::{Doubt, Freedom};
use super::job::Job;
use super::needs::Reason;
use super::words::Words;
use super::{causes, rollcall, HangEvidence};
use lapscope_data::model::Rank;
use lapscope_data::state::{Condition, Failed, RankState};
use lapscope_data::text::capitalized;
use lapscope_data::text::{plural, ranks};

/// What is the matter, the most important first, at least one; and the nodes of those who stand.
pub fn verdicts(found: &HangEvidence<'_>, words: &mut Words<'_>) -> (Vec<Verdict>, Vec<usize>) {
    let job = found.job;
    if job.ranks().is_empty() {
        let sentence = "Nothing can be read of any rank.".to_owned();
        return (vec![verdict(job, VerdictKind::Unknown, false, sentence, &[])], Vec::new());
    }
    if let Some(ended) = ended(job, words) {
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
    if !has_progressed {
        verdicts.extend(finalize::verdict_there(job, words));
    }
    if has_progressed {
        verdicts.push(progress(job));
    } else if verdicts.is_empty() {
        verdicts.push(held(found, words).unwrap_or_else(|| slow(found, words)));
    }
    verdicts.sort_by_key(|it| it.kind);
    (verdicts, causes.standing)
}

/// The verdict on a job that came to its end.
fn ended(job: &Job<'_>, words: &Words<'_>) -> Option<Verdict> {
    let is_final = |at: usize| job.rank(at).condition == Condition::Finalized;
    let all: Vec<usize> = (0..job.ranks().len()).collect();
    let (seen, size) = seen(job);
    let sentence = match seen < size {
        true => format!("The {seen} of {size} ranks that can be seen reached MPI_Finalize."),
        false => "The job has ended: its ranks reached MPI_Finalize.".to_owned(),
    };
    let is_seen = job.state.unseen.is_empty() && seen >= size;
    if all.iter().all(|&at| is_final(at)) {
        return Some(verdict(job, VerdictKind::Ended, is_seen, sentence, &all));
    }
    all.iter().all(|&at| is_final(at) || has_just_exited(job, at)).then(|| {
        let exited: Vec<usize> = all.iter().copied().filter(|&at| !is_final(at)).collect();
        let who = capitalized(&words.ranks(&exited));
        let sentence = format!(
            "The job has ended. {who} exited without MPI_Finalize, when nothing was under way that MPI had been asked for."
        );
        verdict(job, VerdictKind::Ended, is_seen, sentence, &exited)
    })
}

/// Without MPI_Finalize, and with nothing under way.
fn has_just_exited(job: &Job<'_>, at: usize) -> bool {
    let rank = job.rank(at);
    rank.condition == Condition::Exited && !job.is_inside(at) && rank.requests.is_empty()
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
    verdict(job, VerdictKind::Progress, true, sentence, &went_on)
}

/// Nothing ended, nobody is outside of MPI, and nothing is in anybody's way.
fn slow(found: &HangEvidence<'_>, words: &mut Words<'_>) -> Verdict {
    let job = found.job;
    let all: Vec<usize> = (0..job.ranks().len()).collect();
    let inside = met(found, words).unwrap_or_else(|| inside(job, words));
    let sentence = if job.is_over {
        format!("The job has ended, and what its ranks did then does not show whether it hung, or what ended it: MPI may have aborted it for an error inside one of these calls, which it prints.{inside}")
    } else {
        format!("No MPI call ended between the two looks, and nothing shows that none ever will: what the ranks wait for is under way, or cannot be told.{inside}")
    };
    verdict(job, VerdictKind::Slow, false, sentence, &all)
}

/// " Rank 0 is inside MPI_Recv (main x.c:7), ranks 1-3 are inside MPI_Barrier (main x.c:9)."
fn inside(job: &Job<'_>, words: &mut Words<'_>) -> String {
    const MOST: usize = 4;
    let places = rollcall::places(job, words);
    let mut texts = Vec::new();
    for place in places.iter().filter(|place| !place.polls) {
        let Some(call) = &place.call else { continue };
        if texts.len() == MOST {
            texts.push("…".to_owned());
            break;
        }
        let is = match (place.count, job.is_over) {
            (1, false) => "is",
            (_, false) => "are",
            (1, true) => "was",
            (_, true) => "were",
        };
        let site = place.site.as_ref().map_or(String::new(), |site| format!(" ({})", site.brief()));
        let who = ranks::in_words(&place.ranks, job.ranks().len());
        texts.push(format!("{who} {is} inside {call}{site}"));
    }
    match texts.is_empty() {
        true => String::new(),
        false => format!(" {}.", capitalized(&texts.join(", "))),
    }
}

/// Names a collective to which all its members have come and which some of them are still inside of.
fn met(found: &HangEvidence<'_>, words: &mut Words<'_>) -> Option<String> {
    let is_met = |meeting: usize| {
        let Meeting { missing, elsewhere, unseen, .. } = &found.collectives.meetings[meeting];
        missing.is_empty() && elsewhere.is_empty() && *unseen == 0
    };
    let mut ranks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for node in &found.graph.nodes {
        for need in &node.needs {
            if let Reason::Meeting(meeting) = need.why.reason {
                ranks.entry(meeting).or_default().push(node.rank);
            }
        }
    }
    let (_, inside) = ranks.into_iter().find(|(meeting, _)| is_met(*meeting))?;
    let job = found.job;
    let open = job.rank(inside[0]).threads.iter().find_map(|it| it.open.as_ref())?;
    let is = if inside.len() == 1 { "is" } else { "are" };
    Some(format!(
        " All have come to {}, and {} {is} still inside: it takes long, or their counts or datatypes do not fit each other.",
        words.operation(&open.operation),
        words.ranks(&inside)
    ))
}

/// Ranks that wait for each other in a circle, which is none only because another thread of theirs can still act.
fn held(found: &HangEvidence<'_>, words: &mut Words<'_>) -> Option<Verdict> {
    let job = found.job;
    let mut freedoms = found.graph.ranks.clone();
    let mut holding = Vec::new();
    for (at, freedom) in freedoms.iter_mut().enumerate() {
        let waits = !found.graph.nodes_of(at).is_empty();
        if matches!(freedom, Freedom::Free | Freedom::Perhaps) && waits {
            *freedom = Freedom::AsNodes;
            holding.push(at);
        }
    }
    let causes = causes::causes(found, &found.graph.solve_as(&freedoms, Doubt::ForStanding));
    let circle = standing::circle_of_waits(found, &causes, words)?;
    let ranks: Vec<usize> = causes.standing.iter().map(|&at| found.graph.nodes[at].rank).collect();
    holding.retain(|at| ranks.binary_search(at).is_ok());
    let threads: Vec<String> = holding.iter().map(|&at| other_threads(job, at, words)).collect();
    let first = threads.first()?;
    let sentence = format!(
        "{}. That ends only when {first} does what is waited for{}.",
        capitalized(&circle),
        if threads.len() > 1 { ", or a thread of another rank" } else { "" }
    );
    Some(verdict(job, VerdictKind::Slow, false, sentence, &ranks))
}

/// How many ranks there are of a job, and of how many; of one with more worlds, where that is not known, the same twice.
fn seen(job: &Job<'_>) -> (u64, u64) {
    let seen = job.ranks().len() as u64;
    let size = job.ranks().iter().map(|rank| rank.world_size).max().unwrap_or(0).max(0) as u64;
    match job.ranks().iter().all(|it| it.rank.world == Rank::FIRST_WORLD) {
        true => (seen, size.max(seen)),
        false => (seen, seen),
    }
}

/// What was not seen, and what that means.
pub fn notes(job: &Job<'_>, words: &mut Words<'_>) -> Vec<String> {
    /// Ranks of which calls that returned an error are named.
    const MOST_FAILED: usize = 4;
    let mut notes = Vec::new();
    let (seen, size) = seen(job);
    if seen < size {
        notes.push(format!(
            "{} of {size} ranks cannot be seen from here: they are taken for able to go on, so that who waits for them is not called deadlocked",
            size - seen
        ));
    }
    let is_cut = |it: &&RankState| !it.history.is_whole && it.history.failed.is_empty();
    let in_part = job.ranks().iter().filter(is_cut).count() as u64;
    if in_part > 0 {
        notes.push(format!(
            "of {in_part} rank{} not all messages and collectives are on record: what they wait for is said with a perhaps",
            plural(in_part)
        ));
    }
    let all = 0..job.ranks().len();
    if let Some((at, sleeper)) = all.clone().find_map(|at| Some((at, job.may_sleep_within(at)?))) {
        let place = sleeper.system.as_ref().map_or("", |it| it.sleeps_in.as_str());
        notes.push(format!(
            "rank {} sleeps inside an MPI call (in {place}), as MPI seldom does: should that be in a function of the program's, it may go on",
            job.rank(at).rank
        ));
    }
    if all.clone().any(|at| job.had_other_threads(at) && job.is_inside(at)) {
        notes.push(
            "ranks with MPI_THREAD_MULTIPLE: what threads outside of MPI were about to do cannot be seen any more or from here, hence a perhaps"
                .to_owned(),
        );
    }
    for (at, rank) in job
        .ranks()
        .iter()
        .enumerate()
        .filter(|(_, it)| !it.history.failed.is_empty())
        .take(MOST_FAILED)
    {
        let Failed { call, path, .. } = rank.history.failed[0];
        let count: u64 = rank.history.failed.iter().map(|it| it.count).sum();
        notes.push(format!(
            "rank {}: {} returned an error{}: what it did is not known, and what others wait for of this rank is said with a perhaps",
            job.rank(at).rank,
            words.call_at(call, path),
            if count > 1 { format!(", and so did others, {count} calls in all") } else { String::new() }
        ));
    }
    notes
}
