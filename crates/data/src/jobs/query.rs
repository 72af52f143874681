//! Jobs by filter and order, their sums by group, and the places of those of an executable.

use clap::ValueEnum;
use rusqlite::types::Value;
use rusqlite::{params_from_iter, Row};

use super::{JobTable, JobsDatabase, ListedJob};

/// Which jobs are meant; what is `None` leaves all.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub user: Option<i64>,
    /// A part of its path.
    pub executable: Option<String>,
    /// A part of its name and version.
    pub mpi: Option<String>,
    /// What the batch system calls it, its identity, or the first 16 letters of that.
    pub job: Option<String>,
    pub least_nodes: Option<i64>,
    pub most_nodes: Option<i64>,
    /// That began then or later, and before.
    pub since_unix_ns: Option<i64>,
    pub until_unix_ns: Option<i64>,
}

impl JobFilter {
    /// A condition of SQL with numbered parameters, and these.
    fn condition(&self) -> (String, Vec<Value>) {
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let number = |number: Option<i64>| number.map(Value::Integer);
        let all = [
            ("user = ?", number(self.user)),
            ("instr(executable, ?) > 0", text(&self.executable)),
            ("instr(lower(mpi), lower(?)) > 0", text(&self.mpi)),
            ("? IN (batch_job, job, substr(job, 1, 16))", text(&self.job)),
            ("nodes >= ?", number(self.least_nodes)),
            ("nodes <= ?", number(self.most_nodes)),
            ("began_unix_ns >= ?", number(self.since_unix_ns)),
            ("began_unix_ns < ?", number(self.until_unix_ns)),
        ];
        let asked = all.into_iter().filter_map(|(condition, value)| Some((condition, value?)));
        let (conditions, values): (Vec<&str>, Vec<Value>) = asked.unzip();
        (std::iter::once("1").chain(conditions).collect::<Vec<_>>().join(" AND "), values)
    }
}

/// What comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum JobOrder {
    /// Exposed time of all ranks
    #[default]
    Exposed,
    /// The share of the run time that is exposed
    Share,
    /// What tests in the computation could overlap at most
    Overlappable,
    /// Run time
    Time,
    Nodes,
    Ranks,
    /// The newest first
    Began,
}

impl JobOrder {
    fn expression(self) -> &'static str {
        match self {
            JobOrder::Exposed => "exposed_seconds",
            JobOrder::Share => "exposed_seconds / max(run_seconds, 1e-9)",
            JobOrder::Overlappable => "overlappable_seconds",
            JobOrder::Time => "longest_seconds",
            JobOrder::Nodes => "nodes",
            JobOrder::Ranks => "ranks",
            JobOrder::Began => "began_unix_ns",
        }
    }
}

/// Of which jobs sums are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupBy {
    #[value(skip)]
    All,
    Executable,
    User,
    Mpi,
    #[value(skip)]
    ExecutableAndMpi,
}

impl GroupBy {
    fn names(self) -> [&'static str; 2] {
        match self {
            GroupBy::All => ["''", "''"],
            GroupBy::Executable => ["executable", "''"],
            GroupBy::User => ["user", "''"],
            GroupBy::Mpi => ["mpi", "''"],
            GroupBy::ExecutableAndMpi => ["executable", "mpi"],
        }
    }
}

/// Sums over jobs; times are of all their ranks, in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobGroup {
    pub name: String,
    /// Of the second that it is grouped by.
    pub second_name: String,
    pub jobs: u64,
    pub users: u64,
    /// 0: not known, like the next one.
    pub first_unix_ns: i64,
    pub last_unix_ns: i64,
    pub run: f64,
    pub exposed: f64,
    /// Of jobs in which lapscope made no tests: what tests could gain at most.
    pub overlappable: f64,
    /// Without a processor.
    pub waiting: f64,
    /// In blocking point-to-point calls, at most what the job's ranks computed.
    pub blocking: f64,
    /// What ranks computed less than the one that computed longest, at most what was exposed.
    pub uneven: f64,
    /// Jobs in which lapscope made tests.
    pub injected_jobs: u64,
    /// What tests saved, where that was measured.
    pub gained: f64,
    /// Jobs whose exposed time is an upper bound, as of GPUs nothing is on record.
    pub upper_bound_jobs: u64,
}

