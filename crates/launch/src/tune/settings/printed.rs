//! Whether a program prints with a setting what it prints without: a setting that is quicker and changes results is no cure.
//!
//! Ranks print in any order and programs print times, so lines are compared without their order, and of the runs without the
//! setting only those lines that each of them has. Ranks that print at once break each other's lines: a line whose words stand in
//! others is there, too.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Of what a run prints so much is compared, bytes.
const MOST: u64 = 1 << 20;
/// With fewer runs without the setting it is not known what they have in common.
const FEWEST: usize = 2;

/// How often a run has printed each line.
type Lines = HashMap<String, usize>;

/// What a run printed.
#[derive(Debug)]
struct Output {
    lines: Lines,
    text: String,
}

/// What runs printed.
#[derive(Debug, Default)]
pub struct Printed {
    without: Option<Lines>,
    runs_without: usize,
    /// By candidate.
    with: HashMap<usize, Vec<Output>>,
}

impl Printed {
    /// `which`: the candidate of the run, `None` for one as it is. A file that cannot be read tells nothing.
    pub fn add(&mut self, which: Option<usize>, file: &Path) {
        let Ok(text) = read(file) else { return };
        let lines = lines(&text);
        match which {
            Some(which) => self.with.entry(which).or_default().push(Output { lines, text }),
            None => {
                self.runs_without += 1;
                match &mut self.without {
                    Some(common) => common.retain(|line, times| {
                        *times = lines.get(line).map_or(0, |other| (*times).min(*other));
                        *times > 0
                    }),
                    None => self.without = Some(lines),
                }
            }
        }
    }

    /// A sentence where runs with a candidate lack a line that all runs without have.
    pub fn changed(&self, which: usize, named: &str) -> Option<String> {
        let common = self.without.as_ref().filter(|_| self.runs_without >= FEWEST)?;
        let runs = self.with.get(&which)?;
        let lacks = |run: &Output, line: &str, times: usize| {
            run.lines.get(line).copied().unwrap_or(0) < times && !is_within(&run.text, line)
        };
        let times_lacking =
            |line: &str, times: usize| runs.iter().filter(|run| lacks(run, line, times)).count();
        let all = common.iter().map(|(line, times)| (times_lacking(line, *times), line));
        let (lacking, line) =
            all.max_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(one.1)))?;
        (lacking > 0).then(|| {
            format!(
                "With {named} the program printed something else: {lacking} of {} runs lack the line \"{line}\", which each of the \
                 {} runs without has. Whether that is right only you know.",
                runs.len(),
                self.runs_without
            )
        })
    }
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lines(text: &str) -> Lines {
    let mut lines = Lines::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

/// Whether the words of a line stand one behind the other in a line and the next one, with others in between.
fn is_within(text: &str, line: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let has = |both: &str| line.split_whitespace().try_fold(both, behind).is_some();
    (0..lines.len()).any(|at| has(&lines[at..lines.len().min(at + 2)].join(" ")))
}

/// What stands behind a word; a number is none within a longer one.
fn behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_whole = |&at: &usize| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let goes_on = after.starts_with(|it: char| is_digit(it) || it == '.');
        let has_begun = before.ends_with(|it: char| is_digit(it) || ".+-".contains(it));
        !(word.ends_with(is_digit) && goes_on || word.starts_with(is_digit) && has_begun)
    };
    let at = text.match_indices(word).map(|(at, _)| at).find(is_whole)?;
    Some(&text[at + word.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(without: &[&str], with: &[&str]) -> Printed {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("stdout");
        let mut printed = Printed::default();
        let runs = without.iter().map(|text| (None, text));
        for (which, text) in runs.chain(with.iter().map(|text| (Some(3), text))) {
            std::fs::write(&file, text).unwrap();
            printed.add(which, &file);
        }
        printed
    }

    #[test]
    fn a_result_that_changes_is_said() {
        let without = ["rank 1\nsum 3.5\n1.01 s\n", "sum 3.5\nrank 1\n1.02 s\n"];
        let found = printed(&without, &["rank 1\nsum 3.6\n0.7 s\n", "rank 1\nsum 3.5\n0.7 s\n"]);
        let said = found.changed(3, "A=1").unwrap();
        assert!(
            said.contains(
                "1 of 2 runs lack the line \"sum 3.5\", which each of the 2 runs without has"
            ),
            "{said}"
        );
    }

    #[test]
    fn ranks_that_print_at_once_change_nothing() {
        let without = ["rank 0 sum 3.5\nrank 1 sum 3.5\n"; 2];
        for merged in ["rank 0 sum 3.5rank 1 sum 3.5\n\n", "rank 0 rank 1 sum 3.5sum \n3.5\n"] {
            assert_eq!(printed(&without, &[merged]).changed(3, "A=1"), None, "{merged}");
        }
        for other in ["rank 0 sum 3.55rank 1 sum 3.55\n\n", "rank 0 sum -3.5rank 1 sum -3.5\n\n"] {
            assert!(printed(&without, &[other]).changed(3, "A=1").is_some(), "{other}");
        }
    }

    #[test]
    fn order_and_times_change_nothing() {
        let without = ["rank 1\nrank 0\n1.01 s\n", "rank 0\nrank 1\n1.02 s\n"];
        let found = printed(&without, &["rank 1\nrank 0\n0.7 s\n"]);
        assert_eq!(found.changed(3, "A=1"), None);
        assert_eq!(found.changed(4, "B=1"), None, "it was not tried");
        assert_eq!(
            printed(&without[..1], &["else\n"]).changed(3, "A=1"),
            None,
            "one run has times"
        );
    }
}
