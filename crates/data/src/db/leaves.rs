//! Rows of a big table straight from the pages that hold them. SQLite gives the pages (`sqlite_dbpage`: with its locks, its journal and
//! its cache); plain rows of integers are decoded here, in a fraction of the time that its machine takes for them. Whatever is
//! anything else is left to SQLite, which says what there is to say of it: a text, a row that goes on in another page, a page that does
//! not hold together. The format: <https://sqlite.org/fileformat2.html#b_tree_pages>.

use rusqlite::{CachedStatement, Connection, OptionalExtension};

use super::query_row;

/// Files with fewer pages are read before this is set up.
const FEWEST_PAGES: i64 = 8;
/// The most pages from the root of a table to its rows, as SQLite has it.
const DEEPEST: usize = 20;
/// Columns that can be asked for.
const MOST_COLUMNS: usize = 32;
/// What may be read behind the last byte of a page.
const PADDING: usize = 8;

/// What is there next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Row,
    End,
    /// SQLite has to say.
    Unknown,
}

/// The rows of a table in the order of their ids.
pub(super) struct Leaves<'c> {
    pages: CachedStatement<'c>,
    /// Pages that may still be read: a tree has no more than the file.
    left: i64,
    /// Bytes of a page that hold cells.
    usable: usize,
    /// From the root to the page above the leaf.
    path: Vec<TreePage>,
    leaf: TreePage,
    /// By the column of the table, as far as the last that is wanted: where its value goes.
    targets: Vec<Option<usize>>,
    /// The column that is another name of the row's number.
    id: usize,
    values: Vec<i64>,
    /// A bit for each value.
    nulls: u32,
}

#[derive(Default)]
struct TreePage {
    bytes: Vec<u8>,
    is_leaf: bool,
    cells: usize,
    /// The cell, or behind the last one of a page that is no leaf its last child, that comes next.
    next: usize,
}

