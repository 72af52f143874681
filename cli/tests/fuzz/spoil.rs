//! What is done to a run directory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, FileExt};
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::Connection;

use lapscope_fixture::fifo;
use lapscope_fixture::random::Random;

/// What was done.
pub struct Spoiled {
    pub name: String,
    /// Requests that are gone must be told of.
    pub rows_can_be_counted: bool,
}

const FILES: [&str; 3] = ["rank-0.db", "rank-1.db", "rank-3.spool"];

fn pick<'a, T: ?Sized>(random: &mut Random, all: &[&'a T]) -> &'a T {
    all[random.below(all.len() as i64) as usize]
}

/// Changes something in the run directory.
pub fn one(run: &Path, random: &mut Random) -> Spoiled {
    match random.below(10) {
        0 | 1 => bytes(&run.join(pick(random, &FILES[..2])), random),
        2 | 3 => bytes(&run.join(FILES[2]), random),
        4 | 5 => values(&run.join(pick(random, &FILES[..2])), random),
        6 => objects(&run.join(pick(random, &FILES[..2])), random),
        7 | 8 => texts(run, random),
        _ => names(run, random),
    }
}

fn bytes(path: &Path, random: &mut Random) -> Spoiled {
    let mut data = fs::read(path).unwrap();
    let of = path.file_name().unwrap().to_string_lossy().into_owned();
    let how = random.below(6);
    let page = 4096 * random.below(data.len() as i64 / 4096) as usize;
    match how {
        0 => data.truncate(random.below(data.len() as i64) as usize),
        1 => data[page..page + 4096].fill(random.bits() as u8),
        2 => {
            let other = 4096 * random.below(data.len() as i64 / 4096) as usize;
            data.copy_within(other..other + 4096, page);
        }
        3 => {
            // where headers are
            for _ in 0..=random.below(4) {
                data[page + random.below(128) as usize] = random.bits() as u8;
            }
        }
        _ => {
            let used: Vec<usize> = (0..data.len()).filter(|&at| data[at] != 0).collect();
            for _ in 0..=random.below(8) {
                data[used[random.below(used.len() as i64) as usize]] ^= 1 << random.below(8);
            }
        }
    }
    fs::write(path, data).unwrap();
    // A flipped bit may make a row another row, or none: what SQLite takes for the table's rows is what can be counted. Nothing
    // counts those of a spool: one bit takes an entry of a request under way out of use.
    let rows_can_be_counted = !of.ends_with(".spool");
    Spoiled { name: format!("bytes: {of}, kind {how}"), rows_can_be_counted }
}

fn value(random: &mut Random) -> Value {
    match random.below(16) {
        0 => Value::Null,
        1 => Value::Integer(-1),
        2 => Value::Integer(0),
        3 => Value::Integer(1),
        4 => Value::Integer(1 << 31),
        5 => Value::Integer(i64::MAX),
        6 => Value::Integer(i64::MIN),
        7 => Value::Integer(1_200_000_000_000_000_000),
        8 => Value::Integer(1 << 56),
        9 => Value::Integer(random.bits() as i64 >> random.below(64)),
        10 => Value::Real(1.5e300),
        11 => Value::Text("\u{1b}[31mred\u{7}\n\"'".to_owned()),
        12 => Value::Text("x".repeat(100_000)),
        13 => Value::Text(String::new()),
        14 => Value::Blob(vec![0xff; 9]),
        _ => Value::Integer(1 << 48),
    }
}

fn tables(database: &Connection) -> Vec<(String, Vec<String>)> {
    let names: Vec<String> = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let columns = |name: &String| {
        let mut statement = database.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
        let columns = statement.query_map([name], |row| row.get(0)).unwrap();
        columns.collect::<Result<_, _>>().unwrap()
    };
    names.iter().map(|name| (name.clone(), columns(name))).collect()
}

