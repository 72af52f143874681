//! The columns of tables for other programs. Keys are those of the JSON; a place is function, file and line, a call path one
//! cell.

use crate::export::rows::{text, Column};
use lapscope_analysis::diff::{SitePair, TimePair};
use lapscope_analysis::overlap::sums::Cause;
use lapscope_analysis::pending::PendingItem;
use lapscope_analysis::sites::Site;
use lapscope_data::symbols::FrameName;

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
    let place = completed.site.as_ref().map(FrameName::short).unwrap_or_default();
    format!("{} {place}", completed.call)
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
