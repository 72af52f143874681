//! Calls moved within a program: waits to where data are first touched, posts to where they were last written, as far as
//! `lapscope reach` saw that. Sancho and others, SC 2006.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::program::{Action, Program, RankProgram, Step, ThreadProgram};
use lapscope_data::places::SiteId;
use lapscope_measure::reach::room::MoveRoom;
use lapscope_trace::{Direction, RankTrace, Span, Trace};

/// What is to be moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MoveSelection {
    pub waits: bool,
    pub posts: bool,
}

/// A program with calls moved.
#[derive(Debug, Default)]
pub struct Moved {
    pub program: Program,
    /// Calls that were moved, and over how much computation together, nanoseconds.
    pub calls: u64,
    pub ns: i64,
    /// Sites of requests that nothing is known of: what completes or posts them stays.
    pub unknown: FxHashSet<SiteId>,
}

/// Moves calls over computation. The order of all others stays; a wait is not moved past the next post from a call site whose
/// request it completes, which has the same buffer, and a post neither before the completion of the one before from its site nor
/// before an earlier send to its peer.
pub fn apply(trace: &Trace, program: &Program, room: &MoveRoom, asked: MoveSelection) -> Moved {
    let ranks: Vec<(RankProgram, Tally)> = program
        .ranks
        .par_iter()
        .zip(&trace.ranks)
        .map(|(of_rank, of_trace)| {
            let mover = Mover { rank: of_trace, program: of_rank, room };
            mover.apply(asked)
        })
        .collect();
    let (overhead, is_whole) = (program.overhead, program.is_whole);
    let empty = Program { ranks: Vec::new(), overhead, is_whole };
    let mut moved = Moved { program: empty, ..Moved::default() };
    for (rank, tally) in ranks {
        moved.program.ranks.push(rank);
        moved.calls += tally.calls;
        moved.ns += tally.ns;
        moved.unknown.extend(tally.unknown);
    }
    moved
}

#[derive(Default)]
struct Tally {
    calls: u64,
    ns: i64,
    unknown: FxHashSet<SiteId>,
}

struct Mover<'a> {
    rank: &'a RankTrace,
    program: &'a RankProgram,
    room: &'a MoveRoom,
}

/// Where a step is: computation before it, twice its place in the recorded order (what is moved is between two), and that place.
type StepPosition = (i64, i64, usize);

/// Places of the steps of a thread as they are recorded.
fn places(steps: &[Step]) -> Vec<StepPosition> {
    let mut before = 0;
    let place = |(index, step): (usize, &Step)| {
        before += step.gap.or_zero();
        (before, 2 * index as i64, index)
    };
    steps.iter().enumerate().map(place).collect()
}

