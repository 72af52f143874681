//! mpi4py's own tests, from its source distribution, without and with lapscope: the same tests must pass, fail and be
//! skipped on every rank. `tests/mpi4py/left_out` names those that do not work here without lapscope either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::launch::{place, Form, Job};
use crate::mpi::Mpi;
use crate::{paths, rows};

/// What became of one rank.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rank {
    /// By test; a test that failed in several ways has them all.
    outcomes: BTreeMap<String, Vec<String>>,
    /// The test it was in when it ended, where it did not come to the end of all.
    within: Option<String>,
}

/// What became of one run: the exit code, or what was printed until the time was over.
struct Run {
    code: Result<i32, String>,
    stderr: String,
    ranks: Vec<Rank>,
}

fn read_rank(text: &str) -> Rank {
    let mut rank = Rank { within: Some("the start".to_owned()), ..Rank::default() };
    for line in text.lines().filter(|line| !line.starts_with('|')) {
        match line.split_once(' ') {
            Some(("begin", test)) => {
                rank.within = test.rsplit_once(' ').map(|(test, _)| test.to_owned());
            }
            Some((outcome, test)) => {
                rank.outcomes.entry(test.to_owned()).or_default().push(outcome.to_owned());
            }
            None => rank.within = None, // "end"
        }
    }
    rank
}

/// The directory with mpi4py's tests, where `tests/mpis.sh` has fetched them.
fn tests() -> PathBuf {
    paths::root().join("build/mpi/suite/test")
}

/// Names of their files, in order.
pub fn modules() -> Vec<String> {
    let names = fs::read_dir(tests()).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_module = |name: &String| name.starts_with("test_") && name.ends_with(".py");
    let names: BTreeSet<String> = names.filter(is_module).collect();
    names.into_iter().collect()
}

/// Whether they could be fetched. Says so where not.
pub fn is_there() -> bool {
    let there = tests().join("main.py").exists();
    if !there {
        crate::say!("NOT TESTED: mpi4py's own tests are not in build/mpi/suite: `tests/mpis.sh` fetches them");
    }
    there
}

/// Options for what is left out under this MPI. A line is `[words] ranks pattern reason`; a pattern without a dot is a
/// module's name.
fn left_out(mpi: &Mpi, ranks: u32) -> Vec<String> {
    let path = paths::root().join("tests/mpi4py/left_out");
    let text = fs::read_to_string(&path).expect("tests/mpi4py/left_out");
    let mut options = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('[')) {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().unwrap_or_else(|| panic!("{}: {line}", path.display()));
        let (names, sizes, pattern, _reason) = (next(), next(), next(), next());
        let here = names.trim_matches(['[', ']']).split('|').any(|name| mpi.words.contains(&name));
        if here && sizes.split(',').any(|size| size.parse() == Ok(ranks)) {
            options.push(if pattern.contains('.') { "-x" } else { "-e" }.to_owned());
            options.push(pattern.to_owned());
        }
    }
    options
}

/// Which of the tests are run, and how.
pub struct Selection<'a> {
    pub ranks: u32,
    /// Options of their `main.py`: `-i` and `-e` with a module's name.
    pub modules: &'a [&'a str],
    /// Variables of lapscope.
    pub options: &'a [(&'a str, &'a str)],
    pub limit: Duration,
}

fn run(mpi: &Mpi, selection: &Selection, form: Form, place: &Path) -> Run {
    let script = paths::root().join("tests/mpi4py/run_suite.py");
    let mut job = Job::new(mpi, selection.ranks, paths::python(mpi.name), form, place)
        .args([script.as_path(), &tests(), place])
        .args(left_out(mpi, selection.ranks))
        .args(selection.modules)
        .limit(selection.limit);
    for (name, value) in selection.options {
        job = job.env(name, *value);
    }
    let outcome = job.try_run();
    let read =
        |rank| fs::read_to_string(place.join(format!("rank-{rank}.txt"))).unwrap_or_default();
    Run {
        ranks: (0..selection.ranks).map(|rank| read_rank(&read(rank))).collect(),
        stderr: outcome.as_ref().map(|outcome| outcome.stderr.clone()).unwrap_or_default(),
        code: outcome.map(|outcome| outcome.code),
    }
}