fn values(path: &Path, random: &mut Random) -> Spoiled {
    let database = Connection::open(path).unwrap();
    database.execute_batch("PRAGMA ignore_check_constraints = on").unwrap();
    let tables = tables(&database);
    let mut done = Vec::new();
    for _ in 0..=random.below(3) {
        let (table, columns) = &tables[random.below(tables.len() as i64) as usize];
        let column = &columns[random.below(columns.len() as i64) as usize];
        let value = value(random);
        let key = &columns[0];
        let rows = if random.below(4) == 0 { 1_000_000 } else { 1 };
        let sql = format!(
            "UPDATE OR IGNORE {table} SET {column} = ?1 WHERE {key} IN (SELECT {key} FROM {table} ORDER BY random() LIMIT {rows})"
        );
        // NOT NULL and keys refuse some: then there is one change less
        if database.execute(&sql, [&value]).is_ok() {
            let shown: String = format!("{value:?}").chars().take(40).collect();
            done.push(format!("{table}.{column} = {shown}"));
        }
    }
    // ids that were changed are gaps or rows elsewhere; all is told by reading it
    Spoiled { name: format!("values: {}", done.join(", ")), rows_can_be_counted: true }
}

/// Damage of the kinds that commands broke of before it was looked for, each as small as it can be: the change of a rank's database,
/// and the first words of commands that read what it changes. Not every one of these very lines broke one of them.
pub const KNOWN: [(&str, &[&str]); 10] = [
    // a time that is more than an i64 of picoseconds
    ("UPDATE request SET post_begin_ns = 1200000000000000000 WHERE id = 1", &["export"]),
    // and one that added to another is more than an i64
    ("UPDATE call SET begin_ns = 9223372036854775000 WHERE id = 2", &["report", "whatif"]),
    // more rows than the file has room for
    (
        "UPDATE request SET id = 2147483648 WHERE id = (SELECT max(id) FROM request)",
        &["overlap", "whatif", "export"],
    ),
    ("UPDATE call SET duration_ns = -5 WHERE duration_ns IS NOT NULL", &["html"]),
    (
        "INSERT INTO call SELECT id + 1000000, operation_id, thread_id, begin_ns, duration_ns, user_ns, system_ns, completed,
             receive_operation_id FROM call",
        &["report", "merge"],
    ),
    ("UPDATE rank SET world_size = 9223372036854775807", &["hang", "overlap"]),
    ("UPDATE communicator_member SET world_rank = 9223372036854775807", &["whatif", "hang"]),
    ("UPDATE rank SET host = char(27) || '[31m' || char(10)", &["live", "pending"]),
    (
        "DROP TABLE operation; CREATE VIEW operation AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
             SELECT i AS id FROM n",
        &["report", "recover"],
    ),
    ("ALTER TABLE call_path ADD COLUMN huge AS (hex(zeroblob(500000000))) VIRTUAL", &["merge"]),
];

/// Does that to the first rank.
pub fn change(run: &Path, sql: &str) {
    let database = Connection::open(run.join(FILES[0])).unwrap();
    database.execute_batch("PRAGMA ignore_check_constraints = on").unwrap();
    database.execute_batch(sql).unwrap();
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)";

fn objects(path: &Path, random: &mut Random) -> Spoiled {
    let database = Connection::open(path).unwrap();
    let tables = tables(&database);
    let (table, columns) = &tables[random.below(tables.len() as i64) as usize];
    let list = columns.iter().map(|column| format!("i AS {column}")).collect::<Vec<_>>().join(", ");
    let plain = columns.join(", ");
    let sql = match random.below(7) {
        0 | 1 => format!("DROP TABLE {table}; CREATE VIEW {table} AS {ENDLESS} SELECT {list} FROM n;"),
        2 => format!("DROP TABLE {table};"),
        3 => format!("ALTER TABLE {table} RENAME COLUMN {} TO other;", columns[0]),
        4 => format!(
            "DROP TABLE {table}; CREATE TABLE {table} ({plain}, huge AS (hex(zeroblob(500000000))) VIRTUAL);"
        ),
        5 => "DROP VIEW requests; CREATE VIEW requests AS SELECT * FROM request, request r2, request r3;".to_owned(),
        _ => format!("CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END; CREATE VIEW v AS SELECT 1;"),
    };
    let done = database.execute_batch(&sql);
    Spoiled {
        name: format!("objects: {table}: {} {done:?}", sql.chars().take(24).collect::<String>()),
        rows_can_be_counted: true,
    }
}

