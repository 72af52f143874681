//! What a program of `examples/reach` measured of itself, and what lapscope saw of its words, by SQL.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::{child, paths, rows};

/// The tag of messages that `examples/reach/reach.*` measures.
pub const TAG: i64 = 300;

/// Words that `reach -v` consumes at once.
const VECTOR: usize = 64;

/// A table that a program of `examples` printed (README.md there).
#[derive(Debug)]
pub struct Table {
    attributes: BTreeMap<String, String>,
    rows: Vec<BTreeMap<String, f64>>,
}

impl Table {
    /// The tables of that name.
    ///
    /// # Panics
    /// When there is none, or one has something else than numbers.
    pub fn all(printed: &str, name: &str) -> Vec<Self> {
        let lines: Vec<&str> = printed.lines().collect();
        let head = format!("table {name} ");
        let begins = (0..lines.len()).filter(|&at| lines[at].starts_with(&head));
        let tables: Vec<Self> = begins.map(|at| Self::read(&lines[at..])).collect();
        assert!(!tables.is_empty(), "no table {name} in {printed}");
        tables
    }

    fn read(lines: &[&str]) -> Self {
        let attributes = lines[0].split(' ').filter_map(|word| word.split_once('='));
        let attributes = attributes.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let names: Vec<&str> = lines[1].split_whitespace().collect();
        let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{word} in {lines:?}"));
        let row = |line: &&str| {
            let values = line.split_whitespace().map(number);
            names.iter().map(|&name| name.to_owned()).zip(values).collect()
        };
        let rows = lines[2..].iter().take_while(|line| line.starts_with(' ')).map(row).collect();
        Self { attributes: attributes.collect(), rows }
    }

    /// # Panics
    /// When it is not there.
    pub fn value(&self, row: usize, column: &str) -> f64 {
        *self.rows[row].get(column).unwrap_or_else(|| panic!("no {column} in {self:?}"))
    }

    pub fn is(&self, key: &str, value: &str) -> bool {
        self.attributes.get(key).is_some_and(|found| found == value)
    }
}

/// What `examples/reach/reach.*` printed.
#[derive(Debug)]
pub struct Known(Table);

impl Known {
    /// # Panics
    /// When there is no such table.
    pub fn parse(printed: &str) -> Self {
        Self(Table::all(printed, "reach").remove(0))
    }

    /// # Panics
    /// When the program did not print it.
    pub fn value(&self, rank: usize, column: &str) -> f64 {
        self.0.value(rank, column)
    }

    pub fn ranks(&self) -> usize {
        self.0.rows.len()
    }

    fn words(&self) -> usize {
        self.value(0, "words") as usize
    }

    /// P(i) or C(i) of all words of a message: the place of each in that order.
    fn places(&self, side: &str) -> Vec<usize> {
        let (key, vectors) = match side {
            "send" => ("produced", false),
            _ => ("consumed", self.0.is("consumption", "vectors")),
        };
        let size = if vectors { VECTOR } else { 1 };
        let order = order(&self.0.attributes[key], self.words() / size);
        let mut places = vec![0; self.words()];
        for (place, &number) in order.iter().enumerate() {
            for word in 0..size {
                places[number * size + word] = place * size;
            }
        }
        places
    }

    /// What hits have cost the program is no work on words: so many nanoseconds in all, on a rank.
    pub fn take_off(&mut self, rank: usize, side: &str, hits_ns: f64) {
        let writes = self.0.attributes["writes"].parse::<f64>().expect("a number of writes");
        let writes = if side == "send" { writes } else { 1.0 };
        let words = self.value(rank, "iterations") * self.value(rank, "words") * writes;
        let column = if side == "send" { "t_p_ns" } else { "t_c_ns" };
        *self.0.rows[rank].get_mut(column).expect("a column") -= hits_ns / words;
    }

    /// The order in which words are produced (of sends) or consumed, as an attribute has it.
    pub fn order(&self, side: &str) -> &str {
        let pipelined = self.0.is("kernel", "pipelined");
        let key = if side == "send" || pipelined { "produced" } else { "consumed" };
        &self.0.attributes[key]
    }

    pub fn kernel(&self) -> &str {
        &self.0.attributes["kernel"]
    }

