//! Overlap as text and as tables.

mod head;
mod over_time;
mod ranks;

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::cause;
use super::injection;
use super::table::{Align, Cell, Table};
use crate::format::rows::{Objects, RowWriter};
use lapscope_advise::problem::unattributed_in_words;
use lapscope_data::model::{Kind, Nanos, RankList};
use lapscope_data::symbols::FrameName;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, round_bytes, time, MeanOfRanks};
use lapscope_measure::overlap::groups::{BlockingRow, SiteRow, WaitedFor};
use lapscope_measure::overlap::sums::{BlockingNumbers, Cause, OverlapNumbers};
use lapscope_measure::overlap::Overlap;
use lapscope_report::pipeline::overlap::OverlapDocument;
use lapscope_trace::Locality;

/// How what is summed over ranks is shown.
fn mean_of(overlap: &Overlap) -> MeanOfRanks {
    MeanOfRanks(overlap.ranks.len() as u64)
}

/// What a table of `lapscope overlap` has a row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OverlapBy {
    /// Call sites
    Site,
    /// Message sizes
    Size,
    /// Self, same node, network
    Locality,
    /// Ranks
    Rank,
    /// Sends, receives, collectives
    Kind,
    /// Parts of the run, in order
    Time,
    /// Call sites for which lapscope injected tests, and what that gained
    Injection,
}

/// Writes the summary, or the one table that was asked for; a line for each of the ranks that are `listed`.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    document: &OverlapDocument,
    by: Option<OverlapBy>,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    let overlap = &document.overlap;
    head::write(out, overlap, style)?;
    if overlap.totals.numbers.requests == 0 && overlap.blocking.totals.calls == 0 {
        return writeln!(out, "\nNo MPI communication was recorded.");
    }
    if by == Some(OverlapBy::Rank) {
        return ranks::write(out, document, listed, style);
    }
    if let Some(by) = by {
        writeln!(out)?;
        return write_table(out, document, by, style);
    }
    if overlap.totals.numbers.requests > 0 {
        write_exposed(out, overlap, style)?;
        write_overlap(out, overlap, style)?;
        let shown = shown(overlap.sites.len(), overlap.site_count);
        writeln!(out, "\n{}", style.headed("CALL SITES", &shown))?;
        write_table(out, document, OverlapBy::Site, style)?;
        writeln!(out, "\n{}", style.bold("MESSAGE SIZES"))?;
        write_table(out, document, OverlapBy::Size, style)?;
        if overlap.localities.len() > 1 {
            writeln!(out, "\n{}", style.bold("LOCALITIES"))?;
            write_table(out, document, OverlapBy::Locality, style)?;
        }
        if listed.is_some() || ranks::differ(overlap) {
            ranks::write(out, document, listed, style)?;
        }
    }
    write_blocking(out, overlap, style)?;
    over_time::write(out, &overlap.over_time, style)?;
    write_pairs(out, overlap, style)?;
    injection::write(out, document.injection.as_ref(), style)
}

fn shown(shown: usize, all: usize) -> String {
    if shown < all {
        format!("{shown} of {all}")
    } else {
        all.to_string()
    }
}

pub(super) fn locality_name(locality: Option<Locality>) -> &'static str {
    match locality {
        Some(Locality::SelfRank) => "self",
        Some(Locality::Node) => "same node",
        Some(Locality::Network) => "network",
        None => "collectives and others",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "send",
        Kind::Recv => "recv",
        Kind::Collective => "collective",
        Kind::Rma => "one-sided",
        Kind::Io => "files",
        Kind::Generalized => "generalized",
        Kind::Other => "other",
    }
}

/// "41.2 %", or "12.0 to 41.2 %".
pub(super) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        None => String::new(),
        Some((low, high)) if percent(low) == percent(high) => percent(low),
        Some((low, high)) => format!("{:.1} to {}", low * 100.0, percent(high)),
    }
}

