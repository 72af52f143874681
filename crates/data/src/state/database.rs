//! The same of ranks whose spools have become databases.

mod rows;
mod tables;

use std::collections::HashMap;
use std::path::Path;

use rustc_hash::FxHashMap;

use self::rows::{Done, StateRows};
use self::tables::Tables;
use super::intern::Names;
use super::lanes::{Lanes, Times};
use super::locks::Locks;
use super::tables::{Begun, CollectiveOrder};
use super::{
    Collective, Condition, Failed, History, LastCall, OpenCall, OpenOperation, OpenRequest,
    RankState, Sequence, ThreadState, Waits,
};
use crate::db::{Database, DbError, FileDefinitions, FullOperation};
use crate::model::{Ended, Kind, Mode, Nanos, RankInfo};

/// What a database holds.
#[derive(Debug)]
pub struct DatabaseRanks {
    pub ranks: Vec<RankState>,
}

/// Without a history no row of a call or request is read.
///
/// # Errors
/// [`DbError`] naming the file.
pub fn read(path: &Path, names: &mut Names, has_history: bool) -> Result<DatabaseRanks, DbError> {
    let database = Database::open(path)?;
    let infos = FileDefinitions::read_ranks(&database)?;
    for info in &infos {
        names.describe(&info.command, &info.mpi_library);
    }
    let worlds: HashMap<i64, i64> =
        infos.iter().map(|info| (info.key.0, info.rank.world)).collect();
    let read = || -> rusqlite::Result<DatabaseRanks> {
        let mut tables = Tables::read(&database, &worlds, names)?;
        let rows = StateRows::read(&database, &tables, has_history)?;
        let mut rank =
            |info: &RankInfo| Reading { tables: &mut tables, names, rows: &rows, info }.rank();
        Ok(DatabaseRanks { ranks: infos.iter().map(&mut rank).collect() })
    };
    let mut read = read;
    read().map_err(DbError::reading(path))
}

/// One rank.
struct Reading<'a> {
    tables: &'a mut Tables,
    names: &'a mut Names,
    rows: &'a StateRows,
    info: &'a RankInfo,
}

