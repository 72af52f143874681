//! `lapscope doctor`, in machines that are made for it: what it finds, how it says it, its exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::fixture::{bare, text};
use serde_json::Value;

const MISSING: i32 = 3;

/// What it finds with nothing else in PATH than these scripts. A preload library is not there, or is an empty file.
struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    fn new(scripts: &[(&str, &str)]) -> Made {
        let made = Made { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(made.directory.path().join("bin")).unwrap();
        for (name, script) in scripts {
            made.executable(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n").as_bytes());
        }
        made
    }

    fn executable(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments);
        command.current_dir(&self.directory).env("PATH", self.directory.path().join("bin"));
        // No variable of a job that these tests may run in.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["SLURM_", "PBS_", "LSB_", "FLUX_", "PMI"]
                .iter()
                .any(|begin| name.starts_with(begin))
            {
                command.env_remove(name);
            }
        }
        command
    }

    fn findings(&self, program: &[&str], variables: &[(&str, &str)]) -> Vec<Value> {
        let line = [&["doctor", "--format", "json"][..], program].concat();
        let output = self.command(&line).envs(variables.iter().copied()).output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = answer["findings"].as_array().unwrap().clone();
        let is_missing = findings.iter().any(|finding| finding["status"] == "missing");
        assert_eq!(output.status.code(), Some(if is_missing { MISSING } else { 0 }));
        findings
    }
}

fn named<'a>(findings: &'a [Value], name: &str) -> &'a Value {
    let found = findings.iter().find(|finding| finding["name"] == name);
    found.unwrap_or_else(|| panic!("no finding {name} in {findings:#?}"))
}

/// The one that is read, not another.
#[test]
fn the_format_of_databases_is_named() {
    let findings = Made::new(&[]).findings(&[], &[]);
    let version = named(&findings, "version");
    let format = format!("database format {}", lapscope_data::db::USER_VERSION);
    assert!(version["says"].as_str().unwrap().ends_with(&format), "{version}");
}

#[test]
fn programs_are_looked_at() {
    let findings = Made::new(&[]).findings(&[env!("CARGO_BIN_EXE_lapscope")], &[]);
    assert_eq!(named(&findings, "lapscope")["says"], "dynamically linked");
    let mpi = named(&findings, "MPI");
    assert_eq!((&mpi["topic"], &mpi["says"]), (&"program".into(), &"links no MPI library".into()));
    for finding in &findings {
        assert_eq!(finding["status"] == "ok", finding["advice"].is_null(), "{finding}");
    }
}

/// What is said to a reader: the worst first, and how many of each.
#[test]
fn the_worst_comes_first() {
    let made = Made::new(&[]);
    let output =
        made.command(&["doctor"]).env("LAPSCOPE_LIBRARY", "/no/such/library").output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(MISSING), "{said}");
    assert!(said.starts_with("something is missing: 2 missing"), "{said}");
    let at = |word: &str| {
        said.find(&format!("\n{word}\n")).unwrap_or_else(|| panic!("no {word} in {said}"))
    };
    assert!(at("Missing") < at("Fine"), "{said}");
    let begin = |name: &str| {
        said.find(&format!("\n  {name} ")).unwrap_or_else(|| panic!("no {name} in {said}"))
    };
    assert!(at("Missing") < begin("preload library") && begin("launcher") < at("Fine"), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("no job can be started here; reading runs works -> load the module"),
        "{said}"
    );
}

#[test]
fn launchers_are_those_of_path() {
    let slurm = "case $1 in --mpi=list) echo 'MPI plugin types are...'; echo none; echo pmix;; *) echo slurm 23.02.6;; esac";
    let made = Made::new(&[
        ("mpirun", "echo 'mpirun (Open MPI) 9.8.7'"),
        ("mpiexec.hydra", "echo something is wrong >&2; exit 1"),
        ("srun", slurm),
        ("sbatch", ""),
    ]);
    let findings = made.findings(&[], &[]);
    assert!(named(&findings, "mpirun")["says"]
        .as_str()
        .unwrap()
        .starts_with("mpirun (Open MPI) 9.8.7"));
    let broken = named(&findings, "mpiexec.hydra");
    assert!(
        broken["status"] == "note"
            && broken["says"].as_str().unwrap().ends_with("something is wrong")
    );
    assert_eq!(named(&findings, "srun")["says"], "slurm 23.02.6");
    assert_eq!(named(&findings, "srun --mpi")["says"], "none, pmix");
    assert_eq!(named(&findings, "job")["status"], "note");
    let inside = made.findings(&[], &[("SLURM_JOB_ID", "5"), ("SLURM_NNODES", "3")]);
    assert_eq!(named(&inside, "job")["says"], "inside job 5 of Slurm (3 nodes)");
}