/// How a run ended before its end, on all ranks.
fn stopped(run: &Run) -> Option<String> {
    let within: Vec<_> =
        run.ranks.iter().map(|rank| rank.within.as_deref().unwrap_or("-")).collect();
    let by = match &run.code {
        Err(text) => format!("took too long\n{text}"),
        Ok(code) if within.iter().any(|&test| test != "-") => {
            format!("ended with code {code}\n{}", run.stderr)
        }
        Ok(_) => return None,
    };
    Some(format!("in {}: {by}", within.join(" / ")))
}

fn compare(bare: &Run, with: &Run) -> Vec<String> {
    let mut differences = Vec::new();
    if bare.code != with.code {
        differences.push(format!("exit code {:?} became {:?}", bare.code, with.code));
    }
    for (number, (bare, with)) in bare.ranks.iter().zip(&with.ranks).enumerate() {
        let names: BTreeSet<_> = bare.outcomes.keys().chain(with.outcomes.keys()).collect();
        for name in names {
            let (without, under) = (bare.outcomes.get(name), with.outcomes.get(name));
            if without != under {
                differences.push(format!("rank {number} {name}: {without:?} became {under:?}"));
            }
        }
    }
    differences
}

/// Every rank ended properly, nothing was lost, and every request that was completed had been seen when it was made, but
/// for those of `MPIX_Comm_iagree`, which Open MPI 5 has beyond the standard and `test_ulfm` calls.
fn recorded(mpi: &Mpi, run_directory: &Path, ranks: u32) -> Vec<String> {
    let databases = rows::databases(run_directory);
    let mut wrong = Vec::new();
    if databases.len() < ranks as usize {
        wrong.push(format!("{} databases", databases.len()));
    }
    for path in databases {
        let database = rows::open(&path);
        let ended = rows::value(&database, "SELECT ended || ', lost ' || lost_records FROM rank");
        let unknown = rows::value(&database, "SELECT unknown_requests FROM rank");
        if ended != "finalize, lost 0" || (unknown != "0" && !mpi.words.contains(&"openmpi5")) {
            wrong.push(format!("{}: {ended}, unknown {unknown}", path.display()));
        }
    }
    wrong
}

/// How many tests passed, failed and were skipped, over all ranks.
fn numbers(run: &Run) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for outcomes in run.ranks.iter().flat_map(|rank| rank.outcomes.values()) {
        *counts.entry(outcomes[0].as_str()).or_default() += 1;
    }
    counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Runs a selection of them under one MPI, and compares. Says the numbers on standard error.
///
/// # Errors
/// A line for each difference.
///
/// # Panics
/// When something stops the tests without lapscope: that has to be named in `tests/mpi4py/left_out`.
pub fn check(mpi: &Mpi, selection: &Selection) -> Result<(), String> {
    let name = format!("{} on {} {:?}", mpi.name, selection.ranks, selection.options);
    let (bare_place, with_place) = (place(), place());
    let bare = run(mpi, selection, Form::Bare, bare_place.path());
    if let Some(text) = stopped(&bare) {
        panic!("{name} without lapscope, {text}");
    }
    let with = run(mpi, selection, Form::Preload, with_place.path());
    let mut differences: Vec<String> = stopped(&with).into_iter().collect();
    differences.extend(compare(&bare, &with));
    if differences.is_empty() {
        differences = recorded(mpi, &with_place.path().join("run"), selection.ranks);
    }
    eprintln!("mpi4py's tests, {name}: {}; differences {}", numbers(&bare), differences.len());
    if differences.is_empty() {
        return Ok(());
    }
    let text = format!("{name}:\n{}", differences.join("\n"));
    eprintln!("{text}"); // at once: the other MPIs take minutes
    Err(text)
}