impl<'c> Leaves<'c> {
    /// `None`: SQLite had better read it.
    pub fn of(
        connection: &'c Connection,
        table: &str,
        columns: &[&str],
    ) -> rusqlite::Result<Option<Leaves<'c>>> {
        let left: i64 = query_row(connection, "PRAGMA page_count", [], |row| row.get(0))?;
        if left < FEWEST_PAGES || columns.len() > MOST_COLUMNS {
            return Ok(None);
        }
        let root = "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let root: Option<i64> =
            query_row(connection, root, [table], |row| row.get(0)).optional()?;
        let stored = connection.prepare_cached(&format!("SELECT * FROM {table}"))?;
        let stored = stored.column_names();
        let place = |wanted: &str| stored.iter().position(|column| *column == wanted);
        let wanted: Option<Vec<usize>> = columns.iter().map(|column| place(column)).collect();
        let pages = connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1");
        let (Some(root), Some(wanted), Some(id), Ok(pages)) = (root, wanted, place("id"), pages)
        else {
            return Ok(None);
        };
        let last = wanted.iter().copied().max().unwrap_or(0);
        let target = |column| wanted.iter().position(|place| *place == column);
        let mut leaves = Leaves {
            pages,
            left,
            usable: 0,
            path: Vec::new(),
            leaf: TreePage::default(),
            targets: (0..=last).map(target).collect(),
            id,
            values: vec![0; columns.len()],
            nulls: 0,
        };
        const RESERVED_AT: usize = 20; // in the header of the file: bytes at the end of each page
        let Some(first) = leaves.fetch(1) else { return Ok(None) };
        let reserved = usize::from(first[RESERVED_AT]);
        leaves.usable = first.len().saturating_sub(PADDING + reserved);
        Ok(leaves.descend(root).map(|()| leaves))
    }

    /// Of the row that was last read.
    #[inline]
    pub fn value(&self, column: usize) -> Option<i64> {
        let value = *self.values.get(column)?;
        (self.nulls >> column & 1 == 0).then_some(value)
    }

    pub fn step(&mut self) -> Next {
        while self.leaf.next == self.leaf.cells {
            match self.next_leaf() {
                Next::Row => {}
                other => return other,
            }
        }
        match self.read_row() {
            Some(()) => Next::Row,
            None => Next::Unknown,
        }
    }

    /// [`Next::Row`]: there is another leaf.
    fn next_leaf(&mut self) -> Next {
        while let Some(above) = self.path.last_mut() {
            if above.next > above.cells {
                self.path.pop();
                continue;
            }
            let child = above.child();
            above.next += 1;
            return match child.and_then(|child| self.descend(child)) {
                Some(()) => Next::Row,
                None => Next::Unknown,
            };
        }
        Next::End
    }

    /// To the first leaf below a page.
    fn descend(&mut self, page: i64) -> Option<()> {
        let mut number = page;
        loop {
            let mut page = TreePage::parse(self.fetch(number)?, self.usable)?;
            if page.is_leaf {
                self.leaf = page;
                return Some(());
            }
            if self.path.len() == DEEPEST {
                return None;
            }
            number = page.child()?;
            page.next = 1;
            self.path.push(page);
        }
    }

    /// A page, with [`PADDING`] behind it.
    fn fetch(&mut self, page: i64) -> Option<Vec<u8>> {
        self.left -= 1;
        if self.left < -1 {
            return None; // the first page was read for what it says of all
        }
        let mut bytes = std::mem::take(&mut self.leaf.bytes);
        bytes.clear();
        let read = self.pages.query_row([page], |row| {
            bytes.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        read.ok()?;
        bytes.resize(bytes.len() + PADDING, 0);
        Some(bytes)
    }

    /// `None`: it is not as rows of integers are.
    #[inline]
    fn read_row(&mut self) -> Option<()> {
        let TreePage { bytes, next, .. } = &mut self.leaf;
        let mut at = cell_at(bytes, LEAF_HEADER, *next);
        *next += 1;
        let length = varint(bytes, &mut at)?;
        let most = self.usable.saturating_sub(ELSEWHERE);
        let length = usize::try_from(length).ok().filter(|&length| length <= most)?;
        let row_id = varint(bytes, &mut at)? as i64;
        let record = at;
        let end = Some(record + length).filter(|&end| end <= self.usable)?;
        let head = usize::try_from(varint(bytes, &mut at)?).ok().filter(|&head| head <= length)?;
        let mut value = record + head;
        let kinds_end = value;
        self.nulls = 0;
        for (column, target) in self.targets.iter().enumerate() {
            if at >= kinds_end {
                return None; // a column that the table got later: SQLite knows what stands for it
            }
            let kind = varint(bytes, &mut at)?;
            let size = *SIZES.get(usize::try_from(kind).ok()?)?;
            if at > kinds_end || value + size > end {
                return None;
            }
            if let Some(target) = *target {
                let is_null = kind == 0;
                self.values[target] = match kind {
                    0 if column == self.id => row_id,
                    _ if column == self.id => return None,
                    0 => 0,
                    7 => return None, // a float
                    8 | 9 => kind as i64 - 8,
                    _ => big_endian(bytes, value) >> (64 - 8 * size),
                };
                self.nulls |= u32::from(is_null && column != self.id) << target;
            }
            value += size;
        }
        Some(())
    }
}

/// Bytes of a value by its kind in a record.
const SIZES: [usize; 10] = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
/// A row that leaves fewer bytes of a page goes on in another.
const ELSEWHERE: usize = 35;
/// Bytes before the places of cells.
const LEAF_HEADER: usize = 8;
const INNER_HEADER: usize = 12;

impl TreePage {
    /// `None`: it is no page of a table, or cells are not in it.
    fn parse(bytes: Vec<u8>, usable: usize) -> Option<TreePage> {
        let is_leaf = match bytes.first()? {
            13 => true,
            5 => false,
            _ => return None,
        };
        let header = if is_leaf { LEAF_HEADER } else { INNER_HEADER };
        let cells = usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
        let first = header + 2 * cells;
        const SMALLEST_CELL: usize = 4;
        let mut places = (0..cells).map(|cell| cell_at(&bytes, header, cell));
        let are_in =
            first <= usable && places.all(|at| first <= at && at + SMALLEST_CELL <= usable);
        are_in.then_some(TreePage { bytes, is_leaf, cells, next: 0 })
    }

    /// The next child of a page that is no leaf.
    fn child(&self) -> Option<i64> {
        const LAST_CHILD_AT: usize = 8;
        let at = match self.next < self.cells {
            true => cell_at(&self.bytes, INNER_HEADER, self.next),
            false => LAST_CHILD_AT,
        };
        let number = self.bytes.get(at..at + 4)?;
        Some(i64::from(u32::from_be_bytes(number.try_into().ok()?)))
    }
}

/// Where a cell is, of a page that has so many.
fn cell_at(bytes: &[u8], header: usize, cell: usize) -> usize {
    let at = header + 2 * cell;
    match bytes.get(at..at + 2) {
        Some(place) => usize::from(u16::from_be_bytes([place[0], place[1]])),
        None => 0,
    }
}

/// Seven bits a byte, the highest first; a ninth byte has eight.
#[inline]
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    const LONGEST: usize = 9;
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(first.into());
    }
    let mut value = u64::from(first & 0x7f);
    for place in 1..LONGEST {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if place == LONGEST - 1 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            break;
        }
    }
    Some(value)
}

