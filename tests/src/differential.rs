//! A program with and without lapscope: same output, same exit code, and rows as they are known to be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::build::Binding;
use crate::expect::Expectation;
use crate::launch::{place, Form, Job, Outcome};
use crate::mpi::{self, Mpi};
use crate::rows::{self, RecordedRow};
use crate::{build, invariants, messages, paths};

/// Standard error without what a launcher says about how ranks ended, in an order that does not depend on the ranks'
/// turns. Launchers frame their own words with lines of dashes.
fn comparable(stderr: &str) -> Vec<&str> {
    let mut framed = false;
    let mut lines = Vec::new();
    for line in stderr.lines() {
        if line.len() > 20 && line.bytes().all(|byte| byte == b'-') {
            framed = !framed;
        } else if !framed && !is_of_daemon(line) {
            lines.push(line);
        }
    }
    lines.sort_unstable();
    lines
}

/// What PRRTE's daemon may say, and may not, when it ends ranks that return another code than zero: its answer to one that
/// asks it to finalize finds the socket closed.
fn is_of_daemon(line: &str) -> bool {
    line.contains("PMIX ERROR: PMIX_ERR_UNREACH in file ") && line.contains("/server/pmix_server.c")
}

/// That a program did the same with lapscope as bare.
///
/// # Panics
/// Where it did not.
pub fn assert_unharmed(bare: &Outcome, with: &Outcome) {
    let differences = outcome_differences(bare, with);
    assert!(differences.is_empty(), "{}\nlapscope said {:#?}", differences.join("\n"), with.said);
}

/// What differs between a run without and a run with lapscope.
pub fn outcome_differences(bare: &Outcome, with: &Outcome) -> Vec<String> {
    let mut differences = Vec::new();
    if bare.code != with.code {
        differences.push(format!("exit code {} became {}\n{}", bare.code, with.code, with.stderr));
    }
    if bare.stdout != with.stdout {
        differences.push(format!(
            "standard output\n{}became\n{}{}",
            bare.stdout, with.stdout, with.stderr
        ));
    }
    if comparable(&bare.stderr) != comparable(&with.stderr) {
        differences.push(format!("standard error\n{}became\n{}", bare.stderr, with.stderr));
    }
    differences
}

/// What lapscope says of a program to which it can do nothing: README, limits of injection.
const WITHOUT_INJECTION: &str =
    "injects nothing: the program starts MPI by sessions, and has no MPI_COMM_SELF";

/// What it says to a program that marks regions, in an emulator.
const WITHOUT_NAMES: &str =
    "(process_vm_readv: Function not implemented): regions are not recorded";

/// In a run where nothing is wrong lapscope says where the data is and what to do next, and nothing else.
fn said_differences(mpi: &Mpi, with: &Outcome, form: Form) -> Option<String> {
    let starts: &[&str] = if form == Form::Outer { &["data in ", "next: "] } else { &["data in "] };
    let is_of_program = |line: &&String| {
        line.ends_with(WITHOUT_INJECTION) || (mpi.is_emulated && line.ends_with(WITHOUT_NAMES))
    };
    let said: Vec<&String> = with.said.iter().filter(|line| !is_of_program(line)).collect();
    let fine = said.len() == starts.len()
        && said.iter().zip(starts).all(|(line, start)| line.starts_with(start));
    (!fine).then(|| format!("lapscope said {:#?}", with.said))
}

/// The same communicator, by identity and ordinal, has the same members on all ranks.
fn communicator_differences(run: &Path) -> Option<String> {
    let query = "SELECT group_concat(identity || '.' || ordinal || ' ' || (size + remote_size), '\n') FROM
                 (SELECT * FROM communicator WHERE name <> 'MPI_COMM_SELF' ORDER BY identity, ordinal)";
    let all: Vec<String> =
        rows::databases(run).iter().map(|path| rows::value(&rows::open(path), query)).collect();
    let mut seen = BTreeMap::<&str, u32>::new();
    for line in all.iter().flat_map(|text| text.lines()) {
        *seen.entry(line).or_default() += 1;
    }
    let odd: Vec<_> = seen
        .iter()
        .filter(|(line, count)| {
            line.rsplit(' ').next().and_then(|size| size.parse().ok()) != Some(**count)
        })
        .map(|(line, count)| format!("{line}: on {count} ranks"))
        .collect();
    (!odd.is_empty()).then(|| {
        format!(
            "communicators (identity.ordinal size) not on all their members:\n{}",
            odd.join("\n")
        )
    })
}

