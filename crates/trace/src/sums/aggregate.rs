//! Sums the rows of one file into cells, in one pass and in memory that does not grow with the number of requests.

use serde::{Deserialize, Serialize};

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use crate::stretch::{SummedUp, TimeRange, Windows};
use crate::sums::cell::{request_window, CallCell};
use crate::sums::measures::MeasureSums;
use lapscope_data::db::{scan, Database, DbError, FileDefinitions, RequestRow, RowSink};
use lapscope_data::model::{
    Bytes, CallRow, Category, Ended, Kind, Nanos, OperationRow, RankInfo, RankKey, TallyRow,
};
use lapscope_data::places::{PlacesOfFile, SiteId};

/// What the calls of a cell have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// Index into [`FileDefinitions::ranks`].
    pub rank: u32,
    pub site: SiteId,
    pub kind: Kind,
    pub size_class: u8,
    pub is_unsuccessful: bool,
}

/// Sums over one file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FileSums {
    pub cells: Vec<(CellKey, CallCell)>,
    /// (posting cell, completing cell, that cell's time laid to the requests): where requests were waited for.
    pub waits: Vec<(u32, u32, Nanos)>,
    /// For each rank of the file: see [`Aggregator::close_completion`].
    pub possible_overlap: Vec<Nanos>,
    pub measures: MeasureSums,
    /// Left out of a stretch, as it has no moments.
    pub untold: SummedUp,
}

impl FileSums {
    /// Reads a file once and sums up all of it, or what begins in `windows`; `progress` is told now and then how many more rows
    /// were read.
    ///
    /// # Errors
    /// What SQLite says of a damaged file.
    pub fn read(
        database: &Database,
        of_file: PlacesOfFile<'_>,
        definitions: &mut FileDefinitions,
        windows: Option<&Windows>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<FileSums, DbError> {
        let mut aggregator = Aggregator::new(of_file, definitions);
        aggregator.windows = windows
            .map(|windows| definitions.ranks.iter().map(|info| windows.of_rank(info)).collect());
        let sums = || -> rusqlite::Result<FileSums> {
            scan(&database.connection, &mut aggregator, progress)?;
            let windows = aggregator.windows.clone();
            let measures = MeasureSums::read(&database.connection, definitions, of_file, windows)?;
            Ok(FileSums { measures, ..aggregator.finish() })
        };
        let sums = sums().map_err(DbError::reading(&database.path))?;
        if let Some(windows) = windows {
            definitions.ranks.iter_mut().for_each(|info| windows.clip(info));
        }
        Ok(sums)
    }
}

/// A [`RowSink`] that sums.
#[derive(Debug)]
pub struct Aggregator<'p> {
    of_file: PlacesOfFile<'p>,
    ranks: HashMap<RankKey, u32>,
    /// For each rank of the file: when its run time begins and, where that is known, ends.
    spans: Vec<(Nanos, Option<Nanos>)>,
    keys: FxHashMap<CellKey, u32>,
    cells: Vec<(CellKey, CallCell)>,
    operations: Operations,
    /// The receiving halves of operations that also send.
    receives: FxHashMap<i64, i64>,
    waits: FxHashMap<(u32, u32), Nanos>,
    possible_overlap: Vec<Nanos>,
    completion: Completion,
    /// For each rank of the file what counts; `None`: all of it.
    windows: Option<Vec<TimeRange>>,
    untold: SummedUp,
}

/// The completing call whose requests are being read.
#[derive(Debug, Default)]
struct Completion {
    id: Option<i64>,
    rank: u32,
    duration: Nanos,
    /// Requests of this call read so far.
    seen: u64,
    /// The most computation that a window of these requests held.
    compute: Nanos,
}