/// Eight bytes from `at` on, which are there because of [`PADDING`].
#[inline]
fn big_endian(bytes: &[u8], at: usize) -> i64 {
    bytes.get(at..at + 8).map_or(0, |eight| i64::from_be_bytes(eight.try_into().expect("eight")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{guard, Rows};

    const COLUMNS: [&str; 4] = ["id", "c", "a", "b"];

    /// So many rows that the tree has three levels; those whose id `is_odd` have `odd` in the place of a number.
    fn database(path: &std::path::Path, odd: &str, is_odd: &str) {
        let connection = Connection::open(path).unwrap();
        let sql = format!(
            "PRAGMA page_size = 512; PRAGMA journal_mode = off; CREATE TABLE x (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER, d TEXT);
             WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             INSERT INTO x SELECT i * 3, CASE i % 3 WHEN 0 THEN NULL ELSE (1 << i % 63) * (1 - i % 2 * 2) END, i % 7, CASE WHEN {is_odd} THEN {odd} ELSE -i END, 'text' FROM n"
        );
        connection.execute_batch(&sql).unwrap();
    }

    type Read = (Vec<Vec<Option<i64>>>, String);

    /// All rows, and why there are no more.
    fn read(mut rows: Rows<'_>) -> Read {
        let mut all = Vec::new();
        loop {
            match rows.step() {
                Ok(true) => {}
                Ok(false) => return (all, "end".to_owned()),
                Err(error) => return (all, error.to_string()),
            }
            match (0..COLUMNS.len() as i32).map(|column| rows.optional(column)).collect() {
                Ok(row) => all.push(row),
                Err(bad) => return (all, format!("{bad:?} {}", rows.name(bad))),
            }
        }
    }

    /// From the pages, and as SQLite says: each opens the file, as SQLite complains of a page once.
    fn both(path: &std::path::Path) -> [Read; 2] {
        [true, false].map(|from_pages| {
            let connection = Connection::open(path).unwrap();
            guard(&connection).unwrap();
            connection.execute_batch("BEGIN").unwrap();
            let rows = match from_pages {
                true => Rows::of_table(&connection, "x", &COLUMNS),
                false => Rows::by_sqlite(&connection, "x", &COLUMNS),
            };
            rows.map_or_else(|error| (Vec::new(), error.to_string()), read)
        })
    }

    fn is_read_from_pages(path: &std::path::Path) -> bool {
        let connection = Connection::open(path).unwrap();
        let mut leaves = Leaves::of(&connection, "x", &COLUMNS).unwrap().unwrap();
        loop {
            match leaves.step() {
                Next::Row => {}
                Next::End => return true,
                Next::Unknown => return false,
            }
        }
    }

    #[test]
    fn rows_are_those_of_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plain.db");
        database(&path, "NULL", "i % 5 = 0");
        assert!(is_read_from_pages(&path));
        let [own, sqlite] = both(&path);
        assert_eq!((own.0.len(), &own.1[..]), (3000, "end"));
        assert_eq!(own, sqlite);
    }

    #[test]
    fn what_is_no_plain_row_is_left_to_sqlite() {
        let directory = tempfile::tempdir().unwrap();
        for (odd, bad) in [
            ("'word'", "BadColumn(1) c"),
            ("2.5", "BadColumn(1) c"),
            ("zeroblob(4000)", "BadColumn(1) c"), // goes on in other pages
            ("zeroblob(460)", "BadColumn(1) c"),
        ] {
            let path = directory.path().join("odd.db");
            database(&path, odd, "i = 2000");
            assert!(!is_read_from_pages(&path), "{odd}");
            let [own, sqlite] = both(&path);
            assert_eq!((own.0.len(), &own.1[..]), (1999, bad), "{odd}");
            assert_eq!(own, sqlite, "{odd}");
            std::fs::remove_file(&path).unwrap();
        }
        // a column that came later has a value that stands in no row
        let path = directory.path().join("later.db");
        database(&path, "1", "0");
        let later = "ALTER TABLE x ADD COLUMN e INTEGER DEFAULT 7";
        Connection::open(&path).unwrap().execute_batch(later).unwrap();
        let connection = Connection::open(&path).unwrap();
        let mut rows = Rows::of_table(&connection, "x", &["id", "e"]).unwrap();
        assert!(rows.step().unwrap());
        assert_eq!((rows.integer(0), rows.integer(1)), (Ok(3), Ok(7)));
    }

    /// Where both read to the end they read the same; where SQLite refuses a file, so do the pages.
    #[test]
    fn damaged_pages_are_refused_or_read_as_sqlite_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("whole.db");
        database(&path, "NULL", "i % 5 = 0");
        let whole = std::fs::read(&path).unwrap();
        let damaged = directory.path().join("damaged.db");
        let mut random = 88_172_645_463_325_252_u64; // xorshift
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        let mut refused = 0;
        for round in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..1 + round % 3 {
                // heads of pages more often than what is in them
                let at = 512 + next((bytes.len() - 512) / 512) * 512;
                let within = if round % 2 == 0 { next(24) } else { next(512) };
                bytes[(at + within).min(whole.len() - 1)] = next(256) as u8;
            }
            std::fs::write(&damaged, &bytes).unwrap();
            let [own, sqlite] = both(&damaged);
            assert_eq!(own.1, sqlite.1, "round {round}");
            if own.1 == "end" {
                assert!(own.0 == sqlite.0, "round {round}");
            } else {
                refused += 1;
            }
        }
        assert!(refused > 50, "{refused}");
    }

    #[test]
    fn numbers_of_many_lengths() {
        for (bytes, number) in [
            (&[0x7f][..], 127),
            (&[0x81, 0x00], 128),
            (&[0xff; 9], u64::MAX),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], 1),
        ] {
            let mut at = 0;
            assert_eq!((varint(bytes, &mut at), at), (Some(number), bytes.len()));
        }
        assert_eq!(varint(&[0x80], &mut 0), None);
    }
}
