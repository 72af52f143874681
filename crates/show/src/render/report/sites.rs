//! Tables of call sites and of sizes.

use std::io::{self, Write};

use crate::render::cause;
use crate::render::table::{Align, Table};
use lapscope_advise::problem::unattributed_in_words;
use lapscope_data::model::Nanos;
use lapscope_data::symbols::{base_name, short_function};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, round_bytes, time, MeanOfRanks};
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_measure::overlap::sums::{is_vague, Cause};
use lapscope_measure::sites::{CallNumbers, Site, SiteKind};
use lapscope_measure::transfers::SizeKind;
use lapscope_report::report::Report;
use lapscope_trace::wrappers::Wrapper;

const NUMBER_COLUMNS: [(&str, Align); 12] = [
    ("share", Align::Right),
    ("time", Align::Right),
    ("call", Align::Left),
    ("calls", Align::Right),
    ("bytes", Align::Right),
    ("in call", Align::Right),
    ("exposed", Align::Right),
    ("window", Align::Right),
    ("computing", Align::Right),
    ("other MPI", Align::Right),
    ("overlapped", Align::Right),
    ("possible", Align::Right),
];

/// What goes below its row first where the output is narrow.
const LESS_IMPORTANT: [&str; 3] = ["other MPI", "in call", "calls"];

/// What was overlapped of a row.
#[derive(Clone, Copy)]
struct RowOverlap<'a> {
    part: Option<&'a OverlapTimes>,
    /// Whether some row of the report has it.
    is_known: bool,
}

/// One row of numbers under [`NUMBER_COLUMNS`]. Achieved and possible overlap, where they are known, stand in place of what
/// the overlap windows held.
fn cells(
    label: String,
    numbers: &CallNumbers,
    has_requests: bool,
    overlap: RowOverlap<'_>,
    mean: MeanOfRanks,
) -> Vec<String> {
    let of_requests = |text: Option<String>| text.filter(|_| has_requests).unwrap_or_default();
    let part = overlap.part.filter(|part| part.measured > 0);
    let of_overlap_windows = |text: Option<String>| of_requests(text.filter(|_| !overlap.is_known));
    vec![
        percent(numbers.share),
        mean.time(numbers.time_ns),
        label,
        count(numbers.calls),
        if numbers.bytes > 0 { bytes(numbers.bytes) } else { String::new() },
        mean.time(numbers.inside_ns),
        of_requests((numbers.ended_requests > 0).then(|| mean.time(numbers.exposed_ns))),
        of_requests(numbers.overlap_window_ns.mean(numbers.ended_requests).map(time)),
        of_overlap_windows(numbers.compute_share().map(percent)),
        of_overlap_windows(numbers.mpi_ns.mean(numbers.timed_requests).map(time)),
        part.map(overlapped).unwrap_or_default(),
        part.map(possible).unwrap_or_default(),
    ]
}

fn overlapped(part: &OverlapTimes) -> String {
    whole_percents(part.achieved_low_ns, part.achieved_high_ns, part)
}

fn possible(part: &OverlapTimes) -> String {
    whole_percents(part.possible_low_ns, part.possible_ns, part)
}

/// "62 %", "12-41 %"
fn whole_percents(low: Nanos, high: Nanos, part: &OverlapTimes) -> String {
    let low = whole_percent(low, part);
    let high = whole_percent(high, part);
    if low == high {
        low
    } else {
        format!("{}-{high}", low.trim_end_matches(" %"))
    }
}

fn whole_percent(ns: Nanos, part: &OverlapTimes) -> String {
    format!("{:.0} %", ns.share_of(part.reference_ns) * 100.0)
}

/// What the columns of call sites are, as far as there are such.
fn legend(report: &Report) -> &'static str {
    match (report.totals.requests > 0, report.overlap.totals.numbers.measured > 0) {
        (true, true) => {
            "Times are means over ranks. Exposed: in the calls that completed these requests, shared out equally; window: overlap \
             window, from the post to that call, a mean; overlapped and possible: shares of the reference time of its transfers; \
             last: the main cause of exposed time"
        }
        (true, false) => {
            "Times are means over ranks. Exposed: in the calls that completed these requests, shared out equally. Means per \
             request: overlap window, from the post to that call; how much of it was computation; how much other MPI"
        }
        (false, _) => "Times are means over ranks; last: the main cause of exposed time",
    }
}

