//! What did not end, rank by rank.

use std::io::{self, Write};

use super::sites::write_frames;
use lapscope_analysis::pending::{PendingItem, What};
use lapscope_data::model::Ended;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::time;
use lapscope_data::text::visible::visible;

/// `top` items of each rank; 0 means all.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    items: &[PendingItem],
    top: usize,
    style: Style,
) -> io::Result<()> {
    if items.is_empty() {
        return writeln!(out, "Nothing is pending: every request ended and every call returned.");
    }
    let same_rank = |a: &PendingItem, b: &PendingItem| (a.rank, a.life) == (b.rank, b.life);
    for (index, of_rank) in items.chunk_by(same_rank).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_rank(out, of_rank, top, style)?;
    }
    Ok(())
}

fn write_rank(
    out: &mut dyn Write,
    items: &[PendingItem],
    top: usize,
    style: Style,
) -> io::Result<()> {
    let first = &items[0];
    let ended = match first.ended {
        Ended::Finalize => "reached MPI_Finalize",
        Ended::Abort => "called MPI_Abort",
        Ended::Exit => "exited without MPI_Finalize",
        Ended::Killed => "was killed",
    };
    let requests = items.iter().filter(|item| item.what == What::Request).count();
    let text =
        format!("on {} {ended}; {requests} request{} pending", first.host, plural(requests as u64));
    let title = style.bold(&format!("rank\u{a0}{}", first.rank));
    let text = style.wrap_painted(&format!("{title} {}", visible(&text)), "", "  ");
    writeln!(out, "{}", text.replacen('\u{a0}', " ", 1))?;
    let shown = if top == 0 { items.len() } else { top.min(items.len()) };
    for item in &items[..shown] {
        // How long it then hung is not known: the end of a process that was killed is not recorded.
        let (lead, begun, end) = match item.what {
            What::Call => ("  inside  ", "entered", " and not left"),
            What::Request => ("  pending ", "posted", ""),
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