fn row_differences(expectation: &Expectation, run: &Path) -> Vec<String> {
    let databases = rows::databases(run);
    let mut differences = Vec::new();
    let processes = expectation.ranks + expectation.spawned;
    if databases.len() != processes as usize {
        differences.push(format!(
            "{} databases instead of {processes}: {:?}",
            databases.len(),
            rows::files(run)
        ));
    }
    let mut all: Vec<(RecordedRow, u64)> = Vec::new();
    for path in &databases {
        let database = rows::open(path);
        if let Err(broken) = invariants::check(&database) {
            differences.push(format!("{}: {broken}", path.display()));
        }
        if rows::value(&database, "SELECT ended FROM rank") != "finalize" {
            differences.push(format!("{}: has not ended by MPI_Finalize", path.display()));
        }
        all.extend(rows::read(&database));
    }
    if let Err(text) = expectation.compare(&all) {
        differences.push(format!("rows (- expected, + found)\n{text}"));
    }
    if expectation.spawned == 0 {
        differences.extend(communicator_differences(run));
    }
    if !expectation.unbalanced {
        differences.extend(messages::check(run).err());
    }
    differences
}

fn job<'a>(
    mpi: &'a Mpi,
    program: &[OsString],
    expectation: &Expectation,
    form: Form,
    place: &'a Path,
) -> Job<'a> {
    let mut job = Job::new(mpi, expectation.ranks, &program[0], form, place)
        .args(&program[1..])
        .args(&expectation.args);
    for (name, value) in &expectation.environment {
        job = job.env(name, value);
    }
    job
}

/// The outcome without lapscope. A program is run so once: what it says does not depend on when.
fn bare(mpi: &Mpi, program: &[OsString], expectation: &Expectation) -> Arc<Outcome> {
    type Key = (&'static str, u32, Vec<OsString>, Vec<(String, String)>);
    static KNOWN: Mutex<BTreeMap<Key, Arc<Outcome>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let line = program.iter().cloned().chain(expectation.args.iter().map(OsString::from));
    let key = (mpi.name, expectation.ranks, line.collect(), expectation.environment.clone());
    if let Some(outcome) = known().get(&key) {
        return Arc::clone(outcome);
    }
    let place = place();
    let run = || job(mpi, program, expectation, Form::Bare, place.path()).run();
    let mut outcome = run();
    // lapscope was not there: the launcher or the MPI has failed
    for again in 1..expectation.attempts().max(2) {
        if outcome.code != expectation.code {
            crate::say!("RUN AGAIN WITHOUT LAPSCOPE ({again}): {program:?} under {}", mpi.name);
            crate::say!("exit code {}: {}", outcome.code, outcome.stderr);
            outcome = run();
        }
    }
    let outcome = Arc::new(outcome);
    known().insert(key, Arc::clone(&outcome));
    outcome
}

/// A way to run a program with lapscope: the form, and variables of lapscope.
pub type Way<'a> = (Form, &'a [(&'a str, &'a str)]);

/// Runs `program` bare and in the ways given under one MPI and compares.
fn differences(
    mpi: &Mpi,
    program: &[OsString],
    expectation: &Expectation,
    ways: &[Way],
) -> Vec<String> {
    let bare = bare(mpi, program, expectation);
    let mut all = Vec::new();
    if bare.code != expectation.code {
        return vec![format!(
            "{} without lapscope: exit code {}\n{}",
            mpi.name, bare.code, bare.stderr
        )];
    }
    for &(form, options) in ways {
        let try_once = || {
            let place = place();
            let mut job = job(mpi, program, expectation, form, place.path());
            for (name, value) in options {
                job = job.env(name, *value);
            }
            match job.try_run() {
                Err(hung) => vec![hung],
                Ok(with) => {
                    let mut found = outcome_differences(&bare, &with);
                    found.extend(said_differences(mpi, &with, form));
                    found.extend(row_differences(expectation, &job.run_directory()));
                    found
                }
            }
        };
        let mut found = try_once();
        for _ in 1..expectation.attempts() {
            if !found.is_empty() {
                found = try_once();
            }
        }
        let way = format!("{} {form:?} {options:?}", mpi.name);
        all.extend(found.into_iter().map(|text| format!("{way}: {text}")));
    }
    all
}

