//! The columns of tables for other programs. Keys are those of the JSON; a place is function, file and line, a call path one
//! cell.

use crate::format::rows::{text, ExportColumn};
use lapscope_data::symbols::FrameName;
use lapscope_measure::overlap::sums::Cause;
use lapscope_measure::reach::bounds::ConfidenceBounds;
use lapscope_measure::reach::site::SiteReach;
use lapscope_measure::reach::who::TouchedBy;
use lapscope_measure::sites::Site;
use lapscope_report::diff::{SitePair, TimePair};
use lapscope_trace::injected::page::Arm;
use lapscope_watch::pending::PendingItem;

/// Columns of ways of injecting that `LAPSCOPE_INJECT=auto` tried.
pub fn pages() -> Vec<ExportColumn<Arm>> {
    vec![
        ExportColumn::new("mode", |arm: &Arm| text(&arm.mode)),
        ExportColumn::new("interval_us", |arm: &Arm| text(arm.interval_us)),
        ExportColumn::new("slots", |arm: &Arm| text(arm.slots)),
        ExportColumn::new("steps", |arm: &Arm| text(arm.steps)),
        ExportColumn::new("step_ns", |arm: &Arm| text(arm.step_ns)),
        ExportColumn::new("problem", |arm: &Arm| text(&arm.problem)),
    ]
}

/// Columns of call sites.
pub fn sites() -> Vec<ExportColumn<Site>> {
    fn of_frame<T: serde::Serialize>(site: &Site, part: fn(&FrameName) -> T) -> String {
        text(site.site.as_ref().map(part))
    }
    vec![
        ExportColumn::new("call", |site: &Site| text(&site.call)),
        ExportColumn::new("kind", |site: &Site| text(site.kind)),
        ExportColumn::new("function", |site: &Site| of_frame(site, |frame| frame.function.clone())),
        ExportColumn::new("file", |site: &Site| of_frame(site, |frame| frame.file.clone())),
        ExportColumn::new("line", |site: &Site| of_frame(site, |frame| frame.line)),
        ExportColumn::new("module", |site: &Site| of_frame(site, |frame| frame.module.clone())),
        ExportColumn::new("address", |site: &Site| of_frame(site, |frame| frame.address)),
        ExportColumn::new("ranks", |site: &Site| text(site.ranks)),
        ExportColumn::new("calls", |site: &Site| text(site.numbers.calls)),
        ExportColumn::new("bytes", |site: &Site| text(site.numbers.bytes)),
        ExportColumn::new("time_ns", |site: &Site| text(site.numbers.time_ns)),
        ExportColumn::new("share", |site: &Site| site.numbers.share.to_string()),
        ExportColumn::new("inside_ns", |site: &Site| text(site.numbers.inside_ns)),
        ExportColumn::new("exposed_ns", |site: &Site| text(site.numbers.exposed_ns)),
        ExportColumn::new("ended_requests", |site: &Site| text(site.numbers.ended_requests)),
        ExportColumn::new("overlap_window_ns", |site: &Site| text(site.numbers.overlap_window_ns)),
        ExportColumn::new("timed_requests", |site: &Site| text(site.numbers.timed_requests)),
        ExportColumn::new("mpi_ns", |site: &Site| text(site.numbers.mpi_ns)),
        ExportColumn::new("compute_ns", |site: &Site| text(site.numbers.compute_ns)),
        ExportColumn::new("unsuccessful_tests", |site: &Site| {
            text(site.numbers.unsuccessful_tests)
        }),
        ExportColumn::new("pending", |site: &Site| text(site.numbers.pending)),
        ExportColumn::new("completed_in", completed_in),
        ExportColumn::new("call_path", |site: &Site| call_path(site.frames.iter().flatten())),
    ]
}

fn completed_in(site: &Site) -> String {
    let Some(completed) = &site.completed_in else { return String::new() };
    named(&completed.call, completed.site.as_ref())
}

fn named(call: &str, site: Option<&FrameName>) -> String {
    format!("{call} {}", site.map(FrameName::short).unwrap_or_default())
}

