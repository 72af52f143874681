//! Advice as text.

use std::io::{self, Write};

use lapscope_advise::advice::Advice;
use lapscope_advise::how::{self, Snippet};
use lapscope_data::text::style::{display_width, Style};
use lapscope_data::text::units::{percent, MeanOfRanks};
use lapscope_report::report::Report;

const MOST_CURES: usize = 5;
const MOST_OTHERS: usize = 3;

/// Writes what would help, and where nothing does; nothing at all when there is neither. `first`: what is to be done first stands in
/// the first list.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    advice: &[Advice],
    (first, mean): (Option<usize>, MeanOfRanks),
    style: Style,
) -> io::Result<()> {
    let mut any_vague = false;
    for list in lists(advice, first) {
        let (heading, most) = match list.helps {
            true => (
                style.headed_dimly(
                    "ADVICE",
                    "what may gain most comes first; the time at stake, mean over ranks",
                ),
                MOST_CURES,
            ),
            false => (style.bold("NOT FIXABLE BY OVERLAP AS IT STANDS"), MOST_OTHERS),
        };
        writeln!(out, "\n{heading}")?;
        let list: Vec<&Advice> = list.advice.iter().map(|&(_, advice)| advice).collect();
        write_all(out, &list, most, mean, style)?;
        any_vague |= list.iter().take(most).any(|advice| advice.is_vague());
    }
    if any_vague {
        let text = "A time is a range where it depends on how long transfers take undisturbed, and that is not known exactly; the \
                    share is that of the larger time.";
        writeln!(out, "{}", style.dim(&style.wrap(text, "  ", "  ")))?;
    }
    Ok(())
}

/// Advice that is worth reading, with its place among all: what would help, or where nothing does.
pub(crate) struct AdviceList<'a> {
    pub helps: bool,
    pub advice: Vec<(usize, &'a Advice)>,
}

/// Those that have any advice, that with what is to be done first before the other.
pub(crate) fn lists(advice: &[Advice], first: Option<usize>) -> Vec<AdviceList<'_>> {
    let is_other_first = first.is_some_and(|first| !advice[first].helps);
    let order = if is_other_first { [false, true] } else { [true, false] };
    let worth = |helps: bool| {
        let all = advice.iter().enumerate();
        all.filter(|(_, advice)| advice.helps == helps && advice.is_worth_reading()).collect()
    };
    let lists = order.map(|helps| AdviceList { helps, advice: worth(helps) });
    lists.into_iter().filter(|list| !list.advice.is_empty()).collect()
}

/// What goes on without buffering where calls rely on it, as code.
pub(crate) fn without_buffering(report: &Report) -> Vec<(String, Snippet)> {
    let snippets = report.relies_on_buffering.iter().flat_map(how::without_buffering);
    snippets.map(|(does, snippet)| (format!("Unsafe: {}.", lowered(does)), snippet)).collect()
}

/// Writes the advice that is a change of code as code, in the language of the file that it names, and calls that rely on buffering
/// without.
///
/// # Errors
/// Of the writer.
pub fn write_code(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let worth = report.advice.iter().filter(|advice| advice.helps && advice.is_worth_reading());
    let advice = worth.take(MOST_CURES);
    let of_advice = advice.filter_map(|it| Some((it.headline.clone(), how::snippet(it)?)));
    for (heading, snippet) in without_buffering(report).into_iter().chain(of_advice) {
        let note =
            format!("in {}; the names are not those of your program", snippet.language.name());
        writeln!(out, "\n{}", style.headed_dimly("HOW", &note))?;
        writeln!(out, "{}", style.wrap(&heading, "  ", "  "))?;
        write_snippet(out, &snippet, style)?;
    }
    Ok(())
}

/// With a small letter at its beginning.
fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Writes a change of code: what stands there, and what would help.
///
/// # Errors
/// Of the writer.
pub fn write_snippet(out: &mut dyn Write, snippet: &Snippet, style: Style) -> io::Result<()> {
    for (heading, code) in [("before", &snippet.before), ("after", &snippet.after)] {
        writeln!(out, "  {}", style.dim(heading))?;
        code.lines().try_for_each(|line| writeln!(out, "      {line}"))?;
    }
    Ok(())
}

fn write_all(
    out: &mut dyn Write,
    advice: &[&Advice],
    most: usize,
    mean: MeanOfRanks,
    style: Style,
) -> io::Result<()> {
    let shown: Vec<&Advice> = advice.iter().copied().take(most).collect();
    let times: Vec<String> = shown.iter().map(|advice| at_stake(advice, mean)).collect();
    let width = times.iter().map(|time| display_width(time) + 2).max().unwrap_or(0).max(10);
    let indent = " ".repeat(9 + width + 2);
    for (advice, time) in shown.iter().zip(times) {
        let share = percent(advice.share_at_most());
        let pad = " ".repeat(width - display_width(&time));
        let head = format!("  {share:>7}{pad}{time}  ");
        let sentence = advice.sentence.clone();
        let text = advice.further_sentences().fold(sentence, |text, next| format!("{text} {next}"));
        writeln!(out, "{}", style.wrap(&text, &head, &indent))?;
    }
    if let Some(more) = advice.len().checked_sub(most).filter(|&more| more > 0) {
        let text = format!("and {more} more in --format json");
        writeln!(out, "{}", style.wrap(&text, &indent, &indent))?;
    }
    Ok(())
}

/// "278 ms", or "0 to 496 ms" where only that is known.
fn at_stake(advice: &Advice, mean: MeanOfRanks) -> String {
    if advice.is_vague() {
        mean.time_range(advice.time_low_ns, advice.time_high_ns)
    } else {
        mean.time(advice.time_ns)
    }
}
