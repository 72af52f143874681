//! Puts files together: what each numbers for itself gets numbers of the run, and moments get one origin.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::endpoint::NONE;
use super::file::{FileOperation, FileTrace, RankRows};
use super::matching::LaneKey;
use super::operation::{Direction, Ended, Operation};
use super::{RankTrace, Starvation, Trace};
use crate::stats::upper_median;
use lapscope_data::model::{CallName, Ended as RankEnded, Kind, Mode, Rank};
use lapscope_data::places::{unknown_call, Interner, Paths};

/// Gives what files number for themselves numbers of the run.
pub(super) struct Combiner {
    calls: Interner<CallName>,
    paths: Paths,
    lanes: Interner<LaneKey>,
    communicators: Interner<(i64, i64, i64)>,
    /// Place of a rank in the run, by world, rank and life.
    places: HashMap<(Rank, i64), u32>,
    order: Vec<(Rank, i64)>,
}

impl Combiner {
    pub fn new(files: &[FileTrace]) -> Combiner {
        let mut order: Vec<(Rank, i64)> = files
            .iter()
            .flat_map(|file| &file.definitions.ranks)
            .map(|info| (info.rank, info.life))
            .collect();
        order.sort_unstable();
        Combiner {
            calls: Interner::default(),
            paths: Paths::default(),
            lanes: Interner::default(),
            communicators: Interner::default(),
            places: (0..).zip(&order).map(|(place, &key)| (key, place)).collect(),
            order,
        }
    }

    pub fn combine(mut self, files: Vec<FileTrace>, trace: &mut Trace) -> Vec<LaneKey> {
        trace.ranks.resize_with(self.order.len(), RankTrace::default);
        for mut file in files {
            let rows = std::mem::take(&mut file.ranks);
            for (slot, rows) in rows.into_iter().enumerate() {
                let info = &file.definitions.ranks[slot];
                let place = self.places[&(info.rank, info.life)];
                trace.ranks[place as usize] = self.rank(&file, slot, place, rows);
            }
        }
        set_nodes_and_epochs(&mut trace.ranks);
        trace.calls = self.calls.values;
        (trace.modules, trace.paths) = self.paths.into_parts();
        self.lanes.values
    }

    fn rank(&mut self, file: &FileTrace, slot: usize, place: u32, rows: RankRows) -> RankTrace {
        let info = file.definitions.ranks[slot].clone();
        let mut cache = Cache::default();
        let operations = rows
            .operations
            .iter()
            .map(|operation| {
                self.operation(file, &info.rank, info.life, place, operation, &mut cache)
            })
            .collect();
        RankTrace {
            epoch: file.epochs.get(&info.key).copied().unwrap_or(0),
            init_end: info.init_end.0,
            end: info.end.0,
            operations,
            endpoints: rows.endpoints,
            calls: rows.calls,
            observations: rows.observations,
            presence: rows.presence,
            starvation: Starvation::new(rows.starved),
            node: 0,
            info: Some(info),
        }
    }

    fn operation(
        &mut self,
        file: &FileTrace,
        rank: &Rank,
        life: i64,
        place: u32,
        row: &FileOperation,
        cache: &mut Cache,
    ) -> Operation {
        let (call, blocking_call, mode, name) = self.names(file, row, cache);
        let path = row.call_path_id.and_then(|id| {
            let paths = &mut self.paths;
            let interned = || paths.intern(&file.definitions, id).map(|path| path as u32);
            *cache.paths.entry(id).or_insert_with(interned)
        });
        let communicator = row.communicator_id.and_then(|id| file.communicators.get(&id));
        let peer = row.peer.and_then(|peer| self.places.get(&(rank.neighbor(peer), life)).copied());
        let direction = match row.kind {
            Kind::Send => Direction::Send,
            Kind::Recv => Direction::Receive,
            Kind::Collective => Direction::Collective,
            _ => Direction::None,
        };
        let is_matched = row.posted_peer != Some(PROC_NULL) && is_matched(direction, row.ended);
        let key = communicator.and_then(|communicator| {
            let key = (rank.world, communicator.identity, communicator.ordinal);
            let comm = self.communicators.intern(key) as u32;
            LaneKey::of(comm, direction, place, peer, row.tag, mode, &name)
        });
        let lane = key.filter(|_| is_matched).map(|key| self.lanes.intern(key) as u32);
        let is_message = matches!(direction, Direction::Send | Direction::Receive);
        Operation {
            call,
            blocking_call,
            path,
            kind: row.kind,
            direction,
            mode,
            is_request: name.role == "POST",
            is_second_half: row.is_second_half,
            bytes: row.bytes,
            peer,
            tag: row.tag,
            lane: lane.unwrap_or(NONE),
            is_untraceable: is_message && is_matched && lane.is_none(),
            comm_size: communicator.map_or(0, |communicator| communicator.size),
            ended: row.ended,
            is_tested: row.is_tested,
        }
    }

