//! Results in a SQLite file, `schema/bench.sql`: written run by run, so that what was measured is there whatever happens next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use rusqlite::{params, Connection, OpenFlags};

use super::results::{
    AdviceGiven, Inject, Link, MpiFacts, Results, Run, Segment, Spread, Table, TableRow, Threshold,
    Value,
};

const SCHEMA: &str = include_str!("../../../schema/bench.sql");
const APPLICATION_ID: i64 = 1_279_349_570;
const FORMAT: i64 = 2;

/// A file that results are added to.
pub struct ResultsWriter {
    path: PathBuf,
    connection: Connection,
    runs: i64,
    series: i64,
}

impl ResultsWriter {
    /// Makes the file.
    ///
    /// # Errors
    /// It is there already, or cannot be written.
    pub fn create(path: &Path, results: &Results) -> anyhow::Result<ResultsWriter> {
        if path.exists() {
            bail!("{} is there already; name another with --output", path.display());
        }
        let make = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.execute_batch(SCHEMA)?;
            for (name, value) in &results.facts {
                connection.execute("INSERT INTO fact VALUES (?, ?)", [name, value])?;
            }
            for (place, mpi) in results.mpis.iter().enumerate() {
                let MpiFacts { name, version, compiler, launcher } = mpi;
                let values = params![place as i64, name, version, compiler, launcher];
                connection.execute("INSERT INTO mpi VALUES (?, ?, ?, ?, ?)", values)?;
            }
            Ok(connection)
        };
        let connection = make().with_context(|| path.display().to_string())?;
        Ok(ResultsWriter { path: path.to_owned(), connection, runs: 0, series: 0 })
    }

    /// Adds a run, all of it or nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, run: &Run) -> anyhow::Result<()> {
        self.insert(run).with_context(|| self.path.display().to_string())
    }

    fn insert(&mut self, run: &Run) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let id = self.runs;
        transaction.execute(
            "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                id,
                run.mpi as i64,
                run.link.key(),
                run.inject.key(),
                run.program,
                run.arguments,
                run.settings,
                run.ranks,
                run.seconds,
                run.problem
            ],
        )?;
        for table in &run.tables {
            insert_table(&transaction, table, (id, self.series))?;
            self.series += 1;
        }
        insert_answers(&transaction, run, id)?;
        transaction.commit()?;
        self.runs += 1;
        Ok(())
    }
}

fn insert_table(
    connection: &Connection,
    table: &Table,
    (run, series): (i64, i64),
) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO series VALUES (?, ?, ?)", params![series, run, table.name])?;
    for (name, value) in &table.attributes {
        let values = params![series, name, value];
        connection.execute("INSERT INTO attribute VALUES (?, ?, ?)", values)?;
    }
    let mut insert =
        connection.prepare_cached("INSERT INTO point VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?;
    for (place, row) in table.rows.iter().enumerate() {
        for (quantity, Value { program, outside }) in &row.values {
            let median = |spread: &Option<Spread>| spread.map(|spread| spread.median);
            let low = |spread: &Option<Spread>| spread.and_then(|spread| spread.low);
            let high = |spread: &Option<Spread>| spread.and_then(|spread| spread.high);
            insert.execute(params![
                series,
                place as i64,
                quantity,
                median(program),
                low(program),
                high(program),
                median(outside),
                low(outside),
                high(outside)
            ])?;
        }
    }
    Ok(())
}

fn insert_answers(connection: &Connection, run: &Run, id: i64) -> rusqlite::Result<()> {
    for found in &run.thresholds {
        connection.execute(
            "INSERT INTO threshold VALUES (?, ?, ?, ?, ?, ?)",
            params![
                id,
                found.what,
                found.largest_eager_bytes,
                found.smallest_waiting_bytes,
                found.verdict,
                found.sentence
            ],
        )?;
    }
    for segment in &run.segments {
        let Segment { tag, rank, begin_ns, end_ns, what } = segment;
        let values = params![id, tag, rank, begin_ns, end_ns, what];
        connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)", values)?;
    }
    for (place, advice) in run.advice.iter().enumerate() {
        let AdviceGiven { cure, share, sentence } = advice;
        let values = params![id, place as i64, cure, share, sentence];
        connection.execute("INSERT INTO advice VALUES (?, ?, ?, ?, ?)", values)?;
    }
    Ok(())
}

