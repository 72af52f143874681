//! Those who never go on again, by the root of it: death, a mismatch, a message that nobody sends, one who has left, a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::super::candidates::{self, candidates};
use super::super::causes::{HangCause, HangCauses};
use super::super::collectives::{Mismatch, Root};
use super::super::document::{Edge, Verdict, VerdictKind};
use super::super::graph::{Freedom, Need, Target};
use super::super::needs::{Reason, Why};
use super::super::words::Words;
use super::super::HangEvidence;
use super::finalize;
use super::sentence::{other_threads, verdict};
use lapscope_data::model::{Mode, Rank};
use lapscope_data::state::Condition;
use lapscope_data::text::capitalized;
use lapscope_data::text::plural;
use lapscope_data::text::units::bytes;

/// Verdicts of one kind that are said one by one.
const MOST: usize = 4;

type WaitStep = (usize, Need<Why>);

/// One or more for whoever stands; none where nobody does.
pub fn verdicts(
    found: &HangEvidence<'_>,
    causes: &HangCauses,
    certain: bool,
    words: &mut Words<'_>,
) -> Vec<Verdict> {
    if causes.standing.is_empty() {
        return Vec::new();
    }
    let mut verdicts = Vec::new();
    verdicts.extend(gone(found, &causes.dead, VerdictKind::Dead, certain, words));
    for mismatch in causes.mismatches.iter().take(MOST) {
        verdicts.push(mismatched(found, mismatch, certain, words));
    }
    verdicts.extend(no_match(found, causes, certain, words));
    verdicts.extend(gone(found, &causes.left, VerdictKind::Left, certain, words));
    verdicts.extend(circle(found, causes, certain, words));
    if verdicts.is_empty() {
        verdicts.push(knot(found, causes, certain, words));
    }
    verdicts
}

fn perhaps(certain: bool) -> &'static str {
    match certain {
        true => "",
        false => "Perhaps: ",
    }
}

/// "rank 0 waits in MPI_Recv (main x.c:7) for a message from rank 1, tag 7".
pub fn said(found: &HangEvidence<'_>, (node, need): &WaitStep, words: &mut Words<'_>) -> String {
    let node = &found.graph.nodes[*node];
    let wait = words.wait(node, need, found);
    format!("rank {} {wait}", found.job.rank(node.rank).rank)
}