/// The program `tests/apps/<app>.c` under these MPIs, in the forms given, with variables of lapscope set.
///
/// # Panics
/// When anything differs; the message has all of it.
pub fn check_app(mpis: &[&Mpi], app: &str, forms: &[Form], options: &[(&str, &str)]) {
    let ways: Vec<Way> = forms.iter().map(|&form| (form, options)).collect();
    let found: Vec<String> = mpis.iter().flat_map(|mpi| app_differences(mpi, app, &ways)).collect();
    assert!(found.is_empty(), "{app}:\n{}", found.join("\n\n"));
}

/// What is expected of `tests/apps/<app>.c`, and the program; `None`, said, where this MPI cannot run it.
fn able_app(mpi: &Mpi, app: &str) -> Option<(Expectation, [OsString; 1])> {
    let expectation = Expectation::read(&paths::apps().join(format!("{app}.expect")), mpi);
    if let Some(reason) = obstacle(mpi, &expectation) {
        say_not_tested(app, mpi, &reason);
        return None;
    }
    Some((expectation, [build::app(mpi, app).into_os_string()]))
}

/// What differs of `tests/apps/<app>.c` under one MPI.
///
/// # Panics
/// When it cannot be built or run.
pub fn app_differences(mpi: &Mpi, app: &str, ways: &[Way]) -> Vec<String> {
    let Some((expectation, program)) = able_app(mpi, app) else { return Vec::new() };
    differences(mpi, &program, &expectation, ways)
}

/// What differs of `tests/apps/<app>.c` under one MPI with `LAPSCOPE_RECORD=off` and these variables: it does as it does without
/// lapscope, of which nothing is heard and nothing is left but pages.
///
/// # Panics
/// When it cannot be built or run.
pub fn unrecorded_differences(mpi: &Mpi, app: &str, options: &[(&str, &str)]) -> Vec<String> {
    let Some((expectation, program)) = able_app(mpi, app) else { return Vec::new() };
    let bare = bare(mpi, &program, &expectation);
    let try_once = || {
        let place = place();
        let mut job = job(mpi, &program, &expectation, Form::Preload, place.path());
        for (name, value) in
            options.iter().chain(&[("LAPSCOPE_RECORD", "off"), ("LAPSCOPE_QUIET", "on")])
        {
            job = job.env(name, *value);
        }
        let with = match job.try_run() {
            Err(hung) => return vec![hung],
            Ok(with) => with,
        };
        let mut found = outcome_differences(&bare, &with);
        let said = with.said.iter().filter(|line| !line.ends_with(WITHOUT_INJECTION));
        found.extend(said.map(|line| format!("lapscope said {line}")));
        let is_page = |path: &Path| path.extension().is_some_and(|end| end == "jsonl");
        let left = rows::files(&job.run_directory());
        let left = left.iter().filter(|path| !path.ends_with("job") && !is_page(path));
        found.extend(left.map(|path| format!("left: {}", path.display())));
        found
    };
    let mut found = try_once();
    for _ in 1..expectation.attempts() {
        if !found.is_empty() {
            found = try_once();
        }
    }
    found.iter().map(|text| format!("{app} under {} {options:?}: {text}", mpi.name)).collect()
}

/// Records `tests/apps/<app>.c` under one MPI in a place: the run directory, where it was run and has databases.
///
/// # Panics
/// When it cannot be built or run.
pub fn record_app(mpi: &Mpi, app: &str, place: &Path) -> Option<PathBuf> {
    let (expectation, program) = able_app(mpi, app)?;
    let job = job(mpi, &program, &expectation, Form::Preload, place);
    job.run();
    Some(job.run_directory()).filter(|run| !rows::databases(run).is_empty())
}

