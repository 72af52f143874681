//! Records of jobs (`LAPSCOPE_RECORD=job`): a small text file of each node, which schema/job.def describes. A record may be
//! anybody's: nothing is believed of it that cannot be, and reading it takes memory in proportion to its length alone.

mod database;
mod fields;
mod notes;
mod shares;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::db::rules::Rule;
use crate::files::read_short;
use crate::model::{Bytes, Nanos};
pub use database::{as_run, JobRun};
pub use fields::BadField;
use fields::{of_bytes, Fields, Ids, JobRow};

include!(concat!(env!("OUT_DIR"), "/generated/job.rs"));

/// The end of a record's file name.
pub const JOB_SUFFIX: &str = ".lapscope-job";

/// Whether a file is called a record; what begins with a dot is still being written.
pub fn is_record_name(name: &str) -> bool {
    name.ends_with(JOB_SUFFIX) && !name.starts_with('.')
}

/// A longer file is no record. Recorders write at most a sixteenth of it.
pub const MOST_JOB_BYTES: usize = 1 << 20;

const FIRST_LINE: &str = "lapscope job record ";

/// What one node tells of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// The process that wrote it; `None` in records that are made up.
    pub keeper: Option<JobKeeper>,
    pub record: JobRecord,
    pub settings: Vec<JobSetting>,
    pub ranks: Vec<JobRank>,
    pub modules: Vec<JobModule>,
    pub frames: Vec<JobFrame>,
    pub sites: Vec<JobSite>,
    pub injectors: Vec<JobInjector>,
}

/// Why a file is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("is not the record of a job: it does not begin with \"{FIRST_LINE}\"")]
    NotARecord,
    #[error("was written by another version of lapscope (format {0}, this one reads {JOB_VERSION}): read it with that version")]
    OtherVersion(String),
    #[error("is longer than any record of a job")]
    TooLong,
    #[error("is cut short: its last line is not [end]")]
    CutShort,
    #[error("line {line}: {problem}")]
    Damaged { line: usize, problem: String },
}

impl NodeRecord {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// It is no record of this version, or a value in it is not what it can be.
    pub fn parse(bytes: &[u8]) -> Result<NodeRecord, JobError> {
        if bytes.len() > MOST_JOB_BYTES {
            return Err(JobError::TooLong);
        }
        let text = String::from_utf8_lossy(bytes);
        let version = text.lines().next().and_then(|line| line.strip_prefix(FIRST_LINE));
        let version = version.ok_or(JobError::NotARecord)?;
        if version != JOB_VERSION.to_string() {
            return Err(JobError::OtherVersion(version.chars().take(20).collect()));
        }
        let mut lines = Lines::new(&text);
        let mut tables = ParsedTables::default();
        while let Some(line) = lines.next() {
            if line == "[end]" {
                return tables.finish(lines.number);
            }
            let name = line.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
            let name = name.ok_or_else(|| lines.damaged("a table in brackets is expected"))?;
            tables.read(name, &mut lines)?;
        }
        Err(JobError::CutShort)
    }

    /// Reads a file, of which no more is read than a record can have.
    ///
    /// # Errors
    /// It cannot be read, or holds no record.
    pub fn read(file: &Path) -> anyhow::Result<NodeRecord> {
        let bytes = read_short(file, MOST_JOB_BYTES as u64);
        let bytes = bytes.with_context(|| format!("{} cannot be read", file.display()))?;
        NodeRecord::parse(&bytes).with_context(|| format!("{}", file.display()))
    }

    /// The frames of a call path, innermost first, of `site.frame`.
    pub fn path(&self, innermost: Option<i64>) -> Vec<&JobFrame> {
        let frame = |id: i64| {
            let place = self.frames.binary_search_by_key(&id, |frame| frame.id);
            place.ok().map(|place| &self.frames[place])
        };
        std::iter::successors(innermost.and_then(frame), |inner| inner.caller.and_then(frame))
            .collect()
    }
}

impl JobRank {
    /// From `MPI_Init` to `MPI_Finalize`, or to when it was last seen; of each of its processes.
    pub fn run_time(&self) -> Nanos {
        Nanos((self.end - self.init_end).0.max(0))
    }

    /// Time inside MPI to communicate, whatever the call; of all its processes together.
    pub fn exposed(&self) -> Nanos {
        self.posting
            + self.completing
            + self.blocking
            + self.collective
            + self.rma
            + self.unsuccessful_test
    }

    /// Time inside MPI; of all its processes together.
    pub fn mpi(&self) -> Nanos {
        self.exposed() + self.io + self.other
    }
}

/// What lapscope's own tests saved, by the page of one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TestsGain {
    /// Of the time that the job would have taken without them.
    pub share: f64,
    /// How long the process was looked at.
    pub seconds: f64,
}

impl JobInjector {
    /// `None`: it was not measured.
    pub fn gain(&self) -> Option<TestsGain> {
        let page: Value = serde_json::from_str(self.automatic.as_deref()?).ok()?;
        let share = page["gain"]["share"].as_f64().filter(|share| (-1.0..0.99).contains(share))?;
        let seconds = page["seconds"].as_f64().filter(|seconds| (0.0..1e8).contains(seconds))?;
        Some(TestsGain { share, seconds })
    }
}

