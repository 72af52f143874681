//! Ranks that are not in MPI while the others wait: stopped, asleep, computing, testing in vain.

use std::collections::BTreeMap;

use super::super::document::{Verdict, VerdictKind};
use super::super::processes::{outside, waited_for, OutsideActivity};
use super::super::words::Words;
use super::super::HangEvidence;
use super::sentence::verdict;
use super::standing::said;
use lapscope_data::model::Nanos;
use lapscope_data::state::{Condition, ThreadState};
use lapscope_data::text::capitalized;
use lapscope_data::text::units::{percent, time};

/// `stands`: whether it is known already why somebody will never go on; then only what was stopped is said besides.
pub fn verdicts(found: &HangEvidence<'_>, stands: bool, words: &mut Words<'_>) -> Vec<Verdict> {
    let job = found.job;
    let mut by: BTreeMap<OutsideActivity, Vec<usize>> = BTreeMap::new();
    for at in 0..job.ranks().len() {
        if let Some(outside) = outside(job, at) {
            by.entry(outside).or_default().push(at);
        }
    }
    by.retain(|outside, _| {
        *outside == OutsideActivity::Stopped || (!stands && !job.progressed.contains(&true))
    });
    let waiters = waited_for(&found.graph);
    let mut verdicts: Vec<Verdict> = by
        .iter()
        .map(|(outside, ranks)| of_outside(found, *outside, ranks, &waiters, words))
        .collect();
    if !stands && job.is_over {
        verdicts.extend(when_it_ended(found, words));
    }
    if !stands && verdicts.is_empty() && !job.progressed.contains(&true) {
        verdicts.extend(polling(found, words));
    }
    verdicts
}

fn of_outside(
    found: &HangEvidence<'_>,
    outside: OutsideActivity,
    ranks: &[usize],
    waiters: &[usize],
    words: &mut Words<'_>,
) -> Verdict {
    let job = found.job;
    let mut first = ranks[0];
    for &at in ranks {
        if waiters[at] > waiters[first] {
            first = at;
        }
    }
    let who = capitalized(&words.ranks(ranks));
    let is_one = ranks.len() == 1;
    let (is, s) = if is_one { ("is", "s") } else { ("are", "") };
    let (kind, mut sentence) = match outside {
        OutsideActivity::Stopped => (VerdictKind::Stopped, format!("{who} {is} stopped, by a signal or a debugger")),
        OutsideActivity::Asleep => (VerdictKind::Asleep, format!("{who} sleep{s} outside of MPI{}", sleeps_in(found, first))),
        OutsideActivity::AsleepWithin => (VerdictKind::Asleep, format!("{who} sleep{s} in a function of the program's that MPI calls")),
        OutsideActivity::Computes => (VerdictKind::Computes, format!("{who} compute{s} outside of MPI{}", busy(found, first))),
        OutsideActivity::Unseen => (VerdictKind::Computes, format!("{who} {is} outside of MPI; whether on a processor or asleep cannot be seen from here")),
    };
    let waiting = found.graph.nodes.iter().filter(|node| node.rank != first).count();
    if waiting > 0 && waiters[first] > 0 {
        sentence += &format!(", and the others wait for {}", if is_one { "it" } else { "them" });
    }
    sentence += &format!(": {}{}", last_of(found, first, is_one, words), again(outside));
    verdict(job, kind, outside != OutsideActivity::Unseen, sentence, ranks)
}

/// What to do with those who are stopped.
fn again(outside: OutsideActivity) -> &'static str {
    match outside {
        OutsideActivity::Stopped => "; kill -CONT lets it go on.",
        _ => ".",
    }
}

