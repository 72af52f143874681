//! Where a rank is, by two looks at its threads.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::arguments::Arguments;
use super::calls;
use super::nesting::Nesting;
use super::processes::Process;
use super::stop::ThreadCopy;
use lapscope_data::model::Rank;
use lapscope_data::state::SystemState;
use lapscope_data::store::host_name;
use lapscope_data::symbols::FrameName;

/// A thread, and what it is inside of.
pub(super) struct ThreadSeen {
    pub copy: ThreadCopy,
    pub nesting: Nesting,
    /// Why not all callers are there.
    pub cut: Option<&'static str>,
    pub arguments: Option<Arguments>,
}

impl ThreadSeen {
    fn is_inside(&self) -> bool {
        self.nesting.call.is_some() || self.nesting.within.is_some()
    }

    /// Whether it is inside of a call that it may have made again and again.
    fn may_repeat(&self) -> bool {
        let call = self.nesting.call.as_deref();
        call.is_some_and(|call| calls::asks(call) || calls::may_be_repeated(call))
    }
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
    /// Files of it whose frames were seen, which were replaced since it was started.
    pub replaced: Vec<String>,
    /// What the system says of its first thread, which says where the rank is if nothing can be read; `None`: it has ended.
    pub system: Option<SystemState>,
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
            replaced: Vec::new(),
            system: None,
        }
    }

    /// The thread that says where the rank is: one inside an MPI call, else the first. With several inside, the first of them.
    fn chosen(&self) -> Option<&ThreadSeen> {
        let first = self.threads.iter().find(|thread| thread.copy.tid == self.first);
        let is_inside = |thread: &&ThreadSeen| thread.is_inside();
        first.filter(is_inside).or_else(|| self.threads.iter().find(is_inside)).or(first)
    }

    pub fn has_frame_of(&self, path: &str) -> bool {
        let frames = self.threads.iter().flat_map(|it| &it.nesting.frames);
        frames.into_iter().any(|frame| frame.module.as_deref() == Some(path))
    }

    /// The thread of which one look does not tell whether it calls MPI again and again: it is on a processor, outside of MPI or in
    /// a call that returns soon.
    pub fn undecided(&self) -> Option<i64> {
        let thread = self.chosen().filter(|it| it.copy.system.state == 'R')?;
        (!thread.is_inside() || thread.may_repeat()).then_some(thread.copy.tid)
    }
}

/// What a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It has ended, or may not be looked at.
    Unknown,
    Stopped,
    /// Outside of MPI, or in a function of the program's that MPI calls, on a processor.
    Computes,
    /// Likewise, in a system call.
    Asleep,
    /// It makes a call again and again that returns at once.
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
    /// Where its thread is that is inside an MPI call, else the first one.
    #[serde(flatten)]
    pub at: ThreadStack,
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

/// Where a thread is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    pub tid: i64,
    pub doing: Doing,
    /// The MPI call that it is inside of; `null`: none.
    pub call: Option<String>,
    /// The call that the program made, where a library that watches calls makes `call` in its place; `null`: it is the same.
    pub called_as: Option<String>,
    /// What was passed to `call`, where that is certain; `null`: nothing is.
    pub arguments: Option<Arguments>,
    /// The MPI call within which a function of the program's runs, where it is; `null`: none.
    pub within: Option<String>,
    /// Whether that function is a handler of a signal, which interrupted MPI.
    pub by_signal: bool,
    /// Whether it is on a processor; `null`: not known.
    pub runs: Option<bool>,
    /// The system call in which it sleeps, where it does.
    pub sleeps_in: Option<String>,
    /// Whether it was at the same place at both looks; of one that computes, whether it was so by its outer lines.
    pub stands: bool,
    /// From the caller of MPI, or the innermost function, out to `main`; of very many the middle is left out. MPI's own are left out,
    /// but for the call in `within`.
    pub frames: Vec<FrameName>,
    /// How many there are, with those that are left out.
    pub depth: usize,
    /// How many of them, from the first on, are those of a library that watches calls.
    pub wrapper_frames: usize,
}

