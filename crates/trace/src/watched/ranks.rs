//! Reads how much was watched on each rank, and what was left out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::query::watched_words;
use lapscope_data::db::{
    for_each_file, read_left_out, read_watchers, Configuration, Database, DbError, FileDefinitions,
    ValuesByName,
};
use lapscope_data::model::{Nanos, Rank, RankKey, Watcher};

/// Buffers that were not watched, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// As in the table `watch_left_out`.
    pub reason: String,
    pub buffers: u64,
}

/// What was watched on a rank.
#[derive(Debug, Clone)]
pub struct RankWatching {
    pub rank: Rank,
    pub run: Nanos,
    /// `None`: it was not asked to.
    pub watcher: Option<Watcher>,
    pub buffers: u64,
    pub words: u64,
}

/// What a file says of the watching of its ranks.
#[derive(Debug, Default)]
pub struct FileWatching {
    pub ranks: Vec<RankWatching>,
    pub left_out: Vec<LeftOut>,
    pub options: ValuesByName,
}

/// Reads these ranks, or all where none is named; also why some files could not be read.
pub fn read_ranks(databases: &[PathBuf], ranks: &[Rank]) -> (Vec<FileWatching>, Vec<DbError>) {
    let read = for_each_file(databases, |database, definitions| {
        let options = Configuration::read(database)?.options;
        let file = read_file(database, &definitions, ranks);
        let file = file.map_err(DbError::reading(&database.path))?;
        Ok(FileWatching { options, ..file })
    });
    read.map_or_else(|error| (Vec::new(), vec![error]), |read| (read.read, read.failed))
}

fn read_file(
    database: &Database,
    definitions: &FileDefinitions,
    wanted: &[Rank],
) -> rusqlite::Result<FileWatching> {
    let infos = definitions.ranks.iter();
    let infos: Vec<_> =
        infos.filter(|info| wanted.is_empty() || wanted.contains(&info.rank)).collect();
    let has = |key: RankKey| infos.iter().any(|info| info.key == key);
    let mut watchers: BTreeMap<RankKey, Watcher> =
        read_watchers(database)?.into_iter().map(|watcher| (watcher.rank, watcher)).collect();
    let watched = watched_words(&database.connection)?;
    let ranks = infos.iter().map(|info| {
        let (buffers, words) = watched.get(&info.key).copied().unwrap_or_default();
        let watcher = watchers.remove(&info.key);
        RankWatching { rank: info.rank, run: info.run_time(), watcher, buffers, words }
    });
    let ranks = ranks.collect();
    let left_out = read_left_out(database)?.into_iter().filter(|it| has(it.rank));
    let left_out = left_out.map(|it| LeftOut { reason: it.reason, buffers: it.buffers });
    Ok(FileWatching { ranks, left_out: left_out.collect(), options: ValuesByName::new() })
}
