use lapscope_fixture::records::{self, Injector, Setting};

use super::*;

fn parsed(text: &str) -> Result<NodeRecord, JobError> {
    NodeRecord::parse(text.as_bytes())
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let mut made = records::halo();
    let strange = "a\\b\tc\nd\u{1b}\\\\é";
    made.record.command = None;
    made.record.batch_job = Some("4711");
    made.settings.push(Setting { kind: "cvar", name: "X", value: strange });
    made.injectors.push(Injector { tests: 5, automatic: Some("{}"), ..Injector::default() });
    let read = parsed(&made.text()).expect("a record");
    assert_eq!(read.record.command, None);
    assert_eq!(read.record.batch_job.as_deref(), Some("4711"));
    assert_eq!((read.record.world_size, read.record.is_last), (2, 1));
    assert_eq!((read.settings[0].kind, read.settings[0].value.as_str()), ("cvar", strange));
    assert_eq!((read.injectors[0].tests, read.injectors[0].automatic.as_deref()), (5, Some("{}")));
    let [first, second] = &read.ranks[..] else { panic!("{read:?}") };
    assert_eq!((first.ended, first.run_time()), ("finalize", Nanos(10_000_000_000)));
    assert_eq!((second.exposed(), second.mpi()), (Nanos(3_010_000_000), Nanos(3_010_000_000)));
    let site = &read.sites[0];
    assert_eq!(
        (site.call.as_str(), site.exposed, site.bytes),
        ("MPI_Isend", Nanos(2_500_000_000), Bytes(131_072_000))
    );
    let path: Vec<i64> = read.path(site.frame).iter().map(|frame| frame.address).collect();
    assert_eq!(path, [0x1100, 0x1000]);
}

#[test]
fn tables_and_columns_of_later_versions_are_passed_over() {
    let text = records::halo().text();
    let later = text
        .replace("[site]\ncall\t", "[site]\nnew\tcall\t")
        .replace("\nMPI_", "\n7\tMPI_")
        .replace("[end]", "[new]\nx\ty\n1\t2\n[end]");
    assert_eq!(parsed(&later), parsed(&text));
}

#[test]
fn what_a_record_lacks_is_null_or_named() {
    let text = records::halo().text();
    let renamed = |column: &str| parsed(&text.replacen(column, "other", 1));
    assert_eq!(renamed("peak_memory_bytes").expect("NULL").ranks[0].peak_memory_bytes, None);
    let error = renamed("is_last").expect_err("a column is missing").to_string();
    assert_eq!(error, "line 4: column is_last: a value is expected");
}

#[test]
fn damage_is_named_with_its_line() {
    let text = records::halo().text();
    let cases = [
        ("lapscope job record 1", "other", "is not the record of a job: it does not begin with \"lapscope job record \""),
        ("record 1\n", "record 2\n", "was written by another version of lapscope (format 2, this one reads 1): read it with that version"),
        ("[end]\n", "", "is cut short: its last line is not [end]"),
        ("[module]", "", "line 11: a table in brackets is expected"),
        ("[module]", "[frame]\n[module]", "line 15: [frame] is there twice"),
        ("MPI_Isend\t", "MPI_Isend\t\t", "line 22: [site] has 18 columns"),
        ("MPI_Isend\t2\tsummary", "MPI_Isend\t9\tsummary", "line 22: column frame: there is no such row in frame"),
        ("MPI_Isend\t2\tsummary", "MPI_Isend\t2\tlater", "line 22: column reason: one of unsuccessful_test, summary is expected"),
        ("MPI_Isend\t2\tsummary\t17", "MPI_Isend\t2\tsummary\t65", "line 22: column size_class: a number from 0 to 64 is expected"),
        ("2\t1\t1\t4352", "2\t2\t1\t4352", "line 17: column caller: there is no such row in frame"),
        ("2\t1\t1\t4352", "1\t\t1\t4352", "line 17: column id: ids ascend"),
        ("[record]", "[other]", "line 27: it has not one row of [record]"),
        ("./app -n 4", "./app\\", "line 4: column command: what stands behind \\ is not understood"),
    ];
    for (old, new, said) in cases {
        assert!(text.contains(old), "{old}\n{text}");
        let error = parsed(&text.replacen(old, new, 1)).expect_err(said);
        assert_eq!(error.to_string(), said);
    }
    assert_eq!(NodeRecord::parse(&vec![b'x'; MOST_JOB_BYTES + 1]), Err(JobError::TooLong));
}

