//! Processes of this host that have lapscope loaded and record nothing yet: they are on their way to MPI_Init, or hang there.

use std::fs;

use super::system::{state_of, words_of};

/// An MPI program that is not out of MPI_Init.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub pid: i64,
    pub command: String,
    /// Where in the kernel its first thread sleeps; empty: it is on a processor, or that is not told.
    pub sleeps_in: String,
}

/// Those of which that may be asked, the lowest process number first.
pub fn before_init() -> Vec<Loaded> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse::<i64>().ok());
    let mut loaded: Vec<Loaded> = pids.filter_map(loaded).collect();
    loaded.sort_by_key(|it| it.pid);
    loaded
}

fn loaded(pid: i64) -> Option<Loaded> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    if !is_before_init(&String::from_utf8_lossy(&maps)) {
        return None;
    }
    let command = words_of(pid, "cmdline").ok()?.join(" ").trim_end().to_owned();
    let sleeps_in = state_of(pid, pid).map_or_else(String::new, |it| it.sleeps_in);
    Some(Loaded { pid, command, sleeps_in })
}

/// By the files that a process has mapped: proc_pid_maps(5).
fn is_before_init(maps: &str) -> bool {
    let files = || maps.lines().filter_map(|line| line.rsplit_once('/').map(|(_, file)| file));
    files().any(|file| file.starts_with("liblapscope.so"))
        && files().any(|file| file.starts_with("libmpi"))
        && !files().any(|file| file.contains(".spool"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_is_mapped_from_mpi_init_on() {
        let line = |file: &str| format!("7f00-7f01 r-xp 00000000 fe:00 12   /opt/lib/{file}\n");
        let maps = line("liblapscope.so") + &line("libmpi.so.40.30.4");
        assert!(is_before_init(&maps));
        assert!(!is_before_init(&line("liblapscope.so")), "a shell");
        assert!(!is_before_init(&line("libmpi.so.40.30.4")), "bare");
        assert!(!is_before_init(&(maps + &line("rank-0.spool"))));
    }
}