    fn names(
        &mut self,
        file: &FileTrace,
        row: &FileOperation,
        cache: &mut Cache,
    ) -> (u32, u32, Mode, CallName) {
        let calls = &mut self.calls;
        let definitions = &file.definitions;
        let of = |id: i64| definitions.calls.get(&id).cloned().unwrap_or_else(|| unknown_call(id));
        cache
            .calls
            .entry((row.call_id, row.mode_call_id))
            .or_insert_with(|| {
                let (call, mode_call) = (of(row.call_id), of(row.mode_call_id));
                let blocking = CallName {
                    name: mode_call.blocking.clone(),
                    role: "BLOCK".into(),
                    ..mode_call.clone()
                };
                let indices = (calls.intern(call.clone()) as u32, calls.intern(blocking) as u32);
                let mode = mode_call.mode.unwrap_or(Mode::Standard);
                (indices.0, indices.1, mode, CallName { role: call.role, ..mode_call })
            })
            .clone()
    }
}

/// `operation.posted_peer` of MPI_PROC_NULL.
const PROC_NULL: i64 = -2;

/// Whether it takes a message off, or puts one on, its lane.
fn is_matched(direction: Direction, ended: Ended) -> bool {
    match ended {
        Ended::Cancelled => false,
        Ended::Pending => direction != Direction::Receive,
        _ => true,
    }
}

/// What was interned for one rank, by the ids of its file.
#[derive(Default)]
struct Cache {
    calls: FxHashMap<(i64, i64), (u32, u32, Mode, CallName)>,
    paths: FxHashMap<i64, Option<u32>>,
}

/// Numbers hosts, and makes moments absolute: since the first epoch, on the clock of each host.
fn set_nodes_and_epochs(ranks: &mut [RankTrace]) {
    let mut hosts: Interner<String> = Interner::default();
    let mut offsets: Vec<Vec<i64>> = Vec::new();
    for rank in ranks.iter_mut() {
        rank.node = hosts.intern(rank.info().host.clone()) as u32;
        offsets.resize_with(hosts.values.len(), Vec::new);
        offsets[rank.node as usize].push(rank.info().epoch_unix_ns - rank.epoch);
    }
    // Several hosts: by their time of day to begin with, the same difference for all ranks of a host.
    let offsets: Vec<i64> = offsets
        .into_iter()
        .map(|mut offsets| match hosts.values.len() {
            1 => 0,
            _ => upper_median(&mut offsets, Ord::cmp).unwrap_or(0),
        })
        .collect();
    let absolute = |rank: &RankTrace| rank.epoch + offsets[rank.node as usize];
    let first = ranks.iter().map(absolute).min().unwrap_or(0);
    for rank in ranks.iter_mut() {
        let epoch = absolute(rank) - first;
        rank.epoch = epoch;
        if rank.info().ended != RankEnded::Finalize {
            rank.end = rank.end.max(rank.init_end);
        }
        rank.map_moments(|moment| moment + epoch);
    }
}

impl RankTrace {
    /// Moves every moment but the epoch.
    pub(super) fn map_moments(&mut self, correct: impl Fn(i64) -> i64) {
        for endpoint in &mut self.endpoints {
            endpoint.begin = correct(endpoint.begin);
        }
        for call in &mut self.calls {
            call.begin = correct(call.begin);
        }
        self.presence.map(&correct);
        self.starvation.map(&correct);
        self.init_end = correct(self.init_end);
        self.end = correct(self.end);
    }
}
