//! What the ranks did in one repetition, call by call: for drawing.

use std::collections::HashSet;

use super::outside::RecordedRun;
use super::results::{Segment, Table};
use lapscope_trace::stats::upper_median;
use lapscope_trace::Half;

/// Segments of a usual repetition of each row of the table.
pub fn segments(table: &Table, outside: &RecordedRun) -> Vec<Segment> {
    let messages = table.attribute("messages").parse().unwrap_or(1usize).max(1);
    let both: usize = if table.attribute("both") == "1" { 2 } else { 1 };
    let tags = table.rows.iter().filter_map(|row| row.tag());
    tags.flat_map(|tag| of_tag(outside, tag, messages * both)).collect()
}

fn of_tag(outside: &RecordedRun, tag: i64, messages: usize) -> Vec<Segment> {
    let mut segments = Vec::new();
    let shown = usual(&outside.halves(0, tag), messages);
    for rank in 0..outside.trace.ranks.len() {
        let halves = outside.halves(rank, tag);
        let repetitions: Vec<&[Half<'_>]> = halves.chunks_exact(messages).collect();
        if let Some(shown) = repetitions.get(shown.unwrap_or(0)) {
            segments.extend(of_repetition(outside, rank, tag, shown));
        }
    }
    let begin = segments.iter().map(|segment| segment.begin_ns).min().unwrap_or(0);
    for segment in &mut segments {
        segment.begin_ns -= begin;
        segment.end_ns -= begin;
    }
    segments
}

/// The repetition whose time from the first post to the end of the last wait is the upper median.
fn usual(halves: &[Half<'_>], messages: usize) -> Option<usize> {
    let lasted = |(number, halves): (usize, &[Half<'_>])| {
        let begin = halves.iter().map(|half| half.post_begin).min()?;
        let end = halves.iter().filter_map(|half| half.completion_end).max()?;
        Some((end - begin, number))
    };
    let mut times: Vec<(i64, usize)> =
        halves.chunks_exact(messages).enumerate().filter_map(lasted).collect();
    upper_median(&mut times, Ord::cmp).map(|(_, number)| number)
}

/// Posts, completing calls, and computation in between, in the order of time.
fn of_repetition(
    outside: &RecordedRun,
    rank: usize,
    tag: i64,
    halves: &[Half<'_>],
) -> Vec<Segment> {
    let segment = |what: &str, begin_ns, end_ns| Segment {
        tag,
        rank: rank as u32,
        begin_ns,
        end_ns,
        what: what.to_owned(),
    };
    let mut calls = Vec::new();
    let mut seen = HashSet::new();
    for half in halves {
        let name = |operation| outside.trace.call_of(operation).name.as_str();
        calls.push(segment(name(half.operation), half.post_begin, half.post_end));
        let Some((begin, end)) = half.completion_begin.zip(half.completion_end) else { continue };
        if let Some(call) = half.call.filter(|&call| seen.insert(call)) {
            let trace = &outside.trace.ranks[rank];
            let operation = &trace.operations[trace.calls[call as usize].operation as usize];
            calls.push(segment(name(operation), begin, end));
        }
    }
    calls.sort_by_key(|call| call.begin_ns);
    let gaps: Vec<Segment> = calls
        .windows(2)
        .filter(|pair| pair[1].begin_ns > pair[0].end_ns)
        .map(|pair| segment("compute", pair[0].end_ns, pair[1].begin_ns))
        .collect();
    calls.extend(gaps);
    calls.sort_by_key(|call| call.begin_ns);
    calls
}
