//! Reads one file of a run, front to back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::marks::read_marks;
use super::message_waits::VainProbes;
use super::presence::Presence;
use super::query::{self, CommunicatorRow};
use super::roster::{CommKey, Member};
use super::row::TraceRow;
use super::rows::{
    add_call, add_request, FileOperation, OperationPlace, OperationPlaces, RankRows,
};
use super::{LeftOut, Starvation};
use lapscope_data::db::{
    read_request_memory, rows_in, scan_rows, scan_tallies, FileDefinitions, RowSink,
};
use lapscope_data::model::{CallName, Kind, Rank, RankInfo, RankKey};
use lapscope_data::places::PlacesOfFile;

/// Ranks of which rows are wanted, by rank and life.
pub type WantedRanks = HashSet<(Rank, i64)>;

/// What of ranks is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What sums are made of.
    Sums,
    /// Other calls and threads, too.
    All,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Communicator {
    identity: i64,
    ordinal: i64,
    pub size: u32,
}

/// By `communicator.id`.
pub(super) type Communicators = HashMap<i64, Communicator>;

impl Communicator {
    pub fn key(&self, world: i64) -> CommKey {
        (world, self.identity, self.ordinal)
    }
}

/// The rows of one file, by rank.
pub(super) struct FileTrace {
    pub definitions: FileDefinitions,
    pub communicators: Communicators,
    pub epochs: HashMap<RankKey, i64>,
    pub ranks: Vec<RankRows>,
    /// Ranks whose rows are taken; `None`: all.
    wanted: Option<Vec<bool>>,
    rows: u64,
}

impl FileTrace {
    pub(super) fn read(
        connection: &Connection,
        of_file: PlacesOfFile<'_>,
        definitions: FileDefinitions,
        mut sink: Option<&mut dyn RowSink>,
        (wanted, depth): (Option<&WantedRanks>, Depth),
        progress: &(dyn Fn(u64) + Sync),
    ) -> rusqlite::Result<FileTrace> {
        let for_replay = depth == Depth::All;
        let wanted = wanted.map(|wanted| {
            let is_wanted = |info: &RankInfo| wanted.contains(&(info.rank, info.life));
            definitions.ranks.iter().map(is_wanted).collect::<Vec<bool>>()
        });
        let (calls, requests) = (rows_in(connection, "call")?, rows_in(connection, "request")?);
        let mut file = FileTrace {
            ranks: definitions.ranks.iter().map(|_| RankRows::default()).collect(),
            definitions,
            communicators: Communicators::new(),
            epochs: query::epochs(connection)?,
            wanted,
            rows: calls + requests,
        };
        for slot in 0..file.ranks.len() {
            file.ranks[slot].is_left_out = !file.is_wanted(slot);
        }
        let ranks = file.ranks.len().max(1) as u64; // that have much the same, mostly
        for rank in file.ranks.iter_mut().filter(|rank| !rank.is_left_out) {
            rank.reserve(calls.div_ceil(ranks), requests.div_ceil(ranks));
        }
        for (rank, info) in file.ranks.iter_mut().zip(&file.definitions.ranks) {
            rank.end = info.end.0;
        }
        file.read_communicators(connection)?;
        file.read_starvation(connection)?;
        file.read_device_busy(connection)?;
        file.read_detail(connection)?;
        for (slot, marks) in read_marks(connection, |rank| file.wanted_slot(rank))? {
            file.ranks[slot].marks = marks;
        }
        let mut places = file.read_operations(connection, of_file, |row| {
            if let Some(sink) = &mut sink {
                sink.operation(&row.summable());
            }
        })?;
        places.memory = read_request_memory(connection)?;
        file.read_left_out(connection, &places)?;
        file.read_vain_probes(connection, of_file)?;
        let mut state = (&mut file.ranks, sink, 0u64);
        scan_rows::<TraceRow, _>(
            connection,
            &mut state,
            |(ranks, sink, rows), call| {
                tick(rows, progress);
                add_call(ranks, &places, call, for_replay);
                if let Some(sink) = sink {
                    sink.call(call);
                }
            },
            |(ranks, sink, rows), request, completion| {
                tick(rows, progress);
                add_request(ranks, &places, &request, completion, for_replay);
                if let Some(sink) = sink {
                    sink.request(&request.summable(), completion);
                }
                true
            },
        )?;
        if let (_, Some(sink), _) = state {
            scan_tallies(connection, sink)?;
        }
        for rank in &mut file.ranks {
            // of what follows nothing is known: the rank may have been in MPI at once
            rank.inside.extend(rank.detail.iter().map(|detail| (detail.end, detail.end)));
            rank.inside.append(&mut rank.posts);
            rank.presence = Presence::new(std::mem::take(&mut rank.inside));
            rank.call_ids = Vec::new();
            rank.posts = Vec::new();
            rank.endpoints.shrink_to_fit();
            rank.calls.shrink_to_fit();
        }
        Ok(file)
    }

