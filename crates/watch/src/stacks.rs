//! Where the ranks of a job are, also of one that nobody records: their stacks, copied from outside, and merged over ranks.
//!
//! Without records it is known where ranks are, and whether they move; for whom they wait is not. So no deadlock is claimed here.

mod absent;
mod arguments;
mod callee;
mod condition;
mod identity;
mod kin;
mod maps;
mod merge;
mod place;
mod processes;
mod program;
mod python;
mod registers;
mod stop;
mod tracer;
mod tree;
mod unwind;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::store::host_name;
use lapscope_data::symbols::{FrameName, NameFrames, Symbols};
use lapscope_data::text::list_ranks;

pub use absent::Absent;
pub use arguments::Arguments;
pub use merge::{merge, HostLook, RecordedRun, StackDiagnosis, UnseenHost};
pub use place::{Doing, RankStack, ThreadStack};
pub use processes::{Process, Processes, RankOfJob, Wanted};
pub use tree::Branch;

use kin::Relative;
use place::{choose, StackLook, ThreadSeen};
use stop::{ProcessCopy, ThreadCopy};
use unwind::{CodeFiles, Native, ProcessCode};

/// What is kept from process to process: files that are mapped everywhere are read once.
#[derive(Default)]
struct Reader {
    files: CodeFiles,
    symbols: Symbols,
}

impl Reader {
    /// What its frames are called, innermost first, inlined ones among them.
    fn names(
        &mut self,
        code: &ProcessCode,
        thread: &ThreadCopy,
        (natives, is_whole): &(Vec<Native>, bool),
    ) -> (Vec<FrameName>, bool) {
        let frames = code.with_python(natives, &thread.python, &mut self.files);
        self.symbols.learn(&self.files.modules);
        let names = frames.iter().flat_map(|&frame| self.symbols.name(frame)).collect();
        // a program without symbols does not name the outermost one; the C library in front of that does
        let outermost = natives.iter().rev().take(2).flat_map(|it| self.symbols.name(it.frame));
        let ends = outermost.into_iter().any(|it| it.is_start_code() || it.is_unnamed_libc());
        (names, *is_whole && ends)
    }

    fn seen(&mut self, pid: i64, code: &ProcessCode, copy: ThreadCopy) -> ThreadSeen {
        let unwound = code.unwind(&copy);
        let (mut names, is_whole) = self.names(code, &copy, &unwound);
        let natives = &unwound.0;
        if !names.iter().any(|name| place::call_name(name).is_some()) {
            let within = names.iter().rposition(FrameName::is_mpi).map_or(0, |at| at + 1);
            names.splice(within..within, self.jumped_on(pid, code, natives));
        }
        let arguments = self.arguments(code, &copy, natives);
        ThreadSeen { copy, names, is_whole, arguments }
    }

    /// The frame that has called MPI: what records, or passes calls on, is MPI's.
    fn caller_of_mpi(&self, natives: &[Native]) -> Option<usize> {
        let is_mpi = |native: &Native| {
            native.frame.module.is_some_and(|it| self.files.modules[it as usize].is_mpi())
        };
        Some(natives.iter().rposition(is_mpi)? + 1)
    }

    /// The call that a thread is inside of where it has no frame, as it went on by a jump.
    fn jumped_on(&mut self, pid: i64, code: &ProcessCode, natives: &[Native]) -> Option<FrameName> {
        let caller = natives.get(self.caller_of_mpi(natives)?)?;
        let entered = self.symbols.name(code.entered(pid, caller)?);
        entered.into_iter().find(|name| place::call_name(name).is_some())
    }

    /// Those of the MPI call that it is inside of.
    fn arguments(
        &mut self,
        code: &ProcessCode,
        thread: &ThreadCopy,
        natives: &[Native],
    ) -> Option<Arguments> {
        let at = self.caller_of_mpi(natives)?;
        let caller = natives.get(at)?;
        let mut within = natives[..at].iter().rev();
        let call =
            within.find_map(|it| self.symbols.name(it.frame).iter().find_map(place::call_name))?;
        let callees = arguments::callees(&call)?;
        let known = code.registers(thread, natives, at)?;
        let register = |number: u16| *known.get(usize::from(number))?;
        let passed =
            self.symbols.passed(caller.frame, &callees.each_ref().map(|it| it.as_str()), &register);
        arguments::of(&call, &passed, |handle| code.communicator(caller, handle))
    }

