//! What the first run says of its MPI, and what replays of it say that settings gain.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::table::Replayable;
use crate::doctor::ask::{self, LibraryAccount};
use crate::doctor::family::{identify, Identity};
use lapscope_advise::advice::{Advice, AdviceCause};
use lapscope_data::db::{
    cvars_of_first, environment_of_first, modules_of_first, Database, DbError,
};
use lapscope_data::places::group::Grouping;
use lapscope_measure::thresholds::{limit_variable, Declared};
use lapscope_predict::replay::scenario::{Progress, Scenario, Size};
use lapscope_predict::whatif::bounds::{is_too_large, MOST_ERROR};
use lapscope_report::cvars;
use lapscope_report::pipeline::whatif::{self, WhatIfOptions};
use lapscope_report::pipeline::OpenRun;
use lapscope_trace::{Locality, Trace};

use crate::tune::first::Crowd;

/// What the messages of one cause or another wait for.
#[derive(Debug, Clone)]
pub struct Stake {
    pub cause: AdviceCause,
    /// Of the run time of all ranks.
    pub share: f64,
    pub largest_bytes: u64,
}

/// What replays say; shares of the run time, negative where it takes longer. `None`: no replay is near enough to the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayedSettings {
    pub progress: Option<f64>,
    /// The same where threads that poll take a part of the processors.
    pub polled: Option<f64>,
    pub eager: Option<f64>,
    pub error: f64,
}

impl ReplayedSettings {
    pub fn of(&self, what: Replayable, polls: bool) -> Option<f64> {
        match what {
            Replayable::Progress if polls => self.polled,
            Replayable::Progress => self.progress,
            Replayable::EagerLimit => self.eager,
            Replayable::Nothing => None,
        }
    }
}

/// The MPI of the first run.
#[derive(Debug)]
pub struct MpiOfRun {
    pub identity: Identity,
    /// Control variables and their values now, of the run and of the library that was asked.
    pub known: BTreeMap<String, String>,
    /// Whether the library could be asked what it knows.
    pub was_asked: bool,
    /// Variables that ranks had.
    pub environment: BTreeMap<String, String>,
    /// Variables that govern its limits: `btl_tcp_eager_limit`.
    pub governing: Vec<String>,
    pub stakes: Vec<Stake>,
    pub replayed: ReplayedSettings,
}

impl MpiOfRun {
    pub fn known(&self, name: &str) -> Option<&str> {
        self.known.get(name).map(String::as_str)
    }

