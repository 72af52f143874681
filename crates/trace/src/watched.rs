//! Reads what files say of watched words, and collects it by buffer: a request's words lie together, with the call that
//! completed it.

pub mod bounds;
pub mod ranks;
pub mod words;

use std::path::PathBuf;

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use self::bounds::TimeBounds;
use self::words::{Buffer, Word};
use crate::query::operation_sites;
use lapscope_data::db::{
    for_each_file, read_watchers, scan_rows, scan_watches, Database, DbError, FileDefinitions,
};
use lapscope_data::model::{
    LetGo, Nanos, Rank, RankInfo, RankKey, Side, Toucher, Watch, WatchResult, Watcher,
};
use lapscope_data::places::{InstructionId, Places, PlacesOfFile, SiteId};
use lapscope_data::request_row;

/// Share of the run time that threads which nothing watches may compute without a word about it.
pub const UNSEEN_SHARE: f64 = 0.01;
/// So many hits of a receive are counted at most.
const MOST_BEFORE: u64 = 8;

/// A rank that was asked to watch.
#[derive(Debug, Clone)]
pub struct RankWatcher {
    pub rank: Rank,
    pub life: i64,
    pub hit: Option<Nanos>,
    /// Whether threads on which nothing was watched ran for so long that every reach is an upper bound.
    pub others_may_touch: bool,
}

/// Who touched a word last before, or first after, the edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Touch {
    pub toucher: Toucher,
    pub by: Option<InstructionId>,
}

/// A watched word, and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct WatchedWord {
    pub word: Word,
    pub touch: Option<Touch>,
    pub result: WatchResult,
    pub let_go: Option<LetGo>,
    pub is_on_stack: bool,
    pub is_sparse: bool,
    /// The instruction that copied it: watched was the copy, or what it was copied from.
    pub copied: Option<InstructionId>,
}

/// The watched words of one buffer, on one side of its life.
#[derive(Debug, Clone)]
pub struct Watched {
    pub rank: Rank,
    pub life: i64,
    /// Where it was posted, or blocked.
    pub site: SiteId,
    pub side: Side,
    /// The call that completed it; of a blocking call that itself. `None`: not known.
    pub completing: Option<SiteId>,
    pub is_request: bool,
    /// Begin of the post or of the blocking call, since the epoch of its rank.
    pub begin: Nanos,
    pub bytes: u64,
    pub words: Vec<WatchedWord>,
}

impl Watched {
    /// Words of the buffer itself, not of copies.
    pub fn own_words(&self) -> impl Iterator<Item = &WatchedWord> {
        self.words.iter().filter(|word| word.copied.is_none())
    }

    pub fn buffer(&self) -> Buffer {
        Buffer::new(self.bytes, self.own_words().map(|word| word.word).collect())
    }

    /// Those of its words that were copied, with what became of the copies; `None`: none was.
    pub fn copied(&self) -> Option<Buffer> {
        let copied = self.words.iter().filter(|word| word.copied.is_some());
        let words: Vec<_> = copied.map(|word| word.word).collect();
        (!words.is_empty()).then(|| Buffer::new(self.bytes, words))
    }
}

/// What the files of a run say.
#[derive(Debug, Default)]
pub struct RunWatches {
    pub ranks: Vec<RankWatcher>,
    pub buffers: Vec<Watched>,
}

/// Reads these ranks, or all, of files in which one was asked to watch; also why some could not be read.
pub fn read_files(
    databases: &[PathBuf],
    places: &Places,
    ranks: &[Rank],
) -> (RunWatches, Vec<DbError>) {
    let read = for_each_file(databases, |database, definitions| {
        let of_file = places.of_file(&database.path);
        let reader = FileReader { of_file, database };
        reader.read(&definitions, ranks).map_err(DbError::reading(&database.path))
    });
    let (files, failed) = match read {
        Ok(read) => (read.read, read.failed),
        Err(error) => (Vec::new(), vec![error]),
    };
    (files.into_iter().fold(RunWatches::default(), RunWatches::with), failed)
}