/// The first of some waits, and how many more there are.
fn first_of(found: &HangEvidence<'_>, steps: &[WaitStep], words: &mut Words<'_>) -> String {
    let Some(first) = steps.first() else { return String::new() };
    let text = said(found, first, words);
    let mut ranks: Vec<usize> = steps.iter().map(|(at, _)| found.graph.nodes[*at].rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    match ranks.len() as u64 - 1 {
        0 => text,
        more => format!(
            "{text}; {more} other rank{} wait{} for it likewise",
            plural(more),
            if more == 1 { "s" } else { "" }
        ),
    }
}

/// Dead, or at its end before the others.
fn gone(
    found: &HangEvidence<'_>,
    cause: &HangCause,
    kind: VerdictKind,
    certain: bool,
    words: &mut Words<'_>,
) -> Option<Verdict> {
    let culprits: Vec<usize> = cause.culprits.iter().copied().collect();
    let first = *culprits.first()?;
    let who = words.ranks(&culprits);
    let (was, has) = if culprits.len() == 1 { ("was", "has") } else { ("were", "have") };
    let rank = found.job.rank(first);
    let what = match rank.condition {
        Condition::Killed if found.job.is_finalizing(first) => {
            "had entered MPI_Finalize".to_owned()
        }
        Condition::Killed => format!("{was} killed"),
        Condition::Aborted => format!("{has} called MPI_Abort"),
        Condition::Exited => format!("{has} exited without MPI_Finalize"),
        Condition::Finalized => format!("{has} left MPI by MPI_Finalize"),
        _ => format!("{has} entered MPI_Finalize"),
    };
    let speaker = super::super::rollcall::speaker(rank);
    let has_ended = kind == VerdictKind::Dead || rank.condition == Condition::Exited;
    let last = match speaker.and_then(|it| it.open.as_ref()).filter(|_| has_ended) {
        Some(open) => format!("inside {}", words.operation(&open.operation)),
        None => words.last(speaker.and_then(|it| it.last)),
    };
    let left = match kind {
        VerdictKind::Dead => finalize::left_under_way(found.job, first, words),
        _ => String::new(),
    };
    let waits = first_of(found, &cause.waiters, words);
    let sentence = format!(
        "{}{} {what} ({last}{left}), and will never do what the others wait for: {waits}.",
        perhaps(certain),
        capitalized(&who)
    );
    Some(verdict(found.job, kind, certain, sentence, &culprits))
}

fn mismatched(
    found: &HangEvidence<'_>,
    mismatch: &Mismatch,
    certain: bool,
    words: &mut Words<'_>,
) -> Verdict {
    let job = found.job;
    let mut sides: Vec<_> = mismatch.by.iter().collect();
    sides.sort_by_key(|(_, members)| (members.len(), members[0].0));
    let mut texts = Vec::new();
    for (signature, members) in sides.iter().take(MOST) {
        let ranks: Vec<usize> = members.iter().map(|(at, _)| *at).collect();
        let root = match signature.root {
            Root::None => String::new(),
            Root::Rank(root) => format!(" with root {root}"),
            Root::World(root) => format!(" with rank {root} as root"),
            Root::Beside(_) => " with MPI_PROC_NULL".to_owned(),
        };
        let call = words.call_at(signature.call, members[0].1);
        let s = if ranks.len() == 1 { "s" } else { "" };
        texts.push(format!("{} call{s} {call}{root}", words.ranks(&ranks)));
    }
    let within = words.communicator(Some(mismatch.group.1));
    let within = if within.is_empty() { " in MPI_COMM_WORLD".to_owned() } else { within };
    let is_root = sides.windows(2).all(|pair| pair[0].0.call == pair[1].0.call);
    let differs = if is_root { "name different roots" } else { "make different calls" };
    let sentence = format!(
        "{}Collectives do not match: as number {}{within} ranks {differs}: {}.",
        perhaps(certain && mismatch.is_whole),
        mismatch.position + 1,
        texts.join(", ")
    );
    let ranks: Vec<usize> =
        sides.iter().flat_map(|(_, members)| members.iter().map(|(at, _)| *at)).collect();
    verdict(job, VerdictKind::CollectiveMismatch, certain && mismatch.is_whole, sentence, &ranks)
}

/// Receives that wait for what was sent otherwise.
fn no_match(
    found: &HangEvidence<'_>,
    causes: &HangCauses,
    certain: bool,
    words: &mut Words<'_>,
) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    let mut more = 0;
    for &at in &causes.standing {
        let node = &found.graph.nodes[at];
        for need in node.needs.iter().filter(|need| need.why.reason == Reason::Receive) {
            let near: Vec<_> =
                candidates(found, need).into_iter().filter(|it| it.is_near).collect();
            if near.is_empty() {
                continue;
            }
            if verdicts.len() >= MOST {
                more += 1;
                continue;
            }
            let sentences: Vec<String> =
                near.iter().map(|it| candidates::sentence(words, node.rank, it)).collect();
            let sentence = format!(
                "{}{}, and none was sent; {}.",
                perhaps(certain),
                capitalized(&said(found, &(at, *need), words)),
                sentences[0]
            );
            let sender = Rank { number: near[0].lane.sender, ..found.job.rank(node.rank).rank };
            let both: Vec<usize> =
                [Some(node.rank), found.job.find(sender)].into_iter().flatten().collect();
            let mut verdict = verdict(found.job, VerdictKind::NoMatch, certain, sentence, &both);
            verdict.candidates = sentences;
            verdicts.push(verdict);
        }
    }
    if let Some(first) = verdicts.first_mut().filter(|_| more > 0) {
        first.sentence += &format!(" {more} more receive{} likewise.", plural(more));
    }
    verdicts
}

fn edge(
    found: &HangEvidence<'_>,
    (node, need): &WaitStep,
    to: usize,
    words: &mut Words<'_>,
) -> Edge {
    let waits = &found.graph.nodes[*node];
    let job = found.job;
    let open = job.rank(waits.rank).threads[waits.thread].open.as_ref();
    Edge {
        from: job.rank(waits.rank).rank,
        to: job.rank(found.graph.nodes[to].rank).rank,
        why: words.wait(waits, need, found),
        call: open.map_or_else(String::new, |it| job.call(it.operation.call).name.clone()),
        site: open.and_then(|it| words.site(it.operation.path)),
    }
}

