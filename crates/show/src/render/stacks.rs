//! Where ranks are that nobody records: a sentence, and their call paths as a tree.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::hang::write_verdict;
use lapscope_data::model::{Rank, RankList};
use lapscope_data::symbols::FrameName;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, time};
use lapscope_data::text::visible::visible;
use lapscope_data::text::{list_ranks, plural};
use lapscope_watch::stacks::{Absent, Branch, RankStack, RecordedRun, StackDiagnosis, ThreadStack};

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
    for (at, job) in found.jobs().enumerate() {
        if !found.other_jobs.is_empty() {
            let gap = if at > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}\n", style.wrap(&style.bold(&title(job)), "", "  "))?;
        }
        write_job(out, job, listed, style)?;
    }
    for next in next(found) {
        writeln!(out, "\n{}", style.wrap(&next, "", "  "))?;
    }
    Ok(())
}

fn write_job(
    out: &mut dyn Write,
    job: &StackDiagnosis,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    for recorded in &job.recorded {
        write_verdict(out, "VERDICT", &recorded.diagnosis.verdict, "", style)?;
    }
    writeln!(out, "{}", style.bold("WHERE"))?;
    writeln!(out, "{}", style.wrap(&job.sentence, "  ", "  "))?;
    for note in notes(job) {
        writeln!(out, "{}", style.warning(&note))?;
    }
    writeln!(
        out,
        "\n{}",
        style
            .headed("CALL PATHS", "from main inwards, with the ranks that are below; fewest first")
    )?;
    let mut left = MOST_LINES;
    write_branches(out, &job.tree, "  ", &mut left, style)?;
    let others = other_threads(&job.ranks);
    if !others.is_empty() {
        let about = "of these ranks that are inside MPI, or on a processor";
        writeln!(out, "\n{}", style.headed("OTHER THREADS", about))?;
    }
    for place in others {
        writeln!(out, "{}", style.wrap(&place, "  ", "      "))?;
    }
    for rank in job.ranks.iter().filter(|rank| is_listed(rank, listed)) {
        write_rank(out, rank, style)?;
    }
    Ok(())
}

/// "JOB ./heat -n 4: 4 ranks, process 812 on node7 is rank 0".
pub fn title(job: &StackDiagnosis) -> String {
    let Some(first) = job.ranks.first() else { return "JOB".to_owned() };
    let rank = first.rank.map(|rank| format!(" is rank {rank}")).unwrap_or_default();
    format!(
        "JOB {}: {}, process {} on {}{rank}",
        visible(&first.command),
        processes(job.ranks.len()),
        first.pid,
        visible(&first.host)
    )
}

