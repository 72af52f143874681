//! What no recorder writes, in files that can be read: said with its place and its value, everywhere alike, and nothing
//! waits or stops for it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::fixture::{command, json, lapscope, READING};
use lapscope_fixture::small::{self, run as small_run, SEND};
use lapscope_fixture::spools::{made, Shape};
use lapscope_fixture::tables::{Call, Rank, Setting};
use lapscope_fixture::{child, edit, fifo, share};
use rusqlite::Connection;

/// Both outputs of a command, which ends by itself within 20 s and without a panic.
fn told(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let _ = fs::remove_file(directory.join("merged.db"));
    let _ = fs::remove_dir_all(directory.join("tables"));
    let outputs = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::File::create(outputs.path().join(name)).unwrap();
    let mut child =
        command(directory, arguments).stdout(file("out")).stderr(file("err")).spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > Duration::from_secs(20) => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{arguments:?} did not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let read = |name: &str| {
        String::from_utf8_lossy(&fs::read(outputs.path().join(name)).unwrap()).into_owned()
    };
    let text = read("err") + &read("out");
    assert!(!text.contains("panicked"), "{arguments:?}: {text}");
    (status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// All commands succeed and say all of `words`.
fn all_say(directory: &Path, words: &[&str]) {
    for arguments in READING {
        let (code, text) = told(directory, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments:?} without {word:?}: {text}");
        }
    }
}

fn change(path: &Path, sql: &str) {
    let database = Connection::open(path).unwrap();
    database.execute_batch("PRAGMA ignore_check_constraints = on").unwrap();
    database.execute_batch(sql).unwrap();
}

#[test]
fn a_rank_that_is_there_twice_counts_once_and_is_said() {
    let run = small_run();
    let rows = |run: &Path| json(run, &["requests", ".", "--top", "0"])["found"].clone();
    let before = rows(run.path());
    fs::copy(run.path().join("rank-0.db"), run.path().join("rank-0-2.db")).unwrap();
    all_say(run.path(), &["rank 0 is in ./rank-0.db already"]);
    assert_eq!(rows(run.path()), before);
    let one = json(run.path(), &["sites", "rank-0.db"])["sites"].clone();
    change(&run.path().join("rank-1.db"), "UPDATE rank SET world_rank = 0");
    assert_eq!(json(run.path(), &["sites", "."])["sites"], one);
}

#[test]
fn a_value_that_cannot_be_is_named_with_its_place() {
    let impossible = vec![
        (
            "UPDATE call SET duration_ns = 1200000000000000000 WHERE id = 2",
            "table call, row 2: duration_ns is 1200000000000000000",
        ),
        ("UPDATE request SET post_ns = -1 WHERE id = 2", "table request, row 2: post_ns is -1"),
        (
            "UPDATE request SET operation_id = 77 WHERE id = 3",
            "table request, row 3: operation_id is 77",
        ),
        (
            "UPDATE request SET completion_id = 99 WHERE id = 1",
            "table request, row 1: completion_id is 99",
        ),
        (
            "UPDATE operation SET kind = 'carrot' WHERE id = 2",
            "table operation, row 2: kind is 'carrot'",
        ),
        (
            "UPDATE operation SET call_path_id = 55 WHERE id = 2",
            "table operation, row 2: call_path_id is 55",
        ),
        ("UPDATE rank SET world_size = 0", "table rank, row 0: world_size is 0"),
        ("UPDATE rank SET world_rank = 7", "table rank, row 0: world_rank is 7 of 2"),
        ("UPDATE tally SET inside_ns = 'long'", "table tally, row 0: inside_ns is 'long'"),
        ("DELETE FROM call WHERE id = 3", "table call: rows are missing"),
        ("UPDATE call SET completed = 5 WHERE id = 2", "table request: rows are missing"),
    ];
    for (sql, words) in share!(0, impossible) {
        let run = small_run();
        change(&run.path().join("rank-0.db"), sql);
        for arguments in READING {
            // a query shows the rows as they are, that is what one looks at them with; pending ones are looked for, not read through; a run
            // that watched no buffer is not read for its reach
            let is_shown = ["sql", "hang", "reach"].contains(&arguments[0]);
            let (code, text) = told(run.path(), arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {text}");
            let is_big = words.starts_with("table call") || words.starts_with("table request");
            let is_unchecked = arguments[1] == "sqlite" && sql.contains("completed = 5");
            assert!(
                text.contains(words) || (is_shown && is_big) || is_unchecked,
                "{arguments:?}, {sql}: {text}"
            );
            assert!(!text.contains(words) || text.contains("rank-0.db"), "{text}");
        }
    }
}

#[test]
fn rows_missing_at_an_end_are_said_where_no_row_is_read() {
    for what in ["", " WHERE completion_id = (SELECT max(completion_id) FROM request)"] {
        let run = small_run();
        change(&run.path().join("rank-0.db"), &format!("DELETE FROM request{what}"));
        for word in ["sql", "sqlite"] {
            let arguments = READING.iter().find(|words| words[..2].contains(&word)).unwrap();
            let (_, text) = told(run.path(), arguments);
            assert!(text.contains("rank-0.db: table request: rows are missing"), "{what}: {text}");
        }
    }
}

#[test]
fn times_that_add_up_to_more_than_an_i64_holds_are_refused() {
    let run = small_run();
    change(&run.path().join("rank-0.db"), "UPDATE call SET duration_ns = 70000000000000000");
    for arguments in &READING[..6] {
        let (_, text) = told(run.path(), arguments);
        assert!(text.contains("calls and posts take more than 2^56 ns"), "{arguments:?}: {text}");
    }
}

#[test]
fn only_regular_files_are_opened() {
    let run = small_run();
    for name in ["rank-2.db", "rank-0.db-journal", "rank-3.spool"] {
        let path = run.path().join(name);
        fifo(&path);
        for arguments in READING {
            let (code, text) = told(run.path(), arguments);
            assert_eq!(code, Some(0), "{name}, {arguments:?}: {text}");
            assert!(text.contains(name), "{name}, {arguments:?}: {text}");
        }
        fs::remove_file(path).unwrap();
    }
    for name in ["rank-3.spool", "rank-4.spool-at"] {
        let path = run.path().join(name);
        fifo(&path);
        let (code, text) = told(run.path(), &["recover", "."]);
        assert!(
            code == Some(1) && text.contains(name) && text.contains("not a regular file"),
            "{text}"
        );
        fs::remove_file(path).unwrap();
    }
    std::os::unix::fs::symlink("/dev/zero", run.path().join("rank-2.db")).unwrap();
    all_say(run.path(), &["rank-2.db: a link to /dev/zero, which is no file of the run directory"]);
}

#[test]
fn a_module_that_is_a_fifo_is_not_waited_for() {
    let run = small_run();
    let path = run.path().join("app");
    fifo(&path);
    for rank in ["rank-0.db", "rank-1.db"] {
        let sql = format!("UPDATE module SET path = '{}' WHERE id = 1", path.display());
        change(&run.path().join(rank), &sql);
    }
    for arguments in READING {
        let (code, text) = told(run.path(), arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
    }
}

/// Has the process of a spool ended.
fn ends(spool: &fs::File) {
    const PID_AT: u64 = 40;
    spool.write_all_at(&0x3f_ffffu64.to_ne_bytes(), PID_AT).unwrap();
}

/// The directory of a run may only be read, as on a file system of archives.
#[test]
fn spools_are_read_where_nothing_can_be_written() {
    const READ_ONLY: &str =
        "mount --bind . . && mount -o remount,bind,ro . && cd \"$PWD\" && exec \"$@\"";
    let run = tempfile::tempdir().unwrap();
    let spool = run.path().join("rank-0.spool");
    made(Shape::Cycle, 0, 1, 100_000).write(&spool).unwrap();
    ends(&fs::OpenOptions::new().write(true).open(&spool).unwrap());
    let mut namespace = child::command("unshare");
    namespace.args(["--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh"]);
    namespace.args([env!("CARGO_BIN_EXE_lapscope"), "report", "."]).current_dir(run.path());
    let outcome = namespace.output().unwrap();
    let (printed, said) =
        (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    if said.contains("unshare:") || said.contains("mount:") {
        return; // nobody may do so here
    }
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(outcome.status.success(), "{said}");
    assert!(printed.contains("the spool stays, and was read by way of"), "{printed}");
    assert!(printed.contains("MPI_Allreduce"), "{printed}");
    assert!(spool.exists() && !run.path().join("rank-0.db").exists());
}

/// A spool that is 4 TB long, of which its disk has next to nothing; and one with a chunk that is said to be 20 GB long.
#[test]
fn what_a_spool_says_of_its_length_takes_no_time() {
    const FIRST_CHUNK_BYTES_AT: u64 = 4096 + 8;
    let in_use = |spool: &Path| made(Shape::Cycle, 0, 1, 100_000).write(spool).unwrap();
    for (bytes, chunk_bytes) in [(4u64 << 40, None), (21 << 30, Some(20u64 << 30))] {
        let run = tempfile::tempdir().unwrap();
        let spool = run.path().join("rank-0.spool");
        for arguments in [
            &["hang", "."][..],
            &["live", ".", "--once"],
            &["hang", "--pending", "."],
            &["report", "."],
        ] {
            in_use(&spool);
            let file = fs::OpenOptions::new().write(true).open(&spool).unwrap();
            file.set_len(bytes).unwrap();
            if let Some(chunk_bytes) = chunk_bytes {
                file.write_all_at(&chunk_bytes.to_ne_bytes(), FIRST_CHUNK_BYTES_AT).unwrap();
            }
            if arguments[0] == "report" {
                ends(&file);
            }
            let (code, text) = told(run.path(), arguments);
            assert!(code.is_some() && text.contains("rank"), "{arguments:?}: {text}");
        }
        assert!(run.path().join("rank-0.db").exists());
    }
}

/// Who writes into a file of a run, and is killed, leaves a journal.
#[test]
fn a_journal_that_was_left_behind_is_named_with_the_way_out() {
    let (run, other) = (small_run(), small_run());
    let journal = "rank-0.db-journal";
    let database = Connection::open(other.path().join("rank-0.db")).unwrap();
    database
        .execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE frame SET address = address + 1")
        .unwrap();
    database.execute_batch("CREATE TABLE more AS SELECT zeroblob(100000) AS bytes").unwrap();
    for name in ["rank-0.db", journal] {
        fs::copy(other.path().join(name), run.path().join(name)).unwrap();
    }
    all_say(run.path(), &["rank-0.db: left in the middle of a change", "quick_check"]);
    Connection::open(run.path().join("rank-0.db"))
        .unwrap()
        .query_row("PRAGMA quick_check", [], |_| Ok(()))
        .unwrap();
    assert!(!run.path().join(journal).exists());
    let (_, text) = told(run.path(), &["report", "."]);
    assert!(!text.contains("left in the middle"), "{text}");
}

#[test]
fn a_request_that_is_there_twice_is_one_too_many() {
    let run = small_run();
    let twice = "CREATE TEMP TABLE t AS SELECT * FROM request WHERE id = 3; UPDATE t SET id = 4; INSERT INTO request SELECT * FROM t";
    change(&run.path().join("rank-0.db"), twice);
    let (_, text) = told(run.path(), &["report", "."]);
    assert!(text.contains("table request: there are too many rows"), "{text}");
}

#[test]
fn calls_that_are_there_twice_are_said() {
    let columns =
        "operation_id, thread_id, begin_ns, duration_ns, user_ns, system_ns, 0, receive_operation_id";
    let spread = "UPDATE call SET id = -2 * id; UPDATE call SET id = -id;
                  UPDATE request SET completion_id = 2 * completion_id;";
    for (spread, id) in [("", "id + (SELECT max(id) FROM call)"), (spread, "id - 1")] {
        let run = small_run();
        let twice = format!("{spread} INSERT INTO call SELECT {id}, {columns} FROM call");
        change(&run.path().join("rank-0.db"), &twice);
        for arguments in &READING[..6] {
            let (_, text) = told(run.path(), arguments);
            let says = text.contains("table call: rows are there twice");
            assert!(says, "{arguments:?}: {text}");
        }
    }
}

/// Every table in turn; reading would never end.
#[test]
fn a_table_that_is_an_endless_view_is_refused() {
    for table in ["rank", "request", "frame", "environment"] {
        let run = small_run();
        let path = run.path().join("rank-0.db");
        let columns: Vec<String> = {
            let database = Connection::open(&path).unwrap();
            let mut statement = database.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
            let names = statement.query_map([table], |row| row.get(0)).unwrap();
            names.collect::<Result<_, _>>().unwrap()
        };
        let list: Vec<String> = columns.iter().map(|name| format!("i AS {name}")).collect();
        let sql = format!(
            "DROP TABLE {table}; CREATE VIEW {table} AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
             SELECT {} FROM n",
            list.join(", ")
        );
        change(&path, &sql);
        all_say(run.path(), &["rank-0.db", "is no table"]);
    }
}

/// Pages that lead in circles: a small file with rows without an end.
#[test]
fn reading_ends_where_a_file_has_more_rows_than_bytes() {
    let run = tempfile::tempdir().unwrap();
    Rank::new(1).write(run.path(), small::rank_1);
    let path = Rank::new(0).write(run.path(), |file| {
        small::rank_0(file);
        let (begin_ns, duration_ns) = (60_000, Some(1));
        let send = Call { operation_id: SEND, begin_ns, duration_ns, ..Call::default() };
        for _ in 5..4_000 {
            file.insert(send.clone());
        }
    });
    let root: usize = {
        let database = Connection::open(&path).unwrap();
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'call'";
        database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize
    };
    let mut bytes = fs::read(&path).unwrap();
    let page = 4096 * (root - 1);
    assert_eq!(bytes[page], 5, "an inner page of a table");
    let cells = usize::from(bytes[page + 3]) << 8 | usize::from(bytes[page + 4]);
    let first = usize::from(bytes[page + 12]) << 8 | usize::from(bytes[page + 13]);
    let child: Vec<u8> = bytes[page + first..page + first + 4].to_vec();
    for cell in 1..cells {
        let at = page + 12 + 2 * cell;
        let cell = usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
        bytes[page + cell..page + cell + 4].copy_from_slice(&child);
    }
    fs::write(&path, bytes).unwrap();
    for arguments in &READING[..6] {
        let (code, text) = told(run.path(), arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        assert!(text.contains("rank-0.db"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_lock_of_another_process_is_waited_for_so_long_and_named() {
    use std::os::fd::AsRawFd;
    let run = small_run();
    fs::write(run.path().join("rank-2.spool"), "no spool").unwrap();
    let held = fs::File::open(run.path()).unwrap();
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::flock(held.as_raw_fd(), libc::LOCK_EX) }, 0);
    let (code, text) = told(run.path(), &["hang", "--pending", "."]);
    assert_eq!(code, Some(0), "{text}");
    let pid = format!("process {}", std::process::id());
    assert!(text.contains("its spools were not recovered") && text.contains(&pid), "{text}");
}

#[test]
fn what_was_lost_is_said_by_every_command_and_its_cause_rightly() {
    let run = small_run();
    change(&run.path().join("rank-0.db"), "UPDATE rank SET lost_records = 7");
    all_say(run.path(), &["7 records could not be kept (rank 0): was the disk full?"]);
    edit(&run.path().join("rank-0.db"), |file| {
        file.insert(Setting { name: "damaged_pieces", value: "7", source: "conversion" });
        file.insert(Setting { name: "lost_marks", value: "3", source: "conversion" });
        file.insert(Setting { name: "cut_paths", value: "9", source: "conversion" });
        file.change("UPDATE call SET completed = completed - 1 WHERE id = 2");
        file.change("UPDATE request SET completion_id = NULL WHERE id = 3");
    });
    all_say(
        run.path(),
        &[
            "7 pieces of the spool of rank 0 could not be read",
            "damaged or cut off",
            "3 marks of regions and steps were left out (rank 0)",
            "the call path of 9 calls is its innermost frame alone (rank 0)",
        ],
    );
    for arguments in READING {
        let (_, text) = told(run.path(), arguments);
        assert!(!text.contains("disk full") && !text.contains("an error in the program"), "{text}");
    }
}

#[test]
fn a_rank_that_lost_the_name_of_its_job_is_of_no_other_job() {
    let run = small_run();
    change(&run.path().join("rank-1.db"), "UPDATE rank SET job = ''");
    for arguments in READING {
        let (code, text) = told(run.path(), arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        assert!(!text.contains("different jobs") && !text.contains("different runs"), "{text}");
    }
}

#[test]
fn one_file_that_is_bad_ends_no_command() {
    for table in [
        "copied_sends",
        "injector",
        "environment",
        "cvar",
        "option",
        "frame",
        "injection",
        "watcher",
        "watch",
    ] {
        let run = small_run();
        let path = run.path().join("rank-0.db");
        change(
            &path,
            &format!(
                "DROP TABLE {table}; CREATE TABLE {table} (x); INSERT INTO {table} VALUES (1)"
            ),
        );
        all_say(run.path(), &["rank-0.db"]);
    }
}

/// What is wrong with a file is said once.
#[test]
fn texts_do_not_repeat_themselves() {
    let run = small_run();
    change(&run.path().join("rank-0.db"), "UPDATE call SET duration_ns = -5 WHERE id = 3");
    for arguments in [&["report", "."], &["overlap", "."], &["sites", "."], &["requests", "."]] {
        let (_, text) = told(run.path(), arguments);
        assert_eq!(text.matches("duration_ns is -5").count(), 1, "{arguments:?}: {text}");
    }
}

#[test]
fn a_query_of_ones_own_may_be_long() {
    let run = small_run();
    let long = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) FROM n";
    let output: Output = lapscope(run.path(), &["sql", "rank-0.db", long]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).split_whitespace().last(), Some("3000000"));
}
