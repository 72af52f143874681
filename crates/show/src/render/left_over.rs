//! What a program left over at MPI_Finalize, as sentences.

use std::io::{self, Write};

use lapscope_data::text::style::Style;
use lapscope_data::text::units::count;
use lapscope_data::text::{plural, ranks};
use lapscope_measure::left_over::{LeftOver, LeftOverKind, LeftOverSite};
use lapscope_report::report::Report;

/// Call sites of a sentence.
const MOST: usize = 4;

/// Nothing where nothing was left.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let left = report.left_over.as_deref().unwrap_or_default();
    if left.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.headed("LEFT OVER", "at MPI_Finalize"))?;
    for it in left {
        writeln!(out, "{}", style.wrap(&sentence(it, report.ranks.len()), "  ", "    "))?;
    }
    Ok(())
}

/// "2 messages were sent and never received (rank 0): MPI_Send post x.c:7."; `of`: ranks of the run.
pub fn sentence(left: &LeftOver, of: usize) -> String {
    let s = plural(left.count);
    let were = if left.count == 1 { "was" } else { "were" };
    let what = match left.what {
        LeftOverKind::Request => format!("request{s} {were} never completed"),
        LeftOverKind::Message => format!("message{s} {were} sent and never received"),
        LeftOverKind::Receive => format!(
            "receive{s} {were} posted and no message was sent for {}",
            if left.count == 1 { "it" } else { "them" }
        ),
        LeftOverKind::PersistentRequest => format!("persistent request{s} {were} never freed"),
        LeftOverKind::Communicator => format!("communicator{s} {were} not seen to be freed"),
        LeftOverKind::Window => format!("window{s} {were} never freed"),
        LeftOverKind::File => format!("file{s} {were} never closed"),
    };
    let is_certain = left.is_certain_of_sites();
    let those = if is_certain { "" } else { " some of those made by" };
    let has_counts = !is_certain || left.sites.len() > 1;
    let mut sites: Vec<String> =
        left.sites.iter().take(MOST).map(|site| at(site, has_counts)).collect();
    if left.sites.len() > MOST {
        sites.push(format!("{} more call sites", left.sites.len() - MOST));
    }
    let who = ranks::in_words(&left.ranks, of);
    format!("{} {what} ({who}):{those} {}.", count(left.count), sites.join(", "))
}

/// "MPI_Send post x.c:7 (2)"
fn at(site: &LeftOverSite, has_count: bool) -> String {
    let place = site.site.as_ref().map_or(String::new(), |site| format!(" {}", site.short()));
    let number = if has_count { format!(" ({})", count(site.count)) } else { String::new() };
    format!("{}{place}{number}", site.call)
}