/// "in MPI_Recv, called at work x.c:7  [ranks 0-3]", fewest first; of many the first.
pub fn other_threads(ranks: &[RankStack]) -> Vec<String> {
    const MOST: usize = 12;
    let mut places: BTreeMap<String, Vec<&RankStack>> = BTreeMap::new();
    for rank in ranks {
        let told = |it: &&ThreadStack| it.is_told() || it.tid == rank.pid;
        for thread in rank.other_threads.iter().filter(told) {
            places.entry(thread.place()).or_default().push(rank);
        }
    }
    let mut places: Vec<(String, Vec<&RankStack>)> = places.into_iter().collect();
    places.sort_by_key(|(_, threads)| threads.len());
    let more = places.len().saturating_sub(MOST);
    let line = |(place, mut of): (String, Vec<&RankStack>)| {
        let threads = of.len() as u64;
        of.dedup_by_key(|it| it.pid);
        let numbers: Option<Vec<Rank>> = of.iter().map(|it| it.rank).collect();
        let whose = match numbers {
            Some(numbers) => {
                format!("rank{} {}", plural(numbers.len() as u64), list_ranks(&numbers))
            }
            None => processes(of.len()),
        };
        let many = if threads > of.len() as u64 {
            format!("{threads} threads of ")
        } else {
            String::new()
        };
        format!("{place}  [{many}{whose}]")
    };
    let rest = format!("… {more} more places (--each-rank has all)");
    places.into_iter().take(MOST).map(line).chain((more > 0).then_some(rest)).collect()
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
    let jobs = match found.other_jobs.len() as u64 {
        0 => String::new(),
        others => format!(" of {} jobs", count(1 + others)),
    };
    format!(
        "{}{jobs}{hosts} from outside, two looks {} apart; {stopped}",
        processes(found.jobs().map(|job| job.ranks.len()).sum()),
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
    notes.extend(of_absent(found));
    notes
}

fn of_absent(found: &StackDiagnosis) -> Vec<String> {
    let Absent { elsewhere, elsewhere_ended, of_other_programs, .. } = &found.absent;
    let ranks = |ranks: &[Rank]| {
        let many = ranks.len() as u64;
        let is = if many == 1 { "is" } else { "are" };
        (format!("rank{} {} of this job", plural(many), list_ranks(ranks)), is)
    };
    let mut notes = Vec::new();
    if !of_other_programs.is_empty() {
        let (who, _) = ranks(of_other_programs);
        let verb = if of_other_programs.len() == 1 {
            "runs another program"
        } else {
            "run other programs"
        };
        notes.push(format!("{who} {verb}: lapscope hang --pid, or --command, looks at them, too"));
    }
    if !elsewhere.is_empty() {
        let (who, is) = ranks(elsewhere);
        let is_one = found.hosts.len() == 1 && found.unseen.is_empty();
        let (place, way) = match is_one {
            true => ("this machine", ": lapscope hang --job, or --hosts, asks others, too"),
            false => ("the hosts that were looked at", ""),
        };
        let ended = match elsewhere_ended {
            None => {
                format!(" any more, or never {}", if elsewhere.len() == 1 { "was" } else { "were" })
            }
            Some(0) => String::new(),
            Some(count) => format!(
                ", where {count} of them {} ended",
                if *count == 1 { "has" } else { "have" }
            ),
        };
        notes.push(format!("{who} {is} not on {place}{ended}{way}"));
    }
    notes
}

/// What else can be asked, and how the odd one out is looked at.
pub fn next(found: &StackDiagnosis) -> Vec<String> {
    let mut steps = Vec::from_iter(found.jobs().filter_map(odd_one).map(|rank| {
        let number = rank.rank.map(|number| format!(": rank {number}")).unwrap_or_default();
        format!("gdb -p {}   on {}{number}, the odd one out", rank.pid, rank.host)
    }));
    if found.jobs().all(|job| job.recorded.is_empty()) {
        let text = "Without a record it is known where ranks are, not for whom they wait: a job that is started by lapscope run \
                    tells that, too.";
        steps.push(text.to_owned());
    }
    let line = |it: &RecordedRun| {
        format!("lapscope hang {}   who waits for whom, by the records", shell::quote(&it.run))
    };
    steps.extend(found.jobs().flat_map(|job| &job.recorded).map(line));
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
    found
        .ranks
        .iter()
        .find(|it| it.rank.as_ref() == Some(wanted))
        .filter(|it| is_odd && it.at.stands)
}

/// A process without a number is one of all.
fn is_listed(rank: &RankStack, listed: Option<&RankList>) -> bool {
    let is_named = |listed: &RankList| match rank.rank {
        Some(number) => listed.contains(number),
        None => *listed == RankList::All,
    };
    listed.is_some_and(is_named)
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
    let process = format!("process {} on {}", rank.pid, visible(&rank.host));
    let head = match rank.rank {
        Some(number) => format!("rank {number}, {process}"),
        None => process,
    };
    writeln!(out, "\n{}", style.bold(&head))?;
    writeln!(out, "  {}", rank.place())?;
    write_frames(out, &rank.at, "  ")?;
    for thread in &rank.other_threads {
        writeln!(out, "  thread {}: {}", thread.tid, thread.place())?;
        write_frames(out, thread, "    ")?;
    }
    Ok(())
}

fn write_frames(out: &mut dyn Write, at: &ThreadStack, indent: &str) -> io::Result<()> {
    if let Some(arguments) = &at.arguments {
        writeln!(out, "{indent}{}", arguments.in_words())?;
    }
    at.places(FrameName::short).iter().try_for_each(|place| writeln!(out, "{indent}  {place}"))
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
