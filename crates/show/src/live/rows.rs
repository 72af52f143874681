//! Rows of ranks, one by one or put together.

use ratatui::text::Line;

use super::paint::{place, rate, Chosen, Paint};
use lapscope_data::state::Condition;
use lapscope_data::text::style::{bar, display_width, Style};
use lapscope_data::text::units::{percent, time};
use lapscope_measure::alike::MOST_ROWS;
use lapscope_watch::live::bins::{bins, LiveBin, RankOrder};
use lapscope_watch::live::{Moment, RankPace};

/// Narrower screens have no bars.
const FEWEST_WITH_BARS: usize = 50;
const BAR: usize = 10;
const SHARE: usize = 8;
const RATE: usize = 9;

/// A title and rows, at most `height` lines. Scrolls no further than to the last row.
pub fn ranks(
    moment: &Moment,
    chosen: &mut Chosen,
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let room = height.saturating_sub(1);
    let is_binned = chosen.binned.unwrap_or(moment.ranks.len() > MOST_ROWS.max(room));
    let (rows, columns) = match is_binned {
        true => (of_bins(moment, width, room, paint), String::new()),
        false => (one_by_one(moment, chosen.order, width, paint), columns(moment, width)),
    };
    let order = chosen.order.words();
    chosen.scroll = chosen.scroll.min(rows.len().saturating_sub(room));
    let hidden = rows.len().saturating_sub(room);
    let mut title = vec![paint.bold("RANKS"), paint.dim(format!("{columns}  by {order}"))];
    if is_binned {
        title[1] = paint.dim("  put together, exposed mean and range");
    } else if hidden > 0 {
        let last = chosen.scroll + room;
        title.push(paint.dim(format!("  {} to {last} of {}", chosen.scroll + 1, rows.len())));
    }
    if let Some(rank) = moment.awaited.filter(|_| !is_binned || width >= 80) {
        title.push(paint.plain(format!("  the others wait for rank {rank}")));
    }
    let mut lines = vec![Line::from(title)];
    lines.extend(rows.into_iter().skip(chosen.scroll).take(room));
    lines.truncate(height);
    lines
}

/// Names of columns, each above the end of its numbers, behind the word RANKS.
fn columns(moment: &Moment, width: usize) -> String {
    if width < FEWEST_WITH_BARS {
        return String::new();
    }
    let room = (label_width(moment) + 1 + BAR + SHARE).saturating_sub("RANKS".len());
    format!("{:>room$}{:>RATE$}", "exposed", "calls/s")
}

fn label_width(moment: &Moment) -> usize {
    moment.ranks.iter().map(|rank| rank.rank.to_string().len()).max().unwrap_or(1)
}

fn one_by_one(moment: &Moment, order: RankOrder, width: usize, paint: Paint) -> Vec<Line<'static>> {
    let mut ranks: Vec<&RankPace> = moment.ranks.iter().collect();
    order.sort(&mut ranks);
    let label = label_width(moment);
    ranks.into_iter().map(|rank| row(rank, label, width, paint)).collect()
}

fn row(rank: &RankPace, label: usize, width: usize, paint: Paint) -> Line<'static> {
    let mut spans = vec![paint.plain(format!("{:>label$} ", rank.rank.to_string()))];
    let share = rank.pace.exposed_share;
    if width >= FEWEST_WITH_BARS {
        spans.push(paint.bar(filled(share)));
    }
    spans.push(paint.plain(format!("{:>SHARE$}", percent(share))));
    if width >= FEWEST_WITH_BARS {
        spans.push(paint.plain(format!("{:>RATE$}", rate(rank.pace.calls_per_s))));
    }
    let (text, is_grave) = doing(rank);
    let used: usize = spans.iter().map(|span| display_width(&span.content)).sum();
    let text = format!("  {}", Style::cut(&text, width.saturating_sub(used + 2)));
    spans.push(if is_grave { paint.alert(text) } else { paint.plain(text) });
    Line::from(spans)
}

fn filled(share: f64) -> String {
    let bar = bar(share, BAR);
    let gap = BAR - display_width(&bar);
    format!("{bar}{}", " ".repeat(gap))
}

/// What it does now, and whether somebody should know.
fn doing(rank: &RankPace) -> (String, bool) {
    let word = match rank.condition {
        Condition::Finalized => return (format!("has ended, {} calls", rank.calls), false),
        Condition::Aborted => return ("called MPI_Abort".into(), true),
        Condition::Exited => return ("ended without MPI_Finalize".into(), true),
        Condition::Killed => return ("was killed".into(), true),
        Condition::Unknown => return ("cannot be seen from here".into(), false),
        Condition::Finalizing => "MPI_Finalize".to_owned(),
        Condition::Runs => match &rank.inside {
            Some(inside) => {
                let place = place(&inside.call, inside.site.as_ref());
                format!("{} {place}", time(inside.since_ns))
            }
            None => format!("{} outside MPI", time(rank.quiet_ns)),
        },
    };
    match rank.is_stopped {
        true => (format!("STOPPED  {word}"), true),
        false => (word, false),
    }
}

fn of_bins(moment: &Moment, width: usize, room: usize, paint: Paint) -> Vec<Line<'static>> {
    let bins = bins(&moment.ranks, room);
    let name = |bin: &LiveBin| match bin.count {
        1 => bin.first.to_string(),
        _ => format!("{}-{}", bin.first, bin.last),
    };
    let label = bins.iter().map(|bin| name(bin).len()).max().unwrap_or(1);
    bins.iter().map(|bin| bin_row(bin, &name(bin), label, width, paint)).collect()
}

fn bin_row(bin: &LiveBin, name: &str, label: usize, width: usize, paint: Paint) -> Line<'static> {
    let mut spans = vec![paint.plain(format!("{name:>label$} "))];
    if width >= FEWEST_WITH_BARS {
        spans.push(paint.bar(filled(bin.exposed_share)));
    }
    let range = format!("{:.0} to {:.0} %", bin.least_exposed * 100.0, bin.most_exposed * 100.0);
    spans.push(paint.plain(format!("{:>7} {range:>12}", percent(bin.exposed_share))));
    if width >= FEWEST_WITH_BARS {
        spans.push(paint.plain(format!(" {:>7} calls/s", rate(bin.calls_per_s))));
    }
    if bin.over > 0 {
        spans.push(paint.plain(format!("  {} ended", bin.over)));
    }
    if let Some((rank, quiet)) = bin.quietest {
        spans.push(paint.dim(format!("  rank {rank} quiet for {}", time(quiet))));
    }
    Line::from(spans)
}
