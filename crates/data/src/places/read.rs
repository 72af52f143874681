//! Reads what files call their places, and numbers it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use rusqlite::Row;
use rustc_hash::FxHashSet;

use super::{unknown_call, CallPathId, FileIds, InstructionId, Interner, Places, SiteId};
use crate::db::{collect, side_by_side, Database, DbError};
use crate::model::{CallName, CallPath, Frame, Module, Text};
use crate::schema::lacks;

/// What a file has, by its own ids: to be numbered with those of the other files of the run.
#[derive(Debug)]
pub struct FilePlaces {
    calls: HashMap<i64, CallName>,
    /// Frames of `paths` index into this.
    modules: Vec<Module>,
    paths: HashMap<i64, CallPath>,
    /// `call_id` and `call_path_id` of everything that it has rows of, in order.
    uses: Vec<(i64, Option<i64>)>,
    /// `call_path_id` and `copy_path_id` of its watches, and `call_path_id` of its samples, in order.
    instructions: Vec<i64>,
}

impl Places {
    /// Reads the places of these files, each address a site; also why some could not be read.
    ///
    /// # Errors
    /// No file could be read.
    pub fn read(databases: &[PathBuf]) -> Result<(Places, Vec<DbError>), DbError> {
        let (read, mut failed) = side_by_side(databases, |database| {
            Ok((database.path.clone(), FilePlaces::read(database)?))
        });
        if read.is_empty() && !failed.is_empty() {
            return Err(failed.swap_remove(0));
        }
        Ok((Places::number_files(read), failed))
    }

    /// Places without files: of each call at an address, in their order, its site.
    pub fn in_memory(calls: &[(CallName, u64)]) -> (Places, Vec<SiteId>) {
        let numbered = || (0i64..).zip(calls);
        let path = |address| CallPath {
            frames: vec![Frame { module: None, address, level: 0 }],
            ..CallPath::default()
        };
        let file = FilePlaces {
            calls: numbered().map(|(id, (call, _))| (id, call.clone())).collect(),
            modules: Vec::new(),
            paths: numbered().map(|(id, &(_, address))| (id, path(address))).collect(),
            uses: numbered().map(|(id, _)| (id, Some(id))).collect(),
            instructions: Vec::new(),
        };
        let name = PathBuf::new();
        let places = Places::number_files(vec![(name.clone(), file)]);
        let site = |(id, _)| places.of_file(&name).site(id, Some(id)).unwrap_or_default();
        let sites = numbered().map(site).collect();
        (places, sites)
    }

    /// The places of all files of a run, each address a site.
    pub fn number_files(files: impl IntoIterator<Item = (PathBuf, FilePlaces)>) -> Places {
        let (mut calls, mut modules) = (Interner::<_>::default(), Interner::<_>::default());
        let (mut paths, mut instructions) = (Interner::<_>::default(), Interner::<_>::default());
        let mut places = Places::default();
        for (name, file) in files {
            let mut ids = FileIds::default();
            for &(call, path) in &file.uses {
                let call = *ids.calls.entry(call).or_insert_with(|| {
                    let name = file.calls.get(&call).cloned();
                    calls.intern(name.unwrap_or_else(|| unknown_call(call))) as u32
                });
                if let Some((id, known)) = path.and_then(|id| Some((id, file.paths.get(&id)?))) {
                    ids.paths.entry(id).or_insert_with(|| {
                        CallPathId::at(paths.intern(renumber(known, &file.modules, &mut modules)))
                    });
                }
                let path = path.and_then(|path| ids.paths.get(&path).copied());
                places.uses.insert((call, path), SiteId::default());
            }
            for (&id, known) in
                file.instructions.iter().filter_map(|id| file.paths.get_key_value(id))
            {
                let path = renumber(known, &file.modules, &mut modules);
                ids.instructions.insert(id, InstructionId(instructions.intern(path) as u32));
            }
            places.files.insert(name, ids);
        }
        (places.calls, places.modules) = (calls.values, modules.values);
        (places.paths, places.instructions) = (paths.values, instructions.values);
        places.number(|_| None, |frame| frame);
        places
    }
}

