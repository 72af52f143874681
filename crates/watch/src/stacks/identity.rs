//! What a launcher told a process of its place in a job: by its environment, proc_pid_environ(5), and its ancestors.
//!
//! Jobs and worlds are those that recorders find: `interposer/recorder/base/job.c`, which says why.

use std::collections::HashMap;
use std::fs;

use super::maps::{read_memory, Mapping};
use lapscope_data::model::Rank;
use lapscope_data::slurm::is_step;
use lapscope_data::state::words_of;
use lapscope_data::store::stat_fields;
use lapscope_data::symbols::base_name;

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
const LOCAL_SIZES: [&str; 3] =
    ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"];
/// What only one job has, of launchers that are not known better.
const JOBS: [&str; 3] = ["PALS_APID", "ALPS_APP_ID", "FLUX_JOB_ID"];

/// A process as its launcher sees it; what is not told is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankIdentity {
    pub rank: Option<Rank>,
    /// Ranks of its world, and how many of them were started on its host.
    pub size: Option<u64>,
    pub local_size: Option<u64>,
    /// The same for all ranks of a job, and for no other's.
    pub job: Option<String>,
}

/// Variables of a process.
pub struct Variables<'a>(HashMap<&'a str, &'a str>);

impl<'a> Variables<'a> {
    pub fn of(environment: &'a [String]) -> Self {
        Variables(environment.iter().filter_map(|word| word.split_once('=')).collect())
    }

    /// `None`: it is not set, or to nothing.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied().filter(|value| !value.is_empty())
    }

    /// The first that is told of several; a batch script has Slurm's, too.
    fn first(&self, names: &[&str]) -> Option<u64> {
        let is_told = |name: &&&str| !name.starts_with("SLURM_") || self.is_of_step();
        let number = |name: &&str| self.text(name)?.parse::<u32>().ok().map(u64::from);
        names.iter().filter(is_told).find_map(number)
    }

    fn is_of_step(&self) -> bool {
        self.text("SLURM_STEP_ID").is_some_and(is_step)
    }

    fn is_spawned(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value != "0")
    }
}

/// A job, and a world of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct World {
    job: String,
    number: i64,
}

impl World {
    fn new(job: impl Into<String>, number: i64) -> Option<World> {
        Some(World { job: job.into(), number })
    }
}

impl RankIdentity {
    /// `pid` of a thread that lives, `maps` what it has mapped.
    pub fn read(pid: i64, variables: &Variables<'_>, maps: &str) -> RankIdentity {
        let Some(number) = variables.first(&RANKS) else { return RankIdentity::default() };
        let world = world(pid, variables, maps);
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let rank = Rank { world: world.as_ref().map_or(Rank::FIRST_WORLD, |it| it.number), number };
        RankIdentity {
            rank: Some(rank),
            size: variables.first(&SIZES),
            local_size: variables.first(&LOCAL_SIZES).or_else(|| tasks_of_node(variables)),
            job: world.map(|it| it.job),
        }
    }
}

/// Of a task of Slurm, whose nodes have `2(x3),1` tasks.
fn tasks_of_node(variables: &Variables<'_>) -> Option<u64> {
    let node = variables.first(&["SLURM_NODEID"])?;
    let mut nodes = 0;
    for part in variables.text("SLURM_STEP_TASKS_PER_NODE")?.split(',') {
        let (tasks, times) = part.split_once("(x").unwrap_or((part, "1)"));
        nodes += times.strip_suffix(')')?.parse::<u64>().ok()?;
        if node < nodes {
            return tasks.parse().ok();
        }
    }
    None
}

fn world(pid: i64, variables: &Variables<'_>, maps: &str) -> Option<World> {
    let of_hydra = || of_hydra(pid, variables, maps);
    let space = variables.text("PMIX_NAMESPACE");
    let is_in_step =
        space.map_or_else(|| variables.is_of_step(), |space| space.starts_with("slurm."));
    of_open_mpi(variables)
        .or_else(|| of_intel(variables))
        .or_else(|| is_in_step.then(of_hydra).flatten())
        .or_else(|| World::new(space?, Rank::FIRST_WORLD))
        .or_else(|| of_step(variables))
        .or_else(|| JOBS.iter().find_map(|it| World::new(variables.text(it)?, Rank::FIRST_WORLD)))
        .or_else(of_hydra)
}

