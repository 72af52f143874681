//! Runs every command that reads on a variant, in a process of its own with bounds, and tells what it did.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::base::Base;
use lapscope_fixture::child;

const LONGEST: Duration = Duration::from_secs(20);
const MOST_MEMORY: u64 = 1 << 30;
/// What commands write beside the run.
const WRITTEN: [&str; 4] = ["all.db", "run.perfetto-trace", "run.json", "page.html"];

/// `recover` last: it takes the spool away that the others would recover. `merge` writes beside the run.
pub fn commands() -> [&'static [&'static str]; 22] {
    [
        &["report", "lapscope-1", "--format", "json"],
        &["overlap", "lapscope-1"],
        &["thresholds", "lapscope-1"],
        &["reach", "lapscope-1", "--format", "json"],
        &["whatif", "lapscope-1", "--format", "json"],
        &["diff", "lapscope-1", "lapscope-1"],
        &["check", "lapscope-1", "--against", "lapscope-1"],
        &["report", "lapscope-1", "lapscope-1"],
        &["sites", "lapscope-1", "--format", "json"],
        &["requests", "lapscope-1", "--top", "0", "--format", "json"],
        &["requests", "lapscope-1"],
        &["pending", "lapscope-1"],
        &["sql", "lapscope-1", "SELECT count(*) FROM request"],
        &["merge", "lapscope-1", "-o", "all.db"],
        &["export", "parquet", "tables", "lapscope-1"],
        &["export", "goal", "lapscope-1"],
        &["export", "perfetto", "lapscope-1", "-o", "run.perfetto-trace"],
        &["export", "chrome", "lapscope-1", "-o", "run.json"],
        &["html", "lapscope-1", "-o", "page.html"],
        &["hang", "lapscope-1", "--interval", "0.1", "--html", "page.html"],
        &["live", "lapscope-1", "--once", "--interval", "0.1"],
        &["recover", "lapscope-1"],
    ]
}

/// What a command did.
pub struct Answer {
    /// `None`: ended by a signal.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub said: Vec<String>,
    /// Requests that it found, where it tells.
    pub rows: Option<u64>,
}

/// All commands, each on a copy of the run in `place`, since recovering changes it.
pub fn run_all(place: &Path) -> Vec<Answer> {
    commands().iter().map(|command| run_one(place, command)).collect()
}

fn run_one(place: &Path, command: &[&str]) -> Answer {
    let outputs = tempfile::tempdir().unwrap();
    let (out, err) = (outputs.path().join("out"), outputs.path().join("err"));
    // another build than the one that is under work
    let program = std::env::var_os("LAPSCOPE_FUZZ_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_lapscope").into());
    let mut child = child::command(program);
    child
        .args(command)
        .current_dir(place)
        .env("LAPSCOPE_CALIBRATION_DIR", outputs.path().join("none"))
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap());
    // SAFETY: setrlimit is safe between fork and exec.
    unsafe {
        child.pre_exec(|| {
            let limit = |most| libc::rlimit { rlim_cur: most, rlim_max: most };
            libc::setrlimit(libc::RLIMIT_AS, &limit(MOST_MEMORY));
            libc::setrlimit(libc::RLIMIT_CORE, &limit(0));
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit(MOST_MEMORY));
            Ok(())
        });
    }
    let mut child = child.spawn().unwrap();
    let begin = Instant::now();
    let (status, timed_out) = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break (status, false);
        }
        if begin.elapsed() > LONGEST {
            child.kill().unwrap();
            break (child.wait().unwrap(), true);
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let said = String::from_utf8_lossy(&std::fs::read(&err).unwrap()).into_owned();
    let printed = std::fs::read(&out).unwrap();
    Answer {
        code: status.code(),
        signal: status.signal(),
        timed_out,
        said: said.lines().map(str::to_owned).chain(problems(command, &printed)).collect(),
        rows: rows(place, command, &printed),
    }
}

/// What a report's JSON has for problems, as others say them.
fn problems(command: &[&str], printed: &[u8]) -> Vec<String> {
    let document: serde_json::Value = match command[0] {
        "report" => serde_json::from_slice(printed).unwrap_or_default(),
        _ => return Vec::new(),
    };
    let problems = document["problems"].as_array().cloned().unwrap_or_default();
    problems.iter().map(|problem| problem["message"].to_string()).collect()
}

fn rows(place: &Path, command: &[&str], printed: &[u8]) -> Option<u64> {
    match command[0] {
        "requests" => serde_json::from_slice::<serde_json::Value>(printed).ok()?["found"].as_u64(),
        "sql" => std::str::from_utf8(printed).ok()?.split_whitespace().last()?.parse().ok(),
        "merge" => count(&place.join("all.db")),
        _ => None,
    }
}

/// Requests in a database, as SQLite counts them.
pub fn count(path: &Path) -> Option<u64> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(path, flags).ok()?;
    let sql = "SELECT count(*) FROM request";
    database.query_row(sql, [], |row| row.get::<_, i64>(0)).ok().map(|rows| rows as u64)
}

/// What was wrong with these commands. `can_be_counted`: SQLite's own count of rows holds, and the sound run's.
pub fn check(
    base: &Base,
    place: &Path,
    commands: impl IntoIterator<Item = &'static [&'static str]>,
    can_be_counted: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for command in commands {
        for written in WRITTEN {
            let _ = std::fs::remove_file(place.join(written));
        }
        let _ = std::fs::remove_dir_all(place.join("tables"));
        let answer = run_one(place, command);
        let said = answer.said.join(" | ");
        let shown: String = said.chars().take(400).collect();
        if answer.timed_out {
            wrong.push(format!("{command:?} ran longer than {} s", LONGEST.as_secs()));
        } else if !matches!(answer.code, Some(0..=2)) || said.contains("panicked") {
            wrong.push(format!(
                "{command:?}: code {:?}, signal {:?}: {shown}",
                answer.code, answer.signal
            ));
        } else if said.contains("memory allocation") {
            wrong.push(format!("{command:?}: memory: {shown}"));
        } else if can_be_counted && answer.code == Some(0) {
            let before = base.rows.get(command[0]).copied().unwrap_or(0);
            let usual: BTreeSet<&String> =
                base.said.get(command[0]).into_iter().flatten().collect();
            let is_new = answer.said.iter().any(|line| !usual.contains(line));
            if answer.rows.is_some_and(|rows| rows < before) && !is_new {
                let rows = answer.rows.unwrap_or_default();
                wrong.push(format!(
                    "{command:?}: {rows} of {before} requests, and nothing said: {shown}"
                ));
            }
        }
    }
    wrong
}
