//! Pairs of sites of a run's reach, and the networks that it would tolerate.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{
    bytes, count, percent, percent_range, round_bytes, time, time_range,
};
use lapscope_measure::reach::bounds::ConfidenceBounds;
use lapscope_measure::reach::network::{LatencyRow, Tolerated};
use lapscope_measure::reach::pairs::{
    Granularities, LaterHidden, Networks, PairEnd, PairRow, Pairs, Predicted, SmallCollectives, Sum,
};
use lapscope_measure::reach::pattern::Pattern;
use lapscope_trace::Locality;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, pairs: &Pairs, style: Style) -> io::Result<()> {
    write_rows(out, pairs, style)?;
    write_sums(out, pairs, style)?;
    let Some(networks) = &pairs.networks else { return Ok(()) };
    write_networks(out, pairs, networks, style)?;
    write_asked(out, &networks.asked, style)
}

// --- pairs -----------------------------------------------------------------------------------------------------------

fn write_rows(out: &mut dyn Write, pairs: &Pairs, style: Style) -> io::Result<()> {
    let shown = match pairs.rows.len() {
        rows if rows < pairs.pair_count => format!("first {rows} of {}", pairs.pair_count),
        _ => "time available of the datum that has least".to_owned(),
    };
    writeln!(out, "\n{}", style.headed("SENDERS AND RECEIVERS", &shown))?;
    let mut table = Table::new(&[
        ("messages", Align::Right),
        ("bytes", Align::Right),
        ("pattern", Align::Left),
        ("transfer", Align::Right),
        ("available", Align::Right),
        ("overlap", Align::Right),
        ("finer", Align::Right),
    ]);
    for row in &pairs.rows {
        table.row(cells(row), below(row));
    }
    table.write(out, style)?;
    let text = "overlap: time available over the time of the transfer, one message at a time; from 1 on all of it can be \
                hidden. available, overlap: posts and waits moved as far as the data allow; finer: each datum sent once \
                it is written and waited for where it is read.";
    writeln!(out, "{}", style.wrap(text, "  ", "  "))
}

fn cells(row: &PairRow) -> Vec<String> {
    let overlap = row.normalized_overlap;
    vec![
        count(row.messages),
        bytes(row.bytes / row.messages.max(1)),
        pattern(row.pattern).to_owned(),
        row.transfer_ns.map_or_else(String::new, |transfer| time(Nanos(transfer.estimate))),
        of_bounds(row.available_ns.sent_when_produced.worst, &times),
        overlap.map_or_else(String::new, |of| of_bounds(of.sent_when_produced, &ratios)),
        overlap.map_or_else(String::new, |of| of_bounds(of.sent_while_produced, &ratios)),
    ]
}

fn pattern(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Concurrent => "concurrent",
        Pattern::Pipelined => "pipelined",
        Pattern::Dependent => "in turns",
        Pattern::Mixed => "mixed",
        Pattern::Unknown => "not known",
    }
}

/// "MPI_Isend exchange halo.c:84 to MPI_Irecv exchange halo.c:79, same node", and what is missing.
fn below(row: &PairRow) -> Vec<String> {
    let place = match row.locality {
        Locality::SelfRank => "same rank",
        Locality::Node => "same node",
        Locality::Network => "network",
    };
    let mut lines = vec![format!("{} to {}, {place}", end(&row.send), end(&row.receive))];
    let unmeasured = [(&row.send, "send"), (&row.receive, "receive")];
    for (_, side) in unmeasured.into_iter().filter(|(end, _)| !end.is_measured) {
        lines.push(format!(
            "too few of its {side} buffers were watched: its share of the time is not known"
        ));
    }
    match row.pattern {
        Pattern::Pipelined | Pattern::Dependent => lines.push(
            "what is sent depends on what was received: the first datum has no time but that of independent work"
                .to_owned()
                + &later(row),
        ),
        Pattern::Mixed | Pattern::Unknown => lines.push(
            "whether what is sent depends on what was received is not known: if it does, nothing is available"
                .to_owned(),
        ),
        Pattern::Concurrent => {}
    }
    lines
}

