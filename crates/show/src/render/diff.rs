//! Two runs side by side as text.

use std::io::{self, Write};

use super::cause;
use super::overlap::interval;
use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent, time};
use lapscope_measure::overlap::sums::Cause;
use lapscope_report::diff::{
    CausePair, Change, ChangeKind, Diff, FractionPair, Presence, SitePair, TimePair,
};

/// Values of settings are cut to so many columns.
const LONGEST_VALUE: usize = 400;

/// Writes the whole comparison.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, diff: &Diff, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.bold("lapscope diff"))?;
    for (name, run) in [("A", &diff.a), ("B", &diff.b)] {
        let ranks = plural(run.ranks as u64);
        let line = format!("{}  {} rank{ranks}: {}", run.run, run.ranks, run.command);
        writeln!(out, "{}", style.wrap(&line, &format!("{name} "), "    "))?;
        for problem in &run.problems {
            writeln!(out, "{}", style.wrap(problem, "  ! ", "    "))?;
        }
    }
    write_configuration(out, &diff.configuration, style)?;
    write_totals(out, diff, style)?;
    write_overlap(out, diff, style)?;
    write_sites(out, diff, style)?;
    writeln!(out)?;
    let note = "Differences are B minus A. Two runs of the same program differ too: repeat both before believing small ones.";
    writeln!(out, "{}", style.dim(&style.wrap(note, "", "")))
}

fn write_configuration(out: &mut dyn Write, changes: &[Change], style: Style) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold("WHAT CHANGED"))?;
    if changes.is_empty() {
        let text = "nothing that was recorded: command, ranks, hosts, MPI, environment, options";
        return writeln!(out, "{}", style.wrap(text, "  ", "  "));
    }
    for change in changes {
        let what = match change.kind {
            ChangeKind::Run | ChangeKind::Option => "",
            ChangeKind::Environment => " (environment)",
            ChangeKind::Cvar => " (MPI variable)",
        };
        writeln!(out, "{}", style.wrap(&format!("{}{what}", change.name), "  ", "    "))?;
        for (name, value) in [("A", &change.a), ("B", &change.b)] {
            let value = value.as_ref().map_or("not set".to_owned(), |value| match value.as_str() {
                "" => "empty".to_owned(),
                value => Style::cut(value, LONGEST_VALUE),
            });
            writeln!(out, "{}", style.wrap(&value, &format!("    {name} "), "      "))?;
        }
    }
    Ok(())
}

/// Difference, and how much that is of A.
fn difference(pair: TimePair) -> [String; 2] {
    let sign = if pair.difference_ns.0 < 0 { "-" } else { "+" };
    let size = Nanos(pair.difference_ns.0.abs());
    let ratio = match pair.a_ns.0 {
        0 => String::new(),
        _ => format!("{sign}{}", percent(size.share_of(pair.a_ns))),
    };
    [format!("{sign}{}", time(size)), ratio]
}