/// "its last MPI call was MPI_Send (main x.c:7), 12 s ago".
fn last_of(found: &HangEvidence<'_>, at: usize, is_one: bool, words: &mut Words<'_>) -> String {
    let rank = found.job.rank(at);
    let whose = if is_one { "its".to_owned() } else { format!("rank {}'s", rank.rank) };
    let thread = outside_thread(found, at).filter(|_| found.job.sleeps_within(at).is_none());
    if let Some(open) = rank.threads.iter().find_map(|it| it.open.as_ref()) {
        if thread.is_none() {
            return format!(
                "{} {} inside {}",
                if is_one { "it".to_owned() } else { format!("rank {}", rank.rank) },
                if found.job.is_over { "was" } else { "is" },
                words.operation(&open.operation)
            );
        }
    }
    match thread.and_then(|it| it.last) {
        Some(last) => {
            let ago = time(Nanos((rank.now - last.end).0.max(0)));
            format!("{whose} last MPI call was {}, {ago} ago", words.call_at(last.call, last.path))
        }
        None => format!("{whose} last MPI call is not known"),
    }
}

fn outside_thread<'a>(found: &HangEvidence<'a>, at: usize) -> Option<&'a ThreadState> {
    found.job.rank(at).threads.iter().find(|it| it.open.is_none())
}

/// " (in the system call wait_woken)"
fn sleeps_in(found: &HangEvidence<'_>, at: usize) -> String {
    let system = outside_thread(found, at).and_then(|it| it.system.as_ref());
    match system.map(|it| (it.sleeps_in.as_str(), it.state)) {
        Some((place, _)) if !place.is_empty() => format!(" (in the kernel's {place})"),
        Some((_, 'D')) => " (it waits for a disk or a file server)".to_owned(),
        _ => String::new(),
    }
}

fn busy(found: &HangEvidence<'_>, at: usize) -> String {
    let busy = outside_thread(found, at).and_then(|it| found.job.busy(at, it));
    busy.map_or_else(String::new, |busy| format!(" ({} of a processor)", percent(busy)))
}

/// Who ended a job that has ended, or else who was outside of MPI when it did.
fn when_it_ended(found: &HangEvidence<'_>, words: &mut Words<'_>) -> Option<Verdict> {
    let job = found.job;
    let all = 0..job.ranks().len();
    let is_outside =
        |at: &usize| job.rank(*at).condition != Condition::Finalized && !job.is_inside(*at);
    let mut ranks: Vec<usize> = all.clone().filter(|&at| job.is_dead(at)).collect();
    if ranks.is_empty() {
        ranks = all.filter(is_outside).collect();
    }
    let first = *ranks.first()?;
    let who = capitalized(&words.ranks(&ranks));
    let (was, it) = if ranks.len() == 1 { ("was", "it was") } else { ("were", "they were") };
    let ended = match job.rank(first).condition {
        Condition::Aborted => "called MPI_Abort".to_owned(),
        Condition::Exited if job.is_dead(first) => "exited without MPI_Finalize".to_owned(),
        Condition::Exited => {
            format!("{was} outside of MPI when all exited, as when their launcher is ended")
        }
        _ => format!("{was} outside of MPI when {it} killed"),
    };
    let waiting = match found.graph.nodes.len() {
        0 => String::new(),
        _ => format!("; the others waited for {}", if ranks.len() == 1 { "it" } else { "them" }),
    };
    let last =
        last_of(found, first, ranks.len() == 1, words).replace(" ago", " before that at most");
    let sentence = format!("{who} {ended}{waiting}: {last}.");
    Some(verdict(job, VerdictKind::Dead, false, sentence, &ranks))
}

/// Threads that test in vain for something that can still come.
fn polling(found: &HangEvidence<'_>, words: &mut Words<'_>) -> Option<Verdict> {
    let job = found.job;
    let polls = |at: &usize| job.rank(*at).threads.iter().any(|it| job.polls(*at, it));
    let ranks: Vec<usize> = (0..job.ranks().len()).filter(polls).collect();
    (!ranks.is_empty() && ranks.len() == job.ranks().len()).then(|| {
        let who = capitalized(&words.ranks(&ranks));
        let first = found.graph.nodes.iter().position(|node| node.rank == ranks[0]);
        let need = first.and_then(|at| Some((at, *found.graph.nodes[at].needs.first()?)));
        let what = need.map_or(String::new(), |step| format!(": {}", said(found, &step, words)));
        let s = if ranks.len() == 1 { "s" } else { "" };
        let sentence = format!("{who} test{s} in vain, and nothing else happens{what}.");
        verdict(job, VerdictKind::Polls, false, sentence, &ranks)
    })
}