/// Versions 2 to 4: the name space is a number, the world in its lower half. From version 5 on it is `prterun-HOST-PID@WORLD`.
fn of_open_mpi(variables: &Variables<'_>) -> Option<World> {
    let space = variables.text("PMIX_NAMESPACE")?;
    if let Some((launcher, world)) = space.rsplit_once('@') {
        let world = world.parse().ok().filter(|&world: &i64| world >= 1)?;
        let is_launched = space.starts_with("prterun-");
        return World::new(format!("{launcher}@1"), world).filter(|_| is_launched);
    }
    let random = variables.text("OMPI_MCA_orte_precondition_transports")?;
    let number = space.parse::<u64>().ok().filter(|&number| number > 0)?;
    let in_it = i64::try_from(number & 0xffff).ok()?;
    let is_spawned = variables.is_spawned("OMPI_PARENT_PORT") && in_it != 0;
    let (number, world) = match is_spawned {
        true => ((number & !0xffff) + 1, in_it),
        false => (number, Rank::FIRST_WORLD),
    };
    World::new(format!("{number}.{random}"), world)
}

fn of_intel(variables: &Variables<'_>) -> Option<World> {
    let group = variables.text("HYDRA_BSTRAP_PGID")?.parse::<u32>().unwrap_or(0);
    World::new(variables.text("I_MPI_HYDRA_UUID")?, i64::from(group) + 1)
}

fn of_step(variables: &Variables<'_>) -> Option<World> {
    let step = variables.text("SLURM_STEP_ID").filter(|step| is_step(step))?;
    World::new(format!("{}.{step}", variables.text("SLURM_JOB_ID")?), Rank::FIRST_WORLD)
}

