//! Many jobs: what `lapscope jobs` answers.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use lapscope_advise::advice::Cure;
use lapscope_advise::job_cures::{job_cures, JobCure};
use lapscope_data::calendar::now_s;
use lapscope_data::jobs::{
    GroupBy, Imported, JobFilter, JobGroup, JobOrder, JobPlace, JobsDatabase, ListedJob, PlaceKind,
};
use lapscope_data::model::{Frame, Module};
use lapscope_data::symbols::{NameFrames, Symbols};
use lapscope_data::users::user_name;
use lapscope_data::JSON_VERSION;

/// Executables of which is said what would help them.
const ADVISED: usize = 10;

/// Keys are documented in `docs/json.md`, those of a job in `schema/jobs.md`.
#[derive(Debug, Serialize)]
pub struct Jobs {
    pub json_version: u32,
    pub database: String,
    /// `None`: nothing was to be imported.
    pub imported: Option<ImportedCounts>,
    /// All jobs that the filters leave.
    pub all: JobSums,
    /// Executables that would gain most, those first that may gain more.
    pub executables: Vec<JobSums>,
    /// Sums by what was asked for; empty: nothing.
    pub groups: Vec<JobSums>,
    pub jobs: Vec<JobLine>,
}

#[derive(Debug, Serialize)]
pub struct ImportedCounts {
    pub records: u64,
    pub unchanged: u64,
    /// What could not be read.
    pub left_out: u64,
    /// Jobs that were deleted as they are older than asked for.
    pub forgotten: u64,
}

impl ImportedCounts {
    pub fn new(imported: &Imported, forgotten: u64) -> ImportedCounts {
        let Imported { records, unchanged, ref problems } = *imported;
        ImportedCounts { records, unchanged, left_out: problems.len() as u64, forgotten }
    }
}

/// Sums over jobs, times of all their ranks.
#[derive(Debug, Serialize)]
pub struct JobSums {
    pub name: String,
    pub jobs: u64,
    pub users: u64,
    pub first_unix_ns: i64,
    pub last_unix_ns: i64,
    pub run_seconds: f64,
    pub exposed_seconds: f64,
    /// Of the run time, as a fraction.
    pub exposed_share: f64,
    /// Jobs in which lapscope made tests.
    pub injected_jobs: u64,
    /// What tests saved there, where it was measured.
    pub gained_seconds: f64,
    /// Jobs whose exposed time is an upper bound: GPUs may have computed meanwhile.
    pub upper_bound_jobs: u64,
    /// Where most time is exposed, of executables that are advised.
    pub exposed_at: Option<String>,
    pub cures: Vec<JobCure>,
}

impl JobSums {
    fn new(group: &JobGroup) -> JobSums {
        JobSums {
            name: group.name.clone(),
            jobs: group.jobs,
            users: group.users,
            first_unix_ns: group.first_unix_ns,
            last_unix_ns: group.last_unix_ns,
            run_seconds: group.run,
            exposed_seconds: group.exposed,
            exposed_share: share(group.exposed, group.run),
            injected_jobs: group.injected_jobs,
            gained_seconds: group.gained,
            upper_bound_jobs: group.upper_bound_jobs,
            exposed_at: None,
            cures: job_cures(group),
        }
    }

    /// What the cure that may gain most does, in seconds.
    fn gain(&self) -> f64 {
        self.cures.iter().map(|cure| cure.at_most_seconds).fold(0.0, f64::max)
    }
}

#[derive(Debug, Serialize)]
pub struct JobLine {
    /// `None`: this machine knows no such user.
    pub user_name: Option<String>,
    pub exposed_share: f64,
    /// GPUs may have computed meanwhile, of which nothing is on record.
    pub exposed_is_upper_bound: bool,
    /// Ranks that ended without MPI_Finalize, as far as is known now.
    pub without_finalize: i64,
    /// Ranks still run, as far as is known now.
    pub is_running: bool,
    #[serde(flatten)]
    pub job: ListedJob,
}

/// Each name is looked up once, as that may ask another machine.
fn lines(jobs: Vec<ListedJob>) -> Vec<JobLine> {
    let mut names = HashMap::new();
    let now_unix_ns = now_s().saturating_mul(1_000_000_000);
    let line = |job: ListedJob| {
        let is_due = now_unix_ns <= job.due_unix_ns;
        JobLine {
            user_name: names.entry(job.user).or_insert_with(|| user_name(job.user)).clone(),
            exposed_share: share(job.exposed_seconds, job.run_seconds),
            exposed_is_upper_bound: job.gpu_ranks > 0,
            without_finalize: job.unfinished_ranks + if is_due { 0 } else { job.running_ranks },
            is_running: is_due && job.is_over == 0,
            job,
        }
    };
    jobs.into_iter().map(line).collect()
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct JobsChoice {
    pub filter: JobFilter,
    pub order: JobOrder,
    /// How many jobs are listed, 0 for all.
    pub top: usize,
    pub by: Option<GroupBy>,
}

impl Jobs {
    /// # Errors
    /// The database cannot be read.
    pub fn read(
        database: &JobsDatabase,
        path: &Path,
        imported: Option<ImportedCounts>,
        choice: &JobsChoice,
    ) -> Result<Jobs> {
        let filter = &choice.filter;
        let all = database.groups(filter, GroupBy::All)?;
        let groups = choice.by.map(|by| groups(database, filter, by)).transpose()?;
        let jobs = database.jobs(filter, choice.order, choice.top)?;
        Ok(Jobs {
            json_version: JSON_VERSION,
            database: path.display().to_string(),
            imported,
            all: JobSums::new(all.first().unwrap_or(&JobGroup::default())),
            executables: executables(database, filter)?,
            groups: groups.unwrap_or_default(),
            jobs: lines(jobs),
        })
    }
}

/// Sums by group, users by name.
///
/// # Errors
/// The database cannot be read.
pub fn groups(database: &JobsDatabase, filter: &JobFilter, by: GroupBy) -> Result<Vec<JobSums>> {
    let mut sums: Vec<JobSums> = database.groups(filter, by)?.iter().map(JobSums::new).collect();
    if by == GroupBy::User {
        for group in &mut sums {
            let name = group.name.parse().ok().and_then(user_name);
            group.name = name.unwrap_or_else(|| std::mem::take(&mut group.name));
        }
    }
    Ok(sums)
}

/// Those that would gain most, with the places of their cures.
fn executables(database: &JobsDatabase, filter: &JobFilter) -> Result<Vec<JobSums>> {
    let mut sums = groups(database, filter, GroupBy::Executable)?;
    sums.retain(|group| !group.cures.is_empty());
    sums.sort_by(|a, b| b.gain().total_cmp(&a.gain()).then_with(|| a.name.cmp(&b.name)));
    sums.truncate(ADVISED);
    for group in &mut sums {
        let place = |kind| database.place(filter, &group.name, kind);
        group.exposed_at = place(PlaceKind::Exposed)?.as_ref().map(named);
        let overlappable = place(PlaceKind::Overlappable)?.as_ref().map(named);
        if let Some(test) = group.cures.iter_mut().find(|cure| cure.cure == Cure::Test) {
            test.place = overlappable;
        }
    }
    Ok(sums)
}

/// "MPI_Irecv exchange halo.c:42", as far as the file that it is in is here.
fn named(place: &JobPlace) -> String {
    let build_id = place.build_id.clone().unwrap_or_default();
    let mut symbols = Symbols::new(vec![Module { path: place.module.clone(), build_id }]);
    let frame = Frame { module: Some(0), address: place.address as u64, level: 0 };
    format!("{} {}", place.call, symbols.name(frame)[0].short())
}
