//! Advice as text.

use std::io::{self, Write};

use super::style::Style;
use super::units::{percent, time};
use crate::analysis::advice::Advice;

/// Below this fraction of the run time advice is left to the JSON.
const WORTH_READING: f64 = 0.005;
const MOST_CURES: usize = 5;
const MOST_OTHERS: usize = 3;

/// Writes what would help, numbered, and where nothing does; nothing at all when there is neither.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, advice: &[Advice], style: Style) -> io::Result<()> {
    let worth = |advice: &&Advice| advice.share >= WORTH_READING;
    let (cures, others): (Vec<&Advice>, Vec<&Advice>) =
        advice.iter().filter(worth).partition(|advice| advice.helps);
    if !cures.is_empty() {
        let note = "the time at stake, summed over ranks";
        writeln!(out, "\n{}", style.headed_dimly("ADVICE", note))?;
        write_all(out, &cures, MOST_CURES, style)?;
    }
    if !others.is_empty() {
        writeln!(out, "\n{}", style.bold("WITHOUT A CURE IN THE COMMUNICATION"))?;
        write_all(out, &others, MOST_OTHERS, style)?;
    }
    Ok(())
}

fn write_all(out: &mut dyn Write, advice: &[&Advice], most: usize, style: Style) -> io::Result<()> {
    const INDENT: &str = "                     ";
    for advice in advice.iter().take(most) {
        let head = format!("  {:>7}{:>10}  ", percent(advice.share), time(advice.time_ns));
        let other = advice.or_test.iter().map(|other| format!(" {}", other.sentence));
        let text = advice.sentence.clone() + &other.collect::<String>();
        writeln!(out, "{}", style.wrap(&text, &head, INDENT))?;
    }
    if let Some(more) = advice.len().checked_sub(most).filter(|&more| more > 0) {
        let text = format!("and {more} more in --format json");
        writeln!(out, "{}", style.wrap(&text, INDENT, INDENT))?;
    }
    Ok(())
}