impl JobGroup {
    fn read(row: &Row<'_>) -> rusqlite::Result<JobGroup> {
        Ok(JobGroup {
            name: row.get(0)?,
            second_name: row.get(1)?,
            jobs: row.get(2)?,
            users: row.get(3)?,
            first_unix_ns: row.get::<_, Option<i64>>(4)?.unwrap_or_default(),
            last_unix_ns: row.get::<_, Option<i64>>(5)?.unwrap_or_default(),
            run: row.get(6)?,
            exposed: row.get(7)?,
            overlappable: row.get(8)?,
            waiting: row.get(9)?,
            blocking: row.get(10)?,
            uneven: row.get(11)?,
            injected_jobs: row.get::<_, f64>(12)? as u64,
            gained: row.get(13)?,
            upper_bound_jobs: row.get::<_, f64>(14)? as u64,
        })
    }
}

/// As the members of [`JobGroup`] stand there, behind the names. Nodes whose clock was not set yet do not say when.
const SUMS: &str = "count(*), count(DISTINCT user),
    min(CASE WHEN began_unix_ns >= 946684800000000000 THEN began_unix_ns END),
    max(CASE WHEN written_unix_ns >= 946684800000000000 THEN written_unix_ns END), total(run_seconds),
    total(exposed_seconds),
    total(CASE WHEN injected_ranks = 0 THEN min(overlappable_seconds, exposed_seconds) END),
    total(waiting_seconds),
    total(min(blocking_seconds, max(run_seconds - mpi_seconds, 0))),
    total(min(max(ranks * most_computed_seconds - max(run_seconds - mpi_seconds, 0), 0), exposed_seconds)),
    total(injected_ranks > 0), total(gained_seconds), total(gpu_ranks > 0)";

/// By what the place with most is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    Overlappable,
    Exposed,
}

/// Where ranks of an executable call MPI.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPlace {
    pub call: String,
    pub module: String,
    pub build_id: Option<String>,
    pub address: i64,
    /// Seconds over all jobs.
    pub seconds: f64,
}

impl JobsDatabase {
    /// The first jobs in an order, 0 for all.
    ///
    /// # Errors
    /// Of the file.
    pub fn jobs(
        &self,
        filter: &JobFilter,
        order: JobOrder,
        top: usize,
    ) -> rusqlite::Result<Vec<ListedJob>> {
        let (condition, values) = filter.condition();
        let limit = if top == 0 { -1 } else { top as i64 };
        let sql = format!(
            "SELECT {} FROM job WHERE {condition} ORDER BY {} DESC, user, job LIMIT {limit}",
            ListedJob::columns(),
            order.expression()
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), ListedJob::read)?;
        rows.collect()
    }

    /// Sums by group, those first whose ranks were longest in MPI to communicate.
    ///
    /// # Errors
    /// Of the file.
    pub fn groups(&self, filter: &JobFilter, by: GroupBy) -> rusqlite::Result<Vec<JobGroup>> {
        let (condition, values) = filter.condition();
        let [first, second] = by.names();
        let sql = format!(
            "SELECT CAST({first} AS TEXT), {second}, {SUMS} FROM job WHERE {condition} GROUP BY 1, 2 ORDER BY 8 DESC, 1, 2"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), JobGroup::read)?;
        rows.collect()
    }

    /// The place of an executable that has most over these jobs.
    ///
    /// # Errors
    /// Of the file.
    pub fn place(
        &self,
        filter: &JobFilter,
        executable: &str,
        kind: PlaceKind,
    ) -> rusqlite::Result<Option<JobPlace>> {
        let (condition, mut values) = filter.condition();
        values.push(Value::Text(executable.to_owned()));
        let column = match kind {
            PlaceKind::Overlappable => "overlappable_seconds",
            PlaceKind::Exposed => "exposed_seconds",
        };
        let sql = format!(
            "SELECT call, module, build_id, address, total(site.{column}) AS most
             FROM (SELECT * FROM job WHERE {condition} AND executable = ?) of
             JOIN site ON site.user = of.user AND site.job = of.job
                 AND site.began_unix_ns BETWEEN of.began_unix_ns AND of.written_unix_ns
             GROUP BY call, module, build_id, address HAVING most > 0 ORDER BY most DESC, call, module, address LIMIT 1"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query_map(params_from_iter(values), |row| {
            Ok(JobPlace {
                call: row.get(0)?,
                module: row.get(1)?,
                build_id: row.get(2)?,
                address: row.get(3)?,
                seconds: row.get(4)?,
            })
        })?;
        rows.next().transpose()
    }
}