fn later(row: &PairRow) -> String {
    let told = row.later_hidden.filter(|later| later.low > 0.0 || later.high < 1.0);
    told.map_or_else(String::new, |LaterHidden { low, high }| {
        format!("; of later ones {} could be hidden behind earlier ones", percent_range(low, high))
    })
}

fn end(end: &PairEnd) -> String {
    let place = end.site.as_ref().map_or_else(|| "(no call path)".to_owned(), FrameName::short);
    format!("{} {place}", end.call)
}

/// "0.50 to 0.70", "at least 0.50", "at most"; empty where nothing is known. `range` is of a low and a high end.
fn of_bounds(bounds: ConfidenceBounds, range: &dyn Fn(f64, f64) -> String) -> String {
    match bounds.high {
        Some(high) => range(bounds.low, high),
        None if bounds.low > 0.0 => format!("at least {}", range(bounds.low, bounds.low)),
        None => "not known".to_owned(),
    }
}

fn times(low: f64, high: f64) -> String {
    time_range(Nanos(low.round() as i64), Nanos(high.round() as i64))
}

fn ratios(low: f64, high: f64) -> String {
    let number = |value: f64| match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 999.5 => format!("{value:.0}"),
        _ => ">999".to_owned(),
    };
    let (least, most) = (number(low), number(high));
    if least == most {
        most
    } else {
        format!("{least} to {most}")
    }
}

// --- sums ------------------------------------------------------------------------------------------------------------

fn write_sums(out: &mut dyn Write, pairs: &Pairs, style: Style) -> io::Result<()> {
    if pairs.totals.timed_messages == 0 {
        let text = "What of transfers could be hidden is not known: no reference time is known of these sizes; measure them with: \
                    lapscope calibrate -- <launch line>";
        return writeln!(out, "\n{}", style.wrap(text, "", ""));
    }
    writeln!(out, "\n{}", style.headed("SIZES", "what of their transfer time could be hidden"))?;
    let mut table = Table::new(&[
        ("", Align::Left),
        ("messages", Align::Right),
        ("transfer", Align::Right),
        ("overlap", Align::Right),
        ("moved", Align::Right),
        ("read late", Align::Right),
        ("finer", Align::Right),
    ]);
    for row in &pairs.sizes {
        let label = match row.below_bytes {
            0 | 1 => "0 B".to_owned(),
            u64::MAX => format!("from {}", round_bytes(row.from_bytes)),
            below => format!("{} to {}", round_bytes(row.from_bytes), round_bytes(below)),
        };
        table.row(sum_cells(label, &row.sum), None);
    }
    table.row(sum_cells("all".to_owned(), &pairs.totals), None);
    table.write(out, style)?;
    let mut text = "overlap: of the messages with half of the transfer time, at least. moved: posts and waits moved; read \
                    late: and each datum waited for where it is read; finer: and sent once it is written."
        .to_owned();
    let Sum { messages, timed_messages, .. } = pairs.totals;
    text += &format!(
        " These are {} of the {} messages between ranks.",
        count(messages),
        count(pairs.run_messages)
    );
    if timed_messages < messages {
        text += &format!(" {} have no reference time.", count(messages - timed_messages));
    }
    writeln!(out, "{}", style.wrap(&text, "  ", "  "))
}

/// What may be anything is not known.
fn sum_cells(label: String, sum: &Sum) -> Vec<String> {
    let shares = |low: f64, high: f64| match (low, high) {
        (0.0, 1.0) => "not known".to_owned(),
        _ => percent_range(low, high.min(1.0)),
    };
    let hidden =
        |of: Option<ConfidenceBounds>| of.map_or_else(String::new, |of| of_bounds(of, &shares));
    let transfer = if sum.timed_messages > 0 { time(sum.transfer_ns) } else { String::new() };
    let overlap = sum.normalized_overlap.sent_when_produced;
    vec![
        label,
        count(sum.messages),
        transfer,
        overlap.map_or_else(String::new, |overlap| ratios(overlap, overlap)),
        hidden(sum.hidden.sent_when_produced),
        hidden(sum.hidden.received_while_consumed),
        hidden(sum.hidden.sent_while_produced),
    ]
}

// --- networks --------------------------------------------------------------------------------------------------------