impl Reading<'_> {
    fn rank(&mut self) -> RankState {
        let info = self.info;
        self.names.describe(&info.command, &info.mpi_library);
        let done = self.rows.done(info.key.0);
        let condition = match info.ended {
            Ended::Finalize => Condition::Finalized,
            Ended::Abort => Condition::Aborted,
            Ended::Exit => Condition::Exited,
            Ended::Killed => Condition::Killed,
        };
        let requests = done.requests.iter().filter_map(|row| {
            Some(OpenRequest {
                operation: self.open_operation(row.operation)?,
                thread: row.thread,
                begin: Nanos(row.begin),
                unsuccessful_tests: u32::try_from(row.tests).unwrap_or(u32::MAX),
                last_unsuccessful_test: Nanos(row.last_test.map_or(0, |since| row.begin + since)),
                is_cancelled: false,
                is_seen_complete: row.is_seen_complete,
                partitions: None,
            })
        });
        let requests = requests.collect();
        let now = done.gone.map_or(info.end, |gone| Nanos(gone).max(info.end));
        RankState {
            rank: info.rank,
            life: info.life,
            world_size: info.world_size,
            host: info.host.clone(),
            pid: info.pid,
            thread_level: info.thread_level,
            condition,
            epoch_unix_ns: info.epoch_unix_ns,
            init_end: info.init_end,
            now,
            // it told itself when it ended
            last_record: if info.ended == Ended::Killed { info.end } else { now },
            threads: self.threads(done),
            other_threads: Vec::new(),
            requests,
            history: self.history(done),
        }
    }

    fn threads(&mut self, done: &Done) -> Vec<ThreadState> {
        let mut threads = Vec::with_capacity(done.threads.len());
        for thread in &done.threads {
            let call = done.open.iter().find(|call| call.thread == thread.number);
            let open = call.and_then(|call| {
                let operation = self.open_operation(call.operation)?;
                let waits = self.waits(done, call);
                Some(OpenCall { operation, begin: Nanos(call.begin), waits })
            });
            let last = done.last.get(&thread.number).and_then(|&(end, operation)| {
                let operation = self.tables.operations.get(&operation)?.clone();
                Some(LastCall {
                    call: self.tables.call(operation.call_id, self.names),
                    path: self.tables.path(operation.call_path_id, self.names),
                    end: Nanos(end),
                })
            });
            threads.push(ThreadState {
                number: thread.number,
                tid: thread.tid,
                calls: thread.calls,
                unsuccessful_tests: thread.tests,
                unsuccessful: None,
                mpi: Nanos(thread.mpi),
                open,
                last,
                system: None,
            });
        }
        threads
    }

    /// What the conversion has found, and where it found nothing, all of the thread.
    fn waits(&self, done: &Done, call: &rows::OpenCallRow) -> Option<Waits> {
        let operation = self.tables.operations.get(&call.operation)?;
        self.tables.name(operation.call_id)?.completes?;
        let numbered = || (0u32..).zip(&done.requests);
        let given = |id: i64| call.waits.iter().find(|(request, _)| *request == id);
        let found: Vec<u32> =
            numbered().filter(|(_, row)| given(row.id).is_some()).map(|(at, _)| at).collect();
        let is_certain = !found.is_empty() && call.waits.iter().all(|(_, certain)| *certain);
        let own = || numbered().filter(|(_, row)| row.thread == call.thread).map(|(at, _)| at);
        let requests = if found.is_empty() { own().collect() } else { found };
        Some(Waits { handles: requests.len() as u32, requests, is_certain })
    }

    fn open_operation(&mut self, id: i64) -> Option<OpenOperation> {
        let row = self.tables.operations.get(&id)?.clone();
        let mut open = self.one_half(&row);
        let init = row.init_id.and_then(|init| self.tables.operations.get(&init)).cloned();
        let receive = init.as_ref().and_then(|init| init.receive_id).or(row.receive_id);
        if let Some(half) = receive.and_then(|half| self.tables.operations.get(&half)).cloned() {
            open.receive = Some(Box::new(self.one_half(&half)));
        }
        open.made_by = init.map(|init| self.tables.call(init.call_id, self.names));
        Some(open)
    }

    fn one_half(&mut self, row: &FullOperation) -> OpenOperation {
        const NONE: i64 = -3;
        const ROOT: i64 = -4;
        let own = self.info.rank.number;
        // MPI_ROOT has no column: this rank itself, whom its remote group does not have
        let is_root =
            row.kind == Kind::Collective && row.posted_peer.is_none() && row.peer == Some(own);
        let peer = row.posted_peer.unwrap_or(if is_root { ROOT } else { NONE });
        OpenOperation {
            call: self.tables.call(row.call_id, self.names),
            kind: row.kind,
            path: self.tables.path(row.call_path_id, self.names),
            communicator: self.tables.communicator(row.communicator_id),
            peer,
            peer_world: match is_root {
                true => Some(own),
                false => self.tables.peer_world(row.communicator_id, row.posted_peer),
            },
            tag: row.posted_tag.unwrap_or(NONE),
            bytes: row.posted_bytes,
            receive: None,
            made_by: None,
        }
    }

    fn history(&mut self, done: &Done) -> History {
        let mut messages =
            MessageLanes { is_whole: self.info_is_whole(done), ..MessageLanes::default() };
        let (mut locks, mut failed) = (Locks::default(), Vec::new());
        for (&id, &times) in &done.calls {
            let Some(row) = self.tables.operations.get(&id) else { continue };
            let Some(name) = self.tables.name(row.call_id) else { continue };
            if name.has_failed(row.kind, row.communicator_id.is_some()) {
                failed.push((row.call_id, row.call_path_id, times.count));
            } else if name.family == "WINDOW" {
                if let Some(window) = self.tables.communicator(row.communicator_id) {
                    locks.add(&name.name, window, row.peer, times.count);
                }
            } else if name.role == "BLOCK" {
                messages.add(self.tables, row, false, times);
            }
        }
        messages.is_whole &= failed.is_empty();
        let failed = failed.into_iter().map(|(call, path, count)| Failed {
            call: self.tables.call(call, self.names),
            path: self.tables.path(path, self.names),
            count,
        });
        let failed = failed.collect();
        for (&id, &times) in &done.ended {
            let Some(row) = self.tables.operations.get(&id) else { continue };
            messages.add_request(self.tables, row, times);
        }
        History {
            sent: messages.sent.list(),
            received: messages.received.list(),
            collectives: self.sequences(&done.orders),
            locks: locks.list(),
            failed,
            is_whole: messages.is_whole,
        }
    }

    fn info_is_whole(&self, done: &Done) -> bool {
        let info = self.info;
        info.lost_records + info.damaged_pieces + info.unknown_requests == 0
            && info.summarized.is_none()
            && !done.is_cut
    }

    fn sequences(&mut self, orders: &FxHashMap<i64, CollectiveOrder>) -> Vec<Sequence> {
        let mut sequences = Vec::with_capacity(orders.len());
        for (&comm, order) in orders {
            let Some(communicator) = self.tables.communicator(Some(comm)) else { continue };
            let last = order.last.iter().filter_map(|begun| self.collective(begun));
            sequences.push(Sequence { communicator, count: order.count, last: last.collect() });
        }
        sequences.sort_unstable_by_key(|sequence| sequence.communicator);
        sequences
    }

    fn collective(&mut self, begun: &Begun) -> Option<Collective> {
        let row = self.tables.operations.get(&i64::from(begun.operation))?.clone();
        let init = row.init_id.and_then(|init| self.tables.operations.get(&init));
        let call = init.map_or(row.call_id, |init| init.call_id);
        let open = self.one_half(&row);
        let call = self.tables.call(call, self.names);
        let OpenOperation { peer: root, peer_world: root_world, bytes, path, .. } = open;
        Some(Collective { call, root, root_world, bytes, path })
    }
}

