//! Programs that people run, as Debian builds them against Open MPI: LAMMPS and HPCC, and in Fortran Quantum ESPRESSO and
//! MUMPS.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use lapscope_tests::launch::{lapscope, place, Form, Job, Outcome};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{answer, invariants, messages, paths, rows};

/// Full path of a program that a Debian package brings.
fn installed(program: &str, package: &str) -> PathBuf {
    mpi::find_program(program)
        .unwrap_or_else(|| panic!("{program} is not in PATH: Debian's package {package} has it"))
}

fn openmpi() -> &'static Mpi {
    mpi::named("openmpi").expect("Open MPI, which Debian builds these programs against")
}

/// The report finds nothing wrong, and its totals are those of the databases.
fn check_report(run: &Path, requests: u64, calls: u64, unsuccessful_tests: u64) {
    let text = lapscope(["report".as_ref(), run.as_os_str()]);
    assert!(text.contains("MPI_"), "{text}");
    let json = lapscope(["report".as_ref(), "--format".as_ref(), "json".as_ref(), run.as_os_str()]);
    let report: Value =
        serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    // other processes of the tests may have the processors
    let problems = report["problems"].as_array().expect("problems");
    let others: Vec<&Value> =
        problems.iter().filter(|problem| problem["kind"] != "starved").collect();
    assert_eq!(others, Vec::<&Value>::new(), "{text}");
    let total = |key: &str| {
        report["totals"][key].as_u64().unwrap_or_else(|| panic!("no total {key} in {report:#}"))
    };
    assert_eq!(
        (total("requests"), total("calls"), total("unsuccessful_tests")),
        (requests, requests + calls + unsuccessful_tests, unsuccessful_tests)
    );
    let parts = [
        "posting_ns",
        "exposed_ns",
        "blocking_ns",
        "collective_ns",
        "unsuccessful_test_ns",
        "other_ns",
    ];
    assert_eq!(parts.iter().map(|part| total(part)).sum::<u64>(), total("mpi_ns"));
    assert!(total("mpi_ns") <= total("run_ns"), "{text}");
    for rank in report["ranks"].as_array().expect("ranks") {
        assert_eq!(
            (&rank["lost_records"], &rank["unknown_requests"]),
            (&Value::from(0), &Value::from(0))
        );
    }
}

/// The run is there and sound, and the report says the same as the databases. Returns how many requests and calls it has.
fn check_run(run: &Path, ranks: usize) -> (u64, u64) {
    let databases = rows::databases(run);
    assert_eq!(databases.len(), ranks, "{:?}", rows::files(run));
    let (mut requests, mut calls, mut unsuccessful_tests) = (0, 0, 0);
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
        unsuccessful_tests +=
            count("SELECT ifnull(sum(count), 0) FROM tally WHERE reason = 'unsuccessful_test'");
    }
    assert_eq!(messages::check(run), Ok(()));
    check_report(run, requests, calls, unsuccessful_tests);
    (requests, calls)
}

/// A run of a program with lapscope that was as one without.
struct Recorded {
    /// Holds the run directory as long as this lives.
    place: TempDir,
    requests: u64,
    calls: u64,
}

/// Runs bare and under lapscope, each in a place of its own that `prepare` has filled.
fn both(
    ranks: u32,
    program: &Path,
    args: &[&str],
    prepare: impl Fn(&Path),
    check: impl Fn(&Path, &Outcome) -> String,
) -> Recorded {
    let run = |form: Form| {
        let place = place();
        prepare(place.path());
        let outcome = Job::new(openmpi(), ranks, program, form, place.path()).args(args).run();
        assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
        let result = check(place.path(), &outcome);
        (place, outcome, result)
    };
    let (_, _, bare) = run(Form::Bare);
    let (place, outcome, with) = run(Form::Preload);
    assert!(bare.lines().count() > 5, "no results: {bare}");
    assert_eq!(bare, with);
    assert_eq!(outcome.said.len(), 1, "{:#?}", outcome.said);
    let (requests, calls) = check_run(&place.path().join("run"), ranks as usize);
    Recorded { place, requests, calls }
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
    let recorded = both(ranks, &installed("lmp", "lammps"), &args, |_| (), thermo);
    assert!(recorded.requests > 0);
    // of `run 100`: every 20th moves atoms in place of what the others do, every 10th prints
    let report = answer::ask("report", &recorded.place.path().join("run"));
    assert_eq!(report["steps"]["count"], 100, "{}", report["no_steps"]);
    assert_eq!(report["steps"]["ranks"], ranks);
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
    assert!(both(2, &installed("hpcc", "hpcc"), &[], prepare, verdicts).requests > 0);
}

/// What Quantum ESPRESSO computed: all that it prints, without times and what depends on them.
fn without_times(_: &Path, outcome: &Outcome) -> String {
    let timed = ["CPU", "cpu time", "starts on", "terminated on"];
    let line_is_kept = |line: &&str| !timed.iter().any(|word| line.contains(word));
    outcome.stdout.lines().filter(line_is_kept).collect::<Vec<_>>().join("\n")
}

/// A hydrogen molecule; the pseudopotential comes from its program for atoms. Its calls are collectives.
#[test]
fn quantum_espresso() {
    let atom = installed("ld1.x", "quantum-espresso");
    let prepare = |place: &Path| {
        let input =
            format!("exec {} < {}", atom.display(), paths::apps().join("hydrogen.ld1").display());
        let made = Job::new(openmpi(), 1, "sh", Form::Bare, place).args(["-c", &input]).run();
        assert!(place.join("H.UPF").exists(), "{}{}", made.stdout, made.stderr);
    };
    let input = paths::apps().join("hydrogen.pw");
    let args = ["-in", input.to_str().expect("a path")];
    let recorded = both(2, &installed("pw.x", "quantum-espresso"), &args, prepare, without_times);
    assert!(recorded.calls > 1000, "{} calls", recorded.calls);
}

/// What MUMPS computed, without times.
fn solution(_: &Path, outcome: &Outcome) -> String {
    let is_time = |line: &&str| !line.to_lowercase().contains("time");
    outcome.stdout.lines().filter(is_time).collect::<Vec<_>>().join("\n")
}

/// A system of linear equations solved by MUMPS, a library in Fortran; its functions are found as call sites.
#[test]
fn mumps() {
    let program = Path::new("/usr/lib/mumps/dsimpletest");
    assert!(
        program.exists(),
        "{} is missing: Debian's package mumps-test has it",
        program.display()
    );
    let input = format!("exec {} < /usr/lib/mumps/input_simpletest_real", program.display());
    let recorded = both(2, Path::new("sh"), &["-c", &input], |_| (), solution);
    assert!(recorded.requests > 0);
    let run = recorded.place.path().join("run");
    let sites = lapscope(["sites".as_ref(), "--top".as_ref(), "0".as_ref(), run.as_os_str()]);
    for function in ["dmumps_cancel_irecv_", "mumps_propinfo_"] {
        assert!(sites.contains(function), "{sites}");
    }
}
