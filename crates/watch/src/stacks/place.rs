//! Where a rank is, by two looks at its threads.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::processes::Process;
use super::stop::ThreadCopy;
use lapscope_data::model::Rank;
use lapscope_data::store::host_name;
use lapscope_data::symbols::{self, base_name, FrameName};
use lapscope_data::text::ranks::in_words;
use lapscope_data::text::{capitalized, plural};

/// A thread and what its frames are called, innermost first.
pub(super) struct ThreadSeen {
    pub copy: ThreadCopy,
    pub names: Vec<FrameName>,
    /// All callers are there.
    pub is_whole: bool,
    pub arguments: Option<Arguments>,
}

/// What a look has found of a process.
pub(super) struct StackLook {
    pub process: Process,
    pub threads: Vec<ThreadSeen>,
    pub held: Duration,
    pub problem: Option<String>,
    /// Why there are no lines of Python of it, where it has an interpreter.
    pub python_problem: Option<String>,
}

impl StackLook {
    pub fn new(process: &Process) -> StackLook {
        StackLook {
            process: process.clone(),
            threads: Vec::new(),
            held: Duration::ZERO,
            problem: None,
            python_problem: None,
        }
    }

    /// The thread that says where the rank is: one inside an MPI call, else the first. With several inside, the first of them.
    fn chosen(&self) -> Option<&ThreadSeen> {
        let first = self.threads.iter().find(|thread| thread.copy.tid == self.process.pid);
        let is_inside = |thread: &&ThreadSeen| called(&thread.names).is_some();
        first.filter(is_inside).or_else(|| self.threads.iter().find(is_inside)).or(first)
    }
}

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It has ended, or may not be looked at.
    Unknown,
    Stopped,
    /// Outside of MPI, on a processor.
    Computes,
    /// Outside of MPI, in a system call.
    Asleep,
    /// It tests again and again.
    Polls,
    InMpi,
}

/// Where a rank is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankStack {
    /// `null`: its launcher did not say.
    pub rank: Option<Rank>,
    pub host: String,
    pub pid: i64,
    pub command: String,
    /// Ranks of its job; `null`: its launcher did not say.
    pub size: Option<u64>,
    pub doing: Doing,
    /// The MPI call that it is inside of; `null`: none.
    pub call: Option<String>,
    /// What the program passed to that, where that is certain; `null`: nothing is.
    pub arguments: Option<Arguments>,
    /// The system call in which it sleeps, where it does.
    pub sleeps_in: Option<String>,
    /// Whether it was at the same place at both looks; of one that computes, whether it was so by its outer lines.
    pub stands: bool,
    /// From the caller of MPI, or the innermost function, out to `main`.
    pub frames: Vec<FrameName>,
    /// Threads of the process.
    pub threads: usize,
    pub is_recorded: bool,
    /// The run directory that it records into; `null`: none, or not known.
    pub run: Option<PathBuf>,
    /// Why it is not known where it is, or a thread of it.
    pub problem: Option<String>,
}

/// The MPI call that a stack is inside of, and how many of its frames are within: the outermost one counts, as MPI calls itself.
fn called(names: &[FrameName]) -> Option<(String, usize)> {
    if let Some(place) = names.iter().rposition(|name| call_name(name).is_some()) {
        return Some((call_name(&names[place])?, place + 1));
    }
    // threads of MPI's own are called by nobody
    let place = names.iter().rposition(FrameName::is_mpi)?;
    let caller = names.get(place + 1)?;
    let is_called = !caller.is_start_code() && !caller.is_unnamed_libc();
    let function = names[place].function.as_deref().unwrap_or("a function of MPI");
    is_called.then(|| (function.to_owned(), place + 1))
}

/// "MPI_Recv", of `PMPI_Recv`, `mpi_recv_`, `mpi_recv_f08_` and the like in a library of MPI.
pub(super) fn call_name(name: &FrameName) -> Option<String> {
    let function = name.function.as_deref()?;
    if !name.is_mpi() {
        return None;
    }
    let plain = function.strip_prefix('P').or(function.strip_prefix('p')).unwrap_or(function);
    let rest = plain.strip_prefix("MPI_").or_else(|| plain.strip_prefix("mpi_"))?;
    let rest = rest
        .trim_end_matches('_')
        .trim_end_matches("_f08ts")
        .trim_end_matches("_f08")
        .trim_end_matches("_f");
    let mut letters = rest.chars();
    let first = letters.next().filter(char::is_ascii_alphabetic)?;
    let is_word = rest.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let is_internal = rest.starts_with("T_") || rest.contains("__");
    (is_word && !is_internal)
        .then(|| format!("MPI_{}{}", first.to_ascii_uppercase(), letters.as_str().to_lowercase()))
}

/// The frames of the program, from the caller of MPI out to `main`.
fn of_program(names: &[FrameName]) -> Vec<FrameName> {
    let within = called(names).map_or(0, |(_, within)| within);
    symbols::of_program(names[within..].to_vec())
}

