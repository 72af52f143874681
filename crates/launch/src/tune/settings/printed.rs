//! Whether a program prints with a setting what it prints without: a setting that is quicker and changes results is no cure.
//!
//! Ranks print in any order and programs print times, so lines are compared without their order, and of the runs without the
//! setting only those lines that each of them has.

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

/// What runs printed.
#[derive(Debug, Default)]
pub struct Printed {
    without: Option<Lines>,
    runs_without: usize,
    /// By candidate.
    with: HashMap<usize, Vec<Lines>>,
}

impl Printed {
    /// `which`: the candidate of the run, `None` for one as it is. A file that cannot be read tells nothing.
    pub fn add(&mut self, which: Option<usize>, file: &Path) {
        let Ok(lines) = read(file) else { return };
        match which {
            Some(which) => self.with.entry(which).or_default().push(lines),
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
        let lacks =
            |run: &Lines, line: &str, times: usize| run.get(line).copied().unwrap_or(0) < times;
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

fn read(file: &Path) -> std::io::Result<Lines> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MOST).read_to_end(&mut bytes)?;
    let mut lines = Lines::new();
    for line in String::from_utf8_lossy(&bytes).lines().map(str::trim) {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    Ok(lines)
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