impl NodeRecord {
    /// Until when the next version of the record was due, if ranks still ran: none came, so they do not.
    pub fn due_unix_ns(&self) -> i64 {
        const SLACK_NS: i64 = 60_000_000_000;
        let is_interval =
            |it: &&JobSetting| it.kind == "option" && it.name == "LAPSCOPE_JOB_INTERVAL";
        let interval =
            self.settings.iter().find(is_interval).and_then(|it| it.value.parse::<i64>().ok());
        let interval_ns = interval.unwrap_or(60).clamp(1, 86400) * 1_000_000_000;
        self.record.written_unix_ns.saturating_add(3 * interval_ns + SLACK_NS)
    }

    /// Whether the rank whose settings these are may have used a GPU: its driver came, and was not unused to the end.
    pub fn may_use_gpu(&self) -> bool {
        let last = |name| {
            let of = |it: &&JobSetting| it.kind == "option" && it.name == name;
            self.settings.iter().rev().find(of).map(|it| it.value.as_str())
        };
        last("accelerator").is_some() && last("cuda") != Some("unused")
    }

    /// Processes that had not ended when the record was written.
    pub fn running(&self) -> i64 {
        let running = self.ranks.iter().filter(|rank| rank.ended == "running");
        running.map(|rank| rank.processes).sum()
    }
}

/// The lines behind the first one.
struct Lines<'t> {
    lines: std::iter::Skip<std::str::SplitTerminator<'t, char>>,
    /// Of the line last taken.
    number: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Lines<'t> {
        Lines { lines: text.split_terminator('\n').skip(1), number: 1 }
    }

    fn next(&mut self) -> Option<&'t str> {
        self.number += 1;
        self.lines.next()
    }

    /// The next line if it is of the table that is being read.
    fn next_row(&mut self) -> Option<&'t str> {
        let next = self.lines.clone().next()?;
        if next.starts_with('[') || next.is_empty() {
            return None;
        }
        self.next()
    }

    fn damaged(&self, problem: impl Into<String>) -> JobError {
        JobError::Damaged { line: self.number, problem: problem.into() }
    }
}

/// What has been read so far; `None`: the table was not there.
#[derive(Default)]
struct ParsedTables {
    ids: Ids,
    keepers: Option<Vec<JobKeeper>>,
    records: Option<Vec<JobRecord>>,
    settings: Option<Vec<JobSetting>>,
    ranks: Option<Vec<JobRank>>,
    modules: Option<Vec<JobModule>>,
    frames: Option<Vec<JobFrame>>,
    sites: Option<Vec<JobSite>>,
    injectors: Option<Vec<JobInjector>>,
}

impl ParsedTables {
    fn read(&mut self, name: &str, lines: &mut Lines<'_>) -> Result<(), JobError> {
        let ids = &mut self.ids;
        match name {
            JobKeeper::TABLE => read_table(&mut self.keepers, ids, lines),
            JobRecord::TABLE => read_table(&mut self.records, ids, lines),
            JobSetting::TABLE => read_table(&mut self.settings, ids, lines),
            JobRank::TABLE => read_table(&mut self.ranks, ids, lines),
            JobModule::TABLE => read_table(&mut self.modules, ids, lines),
            JobFrame::TABLE => read_table(&mut self.frames, ids, lines),
            JobSite::TABLE => read_table(&mut self.sites, ids, lines),
            JobInjector::TABLE => read_table(&mut self.injectors, ids, lines),
            _ => {
                while lines.next_row().is_some() {}
                Ok(())
            }
        }
    }

    fn finish(self, line: usize) -> Result<NodeRecord, JobError> {
        let mut records = self.records.unwrap_or_default();
        let record = records.pop().filter(|_| records.is_empty());
        let problem = || "it has not one row of [record]".to_owned();
        Ok(NodeRecord {
            keeper: self.keepers.unwrap_or_default().pop(),
            record: record.ok_or_else(|| JobError::Damaged { line, problem: problem() })?,
            settings: self.settings.unwrap_or_default(),
            ranks: self.ranks.unwrap_or_default(),
            modules: self.modules.unwrap_or_default(),
            frames: self.frames.unwrap_or_default(),
            sites: self.sites.unwrap_or_default(),
            injectors: self.injectors.unwrap_or_default(),
        })
    }
}

/// The columns' names, and rows as long as there are any.
fn read_table<T: JobRow>(
    table: &mut Option<Vec<T>>,
    ids: &mut Ids,
    lines: &mut Lines<'_>,
) -> Result<(), JobError> {
    if table.is_some() {
        return Err(lines.damaged(format!("[{}] is there twice", T::TABLE)));
    }
    let names: Vec<&str> = lines.next_row().unwrap_or_default().split('\t').collect();
    let place = |column: &&str| names.iter().position(|name| name == column);
    let places: Vec<Option<usize>> = T::COLUMNS.iter().map(place).collect();
    let mut rows = Vec::new();
    let mut values = Vec::with_capacity(names.len());
    while let Some(line) = lines.next_row() {
        values.clear();
        values.extend(line.split('\t'));
        if values.len() != names.len() {
            return Err(lines.damaged(format!("[{}] has {} columns", T::TABLE, names.len())));
        }
        let row = Fields { values: &values, places: &places, columns: T::COLUMNS, ids };
        rows.push(T::read(&row).map_err(|bad| lines.damaged(bad.to_string()))?);
        if T::COLUMNS[0] == "id" {
            let id = row.number(0, Rule::Key).unwrap_or_default();
            ids.add(T::TABLE, id).map_err(|bad| lines.damaged(bad.to_string()))?;
        }
    }
    *table = Some(rows);
    Ok(())
}
