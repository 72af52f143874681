//! What lapscope recorded, as rows of named values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// The fields of a row by name; SQL's NULL is `NULL`.
pub type Fields = BTreeMap<String, String>;

/// One kind of row of one rank. Rows that agree in all fields are one [`RecordedRow`] with their count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedRow {
    /// `0`; a rank of a spawned world as `2:0`
    pub rank: String,
    /// `request`, `call`, `tally`, `comm`, `mark` or `unknown`
    pub table: String,
    /// Name of the call, or of the call that made a communicator; of a mark, with `_` for blanks, `-` where it has none.
    pub name: String,
    /// `send`, `recv`, `collective`, `rma`, `io`, `generalized`, `other`; `intra`, `inter`; `unsuccessful_test`, `summary`; a mark's level
    pub kind: String,
    pub fields: Fields,
}

/// Each query's first columns are rank, name, kind and count; the others are fields.
const QUERIES: &[(&str, &str)] = &[
    (
        "request",
        "SELECT r.rank, r.call AS name, r.kind, count(*),
                r.bytes, r.peer, r.tag, r.ended, r.completion_call AS 'by',
                r.posted_peer, r.posted_tag, r.posted_bytes, r.unsuccessful_tests,
                iif(r.first_complete_ns IS NULL, 'no', 'yes') AS seen_complete,
                c.name AS comm, r.thread, t.number AS by_thread, i.name AS init,
                half.bytes AS receive_bytes, half.peer AS receive_peer, half.tag AS receive_tag
         FROM requests r JOIN request q ON q.id = r.id JOIN operation o ON o.id = q.operation_id
              LEFT JOIN communicator c ON c.id = r.communicator_id
              LEFT JOIN operation made ON made.id = o.init_operation_id LEFT JOIN call_name i ON i.id = made.call_id
              LEFT JOIN operation half ON half.id = o.receive_operation_id
              LEFT JOIN call ON call.id = r.completion_id LEFT JOIN thread t ON t.id = call.thread_id
         GROUP BY r.rank, r.call, r.kind, r.bytes, r.peer, r.tag, r.ended, r.completion_call, r.posted_peer, r.posted_tag,
                  r.posted_bytes, r.unsuccessful_tests, seen_complete, c.name, r.thread, t.number, i.name, half.bytes, half.peer, half.tag",
    ),
    (
        "call",
        "SELECT r.rank, r.call AS name, r.kind, count(*),
                r.bytes, r.peer, r.tag, r.completed, r.receive_bytes, r.receive_peer, r.receive_tag,
                r.posted_peer, r.posted_tag, r.posted_bytes, c.name AS comm, r.thread
         FROM calls r LEFT JOIN communicator c ON c.id = r.communicator_id
         GROUP BY r.rank, r.call, r.kind, r.bytes, r.peer, r.tag, r.completed, r.receive_bytes, r.receive_peer,
                  r.receive_tag, r.posted_peer, r.posted_tag, r.posted_bytes, c.name, r.thread",
    ),
    (
        "tally",
        "SELECT t.rank, n.name, t.reason, sum(t.count) FROM tally t JOIN call_name n ON n.id = t.call_id
         GROUP BY t.rank, n.name, t.reason",
    ),
    (
        "comm",
        "SELECT rank, name, kind, count(*), size, remote_size, comm_rank, members, remote_members FROM
           (SELECT c.rank, c.name, c.kind, c.size, c.remote_size, c.comm_rank,
                   (SELECT group_concat(ifnull(world_rank, 'NULL')) FROM (SELECT world_rank FROM communicator_member m
                      WHERE m.communicator_id = c.id AND NOT remote ORDER BY comm_rank)) AS members,
                   (SELECT group_concat(ifnull(world_rank, 'NULL')) FROM (SELECT world_rank FROM communicator_member m
                      WHERE m.communicator_id = c.id AND remote ORDER BY comm_rank)) AS remote_members
            FROM communicator c)
         GROUP BY rank, name, kind, size, remote_size, comm_rank, members, remote_members",
    ),
    (
        "mark",
        "SELECT rank, replace(ifnull(name, '-'), ' ', '_'), level, count(*), thread_id - (SELECT min(id) FROM thread) AS thread
         FROM mark GROUP BY rank, name, level, thread_id",
    ),
    ("unknown", "SELECT rank, '', '', unknown_requests FROM rank WHERE unknown_requests > 0"),
];

fn text(value: ValueRef) -> String {
    match value {
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Null | ValueRef::Blob(_) => "NULL".to_owned(),
    }
}

/// Opens a database for reading.
///
/// # Panics
/// When it cannot be opened.
pub fn open(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The databases of a run directory, in the order of their names.
pub fn databases(run: &Path) -> Vec<PathBuf> {
    files(run).into_iter().filter(|path| path.extension().is_some_and(|end| end == "db")).collect()
}

/// All files of a directory in the order of their names; none when it does not exist.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// The members of a communicator whose members are left out: world rank = rank in it.
fn spell_out_members(fields: &mut Fields) {
    let size: u32 = fields["size"].parse().unwrap_or(0);
    if fields["members"] == "NULL" {
        let all: Vec<_> = (0..size).map(|rank| rank.to_string()).collect();
        fields.insert("members".to_owned(), all.join(","));
    }
}

/// All rows of one database with their counts.
///
/// # Panics
/// When a query fails.
pub fn read(database: &Connection) -> Vec<(RecordedRow, u64)> {
    let rank = value(database, "SELECT iif(world = 1, '', world || ':') || world_rank FROM rank");
    let mut rows = Vec::new();
    for (table, query) in QUERIES {
        let mut statement =
            database.prepare(query).unwrap_or_else(|error| panic!("{table}: {error}"));
        let names: Vec<String> =
            statement.column_names().iter().map(|&name| name.to_owned()).collect();
        let mut found = statement.query([]).expect("rows");
        while let Some(row) = found.next().expect("a row") {
            let mut fields: Fields = (4..names.len())
                .map(|column| (names[column].clone(), text(row.get_ref(column).expect("a column"))))
                .collect();
            if *table == "comm" {
                spell_out_members(&mut fields);
            }
            let get = |column| text(row.get_ref(column).expect("a column"));
            rows.push((
                RecordedRow {
                    rank: rank.clone(),
                    table: (*table).to_owned(),
                    name: get(1),
                    kind: get(2),
                    fields,
                },
                row.get(3).expect("a count"),
            ));
        }
    }
    rows
}

/// All rows of a run directory.
pub fn read_run(run: &Path) -> Vec<(RecordedRow, u64)> {
    databases(run).iter().flat_map(|path| read(&open(path))).collect()
}

/// One value of one row, as text.
///
/// # Panics
/// When the query fails or has no row.
pub fn value(database: &Connection, query: &str) -> String {
    database
        .query_row(query, [], |row| Ok(text(row.get_ref(0)?)))
        .unwrap_or_else(|error| panic!("{query}: {error}"))
}
