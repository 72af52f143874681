//! Puts files together: what each numbers for itself gets numbers of the run, and moments get one origin.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::endpoint::NONE;
use super::file::FileTrace;
use super::lane::LaneKey;
use super::operation::{Direction, Operation, RequestEnd};
use super::roster::{CommKey, Member, Roster};
use super::rows::FileOperation;
use super::rows::RankRows;
use super::{DeviceTime, RankTrace, Starvation, Trace};
use crate::stats::upper_median;
use lapscope_data::model::{CallName, Ended, Kind, Mode, Rank};
use lapscope_data::places::{Interner, Places};

/// Gives what files number for themselves numbers of the run.
pub(super) struct Combiner<'a> {
    places: Arc<Places>,
    roster: &'a Roster,
    /// Number of the blocking call that does the same, by the call: the same whatever part of the run is read.
    blocking_calls: Vec<u32>,
    /// By the call, and the one that says what kind of send it is.
    calls: FxHashMap<(u32, u32), (u32, Mode, Rc<CallName>)>,
    lanes: Interner<LaneKey, FxBuildHasher>,
    communicators: Interner<CommKey, FxBuildHasher>,
    mark_names: Interner<String>,
}

/// What files have in common once they are put together.
pub(super) struct Common {
    pub lanes: Vec<LaneKey>,
    /// [`LaneKey::comm`] indexes into this.
    pub communicators: Vec<CommKey>,
}

