//! How much earlier posts, how much later waits could be, site by site.

use std::io::{self, Write};

use lapscope_advise::reach_in_words::{bounds, note, place, sentence, share, toucher};
use lapscope_data::model::{Nanos, Side};
use lapscope_data::text::plural;
use lapscope_data::text::style::{display_width, Style};
use lapscope_data::text::units::{bytes, count, percent, time, MeanOfRanks};
use lapscope_measure::reach::bounds::ConfidenceBounds;
use lapscope_measure::reach::document::Reach;
use lapscope_measure::reach::order::AccessOrder;
use lapscope_measure::reach::site::{CopiedBy, Movability, SiteReach, WaitReach};

/// Lines that copy a site's data are listed up to that many.
const MOST_COPIES: usize = 3;

/// Writes what was found of every site. `run_ns`: of all ranks.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    reach: &Reach,
    run_ns: Nanos,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.wrap(&answer(reach, run_ns, mean), "", "  "))?;
    let note = "the time that was waited for them, mean over ranks";
    writeln!(out, "\n{}", style.headed_dimly("POSTS AND WAITS", note))?;
    let times: Vec<String> =
        reach.sites.iter().map(|site| mean.time(site.worth.at_stake())).collect();
    let width = times.iter().map(|time| display_width(time) + 2).max().unwrap_or(0).max(10);
    let indent = " ".repeat(9 + width + 2);
    for (site, time) in reach.sites.iter().zip(times) {
        let of_run = percent(site.worth.at_stake().share_of(run_ns));
        let pad = " ".repeat(width - display_width(&time));
        let head = format!("  {of_run:>7}{pad}{time}  ");
        writeln!(out, "{}", style.wrap(&told(site, mean), &head, &indent))?;
        for line in beside(site) {
            writeln!(out, "{}", style.dim(&style.wrap(&line, &indent, &indent)))?;
        }
    }
    if let Some(more) = reach.site_count.checked_sub(reach.sites.len()).filter(|&more| more > 0) {
        writeln!(out, "{indent}and {more} more (--top 0)")?;
    }
    write_waits(out, reach, style)
}

/// What all of it comes to, and the sites that were waited for longest, for a report.
///
/// # Errors
/// Of the writer.
pub fn write_brief(
    out: &mut dyn Write,
    reach: &Reach,
    run_ns: Nanos,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    const SHOWN: usize = 3;
    let note = "how far their data would let them be moved; all: lapscope reach";
    writeln!(out, "\n{}", style.headed_dimly("POSTS AND WAITS", note))?;
    writeln!(out, "{}", style.wrap(&answer(reach, run_ns, mean), "  ", "  "))?;
    for site in reach.sites.iter().take(SHOWN) {
        writeln!(out, "{}", style.wrap(&told(site, mean), "  ", "    "))?;
    }
    Ok(())
}

/// What all of it comes to.
pub fn answer(reach: &Reach, run_ns: Nanos, mean: MeanOfRanks) -> String {
    let is = |verdict: Movability| reach.verdicts.contains(&verdict);
    let (saved, exposed) = (reach.recoverable_ns, reach.exposed_ns);
    let with_copies = is(Movability::MovableWithCopy) && !is(Movability::Movable);
    if is(Movability::Movable) || with_copies {
        return format!(
            "Posts could be earlier or waits later{}: that could save at most {} of the {} that were exposed ({} of the run time).",
            if with_copies { ", with the copying beside them" } else { "" },
            mean.time(saved),
            mean.time(exposed),
            percent(saved.share_of(run_ns))
        );
    }
    let is_unsure = |verdict: &&Movability| **verdict == Movability::Unknown;
    let unsure = reach.verdicts.iter().filter(is_unsure).count() as u64;
    if unsure > 0 {
        return format!(
            "No post and no wait is known to be movable; of {} of {} site{} too little was seen.",
            count(unsure),
            count(reach.site_count as u64),
            plural(reach.site_count as u64)
        );
    }
    match is(Movability::HalfMovable) {
        true => "No post and no wait can be moved for whole messages: some of the data are written until the post, or used at \
                 once. Halves of messages could be."
            .to_owned(),
        false => "Nothing is gained by moving posts or waits: data are written until the post, and used at once.".to_owned(),
    }
}

/// "MPI_Irecv exchange halo.c:70, waited for in MPI_Waitall exchange halo.c:84: the wait could be …"
fn told(site: &SiteReach, mean: MeanOfRanks) -> String {
    let mut text = place(&site.place);
    if let (Some(wait), Side::Receive) = (&site.completed_in, site.side) {
        text += &format!(", waited for in {}", place(wait));
    }
    text += &format!(": {}", sentence(site));
    let saved = site.worth.recoverable_ns;
    let is_movable = matches!(site.verdict, Movability::Movable | Movability::MovableWithCopy);
    if is_movable && saved.0 > 0 {
        text += &format!(". That could save at most {}", mean.time(saved));
    }
    text + "."
}

