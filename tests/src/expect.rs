//! What a program is known to do: `tests/apps/<app>.expect`, and its comparison with what was recorded.
//!
//! A file has a head (`ranks 2`, `exit 3`, `args one two`, `unbalanced`, `needs MPI_Psend_init`, `broken
//! reason`, `unsure reason`, `env NAME=VALUE`, `spawned 2`) and one line for each distinct row:
//!
//! ```text
//! rank=0 request MPI_Isend send bytes=400 peer=1 tag=7 ended=waited by=MPI_Waitall x10
//! rank=0-1 call MPI_Waitall other completed=2 x10
//! rank=0 tally MPI_Test unsuccessful_test x1+
//! rank=0 comm MPI_Comm_dup intra size=2 remote_size=0 comm_rank=0 members=0,1
//! rank=0 mark solve 1 x10
//! rank=0 unknown 1
//! rank=2:0-1 call MPI_Send send bytes=4 tag=5
//! [mpich] rank=0 call MPI_Wait other completed=1
//! [openmpi5|intel] rank=0 call MPI_Wait other completed=2
//! ```
//!
//! A rank of a world that was spawned has the world's number in front. `[...]` names the MPIs that a line is for, by the words of [`crate::mpi::Mpi::words`]: its name, its family, its version.
//!
//! `MPI_Isend(_c)` stands for `MPI_Isend` and `MPI_Isend_c`. Values may be `*`, `2+` or `2..5`, and so may the count behind `x`, which is 1 where it is left out. Bytes, peer, tag,
//! completed, the received half and what made a persistent request (`init`) are 0 or NULL where they are left out; other
//! fields (`comm`, `unsuccessful_tests`, `posted_bytes`, `thread` ...) are free then. Every row must be in the file and every line must find its rows. Only rows
//! of communicators and marks (when the file has none of them) and calls that start and end MPI (when it does not name them) are let be.

use std::fs;
use std::path::Path;

use crate::mpi::Mpi;
use crate::pattern::{describe, Pattern};
use crate::rows::RecordedRow;

/// Calls of the family ENVIRONMENT.
const STARTING_AND_ENDING: &[&str] = &[
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Abort",
    "MPI_Pcontrol",
    "MPI_Session_init",
    "MPI_Session_finalize",
];

/// The expectations of one program under one MPI.
#[derive(Debug, Default)]
pub struct Expectation {
    pub ranks: u32,
    /// Processes that the program spawns.
    pub spawned: u32,
    pub code: i32,
    pub args: Vec<String>,
    /// Functions without which the program cannot be built: an MPI that lacks one is not tested.
    pub needs: Vec<String>,
    /// Why the program does not run under this MPI, with or without lapscope.
    pub broken: Option<String>,
    /// Why the program fails now and then under this MPI, with or without lapscope: it is tried again.
    pub unsure: Option<String>,
    /// Variables that the program needs, with or without lapscope.
    pub environment: Vec<(String, String)>,
    /// Some messages were recorded on one side only, or not received as they were sent.
    pub unbalanced: bool,
    patterns: Vec<Pattern>,
}

impl Expectation {
    /// Reads a file.
    ///
    /// # Panics
    /// When it cannot be read or understood; the message has the line.
    pub fn read(path: &Path, mpi: &Mpi) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text, mpi, &path.display().to_string())
    }

    /// Parses the text of such a file; `name` is for messages.
    ///
    /// # Panics
    /// When it cannot be understood.
    pub fn parse(text: &str, mpi: &Mpi, name: &str) -> Self {
        let mut expectation = Self { ranks: 2, ..Self::default() };
        for (number, line) in text.lines().enumerate() {
            let Some(line) = of_this_mpi(line.trim(), mpi.words) else { continue };
            if !line.is_empty() && !line.starts_with('#') && expectation.take(line).is_none() {
                panic!("{name}:{}: not understood: {line}", number + 1);
            }
        }
        expectation
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if line == "unbalanced" {
            self.unbalanced = true;
            return Some(());
        }
        match line.split_once(' ')? {
            ("ranks", value) => self.ranks = value.parse().ok()?,
            ("spawned", value) => self.spawned = value.parse().ok()?,
            ("exit", value) => self.code = value.parse().ok()?,
            ("needs", value) => self.needs.extend(value.split(' ').map(str::to_owned)),
            ("env", value) => {
                let (name, value) = value.split_once('=')?;
                self.environment.push((name.to_owned(), value.to_owned()));
            }
            ("broken", value) => self.broken = Some(value.to_owned()),
            ("unsure", value) => self.unsure = Some(value.to_owned()),
            ("args", value) => self.args = value.split(' ').map(str::to_owned).collect(),
            _ => self.patterns.extend(Pattern::parse(line)?),
        }
        Some(())
    }

    /// How often the program may be tried.
    pub fn attempts(&self) -> usize {
        if self.unsure.is_some() {
            5
        } else {
            1
        }
    }

    /// Compares rows with this. `Err` has a line for each difference: `-` expected and not there, `+` there and not
    /// expected.
    pub fn compare(&self, rows: &[(RecordedRow, u64)]) -> Result<(), String> {
        let mut found = vec![0u64; self.patterns.len()];
        let mut differences = Vec::new();
        for (row, count) in rows.iter().filter(|(row, _)| self.concerns(row)) {
            let mut left = *count;
            for (pattern, found) in self.patterns.iter().zip(&mut found) {
                if left > 0 && pattern.matches(row) {
                    let taken = left.min(pattern.most - *found);
                    *found += taken;
                    left -= taken;
                }
            }
            if left > 0 {
                differences.push(format!("+ {} x{left}", describe(row)));
            }
        }
        for (pattern, found) in self.patterns.iter().zip(&found) {
            if *found < pattern.least {
                differences.push(format!("- {pattern} ({found} found)"));
            }
        }
        differences.sort_by_key(|line| line[2..].to_owned());
        if differences.is_empty() {
            Ok(())
        } else {
            Err(differences.join("\n"))
        }
    }

    fn concerns(&self, row: &RecordedRow) -> bool {
        let named = || {
            self.patterns
                .iter()
                .any(|pattern| pattern.table == row.table && pattern.names(&row.name))
        };
        match row.table.as_str() {
            "comm" | "mark" => self.patterns.iter().any(|pattern| pattern.table == row.table),
            "call" if STARTING_AND_ENDING.contains(&row.name.as_str()) => named(),
            _ => true,
        }
    }
}

