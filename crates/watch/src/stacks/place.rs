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
use lapscope_data::text::ranks;
use lapscope_data::text::{capitalized, list_ranks, plural};

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
    /// The first thread that lives: the one that runs `main`, unless that has ended before others.
    pub first: i64,
    pub threads: Vec<ThreadSeen>,
    pub held: Duration,
    /// Threads that were not looked at.
    pub left_out: usize,
    pub problem: Option<String>,
    /// Why there are no lines of Python of it, where it has an interpreter.
    pub python_problem: Option<String>,
}

impl StackLook {
    pub fn new(process: &Process) -> StackLook {
        StackLook {
            process: process.clone(),
            first: process.pid,
            threads: Vec::new(),
            held: Duration::ZERO,
            left_out: 0,
            problem: None,
            python_problem: None,
        }
    }

    /// The thread that says where the rank is: one inside an MPI call, else the first. With several inside, the first of them.
    fn chosen(&self) -> Option<&ThreadSeen> {
        let first = self.threads.iter().find(|thread| thread.copy.tid == self.first);
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
    /// Of which launch it is, as its launcher names that; `null`: it does not.
    pub job: Option<String>,
    pub host: String,
    pub pid: i64,
    pub command: String,
    /// Ranks of its MPI_COMM_WORLD, and those of them that were started on its host; `null`: its launcher did not say.
    pub size: Option<u64>,
    pub local_size: Option<u64>,
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
    /// Where the others are, those inside MPI first; of many only some.
    pub other_threads: Vec<ThreadStack>,
    pub is_recorded: bool,
    /// The run directory that it records into; `null`: none, or not known.
    pub run: Option<PathBuf>,
    /// Why it is not known where it is, or a thread of it.
    pub problem: Option<String>,
}

/// Where a thread is: as a [`RankStack`], which is where the thread inside an MPI call is, else the first one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    pub tid: i64,
    pub doing: Doing,
    pub call: Option<String>,
    pub arguments: Option<Arguments>,
    pub sleeps_in: Option<String>,
    pub stands: bool,
    pub frames: Vec<FrameName>,
}

impl ThreadStack {
    /// Of whom nothing was seen.
    fn unknown(tid: i64) -> ThreadStack {
        ThreadStack {
            tid,
            doing: Doing::Unknown,
            call: None,
            arguments: None,
            sleeps_in: None,
            stands: false,
            frames: Vec::new(),
        }
    }

    /// `before`: the look before this.
    fn of(before: &StackLook, thread: &ThreadSeen) -> ThreadStack {
        let ThreadSeen { copy, names, arguments, .. } = thread;
        let system = &copy.system;
        let sleeps = !matches!(system.state, 'R');
        let place = Some(&system.sleeps_in).filter(|place| sleeps && !place.is_empty());
        let mut stack = ThreadStack {
            call: called(names).map(|(call, _)| call),
            arguments: arguments.clone(),
            sleeps_in: place.cloned(),
            frames: of_program(names),
            ..ThreadStack::unknown(copy.tid)
        };
        let earlier = before.threads.iter().find(|it| it.copy.tid == copy.tid);
        stack.stands = earlier.is_some_and(|earlier| stack.stood(earlier, thread));
        stack.doing = match (system.state, &stack.call) {
            ('T' | 't', _) => Doing::Stopped,
            (_, Some(call)) if is_test(call) => Doing::Polls,
            (_, Some(_)) => Doing::InMpi,
            ('R', None) => Doing::Computes,
            (_, None) => Doing::Asleep,
        };
        stack
    }

    fn stood(&self, earlier: &ThreadSeen, now: &ThreadSeen) -> bool {
        let same_call = called(&earlier.names).map(|(call, _)| call) == self.call;
        let frames = of_program(&earlier.names);
        let (before, system) = (&earlier.copy.system, &now.copy.system);
        let slept_on = system.state != 'R' && before.sleeps == system.sleeps;
        let same_place = || match self.call {
            Some(_) => frames == self.frames,
            None => same_function(&frames, &self.frames),
        };
        same_call && (slept_on || same_place())
    }

    /// Whether it says more than that a process has many threads: those of a pool sleep.
    pub fn is_told(&self) -> bool {
        !matches!(self.doing, Doing::Asleep | Doing::Unknown)
    }
}