impl<'p> Aggregator<'p> {
    pub fn new(of_file: PlacesOfFile<'p>, definitions: &FileDefinitions) -> Self {
        Aggregator {
            of_file,
            ranks: (0..).zip(&definitions.ranks).map(|(index, info)| (info.key, index)).collect(),
            spans: definitions.ranks.iter().map(run_span).collect(),
            keys: FxHashMap::default(),
            cells: Vec::new(),
            operations: Operations::default(),
            receives: FxHashMap::default(),
            waits: FxHashMap::default(),
            possible_overlap: vec![Nanos(0); definitions.ranks.len()],
            completion: Completion::default(),
            windows: None,
            untold: SummedUp::default(),
        }
    }

    pub fn finish(mut self) -> FileSums {
        self.close_completion();
        let mut waits: Vec<_> =
            self.waits.into_iter().map(|((post, wait), time)| (post, wait, time)).collect();
        waits.sort_unstable();
        let measures = MeasureSums::default(); // for whoever has the database
        let Aggregator { cells, possible_overlap, untold, .. } = self;
        FileSums { cells, waits, possible_overlap, measures, untold }
    }

    /// Whether what began then counts.
    fn is_counted(&self, rank: u32, moment: Nanos) -> bool {
        let windows = self.windows.as_ref();
        windows.map_or(true, |of| {
            let (begin, end) = of[rank as usize];
            begin <= moment && moment < end
        })
    }

    fn cell_index(&mut self, key: CellKey) -> u32 {
        let cells = &mut self.cells;
        *self.keys.entry(key).or_insert_with(|| {
            cells.push((key, CallCell::default()));
            (cells.len() - 1) as u32
        })
    }

    fn rank_index(&self, rank: RankKey) -> u32 {
        self.ranks.get(&rank).copied().unwrap_or(0)
    }

    /// Bytes that came in a call or request that also sends. It counts once, where it sends.
    fn add_received_half(&mut self, id: Option<i64>) {
        if let Some(receive) = id.and_then(|id| self.operations.get(id)) {
            self.cells[receive.cell as usize].1.bytes += receive.bytes;
        }
    }

    /// Books how much of a completing call could at most have been overlapped with the computation that its requests'
    /// windows already held. One call, one number: windows of requests completed together overlap, so their
    /// computation must not be added up.
    fn close_completion(&mut self) {
        let closed = std::mem::take(&mut self.completion);
        if closed.id.is_some() {
            self.possible_overlap[closed.rank as usize] += closed.duration.min(closed.compute);
        }
    }

    /// This request's share of its completing call. The shares of a call's requests add up to its duration exactly:
    /// the nanoseconds that do not divide go to the first of them.
    fn share(&mut self, call: &CallRow, rank: u32) -> Nanos {
        let duration = call.duration.unwrap_or_default();
        if self.completion.id != Some(call.id) {
            self.close_completion();
            self.completion =
                Completion { id: Some(call.id), rank, duration, ..Completion::default() };
        }
        let requests = call.completed.max(1);
        let whole = duration.0 / requests as i64;
        let rest = (duration.0 % requests as i64) as u64;
        let share = whole + i64::from(self.completion.seen < rest);
        self.completion.seen += 1;
        Nanos(share)
    }
}

/// From the return of the call that started MPI to the entry of the one that ended it; the end of a process that died is
/// not known.
fn run_span(info: &RankInfo) -> (Nanos, Option<Nanos>) {
    (info.init_end, (info.ended == Ended::Finalize).then_some(info.end))
}

/// Of requests that have no rows the sums bound it: no more than what was exposed, nor than what their windows hold of computation.
fn possible_overlap(tally: &TallyRow) -> Nanos {
    Nanos(tally.completion.min(tally.window - tally.mpi).0.max(0))
}

/// A call that starts or ends MPI is not: its time is not part of the run time.
fn is_in_span((begin, end): (Nanos, Option<Nanos>), moment: Nanos) -> bool {
    moment >= begin && end.map_or(true, |end| moment < end)
}