/// The MPIs that can run the program `tests/apps/<app>`; of the others it is said what they lack.
pub fn able(app: &str) -> Vec<&'static Mpi> {
    let path = paths::apps().join(format!("{app}.expect"));
    let is_able = |mpi: &&Mpi| match obstacle(mpi, &Expectation::read(&path, mpi)) {
        Some(reason) => {
            say_not_tested(app, mpi, &reason);
            false
        }
        None => true,
    };
    mpi::all().iter().copied().filter(is_able).collect()
}

/// Why a program cannot be tested under an MPI.
fn obstacle(mpi: &Mpi, expectation: &Expectation) -> Option<String> {
    let missing = build::missing(mpi, &expectation.needs);
    if missing.is_empty() {
        expectation.broken.clone()
    } else {
        Some(format!("it has no {}", missing.join(", no ")))
    }
}

/// The program `tests/apps/<app>.f90` under these MPIs, with each of the bindings that they have.
///
/// # Panics
/// As [`check_app`].
pub fn check_fortran(mpis: &[&Mpi], app: &str, bindings: &[Binding], flags: &[&str]) {
    let found: Vec<String> = mpis
        .iter()
        .flat_map(|mpi| bindings.iter().map(move |&binding| (mpi, binding)))
        .flat_map(|(mpi, binding)| {
            fortran_differences(mpi, app, binding, flags, &[(Form::Preload, &[])])
        })
        .collect();
    assert!(found.is_empty(), "{app}.f90 {flags:?}:\n{}", found.join("\n\n"));
}

/// What differs of `tests/apps/<app>.f90` under one MPI, by one of its bindings.
///
/// # Panics
/// When it cannot be built or run.
pub fn fortran_differences(
    mpi: &Mpi,
    app: &str,
    binding: Binding,
    flags: &[&str],
    ways: &[Way],
) -> Vec<String> {
    let expectation = Expectation::read(&paths::apps().join(format!("{app}.expect")), mpi);
    if !build::has_fortran(mpi, binding) {
        say_not_tested(app, mpi, &format!("it has no Fortran binding {}", binding.word()));
        return Vec::new();
    }
    if let Some(reason) = obstacle(mpi, &expectation) {
        say_not_tested(app, mpi, &reason);
        return Vec::new();
    }
    let program = [build::fortran(mpi, app, binding, flags).into_os_string()];
    let found = differences(mpi, &program, &expectation, ways);
    found.iter().map(|text| format!("{} {text}", binding.word())).collect()
}

/// Says it in the output of the tests, also when they pass: printing by macros would be kept back.
fn say_not_tested(app: &str, mpi: &Mpi, reason: &str) {
    writeln!(io::stderr(), "NOT TESTED: {app} under {}: {reason}", mpi.name)
        .expect("standard error");
}

/// The script `tests/apps/<script>.py` with these MPIs' mpi4py, in the forms given.
///
/// # Panics
/// As [`check_app`].
pub fn check_script(mpis: &[&Mpi], script: &str, forms: &[Form]) {
    let ways: Vec<Way> = forms.iter().map(|&form| (form, &[][..])).collect();
    let found: Vec<String> =
        mpis.iter().flat_map(|mpi| script_differences(mpi, script, &ways)).collect();
    assert!(found.is_empty(), "{script}.py:\n{}", found.join("\n\n"));
}

/// What differs of `tests/apps/<script>.py` with one MPI's mpi4py.
///
/// # Panics
/// When it cannot be run.
pub fn script_differences(mpi: &Mpi, script: &str, ways: &[Way]) -> Vec<String> {
    let expectation = Expectation::read(&paths::apps().join(format!("{script}.expect")), mpi);
    let file = paths::apps().join(format!("{script}.py"));
    let program = [paths::python(mpi.name).into_os_string(), file.into_os_string()];
    differences(mpi, &program, &expectation, ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_daemons_say_is_not_compared() {
        let daemon =
            "[node:7] PMIX ERROR: PMIX_ERR_UNREACH in file /src/server/pmix_server.c at line 3146";
        let rank = "[node:8] PMIX ERROR: PMIX_ERR_UNREACH in file client/pmix_client.c at line 9";
        let framed = format!("{0}\nThe first process to do so was:\n{0}\n", "-".repeat(74));
        assert_eq!(comparable(&format!("{daemon}\n{framed}{rank}\n")), [rank]);
    }
}
