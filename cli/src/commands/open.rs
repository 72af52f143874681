//! What the commands that read a run have in common.

use std::path::Path;

use anyhow::Result;

use super::filters::check_ranks;
use super::recover::{recover_run, Copies};
use crate::analysis::aggregate::{Aggregator, FileSums};
use crate::analysis::combine::RunSums;
use crate::analysis::measures::FileMeasures;
use crate::analysis::pending::{collect_pending, read_pending, FilePending, PendingItem};
use crate::analysis::problem::{find_problems_of, Problem, ProblemKind};
use crate::db::{find_run, for_each_file, list_files, rows_to_scan, scan, DbError, RunFiles};
use crate::model::{Module, Rank, RankInfo};
use crate::render::progress::Progress;
use crate::say;
use crate::symbols::Symbols;
use crate::trace::Trace;

/// The files of a run, after what killed ranks left was turned into databases.
pub struct OpenRun {
    pub files: RunFiles,
    /// Spools that could not be turned into databases, and why.
    pub problems: Vec<Problem>,
    /// Of spools whose ranks may still run elsewhere.
    _copies: Copies,
}

impl OpenRun {
    /// # Errors
    /// There is no run, or nothing in it can be read yet.
    pub fn open(named: Option<&Path>) -> Result<OpenRun> {
        let root = find_run(named)?;
        let mut files = list_files(&root)?;
        let (mut problems, mut copies) = (Vec::new(), Copies::default());
        if !files.spools.is_empty() {
            let left = match recover_run(&root, true) {
                Ok(summary) => {
                    copies = summary.copies;
                    summary.left
                }
                Err(error) => vec![format!("{error:#}")],
            };
            let not_recovered = |line| Problem::new(ProblemKind::NotRecovered, line, vec![]);
            problems.extend(left.into_iter().map(not_recovered));
            files = list_files(&root)?;
            files.databases.extend(copies.databases.iter().cloned());
        }
        if files.databases.is_empty() {
            let why: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
            anyhow::bail!("{}: no data yet: {}", root.display(), why.join("; "));
        }
        Ok(OpenRun { files, problems, _copies: copies })
    }

    /// The name of the run as the user would type it.
    pub fn name(&self) -> String {
        self.files.root.to_string_lossy().into_owned()
    }

    /// Reads everything once and sums it up; also why some files could not be read.
    ///
    /// # Errors
    /// No file could be read.
    pub fn sum(&self) -> Result<(RunSums, Vec<DbError>)> {
        let progress = Progress::default();
        let per_file = for_each_file(&self.files.databases, |database, definitions| {
            let mut aggregator = Aggregator::new(&definitions);
            let sums = || -> rusqlite::Result<_> {
                progress.expect(rows_to_scan(&database.connection)?);
                scan(&database.connection, &mut aggregator, &|rows| progress.add(rows))?;
                let measures = FileMeasures::read(&database.connection, &definitions)?;
                Ok(FileSums { measures, ..aggregator.finish() })
            };
            let sums = sums().map_err(DbError::reading(&database.path))?;
            Ok((definitions, sums))
        })?;
        Ok((RunSums::combine(per_file.read), per_file.failed))
    }

    /// As [`OpenRun::sum`], and puts the same rows together across ranks.
    ///
    /// # Errors
    /// No file could be read.
    pub fn sum_and_trace(&self) -> Result<(RunSums, Trace, Vec<DbError>)> {
        let read = Trace::read_with(&self.files.databases, Some(Aggregator::new))?;
        let sums = read.sinks.into_iter().map(|(definitions, sums)| (definitions, sums.finish()));
        Ok((RunSums::combine(sums.collect()), read.trace, read.failed))
    }

    /// Reads everything once and puts it together across ranks; also what to know before believing it.
    ///
    /// # Errors
    /// No file could be read, or one of `ranks` is not in it.
    pub fn trace(&self, ranks: &[Rank]) -> Result<(Trace, Vec<Problem>)> {
        let (trace, failed) = Trace::read(&self.files.databases)?;
        let known = trace.ranks.iter().map(|trace| trace.info().rank);
        check_ranks("--rank", ranks.iter().copied(), known, &self.name())?;
        let infos: Vec<&RankInfo> = trace.ranks.iter().map(|rank| rank.info()).collect();
        let mut problems = self.problems.clone();
        problems.extend(find_problems_of(&infos, &failed, &[]));
        Ok((trace, problems))
    }

    /// Reads and names what did not end.
    ///
    /// # Errors
    /// No file could be read.
    pub fn pending(&self) -> Result<Pending> {
        let per_file = for_each_file(&self.files.databases, |database, definitions| {
            let rows = read_pending(database, &definitions)?;
            Ok(FilePending { definitions, rows })
        })?;
        let ranks = per_file.read.iter().flat_map(|file| &file.definitions.ranks);
        let ranks = ranks.map(|info| info.rank).collect();
        let (items, symbols) =
            collect_pending(&per_file.read, |modules: Vec<Module>| Symbols::new(modules));
        Ok(Pending { items, ranks, symbols, failed: per_file.failed })
    }
}

/// What did not end.
pub struct Pending {
    pub items: Vec<PendingItem>,
    /// Of which files could be read.
    pub ranks: Vec<Rank>,
    /// Knows which modules could not be used.
    pub symbols: Symbols,
    pub failed: Vec<DbError>,
}

/// Says on standard error what must be known, for output formats that have no place for it.
pub fn warn(problems: &[Problem]) {
    for problem in problems {
        say!("{}", problem.message);
    }
}
