//! Whether other programs than the tests have the processors.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use lapscope_data::store::stat_fields;

/// What processes that are not this one's had of processors, from a moment on.
pub struct Others {
    begin: Instant,
    /// Processor time of each of them, in ticks of the system.
    had: BTreeMap<u32, u64>,
}

/// proc_pid_stat(5).
struct Process {
    parent: u32,
    /// User and system, with what children had that have ended.
    ticks: u64,
}

impl Others {
    pub fn begin() -> Others {
        Others { begin: Instant::now(), had: others() }
    }

    /// Processors that they had since then, a mean. Of those that began or ended meanwhile nothing counts but what their parents
    /// know.
    pub fn processors(&self) -> f64 {
        // SAFETY: asks for a number.
        let ticks_a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let more = |(process, ticks): (u32, u64)| {
            self.had.get(&process).map(|before| ticks.saturating_sub(*before))
        };
        let ticks: u64 = others().into_iter().filter_map(more).sum();
        ticks as f64 / ticks_a_second / self.begin.elapsed().as_secs_f64().max(1e-3)
    }
}

fn others() -> BTreeMap<u32, u64> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: BTreeMap<u32, Process> =
        numbers.filter_map(|number| Some((number, process(number)?))).collect();
    let own = std::process::id();
    let is_own = |mut number: u32| {
        for _ in 0..64 {
            if number == own {
                return true;
            }
            match all.get(&number) {
                Some(process) => number = process.parent,
                None => return false,
            }
        }
        false
    };
    all.iter().filter(|(&number, _)| !is_own(number)).map(|(&at, it)| (at, it.ticks)).collect()
}

fn process(number: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields = stat_fields(&text)?;
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = [11, 12, 13, 14].into_iter().filter_map(ticks).sum();
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_fixture::child;

    #[test]
    fn own_children_are_no_others() {
        let spin = "end=$(( $(date +%s) + 1 )); while [ $(date +%s) -le $end ]; do :; done";
        let before = others();
        let status = child::command("sh").args(["-c", spin]).status().expect("a shell");
        assert!(status.success());
        let own = std::process::id();
        assert!(!before.contains_key(&own) && !others().contains_key(&own));
        assert!(before.contains_key(&1), "the first process is another");
    }
}
