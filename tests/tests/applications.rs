//! Programs that people run: LAMMPS and HPCC as Debian builds them, against Open MPI.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use lapscope_tests::launch::{lapscope, place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{invariants, messages, paths, rows};

/// Full path of a program that a Debian package brings.
fn installed(program: &str, package: &str) -> PathBuf {
    mpi::find_program(program)
        .unwrap_or_else(|| panic!("{program} is not in PATH: Debian's package {package} has it"))
}

fn openmpi() -> &'static Mpi {
    mpi::named("openmpi").expect("Open MPI, which Debian builds these programs against")
}

/// The report finds nothing wrong, and its totals are those of the databases.
fn check_report(run: &Path, requests: u64, calls: u64, polls: u64) {
    let text = lapscope(["report".as_ref(), run.as_os_str()]);
    assert!(text.contains("MPI_"), "{text}");
    let json = lapscope(["report".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let report: Value =
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(report["problems"], Value::Array(Vec::new()), "{text}");
    let total = |key: &str| {
        report["totals"][key].as_u64().unwrap_or_else(|| panic!("no total {key} in {report:#}"))
    };
    assert_eq!(
        (total("requests"), total("calls"), total("polls")),
        (requests, requests + calls + polls, polls)
    );
    let parts = ["posting_ns", "waiting_ns", "blocking_ns", "collective_ns", "poll_ns", "other_ns"];
    assert_eq!(parts.iter().map(|part| total(part)).sum::<u64>(), total("mpi_ns"));
    assert!(total("mpi_ns") <= total("run_ns"), "{text}");
    for rank in report["ranks"].as_array().expect("ranks") {
        assert_eq!(
            (&rank["lost_records"], &rank["unknown_requests"]),
            (&Value::from(0), &Value::from(0))
        );
    }
}

/// The run is there and sound, and the report says the same as the databases.
fn check_run(run: &Path, ranks: usize) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), ranks, "{:?}", rows::files(run));
    let (mut requests, mut calls, mut polls) = (0, 0, 0);
    for path in &databases {
        let database = rows::open(path);
        let count = |query: &str| rows::value(&database, query).parse::<u64>().expect("a count");
        assert_eq!(invariants::check(&database), Ok(()), "{}", path.display());
        assert_eq!(
            rows::value(&database, "SELECT ended || unknown_requests FROM rank"),
            "finalize0"
        );
        requests += count("SELECT count(*) FROM request");
        calls += count("SELECT count(*) FROM calls WHERE family <> 'ENVIRONMENT'");
        polls += count("SELECT ifnull(sum(count), 0) FROM tally WHERE reason = 'poll'");
    }
    assert!(requests > 0);
    assert_eq!(messages::check(run), Ok(()));
    check_report(run, requests, calls, polls);
}

/// Runs bare and under lapscope, each in a place of its own that `prepare` has filled.
fn both(
    ranks: u32,
    program: &Path,
    args: &[&str],
    prepare: impl Fn(&Path),
    check: impl Fn(&Path, &Outcome) -> String,
) {
    let mut results = Vec::new();
    for form in [Form::Bare, Form::Preload] {
        let place = place();
        prepare(place.path());
        let job = Job::new(openmpi(), ranks, program, form, place.path()).args(args);
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        results.push(check(place.path(), &outcome));
        if form == Form::Preload {
            assert_eq!(outcome.said.len(), 1, "{:#?}", outcome.said);
            check_run(&job.run_directory(), ranks as usize);
        }
    }
    assert!(results[0].lines().count() > 5, "no results: {}", results[0]);
    assert_eq!(results[0], results[1]);
}

/// What LAMMPS computed: the thermodynamic output and the distribution of atoms, without times.
fn thermo(_: &Path, outcome: &Outcome) -> String {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in outcome.stdout.lines() {
        inside = (inside || line.starts_with("Step")) && !line.starts_with("Loop time");
        if inside
            || ["Nlocal", "Nghost", "Neighs", "Total #"].iter().any(|word| line.starts_with(word))
        {
            lines.push(line);
        }
    }
    lines.join("\n")
}

fn melt(ranks: u32) {
    let input = paths::apps().join("melt.in");
    let args = ["-in", input.to_str().expect("a path"), "-log", "none"];
    both(ranks, &installed("lmp", "lammps"), &args, |_| (), thermo);
}

#[test]
fn lammps_on_two_ranks() {
    melt(2);
}

#[test]
fn lammps_on_four_ranks() {
    melt(4);
}

/// HPCC's verdicts on its own results, without times and rates. It leaves out a line of CPU time when the clock has not
/// ticked, and its random updates may collide: those lines differ between any two runs.
fn verdicts(place: &Path, _: &Outcome) -> String {
    let output = fs::read_to_string(place.join("hpccoutf.txt")).expect("hpccoutf.txt");
    let verdict = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.first()? {
            "CPU" => None,
            "WALL" => Some(format!("{} {}", words[..7].join(" "), words.get(8)?)),
            "Found" => words.last().map(|verdict| format!("random updates {verdict}")),
            _ => ["PASSED", "FAILED", "passed", "failed", "Validates", "Success="]
                .iter()
                .any(|word| line.contains(word))
                .then(|| words.join(" ")),
        }
    };
    output.lines().filter_map(verdict).collect::<Vec<_>>().join("\n")
}

#[test]
fn hpcc() {
    let prepare = |place: &Path| {
        fs::copy(paths::apps().join("hpccinf.txt"), place.join("hpccinf.txt"))
            .expect("hpccinf.txt");
    };
    both(2, &installed("hpcc", "hpcc"), &[], prepare, verdicts);
}
