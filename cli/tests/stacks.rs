//! `lapscope hang` of jobs that nobody records, on one host and on several. Ranks are processes that sleep and have the variables of
//! a launcher; hosts are what launchers and an ssh of the test's own make of this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::child;
use serde_json::Value;

use crate::fixture::{bare, printed, text};

/// All ranks here are started by one process, as those of a launch are.
static LAUNCH: Mutex<()> = Mutex::new(());

/// Ranks of jobs. They run one program, which has a name of its own.
struct Bed {
    _launch: MutexGuard<'static, ()>,
    place: tempfile::TempDir,
    name: String,
    ranks: Vec<Child>,
}

impl Bed {
    /// Ranks 0 and 1 of three.
    fn new(test: &str) -> Bed {
        Bed::of(2, test)
    }

    /// All ranks of a job but the last.
    fn of(ranks: u32, test: &str) -> Bed {
        let mut bed = Bed::empty(test);
        (0..ranks).for_each(|rank| bed.start(rank, ranks + 1, &[]));
        bed
    }

    fn empty(test: &str) -> Bed {
        let _launch = LAUNCH.lock().unwrap_or_else(PoisonError::into_inner);
        let place = tempfile::tempdir().unwrap();
        let name = format!("asleep-{test}-{}", std::process::id());
        fs::copy("/bin/sleep", place.path().join(&name)).unwrap();
        Bed { _launch, ranks: Vec::new(), place, name }
    }

    fn start(&mut self, rank: u32, size: u32, variables: &[(&str, &str)]) {
        self.start_as(&self.name.clone(), &["300"], rank, size, variables);
    }

    fn start_as(
        &mut self,
        program: &str,
        words: &[&str],
        rank: u32,
        size: u32,
        variables: &[(&str, &str)],
    ) {
        let mut command = child::command(self.place.path().join(program));
        command.args(words).env("OMPI_COMM_WORLD_RANK", rank.to_string());
        command.env("OMPI_COMM_WORLD_SIZE", size.to_string()).envs(variables.iter().copied());
        // while another test starts a program, that may have this one's file open for writing: fork(2)
        let busy = |it: &std::io::Result<Child>| {
            it.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ETXTBSY))
        };
        let mut started = command.spawn();
        while busy(&started) {
            std::thread::sleep(Duration::from_millis(10));
            started = command.spawn();
        }
        self.ranks.push(started.unwrap());
    }

    fn hang(&self, more: &[&str]) -> Command {
        let mut command = bare(&["hang", "--interval", "0.1", "--command", &self.name]);
        command.args(more);
        command
    }

    fn json(&self, more: &[&str]) -> Value {
        serde_json::from_str(&printed(self.hang(more).args(["--format", "json"]))).unwrap()
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.place.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

fn list<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().unwrap_or_else(|| panic!("no {key} in {answer:#}"))
}