impl<'a> Combiner<'a> {
    pub fn new(places: &Arc<Places>, roster: &'a Roster, trace: &mut Trace) -> Combiner<'a> {
        let mut distinct: Interner<CallName> = Interner::default();
        let blocking = |call: &CallName| {
            let name = call.blocking.clone();
            distinct.intern(CallName { name, role: "BLOCK".into(), ..call.clone() }) as u32
        };
        let blocking_calls = places.calls.iter().map(blocking).collect();
        trace.blocking_calls = distinct.values;
        Combiner {
            places: Arc::clone(places),
            roster,
            blocking_calls,
            calls: FxHashMap::default(),
            lanes: Interner::default(),
            communicators: Interner::default(),
            mark_names: Interner::default(),
        }
    }

    /// Ranks without rows are there as well, with what the roster knows of them.
    pub fn combine(mut self, files: Vec<FileTrace>, trace: &mut Trace) -> Common {
        let bare = |member: &Member| RankTrace {
            epoch: member.epoch,
            init_end: member.info.init_end.0,
            end: member.info.end.0,
            info: Some(member.info.clone()),
            ..RankTrace::default()
        };
        trace.ranks = self.roster.ranks().iter().map(bare).collect();
        for mut file in files {
            let rows = std::mem::take(&mut file.ranks);
            for (slot, rows) in rows.into_iter().enumerate() {
                let info = &file.definitions.ranks[slot];
                let Some(place) = self.roster.place(info.rank, info.life) else { continue };
                if file.is_wanted(slot) {
                    self.fill(&mut trace.ranks[place as usize], &file, slot, place, rows);
                }
            }
        }
        trace.mark_names = self.mark_names.values;
        set_nodes_and_epochs(&mut trace.ranks);
        trace.communicators.clone_from(&self.communicators.values);
        Common { lanes: self.lanes.values, communicators: self.communicators.values }
    }

    fn fill(
        &mut self,
        rank: &mut RankTrace,
        file: &FileTrace,
        slot: usize,
        place: u32,
        rows: RankRows,
    ) {
        let info = &file.definitions.ranks[slot];
        rank.operations = rows
            .operations
            .iter()
            .map(|operation| self.operation(file, &info.rank, info.life, place, operation))
            .collect();
        let mut left_out = rows.left_out;
        for it in &mut left_out {
            let row = &rows.operations[it.operation as usize];
            it.comm = self.communicator(file, &info.rank, row);
        }
        rank.endpoints = rows.endpoints.into();
        rank.calls = rows.calls.into();
        rank.other_calls = rows.other_calls;
        rank.other_counts = rows.other_counts;
        rank.threads = rows.threads;
        rank.observations = rows.observations;
        rank.message_waits = rows.message_waits;
        rank.vain_probes = rows.vain_probes;
        rank.presence = rows.presence;
        rank.starvation = Starvation::new(rows.starved);
        rank.devices = DeviceTime::new(rows.device_busy);
        rank.left_out = left_out;
        rank.detail = rows.detail;
        rank.made = rows.made;
        rank.marks = rows.marks.with_names_of(&mut self.mark_names);
    }

    /// As lanes have it.
    fn communicator(&mut self, file: &FileTrace, rank: &Rank, row: &FileOperation) -> Option<u32> {
        let communicator = file.communicators.get(&row.communicator_id?)?;
        Some(self.communicators.intern(communicator.key(rank.world)) as u32)
    }

    fn operation(
        &mut self,
        file: &FileTrace,
        rank: &Rank,
        life: i64,
        place: u32,
        row: &FileOperation,
    ) -> Operation {
        let (blocking_call, mode, name) = self.names(row);
        let communicator = row.communicator_id.and_then(|id| file.communicators.get(&id));
        let peer = row.peer.and_then(|peer| self.roster.place(rank.neighbor(peer), life));
        let direction = match row.kind {
            Kind::Send => Direction::Send,
            Kind::Recv => Direction::Receive,
            Kind::Collective => Direction::Collective,
            Kind::Rma if name.is_fence() => Direction::Collective,
            Kind::Other if name.makes_together() => Direction::Collective,
            _ => Direction::None,
        };
        let is_matched = row.posted_peer != Some(PROC_NULL) && is_matched(direction, row.ended);
        let comm = self.communicator(file, rank, row);
        let key =
            comm.and_then(|comm| LaneKey::new(comm, direction, place, peer, row.tag, mode, &name));
        let lane = key.filter(|_| is_matched).map(|key| self.lanes.intern(key) as u32);
        let is_message = matches!(direction, Direction::Send | Direction::Receive);
        Operation {
            site: row.site,
            path: row.path,
            blocking_call,
            kind: row.kind,
            direction,
            mode,
            is_request: name.role == "POST",
            is_second_half: row.is_second_half,
            bytes: row.bytes,
            peer,
            tag: row.tag,
            lane: lane.unwrap_or(NONE),
            is_wildcard: row.posted_peer == Some(ANY_SOURCE),
            is_untraceable: is_message && is_matched && lane.is_none(),
            comm: comm.unwrap_or(NONE),
            comm_size: communicator.map_or(0, |communicator| communicator.size),
            ended: row.ended,
            is_tested: row.is_tested,
        }
    }

    /// The blocking call that does the same, the mode, and the call with the family of the one that says it.
    fn names(&mut self, row: &FileOperation) -> (u32, Mode, Rc<CallName>) {
        let (places, blocking_calls) = (&self.places, &self.blocking_calls);
        let call = places.site(row.site).call;
        self.calls
            .entry((call, row.mode_call))
            .or_insert_with(|| {
                let mode_call = &places.calls[row.mode_call as usize];
                let role = places.calls[call as usize].role.clone();
                let mode = mode_call.mode.unwrap_or(Mode::Standard);
                let call = CallName { role, ..mode_call.clone() };
                (blocking_calls[row.mode_call as usize], mode, Rc::new(call))
            })
            .clone()
    }
}

/// `operation.posted_peer` of MPI_ANY_SOURCE and of MPI_PROC_NULL.
const ANY_SOURCE: i64 = -1;
const PROC_NULL: i64 = -2;

/// Whether it takes a message off, or puts one on, its lane.
fn is_matched(direction: Direction, ended: RequestEnd) -> bool {
    match ended {
        RequestEnd::Cancelled => false,
        RequestEnd::Pending => direction != Direction::Receive,
        _ => true,
    }
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
        if rank.info().ended != Ended::Finalize {
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
        for call in &mut self.other_calls {
            call.begin = correct(call.begin);
        }
        for probe in &mut self.message_waits {
            probe.begin = correct(probe.begin);
        }
        for left_out in &mut self.left_out {
            (left_out.begin, left_out.end) = (correct(left_out.begin), correct(left_out.end));
        }
        for detail in &mut self.detail {
            (detail.begin, detail.end) = (correct(detail.begin), correct(detail.end));
        }
        for mark in &mut self.marks {
            mark.at = correct(mark.at);
        }
        self.presence.map(&correct);
        self.starvation.map(&correct);
        self.devices.map(&correct);
        self.init_end = correct(self.init_end);
        self.end = correct(self.end);
    }
}