    /// At several processes. From `by` on only their first threads are stopped.
    fn look(&mut self, processes: &[Process], by: Instant) -> Vec<StackLook> {
        let (mut begun, mut wanted) = (Vec::new(), Vec::new());
        for (at, process) in processes.iter().enumerate() {
            let mut look = StackLook::new(process);
            let standing = self.begin(at, &mut look);
            let standing = standing.map(|(code, copy, further)| {
                wanted.extend(further);
                (code, copy)
            });
            begun.push((look, standing));
        }
        wanted.sort_by_key(|it| !it.is_first);
        let stopped = |wanted: &stop::ToStop, system, registers| {
            let (_, Some((code, copy))) = &begun[wanted.process] else {
                return Err(std::io::Error::other("it was not looked at"));
            };
            copy.stopped(wanted.tid, system, registers, |tid| code.python_lines(tid))
        };
        let copied = tracer::copy_all(wanted, by, &stopped);
        for (wanted, outcome) in copied {
            if let (_, Some((_, copy))) = &mut begun[wanted.process] {
                copy.take(wanted, outcome);
            }
        }
        begun.into_iter().map(|(look, standing)| self.end(look, standing)).collect()
    }

    /// What is seen without stopping anybody, and who has to be stopped; `None`: nothing is, and the look says why.
    fn begin(
        &mut self,
        at: usize,
        look: &mut StackLook,
    ) -> Option<(ProcessCode, ProcessCopy, Vec<stop::ToStop>)> {
        let pid = look.process.pid;
        look.problem = condition::of(pid).map(str::to_owned);
        let living = stop::threads(pid).unwrap_or_default().first().copied();
        let code = living.and_then(|living| ProcessCode::read(living, &mut self.files));
        look.first = living.unwrap_or(pid);
        let why = if living.is_some() { condition::FORBIDDEN } else { condition::ENDED };
        if code.is_none() {
            look.problem.get_or_insert_with(|| why.to_owned());
        }
        let code = code.filter(|_| look.problem.is_none())?;
        let is_enough = |thread: &ThreadCopy| self.names(&code, thread, &code.unwind(thread)).1;
        let begun = ProcessCopy::begin(pid, at, |tid| code.python_lines(tid), is_enough);
        if begun.is_err() {
            look.problem = Some(condition::ENDED.to_owned());
        }
        let (copy, wanted) = begun.ok()?;
        Some((code, copy, wanted))
    }

    fn end(
        &mut self,
        mut look: StackLook,
        standing: Option<(ProcessCode, ProcessCopy)>,
    ) -> StackLook {
        let Some((code, copy)) = standing else { return look };
        (look.held, look.left_out) = (copy.held, copy.left_out);
        look.problem = copy.failed.first().map(|(_, why)| why.clone());
        let is_unsound = copy.threads.iter().any(|thread| thread.python.is_unsound);
        let unsound = is_unsound.then_some("frames are not where its version has them");
        look.python_problem = code.python_problem().or(unsound).map(str::to_owned);
        let threads = copy.threads.into_iter();
        look.threads = threads.map(|copy| self.seen(look.first, &code, copy)).collect();
        look
    }
}

/// Threads are stopped within so much time of a look; then only those that sleep are read, and the first ones of processes.
const LOOK: Duration = Duration::from_secs(3);

