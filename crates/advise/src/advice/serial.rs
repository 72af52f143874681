//! Sends that are waited for while receives are still under way: each wait keeps the next send from being posted ([SP04]
//! strategy 2: complete them all together), or what was received from being worked on.

use std::cell::LazyCell;

use lapscope_trace::{Direction, RankTrace};

/// What a call that waits for sends only could be joined with, where receives were under way already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Join {
    #[default]
    Nothing,
    /// The call that completes the receives; further sends are posted before it.
    Together(u32),
    /// The last call that completes such receives, without a post in between, and how much is computed on the way there,
    /// nanoseconds: so much of the wait would be overlapped with it.
    Behind { call: u32, room: i64 },
}

/// What each call of a rank could be joined with.
pub(super) fn joins(rank: &RankTrace) -> Vec<Join> {
    let ended = ended_by_call(rank);
    // most runs have no such wait
    let sends = LazyCell::new(|| posts(rank, |direction| direction == Direction::Send));
    let all = LazyCell::new(|| posts(rank, |_| true));
    let mut by_time: Vec<u32> = (0..rank.calls.len() as u32).collect();
    if rank.calls.windows(2).any(|pair| pair[1].begin < pair[0].begin) {
        by_time.sort_by_key(|&call| rank.calls[call as usize].begin);
    }
    let mut joins = vec![Join::Nothing; rank.calls.len()];
    let mut next_receives: Option<usize> = None;
    for (place, &at) in by_time.iter().enumerate().rev() {
        let EndedCall { sends: is_of_sends, first_receive } = ended[at as usize];
        if first_receive.is_some() {
            next_receives = Some(place).filter(|_| !call_blocks(rank, at));
        } else if let Some(next) = next_receives.filter(|_| is_of_sends) {
            let call = &rank.calls[at as usize];
            let end = call.begin + call.duration;
            let was_under_way = |later: u32| {
                ended[later as usize].first_receive.is_some_and(|posted| posted < call.begin)
            };
            let later = by_time[next];
            if !was_under_way(later) {
                continue;
            }
            let until = |later: u32| rank.calls[later as usize].begin;
            joins[at as usize] = match any_between(&sends, end, until(later)) {
                true => Join::Together(later),
                false => {
                    let same_phase = |later: &&u32| {
                        was_under_way(**later) && !any_between(&all, end, until(**later))
                    };
                    let last = by_time[next..].iter().take_while(same_phase).last();
                    let behind = |&call| Join::Behind {
                        call,
                        room: rank.presence.outside(end, until(call)),
                    };
                    last.map_or(Join::Nothing, behind)
                }
            };
        }
    }
    joins
}

/// Moments of posts, sorted.
fn posts(rank: &RankTrace, is_wanted: impl Fn(Direction) -> bool) -> Vec<i64> {
    let is_wanted = |operation| is_wanted(direction(rank, operation));
    let wanted = rank.endpoints.iter().filter(|endpoint| is_wanted(endpoint.operation));
    let mut posts: Vec<i64> = wanted.map(|endpoint| endpoint.begin).collect();
    posts.sort_unstable();
    posts
}

#[derive(Clone, Copy, Default)]
struct EndedCall {
    sends: bool,
    /// When the first receive was posted that the call ended.
    first_receive: Option<i64>,
}

fn ended_by_call(rank: &RankTrace) -> Vec<EndedCall> {
    let mut ended = vec![EndedCall::default(); rank.calls.len()];
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
