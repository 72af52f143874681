//! What the reach of a run rests on: which buffers were watched, what that has cost, and why others were not.

use std::io::{self, Write};

use lapscope_advise::problem::in_short;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_report::pipeline::reach::ReachDocument;
use lapscope_report::watching::{left_out_in_words, Watching};

/// The head of the answer: the run, what was watched, and what to know before believing it.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, reach: &ReachDocument, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope reach", &reach.run))?;
    for line in lines(&reach.watching) {
        writeln!(out, "{}", style.wrap(&line, "", "  "))?;
    }
    for sentence in in_short(&reach.problems) {
        writeln!(out, "{}", style.warning(&sentence))?;
    }
    Ok(())
}

fn lines(watching: &Watching) -> Vec<String> {
    if watching.ranks == 0 {
        return Vec::new();
    }
    let mut lines = match watching.words {
        0 => Vec::new(), // why stands among the problems
        _ => vec![watched(watching), cost(watching)],
    };
    if !watching.left_out.is_empty() {
        let each: Vec<String> = watching.left_out.iter().map(left_out_in_words).collect();
        lines.push(format!("buffers not watched: {}", each.join(", ")));
    }
    lines
}

/// "watched: 12 words of 4 buffers, on 2 ranks; of 20.0 % of requests, from 1.00 KiB on"
fn watched(watching: &Watching) -> String {
    let Watching { words, buffers, ranks, .. } = watching;
    let mut line = format!(
        "watched: {} word{} of {} buffer{}, on {} rank{}",
        count(*words),
        plural(*words),
        count(*buffers),
        plural(*buffers),
        count(*ranks),
        plural(*ranks)
    );
    let share = watching.share.map(|share| format!("of {} of requests", percent(share)));
    let least = watching.min_bytes.map(|least| format!("from {} on", bytes(least)));
    let drawn: Vec<String> = [share, least].into_iter().flatten().collect();
    if !drawn.is_empty() {
        line += &format!("; {}", drawn.join(", "));
    }
    line
}

/// "cost: 84.0 µs, 0.1 % of the run time, of at most 3.0 %; 8.00 µs an access to a watched word"
fn cost(watching: &Watching) -> String {
    let mut line = format!(
        "cost: {}, {} of the run time",
        time(watching.spent_ns),
        percent(watching.spent_share())
    );
    if let Some(budget) = watching.budget {
        line += &format!(", of at most {}", percent(budget));
    }
    if let Some(hit) = watching.hit_ns {
        line += &format!("; {} an access to a watched word", time(hit));
    }
    line
}