/// The line without the MPIs in front of it; `None` when those are others.
fn of_this_mpi<'a>(line: &'a str, words: &[&str]) -> Option<&'a str> {
    match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((names, rest)) => {
            names.split('|').any(|name| words.contains(&name)).then(|| rest.trim())
        }
        None => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi;

    fn row(bytes: &str, unsuccessful_tests: &str) -> RecordedRow {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        RecordedRow {
            rank: "1".to_owned(),
            table: "request".into(),
            name: "MPI_Irecv".into(),
            kind: "recv".into(),
            fields: [
                field("bytes", bytes),
                field("peer", "0"),
                field("tag", "3"),
                field("ended", "tested"),
                field("by", "MPI_Test"),
                field("unsuccessful_tests", unsuccessful_tests),
                field("init", "NULL"),
                field("receive_bytes", "NULL"),
                field("receive_peer", "NULL"),
                field("receive_tag", "NULL"),
            ]
            .into(),
        }
    }

    fn expectation(lines: &[&str]) -> Expectation {
        let patterns =
            lines.iter().flat_map(|line| Pattern::parse(line).expect("a line")).collect();
        Expectation { ranks: 2, patterns, ..Expectation::default() }
    }

    const LINE: &str =
        "rank=0-1 request MPI_Irecv recv bytes=8 peer=0 tag=3 ended=tested by=MPI_Test";

    #[test]
    fn rows_that_are_as_expected_say_nothing() {
        let one_rank = LINE.replace("0-1", "1");
        assert_eq!(
            expectation(&[&format!("{one_rank} x3")])
                .compare(&[(row("8", "0"), 2), (row("8", "5"), 1)]),
            Ok(())
        );
        assert_eq!(
            expectation(&[&format!("{one_rank} unsuccessful_tests=1+ x0..9")])
                .compare(&[(row("8", "5"), 4)]),
            Ok(())
        );
    }

    #[test]
    fn each_difference_is_a_line() {
        let said =
            expectation(&[LINE]).compare(&[(row("8", "0"), 1), (row("9", "0"), 2)]).unwrap_err();
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(
            lines[0].starts_with("- rank=0 request MPI_Irecv recv by=MPI_Test bytes=8"),
            "{said}"
        );
        assert!(
            lines[1].starts_with("+ rank=1 request MPI_Irecv recv by=MPI_Test bytes=9"),
            "{said}"
        );
        assert!(lines[1].ends_with("x2"), "{said}");
    }

    #[test]
    fn a_count_that_is_too_high_is_a_difference() {
        let said =
            expectation(&[&LINE.replace("0-1", "1")]).compare(&[(row("8", "0"), 3)]).unwrap_err();
        assert!(said.starts_with("+ ") && said.ends_with("x2"), "{said}");
    }

    #[test]
    fn ranks_of_spawned_worlds_are_others() {
        let spawned = RecordedRow { rank: "2:1".to_owned(), ..row("8", "0") };
        let line = LINE.replace("0-1", "2:0-1");
        let said = expectation(&[&line]).compare(&[(spawned, 1)]).unwrap_err();
        assert!(said.starts_with("- rank=2:0 ") && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn the_head_is_read() {
        let mpi = mpi::all()[0];
        let head = "ranks 3\nspawned 2\nneeds MPI_A MPI_B\nenv NAME=a=b\n[no-such] broken x\n";
        let read = Expectation::parse(head, mpi, "head");
        assert_eq!((read.ranks, read.spawned, read.broken), (3, 2, None));
        assert_eq!(read.needs, ["MPI_A", "MPI_B"]);
        assert_eq!(read.environment, [("NAME".to_owned(), "a=b".to_owned())]);
    }

    #[test]
    fn lines_of_another_mpi_are_left_out() {
        let words = ["mpich", "mpich5"];
        assert_eq!(of_this_mpi("[mpich] exit 3", &words), Some("exit 3"));
        assert_eq!(of_this_mpi("[openmpi|mpich5] exit 3", &words), Some("exit 3"));
        assert_eq!(of_this_mpi("[openmpi|mpich4] exit 3", &words), None);
        assert_eq!(of_this_mpi("exit 3", &words), Some("exit 3"));
    }
}
