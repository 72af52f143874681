use lapscope_fixture::tables::{
    Call, CallPath, OpenWait, Operation, Rank, Request, Thread, Watch, WatchLeftOut, Watcher,
};

use lapscope_fixture::Fixture;

use super::*;
use crate::db::{read_left_out, read_watchers, scan_watches};
use crate::model;

/// A run of one rank with a send, whose ids are the same in every file.
fn file(directory: &Path, rank: i64, life: i64, job: &str) -> PathBuf {
    file_of_world(directory, 1, rank, life, job)
}

fn file_of_world(directory: &Path, world: i64, rank: i64, life: i64, job: &str) -> PathBuf {
    let path = directory.join(format!("world-{world}-rank-{rank}-{life}.db"));
    let (world_rank, init_end_ns, end_ns) = (rank, 1, 9);
    Rank { rank, world, world_rank, life, job, init_end_ns, end_ns, ..Rank::default() }
        .write_alone(&path, |file| {
            file.insert(Thread::default());
            let send = Operation::send("MPI_Isend", 0, (rank + 10, 1, 0)).waited();
            let wait = Operation::other_call("MPI_Wait", 0);
            let [send, wait] = [send, wait].map(|operation| {
                file.insert(Operation { call_path_id: None, communicator_id: None, ..operation })
            });
            let (begin_ns, duration_ns, completed) = (4, Some(2), 1);
            let call =
                Call { operation_id: wait, begin_ns, duration_ns, completed, ..Call::default() };
            let call_row_id = file.insert(call);
            let completion_id = Some(call_row_id);
            let request = Request { operation_id: send, completion_id, ..Request::default() };
            let request_id =
                file.insert(Request { post_begin_ns: 1, post_ns: 1, mpi_ns: Some(0), ..request });
            file.insert(OpenWait { call_row_id, request_id, certain: rank % 2 });
            watches(file, rank, send);
        });
    path
}

/// A word that was written at one of two instructions, and copied at the other.
fn watches(file: &Fixture, rank: i64, send: i64) {
    let [touch, copy] = [(), ()].map(|()| file.insert(CallPath::default()));
    file.insert(Watcher { spent_ns: rank, ..Watcher::default() });
    file.insert(WatchLeftOut { reason: "share", buffers: rank });
    let word = Watch::send(send, 1, (0, 8), rank).touched(touch);
    file.insert(Watch { copy_path_id: Some(copy), ..word });
}

fn rows(connection: &Connection) -> Vec<(i64, i64, i64, i64, String)> {
    let sql = "SELECT id, rank, bytes, completion_id, completion_call FROM requests ORDER BY id";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn side_by_side_and_merged_are_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let files = [file(directory.path(), 0, 1, "j"), file(directory.path(), 1, 1, "j")];
    let expected = [(1, 0, 10, 1, "MPI_Wait".to_owned()), (2, 1, 11, 2, "MPI_Wait".to_owned())];
    let together = open_together(&files, &|_| (), &|_| ()).unwrap();
    assert_eq!(rows(&together.connection), expected);
    let output = directory.path().join("all.db");
    merge(&files, &output, &|_| ()).unwrap();
    assert_eq!(rows(&Database::open(&output).unwrap().connection), expected);
    let again = merge(&files, &output, &|_| ()).unwrap_err().to_string();
    assert!(again.contains("exists already"), "{again}");
}

/// Operations are two of each file, and so are call paths; there is one thread.
#[test]
fn watched_words_refer_to_rows_of_their_own_rank() {
    let directory = tempfile::tempdir().unwrap();
    let files = [file(directory.path(), 0, 1, "j"), file(directory.path(), 1, 1, "j")];
    let output = directory.path().join("all.db");
    merge(&files, &output, &|_| ()).unwrap();
    let merged = Database::open(&output).unwrap();
    let together = open_together(&files, &|_| (), &|_| ()).unwrap();
    for connection in [&merged.connection, &together.connection] {
        let mut watches = Vec::new();
        scan_watches(connection, |watch| watches.push(*watch)).unwrap();
        let refers = |watch: &model::Watch| {
            let paths = (watch.instruction_id, watch.copy_id);
            (watch.away.0, watch.operation_id, watch.thread_id, paths)
        };
        let refers: Vec<_> = watches.iter().map(refers).collect();
        assert_eq!(refers, [(0, 1, 1, (Some(1), Some(2))), (1, 3, 2, (Some(3), Some(4)))]);
    }
    let watchers = read_watchers(&merged).unwrap();
    assert_eq!(
        watchers.iter().map(|it| (it.rank.0, it.spent.0)).collect::<Vec<_>>(),
        [(0, 0), (1, 1)]
    );
    let left_out = read_left_out(&merged).unwrap();
    assert_eq!(
        left_out.iter().map(|it| (it.rank.0, it.buffers)).collect::<Vec<_>>(),
        [(0, 0), (1, 1)]
    );
}