fn call_path<'a>(frames: impl Iterator<Item = &'a FrameName>) -> String {
    frames.map(FrameName::short).collect::<Vec<_>>().join(" < ")
}

/// Columns of call sites of two runs; a time in three columns: run a, run b, difference.
pub fn site_pairs() -> Vec<ExportColumn<SitePair>> {
    fn place(pair: &SitePair) -> Option<&FrameName> {
        pair.site_a.as_ref().or(pair.site_b.as_ref())
    }
    fn line(site: &Option<FrameName>) -> String {
        text(site.as_ref().and_then(|frame| frame.line))
    }
    let mut columns = vec![
        ExportColumn::new("call", |pair: &SitePair| text(&pair.call)),
        ExportColumn::new("kind", |pair: &SitePair| text(pair.kind)),
        ExportColumn::new("presence", |pair: &SitePair| text(pair.presence)),
        ExportColumn::new("function", |pair| {
            text(place(pair).and_then(|place| place.function.as_ref()))
        }),
        ExportColumn::new("file", |pair| text(place(pair).and_then(|place| place.file.as_ref()))),
        ExportColumn::new("line_a", |pair: &SitePair| line(&pair.site_a)),
        ExportColumn::new("line_b", |pair: &SitePair| line(&pair.site_b)),
        ExportColumn::new("calls_a", |pair: &SitePair| text(pair.calls_a)),
        ExportColumn::new("calls_b", |pair: &SitePair| text(pair.calls_b)),
        ExportColumn::new("bytes_a", |pair: &SitePair| text(pair.bytes_a)),
        ExportColumn::new("bytes_b", |pair: &SitePair| text(pair.bytes_b)),
    ];
    columns.extend(times("time", |pair| pair.time));
    columns.extend(times("inside", |pair| pair.inside));
    columns.extend(times("exposed", |pair| pair.exposed));
    for cause in Cause::ALL {
        columns.extend(times(&text(cause), move |pair| pair.exposed_by_cause.by_cause(cause)));
    }
    columns
}

fn times(
    name: &str,
    of: impl Fn(&SitePair) -> TimePair + Copy + 'static,
) -> [ExportColumn<SitePair>; 3] {
    [
        ExportColumn::new(format!("{name}_a_ns"), move |pair| text(of(pair).a_ns)),
        ExportColumn::new(format!("{name}_b_ns"), move |pair| text(of(pair).b_ns)),
        ExportColumn::new(format!("{name}_difference_ns"), move |pair| {
            text(of(pair).difference_ns)
        }),
    ]
}

/// Columns of posts and blocking calls whose buffers were watched; a time between bounds has three columns, who touched has
/// the first.
pub fn reach() -> Vec<ExportColumn<SiteReach>> {
    fn toucher(site: &SiteReach) -> Option<&TouchedBy> {
        site.touchers.first()
    }
    let mut columns = vec![
        ExportColumn::new("call", |site: &SiteReach| text(&site.place.call)),
        ExportColumn::new("side", |site: &SiteReach| text(site.side)),
    ];
    columns.extend(place("", |site: &SiteReach| site.place.site.as_ref()));
    columns.extend([
        ExportColumn::new("completed_in", |site: &SiteReach| {
            let wait = site.completed_in.as_ref();
            wait.map_or_else(String::new, |wait| named(&wait.call, wait.site.as_ref()))
        }),
        ExportColumn::new("min_bytes", |site: &SiteReach| text(site.min_bytes)),
        ExportColumn::new("max_bytes", |site: &SiteReach| text(site.max_bytes)),
        ExportColumn::new("ranks", |site: &SiteReach| text(site.ranks)),
        ExportColumn::new("buffers", |site: &SiteReach| text(site.buffers)),
        ExportColumn::new("words", |site: &SiteReach| text(site.words)),
        ExportColumn::new("verdict", |site: &SiteReach| text(site.verdict)),
    ]);
    columns.extend(bounds("all", |site| site.all));
    columns.extend(bounds("half", |site| site.half));
    columns.extend(bounds("word", |site| site.word));
    columns.extend([
        ExportColumn::new("order", |site: &SiteReach| text(site.order.order)),
        ExportColumn::new("toucher", |site| text(toucher(site).map(|by| by.toucher))),
    ]);
    columns.extend(place("touched_by_", |site| toucher(site).and_then(|by| by.site.as_ref())));
    columns.extend([
        ExportColumn::new("touched_by_share", |site| text(toucher(site).map(|by| by.share))),
        ExportColumn::new("transfers", |site: &SiteReach| text(site.worth.transfers)),
        ExportColumn::new("reference_ns", |site: &SiteReach| text(site.worth.reference_ns)),
        ExportColumn::new("exposed_ns", |site: &SiteReach| text(site.worth.exposed_ns)),
        ExportColumn::new("waited_for_ns", |site: &SiteReach| text(site.worth.waited_for_ns)),
        ExportColumn::new("recoverable_ns", |site: &SiteReach| text(site.worth.recoverable_ns)),
    ]);
    columns
}

