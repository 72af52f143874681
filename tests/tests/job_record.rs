//! `LAPSCOPE_RECORD=job`: the record that the ranks of a node leave, and that nobody notices it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lapscope_data::job::{as_run, NodeRecord, JOB_SUFFIX};
use lapscope_tests::differential::{assert_unharmed, outcome_differences};
use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::Mpi;
use lapscope_tests::namespace::{permitted, with_tmpfs};
use lapscope_tests::{build, child, paths, rows};

/// Programs whose messages and calls are the same in each run, and how many ranks each has.
const PROGRAMS: &[(&str, u32)] =
    &[("waitall", 2), ("sendrecv", 3), ("icollectives", 3), ("persistent_kinds", 2)];

const MOST_BYTES: u64 = 65536;

/// By call: how many, and bytes. Requests and calls, in rows and in sums.
fn totals<'p>(databases: impl Iterator<Item = &'p PathBuf>) -> BTreeMap<String, (i64, i64)> {
    const SQL: &str = "SELECT group_concat(name || ' ' || n || ' ' || bytes, char(10)) FROM (
        SELECT name, sum(n) AS n, sum(bytes) AS bytes FROM (
            SELECT call_id, count(*) AS n, sum(bytes) AS bytes
                FROM request JOIN operation ON operation.id = operation_id GROUP BY 1
            UNION ALL SELECT call_id, count(*), sum(bytes)
                FROM call JOIN operation ON operation.id = operation_id GROUP BY 1
            UNION ALL SELECT call_id, sum(count), sum(bytes) FROM tally WHERE reason = 'summary' GROUP BY 1)
        JOIN call_name ON call_name.id = call_id WHERE role <> 'BOUND' GROUP BY name)";
    let mut all = BTreeMap::<String, (i64, i64)>::new();
    for database in databases {
        for line in rows::value(&rows::open(database), SQL).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<i64>().expect("a number");
            let sum = all.entry(words[0].to_owned()).or_default();
            *sum = (sum.0 + number(1), sum.1 + number(2));
        }
    }
    all
}

/// A directory for records, as a site makes it.
fn records_in(place: &Path) -> PathBuf {
    let directory = place.join("records");
    fs::create_dir(&directory).expect("a directory");
    directory
}

/// The only file that is there.
fn only_record(directory: &Path) -> PathBuf {
    let files = rows::files(directory);
    let [record] = &files[..] else { panic!("{files:?}") };
    assert!(record.to_string_lossy().ends_with(JOB_SUFFIX), "{files:?}");
    assert!(fs::metadata(record).expect("a file").len() <= MOST_BYTES);
    record.clone()
}

fn job<'a>(mpi: &'a Mpi, program: &str, ranks: u32, place: &'a Path) -> Job<'a> {
    Job::new(mpi, ranks, build::app(mpi, program), Form::Preload, place)
}

#[test]
fn records_have_the_sums_of_the_rows() {
    for (turn, &(program, ranks)) in PROGRAMS.iter().enumerate() {
        for mpi in mpis!(turn) {
            let (rowed, recorded) = (place(), place());
            let with_rows = job(mpi, program, ranks, rowed.path());
            let bare = with_rows.run();
            let directory = records_in(recorded.path());
            let with = job(mpi, program, ranks, recorded.path())
                .env("LAPSCOPE_RECORD", "job")
                .env("LAPSCOPE_DIR", &directory)
                .run();
            let differences = outcome_differences(&bare, &with);
            assert!(differences.is_empty() && with.said.is_empty(), "{differences:?} {with:?}");
            let record = only_record(&directory);
            let run = as_run(&record).expect("a record").expect("a run");
            let databases = rows::databases(&with_rows.run_directory());
            let (rows, sums) = (totals(databases.iter()), totals(run.copies.databases.iter()));
            assert_eq!(rows, sums, "{program} under {}", mpi.name);
            let parsed = NodeRecord::read(&record).expect("a record");
            assert_eq!((parsed.record.is_last, parsed.ranks.len()), (1, ranks as usize));
            assert!(parsed.ranks.iter().all(|rank| rank.ended == "finalize"), "{parsed:?}");
            assert!(parsed.sites.iter().any(|site| parsed.path(site.frame).len() > 1));
            let report = lapscope(["report".as_ref(), record.as_os_str()]);
            assert!(report.contains("LAPSCOPE_RECORD=job"), "{report}");
        }
    }
}