    /// The trace of one rank whose rows were kept.
    pub(super) fn of_kept(info: RankInfo, communicators: Communicators, rows: RankRows) -> Self {
        let definitions = FileDefinitions { ranks: vec![info], ..FileDefinitions::default() };
        FileTrace {
            definitions,
            communicators,
            epochs: HashMap::new(),
            ranks: vec![rows],
            wanted: None,
            rows: 0,
        }
    }

    /// Whether rows of a rank of the file were asked for.
    pub(super) fn is_wanted(&self, slot: usize) -> bool {
        self.wanted.as_ref().map_or(true, |wanted| wanted[slot])
    }

    /// The slot of a rank, where rows of it are wanted.
    fn wanted_slot(&self, rank: RankKey) -> Option<usize> {
        let slot = self.definitions.ranks.iter().position(|info| info.key == rank)?;
        self.is_wanted(slot).then_some(slot)
    }

    /// Its ranks.
    pub(super) fn members(&self) -> impl Iterator<Item = Member> + '_ {
        let ranks = self.definitions.ranks.iter().zip(&self.ranks);
        ranks.enumerate().map(|(slot, (info, rows))| {
            let mut own: Vec<CommKey> = rows
                .operations
                .iter()
                .filter(|operation| matches!(operation.kind, Kind::Collective | Kind::Other))
                .filter_map(|operation| self.communicators.get(&operation.communicator_id?))
                .map(|communicator| communicator.key(info.rank.world))
                .collect();
            own.sort_unstable();
            own.dedup();
            Member {
                info: Arc::new(info.clone()),
                epoch: self.epochs.get(&info.key).copied().unwrap_or(0),
                is_starved: !Starvation::new(rows.starved.clone()).is_empty(),
                rows: if slot == 0 { self.rows } else { 0 },
                communicators: own,
            }
        })
    }

    pub(super) fn slots(&self) -> HashMap<RankKey, u32> {
        (0..).zip(&self.definitions.ranks).map(|(slot, info)| (info.key, slot)).collect()
    }

    fn read_communicators(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let slots = self.slots();
        for row in query::communicators(connection)? {
            let CommunicatorRow { id, rank, name, identity, ordinal, size } = row;
            self.communicators.insert(id, Communicator { identity, ordinal, size });
            if let Some(&slot) = slots.get(&rank) {
                self.ranks[slot as usize].made.add(&name);
            }
        }
        Ok(())
    }

    fn read_starvation(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let slots = self.slots();
        for (rank, starved) in query::starved(connection)? {
            if let Some(&slot) = slots.get(&rank) {
                self.ranks[slot as usize].starved.push(starved);
            }
        }
        Ok(())
    }

    fn read_detail(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let slots = self.slots();
        for (rank, detail) in query::details(connection)? {
            if let Some(&slot) = slots.get(&rank) {
                self.ranks[slot as usize].detail.push(detail);
            }
        }
        Ok(())
    }

    fn read_device_busy(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let slots = self.slots();
        for (rank, row) in query::device_busy(connection)? {
            let slot = slots.get(&rank).map(|&slot| slot as usize);
            if let Some(slot) = slot.filter(|&slot| self.is_wanted(slot)) {
                self.ranks[slot].device_busy.push(row);
            }
        }
        Ok(())
    }

    fn read_left_out(
        &mut self,
        connection: &Connection,
        places: &OperationPlaces,
    ) -> rusqlite::Result<()> {
        for row in query::left_out(connection)? {
            let is_taken =
                |place: &OperationPlace| place.is_endpoint && self.is_wanted(place.rank as usize);
            let Some(place) = places.get(row.operation_id).filter(is_taken) else { continue };
            self.ranks[place.rank as usize].left_out.push(LeftOut {
                operation: place.operation,
                count: row.count,
                begin: row.begin,
                end: row.end,
                comm: None,
            });
        }
        Ok(())
    }

    fn read_vain_probes(
        &mut self,
        connection: &Connection,
        of_file: PlacesOfFile<'_>,
    ) -> rusqlite::Result<()> {
        let slots = self.slots();
        for row in query::vain_probes(connection)? {
            let site = of_file.site(row.call_id, row.call_path_id);
            let Some((&slot, site)) = slots.get(&row.rank).zip(site) else { continue };
            if self.is_wanted(slot as usize) {
                let (count, ns) = (row.count, row.inside.0);
                self.ranks[slot as usize].vain_probes.push(VainProbes { site, count, ns });
            }
        }
        Ok(())
    }

    fn read_operations(
        &mut self,
        connection: &Connection,
        of_file: PlacesOfFile<'_>,
        mut also: impl FnMut(&query::OperationRow),
    ) -> rusqlite::Result<OperationPlaces> {
        let slots = self.slots();
        let mut places = OperationPlaces::default();
        query::operations(connection, |row| {
            also(&row);
            let rank = slots.get(&row.rank).copied().unwrap_or(0);
            let operations = &mut self.ranks[rank as usize].operations;
            let site = of_file.site(row.call_id, row.call_path_id);
            let Some((site, mode_call)) = site.zip(of_file.call_index(row.mode_call_id)) else {
                return;
            };
            let operation = FileOperation {
                site,
                path: row.call_path_id.and_then(|path| of_file.path(path)),
                mode_call,
                communicator_id: row.communicator_id,
                kind: row.kind,
                bytes: row.bytes,
                peer: row.peer,
                tag: row.tag,
                posted_peer: row.posted_peer,
                ended: row.ended,
                is_tested: row.is_tested,
                receive: row.receive,
                is_second_half: false,
            };
            let call = of_file.places().call(site);
            let is_blocking = is_blocking(call, &operation);
            let place = OperationPlace {
                rank,
                operation: operations.len() as u32,
                is_blocking,
                is_endpoint: is_blocking || call.role == "POST",
                waits_for_message: waits_for_message(call, &operation),
            };
            places.receives.extend(operation.receive.map(|receive| (row.id, receive)));
            operations.push(operation);
            places.push(row.id, place);
        })?;
        for place in places.receives.values().filter_map(|&id| places.get(id)) {
            let rank = &mut self.ranks[place.rank as usize];
            rank.operations[place.operation as usize].is_second_half = true;
        }
        Ok(places)
    }
}

/// Whether the rows of `call` for this operation are messages or collectives themselves, fences, make communicators together, or
/// may wait for other ranks of their window.
fn is_blocking(call: &CallName, operation: &FileOperation) -> bool {
    let communicates = match operation.kind {
        Kind::Send | Kind::Recv | Kind::Collective => true,
        Kind::Rma => operation.peer.is_some() || call.is_fence() || call.epoch().is_some(),
        _ => return call.makes_together() && operation.communicator_id.is_some(),
    };
    communicates && call.role == "BLOCK" && call.counted
}

/// Whether it waits for a message and communicates nothing: a probe, or what waits for buffered sends.
fn waits_for_message(call: &CallName, operation: &FileOperation) -> bool {
    (call.role == "PROBE" && operation.kind == Kind::Recv) || call.drains_buffers()
}

/// Reports progress every so many rows: each of them would cost more than reading it.
fn tick(rows: &mut u64, progress: &(dyn Fn(u64) + Sync)) {
    const EVERY: u64 = 1 << 16;
    *rows += 1;
    if *rows % EVERY == 0 {
        progress(EVERY);
    }
}