impl RowSink for Aggregator<'_> {
    fn operation(&mut self, operation: &OperationRow) {
        let Some(site) = self.of_file.site(operation.call_id, operation.call_path_id) else {
            return;
        };
        let transfers = self.of_file.places().call(site).counted;
        let bytes = if transfers { operation.bytes } else { Bytes(0) };
        let cell = self.cell_index(CellKey {
            rank: self.rank_index(operation.rank),
            site,
            kind: operation.kind,
            size_class: bytes.size_class(),
            is_unsuccessful: false,
        });
        self.operations.insert(operation.id, CountedOperation { cell, bytes });
        if let Some(receive) = operation.receive_id {
            self.receives.insert(operation.id, receive);
        }
    }

    fn call(&mut self, call: &CallRow) {
        let Some(operation) = self.operations.get(call.operation_id) else { return };
        let rank = self.cells[operation.cell as usize].0.rank;
        let is_counted = self.is_counted(rank, call.begin);
        if is_counted && is_in_span(self.spans[rank as usize], call.begin) {
            let cell = &mut self.cells[operation.cell as usize].1;
            cell.add_call(operation.bytes, call);
            self.add_received_half(call.receive_id);
        }
    }

    fn request(&mut self, request: &RequestRow, completion: Option<&CallRow>) {
        let Some(operation) = self.operations.get(request.operation_id) else { return };
        let rank = self.cells[operation.cell as usize].0.rank;
        if !self.is_counted(rank, completion.map_or(request.post_begin, |call| call.begin)) {
            return;
        }
        let ended = completion.map(|call| {
            let share = self.share(call, rank);
            if let Some(mpi) = request.mpi {
                let compute = request_window(request, call) - mpi;
                self.completion.compute = self.completion.compute.max(compute);
            }
            if let Some(waited) = self.operations.get(call.operation_id) {
                *self.waits.entry((operation.cell, waited.cell)).or_default() += share;
            }
            (call, share)
        });
        self.cells[operation.cell as usize].1.add_request(operation.bytes, request, ended);
        self.add_received_half(self.receives.get(&request.operation_id).copied());
    }

    fn tally(&mut self, tally: &TallyRow) {
        if self.windows.is_some() {
            let time = tally.inside + tally.completion;
            let (tests, calls) = match tally.is_unsuccessful {
                true => (tally.count, 0),
                false => (0, tally.count),
            };
            self.untold.add(&SummedUp { tests, calls, time });
            return;
        }
        let Some(site) = self.of_file.site(tally.call_id, tally.call_path_id) else { return };
        let call = self.of_file.places().call(site);
        let is_post = call.category() == Category::Posting;
        let rank = self.rank_index(tally.rank);
        if is_post && !tally.is_unsuccessful {
            self.possible_overlap[rank as usize] += possible_overlap(tally);
        }
        let cell = self.cell_index(CellKey {
            rank,
            site,
            kind: call.kind,
            size_class: tally.size_class,
            is_unsuccessful: tally.is_unsuccessful,
        });
        self.cells[cell as usize].1.add_tally(tally, is_post && !tally.is_unsuccessful);
    }
}

#[derive(Debug, Clone, Copy)]
struct CountedOperation {
    cell: u32,
    bytes: Bytes,
}

/// Operations by id: an array as long as ids are dense, which is how they are written, a map for the others.
#[derive(Debug, Default)]
struct Operations {
    first: i64,
    dense: Vec<CountedOperation>,
    sparse: FxHashMap<i64, CountedOperation>,
}

impl Operations {
    fn insert(&mut self, id: i64, operation: CountedOperation) {
        if self.dense.is_empty() {
            self.first = id;
        }
        if id.wrapping_sub(self.first) == self.dense.len() as i64 {
            self.dense.push(operation);
        } else {
            self.sparse.insert(id, operation);
        }
    }

    fn get(&self, id: i64) -> Option<CountedOperation> {
        let index = usize::try_from(id.wrapping_sub(self.first)).ok();
        index.and_then(|index| self.dense.get(index)).or_else(|| self.sparse.get(&id)).copied()
    }
}