fn write_totals(out: &mut dyn Write, diff: &Diff, style: Style) -> io::Result<()> {
    const ROWS: [(&str, &str); 10] = [
        ("mpi_ns", "inside MPI"),
        ("exposed_ns", "exposed (completing)"),
        ("overlapped_with_gpu_ns", "MPI beside a GPU"),
        ("posting_ns", "posting requests"),
        ("blocking_ns", "blocking point-to-point"),
        ("collective_ns", "collectives"),
        ("rma_ns", "one-sided"),
        ("io_ns", "files"),
        ("unsuccessful_test_ns", "unsuccessful tests"),
        ("other_ns", "other MPI"),
    ];
    writeln!(out, "\n{}", style.headed_dimly("TIME", "mean over ranks"))?;
    let mut table = Table::new(&[
        ("", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("difference", Align::Right),
        ("of A", Align::Right),
    ]);
    let mut row = |label: &str, pair: TimePair| {
        let [size, ratio] = difference(pair);
        table.row(vec![label.to_owned(), time(pair.a_ns), time(pair.b_ns), size, ratio], None);
    };
    let total = |key: &str| diff.totals.get(key).copied().unwrap_or_default();
    row("MPI_Init to MPI_Finalize, longest rank", total("longest_run_ns"));
    let outside =
        |ns: fn(&TimePair) -> Nanos| Nanos((ns(&total("run_ns")) - ns(&total("mpi_ns"))).0.max(0));
    row("outside MPI", diff.mean(TimePair::new(outside(|p| p.a_ns), outside(|p| p.b_ns))));
    for (key, label) in ROWS {
        let pair = total(key);
        if (pair.a_ns, pair.b_ns) != (Nanos(0), Nanos(0)) {
            row(label, diff.mean(pair));
        }
    }
    table.write(out, style)
}

fn write_overlap(out: &mut dyn Write, diff: &Diff, style: Style) -> io::Result<()> {
    let overlap = &diff.overlap;
    let causes =
        |pair: &CausePair| Cause::ALL.map(|cause| (cause, diff.mean(pair.by_cause(cause))));
    let is_there = |pair: &TimePair| (pair.a_ns, pair.b_ns) != (Nanos(0), Nanos(0));
    let mut times = Table::new(&[
        ("", Align::Left),
        ("A", Align::Right),
        ("B", Align::Right),
        ("difference", Align::Right),
        ("of A", Align::Right),
    ]);
    let mut rows = 0;
    for (what, pair) in
        [("exposed", &overlap.exposed_by_cause), ("blocked", &overlap.blocked_by_cause)]
    {
        for (cause, pair) in causes(pair).into_iter().filter(|(_, pair)| is_there(pair)) {
            let [size, ratio] = difference(pair);
            let label = format!("{what}, {}", cause::name(cause));
            times.row(vec![label, time(pair.a_ns), time(pair.b_ns), size, ratio], None);
            rows += 1;
        }
    }
    let known = |pair: FractionPair| pair.a.or(pair.b).is_some();
    if rows == 0 && !known(overlap.possible) {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("OVERLAP"))?;
    if known(overlap.possible) {
        let side = |of: fn(&FractionPair) -> Option<f64>| {
            let share = |low: &FractionPair, high: &FractionPair| match interval(of(low), of(high))
            {
                unknown if unknown.is_empty() => "not known".to_owned(),
                share => share,
            };
            let achieved = share(&overlap.achieved_low, &overlap.achieved_high);
            format!(
                "achieved {achieved}, possible {}",
                share(&overlap.possible_low, &overlap.possible)
            )
        };
        writeln!(out, "{}", style.wrap(&side(|pair| pair.a), "  A ", "    "))?;
        writeln!(out, "{}", style.wrap(&side(|pair| pair.b), "  B ", "    "))?;
    }
    times.write(out, style)
}

fn write_sites(out: &mut dyn Write, diff: &Diff, style: Style) -> io::Result<()> {
    if diff.sites.is_empty() {
        return Ok(());
    }
    let shown = match diff.sites.len() {
        shown if shown < diff.site_count => format!("{shown} of {}", diff.site_count),
        shown => shown.to_string(),
    };
    let only = match (diff.only_in_a, diff.only_in_b) {
        (0, 0) => String::new(),
        (a, b) => format!(", {a} in A only, {b} in B only"),
    };
    let about = format!("{shown}{only}  largest differences first; time: mean over ranks");
    writeln!(out, "\n{}", style.headed_dimly("CALL SITES", &about))?;
    let mut table = Table::new(&[
        ("difference", Align::Right),
        ("of A", Align::Right),
        ("A", Align::Right),
        ("B", Align::Right),
        ("calls A", Align::Right),
        ("calls B", Align::Right),
        ("call", Align::Left),
    ]);
    for site in &diff.sites {
        let pair = diff.mean(site.time);
        let [size, ratio] = difference(pair);
        let in_run = |text: String, missing: Presence| {
            if site.presence == missing {
                "-".to_owned()
            } else {
                text
            }
        };
        let cells = vec![
            size,
            ratio,
            in_run(time(pair.a_ns), Presence::B),
            in_run(time(pair.b_ns), Presence::A),
            in_run(count(site.calls_a), Presence::B),
            in_run(count(site.calls_b), Presence::A),
            site.call.clone(),
        ];
        table.row(cells, Some(place(site) + &cause(site, diff)));
    }
    table.write(out, style)
}

fn place(site: &SitePair) -> String {
    let names = [&site.site_a, &site.site_b].map(|site| site.as_ref().map(|frame| frame.short()));
    match names {
        [Some(a), Some(b)] if a != b => format!("{a}, in B {b}"),
        [Some(place), _] | [None, Some(place)] => place,
        [None, None] => "(no call path)".to_owned(),
    }
}

/// What was waited for with the largest difference.
fn cause(site: &SitePair, diff: &Diff) -> String {
    let pairs = Cause::ALL.map(|cause| (cause, diff.mean(site.exposed_by_cause.by_cause(cause))));
    let most = pairs.into_iter().max_by_key(|(_, pair)| pair.difference_ns.0.abs());
    match most.filter(|(_, pair)| pair.difference_ns.0 != 0) {
        Some((cause, pair)) => {
            let [size, _] = difference(pair);
            format!("; {} {size}", cause::name(cause))
        }
        None => String::new(),
    }
}