#[test]
fn what_open_calls_wait_for_refers_to_rows_of_their_own_rank() {
    let directory = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|rank| file(directory.path(), rank, 1, "j"));
    let output = directory.path().join("all.db");
    merge(&files, &output, &|_| ()).unwrap();
    let merged = Database::open(&output).unwrap();
    let together = open_together(&files, &|_| (), &|_| ()).unwrap();
    for connection in [&merged.connection, &together.connection] {
        let sql = "SELECT group_concat(call_row_id || '>' || request_id || '>' || certain, ' ') FROM open_wait";
        let waits: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(waits, "1>1>0 2>2>1");
    }
}

#[test]
fn a_second_life_has_a_key_behind_all_ranks() {
    let directory = tempfile::tempdir().unwrap();
    let files = [file(directory.path(), 1, 1, "j"), file(directory.path(), 1, 2, "j")];
    let together = open_together(&files, &|_| (), &|_| ()).unwrap();
    let ranks: Vec<i64> = rows(&together.connection).iter().map(|row| row.1).collect();
    assert_eq!(ranks, [1, 2]);
}

#[test]
fn worlds_have_keys_behind_all_ranks_of_the_first_however_files_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let of = |world, rank| file_of_world(directory.path(), world, rank, 1, "j");
    let files = [of(1, 0), of(1, 1), of(2, 0), of(2, 1), of(3, 1)];
    merge(&files[1..4], &path("some.db"), &|_| ()).unwrap();
    merge(&[path("some.db"), files[4].clone(), files[0].clone()], &path("all.db"), &|_| ())
        .unwrap();
    let sql =
        "SELECT group_concat(rank || '=' || world || ':' || world_rank || ' sends ' || bytes, ', ')
               FROM (SELECT * FROM rank JOIN requests USING (rank) ORDER BY rank)";
    let ranks = |connection: &Connection| -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let expected = "0=1:0 sends 10, 1=1:1 sends 11, 2=2:0 sends 10, 3=2:1 sends 11, 4=3:1 sends 11";
    assert_eq!(ranks(&Database::open(&path("all.db")).unwrap().connection), expected);
    assert_eq!(ranks(&open_together(&files, &|_| (), &|_| ()).unwrap().connection), expected);
}

#[test]
fn more_files_than_can_be_attached_are_copied_together() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..130).map(|rank| file(directory.path(), rank, 1, "j")).collect();
    let copied = std::cell::Cell::new(false);
    let together = open_together(&files, &|_| copied.set(true), &|_| ()).unwrap();
    assert!(copied.get(), "SQLite attaches 125 files at the most");
    assert_eq!(rows(&together.connection).len(), 130);
    copied.set(false);
    let again = open_together(&files, &|_| copied.set(true), &|_| ()).unwrap();
    assert!(!copied.get(), "a copy of the same files is there");
    assert_eq!(rows(&again.connection).len(), 130);
    let kept = PathBuf::from(again.connection.path().unwrap());
    Connection::open(&files[7]).unwrap().execute("UPDATE call SET duration_ns = 3", []).unwrap();
    let changed = open_together(&files, &|_| copied.set(true), &|_| ()).unwrap();
    assert!(copied.get(), "one of the files has changed");
    let copies = [kept, changed.connection.path().unwrap().into()];
    copies.iter().for_each(|copy| std::fs::remove_file(copy).unwrap());
}

#[test]
fn different_runs_and_ranks_twice_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let first = file(directory.path(), 0, 1, "j");
    let refused = |second: PathBuf| {
        let output = directory.path().join("out.db");
        merge(&[first.clone(), second], &output, &|_| ()).unwrap_err().to_string()
    };
    assert!(refused(file(other.path(), 1, 1, "k")).contains("different runs"));
    assert!(refused(file(other.path(), 0, 1, "j")).contains("rank 0 is in another"));
}

#[test]
fn what_came_after_a_file_was_written_is_null_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let files = [0, 1].map(|rank| file(directory.path(), rank, 1, "j"));
    for file in &files {
        let file = Connection::open(file).unwrap();
        let row = "INSERT INTO processor SELECT rank, 1, 0, 0, 0, 1, 1, 4096 FROM rank";
        file.execute(row, []).unwrap();
    }
    let old = Connection::open(&files[1]).unwrap();
    old.execute_batch("ALTER TABLE processor DROP COLUMN peak_memory_bytes").unwrap();
    let memory = |connection: &Connection| -> Vec<Option<i64>> {
        let sql = "SELECT peak_memory_bytes FROM processor ORDER BY rank";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let together = |files: &[PathBuf]| open_together(files, &|_| (), &|_| ()).unwrap().connection;
    assert_eq!(memory(&together(&files)), [Some(4096), None]);
    assert_eq!(memory(&together(&files[1..])), [None]);
    let all = directory.path().join("all.db");
    assert!(merge(&files, &all, &|_| ()).unwrap().is_empty());
    assert_eq!(memory(&Database::open(&all).unwrap().connection), [Some(4096), None]);
}
