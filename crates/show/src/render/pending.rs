//! What did not end: rank by rank, and of many ranks place by place.

use std::io::{self, Write};

use super::sites::write_frames;
use lapscope_data::model::{Ended, Nanos, RankList};
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::plural;
use lapscope_data::text::ranks;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, time, time_range};
use lapscope_data::text::visible::visible;
use lapscope_measure::alike::MOST_ROWS;
use lapscope_watch::pending::groups::{PlaceGroup, RankOutside};
use lapscope_watch::pending::{PendingItem, PendingKind};

/// What of it is shown.
#[derive(Clone, Copy)]
pub struct PendingChoice<'a> {
    /// Items of each rank, and places of many ranks; 0 means all.
    pub top: usize,
    /// Ranks that are shown one by one, however many there are.
    pub listed: Option<&'a RankList>,
}

/// Writes what had not ended: of few ranks rank by rank, of many who is where.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    (items, outside, places): (&[PendingItem], &[RankOutside], &[PlaceGroup]),
    shown: PendingChoice<'_>,
    style: Style,
) -> io::Result<()> {
    if places.is_empty() {
        return writeln!(out, "Nothing is pending: every request ended and every call returned.");
    }
    let ranks: usize = places.iter().map(|place| place.count).sum();
    let are_few = ranks <= MOST_ROWS;
    if !are_few {
        write_places(out, places, ranks, shown.top, style)?;
    }
    let is_listed = |rank| shown.listed.map_or(are_few, |list| list.contains(rank));
    let mut is_first = are_few;
    let mut gap = |out: &mut dyn Write| match std::mem::take(&mut is_first) {
        true => Ok(()),
        false => writeln!(out),
    };
    let same_rank = |a: &PendingItem, b: &PendingItem| (a.rank, a.life) == (b.rank, b.life);
    for of_rank in items.chunk_by(same_rank).filter(|of_rank| is_listed(of_rank[0].rank)) {
        gap(out)?;
        write_rank(out, of_rank, shown.top, style)?;
    }
    let has_items = |it: &&RankOutside| {
        items.binary_search_by_key(&(it.rank, it.life), |item| (item.rank, item.life)).is_ok()
    };
    for it in outside.iter().filter(|it| is_listed(it.rank) && !has_items(it)) {
        gap(out)?;
        let text = format!(
            "on {} {} outside MPI, {}",
            it.host,
            ended(it.ended, true),
            last(it.last_after_init_ns) + &gone(it.gone_after_init_ns)
        );
        write_titled(out, &format!("rank {}", it.rank), &text, style)?;
    }
    Ok(())
}

/// "last recorded 31.0 s after MPI_Init": when it ended is not recorded.
fn last(after_init: Nanos) -> String {
    match after_init {
        Nanos(0) => "nothing recorded behind MPI_Init".to_owned(),
        after => format!("last recorded {} after MPI_Init", time(after)),
    }
}

/// ", gone by 36.0 s": when it ended lies between the two.
fn gone(after_init: Option<Nanos>) -> String {
    after_init.map_or_else(String::new, |after| format!(", gone by {}", time(after)))
}

/// " between 31.0 and 36.0 s after MPI_Init"
fn when(item: &PendingItem) -> String {
    let Some(gone) = item.gone_after_init_ns else { return String::new() };
    let range = time_range(item.last_after_init_ns, gone).replacen(" to ", " and ", 1);
    format!(" between {range} after MPI_Init")
}

fn ended(ended: Ended, is_one: bool) -> &'static str {
    match ended {
        Ended::Finalize => "reached MPI_Finalize",
        Ended::Abort => "called MPI_Abort",
        Ended::Exit => "exited without MPI_Finalize",
        Ended::Killed if is_one => "was killed",
        Ended::Killed => "were killed",
    }
}

