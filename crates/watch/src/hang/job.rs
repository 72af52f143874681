//! A job in two looks: who is where in the lists, who went on between the looks, and whether anything runs at all.

use rustc_hash::FxHashMap;

use super::document::Activity;
use lapscope_data::model::{CallName, Kind, Nanos, Needs, Rank};
use lapscope_data::state::{
    Condition, JobState, Members, OpenCall, OpenOperation, RankState, ThreadState,
};

/// What a rank has open: a request, the call that a thread is inside of, or the probe that it makes again and again in vain, by
/// their places in the rank's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Open {
    Request(usize),
    Call(usize),
    Probe(usize),
}

/// Who it is of, and what.
pub type OpenAt = (usize, Open);

/// Two looks at a job.
pub struct Job<'a> {
    pub state: &'a JobState,
    index: FxHashMap<Rank, usize>,
    /// What each rank was at the first look.
    before: Vec<Option<&'a RankState>>,
    /// Whether each rank has progressed between the looks.
    pub progressed: Vec<bool>,
    /// Whom a member of each call that all members make waits for.
    gathers: Vec<Option<Needs>>,
    /// World ranks of each communicator's members.
    members: Vec<Option<Vec<i64>>>,
    /// No process of it runs.
    pub is_over: bool,
    /// All have exited, as ranks do whose launcher was killed.
    has_exited: bool,
}