/// The small files of a run directory, with other contents.
fn texts(run: &Path, random: &mut Random) -> Spoiled {
    const PAGE: &str = include_str!("page.jsonl");
    const NUMBERS: [&str; 5] = ["-1", "0", "9223372036854775807", "1e999", "null"];
    let here = run.display().to_string();
    let places = [&format!("{here}/rank-3.spool"), &here, "/dev/zero", "/proc/self", ".."];
    let pointer = format!("host\t{}\n", pick(random, &places));
    let files = [
        ("job", "1409024001.f6e2.23d9\nlaunch"),
        ("rank-2.spool-at", &pointer),
        ("node-host.spool-at", &pointer),
        ("auto-host.jsonl", PAGE),
    ];
    let (name, sound) = files[random.below(files.len() as i64) as usize];
    let mut data = sound.as_bytes().to_vec();
    let how = random.below(5);
    let at = random.below(data.len() as i64) as usize;
    match how {
        0 => {}
        1 => data.truncate(at),
        2 => data[at] = random.bits() as u8,
        3 => data = data.repeat(200),
        _ => {
            let is_digit = |at: &usize| data[*at].is_ascii_digit();
            if let Some(begin) = (at..data.len()).find(is_digit) {
                let end = (begin..data.len()).find(|at| !is_digit(at)).unwrap_or(data.len());
                data.splice(begin..end, pick(random, &NUMBERS).bytes());
            }
        }
    }
    fs::write(run.join(name), data).unwrap();
    Spoiled { name: format!("texts: {name}, kind {how}"), rows_can_be_counted: true }
}

fn names(run: &Path, random: &mut Random) -> Spoiled {
    const NAMES: [&str; 16] = [
        "rank-0.db",
        "rank-1.db",
        "rank-2.db",
        "rank-3.spool",
        "rank-3.db",
        "rank-2.spool",
        "rank-2.spool-at",
        "rank-0.db-journal",
        "rank-0.db-wal",
        "world-2-rank-0.db",
        "rank-99999999999999999999.db",
        "rank--1.db",
        "job",
        "rank-2.db.part",
        "rank-0-2.db",
        "rank-18446744073709551615.spool",
    ];
    let odd = OsStr::from_bytes(b"rank-2-\x1b[31m\xff\n.db");
    let name = match random.below(8) {
        0 => odd,
        _ => OsStr::new(pick(random, &NAMES)),
    };
    let path: PathBuf = run.join(name);
    let how = random.below(7);
    let existed = path.exists();
    let _ = fs::remove_file(&path);
    match how {
        0 | 1 => fifo(&path),
        2 => symlink("/dev/zero", &path).unwrap(),
        3 => symlink(&path, &path).unwrap(),
        4 => fs::create_dir(&path).unwrap(),
        5 => {
            // sparse, and larger than memory may be
            let file = fs::File::create(&path).unwrap();
            file.write_at(b"SQLite format 3\0", 0).unwrap();
            file.set_len(3 << 30).unwrap();
        }
        _ => {
            let from = if run.join("rank-1.db").exists() { "rank-1.db" } else { "rank-0.db" };
            fs::copy(run.join(from), &path).map(|_| ()).unwrap();
        }
    }
    let shown = name.to_string_lossy().escape_debug().to_string();
    Spoiled {
        name: format!("names: {shown}, kind {how}"),
        rows_can_be_counted: existed || how == 6,
    }
}
