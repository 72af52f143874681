//! Where ranks are that nobody records: a sentence, and their call paths as a tree.

use std::io::{self, Write};

use super::hang::write_verdict;
use lapscope_data::model::RankList;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, time};
use lapscope_data::text::visible::visible;
use lapscope_data::text::{list_ranks, plural};
use lapscope_watch::stacks::{Branch, RankStack, RecordedRun, StackDiagnosis};

/// Lines of the tree; branches of one place, and how many of these are the last ones.
const MOST_LINES: usize = 80;
const MOST_BRANCHES: usize = 12;
const LAST_BRANCHES: usize = 2;

/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    found: &StackDiagnosis,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "{}\n", style.wrap(&format!("lapscope hang: {}", looked(found)), "", "  "))?;
    for recorded in &found.recorded {
        write_verdict(out, "VERDICT", &recorded.diagnosis.verdict, "", style)?;
    }
    writeln!(out, "{}", style.bold("WHERE"))?;
    writeln!(out, "{}", style.wrap(&found.sentence, "  ", "  "))?;
    for note in notes(found) {
        writeln!(out, "{}", style.warning(&note))?;
    }
    writeln!(
        out,
        "\n{}",
        style
            .headed("CALL PATHS", "from main inwards, with the ranks that are below; fewest first")
    )?;
    let mut left = MOST_LINES;
    write_branches(out, &found.tree, "  ", &mut left, style)?;
    for rank in found.ranks.iter().filter(|rank| is_listed(rank, listed)) {
        write_rank(out, rank, style)?;
    }
    for next in next(found) {
        writeln!(out, "\n{}", style.wrap(&next, "", "  "))?;
    }
    Ok(())
}

/// "8 processes from outside, two looks 500 ms apart; none of them was stopped".
pub fn looked(found: &StackDiagnosis) -> String {
    let stopped = match found.held_ns.0 {
        0 => "none of them was stopped".to_owned(),
        _ => format!("each of their threads was stopped for at most {}", time(found.held_ns)),
    };
    let hosts = match found.hosts.len() as u64 {
        0 | 1 => String::new(),
        hosts => format!(" on {} hosts", count(hosts)),
    };
    format!(
        "{}{hosts} from outside, two looks {} apart; {stopped}",
        processes(found.ranks.len()),
        time(found.observed_ns)
    )
}

/// What is not known, as sentences; of many only some.
pub fn notes(found: &StackDiagnosis) -> Vec<String> {
    const MOST: usize = 12;
    let unseen = found.unseen.iter().map(|it| format!("{} was not looked at: {}", it.host, it.why));
    let mut notes: Vec<String> = unseen.chain(found.notes.iter().cloned()).collect();
    let more = notes.len().saturating_sub(MOST);
    if more > 0 {
        notes.truncate(MOST);
        notes.push(format!("and {} more of that kind (--format json has all)", count(more as u64)));
    }
    if !found.elsewhere.is_empty() {
        let missing = found.elsewhere.len() as u64;
        let is_one = found.hosts.len() == 1 && found.unseen.is_empty();
        notes.push(format!(
            "rank{} {} of this job {} not {}",
            plural(missing),
            list_ranks(&found.elsewhere),
            if missing == 1 { "is" } else { "are" },
            match is_one {
                true => "on this machine: lapscope hang --job, or --hosts, asks others, too",
                false => "on the hosts that were looked at",
            }
        ));
    }
    notes
}

/// What else can be asked, and how the odd one out is looked at.
pub fn next(found: &StackDiagnosis) -> Vec<String> {
    let mut steps = Vec::from_iter(odd_one(found).map(|rank| {
        let number = rank.rank.map(|number| format!(": rank {number}")).unwrap_or_default();
        format!("gdb -p {}   on {}{number}, the odd one out", rank.pid, rank.host)
    }));
    if found.recorded.is_empty() {
        let text = "Without a record it is known where ranks are, not for whom they wait: a job that is started by lapscope run \
                    tells that, too.";
        steps.push(text.to_owned());
    }
    let line = |it: &RecordedRun| {
        format!("lapscope hang {}   who waits for whom, by the records", shell::quote(&it.run))
    };
    steps.extend(found.recorded.iter().map(line));
    steps
}

/// A rank where few others are: at the end of the first branches, if it stands there.
fn odd_one(found: &StackDiagnosis) -> Option<&RankStack> {
    const FEW: usize = 4;
    let mut branch = found.tree.first()?;
    while let Some(within) = branch.branches.first() {
        branch = within;
    }
    let wanted = branch.ranks.first()?;
    let is_odd = branch.count * FEW <= found.ranks.len();
    found.ranks.iter().find(|it| it.rank.as_ref() == Some(wanted)).filter(|it| is_odd && it.stands)
}

