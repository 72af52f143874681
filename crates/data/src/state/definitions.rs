//! What the ids of a spool mean.

use std::sync::Arc;

use super::layout::{
    comm, i32_at, i64_at, module, operation, outcome, path, record, thread, u16_at, u32_at, u64_at,
};
use super::records::Definition;
use crate::model::bounds::MOST_BYTES;
use crate::model::{Kind, Module};
use crate::secrets::hide_in_command;

/// Definitions by id.
#[derive(Debug, Default)]
pub struct Definitions {
    pub modules: Vec<Option<LoadedModule>>,
    pub paths: Vec<Option<RawPath>>,
    pub comms: Vec<Option<RawComm>>,
    pub operations: Vec<SpoolOperation>,
    pub outcomes: Vec<SpoolOutcome>,
    /// The command line, and the MPI as it names itself.
    pub command: String,
    pub mpi_library: String,
    /// By number.
    pub threads: Vec<Option<i64>>,
    /// Ids beyond this are damage: they are given out one by one, and each has a record in the file.
    pub room: u64,
}

#[derive(Debug)]
pub struct LoadedModule {
    base: u64,
    size: u64,
    begin: u64,
    pub module: Module,
}

#[derive(Debug)]
pub struct RawPath {
    /// Run-time return addresses, innermost first.
    pub frames: Box<[u64]>,
    pub truncated: bool,
}

#[derive(Debug)]
pub struct RawComm {
    pub name: String,
    pub identity: u64,
    pub ordinal: u32,
    pub is_inter: bool,
    size: u32,
    remote_size: u32,
    pub members: RawMembers,
}

#[derive(Debug)]
pub enum RawMembers {
    World,
    Listed(Arc<[u32]>),
    Unknown,
}

/// `struct spool_operation`; not there while `call` is [`SpoolOperation::NONE`].
#[derive(Debug, Clone, Copy)]
pub struct SpoolOperation {
    pub call: u16,
    pub kind: u8,
    pub path: u32,
    pub comm: u32,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    pub source: i32,
    pub actual_tag: i32,
    pub actual_bytes: u64,
    pub init: u32,
    pub receive: u32,
}

impl SpoolOperation {
    pub const NONE: u16 = u16::MAX;
    pub const SEND: u8 = 1;
    pub const RECV: u8 = 2;
    pub const COLLECTIVE: u8 = 3;

    pub fn kind(&self) -> Kind {
        match self.kind {
            SpoolOperation::SEND => Kind::Send,
            SpoolOperation::RECV => Kind::Recv,
            SpoolOperation::COLLECTIVE => Kind::Collective,
            4 => Kind::Rma,
            5 => Kind::Io,
            6 => Kind::Generalized,
            _ => Kind::Other,
        }
    }
}

impl Default for SpoolOperation {
    fn default() -> SpoolOperation {
        SpoolOperation {
            call: SpoolOperation::NONE,
            kind: 0,
            path: 0,
            comm: 0,
            peer: 0,
            tag: 0,
            bytes: 0,
            source: 0,
            actual_tag: 0,
            actual_bytes: 0,
            init: 0,
            receive: 0,
        }
    }
}

/// `struct spool_outcome`; not there while `operation` is 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpoolOutcome {
    pub operation: u32,
    pub source: i32,
    pub tag: i32,
    pub bytes: u64,
    pub ended: u8,
    pub receive: u32,
}

impl Definitions {
    pub fn operation(&self, id: u32) -> Option<&SpoolOperation> {
        self.operations.get(id as usize).filter(|operation| operation.call != SpoolOperation::NONE)
    }

    pub fn outcome(&self, id: u32) -> Option<&SpoolOutcome> {
        self.outcomes.get(id as usize).filter(|outcome| outcome.operation != 0)
    }

    pub fn comm(&self, id: u32) -> Option<&RawComm> {
        self.comms.get(id as usize)?.as_ref()
    }

    pub fn path(&self, id: u32) -> Option<&RawPath> {
        self.paths.get(id as usize)?.as_ref()
    }

    /// Where modules overlap, one was unloaded before the other was loaded: the later is the better guess.
    pub fn module_holding(&self, address: u64) -> Option<&LoadedModule> {
        let holds = |it: &&LoadedModule| address.wrapping_sub(it.begin) < it.size;
        self.modules.iter().rev().flatten().find(holds)
    }

    /// Keeps a definition; `false`: it cannot be right.
    pub fn keep(&mut self, definition: &Definition<'_>, calls: usize) -> bool {
        let Definition { kind, head, first, second } = *definition;
        match kind {
            record::META => {
                let value = || String::from_utf8_lossy(second).into_owned();
                match first {
                    b"command" => self.command = hide_in_command(&value()),
                    b"mpi_library" => self.mpi_library = value(),
                    _ => {}
                }
                true
            }
            record::MODULE => {
                let room = self.room;
                keep(&mut self.modules, room, head, LoadedModule::read(head, first, second))
            }
            record::PATH => {
                keep(&mut self.paths, self.room, head, Some(RawPath::read(head, first)))
            }
            record::COMM => {
                keep(&mut self.comms, self.room, head, RawComm::read(head, first, second))
            }
            record::OPERATION => self.keep_operation(head, calls),
            record::OUTCOME => self.keep_outcome(head),
            record::THREAD => {
                let number = usize::from(u16_at(head, 0));
                if self.threads.len() <= number {
                    self.threads.resize(number + 1, None);
                }
                self.threads[number] = Some(i64_at(head, thread::TID));
                true
            }
            _ => true,
        }
    }