/// By both looks.
pub(super) fn choose(before: &StackLook, after: &StackLook) -> RankStack {
    let process = &after.process;
    let mut rank = RankStack {
        rank: process.rank,
        host: host_name(),
        pid: process.pid,
        command: process.command.clone(),
        size: process.size,
        doing: Doing::Unknown,
        call: None,
        arguments: None,
        sleeps_in: None,
        stands: false,
        frames: Vec::new(),
        threads: after.threads.len(),
        is_recorded: process.is_recorded,
        run: process.run.clone(),
        problem: after.problem.clone(),
    };
    let Some(ThreadSeen { copy: thread, names, is_whole, arguments }) = after.chosen() else {
        return rank;
    };
    if !is_whole && rank.problem.is_none() {
        rank.problem = Some("the outermost callers are not known".to_owned());
    }
    rank.call = called(names).map(|(call, _)| call);
    rank.frames = of_program(names);
    rank.arguments = arguments.clone();
    let system = &thread.system;
    let sleeps = !matches!(system.state, 'R');
    rank.sleeps_in = Some(&system.sleeps_in).filter(|place| sleeps && !place.is_empty()).cloned();
    let earlier = before.threads.iter().find(|it| it.copy.tid == thread.tid);
    if let Some(ThreadSeen { copy: earlier, names: earlier_names, .. }) = earlier {
        let same_call = called(earlier_names).map(|(call, _)| call) == rank.call;
        let frames = of_program(earlier_names);
        let is_inside = rank.call.is_some();
        let slept_on = sleeps && earlier.system.sleeps == system.sleeps;
        rank.stands = same_call
            && (slept_on
                || if is_inside {
                    frames == rank.frames
                } else {
                    same_function(&frames, &rank.frames)
                });
    }
    rank.doing = match (system.state, &rank.call) {
        ('T' | 't', _) => Doing::Stopped,
        (_, Some(call))
            if call.starts_with("MPI_Test") || ["MPI_Iprobe", "MPI_Improbe"].contains(&&**call) =>
        {
            Doing::Polls
        }
        (_, Some(_)) => Doing::InMpi,
        ('R', None) => Doing::Computes,
        (_, None) => Doing::Asleep,
    };
    rank
}

/// Whether it was in the same function of the program's: lines change while it computes.
fn same_function(before: &[FrameName], after: &[FrameName]) -> bool {
    let outer = |frames: &[FrameName]| -> Vec<Option<String>> {
        frames.iter().rev().take(2).map(|frame| frame.function.clone()).collect()
    };
    outer(before) == outer(after)
}

/// The innermost frame that is the program's, not the C library's or the kernel's.
fn innermost(frames: &[FrameName]) -> Option<&FrameName> {
    const OTHERS: [&str; 5] = ["libc.so", "libm.so", "libpthread.so", "ld-linux", "[vdso]"];
    let is_own = |frame: &&FrameName| {
        let name = base_name(frame.module.as_deref().unwrap_or("?"));
        !OTHERS.iter().any(|other| name.starts_with(other))
    };
    frames.iter().find(is_own).or(frames.first())
}

// --- in words ------------------------------------------------------------------------------------------------------------

/// "in MPI_Recv, called at exchange ring.c:20", "outside of MPI, computing in fill ring.c:7".
pub(super) fn place(rank: &RankStack) -> String {
    let at = innermost(&rank.frames)
        .map(FrameName::short)
        .unwrap_or_else(|| "an unknown place".to_owned());
    match (rank.doing, &rank.call) {
        (Doing::Unknown, _) => "not to be seen".to_owned(),
        (Doing::Stopped, _) => format!("stopped, at {at}"),
        (Doing::Polls, Some(call)) => format!("testing by {call} at {at}"),
        (_, Some(call)) => format!("in {call}, called at {at}"),
        (Doing::Asleep, None) => match &rank.sleeps_in {
            Some(place) => format!("outside of MPI, asleep in {place}, at {at}"),
            None => format!("outside of MPI, asleep at {at}"),
        },
        _ => format!("outside of MPI, computing in {at}"),
    }
}

/// The ranks that stand apart from most others, and where these are.
pub(super) fn sentence(ranks: &[RankStack]) -> String {
    if ranks.is_empty() {
        return "No rank was found.".to_owned();
    }
    let mut groups: Vec<(String, Vec<&RankStack>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for rank in ranks {
        let place = place(rank);
        let at = *known.entry(place).or_insert_with_key(|place| {
            groups.push((place.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(rank);
    }
    groups.sort_by_key(|(_, members)| members.len());
    const MOST: usize = 3;
    let said = groups.iter().rev().take(MOST).rev().map(|(place, members)| {
        let numbers: Option<Vec<Rank>> = members.iter().map(|it| it.rank).collect();
        let who = match numbers {
            Some(numbers) => in_words(&numbers, ranks.len()),
            None => format!(
                "process {}",
                members.iter().map(|it| it.pid.to_string()).collect::<Vec<_>>().join(", ")
            ),
        };
        let stand = members.iter().filter(|it| it.stands).count();
        let still = match stand {
            _ if members[0].doing == Doing::Unknown => "",
            0 => "; elsewhere at the first look",
            count if count == members.len() => " at both looks",
            _ => "; some moved between the looks",
        };
        let passed = match members.as_slice() {
            [only] => only.arguments.as_ref().map(|it| format!(" ({})", it.in_words())),
            _ => None,
        };
        let passed = passed.unwrap_or_default();
        format!("{who} {} {place}{passed}{still}", if members.len() == 1 { "is" } else { "are" })
    });
    let said: Vec<String> = said.map(|sentence| capitalized(&sentence)).collect();
    let mut text = said.join(". ");
    if groups.len() > MOST {
        let further = groups.len() - MOST;
        text += &format!(". Others are at {further} further place{}", plural(further as u64));
    }
    let all_stand =
        ranks.iter().all(|it| it.stands && it.call.is_some() && it.doing != Doing::Polls);
    if all_stand {
        text += ". So all that were looked at are inside MPI: they wait, or come back to the same place again and again";
    }
    text + "."
}
