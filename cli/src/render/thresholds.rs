//! Limits of sends: what they are in words, and messages by size.

use std::io::{self, Write};

use serde::Serialize;

use super::table::{Align, Cell, Table};
use crate::export::rows::{Objects, RowWriter};
use lapscope_analysis::thresholds::{
    attention_differs, path_words, CumulativeVerdict, Governing, PathThresholds, SizeCounts,
    Threshold, Thresholds, Verdict,
};
use lapscope_analysis::trace::PathClass;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::count;

/// Rows of the picture of a path; more sizes than that are put together.
const MOST_ROWS: usize = 24;
/// Columns of a full bar.
const BAR: usize = 12;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, found: &Thresholds, style: Style) -> io::Result<()> {
    if found.paths.is_empty() {
        let text = "Nothing tells from which size on sends wait: no message has both its ends recorded in detail, was sent in \
                    standard mode, and met a receiver who was somewhere else. `lapscope thresholds --probe -- mpirun -n 2`, with \
                    your launch line, finds out.";
        return writeln!(out, "{}", style.wrap(text, "", ""));
    }
    for (index, path) in found.paths.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_path(out, path, style)?;
    }
    Ok(())
}

fn write_path(out: &mut dyn Write, path: &PathThresholds, style: Style) -> io::Result<()> {
    let title = path_words(path.path);
    writeln!(out, "{}", style.bold(&format!("Sends {title}")))?;
    let mut items = vec![("completion", &path.completion.sentence)];
    if attention_differs(path) {
        items.push(("attention", &path.attention.sentence));
    }
    if path.post.verdict != Verdict::NoEvidence {
        items.push(("post", &path.post.sentence));
    }
    if path.cumulative.verdict != CumulativeVerdict::NotEnough {
        items.push(("several", &path.cumulative.sentence));
    }
    for (name, sentence) in items {
        let first = format!("  {name:<10}  ");
        writeln!(out, "{}", style.wrap(sentence, &first, &" ".repeat(first.len())))?;
    }
    if let Some(next) = &path.completion.next {
        writeln!(out, "{}", style.wrap(next, "  to know     ", "              "))?;
    }
    writeln!(out)?;
    write_sizes(out, &path.sizes, style)
}

/// Messages by size: how many did not wait; were complete when the receiver had looked into MPI, without a receive; waited.
fn write_sizes(out: &mut dyn Write, sizes: &[SizeCounts], style: Style) -> io::Result<()> {
    let rows = put_together(sizes);
    let mut table = Table::new(&[
        ("bytes", Align::Right),
        ("no wait", Align::Right),
        ("", Align::Bar(BAR)),
        ("until a look", Align::Right),
        ("", Align::Bar(BAR)),
        ("for the receiver", Align::Right),
        ("for the receive", Align::Right),
        ("", Align::Bar(BAR)),
        ("posts that wait", Align::Right),
    ]);
    let nonzero = |number: u64| Cell::from(if number == 0 { String::new() } else { count(number) });
    for row in &rows {
        let no_wait = row.early + row.unattended + row.kept;
        let waited = row.waited_for_receiver + row.waited_for_receive;
        let later = row.attended + row.unseen;
        let all = (no_wait + later + waited).max(1) as f64;
        let part = |number: u64| Cell::Bar(number as f64 / all);
        table.row(
            vec![
                size_range(row).into(),
                nonzero(no_wait),
                part(no_wait),
                nonzero(later),
                part(later),
                nonzero(row.waited_for_receiver),
                nonzero(row.waited_for_receive),
                part(waited),
                nonzero(row.post_waited),
            ],
            None,
        );
    }
    table.write(out, style)
}

fn size_range(row: &SizeCounts) -> String {
    if row.from_bytes == row.to_bytes {
        row.from_bytes.to_string()
    } else {
        format!("{}-{}", row.from_bytes, row.to_bytes)
    }
}

/// As many rows as are shown: neighbours in size put together where there are more.
fn put_together(sizes: &[SizeCounts]) -> Vec<SizeCounts> {
    if sizes.len() <= MOST_ROWS {
        return sizes.to_vec();
    }
    let octave = |size: &SizeCounts| u64::BITS - size.from_bytes.leading_zeros();
    let mut rows: Vec<SizeCounts> = Vec::new();
    for size in sizes {
        match rows.last_mut() {
            Some(last) if octave(last) == octave(size) => last.merge(size),
            _ => rows.push(*size),
        }
    }
    rows
}

#[derive(Serialize)]
struct LimitRow<'a> {
    path: PathClass,
    limit: &'static str,
    verdict: Verdict,
    largest_buffered_bytes: Option<u64>,
    smallest_waiting_bytes: Option<u64>,
    buffered: u64,
    waiting: u64,
    contradictions: u64,
    unsettled: u64,
    declared_name: Option<&'a str>,
    declared_value: Option<&'a str>,
    declared_agrees: Option<bool>,
}

/// A row for each limit of each path.
///
/// # Errors
/// Of the writer.
pub fn write_rows(rows: &mut dyn RowWriter, found: &Thresholds) -> io::Result<()> {
    let mut objects = Objects::new(rows);
    for path in &found.paths {
        let declared = path.declared.as_ref();
        objects.write(&row(path.path, "completion", &path.completion, declared))?;
        objects.write(&row(path.path, "attention", &path.attention, None))?;
        objects.write(&row(path.path, "post", &path.post, None))?;
    }
    Ok(())
}

fn row<'a>(
    path: PathClass,
    limit: &'static str,
    of: &Threshold,
    declared: Option<&'a Governing>,
) -> LimitRow<'a> {
    LimitRow {
        path,
        limit,
        verdict: of.verdict,
        largest_buffered_bytes: of.largest_buffered_bytes,
        smallest_waiting_bytes: of.smallest_waiting_bytes,
        buffered: of.buffered,
        waiting: of.waiting,
        contradictions: of.contradictions,
        unsettled: of.unsettled,
        declared_name: declared.map(|declared| declared.name.as_str()),
        declared_value: declared.map(|declared| declared.value.as_str()),
        declared_agrees: declared.and_then(|declared| declared.agrees),
    }
}
