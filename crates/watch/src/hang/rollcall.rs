//! Who is where: ranks that stand at the same place in the same condition, the odd ones out first.

use std::collections::BTreeMap;

use super::document::{Activity, RankPlace, Standing, ThreadPlace};
use super::job::Job;
use super::words::Words;
use lapscope_data::model::Nanos;
use lapscope_data::state::{Condition, RankState, ThreadState};

/// The thread that says where a rank is: one that is inside of a call, else the one that called MPI_Init.
pub fn speaker(rank: &RankState) -> Option<&ThreadState> {
    let inside = rank.threads.iter().find(|it| it.open.is_some());
    inside.or_else(|| rank.threads.iter().min_by_key(|it| it.number))
}

/// What ranks of a group have in common: the condition, the call with its path, the last one outside, what the thread does.
type StandingKey = (u8, Option<At>, Option<At>, bool, Activity);

/// A call and its path.
type At = (u32, Option<u32>);

/// The smallest group first.
pub fn places(job: &Job<'_>, words: &mut Words<'_>) -> Vec<Standing> {
    let mut groups: BTreeMap<StandingKey, Standing> = BTreeMap::new();
    for (at, rank) in job.ranks().iter().enumerate() {
        let thread = speaker(rank);
        let polled = thread.and_then(|it| job.polled(at, it));
        let open = thread.and_then(|it| it.open.as_ref()).map(|it| &it.operation);
        let called = polled
            .or(open)
            .map(|it| (it.call, it.path))
            .filter(|_| rank.condition != Condition::Finalizing);
        let is_outside = called.is_none() && !is_past(rank.condition);
        let last = thread.and_then(|it| it.last).filter(|_| is_outside);
        let last = last.map(|last| (last.call, last.path));
        let state = thread.map_or(Activity::Unknown, |it| job.activity(at, it));
        // Waiting in MPI is busy with one MPI and asleep with another.
        let shown =
            if called.is_some() && state != Activity::Stopped { Activity::Unknown } else { state };
        let key = (rank.condition as u8, called, last, polled.is_some(), shown);
        let group = groups.entry(key).or_insert_with(|| place(words, rank, called, last, state));
        let (least, most) = since(job, at, thread);
        group.polls = polled.is_some();
        group.count += 1;
        group.requests += rank.requests.len();
        group.since_least_ns = group.since_least_ns.min(least);
        group.since_most_ns = group.since_most_ns.max(most);
        group.ranks.push(rank.rank);
        group.hosts.push(rank.host.clone());
    }
    let mut places: Vec<Standing> = groups.into_values().collect();
    for place in &mut places {
        place.ranks.sort_unstable();
        place.hosts.sort_unstable();
        place.hosts.dedup();
    }
    places.sort_by(|a, b| a.count.cmp(&b.count).then(a.ranks.cmp(&b.ranks)));
    places
}

/// Whether where it was last says nothing any more.
fn is_past(condition: Condition) -> bool {
    matches!(condition, Condition::Finalizing | Condition::Finalized)
}

fn place(
    words: &mut Words<'_>,
    rank: &RankState,
    called: Option<At>,
    last: Option<At>,
    state: Activity,
) -> Standing {
    let path = called.or(last).and_then(|(_, path)| path);
    let name = |it: At| words.job.call(it.0).name.clone();
    let (call, last_call) = (called.map(name), last.map(name));
    Standing {
        condition: rank.condition,
        call: call.or((rank.condition == Condition::Finalizing).then(|| "MPI_Finalize".to_owned())),
        polls: false,
        last_call,
        site: words.site(path),
        frames: words.frames(path),
        state,
        count: 0,
        ranks: Vec::new(),
        hosts: Vec::new(),
        since_least_ns: Nanos(i64::MAX),
        since_most_ns: Nanos(0),
        requests: 0,
    }
}

/// How long a rank has been where it is, at least and at most: of what was killed the moment of its end lies between the last
/// record and the look. Who tests in vain has been there since what it did last.
fn since(job: &Job<'_>, at: usize, thread: Option<&ThreadState>) -> (Nanos, Nanos) {
    let rank = job.rank(at);
    let begin = thread.map_or(rank.last_record, |it| match (&it.open, it.last) {
        (Some(open), _) if !job.polls(at, it) => open.begin,
        (_, Some(last)) => last.end,
        (_, None) => rank.init_end,
    });
    let up_to = |end: Nanos| Nanos((end - begin).0.max(0));
    match rank.is_over() {
        true => (up_to(rank.last_record), up_to(rank.now)),
        false => (up_to(rank.now), up_to(rank.now)),
    }
}

/// Every rank, with all of its threads.
pub fn ranks(job: &Job<'_>, words: &mut Words<'_>) -> Vec<RankPlace> {
    let of = |(at, rank): (usize, &RankState)| RankPlace {
        rank: rank.rank,
        life: rank.life,
        host: rank.host.clone(),
        pid: rank.pid,
        condition: rank.condition,
        progressed: job.progressed[at],
        threads: rank.threads.iter().map(|it| thread(job, words, at, it)).collect(),
        requests: rank.requests.len(),
    };
    job.ranks().iter().enumerate().map(of).collect()
}

fn thread(job: &Job<'_>, words: &mut Words<'_>, at: usize, thread: &ThreadState) -> ThreadPlace {
    let name = |call: u32| job.call(call).name.clone();
    let polled = job.polled(at, thread);
    let open = polled.or(thread.open.as_ref().map(|it| &it.operation));
    let path = open.map_or_else(|| thread.last.and_then(|it| it.path), |it| it.path);
    ThreadPlace {
        number: thread.number,
        call: open.map(|it| name(it.call)),
        polls: polled.is_some(),
        last_call: thread.last.map(|it| name(it.call)),
        site: words.site(path).map(|site| site.brief()),
        since_ns: since(job, at, Some(thread)).1,
        state: job.activity(at, thread),
        busy: job.busy(at, thread),
    }
}