impl RunWatches {
    fn with(mut self, file: RunWatches) -> RunWatches {
        self.ranks.extend(file.ranks);
        self.ranks.sort_by_key(|rank| (rank.rank, rank.life));
        self.buffers.extend(file.buffers);
        self
    }

    /// What a hit costs, by which the distance of two touches is uncertain: the greatest of all ranks.
    pub fn hit(&self) -> Option<Nanos> {
        self.ranks.iter().filter_map(|rank| rank.hit).max()
    }
}

/// Thread and begin, which tell of which request or blocking call a watch is, and which half. Its operation is that of the
/// post, which may not be that of the request: only the end tells who sent, and how much.
type WatchKey = (i64, i64, Side);

/// An operation with watched buffers.
#[derive(Clone, Copy)]
struct WatchedOperation {
    rank: RankKey,
    site: SiteId,
}

struct FileReader<'a> {
    of_file: PlacesOfFile<'a>,
    database: &'a Database,
}

impl FileReader<'_> {
    fn read(&self, definitions: &FileDefinitions, wanted: &[Rank]) -> rusqlite::Result<RunWatches> {
        let is_wanted = |info: &&RankInfo| wanted.is_empty() || wanted.contains(&info.rank);
        let infos: FxHashMap<RankKey, &RankInfo> =
            definitions.ranks.iter().filter(is_wanted).map(|info| (info.key, info)).collect();
        let mut found = RunWatches::default();
        let mut watchers = FxHashMap::default();
        for watcher in read_watchers(self.database)? {
            let Some(info) = infos.get(&watcher.rank) else { continue };
            let key = watcher.rank;
            let rank = RankWatcher::new(watcher, info);
            found.ranks.push(rank.clone());
            watchers.insert(key, rank);
        }
        found.buffers = self.read_buffers(&watchers)?;
        Ok(found)
    }

    fn read_buffers(
        &self,
        watchers: &FxHashMap<RankKey, RankWatcher>,
    ) -> rusqlite::Result<Vec<Watched>> {
        let connection = &self.database.connection;
        let operations = self.read_operations()?;
        let mut watches: Vec<(Watch, WatchedOperation)> = Vec::new();
        scan_watches(connection, |watch| {
            let known = operations.get(&watch.operation_id).copied().flatten();
            watches
                .extend(known.filter(|it| watchers.contains_key(&it.rank)).map(|it| (*watch, it)));
        })?;
        let hits = Hits::collect(watches.iter().map(|(watch, _)| watch));
        let mut index: FxHashMap<WatchKey, usize> = FxHashMap::default();
        let mut buffers: Vec<Watched> = Vec::new();
        for (watch, operation) in &watches {
            let watcher = &watchers[&operation.rank];
            let key = (watch.thread_id, watch.begin.0, watch.side);
            let at = *index.entry(key).or_insert_with(|| {
                buffers.push(Watched {
                    rank: watcher.rank,
                    life: watcher.life,
                    site: operation.site,
                    side: watch.side,
                    completing: Some(operation.site),
                    is_request: false,
                    begin: watch.begin,
                    bytes: watch.buffer.0,
                    words: Vec::new(),
                });
                buffers.len() - 1
            });
            buffers[at].words.push(self.word(watch, watcher, &hits));
        }
        self.complete(&operations, &index, &mut buffers)?;
        Ok(buffers)
    }

    fn word(&self, watch: &Watch, watcher: &RankWatcher, hits: &Hits) -> WatchedWord {
        let instruction = |id: Option<i64>| id.and_then(|id| self.of_file.instruction(id));
        // the recorder has taken off what hits of other words cost, each as much as was measured at the start: where the
        // processor is less busy than it was then, that was too much
        let least = watch.away_outside_mpi().0.max(0) as f64;
        let before = hits.beside(watch) + own_hits_before(watch);
        let most = least + watcher.hit.unwrap_or_default().0 as f64 * before as f64;
        let away = match watch.result {
            WatchResult::Touched => TimeBounds { least, most },
            WatchResult::Untouched => TimeBounds::at_least(least),
            WatchResult::Often => TimeBounds::at_most(most),
        };
        // others may have touched it later, or earlier
        let away = if watcher.others_may_touch { TimeBounds { least: 0.0, ..away } } else { away };
        WatchedWord {
            word: Word::at(watch.offset.0, watch.buffer.0, away),
            touch: watch
                .toucher
                .map(|toucher| Touch { toucher, by: instruction(watch.instruction_id) }),
            result: watch.result,
            let_go: watch.let_go,
            is_on_stack: watch.is_on_stack,
            is_sparse: watch.is_sparse,
            copied: instruction(watch.copy_id),
        }
    }

    /// Every operation by its id; `None` of those whose site is not known.
    fn read_operations(&self) -> rusqlite::Result<FxHashMap<i64, Option<WatchedOperation>>> {
        let mut operations = FxHashMap::default();
        operation_sites(&self.database.connection, |row| {
            let site = self.of_file.site(row.call_id, row.call_path_id);
            let operation = site.map(|site| WatchedOperation { rank: row.rank, site });
            operations.insert(row.id, operation);
        })?;
        Ok(operations)
    }

    /// Tells requests from blocking calls, and finds the calls that completed them.
    fn complete(
        &self,
        operations: &FxHashMap<i64, Option<WatchedOperation>>,
        index: &FxHashMap<WatchKey, usize>,
        buffers: &mut [Watched],
    ) -> rusqlite::Result<()> {
        if buffers.is_empty() {
            return Ok(());
        }
        let connection: &Connection = &self.database.connection;
        scan_rows::<PostRow, _>(
            connection,
            &mut (),
            |(), _| {},
            |(), row, call| {
                let by =
                    call.and_then(|call| operations.get(&call.operation_id).copied().flatten());
                for side in [Side::Send, Side::Receive] {
                    let key = (row.thread_id, row.post_begin.0, side);
                    if let Some(&at) = index.get(&key) {
                        buffers[at].is_request = true;
                        buffers[at].completing = by.map(|by| by.site);
                    }
                }
                true
            },
        )
    }
}

