//! Where the ranks of a job are, also of one that nobody records: their stacks, copied from outside, and merged over ranks.
//!
//! Without records it is known where ranks are, and whether they move; for whom they wait is not. So no deadlock is claimed here.

mod abi;
mod absent;
mod arguments;
mod callee;
mod calls;
mod code;
mod condition;
mod copied;
mod identity;
mod image;
mod interpreted;
mod kin;
mod layers;
mod loaded;
#[cfg(test)]
mod made;
mod maps;
mod merge;
mod nesting;
mod place;
mod process;
mod processes;
mod program;
mod python;
mod registers;
mod signal;
mod stop;
mod tracer;
mod tree;
mod unwind;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::state_of_thread;
use lapscope_data::store::host_name;
use lapscope_data::symbols::{FrameName, NameFrames, Symbols};
use lapscope_data::text::list_ranks;

pub use absent::Absent;
pub use arguments::Arguments;
pub use merge::{merge, HostLook, RecordedRun, StackDiagnosis, UnseenHost};
pub use place::{Doing, RankStack, ThreadStack};
pub use processes::{Process, Processes, RankOfJob, Wanted};
pub use tree::Branch;

use code::CodeFiles;
use kin::Relative;
use nesting::Nesting;
use place::{choose, StackLook, ThreadSeen};
use python::Mixed;
use stop::{Outcome, ProcessCopy, ThreadCopy};
use unwind::{Native, ProcessCode, StackEnd, Unwound};

/// What is kept from process to process: files that are mapped everywhere are read once.
#[derive(Default)]
struct Reader {
    files: CodeFiles,
    symbols: Symbols,
}

/// What frames are called, innermost first, inlined ones among them.
struct NamedStack {
    names: Vec<FrameName>,
    /// The frames of machine code that they are, by their places.
    natives: Vec<Option<usize>>,
    /// Why not all callers are there.
    cut: Option<&'static str>,
}

impl Reader {
    fn names(
        &mut self,
        code: &ProcessCode,
        thread: &ThreadCopy,
        Unwound { natives, end }: &Unwound,
    ) -> NamedStack {
        let mut named = NamedStack { names: Vec::new(), natives: Vec::new(), cut: None };
        for mixed in code.with_python(natives, &thread.python) {
            let (names, native) = match mixed {
                Mixed::Native(at) => (self.native(&natives[at]), Some(at)),
                Mixed::Line(at) => (self.line(&thread.python.lines[at]), None),
            };
            named.natives.resize(named.natives.len() + names.len(), native);
            named.names.extend(names);
        }
        // a program without symbols does not name the outermost one; the C library in front of that does
        let outermost: Vec<FrameName> =
            natives.iter().rev().take(2).flat_map(|it| self.native(it)).collect();
        let ends = outermost.iter().any(|it| it.is_start_code() || it.is_unnamed_libc());
        named.cut = match end {
            StackEnd::Outermost if ends => None,
            StackEnd::Endless => Some("its stack has more callers than anybody looks at"),
            _ => Some("the outermost callers are not known"),
        };
        named
    }

    /// Of a file that was replaced no line is claimed: its source may be another one, too.
    fn native(&mut self, native: &Native) -> Vec<FrameName> {
        self.symbols.learn(&self.files.modules, &self.files.kept);
        let mut names = self.symbols.name(native.frame);
        if native.is_signal() {
            names.truncate(1);
            return names.into_iter().map(FrameName::of_signal).collect();
        }
        if native.frame.module.is_some_and(|it| self.files.is_replaced(it)) {
            names.iter_mut().for_each(|name| (name.file, name.line) = (None, None));
        }
        names
    }

    fn line(&mut self, line: &python::PythonLine) -> Vec<FrameName> {
        let frame = self.files.line(line);
        self.symbols.learn(&self.files.modules, &self.files.kept);
        self.symbols.name(frame)
    }

    fn seen(&mut self, code: &ProcessCode, copy: ThreadCopy) -> ThreadSeen {
        let unwound = code.unwind(&copy);
        let named = self.names(code, &copy, &unwound);
        let layers: Vec<_> = named.names.iter().map(|name| code.program.layer(name)).collect();
        let mut nesting = nesting::nesting(&named.names, &layers);
        let natives = &unwound.natives;
        // the frame that has called MPI: what records, or passes calls on, is MPI's
        let caller = nesting.entry.and_then(|entry| Some(named.natives[entry]? + 1));
        let arguments = caller.and_then(|caller| {
            self.jumped_on(code, natives.get(caller)?, &mut nesting);
            self.arguments(code, &copy, natives, caller, &nesting)
        });
        ThreadSeen { copy, nesting, cut: named.cut, arguments }
    }

    /// The call that a thread is inside of where it has no frame, as it went on by a jump.
    fn jumped_on(&mut self, code: &ProcessCode, caller: &Native, nesting: &mut Nesting) {
        let is_named = |it: &Nesting| it.call.as_deref().and_then(calls::name_of).is_some();
        let Some(entered) = code.entered(caller).filter(|_| !is_named(nesting)) else { return };
        let entered = self.symbols.name(entered).into_iter().filter(FrameName::is_mpi);
        let call = entered.filter_map(|name| calls::name_of(&name.function?)).next();
        nesting.call = call.or(nesting.call.take());
    }

