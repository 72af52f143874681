//! One scenario in detail: where it waits, what its run time is made of, and who makes whom wait.

use std::io::{self, Write};

use super::mean_of;
use crate::render::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_data::text::{list_ranks, plural};
use lapscope_predict::whatif::document::{
    Blocked, CriticalPath, PathKind, PathSite, RankResult, ScenarioResult, WhatIf,
};

/// More ranks have no table of their own.
const MOST_RANKS: usize = 16;

/// `it`: the scenario, or the run replayed as it was.
///
/// # Errors
/// Of the writer.
pub(super) fn write(
    out: &mut dyn Write,
    it: &ScenarioResult,
    all: &WhatIf,
    style: Style,
) -> io::Result<()> {
    let of = match all.scenarios.as_slice() {
        [one] => one.name.as_str(),
        _ => "of the run as it was, replayed",
    };
    if it.run_ns.is_none() {
        return write_blocked(out, it, style);
    }
    write_sites(out, it, all, style)?;
    write_ranks(out, &it.ranks, style)?;
    write_path(out, it, of, style)?;
    write_roots(out, it, style)
}

/// "MPI_Wait exchange halo.c:84"
fn place(call: &str, site: Option<&FrameName>) -> String {
    match site {
        Some(site) => format!("{call} {}", site.short()),
        None => call.to_owned(),
    }
}

fn write_sites(
    out: &mut dyn Write,
    it: &ScenarioResult,
    all: &WhatIf,
    style: Style,
) -> io::Result<()> {
    if it.sites.is_empty() {
        return Ok(());
    }
    let (is_identity, mean) = (all.scenarios.len() != 1, mean_of(all));
    let about = "exposed time by call site, mean over ranks";
    writeln!(out, "\n{}", style.headed_dimly("CALL SITES", about))?;
    let mut table = Table::new(&[
        ("recorded", Align::Right),
        ("replayed", Align::Right),
        ("would be", Align::Right),
        ("call", Align::Left),
    ]);
    for site in &it.sites {
        let would_be = if is_identity { String::new() } else { mean.time(site.exposed_ns) };
        let [recorded, replayed] = [site.recorded_ns, site.identity_ns].map(|sum| mean.time(sum));
        let cells = vec![recorded, replayed, would_be, site.call.clone()];
        table.row(cells, site.site.as_ref().map(FrameName::short));
    }
    table.write(out, style)
}

fn write_ranks(out: &mut dyn Write, ranks: &[RankResult], style: Style) -> io::Result<()> {
    if ranks.len() < 2 || ranks.len() > MOST_RANKS {
        return Ok(());
    }
    let about = "computing; in MPI without waiting; waiting";
    writeln!(out, "\n{}", style.headed_dimly("RANKS", about))?;
    let mut table = Table::new(&[
        ("rank", Align::Right),
        ("run time", Align::Right),
        ("computes", Align::Right),
        ("", Align::Right),
        ("in MPI", Align::Right),
        ("waits", Align::Right),
        ("", Align::Right),
    ]);
    for rank in ranks {
        let share = |part: Nanos| percent(part.share_of(rank.run_ns));
        let cells = vec![
            rank.rank.to_string(),
            time(rank.run_ns),
            time(rank.compute_ns),
            share(rank.compute_ns),
            time(rank.overhead_ns),
            time(rank.wait_ns),
            share(rank.wait_ns),
        ];
        table.row(cells, None);
    }
    table.write(out, style)
}

fn write_path(out: &mut dyn Write, it: &ScenarioResult, of: &str, style: Style) -> io::Result<()> {
    let Some(path) = &it.critical_path else { return Ok(()) };
    let about = format!("{of}: only what is on it makes the run shorter");
    writeln!(out, "\n{}", style.headed_dimly("CRITICAL PATH", &about))?;
    writeln!(out, "{}", style.wrap(&parts(path), "  ", "    "))?;
    let mut table =
        Table::new(&[("share", Align::Right), ("time", Align::Right), ("", Align::Left)]);
    for site in &path.by_site {
        table.row(vec![percent(site.share), time(site.ns), stretch(site)], None);
    }
    table.write(out, style)
}

