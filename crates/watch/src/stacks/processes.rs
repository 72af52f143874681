//! Which processes of this host are ranks of an MPI job: by what their launcher told them, proc_pid_environ(5).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lapscope_data::model::{is_mpi_library, Rank};
use lapscope_data::recovery::run_of;
use lapscope_data::secrets::hide_in_command;
use lapscope_data::slurm::is_step;
use lapscope_data::state::words_of;
use lapscope_data::symbols::base_name;

/// Which processes are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Pids(Vec<i64>),
    /// A program, or a script, by its file's name.
    Command(String),
    /// A job of Slurm.
    Job(String),
}

/// A process that is a rank, or may be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i64,
    /// `None`: no launcher said so.
    pub rank: Option<Rank>,
    pub size: Option<u64>,
    pub command: String,
    /// It has the recorder of lapscope, which knows more.
    pub is_recorded: bool,
    /// The run directory that it records into, where that is known.
    pub run: Option<PathBuf>,
    has_mpi: bool,
}

/// Processes that were found, and how many may not be looked at.
#[derive(Debug, Default)]
pub struct Processes {
    pub found: Vec<Process>,
    /// They are of other users.
    pub forbidden: u64,
    /// Of those that were asked for by number, which there are not.
    pub missing: Vec<i64>,
}

const RANKS: [&str; 7] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "SLURM_PROCID",
];
const SIZES: [&str; 5] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "FLUX_JOB_SIZE", "SLURM_NTASKS"];

impl Processes {
    /// Those that are wanted, in the order of their ranks. A shell or wrapper around a rank, which has the same variables, is
    /// left out where the rank is there itself.
    pub fn find(wanted: &Wanted) -> Processes {
        let mut all = Processes::default();
        let is_asked = matches!(wanted, Wanted::Pids(_));
        for pid in pids(wanted) {
            let command = words_of(pid, "cmdline").unwrap_or_default();
            let is_other = matches!(wanted, Wanted::Command(name) if !is_named(&command, name));
            if is_other || (!is_asked && looks_itself(&command)) {
                continue;
            }
            match read(pid, &command, wanted) {
                Ok(process) => all.found.extend(process),
                Err(ErrorKind::PermissionDenied) => all.forbidden += 1,
                Err(_) if is_asked => all.missing.push(pid),
                Err(_) => {}
            }
        }
        if !is_asked {
            all.drop_wrappers();
        }
        if matches!(wanted, Wanted::Job(_)) && !all.found.is_empty() {
            all.forbidden = 0; // all of a job are one user's
        }
        all.found.sort_by_key(|process| (process.rank, process.pid));
        all
    }

    /// The run directories that they record into.
    pub fn runs(&self) -> Vec<PathBuf> {
        distinct(self.found.iter().filter_map(|process| process.run.clone()))
    }

    fn drop_wrappers(&mut self) {
        let with_mpi: HashSet<Rank> =
            self.found.iter().filter(|it| it.has_mpi).filter_map(|it| it.rank).collect();
        let is_rank =
            |it: &Process| it.has_mpi || it.rank.is_some_and(|rank| !with_mpi.contains(&rank));
        self.found.retain(is_rank);
    }
}

/// Each once.
pub(super) fn distinct(runs: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> = runs.collect();
    runs.sort_unstable();
    runs.dedup();
    runs
}

fn pids(wanted: &Wanted) -> Vec<i64> {
    match wanted {
        Wanted::Pids(pids) => pids.clone(),
        _ => {
            let own = i64::from(std::process::id());
            let all = fs::read_dir("/proc").into_iter().flatten().flatten();
            let all = all.filter_map(|it| it.file_name().to_str()?.parse::<i64>().ok());
            all.filter(|&pid| pid != own).collect()
        }
    }
}

/// Whoever a launcher has started to look has the variables of a rank, and names the program.
fn looks_itself(command: &[String]) -> bool {
    let program = command.first().map(|word| base_name(word));
    program == Some("lapscope") && command.get(1).is_some_and(|word| word == "hang")
}

/// By a word of the command line: a program, or the script that an interpreter runs.
fn is_named(command: &[String], name: &str) -> bool {
    command.iter().any(|word| word == name || word.rsplit('/').next() == Some(name))
}

/// `None`: it is not meant.
fn read(pid: i64, command: &[String], wanted: &Wanted) -> Result<Option<Process>, ErrorKind> {
    let environment = words_of(pid, "environ").map_err(|error| error.kind())?;
    let variables: HashMap<&str, &str> =
        environment.iter().filter_map(|word| word.split_once('=')).collect();
    let maps = fs::read(format!("/proc/{pid}/maps")).map_err(|error| error.kind())?;
    let maps = String::from_utf8_lossy(&maps);
    let is_of_step = variables.get("SLURM_STEP_ID").is_some_and(|step| is_step(step));
    let is_told = |name: &str| name != "SLURM_PROCID" || is_of_step; // a batch script has it, too
    let number = |names: &[&str]| {
        let mut told = names.iter().filter(|name| is_told(name));
        told.find_map(|name| variables.get(name)?.parse::<u32>().ok())
    };
    let spool = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let spool = spool.clone().find(|path| path.ends_with(".spool")).map(Path::new);
    let process = Process {
        pid,
        rank: number(&RANKS).map(|rank| Rank::of_first_world(i64::from(rank))),
        size: number(&SIZES).map(u64::from),
        command: hide_in_command(&command.join(" ")),
        is_recorded: spool.is_some(),
        run: spool.and_then(|spool| run_of(spool, &named_run(pid, &variables))),
        has_mpi: maps.lines().filter_map(|line| line.rsplit(' ').next()).any(is_library_of_mpi),
    };
    let is_rank = process.rank.is_some() || process.has_mpi;
    let is_meant = match wanted {
        Wanted::Pids(_) => true,
        Wanted::Command(_) => is_rank,
        Wanted::Job(job) => {
            let is_of_job = variables.get("SLURM_JOB_ID") == Some(&job.as_str());
            is_rank && is_of_job && is_of_this_node(variables.get("SLURMD_NODENAME").copied())
        }
    };
    Ok(is_meant.then_some(process))
}

/// A machine may be several nodes to Slurm. Whoever looks without Slurm takes all that it sees.
fn is_of_this_node(its: Option<&str>) -> bool {
    let own = std::env::var("SLURMD_NODENAME").ok();
    !own.as_deref().zip(its).is_some_and(|(own, its)| own != its)
}

/// What it was told as its run directory: where that has `%j` in it, its directory counts alone.
fn named_run(pid: i64, variables: &HashMap<&str, &str>) -> PathBuf {
    let here = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    here.join(variables.get("LAPSCOPE_DIR").filter(|it| !it.is_empty()).unwrap_or(&"lapscope-%j"))
}

/// A launcher has libraries of its MPI, too, but not that one.
fn is_library_of_mpi(path: &str) -> bool {
    is_mpi_library(path) && !path.contains("liblapscope") && !path.contains("libopen-")
}