/// What its proxy, an ancestor, was told: the launcher's own address is the same for all of a job.
fn of_hydra(pid: i64, variables: &Variables<'_>, maps: &str) -> Option<World> {
    let proxy = ancestors(pid).find_map(|pid| Proxy::of(&words_of(pid, "cmdline").ok()?))?;
    match proxy.group {
        0 if variables.is_spawned("PMI_SPAWNED") => match group_in_library(pid, maps) {
            Some(group) => World::new(proxy.port, group + 1),
            None => World::new(format!("{}.{pid}", proxy.port), Rank::FIRST_WORLD),
        },
        group => World::new(proxy.port, group + 1),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Proxy {
    port: String,
    /// The world, counted from 0.
    group: i64,
}

impl Proxy {
    fn of(command: &[String]) -> Option<Proxy> {
        let behind = |words: &[&str]| {
            command.windows(2).find(|pair| words.contains(&pair[0].as_str())).map(|pair| &pair[1])
        };
        Some(Proxy {
            port: behind(&["--control-port", "--upstream-port"])?.clone(),
            group: behind(&["--pgid"]).and_then(|group| group.parse().ok()).unwrap_or(0),
        })
    }
}

/// The parent, its parent, and so on.
pub fn ancestors(pid: i64) -> impl Iterator<Item = i64> {
    const MOST: usize = 16;
    std::iter::successors(parent(pid), |&pid| parent(pid)).take(MOST)
}

fn parent(pid: i64) -> Option<i64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat_fields(&stat)?.get(1)?.parse().ok().filter(|&pid| pid > 1)
}

/// Newer Hydras tell only the MPI library which world a spawned process is of. It knows its parents' name, too, whose number is lower.
fn group_in_library(pid: i64, maps: &str) -> Option<i64> {
    const LARGEST: u64 = 64 << 20;
    let is_of_mpi =
        |path: &str| ["libmpi", "libpmi"].iter().any(|it| base_name(path).starts_with(it));
    let mut end_of_library = 0;
    let mut highest = None;
    for mapping in Mapping::parse_all(maps) {
        // behind a library's data that begins with zeros, which no file is behind
        let is_behind = mapping.path.is_empty() && mapping.addresses.start == end_of_library;
        if !is_behind && !is_of_mpi(&mapping.path) {
            continue;
        }
        end_of_library = mapping.addresses.end;
        let bytes = mapping.addresses.end - mapping.addresses.start;
        if mapping.is_writable && bytes <= LARGEST {
            let memory = read_memory(pid, mapping.addresses.start, bytes as usize);
            highest = highest.max(memory.ok().and_then(|memory| highest_group(&memory)));
        }
    }
    highest
}

/// Of names as `kvs_PID_GROUP`.
fn highest_group(memory: &[u8]) -> Option<i64> {
    const BEGIN: &[u8] = b"kvs_";
    let places = memory.windows(BEGIN.len()).enumerate().filter(|(_, window)| *window == BEGIN);
    let group = |at: usize| {
        let text: Vec<u8> = memory[at + BEGIN.len()..]
            .iter()
            .copied()
            .take_while(|&byte| byte == b'_' || byte.is_ascii_digit())
            .take(40)
            .collect();
        let text = String::from_utf8(text).ok()?;
        let (pid, rest) = text.split_once('_')?;
        let group = rest.split('_').next()?.parse().ok();
        group.filter(|_| !pid.is_empty())
    };
    places.filter_map(|(at, _)| group(at)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(words: &[&str]) -> RankIdentity {
        let environment: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        RankIdentity::read(i64::from(std::process::id()), &Variables::of(&environment), "")
    }

    fn place(words: &[&str]) -> (String, String) {
        let it = launched(words);
        (it.job.expect("a job"), it.rank.expect("a rank").to_string())
    }

    #[test]
    fn worlds_are_numbered_as_recorders_number_them() {
        let orte = |space: &str, parent: &str| {
            let words = [
                "OMPI_COMM_WORLD_RANK=1",
                &format!("PMIX_NAMESPACE={space}"),
                "OMPI_MCA_orte_precondition_transports=a-b",
                &format!("OMPI_PARENT_PORT={parent}"),
            ];
            place(&words)
        };
        let job = "655425537.a-b"; // 10001 << 16 | 1
        assert_eq!(orte("655425537", ""), (job.into(), "1".into()));
        assert_eq!(orte("655425538", "tcp:1"), (job.into(), "2:1".into()));
        let prterun = ["OMPI_COMM_WORLD_RANK=0", "PMIX_NAMESPACE=prterun-node-7@3"];
        assert_eq!(place(&prterun), ("prterun-node-7@1".into(), "3:0".into()));
        let intel = ["PMI_RANK=4", "I_MPI_HYDRA_UUID=u", "HYDRA_BSTRAP_PGID=1"];
        assert_eq!(place(&intel), ("u".into(), "2:4".into()));
        let step = ["SLURM_PROCID=5", "SLURM_JOB_ID=47", "SLURM_STEP_ID=2"];
        assert_eq!(place(&step), ("47.2".into(), "5".into()));
        assert_eq!(launched(&["SLURM_PROCID=5", "SLURM_JOB_ID=47"]), RankIdentity::default());
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let proxy = Proxy::of(&words("hydra_pmi_proxy --control-port node:1 --rmk user --pgid 1"));
        assert_eq!(proxy, Some(Proxy { port: "node:1".into(), group: 1 }));
        assert_eq!(highest_group(b"\0kvs_812_0_-5_node\0kvs_x\0kvs_812_2_77\0kvs_"), Some(2));
        assert_eq!(highest_group(b"kvs_ kvs__7"), None);
    }

    #[test]
    fn ranks_of_a_host_are_counted_by_the_launcher() {
        let of = |words: &[&str]| launched(words).local_size;
        assert_eq!(of(&["PMI_RANK=0", "MPI_LOCALNRANKS=4"]), Some(4));
        let on = |node: &str, tasks: &str| {
            let (node, tasks) =
                (format!("SLURM_NODEID={node}"), format!("SLURM_STEP_TASKS_PER_NODE={tasks}"));
            of(&["SLURM_PROCID=0", "SLURM_STEP_ID=0", &node, &tasks])
        };
        assert_eq!(
            [on("0", "2(x3),1"), on("2", "2(x3),1"), on("3", "2(x3),1")],
            [2, 2, 1].map(Some)
        );
        assert_eq!([on("4", "2(x3),1"), on("0", "two")], [None, None]);
    }
}