impl Mover<'_> {
    fn apply(&self, asked: MoveSelection) -> (RankProgram, Tally) {
        let mut tally = Tally::default();
        let thread = |thread: &ThreadProgram| {
            let mut thread = thread.clone();
            if asked.waits {
                let moved = self.waits(&thread, &mut tally);
                rearrange(&mut thread, moved);
            }
            if asked.posts {
                let moved = self.posts(&thread, &mut tally);
                rearrange(&mut thread, moved);
            }
            thread
        };
        let threads = self.program.threads.iter().map(thread).collect();
        let mut moved = self.program.clone();
        moved.threads = threads;
        (moved, tally)
    }

    fn site(&self, endpoint: u32) -> SiteId {
        self.operation(endpoint).site
    }

    fn operation(&self, endpoint: u32) -> &lapscope_trace::Operation {
        let index = self.rank.endpoints[endpoint as usize].operation;
        &self.rank.operations[index as usize]
    }

    /// Over how much computation a call that completes requests can be moved; `None`: it completes no receive, or one that
    /// nothing is known of.
    fn room_of_wait(&self, place: u32, tally: &mut Tally) -> Option<i64> {
        let mut least: Option<i64> = None;
        let mut is_known = true;
        for endpoint in self.program.endpoints_of(self.rank, place) {
            let operation = self.operation(endpoint);
            match operation.direction {
                _ if !operation.is_request => is_known = false,
                Direction::Send => {}
                Direction::Receive => match self.room.first_touch.get(&operation.site) {
                    Some(&ns) => least = Some(least.unwrap_or(ns).min(ns)),
                    None => {
                        is_known = false;
                        tally.unknown.insert(operation.site);
                    }
                },
                Direction::Collective | Direction::None => is_known = false,
            }
        }
        least.filter(|&ns| is_known && ns > 0)
    }

    fn waits(&self, thread: &ThreadProgram, tally: &mut Tally) -> Vec<StepPosition> {
        let mut places = places(&thread.steps);
        let recorded = places.clone();
        let end = recorded.last().map_or(0, |last| last.0) + thread.rest;
        let mut next_post: FxHashMap<SiteId, usize> = FxHashMap::default();
        for (index, step) in thread.steps.iter().enumerate().rev() {
            match step.action() {
                Action::Post(endpoint) => {
                    next_post.insert(self.site(endpoint), index);
                }
                Action::Call(place) | Action::Loop(place) => {
                    let Some(room) = self.room_of_wait(place, tally) else { continue };
                    let endpoints = self.program.endpoints_of(self.rank, place);
                    let posts = endpoints.filter_map(|it| next_post.get(&self.site(it)).copied());
                    let bound = posts.min().unwrap_or(recorded.len());
                    let from = recorded[index].0;
                    let latest = recorded.get(bound).map_or(end, |place| place.0);
                    let to = (from + room).min(latest);
                    let behind = recorded[..bound].partition_point(|place| place.0 <= to);
                    places[index] = (to, 2 * behind as i64 - 1, index);
                    tally.count(to - from);
                }
                Action::Start(_) | Action::Finish(_) | Action::Other(_) | Action::Never(_) => {}
            }
        }
        places
    }

    fn posts(&self, thread: &ThreadProgram, tally: &mut Tally) -> Vec<StepPosition> {
        let mut places = places(&thread.steps);
        let recorded = places.clone();
        let mut completed: FxHashMap<SiteId, usize> = FxHashMap::default();
        let mut sent: FxHashMap<Option<u32>, usize> = FxHashMap::default();
        for (index, step) in thread.steps.iter().enumerate() {
            match step.action() {
                Action::Post(endpoint) => {
                    let operation = self.operation(endpoint);
                    if operation.direction != Direction::Send {
                        continue;
                    }
                    let before = sent.insert(operation.peer, index);
                    let Some(&room) = self.room.last_write.get(&operation.site) else {
                        tally.unknown.insert(operation.site);
                        continue;
                    };
                    let bound = before.max(completed.get(&operation.site).copied());
                    // where the send before has gone, or where that call is
                    let (earliest, behind) =
                        bound.map_or((0, -1), |it| (places[it].0, places[it].1));
                    let from = recorded[index].0;
                    let to = (from - room.max(0)).max(earliest);
                    let first = recorded[..index].partition_point(|place| place.0 <= to);
                    places[index] = (to, (2 * first as i64 - 1).max(behind), index);
                    tally.count(from - to);
                }
                Action::Call(place) | Action::Loop(place) => {
                    for endpoint in self.program.endpoints_of(self.rank, place) {
                        let operation = self.operation(endpoint);
                        completed.insert(operation.site, index);
                        if operation.direction == Direction::Send && !operation.is_request {
                            sent.insert(operation.peer, index);
                        }
                    }
                }
                Action::Start(_) | Action::Finish(_) | Action::Other(_) | Action::Never(_) => {}
            }
        }
        places
    }
}

impl Tally {
    fn count(&mut self, ns: i64) {
        self.calls += u64::from(ns > 0);
        self.ns += ns;
    }
}

