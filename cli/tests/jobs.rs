//! `lapscope jobs`: made-up records imported, listed, summed up and handed over, worked out by hand.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::fixture::{answer, command, failure, json, lapscope, text};
use assert_cmd::assert::OutputAssertExt;
use lapscope_data::jobs::{JobTable, ListedJob};
use lapscope_fixture::fifo;
use lapscope_fixture::records::{halo, Injector, NodeRecord, Record, Setting};
use parquet::file::reader::{FileReader, SerializedFileReader};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

const SECOND: i64 = 1_000_000_000;

/// A user who owns no file here.
const NOBODY: u32 = 65534;

fn put(place: &Path, name: &str, record: &NodeRecord<'_>) {
    fs::create_dir_all(place.join("records")).unwrap();
    let file = place.join("records").join(format!("{name}.lapscope-job"));
    fs::write(file, record.text()).unwrap();
}

/// Three jobs: the halo exchange of user 1000 on two nodes; the same again, under injection; and one of user 1001, which lacks
/// processors.
fn three() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let record = |job, host, began: i64| {
        let mut made = halo();
        let began_unix_ns = made.record.began_unix_ns + began * SECOND;
        let written_unix_ns = began_unix_ns + 10 * SECOND;
        made.record = Record { job, host, began_unix_ns, written_unix_ns, ..made.record };
        made
    };
    for host in ["node1", "node2"] {
        let mut made = record("one.0", host, 0);
        made.record.batch_job = Some("4711");
        made.record.nodes = Some(2);
        put(place.path(), &format!("one-{host}"), &made);
    }
    let mut second = record("two.0", "node1", 1000);
    let automatic = Some("{\"seconds\":9.0,\"gain\":{\"share\":0.1,\"low\":0.05}}");
    second.injectors.push(Injector { processes: 2, automatic, ..Injector::default() });
    put(place.path(), "two", &second);
    let mut third = record("three.0", "node1", 2000);
    third.record.user = 1001;
    third.record.executable = "/apps/other";
    third.record.mpi_library = "MPICH Version: 4.0.2";
    third.ranks[1].ended = "killed";
    third.ranks[1].wait_ns = Some(4 * SECOND);
    put(place.path(), "three", &third);
    place
}

/// The database is there afterwards.
fn imported(place: &TempDir) {
    lapscope_quiet(place.path(), &["records"]);
}

fn lapscope_quiet(place: &Path, arguments: &[&str]) {
    let whole = [&["jobs", "--quiet"], arguments].concat();
    command(place, &whole).assert().success().stdout("").stderr("");
}