/// Nanoseconds, those from word to word with fractions; empty where nothing is known, or nothing limits it.
fn bounds(
    name: &'static str,
    of: impl Fn(&SiteReach) -> Option<ConfidenceBounds> + Copy + 'static,
) -> [ExportColumn<SiteReach>; 3] {
    let cell = move |ns: Option<f64>| match name {
        "word" => text(ns),
        _ => text(ns.map(|ns| ns.round() as i64)),
    };
    [
        ExportColumn::new(format!("{name}_low_ns"), move |site| cell(of(site).map(|it| it.low))),
        ExportColumn::new(format!("{name}_estimate_ns"), move |site| {
            cell(of(site).and_then(|it| it.estimate))
        }),
        ExportColumn::new(format!("{name}_high_ns"), move |site| {
            cell(of(site).and_then(|it| it.high))
        }),
    ]
}

/// A place in four columns, whose names have `prefix` in front.
fn place<T>(
    prefix: &str,
    of: impl Fn(&T) -> Option<&FrameName> + Copy + 'static,
) -> [ExportColumn<T>; 4] {
    [
        ExportColumn::new(format!("{prefix}function"), move |it| {
            text(of(it).and_then(|at| at.function.as_ref()))
        }),
        ExportColumn::new(format!("{prefix}file"), move |it| {
            text(of(it).and_then(|at| at.file.as_ref()))
        }),
        ExportColumn::new(format!("{prefix}line"), move |it| text(of(it).and_then(|at| at.line))),
        ExportColumn::new(format!("{prefix}module"), move |it| {
            text(of(it).and_then(|at| at.module.as_ref()))
        }),
    ]
}

/// Columns of what did not end.
pub fn pending() -> Vec<ExportColumn<PendingItem>> {
    vec![
        ExportColumn::new("rank", |item: &PendingItem| text(item.rank)),
        ExportColumn::new("host", |item: &PendingItem| text(&item.host)),
        ExportColumn::new("ended", |item: &PendingItem| text(item.ended)),
        ExportColumn::new("what", |item: &PendingItem| text(item.what)),
        ExportColumn::new("call", |item: &PendingItem| text(&item.call)),
        ExportColumn::new("peer", |item: &PendingItem| text(item.peer)),
        ExportColumn::new("posted_peer", |item: &PendingItem| text(item.posted_peer)),
        ExportColumn::new("tag", |item: &PendingItem| text(item.tag)),
        ExportColumn::new("bytes", |item: &PendingItem| text(item.bytes)),
        ExportColumn::new("communicator", |item: &PendingItem| text(&item.communicator)),
        ExportColumn::new("begin_ns", |item: &PendingItem| text(item.begin_ns)),
        ExportColumn::new("begin_after_init_ns", |item: &PendingItem| {
            text(item.begin_after_init_ns)
        }),
        ExportColumn::new("call_path", |item: &PendingItem| call_path(item.frames.iter())),
    ]
}