    pub fn set(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// # Errors
    /// The run cannot be read.
    pub fn look(
        directory: &Path,
        wrappers: &[String],
        advice: &[Advice],
        crowd: Option<Crowd>,
    ) -> Result<MpiOfRun> {
        let mut open = OpenRun::open(Some(directory))?;
        open.find_wrappers(wrappers)?;
        let trace = open.trace(&[], Grouping::Line)?;
        let stakes: Vec<Stake> = advice.iter().map(stake).collect();
        let database = open.files.databases.first().map(|path| Database::open(path)).transpose()?;
        let library = database.as_ref().map(library_of).transpose()?.flatten();
        let (account, was_asked) = account(library.as_deref(), &trace);
        let mut known: BTreeMap<String, String> = account.variables.iter().cloned().collect();
        let mut environment = BTreeMap::new();
        if let Some(database) = &database {
            known.extend(cvars_of_first(database)?); // the run's own, as launch line and files set them
            environment = environment_of_first(database)?;
        }
        let (declared, _) = cvars::declared(&open.files.databases).unwrap_or_default();
        let governing = governing(&trace, &declared);
        let is_replayed = !is_too_large(trace.endpoints()) && !trace.is_summarized();
        let replayed = match is_replayed {
            true => replay(&mut open, &stakes, crowd)?,
            false => ReplayedSettings::default(),
        };
        let identity = identify(&account, &library.unwrap_or_default());
        Ok(MpiOfRun { identity, known, was_asked, environment, governing, stakes, replayed })
    }

    /// The largest message that waits for one of these causes.
    pub fn largest(&self, is_one: impl Fn(AdviceCause) -> bool) -> u64 {
        let those = self.stakes.iter().filter(|stake| is_one(stake.cause));
        those.map(|stake| stake.largest_bytes).max().unwrap_or_default()
    }

    /// What is at stake for these causes, as a share of the run time.
    pub fn share(&self, is_one: impl Fn(AdviceCause) -> bool) -> f64 {
        self.stakes.iter().filter(|stake| is_one(stake.cause)).map(|stake| stake.share).sum()
    }
}

/// Bytes just above a message, with what MPIs count to it of their own, in whole pages.
pub fn above(bytes: u64) -> u64 {
    const HEADERS: u64 = 256;
    (bytes + HEADERS).next_multiple_of(4096)
}

fn stake(advice: &Advice) -> Stake {
    let (cause, share) = (advice.cause, advice.share);
    Stake { cause, share, largest_bytes: advice.evidence.max_bytes }
}

/// Variables that set limits of the ways that its messages can go: within a node, and where it has several, between them.
fn governing(trace: &Trace, declared: &[Declared]) -> Vec<String> {
    let Some(first) = trace.ranks.first().map(|rank| rank.info()) else { return Vec::new() };
    let has_nodes = trace.ranks.iter().any(|rank| rank.info().host != first.host);
    let ways = [Locality::Node, Locality::Network].into_iter().take(1 + usize::from(has_nodes));
    let names = ways.filter_map(|way| limit_variable(way, &first.mpi_library, declared));
    names.map(str::to_owned).collect()
}

/// The file that the ranks had their MPI from.
fn library_of(database: &Database) -> Result<Option<PathBuf>, DbError> {
    const NAMES: [&str; 3] = ["libmpi.so", "libmpich.so", "libmpi_abi.so"];
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_mpi = |path: &PathBuf| NAMES.iter().any(|mpi| name(path).starts_with(mpi));
    Ok(modules_of_first(database)?.into_iter().find(is_mpi))
}

/// What it says of itself, as far as it is here; else what it said in the run.
fn account(library: Option<&Path>, trace: &Trace) -> (LibraryAccount, bool) {
    let answer = library.filter(|path| path.is_file()).and_then(|path| ask::ask(path, &[]).ok());
    let was_asked = answer.as_ref().is_some_and(|answer| !answer.variables.is_empty());
    let mut answer = answer.unwrap_or_default();
    let said = trace.ranks.first().map(|rank| rank.info().mpi_library.clone());
    answer.version = answer.version.or(said);
    (answer, was_asked)
}

fn replay(open: &mut OpenRun, stakes: &[Stake], crowd: Option<Crowd>) -> Result<ReplayedSettings> {
    let scenario = |scenario| Scenario { name: Some(String::new()), ..scenario };
    let progress = scenario(Scenario { progress: Some(Progress::Async), ..Scenario::default() });
    // with a thread that polls beside each rank there are twice as many as had the processors
    let speed = crowd.map(|Crowd { ranks, processors }| processors as f64 / (2 * ranks) as f64);
    let cpu = speed.filter(|&speed| speed < 1.0);
    let polled = Scenario { cpu, ..progress.clone() };
    let largest = stakes.iter().map(|stake| stake.largest_bytes).max().unwrap_or_default();
    let limit = Some(Size(above(largest)));
    let eager = scenario(Scenario { eager_limit: limit, ..Scenario::default() });
    let scenarios = vec![progress, polled, eager];
    let asked = WhatIfOptions { scenarios, sweeps: Vec::new(), top: 1 };
    let answer = whatif::build(open, &asked)?;
    let error = answer.error();
    let gain = |place: usize| {
        let change = answer.scenarios.get(place)?.change?;
        (error <= MOST_ERROR).then_some(-change)
    };
    Ok(ReplayedSettings { progress: gain(0), polled: gain(1), eager: gain(2), error })
}
