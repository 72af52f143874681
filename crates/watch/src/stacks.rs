//! Where the ranks of a job are, also of one that nobody records: their stacks, copied from outside, and merged over ranks.
//!
//! Without records it is known where ranks are, and whether they move; for whom they wait is not. So no deadlock is claimed here.

mod maps;
mod merge;
mod place;
mod processes;
mod stop;
mod tree;
mod unwind;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use lapscope_data::model::Nanos;
use lapscope_data::store::host_name;
use lapscope_data::symbols::{FrameName, NameFrames, Symbols};

pub use merge::{merge, HostLook, RecordedRun, StackDiagnosis, UnseenHost};
pub use place::{Doing, RankStack};
pub use processes::{Process, Processes, Wanted};
pub use tree::Branch;

use place::{choose, StackLook};
use stop::ThreadCopy;
use unwind::{CodeFiles, ProcessCode};

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

/// Looks at processes of this host twice.
pub fn look(processes: &Processes, interval: Duration) -> HostLook {
    let mut reader = Reader::default();
    let mut look_at_all = || -> Vec<StackLook> {
        processes.found.iter().map(|process| reader.look(process)).collect()
    };
    let first = look_at_all();
    let begun = Instant::now();
    std::thread::sleep(interval);
    let second = look_at_all();
    let nanos = |time: Duration| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let observed = nanos(begun.elapsed());
    let held = first.iter().chain(&second).map(|look| look.held).max().unwrap_or_default();
    let ranks: Vec<RankStack> =
        first.iter().zip(&second).map(|(before, after)| choose(before, after)).collect();
    let notes = notes(processes, &ranks);
    HostLook {
        host: host_name(),
        observed_ns: observed,
        held_ns: nanos(held),
        ranks,
        forbidden: processes.forbidden,
        notes,
    }
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
    let mut problems: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for rank in ranks.iter().filter(|rank| rank.frames.is_empty()) {
        if let Some(problem) = &rank.problem {
            problems.entry(problem).or_default().push(rank.pid);
        }
    }
    notes.extend(problems.iter().map(|(problem, pids)| format!("{}: {problem}", named(pids))));
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
