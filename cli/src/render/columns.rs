//! The columns of tables for other programs. Keys are those of the JSON; a place is function, file and line, a call path one
//! cell.

use crate::export::rows::{text, Column};
use lapscope_data::symbols::FrameName;
use lapscope_measure::overlap::sums::Cause;
use lapscope_measure::reach::seen::ConfidenceBounds;
use lapscope_measure::reach::site::SiteReach;
use lapscope_measure::reach::who::TouchedBy;
use lapscope_measure::sites::Site;
use lapscope_report::diff::{SitePair, TimePair};
use lapscope_trace::injected::page::Arm;
use lapscope_watch::pending::PendingItem;

/// Of ways of injecting that `LAPSCOPE_INJECT=auto` tried.
pub fn pages() -> Vec<Column<Arm>> {
    vec![
        Column::new("mode", |arm: &Arm| text(&arm.mode)),
        Column::new("interval_us", |arm: &Arm| text(arm.interval_us)),
        Column::new("slots", |arm: &Arm| text(arm.slots)),
        Column::new("steps", |arm: &Arm| text(arm.steps)),
        Column::new("step_ns", |arm: &Arm| text(arm.step_ns)),
        Column::new("problem", |arm: &Arm| text(&arm.problem)),
    ]
}

/// Of call sites.
pub fn sites() -> Vec<Column<Site>> {
    fn of_frame<T: serde::Serialize>(site: &Site, part: fn(&FrameName) -> T) -> String {
        text(site.site.as_ref().map(part))
    }
    vec![
        Column::new("call", |site: &Site| text(&site.call)),
        Column::new("kind", |site: &Site| text(site.kind)),
        Column::new("function", |site: &Site| of_frame(site, |frame| frame.function.clone())),
        Column::new("file", |site: &Site| of_frame(site, |frame| frame.file.clone())),
        Column::new("line", |site: &Site| of_frame(site, |frame| frame.line)),
        Column::new("module", |site: &Site| of_frame(site, |frame| frame.module.clone())),
        Column::new("address", |site: &Site| of_frame(site, |frame| frame.address)),
        Column::new("ranks", |site: &Site| text(site.ranks)),
        Column::new("calls", |site: &Site| text(site.numbers.calls)),
        Column::new("bytes", |site: &Site| text(site.numbers.bytes)),
        Column::new("time_ns", |site: &Site| text(site.numbers.time_ns)),
        Column::new("share", |site: &Site| site.numbers.share.to_string()),
        Column::new("inside_ns", |site: &Site| text(site.numbers.inside_ns)),
        Column::new("exposed_ns", |site: &Site| text(site.numbers.exposed_ns)),
        Column::new("ended_requests", |site: &Site| text(site.numbers.ended_requests)),
        Column::new("overlap_window_ns", |site: &Site| text(site.numbers.overlap_window_ns)),
        Column::new("timed_requests", |site: &Site| text(site.numbers.timed_requests)),
        Column::new("mpi_ns", |site: &Site| text(site.numbers.mpi_ns)),
        Column::new("compute_ns", |site: &Site| text(site.numbers.compute_ns)),
        Column::new("unsuccessful_tests", |site: &Site| text(site.numbers.unsuccessful_tests)),
        Column::new("pending", |site: &Site| text(site.numbers.pending)),
        Column::new("completed_in", completed_in),
        Column::new("call_path", |site: &Site| call_path(site.frames.iter().flatten())),
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

/// Of call sites of two runs; a time in three columns: run a, run b, difference.
pub fn site_pairs() -> Vec<Column<SitePair>> {
    fn place(pair: &SitePair) -> Option<&FrameName> {
        pair.site_a.as_ref().or(pair.site_b.as_ref())
    }
    fn line(site: &Option<FrameName>) -> String {
        text(site.as_ref().and_then(|frame| frame.line))
    }
    let mut columns = vec![
        Column::new("call", |pair: &SitePair| text(&pair.call)),
        Column::new("kind", |pair: &SitePair| text(pair.kind)),
        Column::new("presence", |pair: &SitePair| text(pair.presence)),
        Column::new("function", |pair| text(place(pair).and_then(|place| place.function.as_ref()))),
        Column::new("file", |pair| text(place(pair).and_then(|place| place.file.as_ref()))),
        Column::new("line_a", |pair: &SitePair| line(&pair.site_a)),
        Column::new("line_b", |pair: &SitePair| line(&pair.site_b)),
        Column::new("calls_a", |pair: &SitePair| text(pair.calls_a)),
        Column::new("calls_b", |pair: &SitePair| text(pair.calls_b)),
        Column::new("bytes_a", |pair: &SitePair| text(pair.bytes_a)),
        Column::new("bytes_b", |pair: &SitePair| text(pair.bytes_b)),
    ];
    columns.extend(times("time", |pair| pair.time));
    columns.extend(times("inside", |pair| pair.inside));
    columns.extend(times("exposed", |pair| pair.exposed));
    for cause in Cause::ALL {
        columns.extend(times(&text(cause), move |pair| pair.exposed_by_cause.of(cause)));
    }
    columns
}

fn times(name: &str, of: impl Fn(&SitePair) -> TimePair + Copy + 'static) -> [Column<SitePair>; 3] {
    [
        Column::new(format!("{name}_a_ns"), move |pair| text(of(pair).a_ns)),
        Column::new(format!("{name}_b_ns"), move |pair| text(of(pair).b_ns)),
        Column::new(format!("{name}_difference_ns"), move |pair| text(of(pair).difference_ns)),
    ]
}

/// Of posts and blocking calls whose buffers were watched; of a time between bounds three columns, of who touched the first.
pub fn reach() -> Vec<Column<SiteReach>> {
    fn toucher(site: &SiteReach) -> Option<&TouchedBy> {
        site.touchers.first()
    }
    let mut columns = vec![
        Column::new("call", |site: &SiteReach| text(&site.place.call)),
        Column::new("side", |site: &SiteReach| text(site.side)),
    ];
    columns.extend(place("", |site: &SiteReach| site.place.site.as_ref()));
    columns.extend([
        Column::new("completed_in", |site: &SiteReach| {
            let wait = site.completed_in.as_ref();
            wait.map_or_else(String::new, |wait| named(&wait.call, wait.site.as_ref()))
        }),
        Column::new("min_bytes", |site: &SiteReach| text(site.min_bytes)),
        Column::new("max_bytes", |site: &SiteReach| text(site.max_bytes)),
        Column::new("ranks", |site: &SiteReach| text(site.ranks)),
        Column::new("buffers", |site: &SiteReach| text(site.buffers)),
        Column::new("words", |site: &SiteReach| text(site.words)),
        Column::new("verdict", |site: &SiteReach| text(site.verdict)),
    ]);
    columns.extend(bounds("all", |site| site.all));
    columns.extend(bounds("half", |site| site.half));
    columns.extend(bounds("word", |site| site.word));
    columns.extend([
        Column::new("order", |site: &SiteReach| text(site.order.order)),
        Column::new("toucher", |site| text(toucher(site).map(|by| by.toucher))),
    ]);
    columns.extend(place("touched_by_", |site| toucher(site).and_then(|by| by.site.as_ref())));
    columns.extend([
        Column::new("touched_by_share", |site| text(toucher(site).map(|by| by.share))),
        Column::new("transfers", |site: &SiteReach| text(site.worth.transfers)),
        Column::new("reference_ns", |site: &SiteReach| text(site.worth.reference_ns)),
        Column::new("exposed_ns", |site: &SiteReach| text(site.worth.exposed_ns)),
        Column::new("waited_for_ns", |site: &SiteReach| text(site.worth.waited_for_ns)),
        Column::new("recoverable_ns", |site: &SiteReach| text(site.worth.recoverable_ns)),
    ]);
    columns
}

/// Nanoseconds, those from word to word with fractions; empty where nothing is known, or nothing limits it.
fn bounds(
    name: &'static str,
    of: impl Fn(&SiteReach) -> Option<ConfidenceBounds> + Copy + 'static,
) -> [Column<SiteReach>; 3] {
    let cell = move |ns: Option<f64>| match name {
        "word" => text(ns),
        _ => text(ns.map(|ns| ns.round() as i64)),
    };
    [
        Column::new(format!("{name}_low_ns"), move |site| cell(of(site).map(|it| it.low))),
        Column::new(format!("{name}_estimate_ns"), move |site| {
            cell(of(site).and_then(|it| it.estimate))
        }),
        Column::new(format!("{name}_high_ns"), move |site| cell(of(site).and_then(|it| it.high))),
    ]
}

/// A place in four columns, whose names have `prefix` in front.
fn place<T>(
    prefix: &str,
    of: impl Fn(&T) -> Option<&FrameName> + Copy + 'static,
) -> [Column<T>; 4] {
    [
        Column::new(format!("{prefix}function"), move |it| {
            text(of(it).and_then(|at| at.function.as_ref()))
        }),
        Column::new(format!("{prefix}file"), move |it| {
            text(of(it).and_then(|at| at.file.as_ref()))
        }),
        Column::new(format!("{prefix}line"), move |it| text(of(it).and_then(|at| at.line))),
        Column::new(format!("{prefix}module"), move |it| {
            text(of(it).and_then(|at| at.module.as_ref()))
        }),
    ]
}

/// Of what did not end.
pub fn pending() -> Vec<Column<PendingItem>> {
    vec![
        Column::new("rank", |item: &PendingItem| text(item.rank)),
        Column::new("host", |item: &PendingItem| text(&item.host)),
        Column::new("ended", |item: &PendingItem| text(item.ended)),
        Column::new("what", |item: &PendingItem| text(item.what)),
        Column::new("call", |item: &PendingItem| text(&item.call)),
        Column::new("peer", |item: &PendingItem| text(item.peer)),
        Column::new("posted_peer", |item: &PendingItem| text(item.posted_peer)),
        Column::new("tag", |item: &PendingItem| text(item.tag)),
        Column::new("bytes", |item: &PendingItem| text(item.bytes)),
        Column::new("communicator", |item: &PendingItem| text(&item.communicator)),
        Column::new("begin_ns", |item: &PendingItem| text(item.begin_ns)),
        Column::new("begin_after_init_ns", |item: &PendingItem| text(item.begin_after_init_ns)),
        Column::new("call_path", |item: &PendingItem| call_path(item.frames.iter())),
    ]
}