    /// Those of the MPI call that a thread is inside of, which the frame at `caller` has called.
    fn arguments(
        &mut self,
        code: &ProcessCode,
        thread: &ThreadCopy,
        natives: &[Native],
        caller: usize,
        nesting: &Nesting,
    ) -> Option<Arguments> {
        let call = nesting.call.as_deref()?;
        let callees = arguments::callees(call)?;
        let known = code.registers(thread, natives, caller)?;
        let register = |number: u16| *known.get(usize::from(number))?;
        let names = callees.each_ref().map(|it| it.as_str());
        let passed = self.symbols.passed(natives[caller].frame, &names, &register);
        let abi = code.abi(&natives[..caller]);
        arguments::of(call, &passed, abi, |handle| {
            code.communicator(&natives[caller], abi?, handle)
        })
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
            copy.stopped(wanted.tid, system, registers, code)
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
        look.system = state_of_thread(pid, look.first).filter(|it| !matches!(it.state, 'Z' | 'X'));
        let why = if living.is_some() { condition::FORBIDDEN } else { condition::ENDED };
        match &code {
            None => look.problem = look.problem.take().or_else(|| Some(why.to_owned())),
            Some(code) => {
                look.problem = look.problem.take().or_else(|| interpreted::by(pid, code.paths()));
            }
        }
        let code = code.filter(|_| look.problem.is_none())?;
        let is_enough = |thread: &ThreadCopy| {
            let unwound = code.unwind(thread);
            unwound.end == StackEnd::Endless || self.names(&code, thread, &unwound).cut.is_none()
        };
        let begun = ProcessCopy::begin(pid, at, &code, is_enough);
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
        look.threads = threads.map(|copy| self.seen(&code, copy)).collect();
        let replaced = code.replaced().filter(|path| look.has_frame_of(path));
        look.replaced = replaced.map(str::to_owned).collect();
        look
    }

    /// At threads that run, once more, each by its process's place, its process and its own number: until `by`.
    fn look_again(&mut self, threads: &[(usize, i64, i64)], by: Instant) -> LooksBetween {
        let (mut codes, mut wanted) = (HashMap::new(), Vec::new());
        for &(at, pid, tid) in threads.iter().take_while(|_| Instant::now() < by) {
            let Some(code) = ProcessCode::read(tid, &mut self.files) else { continue };
            let Some((copy, thread)) = ProcessCopy::again(pid, at, tid) else { continue };
            codes.insert(at, (code, copy));
            wanted.push(thread);
        }
        let stopped = |wanted: &stop::ToStop, system, registers| {
            let (code, copy) = &codes[&wanted.process];
            copy.stopped(wanted.tid, system, registers, code)
        };
        let mut between = LooksBetween::default();
        for (wanted, outcome) in tracer::copy_all(wanted, by, &stopped) {
            let Outcome::Copied(copy, held) = outcome else { continue };
            between.held = between.held.max(held);
            let seen = self.seen(&codes[&wanted.process].0, *copy);
            between.seen.entry(wanted.process).or_default().push(seen);
        }
        between
    }
}

/// Threads are stopped within so much time of a look; then only those that sleep are read, and the first ones of processes.
const LOOK: Duration = Duration::from_secs(3);

/// Threads between the two looks, by the place of their process.
#[derive(Default)]
struct LooksBetween {
    seen: HashMap<usize, Vec<ThreadSeen>>,
    held: Duration,
}

impl LooksBetween {
    /// Until `interval` has passed: some more looks at threads of which one tells nothing.
    fn look(reader: &mut Reader, first: &[StackLook], interval: Duration) -> LooksBetween {
        const LOOKS: u32 = 7;
        let undecided = first.iter().enumerate();
        let undecided =
            undecided.filter_map(|(at, it)| Some((at, it.process.pid, it.undecided()?)));
        let undecided: Vec<(usize, i64, i64)> = undecided.collect();
        let (begun, mut between) = (Instant::now(), LooksBetween::default());
        let left = |of: Duration| of.saturating_sub(begun.elapsed());
        for turn in 1..=LOOKS {
            std::thread::sleep(left(interval * turn / (LOOKS + 1)));
            let further = reader.look_again(&undecided, begun + interval);
            between.held = between.held.max(further.held);
            for (at, seen) in further.seen {
                between.seen.entry(at).or_default().extend(seen);
            }
        }
        std::thread::sleep(left(interval));
        between
    }

    fn of(&self, at: usize) -> &[ThreadSeen] {
        self.seen.get(&at).map_or(&[], Vec::as_slice)
    }
}

/// Looks at processes of this host twice.
pub fn look(processes: &Processes, interval: Duration) -> HostLook {
    let mut reader = Reader::default();
    let look_at_all = |reader: &mut Reader| -> Vec<StackLook> {
        reader.look(&processes.found, Instant::now() + LOOK)
    };
    let first = look_at_all(&mut reader);
    let begun = Instant::now();
    let between = LooksBetween::look(&mut reader, &first, interval);
    let second = look_at_all(&mut reader);
    let nanos = |time: Duration| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let observed = nanos(begun.elapsed());
    let held = first.iter().chain(&second).map(|look| look.held).chain([between.held]).max();
    let looks = first.iter().zip(&second).enumerate();
    let ranks: Vec<RankStack> =
        looks.map(|(at, (before, after))| choose(before, between.of(at), after)).collect();
    let notes = notes(processes, &ranks, &second);
    HostLook {
        host: host_name(),
        observed_ns: observed,
        held_ns: nanos(held.unwrap_or_default()),
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
    let replaced = looks.iter().flat_map(|look| {
        let why = "was replaced on disk since it was started: its lines are not known";
        look.replaced.iter().filter_map(move |path| of_process(format!("{path} {why}"), look))
    });
    let mut by_problem: BTreeMap<String, Vec<(Option<Rank>, i64)>> = BTreeMap::new();
    for (problem, rank, pid) in problems.chain(python).chain(cut).chain(replaced) {
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