fn write_overlap(out: &mut dyn Write, overlap: &Overlap, style: Style) -> io::Result<()> {
    let (numbers, mean) = (&overlap.totals.numbers, mean_of(overlap));
    if numbers.measured == 0 {
        return Ok(());
    }
    let about = format!(
        "of {}, the reference time of the transfers of {} request{}, mean over ranks",
        mean.time(numbers.reference_ns),
        count(numbers.measured),
        plural(numbers.measured)
    );
    writeln!(out, "\n{}", style.headed("OVERLAP", &about))?;
    let columns = [Align::Left, Align::Right, Align::Right, Align::Bar(32)];
    let mut table = Table::new(&columns.map(|align| ("", align)));
    let share = |part: Nanos| Some(part.share_of(numbers.reference_ns));
    let mut line = |label: &str, low: Nanos, high: Nanos| {
        let bar = Cell::Bar(share(high).unwrap_or(0.0));
        let shares = interval(share(low), share(high));
        table.row(vec![label.into(), mean.time_range(low, high).into(), shares.into(), bar], None);
    };
    line("achieved", numbers.achieved_low_ns, numbers.achieved_high_ns);
    line("possible", numbers.possible_low_ns, numbers.possible_ns);
    line("lost", numbers.lost_low_ns, numbers.lost_high_ns);
    for (label, part) in [
        ("  late partner", numbers.lost_late_partner_ns),
        ("  no progress", numbers.lost_no_progress_ns),
        ("  other", numbers.lost_other_ns),
    ] {
        if part.0 > 0 {
            line(label, part, part);
        }
    }
    table.write(out, style)
}

/// The table of causes: how much, and what each means.
pub(super) fn causes_table(bar: usize) -> Table {
    let columns = [Align::Left, Align::Right, Align::Right, Align::Bar(bar), Align::Left];
    Table::new(&columns.map(|align| ("", align)))
}

/// `None` where nothing is laid to that cause.
pub(super) fn cause_cells(
    numbers: &OverlapNumbers,
    cause: Cause,
    mean: MeanOfRanks,
) -> Option<Vec<Cell>> {
    let part = numbers.exposed_of(cause);
    let share = |part: Nanos| part.share_of(numbers.exposed_ns);
    let (low, high) = match cause {
        Cause::NoLocalProgress if numbers.is_no_local_progress_vague() => {
            (numbers.exposed_no_local_progress_low_ns, numbers.exposed_no_local_progress_high_ns)
        }
        _ => (part, part),
    };
    let share_text = interval(Some(share(low)), Some(share(high)));
    let text = mean.time_range(low, high);
    let texts = [cause::name(cause).to_owned(), share_text, text];
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::from).collect();
    cells.extend([Cell::Bar(share(part)), cause::meaning(cause).into()]);
    (part.0 > 0).then_some(cells)
}

fn write_exposed(out: &mut dyn Write, overlap: &Overlap, style: Style) -> io::Result<()> {
    let (numbers, mean) = (&overlap.totals.numbers, mean_of(overlap));
    let about = format!(
        "{} in calls that completed requests ({} of the run time), mean over ranks",
        mean.time(numbers.exposed_ns),
        percent(numbers.exposed_ns.share_of(overlap.totals.run_ns))
    );
    writeln!(out, "\n{}", style.headed("EXPOSED", &about))?;
    let mut causes = causes_table(24);
    for cause in Cause::ALL {
        if let Some(cells) = cause_cells(numbers, cause, mean) {
            causes.row(cells, None);
        }
    }
    causes.write(out, style)?;
    if overlap.totals.unattributed_ns.0 > 0 {
        let text = format!(
            "and {} of {}",
            mean.time(overlap.totals.unattributed_ns),
            unattributed_in_words(&overlap.problems)
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "  "))?;
    }
    writeln!(out, "  posting took {}", mean.time(numbers.post_ns))
}

const COLUMNS: [(&str, Align); 9] = [
    ("exposed", Align::Right),
    ("mostly", Align::Left),
    ("", Align::Left),
    ("requests", Align::Right),
    ("bytes", Align::Right),
    ("reference", Align::Right),
    ("achieved", Align::Right),
    ("possible", Align::Right),
    ("lost", Align::Right),
];

fn cells(
    label: String,
    kind: Option<Kind>,
    numbers: &OverlapNumbers,
    mean: MeanOfRanks,
) -> Vec<String> {
    vec![
        mean.time(numbers.exposed_ns),
        numbers.cause.map_or_else(String::new, |cause| {
            let name = cause::main_name(cause, kind, numbers.is_no_local_progress_vague());
            mostly(name, numbers.exposed_of(cause), numbers.exposed_ns)
        }),
        label,
        count(numbers.requests),
        if numbers.bytes > 0 { bytes(numbers.bytes) } else { String::new() },
        if numbers.measured > 0 { mean.time(numbers.reference_ns) } else { String::new() },
        interval(numbers.achieved_low, numbers.achieved_high),
        interval(numbers.possible_low, numbers.possible),
        interval(numbers.lost_low, numbers.lost_high),
    ]
}