impl RankWatcher {
    fn new(watcher: Watcher, info: &RankInfo) -> RankWatcher {
        let share = |other: Nanos| other.share_of(info.run_time());
        RankWatcher {
            rank: info.rank,
            life: info.life,
            hit: watcher.hit,
            others_may_touch: watcher.other_cpu.map(share).is_some_and(|it| it >= UNSEEN_SHARE),
        }
    }
}

request_row! {
    /// A request as far as its post and its end are concerned.
    struct PostRow { operation_id, completion_id, thread_id, post_begin, post }
}

/// The moments of each thread at which a watched word was hit, as far as they are told: each made the program later.
struct Hits(FxHashMap<i64, Vec<i64>>);

impl Hits {
    fn collect<'w>(watches: impl Iterator<Item = &'w Watch>) -> Hits {
        let mut hits: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
        for watch in watches.filter(|watch| watch.result != WatchResult::Untouched) {
            hits.entry(watch.thread_id).or_default().push(touched_at(watch));
        }
        hits.values_mut().for_each(|moments| moments.sort_unstable());
        Hits(hits)
    }

    /// Hits of other words between the edge and the moment at which this one was touched.
    fn beside(&self, watch: &Watch) -> usize {
        let Some(moments) = self.0.get(&watch.thread_id) else { return 0 };
        let (edge, at) = (watch.edge_begin.0, touched_at(watch));
        let (from, until) = (edge.min(at), edge.max(at));
        let before = moments.partition_point(|&moment| moment <= from);
        moments.partition_point(|&moment| moment < until).saturating_sub(before)
    }
}

/// The hit of a last write held the program up before the post; a copy's own store did before its first use.
fn own_hits_before(watch: &Watch) -> usize {
    match watch.side {
        Side::Receive => watch.hits.saturating_sub(1).min(MOST_BEFORE) as usize,
        Side::Send => usize::from(watch.result != WatchResult::Untouched),
    }
}

fn touched_at(watch: &Watch) -> i64 {
    let Watch { edge_begin: Nanos(edge), away: Nanos(away), .. } = *watch;
    match watch.side {
        Side::Send => edge.saturating_sub(away),
        Side::Receive => edge.saturating_add(away),
    }
}