fn write_places(
    out: &mut dyn Write,
    places: &[PlaceGroup],
    ranks: usize,
    top: usize,
    style: Style,
) -> io::Result<()> {
    let about = format!(
        "{} ranks by where they were; --each-rank prints them one by one, --each-rank=0-15,64 some of them",
        count(ranks as u64)
    );
    writeln!(out, "{}", style.headed_dimly("WHO IS WHERE", &about))?;
    let shown = if top == 0 { places.len() } else { top.min(places.len()) };
    for place in &places[..shown] {
        writeln!(out, "\n{}", style.wrap(&place_in_words(place, ranks), "", "  "))?;
        write_frames(out, &place.frames, "          ", style)?;
    }
    if shown < places.len() {
        let more: usize = places[shown..].iter().map(|place| place.count).sum();
        let places = places.len() - shown;
        let text = format!(
            "and {} rank{} at {places} other place{} (--top 0 shows all)",
            count(more as u64),
            plural(more as u64),
            plural(places as u64)
        );
        writeln!(out, "\n{text}")?;
    }
    Ok(())
}

/// "ranks 0-63, 65-127 (127) were killed inside MPI_Allreduce, entered 1.20 to 1.31 s after MPI_Init; 254 requests pending".
fn place_in_words(place: &PlaceGroup, of: usize) -> String {
    let is_one = place.count == 1;
    let who = ranks::in_words(&place.ranks, of);
    let number = match place.count {
        1 => String::new(),
        all if all == of => String::new(),
        some => format!("({}) ", count(some as u64)),
    };
    let hosts = list_hosts(place.hosts.iter().map(String::as_str));
    let hosts = if place.hosts.len() == 1 { format!("on {hosts} ") } else { String::new() };
    let (first, end) = (place.first_after_init_ns, place.last_after_init_ns);
    let is_outside = match place.ended {
        Ended::Finalize => "",
        _ => " outside MPI",
    };
    let what = match &place.call {
        Some(call) => format!(" inside {call}, entered {} after MPI_Init", time_range(first, end)),
        None if place.ended == Ended::Finalize => String::new(),
        None if first == end => format!("{is_outside}, {}", last(end)),
        None => format!("{is_outside}, last recorded {} after MPI_Init", time_range(first, end)),
    };
    let requests = match place.requests as u64 {
        0 => String::new(),
        requests => format!("; {} request{} pending", count(requests), plural(requests)),
    };
    format!("{who} {number}{hosts}{}{what}{requests}", ended(place.ended, is_one))
}

/// ", in it for at most 5.00 s"
fn at_most(item: &PendingItem) -> String {
    let inside = item.gone_after_init_ns.map(|gone| gone - item.begin_after_init_ns);
    inside.map_or_else(String::new, |inside| format!(", in it for at most {}", time(inside)))
}

fn write_titled(out: &mut dyn Write, title: &str, text: &str, style: Style) -> io::Result<()> {
    let title = style.bold(&title.replace(' ', "\u{a0}"));
    let text = style.wrap_painted(&format!("{title} {}", visible(text)), "", "  ");
    writeln!(out, "{}", text.replace('\u{a0}', " "))
}

fn write_rank(
    out: &mut dyn Write,
    items: &[PendingItem],
    top: usize,
    style: Style,
) -> io::Result<()> {
    let first = &items[0];
    let requests = items.iter().filter(|item| item.what == PendingKind::Request).count();
    let text = format!(
        "on {} {}{}; {requests} request{} pending",
        first.host,
        ended(first.ended, true),
        when(first),
        plural(requests as u64)
    );
    write_titled(out, &format!("rank {}", first.rank), &text, style)?;
    let shown = if top == 0 { items.len() } else { top.min(items.len()) };
    for item in &items[..shown] {
        // How long it then hung is known as a bound: the end of a process that was killed is not recorded.
        let (lead, begun, end) = match item.what {
            PendingKind::Call => {
                ("  inside  ", "entered", format!(" and not left{}", at_most(item)))
            }
            PendingKind::Request => ("  pending ", "posted", String::new()),
        };
        let head = format!(
            "{lead}{}, {begun} {} after MPI_Init{end}",
            item.describe_without_place(),
            time(item.begin_after_init_ns)
        );
        writeln!(out, "{}", style.wrap(head.trim_start(), "  ", "          "))?;
        write_frames(out, &item.frames, "          ", style)?;
    }
    if shown < items.len() {
        writeln!(out, "  and {} more (--top 0 shows all)", items.len() - shown)?;
    }
    Ok(())
}
