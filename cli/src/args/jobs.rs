//! Arguments of the command that looks at many jobs.

use std::path::PathBuf;

use clap::Args;

use super::units;
use lapscope_data::jobs::{GroupBy, JobFilter, JobOrder};
use lapscope_data::users::user_number;
use lapscope_show::format::Format;

/// Many jobs that were recorded with LAPSCOPE_RECORD=job: what is exposed, where, and what would help most.
#[derive(Debug, Args)]
#[command(after_help = "\
Records below the directories are imported into the database; those that have not changed since cost a stat. Any number of
importers may run at once. Without a directory the database is only read. schema/jobs.md has its tables, for sqlite3.
The exit code is 1 where a record could not be read; all others are imported.

Examples:
  lapscope jobs /scratch/lapscope                        imports what is new, and prints what would help
  lapscope jobs --user alice --since 7d --sort share
  lapscope jobs --by executable --format csv
  lapscope jobs /scratch/lapscope --quiet --openmetrics /var/lib/node_exporter/lapscope.prom")]
pub struct JobsArgs {
    /// Directories below which records lie
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,

    /// Where jobs are kept
    #[arg(long, value_name = "FILE", default_value = "jobs.db")]
    pub database: PathBuf,

    /// Only jobs of this user
    #[arg(long, value_name = "NAME", value_parser = user)]
    pub user: Option<i64>,

    /// Only jobs whose executable's path has this text
    #[arg(long, value_name = "TEXT")]
    pub executable: Option<String>,

    /// Only jobs with an MPI that has this text in its name and version
    #[arg(long, value_name = "TEXT")]
    pub mpi: Option<String>,

    /// Only the job that the batch system, or its launcher, calls so
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,

    /// Only jobs of at least so many nodes
    #[arg(long, value_name = "N")]
    pub min_nodes: Option<i64>,

    /// Only jobs of at most so many nodes
    #[arg(long, value_name = "N")]
    pub max_nodes: Option<i64>,

    /// Only jobs that began then or later: 7d, 12h, 2026-01-31, 2026-01-31T12:00
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub since: Option<i64>,

    /// Only jobs that began before
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub until: Option<i64>,

    #[arg(long, value_enum, default_value_t)]
    pub sort: JobOrder,

    /// Jobs shown; 0 shows all [default: 20; all in JSON and CSV; 500 on the page]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    /// Show sums in place of jobs
    #[arg(long, value_enum)]
    pub by: Option<GroupBy>,

    /// Delete jobs of which nothing was recorded since: 365d
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub forget: Option<i64>,

    /// Also write a page for the browser; one that is there is replaced if it is such a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Also write sums by executable and MPI for node_exporter's textfile collector, or whatever reads OpenMetrics
    #[arg(long, value_name = "FILE")]
    pub openmetrics: Option<PathBuf>,

    /// Also write the jobs, all that the filters leave, as a table in a Parquet file, which must not be there
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,

    /// Print nothing, as in a cron job
    #[arg(long, short)]
    pub quiet: bool,

    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,
}

impl JobsArgs {
    pub fn filter(&self) -> JobFilter {
        JobFilter {
            user: self.user,
            executable: self.executable.clone(),
            mpi: self.mpi.clone(),
            job: self.job.clone(),
            least_nodes: self.min_nodes,
            most_nodes: self.max_nodes,
            since_unix_ns: self.since,
            until_unix_ns: self.until,
        }
    }
}

fn user(name: &str) -> Result<i64, String> {
    user_number(name).ok_or_else(|| "this machine knows no such user; give the number".to_owned())
}