fn is_test(call: &str) -> bool {
    call.starts_with("MPI_Test") || ["MPI_Iprobe", "MPI_Improbe"].contains(&call)
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
    const MOST_OTHERS: usize = 32;
    let process = &after.process;
    let chosen = after.chosen();
    let is_other = |it: &&ThreadSeen| chosen.is_some_and(|chosen| chosen.copy.tid != it.copy.tid);
    let others = after.threads.iter().filter(is_other);
    let mut other_threads: Vec<ThreadStack> =
        others.map(|thread| ThreadStack::of(before, thread)).collect();
    other_threads.sort_by_key(|it| (it.call.is_none(), !it.is_told(), it.tid != after.first));
    other_threads.truncate(MOST_OTHERS);
    let at = match chosen {
        Some(thread) => ThreadStack::of(before, thread),
        None => ThreadStack::unknown(process.pid),
    };
    let is_cut = chosen.is_some_and(|thread| !thread.is_whole);
    let cut = is_cut.then(|| "the outermost callers are not known".to_owned());
    RankStack {
        rank: process.rank,
        job: process.job.clone(),
        host: host_name(),
        pid: process.pid,
        command: process.command.clone(),
        size: process.size,
        local_size: process.local_size,
        doing: at.doing,
        call: at.call,
        arguments: at.arguments,
        sleeps_in: at.sleeps_in,
        stands: at.stands,
        frames: at.frames,
        threads: after.threads.len() + after.left_out,
        other_threads,
        is_recorded: process.is_recorded,
        run: process.run.clone(),
        problem: after.problem.clone().or(cut),
    }
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
    let RankStack { doing, call, sleeps_in, frames, .. } = rank;
    in_words(*doing, call.as_deref(), sleeps_in.as_deref(), frames)
}

impl ThreadStack {
    pub fn place(&self) -> String {
        in_words(self.doing, self.call.as_deref(), self.sleeps_in.as_deref(), &self.frames)
    }
}

fn in_words(
    doing: Doing,
    call: Option<&str>,
    sleeps_in: Option<&str>,
    frames: &[FrameName],
) -> String {
    let at =
        innermost(frames).map(FrameName::short).unwrap_or_else(|| "an unknown place".to_owned());
    match (doing, call) {
        (Doing::Unknown, _) => "not to be seen".to_owned(),
        (Doing::Stopped, _) => format!("stopped, at {at}"),
        (Doing::Polls, Some(call)) => format!("testing by {call} at {at}"),
        (_, Some(call)) => format!("in {call}, called at {at}"),
        (Doing::Asleep, None) => match sleeps_in {
            Some(place) => format!("outside of MPI, asleep in {place}, at {at}"),
            None => format!("outside of MPI, asleep at {at}"),
        },
        _ => format!("outside of MPI, computing in {at}"),
    }
}

/// Ranks of several worlds are listed: how many a world has is not how many there are.
fn named(numbers: &[Rank], all: &[RankStack]) -> String {
    let mut worlds: Vec<i64> = all.iter().filter_map(|it| Some(it.rank?.world)).collect();
    worlds.sort_unstable();
    worlds.dedup();
    match worlds.len() {
        0 | 1 => ranks::in_words(numbers, all.len()),
        _ => format!("rank{} {}", plural(numbers.len() as u64), list_ranks(numbers)),
    }
}

/// The ranks that stand apart from most others, and where these are.
pub(super) fn sentence(ranks: &[RankStack], ended: &[Rank]) -> String {
    if ranks.is_empty() {
        return "No rank was found.".to_owned();
    }
    let gone = match ended.len() {
        0 => String::new(),
        1 => format!("Rank {} has ended. ", list_ranks(ended)),
        _ => format!("Ranks {} have ended. ", list_ranks(ended)),
    };
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
            Some(numbers) => named(&numbers, ranks),
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
    let mut text = gone + &said.join(". ");
    if groups.len() > MOST {
        let further = groups.len() - MOST;
        text += &format!(". Others are at {further} further place{}", plural(further as u64));
    }
    let only_waits = |it: &RankStack| it.stands && it.call.is_some() && it.doing != Doing::Polls;
    let computes = |it: &RankStack| it.other_threads.iter().any(|it| it.doing == Doing::Computes);
    let all_stand = ranks.iter().all(|it| only_waits(it) && !computes(it));
    if all_stand {
        text += ". So all that were looked at are inside MPI: they wait, or come back to the same place again and again";
    }
    text + "."
}