/// The shortest circle, and how many there are.
fn circle(
    found: &HangEvidence<'_>,
    causes: &HangCauses,
    certain: bool,
    words: &mut Words<'_>,
) -> Option<Verdict> {
    let circle = causes.circles.iter().min_by_key(|circle| circle.len())?;
    let following = circle.iter().cycle().skip(1);
    let edges: Vec<Edge> =
        circle.iter().zip(following).map(|(step, next)| edge(found, step, next.0, words)).collect();
    let on_circle: Vec<usize> = circle.iter().map(|(at, _)| found.graph.nodes[*at].rank).collect();
    let is_meeting = |step: &WaitStep| matches!(step.1.why.reason, Reason::Meeting(_));
    let are_meetings = circle.iter().all(is_meeting) && circle.len() > 1;
    let kind = if are_meetings { VerdictKind::CollectiveMismatch } else { VerdictKind::Deadlock };
    let mut standing: Vec<usize> =
        causes.standing.iter().map(|&at| found.graph.nodes[at].rank).collect();
    standing.dedup();
    let knot = alternatives(found, causes, &on_circle);
    let involved = if knot.is_empty() { &on_circle } else { &knot };
    let mut sentence = circle_in_words(&edges, kind, certain);
    if !knot.is_empty() {
        let all = words.ranks(&knot);
        sentence += &format!(" Anything else that would let them go on has to come from {all}, of whom none can go on.");
    }
    sentence += &behind(causes, involved.len(), standing.len());
    sentence += &unless(found, involved, words);
    if kind == VerdictKind::Deadlock {
        sentence += &cure_of_sends(found, circle);
    }
    let ranks = if causes.circles.len() > 1 { &standing } else { involved };
    let mut verdict = verdict(found.job, kind, certain, sentence, ranks);
    verdict.cycle = edges;
    verdict.candidates = of_circle(found, circle, words);
    Some(verdict)
}

/// Why a circle of standard sends is one, and what ends it. Where receives are in it other things may be wrong.
fn cure_of_sends(found: &HangEvidence<'_>, circle: &[WaitStep]) -> String {
    let sent = |step: &WaitStep| {
        let operation = found.job.operation(step.1.why.place)?;
        let is_standard = found.job.told_by(operation).mode == Some(Mode::Standard);
        (step.1.why.reason == Reason::Send && is_standard).then_some(operation.bytes)
    };
    let Some(sizes) = circle.iter().map(sent).collect::<Option<Vec<u64>>>() else {
        return String::new();
    };
    // not known of calls that have not returned
    let of = |(size, (node, _)): (&u64, &WaitStep)| {
        let rank = found.job.rank(found.graph.nodes[*node].rank).rank;
        (*size > 0).then(|| format!("{} of rank {rank}", bytes(*size)))
    };
    let known: Vec<String> = sizes.iter().zip(circle).filter_map(of).take(MOST).collect();
    let size = match known.is_empty() {
        true => String::new(),
        false => format!(" ({})", known.join(", ")),
    };
    let last = circle.iter().filter_map(|step| found.messages.last_bytes(step.1.why.place)).max();
    let smaller = match last {
        Some(last) => format!("; the last that ended on such a way was of {}", bytes(last)),
        None => String::new(),
    };
    format!(
        " MPI does not keep these messages{size}, as it does those up to its eager limit{smaller}: MPI_Sendrecv, or MPI_Irecv before the \
         send, ends the circle at every size."
    )
}

/// Whose thread makes it a perhaps: it sleeps in a system call that others may end.
fn unless(found: &HangEvidence<'_>, involved: &[usize], words: &mut Words<'_>) -> String {
    let job = found.job;
    let is_thread = |at| job.may_sleep_within(at).is_none() && !job.had_other_threads(at);
    let is_doubtful = |at: &&usize| found.graph.ranks[**at] == Freedom::Perhaps && is_thread(**at);
    let first = involved.iter().find(is_doubtful);
    first.map_or_else(String::new, |&at| {
        let thread = other_threads(job, at, words);
        format!(" It ends if {thread} does what is waited for.")
    })
}

/// Messages that no receive is for, of those that come nearest to what ranks of a circle wait for.
fn of_circle(found: &HangEvidence<'_>, circle: &[WaitStep], words: &mut Words<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for (node, need) in circle.iter().filter(|step| step.1.why.reason == Reason::Receive) {
        let rank = found.graph.nodes[*node].rank;
        let near = candidates(found, need);
        sentences.extend(near.iter().map(|it| candidates::sentence(words, rank, it)));
    }
    sentences.truncate(MOST);
    sentences
}

