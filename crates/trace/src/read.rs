//! Reads the files of a run, and puts them together.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::cache::Cache;
use super::clock::Settled;
use super::file::{Depth, FileTrace, WantedRanks};
use super::paired::Paired;
use super::roster::Roster;
use super::Trace;
use rayon::prelude::*;

use crate::sums::aggregate::{Aggregator, FileSums};
use crate::sums::measures::MeasureSums;
use lapscope_data::db::{
    for_each_file, rows_to_scan, DbError, FileDefinitions, NoSink, PerFile, RowSink,
};
use lapscope_data::places::{Places, PlacesOfFile};

/// How far reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProgress {
    /// So many more are to be read.
    Expected(u64),
    /// So many more were read.
    Read(u64),
}

impl Trace {
    /// Reads a run; also why some files could not be read.
    ///
    /// # Errors
    /// No file could be read.
    pub fn read(
        databases: &[PathBuf],
        progress: &(dyn Fn(ReadProgress) + Sync),
    ) -> Result<(Trace, Vec<DbError>), DbError> {
        let (places, mut failed) = Places::read(databases)?;
        let is_read = |path: &&PathBuf| !failed.iter().any(|error| error.path() == Some(path));
        let databases: Vec<PathBuf> = databases.iter().filter(is_read).cloned().collect();
        let read = Trace::read_with::<NoSink>(&databases, &Arc::new(places), None, progress)?;
        failed.extend(read.failed);
        Ok((read.trace, failed))
    }

    /// As [`Trace::read`], of files whose places were read, giving every row of each file to a sink as well.
    ///
    /// # Errors
    /// No file could be read.
    pub fn read_with<'p, S: RowSink + Send>(
        databases: &[PathBuf],
        places: &'p Arc<Places>,
        sink: Option<fn(PlacesOfFile<'p>, &FileDefinitions) -> S>,
        progress: &(dyn Fn(ReadProgress) + Sync),
    ) -> Result<WithSinks<S>, DbError> {
        let per_file = for_each_file(databases, |database, definitions| {
            let of_file = places.of_file(&database.path);
            let mut sink = sink.map(|make| (definitions.clone(), make(of_file, &definitions)));
            let rows = sink.as_mut().map(|(_, sink)| sink as &mut dyn RowSink);
            let read = || -> rusqlite::Result<FileTrace> {
                progress(ReadProgress::Expected(rows_to_scan(&database.connection)?));
                let add = |rows| progress(ReadProgress::Read(rows));
                let all = (None, Depth::All);
                FileTrace::read(&database.connection, of_file, definitions, rows, all, &add)
            };
            let file = read().map_err(DbError::reading(&database.path))?;
            Ok((file, sink))
        })?;
        let (files, sinks): (Vec<FileTrace>, Vec<_>) = per_file.read.into_iter().unzip();
        let sinks = sinks.into_iter().flatten().collect();
        let trace = Trace::combine(Arc::clone(places), files);
        Ok(WithSinks { trace, sinks, failed: per_file.failed })
    }

    fn combine(places: Arc<Places>, files: Vec<FileTrace>) -> Trace {
        let roster = Arc::new(Roster::new(files.iter().flat_map(FileTrace::members).collect()));
        Paired::new(files, roster, places, None).settle()
    }
}