fn write_networks(
    out: &mut dyn Write,
    pairs: &Pairs,
    networks: &Networks,
    style: Style,
) -> io::Result<()> {
    let about = format!(
        "execution time over computation ({}), posts and waits moved",
        time(networks.computation_ns)
    );
    writeln!(out, "\n{}", style.headed("NETWORKS", &about))?;
    let number = |head: String| (head, Align::Right);
    let mut heads = vec![number("latency".to_owned())];
    heads.extend(networks.bandwidths.map(|bandwidth| number(rate(bandwidth))));
    heads.extend([number("needs".to_owned()), number("finer".to_owned())]);
    let mut table = Table::with_heads(&heads).indented(2);
    let tables = &networks.tables;
    for (row, finer) in tables.sent_when_produced.iter().zip(&tables.sent_while_produced) {
        let mut cells = vec![time(Nanos(row.latency_ns as i64))];
        cells.extend(row.execution.iter().map(|&execution| ratios(execution, execution)));
        cells.extend([row, finer].map(tolerated));
        table.row(cells, None);
    }
    table.write(out, style)?;
    let mut text = format!(
        "needs: the least bandwidth that makes it no more than {} slower; finer: if each datum is sent once it is written. One \
         message of a rank after the other; of {} of the {} sent between ranks. Where only bounds are known, the lower one \
         counts.",
        percent(networks.loss),
        bytes(pairs.totals.bytes),
        bytes(pairs.run_bytes)
    );
    text += &collectives(networks);
    writeln!(out, "{}", style.wrap(&text, "  ", "  "))
}

/// A line for each network of `--network`, as in Table 5 of [SA06].
fn write_asked(out: &mut dyn Write, asked: &[Predicted], style: Style) -> io::Result<()> {
    if asked.is_empty() {
        return Ok(());
    }
    let about = "execution time over computation of all messages";
    writeln!(out, "\n{}", style.headed("NETWORKS ASKED FOR", about))?;
    let heads =
        ["network", "no overlap", "moved", "read late", "finer", "collectives", "not watched"];
    let mut table = Table::new(&heads.map(|head| (head, Align::Right))).indented(2);
    for of in asked {
        let latency = time(Nanos(of.network.latency_ns as i64));
        let mut cells = vec![format!("{latency}, {}", rate(of.network.bytes_per_s))];
        let Granularities { sent_when_produced, received_while_consumed, sent_while_produced } =
            of.with_overlap;
        let times =
            [of.without_overlap, sent_when_produced, received_while_consumed, sent_while_produced];
        cells.extend(times.map(|execution| ratios(execution, execution)));
        cells.extend([of.small_collectives, of.unwatched_messages].map(percent));
        table.row(cells, None);
    }
    table.write(out, style)?;
    let text = "no overlap: every transfer is waited for; moved, read late, finer: as above. Each of them has what small collectives \
                take, 2 log2(ranks) latencies each, and messages whose buffers were not watched: nothing of those is hidden. \
                Both in percent of the computation.";
    writeln!(out, "{}", style.wrap(text, "  ", "  "))
}

/// " Small collectives (120 calls) would add 0.1 to 0.8 % from 1 to 8 µs: ..."
fn collectives(networks: &Networks) -> String {
    let SmallCollectives { calls, shares, .. } = networks.small_collectives;
    if calls == 0 {
        return String::new();
    }
    format!(
        " {} calls of collectives of few bytes are not in it; they would add {} from the least latency to the most.",
        count(calls),
        percent_range(shares[0], shares[3])
    )
}

fn tolerated(row: &LatencyRow) -> String {
    match row.least_bandwidth {
        Tolerated::Any => "any".to_owned(),
        Tolerated::From(bandwidth) => rate(bandwidth),
        Tolerated::None => "none".to_owned(),
    }
}

/// "5 MB/s", "1 GB/s", "950 MB/s": up to three digits, of bytes per second.
fn rate(bytes_per_s: f64) -> String {
    let (value, unit) = match bytes_per_s {
        rate if rate < 999.5e6 => (rate / 1e6, "MB/s"),
        rate => (rate / 1e9, "GB/s"),
    };
    if value >= 9.95 || (value - value.round()).abs() < 0.05 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests;
