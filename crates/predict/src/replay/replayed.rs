//! What is replayed, and what has its recorded duration.

use super::collective;
use lapscope_data::model::Kind;
use lapscope_trace::{Direction, Endpoint, Operation, Trace, NONE};

/// Whether the replay knows what an endpoint waits for; else it has its recorded duration.
pub fn is_replayed(trace: &Trace, endpoint: &Endpoint, operation: &Operation) -> bool {
    match operation.direction {
        Direction::Send | Direction::Receive => {
            endpoint.partner != NONE && operation.peer.is_some()
        }
        Direction::Collective => trace
            .collectives
            .get(endpoint.partner as usize)
            .is_some_and(|collective| collective::is_replayed(trace, collective)),
        Direction::None => {
            operation.kind == Kind::Rma
                && trace.awaited_targets.get(endpoint.partner as usize).is_some()
        }
    }
}
