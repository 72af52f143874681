//! Which processes of this host are meant, and which of these are ranks of an MPI job.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::{self, RankIdentity, Variables};
use super::kin::{self, Relative};
pub use super::process::Process;
use super::program::Program;
use super::stop;
use lapscope_data::model::{is_mpi_library, Rank};
use lapscope_data::recovery::run_of;
use lapscope_data::secrets::hide_in_command;
use lapscope_data::state::words_of;
use lapscope_data::store::stat_fields;
use lapscope_data::symbols::base_name;

/// Which processes are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Pids(Vec<i64>),
    /// A program, or a script, by its file's name or path.
    Command(String),
    /// A job of Slurm.
    Job(String),
}

/// A rank of a job, of which another rank was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RankOfJob {
    pub job: Option<String>,
    pub rank: Rank,
}

/// Processes that were found, and how many may not be looked at.
#[derive(Debug, Default)]
pub struct Processes {
    pub found: Vec<Process>,
    /// They are of other users.
    pub forbidden: u64,
    /// Of those that were asked for by number, which there are not, and which are no ranks of their own.
    pub missing: Vec<i64>,
    pub relatives: Vec<Relative>,
    /// Ranks of the same jobs that run other programs.
    pub of_other_programs: Vec<RankOfJob>,
    /// Where ranks are missing: processes with the same launcher of which it cannot be told whether they are these, as nobody names
    /// their job, or as they have written over what their launcher told them.
    pub nameless: u64,
}

