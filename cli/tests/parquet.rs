//! `lapscope export parquet`: its tables read back with the same crate, against what other commands say and by hand.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::fixture::{answer, command, failure, json, on_a_full_disk, text};
use lapscope_columns::{write, WriteProgress};
use lapscope_fixture::calls::Calls;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Operation, Rank};
use lapscope_report::pipeline::overlap::prepare;
use lapscope_report::pipeline::OpenRun;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

/// The rows of a table, by column.
type Rows = Vec<BTreeMap<String, Option<String>>>;

fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut found: Vec<PathBuf> =
        fs::read_dir(path).unwrap().flat_map(|entry| files(&entry.unwrap().path())).collect();
    found.sort();
    found
}

fn table(export: &Path, name: &str) -> Rows {
    let path = match export.join(name).is_dir() {
        true => export.join(name),
        false => export.join(format!("{name}.parquet")),
    };
    let mut rows = Rows::new();
    for file in files(&path) {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let fields = row.unwrap().into_columns();
            let cell = |(name, field)| match field {
                Field::Null => (name, None),
                Field::Str(text) => (name, Some(text)),
                other => (name, Some(other.to_string())),
            };
            rows.push(fields.into_iter().map(cell).collect());
        }
    }
    rows
}

fn sum(rows: &Rows, column: &str) -> i64 {
    rows.iter()
        .filter_map(|row| row[column].as_ref())
        .map(|cell| cell.parse::<i64>().unwrap())
        .sum()
}

fn pick<'a>(row: &'a BTreeMap<String, Option<String>>, columns: &[&str]) -> Vec<&'a str> {
    columns.iter().map(|&column| row[column].as_deref().unwrap_or("NULL")).collect()
}

#[test]
fn requests_have_the_memory_of_their_data() {
    let run = crate::gpu::run();
    let requests = table(&export(run.path()), "requests");
    let memory: Vec<&str> = requests.iter().flat_map(|row| pick(row, &["memory"])).collect();
    assert_eq!(memory, ["device", "host", "NULL"]);
}

fn export(run: &Path) -> PathBuf {
    answer(run, &["export", "parquet", "tables", "."]);
    run.join("tables")
}

/// Rank 1 posts its receive 60 us after rank 0 has sent, and both compute; then rank 1 blocks for a message that comes late.
fn late(directory: &Path) {
    let mut ranks = Calls::pair();
    let send = ranks[0].send(1, 1000, 10);
    ranks[0].wait(3, 100, 150, &[send]);
    let receive = ranks[1].receive(2, 1000, 70);
    ranks[1].wait(3, 90, 155, &[receive]);
    ranks[1].block(Operation::receive("MPI_Recv", 4, (500, 0, 8)), 200, 300);
    ranks[0].block(Operation::send("MPI_Send", 5, (500, 1, 8)), 290, 299);
    for (calls, host) in ranks.iter().zip(["left", "right/2"]) {
        let rank = Rank { end_ns: 1_000_000, host, ..Rank::plain(calls.rank) };
        rank.write(directory, |file| calls.write(file));
    }
}