/// A small program of this machine, with its bytes at `from` changed.
fn changed(made: &Made, name: &str, change: &dyn Fn(&mut Vec<u8>)) -> PathBuf {
    let mut bytes = fs::read("/bin/sh").unwrap();
    change(&mut bytes);
    made.executable(name, &bytes)
}

/// Its loader is named in it, with a zero at the end.
fn to_musl(bytes: &mut [u8]) {
    let at = bytes.windows(7).position(|window| window == b"/ld-lin").expect("glibc's loader") + 1;
    let begin =
        bytes[..at].iter().rposition(|byte| *byte == 0 || !byte.is_ascii_graphic()).unwrap() + 1;
    let room = bytes[begin..].iter().position(|byte| *byte == 0).unwrap();
    let musl = b"/lib/ld-musl-x.so.1";
    bytes[begin..begin + room].fill(0);
    bytes[begin..begin + musl.len()].copy_from_slice(musl);
}

fn run(made: &Made, program: &Path) -> Output {
    // Any file will do: nothing may be started with it.
    let library = made.executable("liblapscope.so", b"");
    let line = ["run", "--", program.to_str().unwrap(), "-c", "echo started"];
    made.command(&line).env("LAPSCOPE_LIBRARY", library).output().unwrap()
}

/// It would die with an error of its loader.
#[test]
fn programs_of_musl_are_refused() {
    let made = Made::new(&[]);
    let program = changed(&made, "app", &|bytes| to_musl(bytes));
    let findings = made.findings(&[program.to_str().unwrap()], &[]);
    let said = named(&findings, "app");
    assert_eq!(said["status"], "missing");
    assert!(said["says"].as_str().unwrap().contains("musl"), "{said}");
    let output = run(&made, &program);
    let refused = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(126), 0), "{refused}");
    assert!(
        refused.contains("is linked with musl") && refused.contains("was not started"),
        "{refused}"
    );
    // As a rank, too, and said by one of them.
    let rank = |rank: &str| {
        let library = made.directory.path().join("liblapscope.so");
        let mut command = made.command(&["run", "--", program.to_str().unwrap()]);
        command.env("LAPSCOPE_LIBRARY", library).env("PMI_RANK", rank);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(126));
        text(&output.stderr).contains("musl")
    };
    assert!(rank("0") && !rank("1"));
}

#[test]
fn programs_that_cannot_be_recorded_are_told() {
    let made = Made::new(&[]);
    let foreign = changed(&made, "foreign", &|bytes| bytes[18..20].copy_from_slice(&[21, 0]));
    let privileged = changed(&made, "privileged", &|_| {});
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755)).unwrap();
    let script = made.executable("script", b"#!/no/such/interpreter\n");
    let plain = made.executable("plain", b"words\n");
    for (program, name, word) in [
        (&foreign, "foreign", "a program for POWER"),
        (&privileged, "privileged", "set-uid"),
        (&script, "script", "/no/such/interpreter, which is not there"),
        (&plain, "plain", "neither an ELF program nor a script"),
    ] {
        let findings = made.findings(&[program.to_str().unwrap()], &[]);
        let said = named(&findings, name);
        assert_eq!(said["status"], "missing", "{said}");
        assert!(said["says"].as_str().unwrap().contains(word), "{said}");
    }
}

/// Every key that is printed stands in docs/json.md.
#[test]
fn keys_are_documented() {
    let findings = Made::new(&[]).findings(&["/bin/sh"], &[]);
    let keys: Vec<&String> = findings[0].as_object().unwrap().keys().collect();
    let documented = include_str!("../../docs/json.md");
    let part =
        documented.split("## `lapscope doctor`").nth(1).unwrap().split("\n## ").next().unwrap();
    for key in keys {
        assert!(part.contains(&format!("`findings[].{key}`")), "{key}");
    }
    for finding in &findings {
        let topic = finding["topic"].as_str().unwrap();
        assert!(part.contains(&format!("`{topic}`")), "{topic}");
    }
}