impl<'a> Job<'a> {
    pub fn new(before: &'a JobState, after: &'a JobState) -> Job<'a> {
        let index = after.ranks.iter().enumerate().map(|(at, rank)| (rank.rank, at)).collect();
        let earlier: FxHashMap<(Rank, i64), &RankState> =
            before.ranks.iter().map(|rank| ((rank.rank, rank.life), rank)).collect();
        let before: Vec<Option<&RankState>> =
            after.ranks.iter().map(|rank| earlier.get(&(rank.rank, rank.life)).copied()).collect();
        let pairs = after.ranks.iter().zip(&before);
        let progressed = pairs.map(|(after, before)| has_progressed(*before, after)).collect();
        let is_over = after.ranks.iter().all(RankState::is_over);
        let has_exited = after.ranks.iter().all(|it| it.condition == Condition::Exited);
        let gathers = after.calls.iter().map(CallName::gathers).collect();
        let members = after.communicators.iter().map(|it| members(&it.members)).collect();
        Job { state: after, index, before, progressed, gathers, members, is_over, has_exited }
    }

    pub fn rank(&self, at: usize) -> &'a RankState {
        &self.state.ranks[at]
    }

    pub fn ranks(&self) -> &'a [RankState] {
        &self.state.ranks
    }

    pub fn find(&self, rank: Rank) -> Option<usize> {
        self.index.get(&rank).copied()
    }

    pub fn call(&self, call: u32) -> &'a CallName {
        &self.state.calls[call as usize]
    }

    /// Whom a member waits for in a call that all members make; `None` of other calls.
    pub fn gathers(&self, call: u32) -> Option<Needs> {
        self.gathers[call as usize]
    }

    /// What tells what a request is: of activations of persistent ones the call that made them.
    pub fn told_by(&self, operation: &OpenOperation) -> &'a CallName {
        self.call(operation.made_by.unwrap_or(operation.call))
    }

    /// World ranks of a communicator's members; `None` where they are not known.
    pub fn members(&self, communicator: u32) -> Option<&[i64]> {
        self.members[communicator as usize].as_deref()
    }

    /// Whether a communicator is an inter-communicator.
    pub fn is_inter(&self, communicator: u32) -> bool {
        self.state.communicators[communicator as usize].is_inter
    }

    /// Whether it has reached MPI_Finalize, and takes no part in anything any more.
    pub fn has_left(&self, at: usize) -> bool {
        self.is_finalizing(at) || self.rank(at).condition == Condition::Finalized
    }

    /// Whether it waits in MPI_Finalize for the others, or did when what ended it ended all.
    pub fn is_finalizing(&self, at: usize) -> bool {
        let rank = self.rank(at);
        (rank.condition == Condition::Finalizing && self.sleeps_within(at).is_none())
            || (self.ended_with_all(at) && self.is_inside_finalize(at))
    }

    /// Whether that is the last call on record, however the rank ended.
    pub fn is_inside_finalize(&self, at: usize) -> bool {
        let is_finalize = |it: &OpenCall| self.call(it.operation.call).name == "MPI_Finalize";
        let is_inside = |it: &ThreadState| it.open.as_ref().is_some_and(is_finalize);
        self.rank(at).threads.iter().any(is_inside)
    }

    /// Whether what ended it ended all, so that it is not the reason for that.
    pub fn ended_with_all(&self, at: usize) -> bool {
        self.has_exited || (self.is_over && self.rank(at).condition == Condition::Killed)
    }

    /// Whether it ended while others went on.
    pub fn is_dead(&self, at: usize) -> bool {
        self.rank(at).condition.is_early_end() && !self.ended_with_all(at)
    }

    /// What is open there.
    pub fn operation(&self, (at, open): OpenAt) -> Option<&'a OpenOperation> {
        let rank = self.rank(at);
        match open {
            Open::Request(request) => rank.requests.get(request).map(|it| &it.operation),
            Open::Call(thread) => rank.threads.get(thread)?.open.as_ref().map(|it| &it.operation),
            Open::Probe(thread) => rank.threads.get(thread)?.unsuccessful.as_ref(),
        }
    }

    fn thread_before(&self, at: usize, thread: &ThreadState) -> Option<&'a ThreadState> {
        self.before[at]?.threads.iter().find(|before| before.number == thread.number)
    }

    /// Between the looks at this rank.
    pub fn elapsed(&self, at: usize) -> Nanos {
        let before = self.before[at].map_or(self.rank(at).now, |before| before.now);
        self.rank(at).now - before
    }

    /// Whether it tested between the looks, all without success.
    pub fn polls(&self, at: usize, thread: &ThreadState) -> bool {
        let before = self.thread_before(at, thread);
        before.is_some_and(|before| thread.unsuccessful_tests > before.unsuccessful_tests)
    }

    /// The last of the tests that a thread makes in vain, where that is known.
    pub fn polled(&self, at: usize, thread: &'a ThreadState) -> Option<&'a OpenOperation> {
        thread.unsuccessful.as_ref().filter(|_| self.polls(at, thread))
    }

    /// The message that a thread looks for again and again in vain.
    pub fn probed(&self, at: usize, thread: &'a ThreadState) -> Option<&'a OpenOperation> {
        self.polled(at, thread).filter(|it| it.kind == Kind::Recv)
    }

    /// Share of the time between the looks that a thread was on a processor.
    pub fn busy(&self, at: usize, thread: &ThreadState) -> Option<f64> {
        let now = thread.system.as_ref()?;
        let before = self.thread_before(at, thread)?.system.as_ref()?;
        let elapsed = self.elapsed(at);
        (elapsed.0 > 0).then(|| (now.processor - before.processor).share_of(elapsed).min(1.0))
    }

    pub fn activity(&self, at: usize, thread: &ThreadState) -> Activity {
        /// A thread that sleeps looks around now and then.
        const LEAST_BUSY: f64 = 0.05;
        let Some(system) = &thread.system else { return Activity::Unknown };
        match (system.state, self.busy(at, thread)) {
            ('T' | 't', _) => Activity::Stopped,
            ('R', _) => Activity::Busy,
            (_, Some(busy)) if busy > LEAST_BUSY => Activity::Busy,
            ('Z' | 'X', _) => Activity::Unknown,
            _ => Activity::Asleep,
        }
    }

    /// A thread that slept inside an MPI call all the while between the looks, and will wake up: in a function of the program's
    /// that MPI calls, for an attribute, an error, or an operation. An MPI that sleeps itself looks around many times a second.
    pub fn sleeps_within(&self, at: usize) -> Option<&'a ThreadState> {
        self.asleep_inside(at, |system_call| system_call.contains("nanosleep"))
    }

    /// A thread that slept inside an MPI call all the while otherwise: in such a function, or in an MPI that waits without looking
    /// around.
    pub fn may_sleep_within(&self, at: usize) -> Option<&'a ThreadState> {
        self.asleep_inside(at, |system_call| !system_call.contains("nanosleep"))
    }

    fn asleep_inside(&self, at: usize, is_so: impl Fn(&str) -> bool) -> Option<&'a ThreadState> {
        let sleeps_through = |it: &&ThreadState| {
            let before = self.thread_before(at, it).and_then(|it| it.system.as_ref());
            before.zip(it.system.as_ref()).is_some_and(|(before, now)| {
                now.state == 'S' && is_so(&now.sleeps_in) && now.sleeps == before.sleeps
            })
        };
        let rank = self.rank(at);
        let inside =
            |it: &&ThreadState| it.open.is_some() || rank.condition == Condition::Finalizing;
        rank.threads.iter().filter(inside).find(sleeps_through)
    }

    /// Whether threads of it that never called MPI, of which nothing is known behind its end or on another node, may have come to.
    pub fn had_other_threads(&self, at: usize) -> bool {
        let rank = self.rank(at);
        rank.is_multithreaded() && (rank.is_over() || rank.condition == Condition::Unknown)
    }

    /// Whether a thread of it is inside an MPI call, which lets messages go on.
    pub fn is_inside(&self, at: usize) -> bool {
        let is_open = |thread: &ThreadState| thread.open.is_some();
        self.rank(at).condition == Condition::Finalizing
            || self.rank(at).threads.iter().any(is_open)
    }
}

fn members(members: &Members) -> Option<Vec<i64>> {
    match members {
        Members::World(size) => Some((0..i64::from(*size)).collect()),
        Members::Listed(ranks) => Some(ranks.iter().map(|&rank| i64::from(rank)).collect()),
        Members::Unknown => None,
    }
}

fn has_progressed(before: Option<&RankState>, after: &RankState) -> bool {
    let Some(before) = before else { return !after.is_over() };
    let opened = |rank: &RankState| -> Vec<(u32, Option<Nanos>)> {
        let threads = rank.threads.iter();
        threads.map(|it| (it.number, it.open.as_ref().map(|open| open.begin))).collect()
    };
    let has_moved = || {
        // A thread that polls goes into a call and out of it again without getting on.
        let tests =
            |rank: &RankState| rank.threads.iter().map(|it| it.unsuccessful_tests).sum::<u64>();
        tests(before) == tests(after) && opened(before) != opened(after)
    };
    // A test may be counted as a call already, and as unsuccessful not yet.
    let polls = |it: &&ThreadState| it.unsuccessful_tests > 0;
    let in_between = after.threads.iter().filter(polls).count() as u64;
    after.progress() > before.progress() + in_between
        || before.condition != after.condition
        || has_moved()
}