/// What is known of the site besides.
fn beside(site: &SiteReach) -> Vec<String> {
    let mut facts = vec![
        sizes(site),
        format!(
            "{} buffer{} on {} rank{}",
            count(site.buffers),
            plural(site.buffers),
            count(site.ranks),
            plural(site.ranks)
        ),
    ];
    facts.extend(order(site).map(str::to_owned));
    let word = site.word.filter(|_| site.order.order != AccessOrder::AtOnce);
    facts.extend(word.map(|word| format!("{} a word", fine(word.likely()))));
    let is_told = |hides: &&ConfidenceBounds| hides.low > 0.0 || hides.high < Some(1.0);
    let hides = site.worth.hides.as_ref().filter(is_told);
    if let (Some(reference), Some(hides)) = (site.worth.reference_ns, hides) {
        facts.push(format!("hides {} of the transfer ({})", share(hides), time(reference)));
    }
    let mut lines = vec![facts.join(" · ")];
    let others = site
        .touchers
        .iter()
        .skip(1)
        .take(3)
        .map(|by| format!("{} ({} of words)", toucher(by), percent(by.share)));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        lines.push(format!("also {}", others.join(", ")));
    }
    lines.extend(site.copies.iter().take(MOST_COPIES).map(|copy| copied(copy, site.side)));
    lines.extend(site.notes.iter().map(|it| note(it, site.side)));
    lines
}

fn sizes(site: &SiteReach) -> String {
    match (site.min_bytes, site.max_bytes) {
        (least, most) if least == most => bytes(most),
        (least, most) => format!("{} to {}", bytes(least), bytes(most)),
    }
}

/// A word takes less than a nanosecond now and then.
fn fine(ns: f64) -> String {
    if ns < 99.95 {
        format!("{ns:.1} ns")
    } else {
        time(Nanos(ns.round() as i64))
    }
}

fn order(site: &SiteReach) -> Option<&'static str> {
    match (site.order.order, site.side) {
        (AccessOrder::Same, Side::Send) => Some("written from first to last"),
        (AccessOrder::Same, Side::Receive) => Some("used from first to last"),
        (AccessOrder::Reverse, Side::Send) => Some("written from last to first"),
        (AccessOrder::Reverse, Side::Receive) => Some("used from last to first"),
        (AccessOrder::Random, Side::Send) => Some("written in another order"),
        (AccessOrder::Random, Side::Receive) => Some("used in another order"),
        (AccessOrder::AtOnce, _) => Some("all at once"),
        (AccessOrder::Unknown, _) => None,
    }
}

/// "copied at pack halo.c:31; the copy is first used at solve step.c:12, 3.20 ms behind the wait"
fn copied(copy: &CopiedBy, side: Side) -> String {
    let at = copy.site.as_ref().map_or_else(|| "an unknown place".to_owned(), |site| site.short());
    let Some(by) = copy.touchers.first().map(toucher) else { return format!("copied at {at}") };
    let away = |where_to: &str| {
        let away = copy.all.as_ref().map(bounds);
        away.map(|away| format!(", {away} {where_to}")).unwrap_or_default()
    };
    match side {
        Side::Receive => {
            format!("copied at {at}; the copy is first used {by}{}", away("behind the wait"))
        }
        Side::Send => {
            format!(
                "copied at {at}; what is copied is last written {by}{}",
                away("before the post")
            )
        }
    }
}

/// Waits that complete several receives can be moved as far as the first of these allows.
fn write_waits(out: &mut dyn Write, reach: &Reach, style: Style) -> io::Result<()> {
    let of_several = |wait: &&WaitReach| {
        let completed = |site: &&SiteReach| {
            let by = site.completed_in.as_ref();
            site.side == Side::Receive && by.is_some_and(|by| by.id == wait.place.id)
        };
        reach.sites.iter().filter(completed).count() + wait.unwatched.len() > 1
    };
    for wait in reach.waits.iter().filter(of_several) {
        let Some(all) = &wait.all else { continue };
        let first = wait.first.and_then(|at| reach.sites.get(at));
        let first = first.map(|site| format!(", as far as {} allows", place(&site.place)));
        let mut text = format!(
            "{} completes several receives: it could be {} later{}",
            place(&wait.place),
            bounds(all),
            first.unwrap_or_default()
        );
        if !wait.unwatched.is_empty() {
            let others: Vec<String> = wait.unwatched.iter().map(place).collect();
            text += &format!("; nothing was watched of {}", others.join(", "));
        }
        writeln!(out, "{}", style.wrap(&format!("{text}."), "  ", "  "))?;
    }
    Ok(())
}