fn is_listed(rank: &RankStack, listed: Option<&RankList>) -> bool {
    listed.is_some_and(|listed| rank.rank.is_some_and(|number| listed.contains(number)))
}

/// Of many branches the first, with fewest ranks, are shown, and the last ones, where most are. `left`: lines.
fn write_branches(
    out: &mut dyn Write,
    branches: &[Branch],
    indent: &str,
    left: &mut usize,
    style: Style,
) -> io::Result<()> {
    let most = MOST_BRANCHES.min(*left);
    let skipped = branches.len().saturating_sub(most);
    let first = most.saturating_sub(LAST_BRANCHES);
    for (at, branch) in branches.iter().enumerate() {
        if skipped > 0 && at == first {
            let ranks: usize = branches[at..at + skipped].iter().map(|it| it.count).sum();
            let (more, ranks) = (count(skipped as u64), processes(ranks));
            let text = format!("… {more} more branches with {ranks} (--format json has all)");
            writeln!(out, "{}", style.wrap(&text, indent, &format!("{indent}    ")))?;
        }
        if (first..first + skipped).contains(&at) {
            continue;
        }
        *left = left.saturating_sub(1);
        let (places, last) = stretch(branch);
        let line = format!("{places}  [{}]", who(branch));
        writeln!(out, "{}", style.wrap(&line, indent, &format!("{indent}    ")))?;
        write_branches(out, &last.branches, &format!("{indent}  "), left, style)?;
    }
    Ok(())
}

/// Places that lead to one place only are one, as "main > exchange"; where it forks, or ends.
pub fn stretch(branch: &Branch) -> (String, &Branch) {
    let (mut last, mut places) = (branch, branch.place.clone());
    while let [only] = last.branches.as_slice() {
        places += &format!(" > {}", only.place);
        last = only;
    }
    (places, last)
}

/// "ranks 0, 2-3"; without numbers "4 processes".
pub fn who(branch: &Branch) -> String {
    match branch.ranks.len() == branch.count {
        true => format!("rank{} {}", plural(branch.count as u64), list_ranks(&branch.ranks)),
        false => processes(branch.count),
    }
}

fn processes(number: usize) -> String {
    format!("{} process{}", count(number as u64), if number == 1 { "" } else { "es" })
}

fn write_rank(out: &mut dyn Write, rank: &RankStack, style: Style) -> io::Result<()> {
    let number = rank.rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    let head = format!("rank {number} on {}, process {}", visible(&rank.host), rank.pid);
    writeln!(out, "\n{}", style.bold(&head))?;
    if let Some(call) = &rank.call {
        let passed = rank.arguments.as_ref().map(|it| format!(" ({})", it.in_words()));
        writeln!(out, "  {call}{}", passed.unwrap_or_default())?;
    }
    for place in rank.places(FrameName::short) {
        writeln!(out, "  {place}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(place: String, count: usize, branches: Vec<Branch>) -> Branch {
        Branch { place, count, ranks: Vec::new(), branches }
    }

    fn written(tree: &[Branch]) -> String {
        let (mut out, mut left) = (Vec::new(), MOST_LINES);
        let style = Style { width: 100, color: false };
        write_branches(&mut out, tree, "  ", &mut left, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Where most are, and the odd ones out, are seen however many places there are.
    #[test]
    fn a_tree_of_ten_thousand_places_fits_a_screen() {
        let mut many: Vec<Branch> =
            (0..10_000).map(|at| branch(format!("work x.c:{at}"), 1, Vec::new())).collect();
        many.push(branch("MPI_Allreduce".to_owned(), 5_000, Vec::new()));
        let text = written(&[branch("main".to_owned(), 15_000, many)]);
        assert_eq!(text.lines().count(), 14, "{text}");
        assert!(
            text.starts_with("  main  [15000 processes]\n    work x.c:0  [1 process]\n"),
            "{text}"
        );
        assert!(text.contains("    … 9989 more branches with 9989 processes (--format"), "{text}");
        assert!(text.ends_with("    MPI_Allreduce  [5000 processes]\n"), "{text}");

        let fork = |at: usize, within: Vec<Branch>| branch(format!("f{at}"), 20, within);
        let leaves = || (0..20).map(|at| fork(at, Vec::new())).collect::<Vec<Branch>>();
        let text = written(&(0..20).map(|at| fork(at, leaves())).collect::<Vec<Branch>>());
        assert!(text.lines().count() < 2 * MOST_LINES, "{text}");
    }
}
