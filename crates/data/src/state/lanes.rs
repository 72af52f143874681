//! Messages by communicator, peer and tag.

use rustc_hash::FxHashMap;

use super::Lane;

/// How often, and when last, by whatever clock.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub count: u64,
    pub last: u64,
}

/// What tells lanes apart: communicator, world rank of the peer, tag, partitioned.
pub type LaneId = (u32, i64, i64, bool);

/// Lanes that are being filled: with the moment of the last of their messages.
#[derive(Debug, Default)]
pub struct Lanes(FxHashMap<LaneId, (Lane, u64)>);

impl Lanes {
    pub fn add(&mut self, key: LaneId, bytes: u64, times: Times) {
        let (communicator, peer_world, tag, is_partitioned) = key;
        let (count, all_bytes) = (0, 0);
        let lane =
            Lane { communicator, peer_world, tag, is_partitioned, count, bytes: 0, all_bytes };
        let (lane, last) = self.0.entry(key).or_insert((lane, 0));
        lane.count += times.count;
        lane.all_bytes = lane.all_bytes.saturating_add(bytes.saturating_mul(times.count));
        if times.last >= *last {
            (lane.bytes, *last) = (bytes, times.last);
        }
    }

    pub fn list(self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = self.0.into_values().map(|(lane, _)| lane).collect();
        lanes.sort_unstable_by_key(|lane| {
            (lane.communicator, lane.peer_world, lane.tag, lane.is_partitioned)
        });
        lanes
    }
}
