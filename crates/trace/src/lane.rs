//! What messages have in common that are matched by their order.

use crate::endpoint::NONE;
use crate::operation::Direction;
use lapscope_data::model::{CallName, Mode, Needs};

/// What messages have in common that do not overtake each other; or the communicator of collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneKey {
    pub comm: u32,
    /// Places of ranks; [`NONE`] for collectives.
    pub source: u32,
    pub destination: u32,
    pub tag: i64,
    /// Partitioned messages match among themselves (MPI-4.1 4.2).
    pub is_partitioned: bool,
    pub is_collective: bool,
}

impl LaneKey {
    /// `None` when something of it is not known.
    pub(super) fn new(
        comm: u32,
        direction: Direction,
        rank: u32,
        peer: Option<u32>,
        tag: Option<i64>,
        mode: Mode,
        call: &CallName,
    ) -> Option<LaneKey> {
        let message = |source, destination, tag| LaneKey {
            comm,
            source,
            destination,
            tag,
            is_partitioned: mode == Mode::Partitioned,
            is_collective: false,
        };
        match direction {
            Direction::Send => Some(message(rank, peer?, tag?)),
            Direction::Receive => Some(message(peer?, rank, tag.filter(|&tag| tag >= 0)?)),
            Direction::Collective if call.needs != Some(Needs::Neighbors) => {
                Some(LaneKey { is_collective: true, ..message(NONE, NONE, 0) })
            }
            _ => None,
        }
    }
}
