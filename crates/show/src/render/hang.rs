//! What everybody waits for: the verdict, the circle, who is where, who waits for whom, and what to do next.

use std::io::{self, Write};

use super::pending::PendingChoice;
use super::sites::write_frames;
use lapscope_data::model::RankList;
use lapscope_data::state::Condition;
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::plural;
use lapscope_data::text::ranks;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, time, time_range};
use lapscope_data::text::visible::visible;
use lapscope_measure::alike::MOST_ROWS;
use lapscope_watch::hang::{
    Activity, Diagnosis, Edge, Needs, RankPlace, Running, RunningItem, Standing, ThreadWait,
    Verdict, VerdictKind,
};
use lapscope_watch::pending::PendingKind;

/// Places, waits and steps of a circle that are shown.
const MOST_PLACES: usize = 12;
const MOST_WAITS: usize = 12;
const MOST_STEPS: usize = 16;

/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    run: &str,
    diagnosis: &Diagnosis,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}\n", style.wrap(&looked(run, diagnosis), "", "  "))?;
    let first = &diagnosis.verdict;
    write_verdict(out, "VERDICT", first, "", style)?;
    for verdict in &diagnosis.further {
        write_verdict(out, "ALSO", verdict, &first.sentence, style)?;
    }
    for note in &diagnosis.notes {
        writeln!(out, "{}", style.warning(note))?;
    }
    let all = std::iter::once(&diagnosis.verdict).chain(&diagnosis.further);
    for verdict in all.filter(|verdict| !verdict.cycle.is_empty()) {
        write_cycle(out, &verdict.cycle, style)?;
    }
    write_places(out, diagnosis, style)?;
    write_ranks(out, &diagnosis.ranks, listed, style)?;
    write_waits(out, diagnosis, listed, style)?;
    write_unseen(out, diagnosis, style)?;
    write_next(out, run, diagnosis, style)
}

fn looked(run: &str, diagnosis: &Diagnosis) -> String {
    let ranks = diagnosis.ranks.len() as u64;
    let (count, s) = (count(ranks), plural(ranks));
    match diagnosis.observed_ns.0 {
        0 => format!("{run}: {count} rank{s}; the job has ended"),
        _ => format!("{run}: {count} rank{s}, two looks {} apart", time(diagnosis.observed_ns)),
    }
}

/// As it is called in JSON, for people.
pub fn kind_in_words(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Dead => "a rank is dead",
        VerdictKind::CollectiveMismatch => "collectives do not match",
        VerdictKind::NoMatch => "no matching message",
        VerdictKind::Left => "a rank has left",
        VerdictKind::Deadlock => "deadlock",
        VerdictKind::Stopped => "a rank is stopped",
        VerdictKind::Polls => "tests in vain",
        VerdictKind::Asleep => "asleep",
        VerdictKind::Computes => "computes",
        VerdictKind::Unfinished => "requests left in MPI_Finalize",
        VerdictKind::Slow => "slow, or unknown",
        VerdictKind::Progress => "goes on",
        VerdictKind::Ended => "has ended",
        VerdictKind::Unknown => "not known",
    }
}

/// `said`: what need not be said again.
pub(super) fn write_verdict(
    out: &mut dyn Write,
    title: &str,
    verdict: &Verdict,
    said: &str,
    style: Style,
) -> io::Result<()> {
    let perhaps = match verdict.certain || verdict.kind >= VerdictKind::Slow {
        true => "",
        false => "perhaps: ",
    };
    let about = format!("{perhaps}{}", kind_in_words(verdict.kind));
    writeln!(out, "{}", style.headed(title, &about))?;
    writeln!(out, "{}", style.wrap(&verdict.sentence, "  ", "  "))?;
    let is_new = |it: &&String| !verdict.sentence.contains(*it) && !said.contains(*it);
    for candidate in verdict.candidates.iter().filter(is_new) {
        writeln!(out, "{}", style.wrap(&format!("or {candidate}"), "  ", "    "))?;
    }
    writeln!(out)
}

