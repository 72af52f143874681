//! Where the ranks of a job are, also of one that nobody records: their stacks, copied from outside, and merged over ranks.
//!
//! Without records it is known where ranks are, and whether they move; for whom they wait is not. So no deadlock is claimed here.

mod abi;
mod arguments;
mod callee;
mod calls;
mod code;
mod image;
mod interpreted;
mod layers;
#[cfg(test)]
mod made;
mod maps;
mod merge;
mod nesting;
mod place;
mod processes;
mod python;
mod registers;
mod signal;
mod stop;
mod tree;
mod unwind;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use lapscope_data::model::Nanos;
use lapscope_data::state::state_of_thread;
use lapscope_data::store::host_name;
use lapscope_data::symbols::{FrameName, NameFrames, Symbols};

pub use arguments::Arguments;
pub use merge::{merge, HostLook, RecordedRun, StackDiagnosis, UnseenHost};
pub use place::{Doing, RankStack};
pub use processes::{Process, Processes, Wanted};
pub use tree::Branch;

use code::CodeFiles;
use nesting::Nesting;
use place::{choose, StackLook, ThreadSeen};
use python::Mixed;
use stop::ThreadCopy;
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

    fn look(&mut self, process: &Process) -> StackLook {
        let mut look = StackLook::new(process);
        look.system = state_of_thread(process.pid, process.pid);
        let Some(code) = ProcessCode::read(process.pid, &mut self.files) else {
            look.problem = Some(match fs::metadata(format!("/proc/{}", process.pid)) {
                Ok(_) => "its memory may not be looked at from here".to_owned(),
                Err(_) => "it has ended".to_owned(),
            });
            return look;
        };
        if is_of_32_bits(process.pid) {
            look.problem = Some("stacks of 32-bit processes cannot be read".to_owned());
            return look;
        }
        if let Some(by) = interpreted::by(process.pid, code.paths()) {
            look.problem = Some(by);
            return look;
        }
        let python = |tid| code.python_lines(tid);
        let wants = |thread: &ThreadCopy| code.goes_on_at(thread);
        match stop::copy(process.pid, &python, &wants, |thread| {
            let unwound = code.unwind(thread);
            unwound.end == StackEnd::Endless || self.names(&code, thread, &unwound).cut.is_none()
        }) {
            Ok(copy) => {
                look.held = copy.held;
                look.problem = copy.failed.first().map(|(_, why)| why.clone());
                let is_unsound = copy.threads.iter().any(|thread| thread.python.is_unsound);
                let unsound = is_unsound.then_some("frames are not where its version has them");
                look.python_problem = code.python_problem().or(unsound).map(str::to_owned);
                let threads = copy.threads.into_iter();
                look.threads = threads.map(|copy| self.seen(&code, copy)).collect();
                let replaced = code.replaced().filter(|path| look.has_frame_of(path));
                look.replaced = replaced.map(str::to_owned).collect();
            }
            Err(_) => look.problem = Some("it has ended".to_owned()),
        }
        look
    }

    /// A thread that runs, once more.
    fn look_again(&mut self, pid: i64, tid: i64) -> Option<(ThreadSeen, Duration)> {
        let code = ProcessCode::read(pid, &mut self.files)?;
        let python = |tid| code.python_lines(tid);
        let wants = |thread: &ThreadCopy| code.goes_on_at(thread);
        let (copy, held) = stop::copy_again(pid, tid, &python, &wants).ok()?;
        Some((self.seen(&code, copy), held))
    }
}

/// By its executable, elf(5).
fn is_of_32_bits(pid: i64) -> bool {
    const CLASS: usize = 4;
    let mut begin = [0; CLASS + 1];
    let executable = fs::File::open(format!("/proc/{pid}/exe"));
    executable.and_then(|mut it| it.read_exact(&mut begin)).is_ok() && begin[CLASS] == 1
}

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
            for &(at, pid, tid) in undecided.iter().take_while(|_| !left(interval).is_zero()) {
                let Some((seen, held)) = reader.look_again(pid, tid) else { continue };
                between.held = between.held.max(held);
                between.seen.entry(at).or_default().push(seen);
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
        processes.found.iter().map(|process| reader.look(process)).collect()
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
        notes,
    }
}

fn notes(processes: &Processes, ranks: &[RankStack], looks: &[StackLook]) -> Vec<String> {
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
    let problems = ranks.iter().filter_map(|rank| Some((rank.problem.clone()?, rank.pid)));
    let python = looks.iter().filter_map(|look| {
        let why = look.python_problem.as_deref()?;
        Some((format!("lines of Python are not known: {why}"), look.process.pid))
    });
    let replaced = looks.iter().flat_map(|look| {
        let pid = look.process.pid;
        look.replaced.iter().map(move |path| {
            (
                format!(
                    "{path} was replaced on disk since it was started: its lines are not known"
                ),
                pid,
            )
        })
    });
    let mut by_problem: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (problem, pid) in problems.chain(python).chain(replaced) {
        by_problem.entry(problem).or_default().push(pid);
    }
    notes.extend(by_problem.iter().map(|(problem, pids)| format!("{}: {problem}", named(pids))));
    notes
}

/// "process 12", "processes 12, 13, 14, 15 and 60 more".
fn named(pids: &[i64]) -> String {
    const MOST: usize = 4;
    let shown: Vec<String> = pids.iter().take(MOST).map(i64::to_string).collect();
    let more = match pids.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("process{} {}{more}", if pids.len() == 1 { "" } else { "es" }, shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_are_named_in_short() {
        assert_eq!(named(&[7]), "process 7");
        assert_eq!(named(&[7, 8, 9, 10, 11, 12]), "processes 7, 8, 9, 10 and 2 more");
    }
}