// --- reading -----------------------------------------------------------------------------------------------------

/// Reads what [`ResultsWriter`] wrote.
///
/// # Errors
/// It cannot be read, is something else, or of another format.
pub fn read(path: &Path) -> anyhow::Result<Results> {
    let open = || -> rusqlite::Result<(Connection, i64, i64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        let (id, format) = (pragma("application_id")?, pragma("user_version")?);
        Ok((connection, id, format))
    };
    let (connection, id, format) = open().with_context(|| path.display().to_string())?;
    if id != APPLICATION_ID {
        bail!(
            "{}: not a file of lapscope bench; those are made by `lapscope bench --output FILE`",
            path.display()
        );
    }
    if format != FORMAT {
        bail!(
            "{}: format {format}, this lapscope reads {FORMAT}; run `lapscope bench` anew",
            path.display()
        );
    }
    read_all(&connection).with_context(|| path.display().to_string())
}

fn read_all(connection: &Connection) -> rusqlite::Result<Results> {
    let facts =
        collect(connection, "SELECT name, value FROM fact", |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mpis = collect(
        connection,
        "SELECT name, version, compiler, launcher FROM mpi ORDER BY mpi",
        |row| {
            Ok(MpiFacts {
                name: row.get(0)?,
                version: row.get(1)?,
                compiler: row.get(2)?,
                launcher: row.get(3)?,
            })
        },
    )?;
    let mut runs: Vec<Run> = collect(connection, "SELECT * FROM run ORDER BY run", read_run)?;
    for (id, run) in runs.iter_mut().enumerate() {
        read_tables(connection, id as i64, run)?;
        read_answers(connection, id as i64, run)?;
    }
    Ok(Results { facts: facts.into_iter().collect(), mpis, runs })
}

fn collect<T>(
    connection: &Connection,
    query: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(query)?.query_map([], read)?.collect()
}

fn read_run(row: &rusqlite::Row<'_>) -> rusqlite::Result<Run> {
    let (link, inject): (String, String) = (row.get("link")?, row.get("inject")?);
    Ok(Run {
        mpi: row.get::<_, i64>("mpi")? as usize,
        link: *Link::ALL.iter().find(|known| known.key() == link).unwrap_or(&Link::SharedMemory),
        inject: *Inject::ALL.iter().find(|known| known.key() == inject).unwrap_or(&Inject::Off),
        program: row.get("program")?,
        arguments: row.get("arguments")?,
        settings: row.get("settings")?,
        ranks: row.get("ranks")?,
        seconds: row.get("seconds")?,
        problem: row.get("problem")?,
        tables: Vec::new(),
        thresholds: Vec::new(),
        segments: Vec::new(),
        advice: Vec::new(),
    })
}

fn read_tables(connection: &Connection, id: i64, run: &mut Run) -> rusqlite::Result<()> {
    let query = format!("SELECT series, name FROM series WHERE run = {id} ORDER BY series");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
    for (series, name) in collect(connection, &query, read)? {
        let query = format!("SELECT name, value FROM attribute WHERE series = {series}");
        let attributes = collect(connection, &query, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let attributes: BTreeMap<String, String> = attributes.into_iter().collect();
        let mut rows: BTreeMap<i64, TableRow> = BTreeMap::new();
        let query = format!("SELECT * FROM point WHERE series = {series}");
        for (place, quantity, value) in collect(connection, &query, read_point)? {
            rows.entry(place).or_default().values.insert(quantity, value);
        }
        run.tables.push(Table { name, attributes, rows: rows.into_values().collect() });
    }
    Ok(())
}

fn read_point(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, String, Value)> {
    let spread = |names: [&str; 3]| -> rusqlite::Result<Option<Spread>> {
        let median: Option<f64> = row.get(names[0])?;
        let (low, high) = (row.get(names[1])?, row.get(names[2])?);
        Ok(median.map(|median| Spread { median, low, high }))
    };
    let program = spread(["value", "low", "high"])?;
    let outside = spread(["outside", "outside_low", "outside_high"])?;
    Ok((row.get("place")?, row.get("quantity")?, Value { program, outside }))
}

fn read_answers(connection: &Connection, id: i64, run: &mut Run) -> rusqlite::Result<()> {
    let query = format!("SELECT * FROM threshold WHERE run = {id} ORDER BY rowid");
    run.thresholds = collect(connection, &query, |row| {
        Ok(Threshold {
            what: row.get("what")?,
            largest_eager_bytes: row.get("largest_eager_bytes")?,
            smallest_waiting_bytes: row.get("smallest_waiting_bytes")?,
            verdict: row.get("verdict")?,
            sentence: row.get("sentence")?,
        })
    })?;
    let query = format!("SELECT * FROM segment WHERE run = {id} ORDER BY rowid");
    run.segments = collect(connection, &query, |row| {
        Ok(Segment {
            tag: row.get("tag")?,
            rank: row.get("rank")?,
            begin_ns: row.get("begin_ns")?,
            end_ns: row.get("end_ns")?,
            what: row.get("what")?,
        })
    })?;
    let query = format!("SELECT * FROM advice WHERE run = {id} ORDER BY place");
    run.advice = collect(connection, &query, |row| {
        Ok(AdviceGiven {
            cure: row.get("cure")?,
            share: row.get("share")?,
            sentence: row.get("sentence")?,
        })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let spread = Spread { median: 3.5, low: Some(3.0), high: None };
        let values = [
            ("bytes".to_owned(), Value { program: Some(spread), outside: None }),
            ("wait_us".to_owned(), Value { program: Some(spread), outside: Some(spread) }),
            ("arrived_us".to_owned(), Value::default()),
        ];
        let table = Table {
            name: "steps".into(),
            attributes: [("side".to_owned(), "send".to_owned())].into(),
            rows: vec![TableRow { values: values.into() }; 2],
        };
        let segment = Segment { tag: 7, rank: 1, begin_ns: 0, end_ns: 9, what: "compute".into() };
        let threshold = Threshold {
            what: "rendezvous".into(),
            largest_eager_bytes: Some(4096),
            smallest_waiting_bytes: None,
            verdict: "always_eager".into(),
            sentence: "x".into(),
        };
        let advice = AdviceGiven { cure: "test".into(), share: 0.25, sentence: "y".into() };
        let run = Run {
            mpi: 0,
            link: Link::SlowLink,
            inject: Inject::Timer,
            program: "overlap".into(),
            arguments: "-r 5".into(),
            settings: String::new(),
            ranks: 2,
            seconds: 1.5,
            problem: None,
            tables: vec![table.clone(), table],
            thresholds: vec![threshold],
            segments: vec![segment],
            advice: vec![advice],
        };
        let failed = Run { problem: Some("it hung".into()), tables: Vec::new(), ..run.clone() };
        let mpi = MpiFacts {
            name: "openmpi".into(),
            version: "Open MPI v4.1.4".into(),
            compiler: "mpicc".into(),
            launcher: "mpirun".into(),
        };
        let facts = [("host".to_owned(), "a".to_owned())].into();
        Results { facts, mpis: vec![mpi], runs: vec![run, failed] }
    }

    #[test]
    fn what_was_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bench.db");
        let results = results();
        let mut writer = ResultsWriter::create(&path, &results).unwrap();
        results.runs.iter().for_each(|run| writer.add(run).unwrap());
        assert_eq!(read(&path).unwrap(), results);
        let error = ResultsWriter::create(&path, &results).err().unwrap().to_string();
        assert!(error.contains("is there already"), "{error}");
    }

    #[test]
    fn other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("not a file of lapscope bench"));
        std::fs::write(&path, "no database at all, but a text of some length").unwrap();
        assert!(read(&path).is_err());
    }
}