/// "4.50 s: 62.0 % computation, 1.0 % in MPI, 37.0 % communication; on rank 0 60.0 %, rank 1 40.0 %"
fn parts(path: &CriticalPath) -> String {
    const MOST: usize = 8;
    let share = |part: Nanos| percent(part.share_of(path.length_ns));
    let mut text = format!(
        "{}: {} computation, {} in MPI without waiting, {} communication",
        time(path.length_ns),
        share(path.compute_ns),
        share(path.overhead_ns),
        share(path.communication_ns)
    );
    let mut ranks: Vec<_> = path.by_rank.iter().filter(|rank| rank.ns.0 > 0).collect();
    ranks.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.rank.cmp(&b.rank)));
    let shown: Vec<String> = ranks
        .iter()
        .take(MOST)
        .map(|rank| format!("rank {} {}", rank.rank, percent(rank.share)))
        .collect();
    if !shown.is_empty() {
        text += &format!("; {}", shown.join(", "));
    }
    if let Some(more) = ranks.len().checked_sub(MOST).filter(|&more| more > 0) {
        text += &format!(", and {more} more rank{}", plural(more as u64));
    }
    text
}

/// "computation between MPI_Wait exchange halo.c:84 and MPI_Isend post halo.c:76"
fn stretch(site: &PathSite) -> String {
    let at = |call: &Option<String>, frame: &Option<FrameName>, end: &str| match call {
        Some(call) => place(call, frame.as_ref()),
        None => end.to_owned(),
    };
    match site.kind {
        PathKind::Computation => format!(
            "computation between {} and {}",
            at(&site.call, &site.site, "MPI_Init"),
            at(&site.next_call, &site.next_site, "MPI_Finalize")
        ),
        PathKind::Overhead => format!("in {}", at(&site.call, &site.site, "MPI")),
        PathKind::Communication => {
            format!("communication of {}", at(&site.call, &site.site, "MPI"))
        }
    }
}

fn write_roots(out: &mut dyn Write, it: &ScenarioResult, style: Style) -> io::Result<()> {
    if it.root_causes.is_empty() {
        return Ok(());
    }
    let about = "what waits are due to in the end; waiting summed over ranks";
    writeln!(out, "\n{}", style.headed_dimly("ROOT CAUSES", about))?;
    let mut table = Table::new(&[
        ("waiting", Align::Right),
        ("ranks", Align::Right),
        ("takes", Align::Right),
        ("rank", Align::Right),
        ("", Align::Left),
    ]);
    for root in &it.root_causes {
        let cells = vec![
            time(root.delayed_ns),
            count(root.delayed_ranks as u64),
            time(root.what.ns),
            root.rank.to_string(),
            stretch(&root.what),
        ];
        table.row(cells, None);
    }
    table.write(out, style)
}

/// Who waits for whom.
fn write_blocked(out: &mut dyn Write, it: &ScenarioResult, style: Style) -> io::Result<()> {
    let Some(deadlock) = it.deadlock.as_ref().filter(|deadlock| !deadlock.cycle.is_empty()) else {
        return Ok(());
    };
    let about = format!("{} rank{} in all", deadlock.blocked, plural(deadlock.blocked as u64));
    writeln!(out, "\n{}", style.headed_dimly("WHO WAITS FOR WHOM", &about))?;
    for blocked in deadlock.cycle.iter().take(MOST_RANKS) {
        writeln!(out, "{}", style.wrap(&waits(blocked), "  ", "    "))?;
    }
    if let Some(more) = deadlock.cycle.len().checked_sub(MOST_RANKS).filter(|&more| more > 0) {
        writeln!(out, "  and {} more in this circle, in --format json", count(more as u64))?;
    }
    Ok(())
}

/// "rank 0 in MPI_Send exchange halo.c:42 (4.00 KiB, tag 7) waits for rank 1"
fn waits(blocked: &Blocked) -> String {
    let mut message: Vec<String> = blocked.bytes.map(bytes).into_iter().collect();
    message.extend(blocked.tag.map(|tag| format!("tag {tag}")));
    let message = match message.as_slice() {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    let whom = match blocked.waits_for.as_slice() {
        [] => "for nobody who is known".to_owned(),
        ranks => format!("for rank{} {}", plural(ranks.len() as u64), list_ranks(ranks)),
    };
    format!(
        "rank {} in {}{message} waits {whom}",
        blocked.rank,
        place(&blocked.call, blocked.site.as_ref())
    )
}