fn names(answer: &Value) -> Vec<&str> {
    answer["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect()
}

/// Of seconds, as sums of fractions differ in the last digits.
fn tenths(seconds: &Value) -> i64 {
    (seconds.as_f64().unwrap() * 10.0).round() as i64
}

#[test]
fn jobs_are_listed_filtered_and_sorted() {
    let place = three();
    let first = json(place.path(), &["jobs", "records"]);
    assert_eq!(first["imported"]["records"], 4);
    assert_eq!(names(&first), ["one.0", "two.0", "three.0"]);
    let again = json(place.path(), &["jobs", "records"]);
    assert_eq!(
        (&again["imported"]["records"], &again["imported"]["unchanged"]),
        (&0.into(), &4.into())
    );
    assert_eq!((&again["all"], &again["jobs"]), (&first["all"], &first["jobs"]));
    let all = &first["all"];
    assert_eq!((all["jobs"].as_u64(), all["users"].as_u64()), (Some(3), Some(2)));
    assert_eq!((tenths(&all["run_seconds"]), tenths(&all["exposed_seconds"])), (800, 201));
    let ask = |words: &[&str]| json(place.path(), &[&["jobs"], words].concat());
    for (words, expected) in [
        (&["--user", "1001"][..], &["three.0"][..]),
        (&["--executable", "nowhere/app", "--sort", "began"], &["two.0", "one.0"]),
        (&["--mpi", "mpich"], &["three.0"]),
        (&["--job", "4711"], &["one.0"]),
        (&["--job", "two.0"], &["two.0"]),
        (&["--min-nodes", "2"], &["one.0"]),
        (&["--max-nodes", "1", "--sort", "began"], &["three.0", "two.0"]),
        (
            &["--since", "2023-11-14", "--until", "2023-11-16", "--sort", "nodes", "--top", "1"],
            &["one.0"],
        ),
        (&["--since", "7d"], &[]),
    ] {
        assert_eq!(names(&ask(words)), expected, "{words:?}");
    }
    let rows = answer(place.path(), &["jobs", "--by", "mpi", "--format", "csv"]);
    let rows: Vec<&str> = rows.lines().map(|line| line.split(",1").next().unwrap()).collect();
    assert_eq!(rows, ["name,jobs,users,first_unix_ns,last_unix_ns,run_seconds,exposed_seconds,exposed_share,injected_jobs,gained_seconds,upper_bound_jobs", "Open MPI v4.1.4,2", "MPICH Version: 4.0.2"]);
    let csv = answer(place.path(), &["jobs", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 4);
    assert!(
        csv.starts_with("user_name,exposed_share,exposed_is_upper_bound,without_finalize,is_running,user,job,batch_job,"),
        "{csv}"
    );
}

/// Records leave out when GPUs computed.
#[test]
fn exposed_time_of_jobs_with_gpus_is_an_upper_bound() {
    let place = three();
    let mut made = halo();
    made.settings.push(Setting { kind: "option", name: "accelerator", value: "libcuda" });
    put(place.path(), "two", &made);
    let mut idle = halo();
    idle.record.job = "idle";
    for (name, value) in [("accelerator", "libcuda"), ("cuda", "not known"), ("cuda", "unused")] {
        idle.settings.push(Setting { kind: "option", name, value });
    }
    put(place.path(), "idle", &idle);
    imported(&place);
    let given = json(place.path(), &["jobs"]);
    let marked = given["jobs"].as_array().unwrap().iter();
    let marked = marked.filter(|job| job["exposed_is_upper_bound"] == true);
    assert_eq!(marked.map(|job| &job["gpu_ranks"]).collect::<Vec<_>>(), [2]);
    let of = |list: &Value| list["upper_bound_jobs"].as_u64().unwrap();
    let executables = given["executables"].as_array().unwrap();
    assert_eq!((of(&given["all"]), executables.iter().map(of).sum::<u64>()), (1, 1));
    let said = answer(place.path(), &["jobs"]);
    assert_eq!(said.matches("  ≤ ").count(), 1, "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Exposed At most 25.1 % of the run time",
        "; in 1 job (≤) GPUs may",
        "at most 25.1 % of it exposed",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let by_mpi = answer(place.path(), &["jobs", "--by", "mpi"]);
    assert_eq!(by_mpi.matches("≤ ").count(), 1, "{by_mpi}");
}

/// What is said of all, and the cures of each executable: those of jobs with injection are not asked for more of it.
#[test]
fn text_says_what_would_gain_most() {
    let place = three();
    let said = answer(place.path(), &["jobs", "records"]);
    for expected in [
        "3 jobs of 2 users, 2023-11-14 22:13 to 2023-11-14 22:46 UTC\n4 records imported, 0 unchanged\n",
        "Exposed  25.1 % of the run time of all ranks is communication inside MPI: 20.1 s of 80.0 s\n",
        "  /apps/other\n    1 job of 1 user ran 20.0 s, 25.1 % of it exposed, most at MPI_Waitall app+0x1300\n",
        " 20.5 %  4.10 s  ranks had no processor: ask for a processor a rank",
        "  /nowhere/app\n    2 jobs of 1 user ran 60.0 s",
        "asked for tests in 1, which saved 2.00 s\n",
        "  8.3 %  5.00 s  messages could move while ranks compute: try LAPSCOPE_INJECT=auto",
        "most at MPI_Irecv app+0x1200",
        "  5.0 %  3.00 s  some ranks compute longer than others: share out the work evenly\n",
        "4711",
        "three.0 (no MPI_Finalize)",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let given = json(place.path(), &["jobs"]);
    let cures = |at: usize| {
        let of = given["executables"][at]["cures"].as_array().unwrap().iter();
        of.map(|it| (it["cure"].as_str().unwrap(), tenths(&it["at_most_seconds"])))
            .collect::<Vec<_>>()
    };
    assert_eq!(cures(0), [("test", 50), ("partner_late", 30)]);
    assert_eq!(cures(1), [("give_processors", 41), ("test", 25), ("partner_late", 10)]);
}

/// What is known of ranks that had not ended when their record was written depends on whether it would have been written again.
#[test]
fn who_has_not_ended_is_told_from_who_cannot_have() {
    let place = tempfile::tempdir().unwrap();
    let now = lapscope_data::calendar::now_s() * SECOND;
    for (job, written, ended) in [
        ("old.0", now - 3600 * SECOND, "running"),
        ("new.0", now, "running"),
        ("seen.0", now, "exit"),
    ] {
        let mut made = halo();
        let is_last = i64::from(ended == "exit");
        let (began_unix_ns, written_unix_ns) = (written - 10 * SECOND, written);
        made.record = Record { job, began_unix_ns, written_unix_ns, is_last, ..made.record };
        made.ranks[1].ended = ended;
        put(place.path(), job, &made);
    }
    let said = answer(place.path(), &["jobs", "records"]);
    for expected in ["old.0 (no MPI_Finalize)", "seen.0 (no MPI_Finalize)", "new.0"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("new.0 (") && !said.contains("killed"), "{said}");
    let found = json(place.path(), &["jobs"]);
    let of = |job: &Value| {
        let name = job["job"].as_str().unwrap().to_owned();
        (name, (job["without_finalize"].as_i64(), job["is_running"].as_bool()))
    };
    let found: BTreeMap<_, _> = found["jobs"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(found["old.0"], (Some(1), Some(false)));
    assert_eq!(found["new.0"], (Some(0), Some(true)));
    assert_eq!(found["seen.0"], (Some(1), Some(false)));
}

/// A node whose clock was not set does not say when there were jobs.
#[test]
fn a_clock_that_was_not_set_is_in_no_headline() {
    let place = three();
    let mut made = halo();
    made.record = Record {
        job: "unset.0",
        began_unix_ns: SECOND,
        written_unix_ns: 11 * SECOND,
        ..made.record
    };
    put(place.path(), "unset", &made);
    let said = answer(place.path(), &["jobs", "records"]);
    assert!(
        said.contains("4 jobs of 2 users, 2023-11-14 22:13 to 2023-11-14 22:46 UTC")
            && !said.contains("1970"),
        "{said}"
    );
}

/// Many at once, over the same records: each job is there once.
#[test]
fn importers_side_by_side_lose_and_double_nothing() {
    let place = tempfile::tempdir().unwrap();
    let jobs: Vec<String> = (0..600).map(|job| format!("{job}.0")).collect();
    for job in &jobs {
        let mut made = halo();
        made.record.job = job;
        put(place.path(), job, &made);
    }
    let mut importers: Vec<_> = (0..4)
        .map(|_| command(place.path(), &["jobs", "records", "--quiet"]).spawn().unwrap())
        .collect();
    assert!(importers.iter_mut().all(|importer| importer.wait().unwrap().success()));
    let found = json(place.path(), &["jobs"]);
    assert_eq!(found["all"]["jobs"], 600);
    assert_eq!(found["all"]["run_seconds"], 12000.0);
}

/// What cannot be read is named and skipped: damage, a folder of somebody else, and what only is called a record.
#[test]
fn what_cannot_be_read_is_named() {
    let place = three();
    let records = place.path().join("records");
    let whole = fs::read_to_string(records.join("two.lapscope-job")).unwrap();
    fs::write(records.join("short.lapscope-job"), &whole[..whole.len() / 2]).unwrap();
    fs::write(records.join("other.lapscope-job"), "no record").unwrap();
    fifo(&records.join("fifo.lapscope-job"));
    symlink("/dev/zero", records.join("zero.lapscope-job")).unwrap();
    symlink("/", records.join("root")).unwrap();
    let output = lapscope(place.path(), &["jobs", "records", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("short.lapscope-job "), "{said}");
    assert!(said.contains("other.lapscope-job is not the record of a job"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["imported"]["records"], &found["imported"]["left_out"]),
        (&4.into(), &2.into())
    );
    for number in 0..20 {
        fs::write(records.join(format!("{number}.lapscope-job")), "no record").unwrap();
    }
    let output = lapscope(place.path(), &["jobs", "records", "--quiet"]);
    let said = text(&output.stderr);
    assert!(said.ends_with("lapscope: 12 more could not be read\n"), "{said}");
    assert_eq!(
        failure(place.path(), &["jobs", "nowhere"]),
        "lapscope: there is no directory nowhere\n"
    );
    assert!(failure(place.path(), &["jobs", "--database", "x.db"])
        .contains("name folders of records to import"));
    fs::write(place.path().join("x.db"), "x").unwrap();
    assert!(failure(place.path(), &["jobs", "--database", "x.db"]).contains("x.db"));
}

/// As a user who may not read a folder; and whose database nobody else may.
#[test]
fn folders_of_others_are_named() {
    // SAFETY: it only answers.
    if unsafe { libc::geteuid() } != 0 {
        return; // who cannot become another user cannot test this
    }
    let place = three();
    for (path, mode) in [("", 0o777), ("records", 0o755), ("records/secret", 0o700)] {
        let path = place.path().join(path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let output = command(place.path(), &["jobs", "records"]).uid(NOBODY).output().unwrap();
    let said = text(&output.stderr);
    assert!(said.ends_with("records/secret: Permission denied (os error 13)\n"), "{said}");
    assert!(
        text(&output.stdout).contains("3 jobs of 2 users, "),
        "files of root are his who says so: {output:?}"
    );
    let mode = fs::metadata(place.path().join("jobs.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Whose job it is says the owner of the file; only who may have copied it is not meant.
#[test]
fn nobody_can_speak_for_another_user() {
    let place = three();
    let file = place.path().join("records/three.lapscope-job");
    if std::os::unix::fs::chown(&file, Some(NOBODY), None).is_err() {
        return;
    }
    imported(&place);
    let found = json(place.path(), &["jobs", "--executable", "other"]);
    assert_eq!(
        (found["jobs"][0]["user"].as_i64(), found["jobs"][0]["user_name"].as_str()),
        (Some(NOBODY.into()), Some("nobody"))
    );
}

/// Text of a record commands no terminal, no page, no spreadsheet and no line of metrics.
#[test]
fn hostile_names_are_shown() {
    let place = tempfile::tempdir().unwrap();
    let mut made = halo();
    made.record.executable = "/x/=1+\"\u{1b}[2J<script>\\\n";
    made.record.job = "=cmd";
    made.record.mpi_library = "\u{202e}MPI";
    put(place.path(), "a", &made);
    let said = answer(
        place.path(),
        &["jobs", "records", "--html", "page.html", "--openmetrics", "x.prom"],
    );
    assert!(said.contains("=1+\"\\x1b[2J<script>\\\\n") && !said.contains('\u{1b}'), "{said}");
    assert!(answer(place.path(), &["jobs", "--format", "csv"]).contains(",'=cmd,"));
    let page = fs::read_to_string(place.path().join("page.html")).unwrap();
    assert!(page.contains("&lt;script&gt;") && !page.contains("[2J<script>"));
    let metrics = fs::read_to_string(place.path().join("x.prom")).unwrap();
    let label = "lapscope_jobs{executable=\"=1+\\\"\\\\x1b[2J<script>\\\\\\\\n\",mpi=\"\\\\u{202e}MPI\"} 1.0\n";
    assert!(metrics.contains(label), "{metrics}");
}

/// The text of OpenMetrics 1.0: families in one piece, each with its type, unit and help, and an end. Prometheus' own parser reads
/// it in python/tests.
#[test]
fn metrics_are_sums_by_executable_and_mpi() {
    let place = three();
    lapscope_quiet(place.path(), &["records", "--openmetrics", "jobs.prom"]);
    let metrics = fs::read_to_string(place.path().join("jobs.prom")).unwrap();
    let expected =
        "# TYPE lapscope_jobs gauge\n# HELP lapscope_jobs Jobs of which there are records.\n\
        lapscope_jobs{executable=\"app\",mpi=\"Open MPI v4.1.4\"} 2.0\n\
        lapscope_jobs{executable=\"other\",mpi=\"MPICH Version: 4.0.2\"} 1.0\n\
        # TYPE lapscope_jobs_run_seconds gauge\n# UNIT lapscope_jobs_run_seconds seconds\n";
    assert!(metrics.starts_with(expected), "{metrics}");
    assert!(
        metrics.contains(
            "lapscope_jobs_exposed_seconds{executable=\"app\",mpi=\"Open MPI v4.1.4\"} 15.06\n"
        ),
        "{metrics}"
    );
    assert!(metrics.ends_with("\n# EOF\n") && !metrics.contains("1000"), "{metrics}");
    lapscope_quiet(place.path(), &["--openmetrics", "jobs.prom", "--user", "1001"]);
    let metrics = fs::read_to_string(place.path().join("jobs.prom")).unwrap();
    assert!(!metrics.contains("Open MPI"), "{metrics}");
    fs::write(place.path().join("mine"), "mine").unwrap();
    assert!(failure(place.path(), &["jobs", "--openmetrics", "mine"]).contains("left alone"));
}

#[test]
fn the_page_has_the_numbers_of_the_document() {
    let place = three();
    lapscope_quiet(place.path(), &["records", "--html", "jobs.html"]);
    let page = fs::read_to_string(place.path().join("jobs.html")).unwrap();
    let found = json(place.path(), &["jobs"]);
    for pointer in ["/executables/0/cures/0/share", "/jobs/1/exposed_share"] {
        let exact = found.pointer(pointer).unwrap().to_string();
        let shown = format!("data-json=\"{pointer}\" data-value=\"{exact}\"");
        assert!(page.contains(&shown), "{shown}");
    }
    for expected in
        ["<h2 id=\"users-head\">Users</h2>", "MPICH Version: 4.0.2", "share out the work evenly"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    lapscope_quiet(place.path(), &["--html", "jobs.html"]);
}

#[test]
fn parquet_has_the_columns_of_the_database() {
    let place = three();
    lapscope_quiet(place.path(), &["records", "--parquet", "jobs.parquet"]);
    let file = File::open(place.path().join("jobs.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<BTreeMap<String, String>> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap()
                .into_columns()
                .into_iter()
                .map(|(name, field)| (name, field.to_string()))
                .collect()
        })
        .collect();
    let job = &rows[0];
    let mut columns: Vec<&str> = ListedJob::CELLS.iter().map(|(name, _)| *name).collect();
    columns.sort_unstable();
    assert_eq!(job.keys().collect::<Vec<_>>(), columns);
    assert_eq!(rows.len(), 3);
    assert_eq!((job["job"].as_str(), job["run_seconds"].as_str()), ("\"one.0\"", "40.0"));
    assert_eq!((job["nodes"].as_str(), rows[1]["batch_job"].as_str()), ("2", "null"));
    let refused = failure(place.path(), &["jobs", "--parquet", "jobs.parquet"]);
    assert!(refused.contains("exists already"), "{refused}");
}

#[test]
fn old_jobs_are_forgotten() {
    let place = three();
    imported(&place);
    // what is old is not read again, whether or not it was forgotten
    let file = place.path().join("records/two.lapscope-job");
    let old = std::time::SystemTime::UNIX_EPOCH;
    File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
    command(place.path(), &["jobs", "records", "--forget", "365d"]).assert().success().stdout(
        contains("0 records imported, 4 unchanged, 3 jobs forgotten")
            .and(contains("No job is in it that these filters leave.")),
    );
}