/// Whoever could let a rank of a circle go on where any of several could, and whoever could let those; nobody where each waits for
/// the next alone.
fn alternatives(found: &HangEvidence<'_>, causes: &HangCauses, on_circle: &[usize]) -> Vec<usize> {
    let graph = &found.graph;
    let mut known: BTreeSet<usize> = on_circle.iter().copied().collect();
    let mut ahead: Vec<usize> = on_circle.to_vec();
    let mut seen = BTreeSet::new();
    let mut any = false;
    while let Some(rank) = ahead.pop() {
        let nodes = causes.standing.iter().map(|&at| &graph.nodes[at]);
        for node in nodes.filter(|node| node.rank == rank) {
            for need in &node.needs {
                let over: &[usize] = match &need.target {
                    Target::Rank(at) if node.is_any && node.needs.len() > 1 => {
                        std::slice::from_ref(at)
                    }
                    Target::Junction(at) if graph.junctions[*at].is_any && seen.insert(*at) => {
                        &graph.junctions[*at].over
                    }
                    _ => continue,
                };
                any |= over.iter().any(|at| *at != rank);
                ahead.extend(over.iter().copied().filter(|&at| known.insert(at)));
            }
        }
    }
    if any {
        known.into_iter().collect()
    } else {
        Vec::new()
    }
}

fn circle_in_words(edges: &[Edge], kind: VerdictKind, certain: bool) -> String {
    let what = match (kind, certain) {
        (VerdictKind::CollectiveMismatch, true) => {
            "Collectives of several communicators are called in different orders"
        }
        (VerdictKind::CollectiveMismatch, false) => {
            "Perhaps collectives of several communicators are called in different orders"
        }
        (_, true) => "Deadlock",
        (_, false) => "Perhaps a deadlock",
    };
    let first: Vec<String> =
        edges.iter().take(2).map(|it| format!("rank {} {}", it.from, it.why)).collect();
    match edges {
        [own] => format!("{what}: rank {} waits for itself: it {}.", own.from, own.why),
        [_, _] => format!("{what}: {}.", first.join(", and ")),
        _ => {
            let most =
                edges.iter().take(6).map(|it| it.from.to_string()).collect::<Vec<_>>().join(" → ");
            let rest = if edges.len() > 6 { " → …" } else { "" };
            format!("{what}: {} ranks wait for each other in a circle ({most}{rest} → {}): {}, and so on.", edges.len(), edges[0].from, first[0])
        }
    }
}

/// "rank 0 waits in MPI_Recv (main x.c:7) for ..., and rank 1 waits in ...": the begin of the shortest circle.
pub fn circle_of_waits(
    found: &HangEvidence<'_>,
    causes: &HangCauses,
    words: &mut Words<'_>,
) -> Option<String> {
    let circle = causes.circles.iter().min_by_key(|circle| circle.len())?;
    let waits: Vec<String> = circle.iter().take(2).map(|step| said(found, step, words)).collect();
    Some(waits.join(", and ") + if circle.len() > 2 { ", and so on" } else { "" })
}

/// Who else stands.
fn behind(causes: &HangCauses, length: usize, standing: usize) -> String {
    let others = standing.saturating_sub(length) as u64;
    match (causes.circles.len(), others) {
        (_, 0) => String::new(),
        (1, 1) => " 1 other rank waits for them.".to_owned(),
        (1, others) => format!(" {others} other ranks wait for them."),
        (circles, _) => {
            format!(" There are {circles} such circles, and {standing} ranks that stand.")
        }
    }
}

/// Nobody of those can go on, and no single circle says why.
fn knot(
    found: &HangEvidence<'_>,
    causes: &HangCauses,
    certain: bool,
    words: &mut Words<'_>,
) -> Verdict {
    let mut by_rank: BTreeMap<usize, WaitStep> = BTreeMap::new();
    for &at in &causes.standing {
        let node = &found.graph.nodes[at];
        if let Some(need) = node.surest().first() {
            by_rank.entry(node.rank).or_insert((at, **need));
        }
    }
    let steps: Vec<WaitStep> = by_rank.values().copied().collect();
    let ranks: Vec<usize> = by_rank.keys().copied().collect();
    let waits: Vec<String> = steps.iter().take(2).map(|step| said(found, step, words)).collect();
    let what = if certain { "Deadlock" } else { "Perhaps a deadlock" };
    let s = if ranks.len() == 1 { "s" } else { "" };
    let sentence = format!(
        "{what}: {} wait{s} for what will not come: {}.",
        words.ranks(&ranks),
        waits.join(", and ")
    );
    verdict(found.job, VerdictKind::Deadlock, certain, sentence, &ranks)
}
