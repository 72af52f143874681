//! Where the ranks of a job are, also of one that nobody records: their stacks, copied from outside, and merged over ranks.
//!
//! Without records it is known where ranks are, and whether they move; for whom they wait is not. So no deadlock is claimed here.

mod maps;
mod place;
mod processes;
mod stop;
mod tree;
mod unwind;

use std::fs;
use std::time::{Duration, Instant};

use serde::Serialize;

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::symbols::{FrameName, NameFrames, Symbols};

pub use place::{Doing, RankStack};
pub use processes::{Process, Processes, Wanted};
pub use tree::Branch;

use place::{choose, StackLook};
use stop::ThreadCopy;
use unwind::{CodeFiles, ProcessCode};

/// Where all ranks are. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct StackDiagnosis {
    /// Between the two looks.
    pub observed_ns: Nanos,
    /// What it comes to, in a sentence.
    pub sentence: String,
    /// From `main` inwards, branches with fewest ranks first.
    pub tree: Vec<Branch>,
    pub ranks: Vec<RankStack>,
    /// The longest that a thread was stopped for; 0: none was.
    pub held_ns: Nanos,
    /// Ranks that belong to the job and were not found here; empty: all are here, or nobody says how many there are.
    pub elsewhere: Vec<Rank>,
    /// What else is to be known, as sentences.
    pub notes: Vec<String>,
}

/// What is kept from process to process: files that are mapped everywhere are read once.
#[derive(Default)]
struct Reader {
    files: CodeFiles,
    symbols: Option<(usize, Symbols)>,
}

impl Reader {
    /// What its frames are called, innermost first, inlined ones among them.
    fn names(&mut self, code: &ProcessCode, thread: &ThreadCopy) -> (Vec<FrameName>, bool) {
        let (frames, is_whole) = code.unwind(thread);
        let known = self.files.modules.len();
        let is_current = self.symbols.as_ref().is_some_and(|(modules, _)| *modules == known);
        if !is_current {
            self.symbols = Some((known, Symbols::new(self.files.modules.clone())));
        }
        let (_, symbols) = self.symbols.as_mut().expect("it was just made");
        let names: Vec<FrameName> = frames.iter().flat_map(|&frame| symbols.name(frame)).collect();
        let ends = names.last().is_some_and(|name| name.is_start_code() || name.is_unnamed_libc());
        (names, is_whole && ends)
    }

    fn look(&mut self, process: &Process) -> StackLook {
        let mut look = StackLook::new(process);
        let Some(code) = ProcessCode::read(process.pid, &mut self.files) else {
            look.problem = Some(match fs::metadata(format!("/proc/{}", process.pid)) {
                Ok(_) => "its memory may not be looked at from here".to_owned(),
                Err(_) => "it has ended".to_owned(),
            });
            return look;
        };
        match stop::copy(process.pid, |thread| self.names(&code, thread).1) {
            Ok(copy) => {
                look.held = copy.held;
                look.problem = copy.failed.first().map(|(_, why)| why.clone());
                let threads = copy.threads.iter();
                look.threads =
                    threads.map(|thread| (thread.clone(), self.names(&code, thread).0)).collect();
            }
            Err(_) => look.problem = Some("it has ended".to_owned()),
        }
        look
    }
}

/// Looks at processes twice.
pub fn diagnose(processes: &Processes, interval: Duration) -> StackDiagnosis {
    let mut reader = Reader::default();
    let mut look_at_all = || -> Vec<StackLook> {
        processes.found.iter().map(|process| reader.look(process)).collect()
    };
    let first = look_at_all();
    let begun = Instant::now();
    std::thread::sleep(interval);
    let second = look_at_all();
    let observed = Nanos(i64::try_from(begun.elapsed().as_nanos()).unwrap_or(i64::MAX));
    let held = first.iter().chain(&second).map(|look| look.held).max().unwrap_or_default();
    let ranks: Vec<RankStack> =
        first.iter().zip(&second).map(|(before, after)| choose(before, after)).collect();
    StackDiagnosis {
        observed_ns: observed,
        sentence: place::sentence(&ranks),
        tree: tree::merge(&ranks),
        held_ns: Nanos(i64::try_from(held.as_nanos()).unwrap_or(i64::MAX)),
        elsewhere: elsewhere(&ranks),
        notes: notes(processes, &ranks),
        ranks,
    }
}

fn elsewhere(ranks: &[RankStack]) -> Vec<Rank> {
    let size = ranks.iter().filter_map(|rank| rank.size).max().unwrap_or(0);
    let is_here =
        |number: i64| ranks.iter().any(|it| it.rank.is_some_and(|rank| rank.number == number));
    (0..size as i64).filter(|&number| !is_here(number)).map(Rank::of_first_world).collect()
}

fn notes(processes: &Processes, ranks: &[RankStack]) -> Vec<String> {
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
    for rank in ranks.iter().filter(|rank| rank.frames.is_empty()) {
        if let Some(problem) = &rank.problem {
            notes.push(format!("process {}: {problem}", rank.pid));
        }
    }
    let recorded = ranks.iter().filter(|rank| rank.is_recorded).count();
    if recorded > 0 {
        notes.push(format!(
            "{recorded} of these ranks {} recorded: lapscope hang with the run directory knows for whom they wait",
            if recorded == 1 { "is" } else { "are" }
        ));
    }
    notes
}