/// Whatever is cut off, and whatever a byte becomes, nothing panics; and what is taken over holds its rules.
#[test]
fn no_damage_is_fatal() {
    let text = records::halo().text().into_bytes();
    for length in 0..text.len() {
        let _ = NodeRecord::parse(&text[..length]);
    }
    for place in 0..text.len() {
        for value in [b'\t', b'\n', b'\\', b'[', b'-', b'9', 0xff] {
            let mut damaged = text.clone();
            damaged[place] = value;
            if let Ok(record) = NodeRecord::parse(&damaged) {
                assert!(record.sites.iter().all(|site| site.exposed.0 >= 0));
                assert!(record.sites.iter().all(|site| record.path(site.frame).len() <= 4));
            }
        }
    }
}

fn rows(database: &Path, sql: &str) -> Vec<(i64, i64)> {
    let connection = rusqlite::Connection::open(database).expect("a database");
    let mut statement = connection.prepare(sql).expect("sound SQL");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.map(|row| row.expect("two numbers")).collect()
}

/// Of two ranks all times come out as they were.
#[test]
fn a_record_becomes_a_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("job-12345678-node1.lapscope-job");
    std::fs::write(&file, records::halo().text()).expect("a file");
    for named in [file.as_path(), directory.path()] {
        let run = as_run(named).expect("a run").expect("records");
        let [database] = &run.copies.databases[..] else { panic!("{run:?}") };
        assert!(crate::db::Census::take(std::slice::from_ref(database)).failed.is_empty());
        let by_call = "SELECT rank, sum(inside_ns) FROM tally JOIN call_name ON id = call_id WHERE name = 'MPI_Waitall' GROUP BY rank";
        assert_eq!(rows(database, by_call), [(0, 2_000_000_000), (1, 3_000_000_000)]);
        let exposed = "SELECT rank, sum(exposed_ns) FROM tally GROUP BY rank";
        assert_eq!(rows(database, exposed), [(0, 2_000_000_000), (1, 3_000_000_000)]);
        let all = "SELECT count(*), sum(bytes) FROM tally WHERE size_class = 17";
        assert_eq!(rows(database, all), [(4, 2 * 131_072_000)]);
        let frames = "SELECT depth, address FROM frame JOIN call_path ON id = call_path_id WHERE rank = 1 ORDER BY id, depth";
        assert_eq!(rows(database, frames)[..2], [(0, 0x1100), (1, 0x1000)]);
        assert_eq!(run.notes, Vec::<String>::new());
    }
}

#[test]
fn records_of_several_jobs_are_no_run() {
    let directory = tempfile::tempdir().expect("a directory");
    for job in ["one", "other"] {
        let mut made = records::halo();
        made.record.job = job;
        let name = format!("{job}-12345678-node1.lapscope-job");
        std::fs::write(directory.path().join(name), made.text()).expect("a file");
    }
    let error = as_run(directory.path()).expect_err("two jobs").to_string();
    assert!(error.contains("records of 2 jobs") && error.contains("lapscope jobs"), "{error}");
    let named = directory.path().join("one-12345678-node1.lapscope-job");
    assert!(as_run(&named).expect("one of them").is_some());
    assert!(as_run(Path::new("/nowhere")).expect("nothing").is_none());
}

#[test]
fn a_record_without_ranks_is_no_run_yet() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("job-12345678-node1.lapscope-job");
    let mut empty = records::halo();
    empty.ranks.clear();
    std::fs::write(&file, empty.text()).expect("a file");
    let error = as_run(&file).expect_err("no run").to_string();
    assert!(error.ends_with("no rank had come out of MPI_Init yet"), "{error}");
}
