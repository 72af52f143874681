//! Tracks: a process for each node, in it a thread for each thread of a rank; below the first thread of a rank the lifetimes of its
//! requests and its counters.

use super::fields::track;
use crate::definitions::{Definitions, RankName};
use crate::proto::Bytes;
use lapscope_trace::DeviceLane;

/// Threads have the lower numbers of a rank, the lines of its requests those from here on.
const FIRST_LANE: u64 = 1 << 12;
/// Numbers a rank has.
const OF_RANK: u64 = 1 << 16;
/// Further ones, of ranks with very many requests at once.
const MANY: u64 = 1 << 56;
const DEVICES: u64 = 1 << 59;
const NODES: u64 = 1 << 60;

/// Identities of tracks, no two of which are the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracks {
    place: u64,
}

impl Tracks {
    pub fn for_rank(place: usize) -> Tracks {
        Tracks { place: place as u64 }
    }

    fn first(self) -> u64 {
        (self.place + 1) * OF_RANK
    }

    /// Threads beyond the numbers that there are for them share the last one.
    pub fn thread(self, thread: u16) -> u64 {
        self.first() + u64::from(thread).min(FIRST_LANE - 5)
    }

    /// The track of a kind of work of a GPU.
    pub fn device(self, lane: u32) -> u64 {
        DEVICES + self.first() + u64::from(lane)
    }

    pub fn pending(self) -> u64 {
        self.first() + FIRST_LANE - 2
    }

    pub fn bytes(self) -> u64 {
        self.first() + FIRST_LANE - 1
    }

    /// The track of regions, or of steps, that the program marked.
    pub fn regions(self, of_steps: bool) -> u64 {
        self.first() + FIRST_LANE - 3 - u64::from(of_steps)
    }

    pub fn lane(self, lane: u32) -> u64 {
        let lane = u64::from(lane);
        match lane < OF_RANK - FIRST_LANE {
            true => self.first() + FIRST_LANE + lane,
            false => MANY + (self.place << 32) + lane,
        }
    }
}

pub(super) fn node(out: &mut Bytes, node: usize, name: &str) {
    out.uint(track::UUID, NODES + node as u64);
    out.nest(track::PROCESS, |process| {
        process.uint(track::PROCESS_PID, pid(node));
        process.text(track::PROCESS_NAME, name);
    });
}

/// Nodes and threads have numbers that no other has: viewers take a thread with the number of its process for the main one.
fn pid(node: usize) -> u64 {
    1_000_000_000 + node as u64
}

pub(super) fn thread(out: &mut Bytes, run: &Definitions, place: usize, thread: u16) {
    let RankName { node, name, .. } = &run.ranks[place];
    let name = match thread {
        0 => name.clone(),
        _ => format!("{name}, thread {thread}"),
    };
    // ranks in their order, further threads behind all first ones
    let number = 1 + place + usize::from(thread) * run.ranks.len();
    out.uint(track::UUID, Tracks::for_rank(place).thread(thread));
    out.uint(track::PARENT, NODES + u64::from(*node));
    out.nest(track::THREAD, |out| {
        out.uint(track::THREAD_PID, pid(*node as usize));
        out.uint(track::THREAD_TID, number as u64);
        out.text(track::THREAD_NAME, &name);
    });
}

pub(super) fn lane(out: &mut Bytes, place: usize, lane: u32) {
    let tracks = Tracks::for_rank(place);
    out.uint(track::UUID, tracks.lane(lane));
    out.uint(track::PARENT, tracks.thread(0));
    out.text(track::NAME, "requests");
}

pub(super) fn device(out: &mut Bytes, place: usize, number: u32, lane: &DeviceLane) {
    let tracks = Tracks::for_rank(place);
    out.uint(track::UUID, tracks.device(number));
    out.uint(track::PARENT, tracks.thread(0));
    out.text(track::NAME, &lane.work.of_gpu(lane.device));
}

pub(super) fn regions(out: &mut Bytes, place: usize, of_steps: bool) {
    let tracks = Tracks::for_rank(place);
    out.uint(track::UUID, tracks.regions(of_steps));
    out.uint(track::PARENT, tracks.thread(0));
    out.text(track::NAME, if of_steps { "steps" } else { "regions" });
}

pub(super) fn counters(place: usize) -> [(u64, &'static str, u64); 2] {
    let tracks = Tracks::for_rank(place);
    [
        (tracks.pending(), "requests pending", track::COUNT),
        (tracks.bytes(), "bytes being sent", track::SIZE_BYTES),
    ]
}

pub(super) fn counter(out: &mut Bytes, place: usize, (uuid, name, unit): (u64, &str, u64)) {
    out.uint(track::UUID, uuid);
    out.uint(track::PARENT, Tracks::for_rank(place).thread(0));
    out.text(track::NAME, name);
    out.nest(track::COUNTER, |counter| counter.uint(track::COUNTER_UNIT, unit));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tracks_are_one() {
        let mut all: Vec<u64> = vec![NODES, NODES + 1];
        for place in [0, 1, 9_999] {
            let tracks = Tracks::for_rank(place);
            all.extend([tracks.pending(), tracks.bytes()]);
            all.extend([true, false].map(|of_steps| tracks.regions(of_steps)));
            all.extend([0, 1, 127].map(|lane| tracks.device(lane)));
            all.extend([0, 1, 4_091].map(|thread| tracks.thread(thread)));
            all.extend([0, 1, 61_439, 61_440, 4_000_000].map(|lane| tracks.lane(lane)));
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