#[test]
fn messages_have_both_ends_and_nodes_have_files() {
    let run = tempfile::tempdir().unwrap();
    late(run.path());
    let tables = export(run.path());
    for table in ["requests", "calls", "messages"] {
        for node in ["left", "right%2F2"] {
            let file = tables.join(format!("{table}/node={node}/part-0.parquet"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
    let messages = table(&tables, "messages");
    let what = ["source", "destination", "destination_node", "bytes", "tag", "send_call"];
    assert_eq!(pick(&messages[0], &what), ["0", "1", "right/2", "1000", "7", "MPI_Isend"]);
    assert_eq!(pick(&messages[1], &what), ["0", "1", "right/2", "500", "8", "MPI_Send"]);
    let ends = ["send_post_begin_ns", "send_completion_end_ns", "receive_completion_end_ns"];
    assert_eq!(pick(&messages[0], &ends), ["10000", "150000", "155000"]);
    // the receive blocks at 200 us, the send comes at 290 us
    let waits = ["receive_exposed_ns", "receive_exposed_late_partner_ns", "receive_request_id"];
    assert_eq!(pick(&messages[1], &waits), ["100000", "90000", "NULL"]);

    let calls = table(&tables, "calls");
    let recv = calls.iter().find(|call| call["call"].as_deref() == Some("MPI_Recv")).unwrap();
    let columns = ["rank", "waited_for", "begin_ns", "duration_ns", "exposed_late_partner_ns"];
    assert_eq!(pick(recv, &columns), ["1", "0", "200000", "100000", "90000"]);

    let requests = table(&tables, "requests");
    let id = messages[0]["receive_request_id"].as_deref();
    let receive = |row: &&BTreeMap<String, Option<String>>| {
        row["request_id"].as_deref() == id && row["rank"].as_deref() == Some("1")
    };
    let receive = requests.iter().find(receive).unwrap();
    let columns = ["kind", "locality", "post_ns", "overlap_window_ns", "compute_ns", "ended"];
    assert_eq!(pick(receive, &columns), ["recv", "network", "1000", "19000", "19000", "waited"]);
}

/// Sums of tables are those of `lapscope overlap`, and counts those of SQL.
#[test]
fn sums_are_those_of_overlap() {
    for write in [late, small::write] {
        let run = tempfile::tempdir().unwrap();
        write(run.path());
        let tables = export(run.path());
        let overlap = json(run.path(), &["overlap", ".", "--top", "0"]);
        let requests = table(&tables, "requests");
        let totals = &overlap["totals"];
        assert_eq!(Some(requests.len() as u64), totals["requests"].as_u64());
        let keys = totals.as_object().unwrap().iter().filter(|(key, _)| is_summed(key));
        let compared = keys.filter(|(key, value)| {
            assert_eq!(Some(sum(&requests, key)), value.as_i64(), "{key}");
            true
        });
        assert_eq!(compared.count(), 19);
        by_site(&overlap["sites"], &requests, &table(&tables, "sites"));
        assert_eq!(
            Some(table(&tables, "messages").len() as u64),
            overlap["matching"]["messages"].as_u64()
        );
        let calls = "SELECT count(*), sum(duration_ns) FROM call";
        let calls_of_sql = answer(run.path(), &["sql", ".", calls, "--format", "csv"]);
        let calls = table(&tables, "calls");
        let line = format!("{},{}", calls.len(), sum(&calls, "duration_ns"));
        assert_eq!(calls_of_sql.lines().last(), Some(&*line));
    }
}

/// Whether a value of an object of `lapscope overlap` is a sum of columns.
fn is_summed(key: &str) -> bool {
    let is_bound = key.starts_with("exposed_no_local_progress_");
    let others = ["run_ns", "unattributed_ns", "unmeasured_lost_high_ns"];
    key.ends_with("_ns")
        && !others.contains(&key)
        && (!is_bound || key == "exposed_no_local_progress_ns")
        || key == "bytes"
}

fn by_site(expected: &Value, requests: &Rows, sites: &Rows) {
    let expected = expected.as_array().unwrap();
    assert!(!expected.is_empty());
    for site in expected {
        let address = site["site"]["address"].to_string();
        let is_site = |row: &&BTreeMap<String, Option<String>>| {
            row["call"].as_deref() == site["call"].as_str()
                && row["address"].as_deref() == Some(&*address)
        };
        let id = &sites.iter().find(is_site).unwrap()["site_id"];
        let of_site: Rows = requests.iter().filter(|row| row["site_id"] == *id).cloned().collect();
        assert_eq!(Some(sum(&of_site, "exposed_ns")), site["exposed_ns"].as_i64(), "{site}");
        assert_eq!(Some(of_site.len() as u64), site["requests"].as_u64(), "{site}");
    }
}

/// Spawned processes and empty tables: every table is there, and who is who stands in `ranks`.
#[test]
fn other_worlds_are_numbered_behind() {
    let run = small_run();
    let dead = Rank { world: 3, ended: "killed", ..Rank::new(0) };
    dead.write(run.path(), |file| small::stuck(file, small::ISEND));
    let tables = export(run.path());
    let ranks = table(&tables, "ranks");
    let who = ["rank", "world", "world_rank", "life", "ended"];
    assert_eq!(pick(&ranks[2], &who), ["2", "3", "0", "1", "killed"]);
    let requests = table(&tables, "requests");
    let pending = requests.last().unwrap();
    let columns = ["rank", "post_begin_ns", "completion_begin_ns", "exposed_ns", "reference_ns"];
    assert_eq!(pick(pending, &columns)[0], "2");
    assert_eq!(pick(pending, &columns)[2..], ["NULL"; 3]);
    assert!(table(&tables, "messages").is_empty());
    assert_eq!(files(&tables.join("messages")).len(), 1, "a file without rows");
}

#[test]
fn every_column_is_documented_and_every_documented_column_is_there() {
    let run = small_run();
    let tables = export(run.path());
    let documentation = include_str!("../../docs/parquet.md");
    for name in lapscope_columns::TABLES {
        let section = documentation.split(&format!("\n### {name}\n")).nth(1).unwrap();
        let section = section.split("\n#").next().unwrap();
        let documented: Vec<(String, String)> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .map(|line| {
                let mut cells = line.split('|').map(str::trim);
                let mut cell = || cells.next().unwrap().trim_end_matches('`').to_owned();
                (cell(), cell())
            })
            .collect();
        let path = files(&tables).into_iter().find(|path| path.to_string_lossy().contains(name));
        let reader = SerializedFileReader::new(File::open(path.unwrap()).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema_descr();
        let written: Vec<(String, String)> = schema
            .columns()
            .iter()
            .map(|column| {
                let kind = match column.physical_type() {
                    parquet::basic::Type::INT64 => "integer",
                    _ => "text",
                };
                (column.name().to_owned(), kind.to_owned())
            })
            .collect();
        assert_eq!(written, documented, "{name}");
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let version = metadata.iter().find(|entry| entry.key == "lapscope.columns").unwrap();
        assert_eq!(version.value.as_deref(), Some(lapscope_columns::VERSION));
        assert!(documentation.contains(&format!("here: {}.", lapscope_columns::VERSION)));
    }
}

#[test]
fn what_is_there_already_is_left_alone() {
    let run = small_run();
    fs::create_dir(run.path().join("tables")).unwrap();
    let said = failure(run.path(), &["export", "parquet", "tables", "."]);
    assert!(said.contains("tables exists already; name another directory"), "{said}");
    assert_eq!(fs::read_dir(run.path().join("tables")).unwrap().count(), 0);
    let said = failure(run.path(), &["export", "parquet", "no/such/tables", "."]);
    assert!(
        said.contains("cannot write no/such/tables: its directory is not there: mkdir -p no/such"),
        "{said}"
    );
}

/// What is in a directory, hidden names as well.
fn names(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = fs::read_dir(directory).unwrap().map(name).collect();
    names.sort();
    names
}

/// Files may not be longer than 4 KiB, which stands for a full disk.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let (run, place) = (small_run(), tempfile::tempdir().unwrap());
    let mut export = command(place.path(), &["export", "parquet", "tables"]);
    export.arg(run.path());
    on_a_full_disk(&mut export, 4096);
    let output = export.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("tables was not made: files of that size"), "{said}");
    assert_eq!(names(place.path()), Vec::<String>::new());
}

#[test]
fn who_wants_to_stop_is_heard() {
    let (run, place) = (small_run(), tempfile::tempdir().unwrap());
    let mut open = OpenRun::open(Some(run.path())).unwrap();
    let prepared = prepare(&mut open).unwrap();
    let told = WriteProgress { wrote: &|_| (), is_stopped: &|| true };
    let stopped = write(&prepared, &mut open.symbols, place.path(), &told);
    assert_eq!(stopped.unwrap_err().to_string(), "interrupted");
}

/// The same rows, whatever the parts: also of a call whose time does not fit into 32 bits.
#[test]
fn parts_give_the_same_rows() {
    for write in [late, long] {
        let run = tempfile::tempdir().unwrap();
        write(run.path());
        let whole = export(run.path());
        for count in ["1", "2"] {
            let name = format!("in-{count}");
            answer(run.path(), &["export", "parquet", &name, ".", "--parts", count]);
            let parts = run.path().join(name);
            for name in lapscope_columns::TABLES {
                assert_eq!(table(&parts, name), table(&whole, name), "{name}, {count} parts");
            }
            assert_eq!(names(&parts), names(&whole));
        }
    }
}

/// Rank 1 waits for ten seconds.
fn long(directory: &Path) {
    let mut ranks = Calls::pair();
    ranks[1].block(Operation::receive("MPI_Recv", 4, (500, 0, 8)), 10, 10_000_020);
    ranks[0].block(Operation::send("MPI_Send", 5, (500, 1, 8)), 10_000_000, 10_000_010);
    for calls in &ranks {
        let rank = Rank { end_ns: 20_000_000_000, ..Rank::plain(calls.rank) };
        rank.write(directory, |file| calls.write(file));
    }
}

#[test]
fn a_call_that_sends_and_receives_has_both() {
    let run = tempfile::tempdir().unwrap();
    let mut calls = Calls::new(0);
    calls.block(Operation::send("MPI_Sendrecv", 4, (500, 0, 8)), 200, 300);
    calls.block(Operation::send("MPI_Send", 5, (700, 0, 1)), 400, 500);
    let rank = Rank { end_ns: 1_000_000, ..Rank::plain(0) };
    rank.write(run.path(), |file| {
        calls.write(file);
        let receive = file.insert(Operation::receive("MPI_Sendrecv", 4, (600, 0, 9)));
        let both = format!("SET receive_operation_id = {receive} WHERE begin_ns = 200000");
        file.change(&format!("UPDATE call {both}"));
    });
    let export = run.path().join("tables");
    command(run.path(), &["export", "parquet", "tables", "."]).output().unwrap();
    let cells = table(&export, "calls").into_iter().map(|row| {
        ["bytes", "receive_bytes"].map(|name| row[name].as_ref().map(|cell| cell.parse().unwrap()))
    });
    assert_eq!(cells.collect::<Vec<_>>(), [[Some(500), Some(600)], [Some(700), None]]);
}