    /// T_P or T_C on a rank: nanoseconds.
    pub fn word(&self, rank: usize, side: &str) -> f64 {
        self.value(rank, if side == "send" { "t_p_ns" } else { "t_c_ns" })
    }

    /// How long before the post each word of a send was written, or behind the wait each of a receive was touched, on a rank:
    /// nanoseconds.
    pub fn reach(&self, rank: usize, side: &str) -> Vec<f64> {
        let (word, other) =
            if side == "send" { ("t_p_ns", "t_ap_ns") } else { ("t_c_ns", "t_ac_ns") };
        let (word, other) = (self.value(rank, word), self.value(rank, other));
        let last = self.words() - 1;
        let behind = |&place: &usize| (if side == "send" { last - place } else { place }) as f64;
        self.places(side).iter().map(|place| other + word * behind(place)).collect()
    }
}

/// The order of that name, as the programs make it.
fn order(kind: &str, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = 12345u32;
    match kind {
        "reverse" => order.reverse(),
        "random" => {
            for i in (1..count).rev() {
                state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                order.swap(i, (state >> 8) as usize % (i + 1));
            }
        }
        _ => assert_eq!(kind, "same"),
    }
    order
}

/// A row of `watch`.
#[derive(Debug, Clone)]
pub struct Watch {
    pub side: String,
    pub result: String,
    pub toucher: String,
    /// Bytes from the begin of the buffer.
    pub offset: usize,
    /// Time of the application between the touch and the post, or the wait: nanoseconds.
    pub away: f64,
    /// Lines of the instruction that touched, the innermost function first: `reach.c:84`.
    pub lines: Vec<String>,
    /// Lines of the instruction that copied, where the copy was watched.
    pub copied_by: Option<Vec<String>>,
}

type Place = (String, u64);

/// The lines at an address of a file: of the function and of those it is inlined in.
fn lines_at(places: &[Place]) -> BTreeMap<Place, Vec<String>> {
    static KNOWN: Mutex<BTreeMap<Place, Vec<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = |(file, address): &Place| -> Vec<String> {
        let mut command = child::command("addr2line");
        command.args(["-i", "-e", file, &format!("{address:#x}")]);
        let output = command.output().expect("addr2line runs");
        let line = |line: &str| {
            let line = line.split(" (").next().unwrap_or(line);
            line.rsplit('/').next().unwrap_or(line).to_owned()
        };
        String::from_utf8_lossy(&output.stdout).lines().map(line).collect()
    };
    let found = places.iter().map(|place| {
        let lines = known.entry(place.clone()).or_insert_with(|| ask(place)).clone();
        (place.clone(), lines)
    });
    found.collect()
}

/// The instruction of each call path: its file and an address in it.
fn instructions(database: &Connection) -> BTreeMap<i64, Place> {
    let query = "SELECT call_path_id, path, address - 1 FROM frame JOIN module m ON m.id = module_id WHERE depth = 0";
    let mut statement = database.prepare(query).expect("frames");
    let read = |row: &rusqlite::Row| Ok((row.get(0)?, (row.get(1)?, row.get::<_, i64>(2)? as u64)));
    let found = statement.query_map([], read).expect("rows").map(|row| row.expect("a row"));
    found.collect()
}

/// The watched words of messages with a tag, of one rank.
///
/// # Panics
/// When they cannot be read.
pub fn watches(database: &Connection, tag: i64) -> Vec<Watch> {
    let instructions = instructions(database);
    let mut statement = database
        .prepare(
            "SELECT side, result, ifnull(toucher, ''), offset, away_ns - away_mpi_ns, w.call_path_id, copy_path_id
             FROM watch w JOIN operation o ON o.id = operation_id WHERE ifnull(posted_tag, tag) = ?1 ORDER BY w.id",
        )
        .expect("format 8");
    let used: Vec<i64> = {
        let query = "SELECT call_path_id FROM watch UNION SELECT copy_path_id FROM watch";
        let mut used = database.prepare(query).expect("watches");
        let paths = used.query_map([], |row| row.get::<_, Option<i64>>(0)).expect("rows");
        paths.filter_map(|path| path.expect("a row")).collect()
    };
    let places: Vec<Place> =
        used.iter().filter_map(|path| instructions.get(path)).cloned().collect();
    let lines = lines_at(&places);
    let lines_of = |path: Option<i64>| {
        let place = path.and_then(|path| instructions.get(&path));
        place.map_or_else(Vec::new, |place| lines[place].clone())
    };
    let read = |row: &rusqlite::Row| {
        let copy: Option<i64> = row.get(6)?;
        Ok(Watch {
            side: row.get(0)?,
            result: row.get(1)?,
            toucher: row.get(2)?,
            offset: row.get::<_, i64>(3)? as usize,
            away: row.get::<_, i64>(4)? as f64,
            lines: lines_of(row.get(5)?),
            copied_by: copy.map(|path| lines_of(Some(path))),
        })
    };
    let found = statement.query_map([tag], read).expect("rows").map(|row| row.expect("a row"));
    found.collect()
}