fn said(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn ranks_of_this_host() {
    let bed = Bed::new("here");
    let page = bed.place.path().join("page.html");
    let answer = bed.json(&["--html", page.to_str().unwrap()]);
    let numbers: Vec<&Value> = list(&answer, "ranks").iter().map(|it| &it["rank"]).collect();
    assert_eq!(numbers, [0, 1], "{answer:#}");
    assert!(list(&answer, "ranks").iter().all(|it| it["doing"] == "asleep" && it["size"] == 3));
    assert_eq!((list(&answer, "elsewhere"), list(&answer, "hosts").len()), (&[2.into()][..], 1));
    assert!(list(&answer, "recorded").is_empty() && list(&answer, "unseen").is_empty());

    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Where everybody is") && !page.contains("Verdict"), "{page}");
    let place = list(&answer, "tree")[0]["place"].as_str().unwrap();
    assert!(page.contains(place) && page.contains("ranks 0-1"), "{page}");
    assert!(page.contains("rank 2 of this job is not on this machine"), "{page}");
    let text = printed(&mut bed.hang(&["--each-rank=1"]));
    let pid = bed.ranks[1].id();
    assert!(text.contains(&format!(", process {pid}")) && text.contains("--hosts"), "{text}");
    // nobody has looked for the others
    let mut of_one = bare(&["hang", "--interval", "0.1", "--pid", &pid.to_string()]);
    assert!(!printed(&mut of_one).contains("of this job is not on"));
}

fn ranks(answer: &Value) -> Vec<&Value> {
    list(answer, "ranks").iter().map(|it| &it["rank"]).collect()
}

/// Ranks that were started here, and are not found: some have ended, some run another program.
#[test]
fn who_has_ended_is_told_from_who_runs_something_else() {
    let mut bed = Bed::empty("gone");
    let local = [("OMPI_COMM_WORLD_LOCAL_SIZE", "4"), ("PMIX_NAMESPACE", "prterun-node-7@1")];
    bed.start(0, 4, &local);
    bed.start(3, 4, &local);
    let other = format!("other-{}", bed.name);
    fs::copy("/bin/sleep", bed.place.path().join(&other)).unwrap();
    bed.start_as(&other, &["300"], 1, 4, &local);
    let answer = bed.json(&[]);
    assert_eq!(ranks(&answer), [0, 3], "{answer:#}");
    assert_eq!(
        (list(&answer, "ended"), list(&answer, "of_other_programs")),
        (&[2.into()][..], &[1.into()][..])
    );
    assert!(answer["sentence"].as_str().unwrap().starts_with("Rank 2 has ended. "), "{answer:#}");
    let pid = bed.ranks[0].id().to_string();
    let of_one = printed(&mut bare(&["hang", "--interval", "0.1", "--pid", &pid]));
    assert!(!of_one.contains("has ended") && !of_one.contains("have ended"), "{of_one}");
    let text = printed(&mut bed.hang(&["--each-rank"]));
    assert!(text.contains("rank 1 of this job runs another program"), "{text}");
    for rank in [&bed.ranks[0], &bed.ranks[1]] {
        assert!(text.contains(&format!(", process {} on ", rank.id())), "{text}");
    }
}

/// Two launches of one program, and worlds of one launch.
#[test]
fn jobs_are_answered_one_by_one() {
    let mut bed = Bed::empty("jobs");
    for space in ["prterun-node-7@1", "prterun-node-7@2", "prterun-node-9@1"] {
        bed.start(0, 1, &[("PMIX_NAMESPACE", space)]);
    }
    let answer = bed.json(&[]);
    assert_eq!(ranks(&answer), [&Value::from(0), &Value::from("2:0")], "{answer:#}");
    let others = list(&answer, "other_jobs");
    assert_eq!((others.len(), ranks(&others[0])), (1, vec![&Value::from(0)]), "{answer:#}");
    let page = bed.place.path().join("page.html");
    let text = printed(&mut bed.hang(&["--html", page.to_str().unwrap()]));
    assert!(text.contains("3 processes of 2 jobs"), "{text}");
    assert_eq!(text.matches("\nJOB ").count(), 2, "{text}");
    assert_eq!(text.matches("CALL PATHS").count(), 2, "{text}");
    assert!(fs::read_to_string(page).unwrap().contains("1 process, process "));
}

/// What starts a rank, and its children, have its variables, too; a program has several names.
#[test]
fn a_rank_is_one_process_by_all_names_of_its_program() {
    let mut bed = Bed::empty("names");
    let (shell, link) = (format!("shell-{}", bed.name), format!("link-{}", bed.name));
    let at = |name: &str| bed.place.path().join(name);
    fs::copy("/bin/sh", at(&shell)).unwrap();
    std::os::unix::fs::symlink(at(&shell), at(&link)).unwrap();
    let paths = [at(&shell), at(&link)].map(|path| path.to_str().unwrap().to_owned());
    bed.start_as(&link, &["-c", "(sleep 300; :) & wait; :"], 0, 1, &[]);
    let pid = bed.ranks[0].id();
    std::thread::sleep(Duration::from_millis(300));
    for name in [&shell, &link, &paths[0], &paths[1]] {
        let mut command = bare(&["hang", "--interval", "0.1", "--command", name]);
        let answer: Value =
            serde_json::from_str(&printed(command.args(["--format", "json"]))).unwrap();
        let found: Vec<&Value> = list(&answer, "ranks").iter().map(|it| &it["pid"]).collect();
        assert_eq!(found, [pid], "{name}: {answer:#}");
    }
    let children = format!("/proc/{pid}/task/{pid}/children");
    let copy = fs::read_to_string(children).unwrap_or_default().trim().to_owned();
    for pids in [format!("{pid},{copy}"), copy.clone()] {
        let mut command = bare(&["hang", "--interval", "0.1", "--pid", &pids, "--format", "json"]);
        let answer: Value = serde_json::from_str(&printed(&mut command)).unwrap();
        assert_eq!(list(&answer, "ranks").len(), 1, "{answer:#}");
        let note = format!("process {copy} has the variables of rank 0, which is process {pid}");
        assert!(answer["notes"].to_string().contains(&note), "{answer:#}");
    }
    // SAFETY: a child's child, which nobody else knows
    unsafe { libc::kill(copy.parse().unwrap(), libc::SIGKILL) };
}

#[test]
fn the_odd_one_out_is_named_with_its_process() {
    let bed = Bed::of(5, "odd");
    let pid = bed.ranks[3].id();
    // SAFETY: a child that has not been waited for
    unsafe { libc::kill(libc::pid_t::try_from(pid).unwrap(), libc::SIGSTOP) };
    let text = printed(&mut bed.hang(&[]));
    assert!(text.contains("Rank 3 is stopped"), "{text}");
    let way = text.lines().find(|line| line.starts_with(&format!("gdb -p {pid}   on ")));
    assert!(way.is_some_and(|line| line.ends_with(": rank 3, the odd one out")), "{text}");
    drop(bed);
    let all_alike = printed(&mut Bed::of(5, "alike").hang(&[]));
    assert!(!all_alike.contains("gdb -p"), "{all_alike}");
}

/// Nodes whose processes fail, are killed, do not end, print something else, or only a part; and this one, twice.
#[test]
fn hosts_that_do_not_answer_are_named_and_the_others_count() {
    let bed = Bed::new("launched");
    let cut = bed.script("cut", "\"$@\" | head -c 700");
    let launchers = [
        "sh -c 'echo no such host >&2; exit 3'",
        "sh -c 'kill -KILL $$'",
        "sh -c 'sleep 300'",
        "echo Welcome to node7",
        cut.to_str().unwrap(),
        "no-such-launcher -n 1",
        "env",
    ];
    let mut more = vec!["--patience", "6"];
    more.extend(launchers.iter().flat_map(|launcher| ["--launch", launcher]));
    let begin = Instant::now();
    let answer = bed.json(&more);
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert_eq!(list(&answer, "ranks").len(), 2, "{answer:#}");
    let whys: Vec<&str> =
        list(&answer, "unseen").iter().map(|it| it["why"].as_str().unwrap()).collect();
    let parts = [
        "no such host",
        "killed by signal 9",
        "did not answer in time",
        "no answer: Welcome to node7",
        "is cut off",
        "it cannot be started",
    ];
    assert_eq!(whys.len(), parts.len(), "{whys:#?}");
    for (why, part) in whys.iter().zip(parts) {
        assert!(why.contains(part), "{part}: {why}");
        assert!(why.ends_with(&format!("lapscope hang --command {}", bed.name)), "{why}");
    }
    let text = printed(&mut bed.hang(&["--launch", launchers[0]]));
    assert!(text.contains("was not looked at: no such host; to be typed there"), "{text}");
    assert!(text.contains("rank 2 of this job is not on the hosts that were"), "{text}");
}

/// What is handed to ssh goes through a shell on the other side; what its login prints is not taken for an answer.
#[test]
fn hosts_are_reached_by_ssh() {
    let bed = Bed::new("by ssh");
    let ssh = "while [ \"$1\" != -- ]; do shift; done\n[ \"$2\" = gone ] && { echo 'ssh: no route' >&2; exit 255; }\n\
               shift 2\necho Welcome\nsh -c \"$*\"";
    bed.script("ssh", ssh);
    let path = format!("{}:{}", bed.place.path().display(), std::env::var("PATH").unwrap());
    let mut command = bed.hang(&["--hosts", "node7,gone\nlocalhost node7", "--format", "json"]);
    let answer: Value = serde_json::from_str(&printed(command.env("PATH", path))).unwrap();
    assert_eq!(list(&answer, "ranks").len(), 2, "{answer:#}");
    let unseen = list(&answer, "unseen");
    assert_eq!((unseen.len(), &unseen[0]["host"]), (1, &"gone".into()));
    let why = unseen[0]["why"].as_str().unwrap();
    assert!(why.contains("ConnectTimeout=5 -- gone: ssh: no route; to be typed there:"), "{why}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let refused = |words: &[&str], why: &str| {
        let output = bare(&[&["hang"], words].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{why}: {}", said(&output));
    };
    refused(&["--hosts", "node7"], "belongs to --command or --job");
    refused(&["--command", "x", "--hosts=-oProxyCommand=x"], "is no name of a host");
    refused(&["--command", "x", "--hosts", ", "], "expected names of hosts");
    refused(&["--pid", "1", "--hosts", "node7"], "cannot be used with");
    let failed = |words: &[&str]| {
        let output = bare(&[&["hang", "--interval", "0.1"], words].concat()).output().unwrap();
        output.clone().assert().code(1).stdout("");
        said(&output)
    };
    let error = failed(&["--command", "no-such-program", "--launch", "sh -c 'exit 7'"]);
    assert!(error.contains("no rank runs no-such-program on the 1 node that answered"), "{error}");
    assert!(error.contains("sh -c 'exit 7': exit code 7; to be typed there"), "{error}");
    let error = failed(&["--job", "4711000"]);
    for part in ["no rank of job 4711000 is on this machine", "; only this machine was looked at: "]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let mut without_slurm = bare(&["hang", "--job", "4711000"]);
    let output = without_slurm.env("PATH", "/nowhere").output().unwrap();
    assert!(said(&output).contains("there is no squeue here"), "{}", said(&output));
    assert!(said(&output).contains("lapscope hang --command PROGRAM --hosts"), "{}", said(&output));
}