/// "late partner 83 %"
fn mostly(cause: &str, part: Nanos, all: Nanos) -> String {
    format!("{cause} {:.0} %", part.share_of(all) * 100.0)
}

fn new_table() -> Table {
    Table::new(&COLUMNS).giving_up(&["reference", "bytes", "requests"])
}

fn write_table(
    out: &mut dyn Write,
    document: &OverlapDocument,
    by: OverlapBy,
    style: Style,
) -> io::Result<()> {
    let (overlap, mean) = (&document.overlap, mean_of(&document.overlap));
    let mut table = new_table();
    match by {
        OverlapBy::Site => {
            for site in &overlap.sites {
                table.row(
                    cells(site.call.clone(), Some(site.kind), &site.numbers, mean),
                    place(site),
                );
            }
        }
        OverlapBy::Size => {
            for row in &overlap.sizes {
                let label = format!(
                    "{} {}",
                    kind_name(row.kind),
                    size_range(row.from_bytes, row.below_bytes)
                );
                table.row(cells(label, Some(row.kind), &row.numbers, mean), None);
            }
        }
        OverlapBy::Locality => {
            for row in &overlap.localities {
                table.row(
                    cells(locality_name(row.locality).to_owned(), None, &row.numbers, mean),
                    None,
                );
            }
        }
        OverlapBy::Rank => return ranks::write(out, document, None, style),
        OverlapBy::Kind => {
            for row in &overlap.kinds {
                table.row(
                    cells(kind_name(row.kind).to_owned(), Some(row.kind), &row.numbers, mean),
                    None,
                );
            }
        }
        OverlapBy::Time => {
            for row in overlap.over_time.iter().filter(|row| row.numbers.requests > 0) {
                let label = format!("from {}", time(row.begin_ns));
                table.row(cells(label, None, &row.numbers, mean), None);
            }
        }
        OverlapBy::Injection => return write_injection(out, document, style),
    }
    table.write(out, style)
}

fn write_injection(
    out: &mut dyn Write,
    document: &OverlapDocument,
    style: Style,
) -> io::Result<()> {
    match &document.injection {
        Some(injection) => injection::write_sites(out, injection, style),
        None => {
            let text = "No rank was asked to inject tests (LAPSCOPE_INJECT).";
            writeln!(out, "{}", style.wrap(text, "", ""))
        }
    }
}

/// "2 KiB to 4 KiB"
fn size_range(from: u64, below: u64) -> String {
    match (from, below) {
        (0, _) => "0 B".to_owned(),
        (_, u64::MAX) => format!("from {}", round_bytes(from)),
        _ => format!("{} to {}", round_bytes(from), round_bytes(below)),
    }
}

fn short(frame: Option<&FrameName>) -> String {
    frame.map_or_else(|| "(no call path)".to_owned(), FrameName::short)
}

/// "exchange halo.c:42, completed in MPI_Waitall exchange halo.c:57", and below it whom that waited for.
fn place(site: &SiteRow) -> Vec<String> {
    let mut text = short(site.site.as_ref());
    if let Some(by) = site.completed_in.as_ref().filter(|by| by.exposed_ns.0 > 0) {
        text += &format!(", completed in {} {}", by.call, short(by.site.as_ref()));
    }
    let numbers = &site.numbers;
    let waited = numbers.exposed_late_partner_ns + numbers.exposed_no_remote_progress_ns;
    let other = waited_for(site.waited_for.as_ref(), waited, numbers.exposed_ns);
    [Some(text), other].into_iter().flatten().collect()
}

/// "waited for MPI_Irecv exchange halo.c:40 of ranks 1, 3", where that is a good part of the time.
fn waited_for(other: Option<&WaitedFor>, waited: Nanos, all: Nanos) -> Option<String> {
    const WORTH_SAYING: f64 = 0.1;
    let other = other.filter(|_| waited.share_of(all) >= WORTH_SAYING)?;
    let ranks: Vec<String> = other.ranks.iter().map(ToString::to_string).collect();
    let what = match &other.call {
        Some(call) => format!("{call} {} of ", short(other.site.as_ref())),
        None => String::new(),
    };
    Some(format!("waited for {what}rank{} {}", plural(ranks.len() as u64), ranks.join(", ")))
}