/// One rank below the other, and an arrow back from the last.
fn write_cycle(out: &mut dyn Write, cycle: &[Edge], style: Style) -> io::Result<()> {
    writeln!(
        out,
        "{}",
        style.headed_dimly("CIRCLE", "each waits for the one below, the last for the first")
    )?;
    let skipped = cycle.len().saturating_sub(MOST_STEPS);
    for (at, edge) in cycle.iter().enumerate() {
        if skipped > 0 && at == MOST_STEPS - 1 {
            writeln!(out, "  │ … {} more", count(skipped as u64))?;
        }
        if skipped > 0 && at >= MOST_STEPS - 1 && at + 1 < cycle.len() {
            continue;
        }
        let (first, rest) = match (cycle.len(), at) {
            (1, _) => ("  ⟲ ", "    "),
            (_, 0) => ("  ┌► ", "  │    "),
            (all, at) if at + 1 == all => ("  └─ ", "       "),
            _ => ("  │  ", "  │    "),
        };
        let text = format!("rank {} {}", edge.from, edge.why);
        writeln!(out, "{}", style.wrap(&text, first, rest))?;
    }
    writeln!(out)
}

fn write_places(out: &mut dyn Write, diagnosis: &Diagnosis, style: Style) -> io::Result<()> {
    let of = diagnosis.ranks.len();
    let about = match diagnosis.places.len() {
        1 => format!("{} rank{}", count(of as u64), plural(of as u64)),
        _ => format!("{} ranks, the odd ones out first", count(of as u64)),
    };
    writeln!(out, "{}", style.headed_dimly("WHO IS WHERE", &about))?;
    for place in diagnosis.places.iter().take(MOST_PLACES) {
        writeln!(out, "{}", style.wrap(&place_in_words(place, of), "  ", "    "))?;
        write_frames(out, &place.frames, "      ", style)?;
    }
    let rest = diagnosis.places.iter().skip(MOST_PLACES);
    let (places, more) = (rest.clone().count(), rest.map(|it| it.count as u64).sum::<u64>());
    if places > 0 {
        let text = format!(
            "and {} rank{} at {places} other place{} (--format json has all)",
            count(more),
            plural(more),
            plural(places as u64)
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    writeln!(out)
}

/// "rank 3 on node1: outside of MPI, computes, for 12.0 s; last in MPI_Send".
pub fn place_in_words(place: &Standing, of: usize) -> String {
    let who = ranks::in_words(&place.ranks, of);
    let number = match place.count {
        1 => String::new(),
        all if all == of => String::new(),
        some => format!(" ({})", count(some as u64)),
    };
    let hosts = match place.hosts.len() {
        1 => format!(" on {}", list_hosts(place.hosts.iter().map(String::as_str))),
        _ => String::new(),
    };
    let since = time_range(place.since_least_ns, place.since_most_ns);
    let is_past = matches!(place.condition, Condition::Finalized);
    let for_long = if is_past { String::new() } else { format!(", for {since}") };
    let requests = match place.requests as u64 {
        0 => String::new(),
        requests => format!("; {} request{} under way", count(requests), plural(requests)),
    };
    format!("{who}{number}{hosts}: {}{for_long}{}{requests}", what(place), last(place))
}

fn what(place: &Standing) -> String {
    let ended = match place.condition {
        Condition::Finalized => return "left MPI by MPI_Finalize".to_owned(),
        Condition::Killed => "killed ",
        Condition::Aborted => "called MPI_Abort ",
        Condition::Exited => "exited without MPI_Finalize ",
        _ => "",
    };
    let at = match &place.call {
        Some(call) if place.polls => format!("tests in vain in {call}"),
        Some(call) => format!("inside {call}"),
        None => "outside of MPI".to_owned(),
    };
    let state = match place.state {
        Activity::Stopped => ", stopped",
        Activity::Busy if place.call.is_none() => ", on a processor",
        Activity::Asleep if place.call.is_none() => ", asleep",
        _ => "",
    };
    format!("{ended}{at}{state}")
}

fn last(place: &Standing) -> String {
    place.last_call.as_ref().map_or_else(String::new, |call| format!("; last in {call}"))
}

/// Writes what ranks do that run: who is where, and of few ranks, or those of the list, what each has open.
///
/// # Errors
/// Of the writer.
pub fn write_running(
    out: &mut dyn Write,
    run: &str,
    running: &Running,
    shown: PendingChoice<'_>,
    style: Style,
) -> io::Result<()> {
    let of = running.ranks().count();
    let about =
        format!("{} rank{} that run, the odd ones out first", count(of as u64), plural(of as u64));
    writeln!(out, "{}", style.headed_dimly("WHO IS WHERE", &about))?;
    let most = if shown.top == 0 { running.places.len() } else { shown.top };
    for place in running.places.iter().take(most) {
        writeln!(out, "{}", style.wrap(&place_in_words(place, of), "  ", "    "))?;
        write_frames(out, &place.frames, "      ", style)?;
    }
    let is_listed = |rank| shown.listed.map_or(of <= MOST_ROWS, |list| list.contains(rank));
    for of_rank in running.items.chunk_by(|a, b| a.rank == b.rank) {
        if is_listed(of_rank[0].rank) {
            write_running_rank(out, of_rank, shown.top, style)?;
        }
    }
    let hint = format!("lapscope hang {} says who waits for whom, and why", shell::quote(run));
    writeln!(out, "\n{}", style.wrap(&hint, "", "  "))
}

fn write_running_rank(
    out: &mut dyn Write,
    items: &[RunningItem],
    top: usize,
    style: Style,
) -> io::Result<()> {
    let first = &items[0];
    let head = format!("on {} process {}", first.host, first.pid);
    let rank = format!("rank\u{a0}{}", first.rank);
    let text = style.wrap_painted(&format!("{} {}", style.bold(&rank), visible(&head)), "", "  ");
    writeln!(out, "\n{}", text.replace('\u{a0}', " "))?;
    let most = if top == 0 { items.len() } else { top };
    for item in items.iter().take(most) {
        let (lead, since) = match item.what {
            PendingKind::Call => ("inside ", "for"),
            PendingKind::Request => ("pending ", "posted"),
        };
        let ago = if item.what == PendingKind::Call { "" } else { " ago" };
        let tests = match u64::from(item.unsuccessful_tests) {
            0 => String::new(),
            tests => format!(", {} unsuccessful test{}", count(tests), plural(tests)),
        };
        let text =
            format!("{lead}{}, {since} {}{ago}{tests}", item.describe(), time(item.since_ns));
        writeln!(out, "{}", style.wrap(&text, "  ", "          "))?;
        write_frames(out, &item.frames, "          ", style)?;
    }
    match items.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more (--top 0 shows all)"),
    }
}

fn write_ranks(
    out: &mut dyn Write,
    ranks: &[RankPlace],
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    let Some(listed) = listed else { return Ok(()) };
    writeln!(
        out,
        "{}",
        style.headed_dimly("RANK BY RANK", "threads, and for how long they have been there")
    )?;
    for rank in ranks.iter().filter(|it| listed.contains(it.rank)) {
        for thread in &rank.threads {
            let name = match rank.threads.len() {
                1 => String::new(),
                _ => format!(" thread {}", thread.number),
            };
            let at = match (&thread.call, &thread.last_call) {
                (Some(call), _) if thread.polls => format!("tests in vain in {call}"),
                (Some(call), _) => format!("inside {call}"),
                (None, Some(last)) => format!("outside of MPI, last in {last}"),
                (None, None) => "outside of MPI".to_owned(),
            };
            let site = thread.site.as_ref().map(|site| format!(" ({site})")).unwrap_or_default();
            let text = format!(
                "rank {}{name} on {}, process {}: {at}{site}, for {}",
                rank.rank,
                rank.host,
                rank.pid,
                time(thread.since_ns)
            );
            writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
        }
    }
    writeln!(out)
}

/// Those who are stuck first, of many ranks only some.
fn write_waits(
    out: &mut dyn Write,
    diagnosis: &Diagnosis,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    if diagnosis.waits.is_empty() {
        return Ok(());
    }
    let mut waits: Vec<&ThreadWait> = diagnosis.waits.iter().collect();
    waits.sort_by_key(|wait| !wait.stuck);
    if let Some(listed) = listed {
        waits.retain(|wait| listed.contains(wait.from));
    }
    let few = listed.is_some() || diagnosis.ranks.len() <= MOST_ROWS;
    let shown = if few { waits.len() } else { MOST_WAITS.min(waits.len()) };
    writeln!(out, "{}", style.headed_dimly("WAITS", "who waits for what; ? is a perhaps"))?;
    for wait in &waits[..shown] {
        for (at, on) in wait.on.iter().take(MOST_STEPS).enumerate() {
            let head = match (at, wait.needs) {
                (0, _) => format!("rank {}", wait.from),
                (_, Needs::All) => "  and".to_owned(),
                (_, Needs::Any) => "  or".to_owned(),
            };
            let doubt = if on.certain { "" } else { " ?" };
            writeln!(out, "{}", style.wrap(&format!("{head} {}{doubt}", on.why), "  ", "    "))?;
        }
        let more = wait.on.len().saturating_sub(MOST_STEPS);
        if more > 0 {
            writeln!(out, "    and {more} more")?;
        }
    }
    if shown < waits.len() {
        let more = (waits.len() - shown) as u64;
        let text = format!(
            "and {} more (--each-rank shows all, --each-rank=0-15 of some ranks)",
            count(more)
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    writeln!(out)
}

fn write_unseen(out: &mut dyn Write, diagnosis: &Diagnosis, style: Style) -> io::Result<()> {
    const MOST: usize = 5;
    for unseen in diagnosis.unseen.iter().take(MOST) {
        let text = format!("{} {}", visible(&unseen.file), visible(&unseen.why));
        writeln!(out, "{}", style.warning(&text))?;
    }
    let more = diagnosis.unseen.len().saturating_sub(MOST);
    if more > 0 {
        writeln!(out, "{}", style.warning(&format!("and {more} more that cannot be seen")))?;
    }
    Ok(())
}

fn write_next(
    out: &mut dyn Write,
    run: &str,
    diagnosis: &Diagnosis,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}", style.headed("NEXT", ""))?;
    for step in next(run, diagnosis) {
        writeln!(out, "{}", style.wrap(&step, "  ", "      "))?;
    }
    Ok(())
}

/// Commands, and what they are for.
pub fn next(run: &str, diagnosis: &Diagnosis) -> Vec<String> {
    let named = shell::quote(run);
    let verdict = &diagnosis.verdict;
    let mut steps = Vec::new();
    let of = |it: &&RankPlace| verdict.ranks.first() == Some(&it.rank);
    if let Some(rank) = diagnosis.ranks.iter().find(of) {
        let (host, pid) = (&rank.host, rank.pid);
        match verdict.kind {
            VerdictKind::Computes | VerdictKind::Asleep | VerdictKind::Polls => {
                steps.push(format!(
                    "lapscope hang --pid {pid}   on {host}: at which line rank {} is",
                    rank.rank
                ));
            }
            VerdictKind::Stopped => {
                steps.push(format!("kill -CONT {pid}   on {host}: lets rank {} go on", rank.rank))
            }
            _ => {}
        }
    }
    let is_open = diagnosis.observed_ns.0 > 0;
    if is_open && (!verdict.certain || verdict.kind > VerdictKind::Deadlock) {
        steps.push(format!("lapscope hang --interval 10 {named}   looks again, for longer"));
    }
    steps.push(format!("lapscope hang --pending {named}   every request that is under way"));
    steps.push(format!("lapscope hang --html hang.html {named}   the same as a page"));
    steps
}