impl ThreadStack {
    /// Of whom nothing was seen but what the system says.
    fn unknown(tid: i64, system: Option<&SystemState>) -> ThreadStack {
        ThreadStack {
            tid,
            doing: Doing::Unknown,
            call: None,
            called_as: None,
            arguments: None,
            within: None,
            by_signal: false,
            runs: system.map(|it| it.state == 'R'),
            sleeps_in: system.and_then(sleeps_in),
            stands: false,
            frames: Vec::new(),
            depth: 0,
            wrapper_frames: 0,
        }
    }

    /// Of a thread at the last look; `between`: looks at threads besides the two.
    fn of(before: &StackLook, between: &[ThreadSeen], last: &ThreadSeen) -> ThreadStack {
        let is_it = |it: &&ThreadSeen| it.copy.tid == last.copy.tid;
        let earlier = before.threads.iter().find(is_it);
        let between = between.iter().filter(is_it);
        let seen: Vec<&ThreadSeen> = earlier.into_iter().chain(between).chain([last]).collect();
        let (shown, polls) = shown(&seen, last);
        let (nesting, system) = (&shown.nesting, &shown.copy.system);
        ThreadStack {
            doing: match (system.state, &nesting.call) {
                ('T' | 't', _) => Doing::Stopped,
                _ if polls => Doing::Polls,
                (_, Some(_)) => Doing::InMpi,
                ('R', None) => Doing::Computes,
                (_, None) => Doing::Asleep,
            },
            call: nesting.call.clone(),
            called_as: nesting.called_as.clone(),
            arguments: shown.arguments.clone(),
            within: nesting.within.clone(),
            by_signal: nesting.by_signal,
            stands: earlier.is_some_and(|it| polls || stands(it, shown)),
            frames: without_middle(&nesting.frames),
            depth: nesting.frames.len(),
            wrapper_frames: nesting.wrapper_frames,
            ..ThreadStack::unknown(last.copy.tid, Some(system))
        }
    }

    /// Whether it says more than that a process has many threads: those of a pool sleep.
    pub fn is_told(&self) -> bool {
        !matches!(self.doing, Doing::Asleep | Doing::Unknown)
    }
}

/// So many frames are kept at each end of a call path.
pub(super) const KEPT: usize = 128;

/// By both looks, and by those in between at what one does not decide.
pub(super) fn choose(before: &StackLook, between: &[ThreadSeen], after: &StackLook) -> RankStack {
    const MOST_OTHERS: usize = 32;
    let process = &after.process;
    let chosen = after.chosen();
    let is_other = |it: &&ThreadSeen| chosen.is_some_and(|chosen| chosen.copy.tid != it.copy.tid);
    let others = after.threads.iter().filter(is_other);
    let mut other_threads: Vec<ThreadStack> =
        others.map(|thread| ThreadStack::of(before, &[], thread)).collect();
    other_threads.sort_by_key(|it| (it.call.is_none(), !it.is_told(), it.tid != after.first));
    other_threads.truncate(MOST_OTHERS);
    let cut = chosen.and_then(|thread| thread.cut).map(str::to_owned);
    RankStack {
        rank: process.rank,
        job: process.job.clone(),
        host: host_name(),
        pid: process.pid,
        command: process.command.clone(),
        size: process.size,
        local_size: process.local_size,
        at: match chosen {
            Some(thread) => ThreadStack::of(before, between, thread),
            None => ThreadStack::unknown(process.pid, after.system.as_ref()),
        },
        threads: after.threads.len() + after.left_out,
        other_threads,
        is_recorded: process.is_recorded,
        run: process.run.clone(),
        problem: after.problem.clone().or(cut),
    }
}

fn sleeps_in(system: &SystemState) -> Option<String> {
    Some(&system.sleeps_in).filter(|it| system.state != 'R' && !it.is_empty()).cloned()
}

