//! Whether a receiver first waited for what the sender of a kept message did after it. A synchronous send in place of that message
//! would wait for its receive, and the receiver for the sender: nobody would go on.

use rustc_hash::FxHashMap;

use super::LateReceive;
use lapscope_trace::{Direction, Trace};

/// What a receiver completed.
struct CompletedStep {
    at: i64,
    /// Whose part in it came when; `None`: that of the last member of a collective.
    with: Option<usize>,
    came: i64,
}

/// How many of these messages for the rank at `place` were overtaken so.
pub fn count<'a>(
    trace: &Trace,
    place: usize,
    kept: impl Iterator<Item = &'a LateReceive>,
    since: i64,
) -> u64 {
    let mut messages: Vec<&LateReceive> = kept.collect();
    messages.sort_by_key(|it| it.posted);
    let mut completed = completed(trace, place, since).into_iter().peekable();
    let mut of_all = i64::MIN;
    let mut of_sender: FxHashMap<usize, i64> = FxHashMap::default();
    let mut overtaken = 0;
    for message in messages {
        while let Some(it) = completed.next_if(|it| it.at <= message.posted) {
            let latest = match it.with {
                Some(sender) => of_sender.entry(sender).or_insert(i64::MIN),
                None => &mut of_all,
            };
            *latest = it.came.max(*latest);
        }
        let latest = of_sender.get(&message.sender).map_or(of_all, |&latest| latest.max(of_all));
        overtaken += u64::from(latest > message.sent);
    }
    overtaken
}

/// In the order of time.
fn completed(trace: &Trace, place: usize, since: i64) -> Vec<CompletedStep> {
    let mut all: Vec<CompletedStep> = Vec::new();
    for half in trace.halves(place) {
        let Some(at) = half.completion_end.filter(|&end| end >= since) else { continue };
        match half.operation.direction {
            Direction::Collective => {
                let came = trace.collective(&half).map_or(at, |it| it.last_begin);
                all.push(CompletedStep { at, with: None, came });
            }
            Direction::Send | Direction::Receive => {
                all.extend(trace.partner(&half).map(|other| CompletedStep {
                    at,
                    with: Some(other.rank),
                    came: other.post_begin,
                }));
            }
            Direction::None => {}
        }
    }
    all.sort_by_key(|it| it.at);
    all
}
