//! What the ids of a database mean, as the job names it.

use std::collections::HashMap;

use super::super::intern::{CommunicatorKey, Names};
use super::super::Members;
use crate::db::{collect, for_each_operation, Database, FullOperation};
use crate::model::{CallName, CallPath, Frame, Module, Text};
use crate::places::{read_calls, read_paths};

/// Tables of one database.
#[derive(Debug)]
pub struct Tables {
    pub calls: HashMap<i64, CallName>,
    modules: Vec<Module>,
    paths: HashMap<i64, CallPath>,
    pub communicators: HashMap<i64, Comm>,
    pub operations: HashMap<i64, FullOperation>,
    known_calls: HashMap<i64, u32>,
    known_paths: HashMap<i64, u32>,
}

/// A row of `communicator`, with its members.
#[derive(Debug)]
pub struct Comm {
    /// Index of the job.
    pub index: u32,
    is_inter: bool,
    size: i64,
    remote_size: i64,
    /// Empty: world ranks are the ranks in it.
    members: Vec<Option<u32>>,
}

impl Tables {
    /// `worlds`: by the key of the rank.
    pub fn read(
        database: &Database,
        worlds: &HashMap<i64, i64>,
        names: &mut Names,
    ) -> rusqlite::Result<Tables> {
        let (modules, paths) = read_paths(database)?;
        let mut operations = HashMap::new();
        for_each_operation(database, |operation| {
            operations.insert(operation.id, operation);
        })?;
        Ok(Tables {
            calls: read_calls(database)?,
            modules,
            paths,
            communicators: read_communicators(database, worlds, names)?,
            operations,
            known_calls: HashMap::new(),
            known_paths: HashMap::new(),
        })
    }

    pub fn name(&self, call: i64) -> Option<&CallName> {
        self.calls.get(&call)
    }

    pub fn call(&mut self, call: i64, names: &mut Names) -> u32 {
        let calls = &self.calls;
        *self.known_calls.entry(call).or_insert_with(|| match calls.get(&call) {
            Some(name) => names.call(name),
            None => names.call(&CallName::unknown(format!("call {call}"))),
        })
    }

    pub fn path(&mut self, id: Option<i64>, names: &mut Names) -> Option<u32> {
        let (id, path) = id.and_then(|id| Some((id, self.paths.get(&id)?)))?;
        let modules = &self.modules;
        let intern = || {
            let frame = |frame: &Frame| Frame {
                module: frame.module.map(|at| names.module(&modules[at as usize])),
                ..*frame
            };
            let frames = path.frames.iter().map(frame).collect();
            names.path(frames, path.truncated)
        };
        Some(*self.known_paths.entry(id).or_insert_with(intern))
    }

    pub fn communicator(&self, id: Option<i64>) -> Option<u32> {
        Some(self.communicators.get(&id?)?.index)
    }

    /// World rank of a rank in a communicator.
    pub fn peer_world(&self, comm: Option<i64>, peer: Option<i64>) -> Option<i64> {
        let (comm, peer) = (self.communicators.get(&comm?)?, peer?);
        let size = if comm.is_inter { comm.remote_size } else { comm.size };
        if !(0..size).contains(&peer) {
            return None;
        }
        if comm.members.is_empty() {
            return Some(peer);
        }
        let before = if comm.is_inter { comm.size } else { 0 };
        let at = usize::try_from(before.checked_add(peer)?).ok()?;
        comm.members.get(at).copied().flatten().map(i64::from)
    }

    /// Whether all members of its communicator make it in the same order.
    pub fn gathers(&self, operation: &FullOperation) -> bool {
        let init = operation.init_id.and_then(|init| self.operations.get(&init));
        let call = init.map_or(operation.call_id, |init| init.call_id);
        let is_one =
            |name: &CallName| name.gathers().is_some() && (init.is_some() || name.role != "INIT");
        self.communicator(operation.communicator_id).is_some()
            && self.calls.get(&call).is_some_and(is_one)
    }
}

fn read_communicators(
    database: &Database,
    worlds: &HashMap<i64, i64>,
    names: &mut Names,
) -> rusqlite::Result<HashMap<i64, Comm>> {
    let members = read_members(database)?;
    let sql = "SELECT id, rank, identity, ordinal, kind = 'inter', size, remote_size, name FROM communicator ORDER BY id";
    collect(database, sql, |row| {
        let (id, rank): (i64, i64) = (row.get(0)?, row.get(1)?);
        let key = CommunicatorKey {
            world: worlds.get(&rank).copied().unwrap_or(1),
            identity: row.get::<_, i64>(2)? as u64,
            ordinal: row.get(3)?,
            is_inter: row.get(4)?,
        };
        let (size, remote_size): (i64, i64) = (row.get(5)?, row.get(6)?);
        let Text(name) = row.get(7)?;
        let members = members.get(&id).cloned().unwrap_or_default();
        // of an inter-communicator, and of MPI_COMM_SELF of another rank than 0, a file without members does not know them
        let listed = || match members.is_empty() {
            true if key.is_inter => Members::Unknown,
            true => Members::World(u32::try_from(size).unwrap_or(0)),
            false => Members::Listed(members.iter().map(|it| it.unwrap_or(u32::MAX)).collect()),
        };
        let index = names.communicator(key, || (name, listed()));
        Ok((id, Comm { index, is_inter: key.is_inter, size, remote_size, members }))
    })
}

/// By rank in the communicator, the local group in front of the remote one.
fn read_members(database: &Database) -> rusqlite::Result<HashMap<i64, Vec<Option<u32>>>> {
    let sql = "SELECT communicator_id, world_rank FROM communicator_member ORDER BY communicator_id, remote, comm_rank";
    let rows: Vec<(i64, Option<u32>)> =
        collect(database, sql, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut members: HashMap<i64, Vec<Option<u32>>> = HashMap::new();
    for (id, world) in rows {
        members.entry(id).or_default().push(world);
    }
    Ok(members)
}