fn write_blocking(out: &mut dyn Write, overlap: &Overlap, style: Style) -> io::Result<()> {
    let blocking = &overlap.blocking;
    if blocking.totals.calls == 0 {
        return Ok(());
    }
    let about = format!(
        "{} in {} call{}, which overlap nothing ({} of the run time), mean over ranks",
        mean_of(overlap).time(blocking.totals.blocked_ns),
        count(blocking.totals.calls),
        plural(blocking.totals.calls),
        percent(blocking.totals.blocked_ns.share_of(overlap.totals.run_ns))
    );
    writeln!(out, "\n{}", style.headed("BLOCKING CALLS", &about))?;
    let mut table = Table::new(&[
        ("time", Align::Right),
        ("late partner", Align::Right),
        ("no remote progress", Align::Right),
        ("transfer", Align::Right),
        ("no processor", Align::Right),
        ("call", Align::Left),
        ("calls", Align::Right),
    ]);
    for site in &blocking.sites {
        let numbers = &site.numbers;
        let waited = numbers.late_partner_ns + numbers.no_remote_progress_ns;
        let whom = waited_for(site.waited_for.as_ref(), waited, numbers.blocked_ns);
        let below = [Some(short(site.site.as_ref())), whom];
        table.row(blocking_cells(site, mean_of(overlap)), below.into_iter().flatten());
    }
    table.write(out, style)
}

fn blocking_cells(site: &BlockingRow, mean: MeanOfRanks) -> Vec<String> {
    let numbers: &BlockingNumbers = &site.numbers;
    vec![
        mean.time(numbers.blocked_ns),
        percent(numbers.late_partner_ns.share_of(numbers.blocked_ns)),
        percent(numbers.no_remote_progress_ns.share_of(numbers.blocked_ns)),
        percent(numbers.transfer_ns.share_of(numbers.blocked_ns)),
        percent(numbers.no_processor_ns.share_of(numbers.blocked_ns)),
        site.call.clone(),
        count(numbers.calls),
    ]
}

fn write_pairs(out: &mut dyn Write, overlap: &Overlap, style: Style) -> io::Result<()> {
    const SHOWN: usize = 5;
    if overlap.late_pairs.is_empty() || overlap.ranks.len() < 3 {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("WHO WAITED FOR WHOM LONGEST"))?;
    for pair in overlap.late_pairs.iter().take(SHOWN) {
        let text = format!(
            "rank {} for rank {}: {} until it had posted (late partner), {} while it was outside MPI (no remote progress)",
            pair.rank,
            pair.waited_for,
            time(pair.late_partner_ns),
            time(pair.no_remote_progress_ns)
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    Ok(())
}

/// Writes one table; keys are those of the JSON, of nested objects joined by underscores.
///
/// # Errors
/// Of the writer.
pub fn write_rows(
    rows: &mut dyn RowWriter,
    document: &OverlapDocument,
    by: OverlapBy,
) -> io::Result<()> {
    let overlap = &document.overlap;
    match by {
        OverlapBy::Site => write_all(rows, &overlap.sites),
        OverlapBy::Size => write_all(rows, &overlap.sizes),
        OverlapBy::Locality => write_all(rows, &overlap.localities),
        OverlapBy::Rank => write_all(rows, &overlap.ranks),
        OverlapBy::Kind => write_all(rows, &overlap.kinds),
        OverlapBy::Time => write_all(rows, &overlap.over_time),
        OverlapBy::Injection => {
            write_all(rows, document.injection.as_ref().map_or(&[], |injection| &injection.sites))
        }
    }
}

fn write_all(rows: &mut dyn RowWriter, items: &[impl Serialize]) -> io::Result<()> {
    let mut objects = Objects::new(rows);
    for item in items {
        let mut value = serde_json::to_value(item)?;
        if let Value::Object(cells) = &mut value {
            shorten(cells)?;
        }
        objects.write(&value)?;
    }
    Ok(())
}

/// Places become text, objects within a row columns of their own; a row has the same columns whatever is not known.
fn shorten(cells: &mut serde_json::Map<String, Value>) -> io::Result<()> {
    cells.remove("waited_for");
    cells.remove("completed_in");
    if let Some(site) = cells.remove("site") {
        for key in ["function", "file", "line", "module"] {
            cells.insert(key.to_owned(), site.get(key).cloned().unwrap_or(Value::Null));
        }
    }
    cells.remove("addresses");
    for inner in ["blocking", "gain"] {
        if let Some(Value::Object(values)) = cells.remove(inner) {
            for (key, value) in values {
                cells.insert(format!("{inner}_{key}"), value);
            }
        }
    }
    Ok(())
}