impl Processes {
    /// Those that are wanted, in the order of their ranks. What a rank was started by, and its children, which have the same variables,
    /// are left out.
    pub fn find(wanted: &Wanted) -> Processes {
        let mut all = Processes::default();
        let mut found = Vec::new();
        let is_asked = matches!(wanted, Wanted::Pids(_));
        for pid in pids(wanted) {
            let command = command_of(pid);
            let is_other =
                matches!(wanted, Wanted::Command(name) if !Program::of(pid, &command).is(name));
            if is_other || (!is_asked && looks_itself(&command)) {
                continue;
            }
            match read(pid, &command, wanted) {
                Ok(process) => found.extend(process),
                Err(ErrorKind::PermissionDenied) if is_of_another_user(pid) => all.forbidden += 1,
                Err(_) if is_asked && stop::threads(pid).is_ok() => found.push(unreadable(pid)),
                Err(_) if is_asked => all.missing.push(pid),
                Err(_) => {}
            }
        }
        (all.found, all.relatives) = kin::ranks(found, by_number);
        if is_asked {
            all.keep_relatives_of_others();
        }
        if !is_asked && all.lacks_ranks() {
            all.find_others();
        }
        if !is_asked {
            all.relatives.clear();
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

    /// Who asks for a child of a rank, and not for the rank, means the child.
    fn keep_relatives_of_others(&mut self) {
        let found: HashSet<i64> = self.found.iter().map(|process| process.pid).collect();
        let of_others = self.relatives.iter().filter(|it| !found.contains(&it.of));
        let alone: Vec<Process> =
            of_others.map(|it| Process { rank: None, ..it.process.clone() }).collect();
        self.found.extend(alone);
    }

    /// By world, of the jobs that were found.
    fn worlds(&self) -> HashMap<(Option<&str>, i64), HashSet<Rank>> {
        let mut worlds: HashMap<_, HashSet<Rank>> = HashMap::new();
        for process in &self.found {
            let Some(rank) = process.rank else { continue };
            worlds.entry((process.job.as_deref(), rank.world)).or_default().insert(rank);
        }
        worlds
    }

    /// Of those that were started here, as far as that is told.
    fn lacks_ranks(&self) -> bool {
        let worlds = self.worlds();
        let lacks = |it: &Process| {
            let found = it.rank.and_then(|rank| worlds.get(&(it.job.as_deref(), rank.world)));
            let started = it.local_size.or(it.size).unwrap_or(0);
            found.is_some_and(|found| started > found.len() as u64)
        };
        self.found.iter().any(lacks)
    }

    fn find_others(&mut self) {
        let jobs: HashSet<Option<&str>> = self.found.iter().map(|it| it.job.as_deref()).collect();
        let here: HashSet<(Option<&str>, Rank)> =
            self.found.iter().filter_map(|it| Some((it.job.as_deref(), it.rank?))).collect();
        let known: HashSet<i64> = self.found.iter().map(|it| it.pid).collect();
        let relatives: HashSet<i64> = self.relatives.iter().map(|it| it.process.pid).collect();
        let launchers: HashSet<i64> = self.found.iter().map(|it| it.started_by).collect();
        let may_be_one = |it: &Process| {
            let mut line = std::iter::once(it.parent).chain(identity::ancestors(it.pid));
            !known.contains(&it.pid) && line.any(|pid| launchers.contains(&pid))
        };
        let (mut others, mut nameless) = (Vec::new(), 0);
        for pid in all_pids() {
            let Some(other) = by_number(pid).filter(|it| !relatives.contains(&it.pid)) else {
                continue;
            };
            match other.rank {
                None if other.has_mpi => nameless += u64::from(may_be_one(&other)),
                Some(_) if other.job.is_none() => nameless += u64::from(may_be_one(&other)),
                Some(rank) if jobs.contains(&other.job.as_deref()) => {
                    let is_here =
                        known.contains(&pid) || here.contains(&(other.job.as_deref(), rank));
                    others.extend((!is_here).then_some(RankOfJob { job: other.job, rank }));
                }
                _ => {}
            }
        }
        others.sort_unstable();
        others.dedup();
        (self.of_other_programs, self.nameless) = (others, nameless);
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
        _ => all_pids(),
    }
}

/// But this one.
fn all_pids() -> Vec<i64> {
    let own = i64::from(std::process::id());
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|it| it.file_name().to_str()?.parse::<i64>().ok());
    all.filter(|&pid| pid != own).collect()
}

fn command_of(pid: i64) -> Vec<String> {
    words_of(stop::living(pid), "cmdline").unwrap_or_default()
}

/// Whoever a launcher has started to look has the variables of a rank, and names the program.
fn looks_itself(command: &[String]) -> bool {
    let program = command.first().map(|word| base_name(word));
    program == Some("lapscope") && command.get(1).is_some_and(|word| word == "hang")
}

/// One that was not asked for.
fn by_number(pid: i64) -> Option<Process> {
    read(pid, &command_of(pid), &Wanted::Pids(Vec::new())).ok().flatten()
}

/// `None`: it is not meant.
fn read(pid: i64, command: &[String], wanted: &Wanted) -> Result<Option<Process>, ErrorKind> {
    let living = stop::living(pid);
    let environment = words_of(living, "environ").map_err(|error| error.kind())?;
    let variables = Variables::of(&environment);
    let maps = fs::read(format!("/proc/{living}/maps")).map_err(|error| error.kind())?;
    let maps = String::from_utf8_lossy(&maps);
    let spool = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let spool = spool.clone().find(|path| path.ends_with(".spool")).map(Path::new);
    let RankIdentity { rank, size, local_size, job } =
        RankIdentity::read(living, &variables, &maps);
    let preloaded = variables.text("LD_PRELOAD").unwrap_or_default();
    let mut mapped = maps.lines().filter_map(|line| line.rsplit(' ').next());
    let process = Process {
        pid,
        rank,
        size,
        local_size,
        job,
        command: hide_in_command(&command.join(" ")),
        is_recorded: spool.is_some(),
        run: spool.and_then(|spool| run_of(spool, &named_run(living, &variables))),
        has_mpi: mapped.any(|path| is_library_of_mpi(path) && !preloaded.contains(base_name(path))),
        executable: Program::executable(living),
        parent: parent(pid),
        started_by: 0,
    };
    let is_rank = process.rank.is_some() || process.has_mpi;
    let is_meant = match wanted {
        Wanted::Pids(_) => true,
        Wanted::Command(_) => is_rank,
        Wanted::Job(job) => {
            let is_of_job = variables.text("SLURM_JOB_ID") == Some(job.as_str());
            is_rank && is_of_job && is_of_this_node(variables.text("SLURMD_NODENAME"))
        }
    };
    Ok(is_meant.then_some(process))
}

/// One of which the look says why nothing can be read.
fn unreadable(pid: i64) -> Process {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Process { pid, command: name.trim_end().to_owned(), ..Process::default() }
}

/// Root may look at them, as far as it is allowed to at all.
fn is_of_another_user(pid: i64) -> bool {
    // SAFETY: asks for a number.
    let own = unsafe { libc::geteuid() };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next());
    own != 0 && user.is_some_and(|user| user.parse() != Ok(own))
}

/// 0: it is not told.
fn parent(pid: i64) -> i64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat_fields(&stat).unwrap_or_default();
    fields.get(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// A machine may be several nodes to Slurm. Whoever looks without Slurm takes all that it sees.
fn is_of_this_node(its: Option<&str>) -> bool {
    let own = std::env::var("SLURMD_NODENAME").ok();
    !own.as_deref().zip(its).is_some_and(|(own, its)| own != its)
}

/// What it was told as its run directory: where that has `%j` in it, its directory counts alone.
fn named_run(pid: i64, variables: &Variables<'_>) -> PathBuf {
    let here = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    here.join(variables.text("LAPSCOPE_DIR").unwrap_or("lapscope-%j"))
}

/// A launcher has libraries of its MPI, too, but not that one.
fn is_library_of_mpi(path: &str) -> bool {
    is_mpi_library(path) && !path.contains("liblapscope") && !path.contains("libopen-")
}