fn renumber(path: &CallPath, of_file: &[Module], modules: &mut Interner<Module>) -> CallPath {
    let frames = path.frames.iter().map(|frame| {
        let module =
            frame.module.map(|module| modules.intern(of_file[module as usize].clone()) as u32);
        Frame { module, ..*frame }
    });
    CallPath { frames: frames.collect(), truncated: path.truncated, caller: None }
}

impl FilePlaces {
    /// Reads those of an open file.
    ///
    /// # Errors
    /// [`DbError`] naming the file.
    pub fn read(database: &Database) -> Result<FilePlaces, DbError> {
        read_file(database).map_err(DbError::reading(&database.path))
    }
}

fn read_file(database: &Database) -> rusqlite::Result<FilePlaces> {
    let uses = read_uses(database)?;
    let used: HashSet<i64> = uses.iter().map(|&(call, _)| call).collect();
    let mut calls = read_calls(database)?;
    calls.retain(|id, _| used.contains(id)); // a file names all calls that there are
    let (modules, paths) = read_paths(database)?;
    let instructions = read_instructions(database)?;
    Ok(FilePlaces { calls, modules, paths, uses, instructions })
}

pub(crate) fn read_calls(database: &Database) -> rusqlite::Result<HashMap<i64, CallName>> {
    collect(database, CALL_NAME_SQL, |row| Ok((row.get(0)?, call_name(row)?)))
}

const CALL_NAME_SQL: &str =
    "SELECT id, name, family, role, usual_kind, transfers, mode, counted, needs, completes, blocking
  FROM call_name";

fn call_name(row: &Row<'_>) -> rusqlite::Result<CallName> {
    let text = |column| row.get::<_, Text>(column).map(|Text(text)| text);
    Ok(CallName {
        name: text(1)?,
        family: text(2)?,
        role: text(3)?,
        kind: row.get(4)?,
        transfers: row.get(5)?,
        mode: row.get(6)?,
        counted: row.get(7)?,
        needs: row.get(8)?,
        completes: row.get(9)?,
        blocking: text(10)?,
    })
}

/// A program may make as many operations as requests: SQLite would sort them all to find the few pairs.
fn read_uses(database: &Database) -> rusqlite::Result<Vec<(i64, Option<i64>)>> {
    let mut uses = FxHashSet::default();
    for table in ["operation", "tally", "injection"] {
        let sql = format!("SELECT call_id, call_path_id FROM {table}");
        let mut statement = database.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            uses.insert((row.get(0)?, row.get(1)?));
        }
    }
    let mut uses: Vec<_> = uses.into_iter().collect();
    uses.sort_unstable();
    Ok(uses)
}

/// Few instructions touch many words, and few compute.
fn read_instructions(database: &Database) -> rusqlite::Result<Vec<i64>> {
    let mut sql = "SELECT call_path_id FROM watch WHERE call_path_id IS NOT NULL
                   UNION SELECT copy_path_id FROM watch WHERE copy_path_id IS NOT NULL"
        .to_owned();
    if !lacks(&database.connection, "main", "sample")? {
        sql += " UNION SELECT call_path_id FROM sample";
    }
    collect(database, &sql, |row| row.get(0))
}