pub(super) fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.sites.is_empty() {
        return writeln!(out, "\nNo MPI communication was recorded.");
    }
    let shown = report.sites.len();
    let which = if shown < report.site_count {
        format!("{shown} of {}", report.site_count)
    } else {
        format!("{shown}")
    };
    write_completing(out, report, style)?;
    writeln!(out, "\n{}", style.headed("CALL SITES", &which))?;
    let note = legend(report);
    writeln!(out, "{}", style.dim(&style.wrap(note, "  ", "  ")))?;
    let is_known = report.overlap.totals.numbers.measured > 0;
    site_table(&report.sites, is_known, report.mean()).write(out, style)?;
    let unattributed = report.totals.unattributed_exposed_ns;
    if unattributed.0 > 0 {
        let text = format!(
            "{} of the exposed time is of {}",
            report.mean().time(unattributed),
            unattributed_in_words(&report.problems)
        );
        writeln!(out, "{}", style.wrap(&text, "  ", "  "))?;
    }
    if let Some(text) = without_lines(&report.sites) {
        writeln!(out, "{}", style.dim(&style.wrap(&text, "  ", "  ")))?;
    }
    write_wrappers(out, report.wrappers.iter(), style)
}

/// How places get lines that have none.
fn without_lines(sites: &[Site]) -> Option<String> {
    const SHOWN: usize = 3;
    let mut modules: Vec<&str> = Vec::new();
    for frame in sites.iter().filter_map(|site| site.site.as_ref()) {
        let module = frame.module.as_deref().filter(|_| frame.file.is_none() && !frame.is_mpi());
        modules.extend(module.map(base_name).filter(|name| !modules.contains(name)));
    }
    let more = if modules.len() > SHOWN { " and others" } else { "" };
    let named = modules.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    (!modules.is_empty()).then(|| {
        format!("no lines are known in {named}{more}: compile with -g, which costs no run time, or put its debug file beside it")
    })
}

/// Says which functions are left out of the names of call sites.
///
/// # Errors
/// Of the writer.
pub fn write_wrappers<'a>(
    out: &mut dyn Write,
    wrappers: impl Iterator<Item = &'a Wrapper>,
    style: Style,
) -> io::Result<()> {
    const SHOWN: usize = 4;
    let functions: Vec<String> =
        wrappers.map(|wrapper| short_function(&wrapper.function)).collect();
    if functions.is_empty() {
        return Ok(());
    }
    let more = match functions.len().checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    let named = functions[..functions.len().min(SHOWN)].join(", ");
    let text = format!(
        "left out, since they only pass calls on to MPI (their callers are the call sites; --wrapper none shows them): \
         {named}{more}"
    );
    writeln!(out, "{}", style.dim(&style.wrap(&text, "  ", "  ")))
}

/// Where the program stands still: each completing call once, whatever it completed.
fn write_completing(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    const SHOWN: usize = 5;
    // One alone is named at every site of a request.
    if report.completing_sites.len() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}",
        style.headed_dimly("WHERE REQUESTS COMPLETE", "time: mean over ranks; mean: of a call")
    )?;
    let mut table = Table::new(&[
        ("share", Align::Right),
        ("time", Align::Right),
        ("calls", Align::Right),
        ("mean", Align::Right),
        ("call site", Align::Left),
    ]);
    for site in report.completing_sites.iter().take(SHOWN) {
        let numbers = &site.numbers;
        let cells = vec![
            percent(numbers.share),
            report.mean().time(numbers.inside_ns),
            count(numbers.calls),
            numbers.inside_ns.mean(numbers.calls).map(time).unwrap_or_default(),
            format!("{} {}", site.call, place(site)),
        ];
        table.row(cells, None);
    }
    table.write(out, style)
}

