//! Limits of sends: what they are in words, and messages by size.

use std::io::{self, Write};

use serde::Serialize;

use super::table::{Align, Cell, Table};
use crate::format::rows::{Objects, RowWriter};
use lapscope_advise::thresholds_in_words::locality_words;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::count;
use lapscope_measure::thresholds::{
    progress_differs, CumulativeVerdict, Governing, LimitVerdict, LocalityThresholds, SizeCounts,
    Threshold, Thresholds,
};
use lapscope_trace::Locality;

/// Rows of the picture of a locality; more sizes than that are put together.
const MOST_ROWS: usize = 24;
/// Columns of a full bar.
const BAR: usize = 12;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, found: &Thresholds, style: Style) -> io::Result<()> {
    if found.localities.is_empty() {
        let text = "Nothing shows from which size on sends wait: no message has both its ends recorded in detail, was sent in \
                    standard mode, and met a receiver who was somewhere else. `lapscope thresholds --probe -- mpirun -n 2`, with \
                    your launch line, finds out.";
        return writeln!(out, "{}", style.wrap(text, "", ""));
    }
    for (index, locality) in found.localities.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_locality(out, locality, style)?;
    }
    Ok(())
}

fn write_locality(
    out: &mut dyn Write,
    locality: &LocalityThresholds,
    style: Style,
) -> io::Result<()> {
    let title = locality_words(locality.locality);
    writeln!(out, "{}", style.bold(&format!("Sends {title}")))?;
    let mut items = vec![("rendezvous", &locality.rendezvous.sentence)];
    if progress_differs(locality) {
        items.push(("progress", &locality.needs_receiver_progress.sentence));
    }
    if locality.post.verdict != LimitVerdict::NoEvidence {
        items.push(("post", &locality.post.sentence));
    }
    if locality.cumulative.verdict != CumulativeVerdict::NotEnough {
        items.push(("cumulative", &locality.cumulative.sentence));
    }
    for (name, sentence) in items {
        let first = format!("  {name:<10}  ");
        writeln!(out, "{}", style.wrap(sentence, &first, &" ".repeat(first.len())))?;
    }
    if let Some(next) = &locality.rendezvous.next {
        writeln!(out, "{}", style.wrap(next, "  to know     ", "              "))?;
    }
    writeln!(out)?;
    write_sizes(out, &locality.sizes, style)
}

/// Messages by size: how many did not wait; were complete after receiver progress, without a receive; waited.
fn write_sizes(out: &mut dyn Write, sizes: &[SizeCounts], style: Style) -> io::Result<()> {
    let rows = put_together(sizes);
    let mut table = Table::new(&[
        ("bytes", Align::Right),
        ("no wait", Align::Right),
        ("", Align::Bar(BAR)),
        ("receiver progress", Align::Right),
        ("", Align::Bar(BAR)),
        ("waits for receiver", Align::Right),
        ("rendezvous", Align::Right),
        ("", Align::Bar(BAR)),
        ("posts that wait", Align::Right),
    ]);
    let nonzero = |number: u64| Cell::from(if number == 0 { String::new() } else { count(number) });
    for row in &rows {
        let no_wait = row.early + row.without_receiver_progress + row.eager;
        let waited = row.waited_for_receiver + row.waited_for_receive;
        let later = row.after_receiver_progress + row.unseen;
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

pub(crate) fn size_range(row: &SizeCounts) -> String {
    if row.from_bytes == row.to_bytes {
        row.from_bytes.to_string()
    } else {
        format!("{}-{}", row.from_bytes, row.to_bytes)
    }
}

/// As many rows as are shown: neighbours in size put together where there are more.
pub(crate) fn put_together(sizes: &[SizeCounts]) -> Vec<SizeCounts> {
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
    locality: Locality,
    limit: &'static str,
    verdict: LimitVerdict,
    largest_eager_bytes: Option<u64>,
    smallest_waiting_bytes: Option<u64>,
    eager: u64,
    waiting: u64,
    contradictions: u64,
    unsettled: u64,
    declared_name: Option<&'a str>,
    declared_value: Option<&'a str>,
    declared_agrees: Option<bool>,
}

/// A row for each limit of each locality.
///
/// # Errors
/// Of the writer.
pub fn write_rows(rows: &mut dyn RowWriter, found: &Thresholds) -> io::Result<()> {
    let mut objects = Objects::new(rows);
    for found in &found.localities {
        let declared = found.declared.as_ref();
        objects.write(&row(found.locality, "rendezvous", &found.rendezvous, declared))?;
        objects.write(&row(
            found.locality,
            "needs_receiver_progress",
            &found.needs_receiver_progress,
            None,
        ))?;
        objects.write(&row(found.locality, "post", &found.post, None))?;
    }
    Ok(())
}

fn row<'a>(
    locality: Locality,
    limit: &'static str,
    of: &Threshold,
    declared: Option<&'a Governing>,
) -> LimitRow<'a> {
    LimitRow {
        locality,
        limit,
        verdict: of.verdict,
        largest_eager_bytes: of.largest_eager_bytes,
        smallest_waiting_bytes: of.smallest_waiting_bytes,
        eager: of.eager,
        waiting: of.waiting,
        contradictions: of.contradictions,
        unsettled: of.unsettled,
        declared_name: declared.map(|declared| declared.name.as_str()),
        declared_value: declared.map(|declared| declared.value.as_str()),
        declared_agrees: declared.and_then(|declared| declared.agrees),
    }
}
