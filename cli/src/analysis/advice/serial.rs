//! Sends that are waited for one after the other while receives are still under way: each wait keeps the next send from
//! being posted ([SP04] strategy 2: complete them all together).

use crate::trace::{Direction, RankTrace, NONE};

/// For every call of a rank: the later call that completes receives which were already under way, when this call waits for
/// sends only and further sends are posted before that one. [`NONE`] for all others.
pub(super) fn calls_to_join(rank: &RankTrace) -> Vec<u32> {
    let ended = ended_by_call(rank);
    let mut posts: Vec<i64> = rank
        .endpoints
        .iter()
        .filter(|endpoint| direction(rank, endpoint.operation) == Direction::Send)
        .map(|endpoint| endpoint.begin)
        .collect();
    posts.sort_unstable();
    let mut by_time: Vec<u32> = (0..rank.calls.len() as u32).collect();
    if rank.calls.windows(2).any(|pair| pair[1].begin < pair[0].begin) {
        by_time.sort_by_key(|&call| rank.calls[call as usize].begin);
    }
    let mut join = vec![NONE; rank.calls.len()];
    let mut next_receives: Option<u32> = None;
    for &at in by_time.iter().rev() {
        let call = &rank.calls[at as usize];
        let Ended { sends, first_receive } = ended[at as usize];
        if first_receive.is_some() {
            next_receives = Some(at).filter(|_| !call_blocks(rank, at));
        } else if sends {
            let later = next_receives.filter(|&later| {
                let first = ended[later as usize].first_receive;
                first.is_some_and(|posted| posted < call.begin)
                    && any_between(
                        &posts,
                        call.begin + call.duration,
                        rank.calls[later as usize].begin,
                    )
            });
            join[at as usize] = later.unwrap_or(NONE);
        }
    }
    join
}

#[derive(Clone, Copy, Default)]
struct Ended {
    sends: bool,
    /// When the first receive was posted that the call ended.
    first_receive: Option<i64>,
}

fn ended_by_call(rank: &RankTrace) -> Vec<Ended> {
    let mut ended = vec![Ended::default(); rank.calls.len()];
    for endpoint in &rank.endpoints {
        let Some(call) = ended.get_mut(endpoint.call as usize) else { continue };
        match direction(rank, endpoint.operation) {
            Direction::Send => call.sends = true,
            Direction::None => {}
            // Collectives wait for others as receives do.
            Direction::Receive | Direction::Collective => {
                let first = call.first_receive.unwrap_or(endpoint.begin);
                call.first_receive = Some(first.min(endpoint.begin));
            }
        }
    }
    ended
}

fn direction(rank: &RankTrace, operation: u32) -> Direction {
    rank.operations[operation as usize].direction
}

/// Whether a call communicates itself, so that nothing can be completed together with it.
fn call_blocks(rank: &RankTrace, call: u32) -> bool {
    let operation = rank.calls[call as usize].operation;
    direction(rank, operation) != Direction::None
}

/// Whether a moment of `sorted` lies from `begin` to `end`.
fn any_between(sorted: &[i64], begin: i64, end: i64) -> bool {
    let at = sorted.partition_point(|&moment| moment < begin);
    sorted.get(at).is_some_and(|&moment| moment <= end)
}