impl Paired {
    /// Reads ranks of some files, by their places; `focus`: of those that will be looked at, on these clocks where they are settled. What
    /// is in the cache is read from it. Also why some files could not be read.
    ///
    /// # Errors
    /// No file could be read.
    pub fn read(
        files: &[(PathBuf, Vec<u32>)],
        (roster, places): (&Arc<Roster>, &Arc<Places>),
        (focus, clocks): (&[u32], Option<&Settled>),
        (depth, cache): (Depth, Option<&Cache>),
    ) -> Result<(Paired, Vec<DbError>), DbError> {
        let cache = cache.filter(|_| depth == Depth::Sums);
        let of_parts = cache.and_then(Cache::of_parts);
        let kept = of_parts
            .zip(clocks)
            .and_then(|(cache, clocks)| Paired::of_kept(cache, (roster, places), (focus, clocks)));
        if let Some(part) = kept {
            return Ok((part, Vec::new()));
        }
        let info = |place: u32| &roster.ranks()[place as usize].info;
        let wanted: Vec<u32> =
            files.iter().flat_map(|(_, wanted)| wanted.iter().copied()).collect();
        let of_cache = |&place: &u32| {
            let (communicators, rows) = cache?.get(place)?;
            let file = FileTrace::of_kept(info(place).as_ref().clone(), communicators, rows);
            Some((place, file))
        };
        let kept: Vec<(u32, FileTrace)> = wanted.par_iter().filter_map(of_cache).collect();
        let is_kept: HashSet<u32> = kept.iter().map(|(place, _)| *place).collect();
        let mut traces: Vec<FileTrace> = kept.into_iter().map(|(_, file)| file).collect();
        let missing = wanted.iter().filter(|place| !is_kept.contains(place));
        let missing: WantedRanks =
            missing.map(|&place| (info(place).rank, info(place).life)).collect();
        let has_missing = |(_, wanted): &&(PathBuf, Vec<u32>)| {
            wanted.iter().any(|place| !is_kept.contains(place))
        };
        let databases: Vec<PathBuf> =
            files.iter().filter(has_missing).map(|(path, _)| path.clone()).collect();
        let per_file = for_each_file(&databases, |database, definitions| {
            let of_file = places.of_file(&database.path);
            let connection = &database.connection;
            let file = FileTrace::read(
                connection,
                of_file,
                definitions,
                None,
                (Some(&missing), depth),
                &|_| (),
            )
            .map_err(DbError::reading(&database.path))?;
            if let Some(cache) = cache {
                file.keep(roster, cache);
            }
            Ok(file)
        })?;
        traces.extend(per_file.read);
        let part = match clocks {
            Some(clocks) => {
                let of_parts = of_parts.filter(|_| per_file.failed.is_empty());
                Paired::of_part(traces, (roster, places), (focus, clocks), (&wanted, of_parts))
            }
            None => Paired::new(traces, Arc::clone(roster), Arc::clone(places), Some(focus)),
        };
        Ok((part, per_file.failed))
    }

    /// A run without rows: who took part, for what is said of all.
    pub fn without_rows(roster: &Arc<Roster>, places: &Arc<Places>) -> Paired {
        Paired::new(Vec::new(), Arc::clone(roster), Arc::clone(places), None)
    }
}

/// Sums of files of which all counts. What fits is kept, so that each row is read once.
///
/// # Errors
/// No file could be read.
pub fn sum_and_keep(
    files: &[PathBuf],
    (roster, places): (&Roster, &Places),
    cache: &Cache,
) -> Result<PerFile<(FileDefinitions, FileSums)>, DbError> {
    for_each_file(files, |database, mut definitions| {
        let of_file = places.of_file(&database.path);
        let connection = &database.connection;
        let rows = rows_to_scan(connection).map_err(DbError::reading(&database.path))?;
        if !cache.has_room_for(rows) {
            let sums = FileSums::read(database, of_file, &mut definitions, None, &|_| ())?;
            return Ok((definitions, sums));
        }
        let mut sums = Aggregator::new(of_file, &definitions);
        let mut read = || -> rusqlite::Result<MeasureSums> {
            let (rows, all) = (Some(&mut sums as &mut dyn RowSink), (None, Depth::Sums));
            let named = definitions.clone();
            FileTrace::read(connection, of_file, named, rows, all, &|_| ())?.keep(roster, cache);
            MeasureSums::read(connection, &definitions, of_file, None)
        };
        let measures = read().map_err(DbError::reading(&database.path))?;
        Ok((definitions, FileSums { measures, ..sums.finish() }))
    })
}

/// A run, and what other sinks made of the same rows.
pub struct WithSinks<S> {
    pub trace: Trace,
    /// For each file that could be read.
    pub sinks: Vec<(FileDefinitions, S)>,
    /// Why the others could not.
    pub failed: Vec<DbError>,
}
