//! What a launch left in a run directory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::run::runs::RunDirectory;
use lapscope_advise::singletons::Singletons;
use lapscope_data::db::{leaves_pending, list_files, parse_name, Database, DbError, FileOutcome};
use lapscope_data::model::{Full, Rank};
use lapscope_data::text::{list_ranks, shell};

/// What the ranks of one job left.
#[derive(Debug, Default)]
pub struct JobOutcome {
    /// World sizes by world.
    pub worlds: BTreeMap<i64, i64>,
    pub ranks: BTreeSet<Rank>,
    pub requests: u64,
    pub calls: u64,
    pub lost: u64,
    pub summarized: Option<Full>,
    /// `rank.ended` of the ranks that did not end in MPI_Finalize.
    pub died: BTreeMap<Rank, String>,
    /// Whether one of these was inside of a call, or had requests under way.
    pub leaves_pending: bool,
    /// Sentences about what could not be read.
    pub trouble: Vec<String>,
    mpi: Option<Mpi>,
    /// Whether one of the worlds has started another.
    has_spawned: bool,
}

/// The MPI of one of the ranks.
#[derive(Debug)]
struct Mpi {
    job: String,
    abi: String,
    library: String,
}

/// Recovers leftover spools of a run whose launcher has ended, and counts what is there.
///
/// # Errors
/// The directory cannot be listed.
pub fn read(run: &RunDirectory) -> anyhow::Result<JobOutcome> {
    let recovered = run.recover(true)?;
    let mut outcome = JobOutcome { trouble: recovered.left, ..JobOutcome::default() };
    let mut files = match list_files(&run.directory) {
        Ok(files) => files.databases,
        Err(DbError::Empty(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    files.extend(recovered.copies.databases.iter().cloned());
    for path in files {
        let counted = Database::open(&path)
            .map_err(anyhow::Error::from)
            .and_then(|database| outcome.add(&database).map_err(anyhow::Error::from));
        if let Err(error) = counted {
            outcome.trouble.push(format!("{error:#}"));
        }
    }
    Ok(outcome)
}

/// Says where a launch has written that was told to write into a directory with an earlier run.
pub fn beside(asked: &Path, runs: &[RunDirectory]) -> Option<String> {
    let first = runs.first().filter(|_| runs.iter().all(|run| run.directory != asked))?;
    let [asked, written] = [asked, &first.directory].map(relative);
    Some(format!(
        "{} has an earlier run already, which lapscope report {} shows: this one is in {}",
        asked.display(),
        shell::quote(&asked),
        written.display()
    ))
}

/// Describes a run whose spools are to stay as they are.
///
/// # Errors
/// The directory cannot be listed.
pub fn describe_unconverted(run: &RunDirectory) -> anyhow::Result<String> {
    let entries =
        std::fs::read_dir(&run.directory).with_context(|| run.directory.display().to_string())?;
    let is_spool =
        |name: &str| parse_name(name).is_some_and(|(_, extension)| extension.starts_with("spool"));
    let names = entries.flatten().map(|entry| entry.file_name());
    let count = names.filter(|name| is_spool(&name.to_string_lossy())).count();
    let (run, plural) = (relative(&run.directory), if count == 1 { "" } else { "s" });
    Ok(format!(
        "data in {}: {count} spool{plural}, not converted (LAPSCOPE_CONVERT=off); next: lapscope recover {}",
        run.display(),
        shell::quote(&run)
    ))
}

impl JobOutcome {
    fn add(&mut self, database: &Database) -> rusqlite::Result<()> {
        let file = FileOutcome::read(database)?;
        self.requests += file.requests;
        self.calls += file.calls;
        self.has_spawned |= file.has_spawned;
        for rank in file.ranks {
            self.ranks.insert(rank.rank);
            let size = self.worlds.entry(rank.rank.world).or_default();
            *size = rank.world_size.max(*size);
            self.lost += rank.lost;
            self.summarized = self.summarized.or(rank.summarized);
            if rank.ended != "finalize" {
                self.died.insert(rank.rank, rank.ended);
            }
            self.mpi.get_or_insert(Mpi {
                job: rank.job,
                abi: rank.mpi_abi,
                library: rank.mpi_library,
            });
        }
        if !self.died.is_empty() && !self.leaves_pending {
            self.leaves_pending = leaves_pending(database)?;
        }
        Ok(())
    }

    /// Where ranks were meant to be one world and are many.
    fn singletons(&self) -> Option<Singletons<'_>> {
        let mpi = self.mpi.as_ref()?;
        let are_alone = self.worlds.len() > 1 && self.worlds.values().all(|&size| size == 1);
        (are_alone && !self.has_spawned).then(|| Singletons {
            processes: self.worlds.len(),
            job: &mpi.job,
            abi: &mpi.abi,
            library: &mpi.library,
        })
    }

    /// The last lines of a run. `reported`: a report follows, so none needs to be recommended. Neither is one where no rank
    /// could be converted: what stands in the way is said.
    pub fn lines(&self, run: &Path, reported: bool) -> Vec<String> {
        let run = relative(run);
        let (run, quoted) = (run.display(), shell::quote(&run));
        let ranks = self.ranks.len();
        let expected: i64 = self.worlds.values().sum();
        let of = if ranks as i64 == expected { String::new() } else { format!(" of {expected}") };
        let worlds = match self.worlds.len() {
            0 | 1 => String::new(),
            count => format!(" in {count} worlds"),
        };
        let mut lines = vec![format!(
            "data in {run}: {ranks}{of} rank{}{worlds}, {} requests, {} calls, {} lost{}",
            if ranks == 1 && of.is_empty() { "" } else { "s" },
            self.requests,
            self.calls,
            self.lost,
            self.summarized.map_or_else(String::new, |full| match full {
                Full::Asked | Full::JobRecord => format!("; {}", full.sentence()),
                _ => format!("; {}, the rest is summaries", full.sentence()),
            })
        )];
        lines.extend(self.singletons().map(|them| them.sentence()));
        lines.extend(in_short(&self.trouble));
        if !self.died.is_empty() {
            lines.push(format!("ended before MPI_Finalize: {}", self.dead()));
            if self.leaves_pending {
                lines.push(format!("what they were waiting for: lapscope hang --pending {quoted}"));
            }
        }
        if !reported && ranks > 0 {
            lines.push(format!("next: lapscope report {quoted}"));
        }
        lines
    }

    /// `ranks 1 (killed), 2 (MPI_Abort)`
    fn dead(&self) -> String {
        const NAMED: usize = 8;
        if self.died.len() > NAMED {
            return self.dead_by_end();
        }
        let each = self.died.iter();
        let each: Vec<String> =
            each.map(|(rank, ended)| format!("{rank} ({})", describe_end(ended))).collect();
        let plural = if self.died.len() == 1 { "" } else { "s" };
        format!("rank{plural} {}", each.join(", "))
    }

    /// `ranks 0-63 (killed); 64 (MPI_Abort)`
    fn dead_by_end(&self) -> String {
        let mut by_end: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
        for (rank, ended) in &self.died {
            by_end.entry(describe_end(ended)).or_default().push(*rank);
        }
        let mut each: Vec<(&str, Vec<Rank>)> = by_end.into_iter().collect();
        each.sort_by_key(|(_, ranks)| Reverse(ranks.len()));
        let each = each.iter().map(|(end, ranks)| format!("{} ({end})", list_ranks(ranks)));
        format!("ranks {}", each.collect::<Vec<_>>().join("; "))
    }
}

/// The first ones, and how many more there are: of a run of many nodes there may be one for each rank.
fn in_short(sentences: &[String]) -> impl Iterator<Item = String> + '_ {
    const MOST: usize = 4;
    let more = sentences.len().saturating_sub(MOST);
    let rest = (more > 0).then(|| format!("and {more} more like these"));
    sentences.iter().take(MOST).cloned().chain(rest)
}

fn describe_end(ended: &str) -> &str {
    match ended {
        "abort" => "MPI_Abort",
        "exit" => "exit without MPI_Finalize",
        other => other,
    }
}

/// Below the working directory: as the user would type it.
pub fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).map_or_else(|_| path.into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_name_the_dead_and_the_next_command() {
        let rank = |text: &str| text.parse::<Rank>().unwrap();
        let outcome = JobOutcome {
            worlds: [(1, 2), (2, 2)].into(),
            ranks: [rank("0"), rank("1"), rank("2:0")].into(),
            requests: 10,
            calls: 5,
            died: [(rank("1"), "killed".to_owned()), (rank("2:0"), "abort".to_owned())].into(),
            leaves_pending: true,
            ..JobOutcome::default()
        };
        let text = outcome.lines(Path::new("/data/run"), false).join("\n");
        assert!(text
            .contains("data in /data/run: 3 of 4 ranks in 2 worlds, 10 requests, 5 calls, 0 lost"));
        assert!(text.contains("ranks 1 (killed), 2:0 (MPI_Abort)"), "{text}");
        assert!(text.ends_with("next: lapscope report /data/run"));
    }

    #[test]
    fn a_run_beside_another_is_said_to_be_there() {
        let run = |name: &str| RunDirectory { directory: name.into(), launch: String::new() };
        let asked = Path::new("/data/run");
        let said = beside(asked, &[run("/data/run-2")]).unwrap();
        assert!(
            said.ends_with("lapscope report /data/run shows: this one is in /data/run-2"),
            "{said}"
        );
        assert_eq!(beside(asked, &[run("/data/run"), run("/data/run-2")]), None);
        assert_eq!(beside(asked, &[]), None);
    }

    #[test]
    fn processes_that_do_not_know_of_each_other_are_told_the_cure() {
        let mpi = |job: &str| Mpi {
            job: job.to_owned(),
            abi: "mpich".to_owned(),
            library: "MPICH Version: 4.0.2".to_owned(),
        };
        let of = |worlds: &[(i64, i64)], has_spawned| {
            let worlds = worlds.iter().copied().collect();
            let outcome =
                JobOutcome { worlds, mpi: Some(mpi("7.0")), has_spawned, ..JobOutcome::default() };
            outcome.lines(Path::new("/data/run"), false).join("\n").contains("srun --mpi=pmi2")
        };
        assert!(of(&[(1, 1), (2, 1), (3, 1)], false));
        assert!(!of(&[(1, 1), (2, 1)], true), "one has spawned the other");
        assert!(!of(&[(1, 1)], false) && !of(&[(1, 2), (2, 1)], false));
    }

    #[test]
    fn many_troubles_are_counted() {
        let trouble = (0..100).map(|rank| format!("rank-{rank} may still run")).collect();
        let outcome = JobOutcome { trouble, ..JobOutcome::default() };
        let lines = outcome.lines(Path::new("/data/run"), false);
        // the data, four, and how many more: there is nothing to report
        assert_eq!(lines.len(), 1 + 4 + 1, "{lines:?}");
        assert!(lines.contains(&"and 96 more like these".to_owned()), "{lines:?}");
    }

    #[test]
    fn many_dead_are_stretches_by_how_they_ended() {
        let ended = |rank| if rank == 64 { "abort" } else { "killed" };
        let died = (0..128).map(|rank| (Rank::of_first_world(rank), ended(rank).to_owned()));
        let outcome = JobOutcome { died: died.collect(), ..JobOutcome::default() };
        assert_eq!(outcome.dead(), "ranks 0-63, 65-127 (killed); 64 (MPI_Abort)");
    }
}