    fn keep_operation(&mut self, head: &[u8], calls: usize) -> bool {
        let read = SpoolOperation {
            call: u16_at(head, operation::CALL),
            kind: head[operation::KIND],
            path: u32_at(head, operation::PATH),
            comm: u32_at(head, operation::COMM),
            peer: i32_at(head, operation::PEER),
            tag: i32_at(head, operation::TAG),
            bytes: u64_at(head, operation::BYTES),
            source: i32_at(head, operation::SOURCE),
            actual_tag: i32_at(head, operation::ACTUAL_TAG),
            actual_bytes: u64_at(head, operation::ACTUAL_BYTES),
            init: u32_at(head, operation::INIT),
            receive: u32_at(head, operation::RECEIVE),
        };
        let is_sound = usize::from(read.call) < calls
            && read.bytes <= MOST_BYTES as u64
            && read.actual_bytes <= MOST_BYTES as u64;
        match place(&mut self.operations, self.room, u32_at(head, 0)) {
            Some(place) if is_sound => *place = read,
            _ => return false,
        }
        true
    }

    fn keep_outcome(&mut self, head: &[u8]) -> bool {
        let read = SpoolOutcome {
            operation: u32_at(head, outcome::OPERATION),
            source: i32_at(head, outcome::SOURCE),
            tag: i32_at(head, outcome::TAG),
            bytes: u64_at(head, outcome::BYTES),
            ended: head[outcome::ENDED],
            receive: u32_at(head, outcome::RECEIVE),
        };
        match place(&mut self.outcomes, self.room, u32_at(head, 0)) {
            Some(place) if read.bytes <= MOST_BYTES as u64 => *place = read,
            _ => return false,
        }
        true
    }
}

/// The entry of an id, made when it is new; `None` of an id that cannot be.
pub fn place<T: Default + Clone>(table: &mut Vec<T>, room: u64, id: u32) -> Option<&mut T> {
    let at = id as usize;
    if id == 0 || u64::from(id) > room {
        return None;
    }
    if table.len() <= at {
        let size = (at + 1).max(table.len() * 2).min(room as usize + 1).max(64);
        table.resize(size, T::default());
    }
    table.get_mut(at)
}

fn keep<T>(table: &mut Vec<Option<T>>, room: u64, head: &[u8], value: Option<T>) -> bool {
    let (id, Some(value)) = (u32_at(head, 0), value) else { return false };
    if id == 0 || u64::from(id) > room {
        return false;
    }
    let at = id as usize;
    if table.len() <= at {
        table.resize_with(at + 1, || None);
    }
    table[at] = Some(value);
    true
}

impl LoadedModule {
    fn read(head: &[u8], file: &[u8], build_id: &[u8]) -> Option<LoadedModule> {
        let begin = u64_at(head, module::BEGIN);
        let is_python = begin >> 63 != 0; // a Python function: its build id is text
        let build_id = match is_python {
            true => String::from_utf8_lossy(build_id).into_owned(),
            false => build_id.iter().take(64).map(|byte| format!("{byte:02x}")).collect(),
        };
        Some(LoadedModule {
            base: u64_at(head, module::BASE),
            size: u64_at(head, module::SIZE),
            begin,
            module: Module { path: String::from_utf8_lossy(file).into_owned(), build_id },
        })
    }

    /// An address in the numbering of the file.
    pub fn own(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base)
    }
}

impl RawPath {
    fn read(head: &[u8], frames: &[u8]) -> RawPath {
        let frames = frames.chunks_exact(8).map(|frame| u64_at(frame, 0));
        RawPath { frames: frames.collect(), truncated: head[path::TRUNCATED] != 0 }
    }
}

impl RawComm {
    fn read(head: &[u8], name: &[u8], members: &[u8]) -> Option<RawComm> {
        let size = |at| u32::try_from(i32_at(head, at)).ok();
        let (size, remote_size) = (size(comm::SIZE)?, size(comm::REMOTE_SIZE)?);
        let count = u32_at(head, comm::MEMBERS);
        let members = match count {
            0 => RawMembers::World,
            comm::NOT_KNOWN => RawMembers::Unknown,
            _ if u64::from(count) == u64::from(size) + u64::from(remote_size) => {
                let member = |member: &[u8]| u32::try_from(i32_at(member, 0)).unwrap_or(u32::MAX);
                RawMembers::Listed(members.chunks_exact(4).map(member).collect())
            }
            _ => return None,
        };
        Some(RawComm {
            name: String::from_utf8_lossy(name).into_owned(),
            identity: u64_at(head, comm::IDENTITY),
            ordinal: u32_at(head, comm::ORDINAL),
            is_inter: head[comm::INTER] != 0,
            size,
            remote_size,
            members,
        })
    }

    pub fn local_size(&self) -> u32 {
        self.size
    }

    /// World rank of a rank in it, of inter-communicators in the remote group.
    pub fn peer_world(&self, peer: i32) -> Option<i64> {
        let peer = u32::try_from(peer).ok()?;
        if peer >= (if self.is_inter { self.remote_size } else { self.size }) {
            return None;
        }
        match &self.members {
            RawMembers::World => Some(i64::from(peer)),
            RawMembers::Unknown => None,
            RawMembers::Listed(members) => {
                let before = if self.is_inter { self.size } else { 0 };
                let member = *members.get(before as usize + peer as usize)?;
                (member != u32::MAX).then_some(i64::from(member))
            }
        }
    }
}