/// Modules, and paths whose frames index into them.
pub(crate) fn read_paths(
    database: &Database,
) -> rusqlite::Result<(Vec<Module>, HashMap<i64, CallPath>)> {
    let modules: Vec<(i64, Module)> =
        collect(database, "SELECT id, path, build_id FROM module ORDER BY id", |row| {
            let [path, build_id] = [row.get(1)?, row.get(2)?].map(|Text(text)| text);
            Ok((row.get(0)?, Module { path, build_id }))
        })?;
    let index: HashMap<i64, u32> =
        modules.iter().enumerate().map(|(index, (id, _))| (*id, index as u32)).collect();
    let mut paths: HashMap<i64, CallPath> =
        collect(database, "SELECT id, truncated FROM call_path", |row| {
            Ok((row.get(0)?, CallPath { truncated: row.get(1)?, ..CallPath::default() }))
        })?;
    let mut statement = database.connection.prepare_cached(
        "SELECT call_path_id, module_id, address FROM frame ORDER BY call_path_id, depth",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let module = row.get::<_, Option<i64>>(1)?.and_then(|id| index.get(&id).copied());
        let frame = Frame { module, address: row.get::<_, i64>(2)? as u64, level: 0 };
        paths.entry(row.get(0)?).or_default().frames.push(frame);
    }
    Ok((modules.into_iter().map(|(_, module)| module).collect(), paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MPI_Isend by the path `path`, whose frame is at `address`, and by one that is not in the file.
    /// A word was touched at the same address.
    fn file(call: i64, path: i64, modules: &[&str], at: u32, address: u64) -> FilePlaces {
        let module = |path: &&str| Module { path: (*path).into(), build_id: String::new() };
        let frames = vec![Frame { module: Some(at), address, level: 0 }];
        FilePlaces {
            calls: HashMap::from([(call, CallName::unknown("MPI_Isend".into()))]),
            modules: modules.iter().map(module).collect(),
            paths: HashMap::from([(path, CallPath { frames, ..CallPath::default() })]),
            uses: vec![(call, Some(path)), (call, Some(99))],
            instructions: vec![path, 99],
        }
    }

    #[test]
    fn files_with_other_ids_have_the_same_sites() {
        let [a, b, c] = ["a", "b", "c"].map(PathBuf::from);
        let places = Places::number_files(vec![
            (a.clone(), file(1, 1, &["app"], 0, 0x10)),
            (b.clone(), file(7, 5, &["libc.so", "app"], 1, 0x10)),
            (c.clone(), file(1, 1, &["app"], 0, 0x20)),
        ]);
        let site = |file: &PathBuf, call, path| places.of_file(file).site(call, path);
        assert_eq!((places.calls.len(), places.modules.len(), places.paths.len()), (1, 1, 2));
        assert_eq!(site(&a, 1, Some(1)), site(&b, 7, Some(5)));
        assert_ne!(site(&a, 1, Some(1)), site(&c, 1, Some(1)));
        assert_eq!(site(&a, 1, Some(99)), site(&c, 1, None), "a path that is not in the file");
        assert_eq!(site(&a, 7, Some(1)), None, "nothing that the file has rows of");
        let named = |id| (places.call(id).name.as_str(), places.site(id).frame);
        let frame = Frame { module: Some(0), address: 0x20, level: 0 };
        assert_eq!(site(&c, 1, Some(1)).map(named), Some(("MPI_Isend", Some(frame))));
    }

    #[test]
    fn instructions_are_one_in_all_files_and_make_no_site() {
        let [a, b, c] = ["a", "b", "c"].map(PathBuf::from);
        let touches_alone = |mut file: FilePlaces| {
            file.uses = vec![(1, None)];
            file
        };
        let places = Places::number_files(vec![
            (a.clone(), touches_alone(file(1, 1, &["app"], 0, 0x10))),
            (b.clone(), touches_alone(file(1, 5, &["libc.so", "app"], 1, 0x10))),
            (c.clone(), file(1, 1, &["app"], 0, 0x20)),
        ]);
        let instruction = |file: &PathBuf, id| places.of_file(file).instruction(id);
        assert_eq!((places.instructions.len(), places.paths.len()), (2, 1));
        assert!(instruction(&a, 1).is_some(), "no call was made by that path");
        assert_eq!(instruction(&a, 1), instruction(&b, 5));
        assert_ne!(instruction(&a, 1), instruction(&c, 1));
        assert_eq!(instruction(&a, 99), None, "a path that is not in the file");
        assert_eq!(places.of_file(&a).path(1), None);
        let frame = Frame { module: Some(0), address: 0x10, level: 0 };
        let frames = instruction(&b, 5).map(|id| places.instruction(id).frames.clone());
        assert_eq!(frames, Some(vec![frame]), "modules are the run's");
    }
}