/// Whether a thread was at the same place at both looks.
fn stands(before: &ThreadSeen, after: &ThreadSeen) -> bool {
    let slept_on =
        after.copy.system.state != 'R' && before.copy.system.sleeps == after.copy.system.sleeps;
    let what = |it: &ThreadSeen| (it.nesting.call.clone(), it.nesting.within.clone());
    let (first, last) = (&before.nesting.frames, &after.nesting.frames);
    let same_place = || match after.nesting.call {
        Some(_) => is_same_path(before, after),
        None => same_function(first, last),
    };
    what(before) == what(after) && (slept_on || same_place())
}

/// Of paths whose outer ends are not known what is.
fn is_same_path(before: &ThreadSeen, after: &ThreadSeen) -> bool {
    let (first, last) = (&before.nesting.frames, &after.nesting.frames);
    match before.cut.or(after.cut) {
        Some(_) => first.iter().zip(last).all(|(first, last)| first == last),
        None => first == last,
    }
}

/// The look that shows what a thread does, and whether that is to make a call again and again: one that only asks, or one that
/// returns soon and has returned between the looks.
fn shown<'a>(seen: &[&'a ThreadSeen], last: &'a ThreadSeen) -> (&'a ThreadSeen, bool) {
    const SHARE: usize = 3; // a program that tests now and then computes
    let again = seen.iter().rev().copied().find(|it| it.may_repeat());
    let Some(again) = again.filter(|_| !last.is_inside() || last.may_repeat()) else {
        return (last, false);
    };
    let inside = seen.iter().filter(|it| it.nesting.call == again.nesting.call).count();
    let asks = again.nesting.call.as_deref().is_some_and(calls::asks);
    if SHARE * inside >= seen.len() && (asks || inside < seen.len()) {
        return (again, true);
    }
    let elsewhere = seen.iter().rev().copied().find(|it| !it.is_inside());
    (elsewhere.filter(|_| asks).unwrap_or(last), false)
}

/// Whether it was in the same function of the program's: lines change while it computes.
fn same_function(before: &[FrameName], after: &[FrameName]) -> bool {
    let outer = |frames: &[FrameName]| -> Vec<Option<String>> {
        frames.iter().rev().take(2).map(|frame| frame.function.clone()).collect()
    };
    outer(before) == outer(after)
}

fn without_middle(frames: &[FrameName]) -> Vec<FrameName> {
    match frames.len() {
        all if all <= 2 * KEPT => frames.to_vec(),
        all => [&frames[..KEPT], &frames[all - KEPT..]].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::model::Nanos;

    fn seen(call: &str) -> ThreadSeen {
        let system = SystemState {
            state: 'R',
            processor: Nanos(0),
            sleeps_in: String::new(),
            wakes_by_itself: false,
            sleeps: 0,
            age: Nanos(0),
        };
        let copy = ThreadCopy {
            tid: 1,
            system,
            registers: Default::default(),
            stack: Vec::new(),
            python: Default::default(),
        };
        let call = (call != "-").then(|| format!("MPI_{call}"));
        let nesting = Nesting { call, ..Nesting::default() };
        ThreadSeen { copy, nesting, cut: None, arguments: None }
    }

    #[test]
    fn asking_is_told_from_computing_and_from_waiting() {
        for (looks, expected) in [
            ("Test", "Test again"),
            ("Iprobe - Iprobe Iprobe -", "Iprobe again"),
            ("- - - - - - Test", "-"),
            ("- - Test - - - -", "-"),
            ("- - - -", "-"),
            ("Win_flush_local Win_flush_local Win_flush_local", "Win_flush_local"),
            ("Win_flush_local - Win_flush_local", "Win_flush_local again"),
            ("Test Test Recv", "Recv"),
            ("Recv", "Recv"),
        ] {
            let looks_of: Vec<ThreadSeen> = looks.split(' ').map(seen).collect();
            let looks_of: Vec<&ThreadSeen> = looks_of.iter().collect();
            let (shown, again) = shown(&looks_of, looks_of[looks_of.len() - 1]);
            let call = shown.nesting.call.as_deref().map_or("-", |it| &it["MPI_".len()..]);
            let again = if again { " again" } else { "" };
            assert_eq!(format!("{call}{again}"), expected, "{looks}");
        }
    }
}
