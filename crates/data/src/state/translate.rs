//! Ids of one spool as those of the job.

use rustc_hash::FxHashMap;

use super::definitions::{RawComm, RawMembers, SpoolOperation};
use super::intern::{CommunicatorKey, Names};
use super::layout::peer;
use super::spool::Spool;
use super::{names, Members, OpenOperation};
use crate::model::Frame;

/// Indices of the job by those of the spool, as far as they were asked for.
#[derive(Debug, Default)]
pub struct JobIndices {
    paths: FxHashMap<u32, u32>,
    comms: FxHashMap<u32, u32>,
    calls: FxHashMap<u16, u32>,
}

/// A spool's ids as those of the job.
pub struct Translate<'a> {
    pub spool: &'a Spool,
    pub known: &'a mut JobIndices,
    pub names: &'a mut Names,
}

impl Translate<'_> {
    pub fn call(&mut self, call: u16) -> u32 {
        let names = &mut *self.names;
        let of = || names.call(&names::all()[usize::from(call)]);
        *self.known.calls.entry(call).or_insert_with(of)
    }

    pub fn path(&mut self, id: u32) -> Option<u32> {
        if let Some(&known) = self.known.paths.get(&id) {
            return Some(known);
        }
        let definitions = &self.spool.tables.definitions;
        let path = definitions.path(id)?;
        let frame = |&address: &u64| {
            let holding = definitions.module_holding(address);
            Frame {
                module: holding.map(|holding| self.names.module(&holding.module)),
                address: holding.map_or(address, |holding| holding.own(address)),
                level: 0,
            }
        };
        let frames = path.frames.iter().map(frame).collect();
        let at = self.names.path(frames, path.truncated);
        self.known.paths.insert(id, at);
        Some(at)
    }

    pub fn communicator(&mut self, id: u32) -> Option<u32> {
        if let Some(&known) = self.known.comms.get(&id) {
            return Some(known);
        }
        let comm = self.spool.tables.definitions.comm(id)?;
        let key = CommunicatorKey {
            world: self.spool.header.rank.world,
            identity: comm.identity,
            ordinal: comm.ordinal,
            is_inter: comm.is_inter,
        };
        let at = self.names.communicator(key, || (comm.name.clone(), members(comm)));
        self.known.comms.insert(id, at);
        Some(at)
    }

    /// World rank of a peer.
    pub fn peer_world(&self, comm: u32, peer: i32) -> Option<i64> {
        if peer == peer::ROOT {
            return Some(self.spool.header.rank.number);
        }
        self.spool.tables.definitions.comm(comm)?.peer_world(peer)
    }

    /// As posted.
    pub fn open_operation(&mut self, id: u32) -> Option<OpenOperation> {
        let posted = *self.spool.tables.definitions.operation(id)?;
        let mut open = self.one_half(&posted);
        open.receive = self.half(id, posted.receive).map(Box::new);
        let definitions = &self.spool.tables.definitions;
        if let Some(init) = definitions.operation(posted.init).copied() {
            open.made_by = Some(self.call(init.call));
            if init.receive != 0 {
                open.receive = self.half(posted.init, init.receive).map(Box::new);
            }
        }
        Some(open)
    }

    /// The half that another operation speaks of, which speaks of no further one.
    fn half(&mut self, of: u32, id: u32) -> Option<OpenOperation> {
        let half = *self.spool.tables.definitions.operation(id).filter(|_| id != of)?;
        Some(self.one_half(&half))
    }

    fn one_half(&mut self, posted: &SpoolOperation) -> OpenOperation {
        OpenOperation {
            call: self.call(posted.call),
            kind: posted.kind(),
            path: self.path(posted.path),
            communicator: self.communicator(posted.comm),
            peer: i64::from(posted.peer),
            peer_world: self.peer_world(posted.comm, posted.peer),
            tag: i64::from(posted.tag),
            bytes: posted.bytes,
            receive: None,
            made_by: None,
        }
    }
}

fn members(comm: &RawComm) -> Members {
    match &comm.members {
        RawMembers::World => Members::World(comm.local_size()),
        RawMembers::Listed(members) => Members::Listed(members.to_vec()),
        RawMembers::Unknown => Members::Unknown,
    }
}