/// Looks at processes of this host twice.
pub fn look(processes: &Processes, interval: Duration) -> HostLook {
    let mut reader = Reader::default();
    let mut look_at_all =
        || -> Vec<StackLook> { reader.look(&processes.found, Instant::now() + LOOK) };
    let first = look_at_all();
    let begun = Instant::now();
    std::thread::sleep(interval);
    let second = look_at_all();
    let nanos = |time: Duration| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let observed = nanos(begun.elapsed());
    let held = first.iter().chain(&second).map(|look| look.held).max().unwrap_or_default();
    let ranks: Vec<RankStack> =
        first.iter().zip(&second).map(|(before, after)| choose(before, after)).collect();
    let notes = notes(processes, &ranks, &second);
    HostLook {
        host: host_name(),
        observed_ns: observed,
        held_ns: nanos(held),
        ranks,
        forbidden: processes.forbidden,
        of_other_programs: processes.of_other_programs.clone(),
        nameless: processes.nameless,
        notes,
    }
}

fn notes(processes: &Processes, ranks: &[RankStack], looks: &[StackLook]) -> Vec<String> {
    const TOO_MANY: &str = "not all threads were looked at: they are too many, or it would take too long until they all have stopped";
    let mut notes = Vec::new();
    if processes.forbidden > 0 {
        notes.push(format!(
            "{} process{} of other users {} not looked at: ask as their user, or as root",
            processes.forbidden,
            if processes.forbidden == 1 { "" } else { "es" },
            if processes.forbidden == 1 { "was" } else { "were" }
        ));
    }
    for pid in &processes.missing {
        notes.push(format!("there is no process {pid} on this machine"));
    }
    notes.extend(processes.relatives.iter().map(of_relative));
    let problems =
        ranks.iter().filter_map(|rank| Some((rank.problem.clone()?, rank.rank, rank.pid)));
    let of_process = |why: String, it: &StackLook| Some((why, it.process.rank, it.process.pid));
    let python = looks.iter().filter_map(|look| {
        let why = look.python_problem.as_deref()?;
        of_process(format!("lines of Python are not known: {why}"), look)
    });
    let cut = looks.iter().filter(|look| look.left_out > 0);
    let cut = cut.filter_map(|look| of_process(TOO_MANY.to_owned(), look));
    let mut by_problem: BTreeMap<String, Vec<(Option<Rank>, i64)>> = BTreeMap::new();
    for (problem, rank, pid) in problems.chain(python).chain(cut) {
        by_problem.entry(problem).or_default().push((rank, pid));
    }
    notes.extend(by_problem.iter().map(|(problem, whose)| format!("{}: {problem}", named(whose))));
    notes
}

fn of_relative(Relative { process, of }: &Relative) -> String {
    let rank = process.rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    format!("process {} has the variables of {rank}, which is process {of}", process.pid)
}

/// "rank 3 (process 12)", "ranks 0-3"; without ranks "process 12", "processes 12, 13, 14, 15 and 60 more".
fn named(whose: &[(Option<Rank>, i64)]) -> String {
    const MOST: usize = 4;
    let ranks: Option<Vec<Rank>> = whose.iter().map(|(rank, _)| *rank).collect();
    match (ranks, whose) {
        (Some(ranks), [(_, pid)]) => format!("rank {} (process {pid})", list_ranks(&ranks)),
        (Some(ranks), _) => format!("ranks {}", list_ranks(&ranks)),
        (None, _) => {
            let pids: Vec<String> =
                whose.iter().take(MOST).map(|(_, pid)| pid.to_string()).collect();
            let more = match whose.len().saturating_sub(MOST) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("process{} {}{more}", if whose.len() == 1 { "" } else { "es" }, pids.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_are_named_in_short() {
        let nobody = |pids: &[i64]| named(&pids.iter().map(|&pid| (None, pid)).collect::<Vec<_>>());
        assert_eq!(nobody(&[7]), "process 7");
        assert_eq!(nobody(&[7, 8, 9, 10, 11, 12]), "processes 7, 8, 9, 10 and 2 more");
        let rank = |number: i64| (Some(Rank::of_first_world(number)), 70 + number);
        assert_eq!(named(&[rank(3)]), "rank 3 (process 73)");
        assert_eq!(named(&[rank(0), rank(1), rank(2)]), "ranks 0-2");
    }
}
