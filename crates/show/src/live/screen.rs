//! A moment of a job as lines that fit the screen, whatever its size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::looker::JobMoment;
use super::paint::{place, rate, Chosen, Paint};
use super::rows;
use lapscope_data::model::Nanos;
use lapscope_data::text::library::library_name;
use lapscope_data::text::style::display_width;
use lapscope_data::text::units::{bytes, percent, time};
use lapscope_data::text::visible::visible;
use lapscope_measure::alike::MOST_ROWS;
use lapscope_watch::live::{Alert, Moment, SitePace};

/// Draws all of it. Scrolls no further than there is something to see.
pub fn draw(
    buffer: &mut Buffer,
    area: Rect,
    seen: &JobMoment,
    chosen: &mut Chosen,
    keys: Option<&str>,
) {
    let paint = Paint::new(chosen.color);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let moment = &seen.moment;
    let mut lines = head(seen, chosen, width, height, paint);
    let keys = keys.filter(|_| height > 2);
    let body = height.saturating_sub(lines.len() + usize::from(keys.is_some()));
    let site_rows = sites_height(moment, body);
    lines.extend(rows::ranks(moment, chosen, width, body - site_rows, paint));
    if site_rows > 0 {
        if lines.len() + site_rows + usize::from(keys.is_some()) < height {
            lines.push(Line::default());
        }
        lines.extend(sites(moment, width, site_rows, paint));
    }
    put(buffer, area, &lines, keys, paint);
}

/// Lines from the top, and what the keys do at the bottom.
pub fn put(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>], keys: Option<&str>, paint: Paint) {
    let room = area.height.saturating_sub(u16::from(keys.is_some()));
    for (line, y) in lines.iter().zip(area.y..area.y + room) {
        buffer.set_line(area.x, y, line, area.width);
    }
    if let Some(keys) = keys {
        let line = Line::from(paint.dim(keys));
        buffer.set_line(area.x, area.y + room, &line, area.width);
    }
}

fn head(
    seen: &JobMoment,
    chosen: &Chosen,
    width: usize,
    height: usize,
    paint: Paint,
) -> Vec<Line<'static>> {
    let moment = &seen.moment;
    let mut lines = vec![title(seen, chosen, width, paint)];
    if height >= 8 {
        lines.push(Line::from(paint.plain(about(moment))));
    }
    if height >= 4 {
        lines.push(exposed(moment, width, paint));
    }
    if height >= 10 && !moment.is_over {
        lines.push(Line::from(paint.plain(rates(moment))));
    }
    let room = (height / 6).max(usize::from(height >= 5));
    lines.extend(alerts(&moment.alerts, width, room, paint));
    if height >= 20 {
        lines.push(Line::default());
    }
    lines
}

fn title(seen: &JobMoment, chosen: &Chosen, width: usize, paint: Paint) -> Line<'static> {
    let moment = &seen.moment;
    let state = match () {
        () if moment.is_over => "the job has ended",
        () if chosen.is_paused => "paused",
        () => "runs",
    };
    let state = format!("{}  {state}", time(moment.age_ns));
    let name = "lapscope live";
    let run = visible(&seen.run.display().to_string()).into_owned();
    let room = width.saturating_sub(name.len() + 2 + display_width(&state) + 2);
    let run = lapscope_data::text::style::Style::cut(&run, room);
    let gap = width.saturating_sub(name.len() + 2 + display_width(&run) + display_width(&state));
    let state = match moment.is_over || chosen.is_paused {
        true => paint.bold(state),
        false => paint.plain(state),
    };
    Line::from(vec![
        paint.bold(name),
        paint.plain("  "),
        paint.plain(run),
        paint.plain(" ".repeat(gap)),
        state,
    ])
}