/// What it had done half a second after its begin is in the record.
#[test]
fn a_killed_job_leaves_its_record() {
    for mpi in mpis!() {
        let place = place();
        let (directory, counter) = (records_in(place.path()), place.path().join("counter"));
        job(mpi, "endless", 1, place.path())
            .args([counter.as_os_str(), "950000".as_ref()])
            .env("LAPSCOPE_RECORD", "job")
            .env("LAPSCOPE_DIR", &directory)
            .run();
        let done = fs::read(&counter).expect("the counter");
        let done = u64::from_ne_bytes(done.try_into().expect("8 bytes"));
        let record = NodeRecord::read(&only_record(&directory)).expect("a record");
        let posted = record.sites.iter().filter(|site| site.call == "MPI_Isend");
        let posted: u64 = posted.map(|site| site.count).sum();
        assert!(posted > 0 && posted <= done + 1, "{posted} of {done}: {record:?}");
        assert_eq!((record.record.is_last, record.ranks[0].ended), (0, "running"));
    }
}

/// A program that closes what is not its own, and calls from many paths: all of it is in the record, and the heaviest path, which
/// comes last, is there whole.
#[test]
fn the_heaviest_path_is_kept_and_no_descriptor_needed() {
    const ROUNDS: u64 = 3000;
    for mpi in mpis!() {
        let place = place();
        let directory = records_in(place.path());
        let with = job(mpi, "closed_descriptors", 1, place.path())
            .env("LAPSCOPE_RECORD", "job")
            .env("LAPSCOPE_DIR", &directory)
            .run();
        assert_eq!(
            (with.stdout.as_str(), &with.said[..]),
            ("0 bytes, 800 of 800 numbers\n", &[][..])
        );
        let record = NodeRecord::read(&only_record(&directory)).expect("a record");
        assert_eq!((record.record.is_last, record.ranks[0].ended), (1, "finalize"));
        for call in ["MPI_Irecv", "MPI_Send"] {
            let sites = || record.sites.iter().filter(|site| site.call == call);
            assert_eq!(sites().map(|site| site.count).sum::<u64>(), 2 * ROUNDS + 1, "{record:?}");
            let often = sites().find(|site| site.frame.is_some() && site.count >= ROUNDS);
            let path = record.path(often.expect("the last one").frame);
            assert!(path.len() >= 4, "{call}: {path:?}");
        }
    }
}

/// Full from the start, full later, and no directory at all: the program does as it does, and nothing is said.
#[test]
fn without_room_nothing_happens() {
    let mpis = mpis!();
    for mpi in &mpis {
        let (bare_place, place) = (place(), place());
        let bare =
            Job::new(mpi, 2, build::app(mpi, "waitall"), Form::Bare, bare_place.path()).run();
        let nowhere = place.path().join("nowhere");
        let with = job(mpi, "waitall", 2, place.path())
            .env("LAPSCOPE_RECORD", "job")
            .env("LAPSCOPE_DIR", &nowhere)
            .run();
        assert_unharmed(&bare, &with);
        assert!(with.said.is_empty() && !nowhere.exists(), "{:?}", with.said);
    }
    if !permitted("full disk") {
        return;
    }
    for (size, mpi) in ["4k", "8k"].into_iter().zip(mpis.iter().cycle()) {
        let (bare_place, place, mounted, copy) = (place(), place(), place(), place());
        let bare =
            Job::new(mpi, 2, build::app(mpi, "waitall"), Form::Bare, bare_place.path()).run();
        let with = job(mpi, "waitall", 2, place.path())
            .env("LAPSCOPE_RECORD", "job")
            .env("LAPSCOPE_DIR", mounted.path())
            .inside(with_tmpfs(&format!("size={size}"), mounted.path(), copy.path()))
            .run();
        assert_unharmed(&bare, &with);
        assert!(with.said.is_empty(), "{:?}", with.said);
        for file in rows::files(copy.path()) {
            NodeRecord::read(&file).expect("a record that is there is whole");
        }
    }
}

/// In a job of a site that wants records of all, who measures still gets rows, where a run is looked for.
#[test]
fn who_measures_gets_rows_all_the_same() {
    for mpi in mpis!() {
        let place = place();
        let directory = records_in(place.path());
        let program = [build::app(mpi, "waitall").into_os_string()];
        let mut run = child::command(paths::lapscope());
        run.args(["run", "--"]).args(mpi.launch_line(2, &program)).current_dir(place.path());
        run.envs(mpi.environment.iter().copied()).env("LAPSCOPE_RECORD", "job");
        run.env("LAPSCOPE_DIR", &directory).env("LD_PRELOAD", paths::preload_library());
        let output = run.output().expect("lapscope starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let runs = rows::files(place.path());
        let runs: Vec<&PathBuf> =
            runs.iter().filter(|path| path.is_dir() && **path != directory).collect();
        assert_eq!(runs.len(), 1, "{runs:?}: {said}");
        assert_eq!(rows::databases(runs[0]).len(), 2, "{said}");
        assert_eq!(rows::files(&directory), Vec::<PathBuf>::new());
    }
}