/// The table of call sites, each with its place on a line of its own.
///
/// # Errors
/// Of the writer.
pub fn write_site_table(
    out: &mut dyn Write,
    sites: &[Site],
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    site_table(sites, false, mean).write(out, style)
}

fn site_table(sites: &[Site], is_known: bool, mean: MeanOfRanks) -> Table {
    let mut table = Table::new(&NUMBER_COLUMNS).giving_up(&LESS_IMPORTANT);
    for site in sites {
        let is_request = site.kind == SiteKind::Request;
        let overlap = RowOverlap { part: site.overlap.as_ref(), is_known };
        let cells = cells(site_label(site), &site.numbers, is_request, overlap, mean);
        table.row(cells, Some(place_and_cause(site)));
    }
    table
}

/// The call, and that it is about unsuccessful tests when it is.
pub fn site_label(site: &Site) -> String {
    match site.kind {
        SiteKind::UnsuccessfulTest => format!("{} (unsuccessful)", site.call),
        _ => site.call.clone(),
    }
}

const COMPLETED_IN: &str = ", completed in ";

/// Place, and what was mostly waited for.
fn place_and_cause(site: &Site) -> String {
    if site.overlap.is_none() {
        return place(site);
    }
    let cause = site.overlap.as_ref().and_then(mostly).map(|cause| format!("; {cause}"));
    place(site).replace(COMPLETED_IN, " → ") + &cause.unwrap_or_default()
}

/// "late partner 83 %"
pub(crate) fn mostly(part: &OverlapTimes) -> Option<String> {
    let (all, causes) = part.exposed();
    let (cause, most) = Cause::ALL.into_iter().zip(causes).max_by_key(|(_, ns)| *ns)?;
    let share = most.share_of(all) * 100.0;
    let vague =
        is_vague(part.exposed_no_local_progress_low_ns, part.exposed_no_local_progress_high_ns);
    (most.0 > 0).then(|| format!("{} {share:.0} %", cause::main_name(cause, None, vague)))
}

/// "exchange halo.c:42, completed in MPI_Waitall exchange halo.c:57".
pub(crate) fn place(site: &Site) -> String {
    let own = site.site.as_ref().map(|frame| frame.short());
    let mut text = own.clone().unwrap_or_else(|| "(no call path)".to_owned());
    if let Some(waited) = site.completed_in.as_ref().filter(|waited| waited.exposed_ns.0 > 0) {
        text += COMPLETED_IN;
        text += &waited.call;
        if let Some(frame) = &waited.site {
            text += &format!(" {}", frame.short());
        }
    }
    if site.numbers.pending > 0 {
        text += &format!(", {} never ended", site.numbers.pending);
    }
    text
}

pub(super) fn write_sizes(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let is_known = report.overlap.totals.numbers.measured > 0;
    for (kind, title) in [
        (SizeKind::PointToPoint, "MESSAGE SIZES"),
        (SizeKind::Collective, "COLLECTIVES BY SIZE ON EACH RANK"),
        (SizeKind::Rma, "ONE-SIDED BY SIZE"),
        (SizeKind::Io, "FILES BY SIZE"),
    ] {
        let mut columns = NUMBER_COLUMNS;
        columns[2].0 = "size";
        let mut table = Table::new(&columns).giving_up(&LESS_IMPORTANT);
        let mut rows = 0;
        for class in report.size_classes.iter().filter(|class| class.kind == kind) {
            let label = match (class.from_bytes, class.below_bytes) {
                (0, _) => "0 B".to_owned(),
                (1, _) => "1 B".to_owned(),
                (from, below) => format!("{} to {}", round_bytes(from), round_bytes(below)),
            };
            let has_requests = class.numbers.ended_requests > 0;
            let overlap = RowOverlap { part: class.overlap.as_ref(), is_known };
            table.row(cells(label, &class.numbers, has_requests, overlap, report.mean()), None);
            rows += 1;
        }
        if rows > 0 {
            writeln!(out, "\n{}", style.bold(title))?;
            table.write(out, style)?;
        }
    }
    Ok(())
}