/// Puts the steps of a thread where they are to be; all of its computation stays.
fn rearrange(thread: &mut ThreadProgram, mut places: Vec<StepPosition>) {
    let gaps: i64 = thread.steps.iter().map(|step| step.gap.or_zero()).sum();
    let all = gaps + thread.rest;
    places.sort_unstable();
    let mut new_index = vec![0; places.len()];
    let mut cursor = 0;
    let mut steps = Vec::with_capacity(places.len());
    for (index, &(before, _, old)) in places.iter().enumerate() {
        new_index[old] = index as u32;
        let mut step = thread.steps[old];
        step.gap = Span::new(before - cursor);
        steps.push(step);
        cursor = before;
    }
    thread.steps = steps;
    thread.rest = all - cursor;
    for poll in &mut thread.polls {
        poll.0 = new_index[poll.0 as usize];
    }
    thread.polls.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::script::{Act, Message, Script};

    fn message(peer: usize) -> Message {
        Message::new(peer, 0, 1_000)
    }

    /// Twice: rank 0 computes 5,000 ns, posts, computes 1,000 ns, waits, and computes 3,000 ns; rank 1 the other end of it.
    fn script() -> Script {
        let mut script = Script::new(2);
        for time in 0..2 {
            let posts = [Act::Isend(message(1)), Act::Irecv(message(0))];
            for (rank, post) in posts.into_iter().enumerate() {
                script.act(rank, Act::Compute(5_000)).act(rank, post);
                script.act(rank, Act::Compute(1_000)).act(rank, Act::Wait(vec![time]));
                script.act(rank, Act::Compute(3_000));
            }
        }
        script
    }

    fn gaps(thread: &ThreadProgram) -> Vec<i64> {
        let gaps = thread.steps.iter().map(|step| step.gap.or_zero());
        gaps.chain([thread.rest]).collect()
    }

    fn moved(room: &MoveRoom, asked: MoveSelection) -> Moved {
        let trace = script().trace();
        apply(&trace, &Program::new(&trace), room, asked)
    }

    const WAITS: MoveSelection = MoveSelection { waits: true, posts: false };
    const POSTS: MoveSelection = MoveSelection { waits: false, posts: true };

    #[test]
    fn waits_go_to_the_first_touch_and_not_past_the_next_post() {
        let room = |ns| MoveRoom {
            first_touch: [(SiteId::default(), ns)].into_iter().collect(),
            ..MoveRoom::default()
        };
        let as_it_was = moved(&room(0), WAITS);
        // the rest of the script is 100 ns
        assert_eq!(
            gaps(&as_it_was.program.ranks[1].threads[0]),
            [5_000, 1_000, 8_000, 1_000, 3_100]
        );
        assert_eq!((as_it_was.calls, as_it_was.ns), (0, 0));
        let by_two = moved(&room(2_000), WAITS);
        assert_eq!(gaps(&by_two.program.ranks[1].threads[0]), [5_000, 3_000, 6_000, 3_000, 1_100]);
        assert_eq!((by_two.calls, by_two.ns), (2, 4_000));
        // sends are not waited for later
        assert_eq!(gaps(&by_two.program.ranks[0].threads[0]), [5_000, 1_000, 8_000, 1_000, 3_100]);
        // the first stops at the second post, the second at the end
        let far = moved(&room(1_000_000), WAITS);
        assert_eq!(gaps(&far.program.ranks[1].threads[0]), [5_000, 9_000, 0, 4_100, 0]);
        assert_eq!((far.calls, far.ns), (2, 8_000 + 3_100));
    }

    #[test]
    fn posts_go_to_the_last_write_and_not_before_the_wait_of_the_one_before() {
        let room = |ns| MoveRoom {
            last_write: [(SiteId::default(), ns)].into_iter().collect(),
            ..MoveRoom::default()
        };
        let by_two = moved(&room(2_000), POSTS);
        assert_eq!(gaps(&by_two.program.ranks[0].threads[0]), [3_000, 3_000, 6_000, 3_000, 3_100]);
        assert_eq!((by_two.calls, by_two.ns), (2, 4_000));
        let far = moved(&room(1_000_000), POSTS);
        assert_eq!(gaps(&far.program.ranks[0].threads[0]), [0, 6_000, 0, 9_000, 3_100]);
        assert_eq!((far.calls, far.ns), (2, 5_000 + 8_000));
    }

    #[test]
    fn what_nothing_is_known_of_stays_and_is_counted() {
        let stays = moved(&MoveRoom::default(), MoveSelection { waits: true, posts: true });
        assert_eq!((stays.calls, stays.ns), (0, 0));
        assert_eq!(stays.unknown, [SiteId::default()].into_iter().collect());
        assert_eq!(gaps(&stays.program.ranks[0].threads[0]), [5_000, 1_000, 8_000, 1_000, 3_100]);
    }
}
