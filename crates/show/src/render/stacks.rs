//! Where ranks are that nobody records: a sentence, and their call paths as a tree.

use std::io::{self, Write};

use lapscope_data::model::RankList;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, time};
use lapscope_data::text::{list_ranks, plural};
use lapscope_watch::stacks::{Branch, RankStack, StackDiagnosis};

/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    found: &StackDiagnosis,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    let ranks = found.ranks.len() as u64;
    let stopped = match found.held_ns.0 {
        0 => "none of them was stopped".to_owned(),
        _ => format!("each of their threads was stopped for at most {}", time(found.held_ns)),
    };
    let looked = format!(
        "lapscope hang: {} process{} from outside, two looks {} apart; {stopped}",
        count(ranks),
        if ranks == 1 { "" } else { "es" },
        time(found.observed_ns)
    );
    writeln!(out, "{}\n", style.wrap(&looked, "", "  "))?;
    writeln!(out, "{}", style.bold("WHERE"))?;
    writeln!(out, "{}", style.wrap(&found.sentence, "  ", "  "))?;
    for note in &found.notes {
        writeln!(out, "{}", style.warning(note))?;
    }
    if !found.elsewhere.is_empty() {
        let missing = found.elsewhere.len() as u64;
        let text = format!(
            "rank{} {} of this job {} not on this machine: ask there as well",
            plural(missing),
            list_ranks(&found.elsewhere),
            if missing == 1 { "is" } else { "are" }
        );
        writeln!(out, "{}", style.warning(&text))?;
    }
    writeln!(
        out,
        "\n{}",
        style
            .headed("CALL PATHS", "from main inwards, with the ranks that are below; fewest first")
    )?;
    for branch in &found.tree {
        write_branch(out, branch, "  ", style)?;
    }
    for rank in found.ranks.iter().filter(|rank| is_listed(rank, listed)) {
        write_rank(out, rank, style)?;
    }
    let next = "Without a record it is known where ranks are, not for whom they wait: a job that is started by lapscope run \
                tells that, too.";
    writeln!(out, "\n{}", style.wrap(next, "", ""))
}

fn is_listed(rank: &RankStack, listed: Option<&RankList>) -> bool {
    listed.is_some_and(|listed| rank.rank.is_some_and(|number| listed.contains(number)))
}

/// Places that lead to one place only are a line.
fn write_branch(
    out: &mut dyn Write,
    branch: &Branch,
    indent: &str,
    style: Style,
) -> io::Result<()> {
    let (mut last, mut places) = (branch, branch.place.clone());
    while let [only] = last.branches.as_slice() {
        places += &format!(" > {}", only.place);
        last = only;
    }
    let who = match branch.ranks.len() == branch.count {
        true => format!("rank{} {}", plural(branch.count as u64), list_ranks(&branch.ranks)),
        false => format!("{} process{}", branch.count, if branch.count == 1 { "" } else { "es" }),
    };
    let line = format!("{places}  [{who}]");
    writeln!(out, "{}", style.wrap(&line, indent, &format!("{indent}    ")))?;
    let deeper = format!("{indent}  ");
    last.branches.iter().try_for_each(|branch| write_branch(out, branch, &deeper, style))
}

fn write_rank(out: &mut dyn Write, rank: &RankStack, style: Style) -> io::Result<()> {
    let number = rank.rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    writeln!(out, "\n{}", style.bold(&format!("rank {number}, process {}", rank.pid)))?;
    if let Some(call) = &rank.call {
        let passed = rank.arguments.as_ref().map(|it| format!(" ({})", it.in_words()));
        writeln!(out, "  {call}{}", passed.unwrap_or_default())?;
    }
    for frame in rank.frames.iter().map(FrameName::short) {
        writeln!(out, "  {frame}")?;
    }
    Ok(())
}