#[derive(Default)]
struct MessageLanes {
    sent: Lanes,
    received: Lanes,
    is_whole: bool,
}

impl MessageLanes {
    fn add_request(&mut self, tables: &Tables, row: &FullOperation, times: Times) {
        let ended = row.ended.as_deref();
        if !matches!(row.kind, Kind::Send | Kind::Recv) || ended == Some("cancelled") {
            return;
        }
        self.add(tables, row, matches!(ended, Some("freed" | "failed")), times);
        let init = row.init_id.and_then(|init| tables.operations.get(&init));
        let call = init.map_or(row.call_id, |init| init.call_id);
        match row.receive_id.and_then(|half| tables.operations.get(&half)) {
            Some(half) => self.add(tables, half, false, times),
            None if tables.name(call).is_some_and(|name| name.sends_and_receives()) => {
                self.is_whole = false;
            }
            None => {}
        }
    }

    /// `is_vague`: nothing says what came, but what was asked for.
    fn add(&mut self, tables: &Tables, row: &FullOperation, is_vague: bool, times: Times) {
        const PROC_NULL: i64 = -2;
        let lanes = match row.kind {
            Kind::Send => &mut self.sent,
            Kind::Recv => &mut self.received,
            _ => return,
        };
        if row.posted_peer == Some(PROC_NULL) {
            return;
        }
        let init = row.init_id.and_then(|init| tables.operations.get(&init));
        let call = init.map_or(row.call_id, |init| init.call_id);
        let is_partitioned =
            tables.name(call).is_some_and(|name| name.mode == Some(Mode::Partitioned));
        let (peer, tag) = match is_vague {
            true => (tables.peer_world(row.communicator_id, row.posted_peer), row.posted_tag),
            false => (row.peer, row.tag),
        };
        let communicator = tables.communicator(row.communicator_id);
        let (Some(communicator), Some(peer), Some(tag @ 0..)) = (communicator, peer, tag) else {
            self.is_whole = false;
            return;
        };
        lanes.add((communicator, peer, tag, is_partitioned), row.bytes, times);
    }
}