fn about(moment: &Moment) -> String {
    let seen = moment.ranks.len() as i64;
    let ranks = match seen < moment.world_size {
        true => format!("{seen} of {} ranks seen", moment.world_size),
        false => format!("{seen} rank{}", if seen == 1 { "" } else { "s" }),
    };
    let hosts = match (moment.hosts, moment.ranks.first()) {
        (1, Some(rank)) => format!("on {}", rank.host),
        (hosts, _) => format!("on {hosts} nodes"),
    };
    let said =
        [format!("{ranks} {hosts}"), library_name(&moment.mpi_library), moment.command.clone()];
    said.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ")
}

fn exposed(moment: &Moment, width: usize, paint: Paint) -> Line<'static> {
    if moment.is_over {
        return Line::from(
            paint.plain("no rank of it is left: `lapscope report` says what it did"),
        );
    }
    if moment.window_ns <= Nanos(0) {
        return Line::from(paint.dim("measuring …"));
    }
    let text = percent(moment.total.exposed_share);
    let over = format!(" of the last {}  ", time(moment.window_ns));
    let used = "exposed ".len() + text.len() + over.len();
    let room = width.saturating_sub(used).min(60);
    Line::from(vec![
        paint.plain("exposed "),
        paint.bold(text),
        paint.plain(over),
        paint.bar(sparkline(&moment.exposed_shares, room)),
    ])
}

/// The latest `columns` of shares, from 0 to 1.
fn sparkline(shares: &[f64], columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |share: &f64| LEVELS[((share.clamp(0.0, 1.0) * 8.0) as usize).min(7)];
    shares[shares.len().saturating_sub(columns)..].iter().map(level).collect()
}

fn rates(moment: &Moment) -> String {
    let total = &moment.total;
    let mut parts = vec![
        format!("{} calls/s", rate(total.calls_per_s)),
        format!("{} messages/s", rate(total.messages_per_s)),
        format!("{}/s", bytes(total.bytes_per_s.round() as u64)),
    ];
    if total.injected_tests_per_s > 0.0 {
        parts.push(format!("{} injected tests/s", rate(total.injected_tests_per_s)));
    }
    if total.unsuccessful_tests_per_s > 0.0 {
        parts.push(format!("{} unsuccessful tests/s", rate(total.unsuccessful_tests_per_s)));
    }
    parts.join(" · ")
}

fn alerts(alerts: &[Alert], width: usize, room: usize, paint: Paint) -> Vec<Line<'static>> {
    let style = lapscope_data::text::style::Style { color: false, width: width.max(10) };
    let text = |alert: &Alert| style.wrap(&alert.sentence, "! ", "  ");
    let lines: Vec<String> = alerts
        .iter()
        .flat_map(|alert| text(alert).lines().map(String::from).collect::<Vec<_>>())
        .collect();
    lines.into_iter().take(room).map(|line| Line::from(paint.alert(line))).collect()
}

/// Lines for sites and their title: ranks come first where there is little room.
fn sites_height(moment: &Moment, body: usize) -> usize {
    let wanted = match moment.sites.len() {
        0 => 0,
        sites => sites + 1,
    };
    if body < 6 {
        return 0;
    }
    let ranks = if moment.ranks.len() > MOST_ROWS { 12 } else { moment.ranks.len() + 2 };
    wanted.min((body * 2 / 5).max(body.saturating_sub(ranks)))
}

fn sites(moment: &Moment, width: usize, height: usize, paint: Paint) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(vec![
        paint.bold("SITES"),
        paint.dim("  exposed time, of the time of all ranks"),
    ])];
    lines.extend(
        moment.sites.iter().take(height.saturating_sub(1)).map(|it| site(it, width, paint)),
    );
    lines
}

fn site(it: &SitePace, width: usize, paint: Paint) -> Line<'static> {
    let name = place(&it.call, it.site.as_ref());
    let numbers = format!("{:>7} {:>8}  ", percent(it.exposed_share), time(it.exposed_ns));
    let inside = match it.ranks_inside {
        0 => String::new(),
        ranks => format!("  {ranks} inside"),
    };
    let room = width.saturating_sub(display_width(&numbers) + inside.len());
    let name = lapscope_data::text::style::Style::cut(&visible(&name), room);
    Line::from(vec![paint.plain(numbers), paint.plain(name), paint.dim(inside)])
}