/// What an access to a watched word costs the program, as lapscope measured it: nanoseconds.
pub fn hit_ns(database: &Connection) -> f64 {
    let text = rows::value(database, "SELECT ifnull(hit_ns, 0) FROM watcher");
    text.parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// What accesses to watched words of messages with a tag have cost the program, of one side: nanoseconds.
pub fn hits_ns(database: &Connection, tag: i64, side: &str) -> f64 {
    let query = format!(
        "SELECT ifnull(sum(hits), 0) FROM watch w JOIN operation o ON o.id = operation_id
         WHERE ifnull(posted_tag, tag) = {tag} AND side = '{side}' AND toucher = 'program' AND copy_path_id IS NULL"
    );
    let hits: f64 = rows::value(database, &query).parse().expect("a sum");
    hits * hit_ns(database)
}

/// The line of a source of `examples/reach` that has this mark: `reach.c:84`.
///
/// # Panics
/// When there is not exactly one.
pub fn marked(source: &str, mark: &str) -> String {
    let path = source_of(source);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mark = format!("reach: {mark}");
    let is_marked = |line: &str| line.trim_end().trim_end_matches("*/").trim_end().ends_with(&mark);
    let found: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_marked(line))
        .map(|(at, _)| at + 1)
        .collect();
    assert_eq!(found.len(), 1, "{mark} in {}: {found:?}", path.display());
    format!("{source}:{}", found[0])
}

fn source_of(source: &str) -> PathBuf {
    paths::root().join("examples/reach").join(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
# a note
table reach kernel=concurrent produced=reverse consumed=random exchange=nonblocking consumption=words buffers=direct writes=1
  rank words iterations t_p_ns t_p_ns_lo t_p_ns_hi t_c_ns t_c_ns_lo t_c_ns_hi t_ap_ns t_ap_ns_lo t_ap_ns_hi t_ac_ns t_ac_ns_lo t_ac_ns_hi sum
  0 4 2 10 9 11 100 90 110 1000 900 1100 5000 4900 5100 1.5
  1 4 2 20 9 11 100 90 110 1000 900 1100 5000 4900 5100 1.5
";

    #[test]
    fn times_of_words() {
        let known = Known::parse(PRINTED);
        assert_eq!(known.ranks(), 2);
        // word 3 is produced first
        assert_eq!(known.reach(0, "send"), [1000.0, 1010.0, 1020.0, 1030.0]);
        let mut received = known.reach(1, "receive");
        received.sort_by(f64::total_cmp);
        assert_eq!(received, [5000.0, 5100.0, 5200.0, 5300.0]);
    }

    #[test]
    fn vectors_are_touched_at_once() {
        let printed = PRINTED.replace("=words", "=vectors").replace("=random", "=reverse");
        let known = Known::parse(&printed.replace(" 4 2 ", " 128 2 "));
        let received = known.reach(0, "receive");
        assert_eq!((received[0], received[63]), (11400.0, 11400.0));
        assert_eq!((received[64], received[127]), (5000.0, 5000.0));
    }

    #[test]
    fn marks_are_there() {
        for (source, mark) in [
            ("reach.c", "last write"),
            ("reach.c", "first touch"),
            ("reach.c", "first touch of a vector"),
            ("reach.cpp", "first touch"),
            ("reach.f90", "last write"),
        ] {
            assert!(marked(source, mark).starts_with(source));
        }
    }
}
