//! Brings the members of collectives together: all members of a communicator call its collectives in the same order
//! (MPI-4.1 6.1), so the k-th of each belong together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::endpoint::NONE;
use super::lane::LaneKey;
use super::matching::LaneOrder;
use super::roster::CommKey;
use super::starvation::Starved;
use super::{Half, RankTrace, Trace};
use lapscope_data::model::Needs;

/// Visits to MPI that are kept of the rank that came last, and intervals in which it lacked a processor.
const LATEST_VISITS: usize = 4;
const LATEST_STARVED: usize = 8;
/// Windows of which it is known how long that rank was inside MPI; the longest is a minute.
const WINDOWS: usize = 11;

/// So long before a rank came to a collective.
fn window(number: usize) -> i64 {
    64_000 << (2 * number)
}

/// Members of a larger communicator do not look at all others.
const FEW_MEMBERS: usize = 64;
/// So many on either side they look at.
const NEXT: usize = 4;

/// One collective, over all its members.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Collective {
    /// Index into [`Trace::blocking_calls`]: the blocking call that does the same.
    pub blocking_call: u32,
    /// Members that were recorded, of so many.
    pub members: u32,
    pub comm_size: u32,
    /// When the last of them began, and its place in [`Trace::ranks`].
    pub last_begin: i64,
    pub last_rank: u32,
    /// Place of the root, and when it began.
    pub root: Option<u32>,
    pub root_begin: Option<i64>,
    /// Whether all members called the same function with the same root.
    pub agrees: bool,
}

/// What the rank that came last did before it came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its last visits to MPI, in order.
    visits: Vec<(i64, i64)>,
    /// When it came; how long before that it was inside MPI, in microseconds, within each of the last [`window`]s; and from when on
    /// that is known. Where it lies within a window is not.
    began: i64,
    inside_us: [u32; WINDOWS],
    known_from: i64,
    /// When it had no processor meanwhile.
    starved: Vec<Starved>,
}

/// A collective as far as some of its members tell; what is merged in any order comes to the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Meeting {
    collective: Collective,
    before: Before,
}

/// The collectives of a run, by communicator and in order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Meetings(BTreeMap<CommKey, Vec<Meeting>>);

/// For one communicator: its collectives, and which endpoints of each member take part, in order.
#[derive(Debug)]
pub(super) struct CommunicatorCollectives {
    pub key: CommKey,
    /// Index of its first in [`Trace::collectives`], and how many there are.
    pub first: u32,
    pub count: u32,
    /// Place of a rank, and its endpoints.
    pub members: Vec<(u32, Vec<u32>)>,
}

/// The members of all collectives, as far as their ranks were read.
#[derive(Debug, Default)]
pub struct CollectiveMembers(Vec<CommunicatorCollectives>);

impl CollectiveMembers {
    pub(super) fn new(mut groups: Vec<CommunicatorCollectives>) -> CollectiveMembers {
        groups.sort_by_key(|group| group.first);
        CollectiveMembers(groups)
    }

    fn group(&self, collective: u32) -> Option<&CommunicatorCollectives> {
        let behind = self.0.partition_point(|group| group.first <= collective);
        behind.checked_sub(1).map(|index| &self.0[index])
    }

    /// Place of each member's rank, and its endpoint.
    fn endpoints(&self, collective: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.group(collective).into_iter().flat_map(move |group| {
            let number = (collective - group.first) as usize;
            group.members.iter().filter_map(move |(rank, all)| Some((*rank, *all.get(number)?)))
        })
    }
}

impl Collective {
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.agrees && self.members == self.comm_size
    }

    fn of_member(trace: &RankTrace, index: u32, place: u32) -> Collective {
        let endpoint = &trace.endpoints[index as usize];
        let operation = &trace.operations[endpoint.operation as usize];
        Collective {
            blocking_call: operation.blocking_call,
            members: 1,
            comm_size: operation.comm_size,
            last_begin: endpoint.begin,
            last_rank: place,
            root: operation.peer,
            root_begin: (operation.peer == Some(place)).then_some(endpoint.begin),
            agrees: true,
        }
    }

    fn merge(&mut self, other: &Collective) {
        let what = |it: &Collective| (it.blocking_call, it.root, it.comm_size);
        self.agrees &= other.agrees && what(self) == what(other);
        (self.blocking_call, self.root, self.comm_size) = what(self).min(what(other));
        self.members += other.members;
        if is_later(other, self) {
            (self.last_begin, self.last_rank) = (other.last_begin, other.last_rank);
        }
        self.root_begin = self.root_begin.max(other.root_begin);
    }
}

/// Whether `a` came later; the first counts of those that came at once.
fn is_later(a: &Collective, b: &Collective) -> bool {
    (a.last_begin, std::cmp::Reverse(a.last_rank)) > (b.last_begin, std::cmp::Reverse(b.last_rank))
}

impl Before {
    /// `end`: when it was done with the collective.
    fn measure(rank: &RankTrace, inside: &InsideMpi<'_>, begin: i64, end: i64) -> Before {
        let visits = rank.presence.latest(begin, LATEST_VISITS).to_vec();
        let from = visits.first().map_or(begin, |visit| visit.0);
        let mut starved: Vec<Starved> = rank.starvation.touching(from, end).copied().collect();
        starved.drain(..starved.len().saturating_sub(LATEST_STARVED));
        let so_far = inside.until(begin);
        let within = |number| (so_far - inside.until(begin - window(number))) / 1_000;
        let inside_us =
            std::array::from_fn(|number| u32::try_from(within(number)).unwrap_or(u32::MAX));
        let known_from = rank.init_end.max(begin - window(WINDOWS - 1));
        Before { visits, began: begin, inside_us, known_from, starved }
    }

    /// Nanoseconds of `begin..end` outside MPI, as far as is known: exactly for the last visits, about for what lies before.
    pub fn outside(&self, begin: i64, end: i64) -> i64 {
        let exact_from = self.visits.first().map_or(self.began, |visit| visit.0).min(end);
        let exact = begin.max(exact_from);
        let inside = self.visits.iter().map(|visit| visit.1.min(end) - visit.0.max(exact));
        let late = (end - exact - inside.map(|ns| ns.max(0)).sum::<i64>()).max(0);
        let begin = begin.max(self.known_from);
        let early = exact_from - begin;
        if early <= 0 {
            return late;
        }
        let inside =
            self.inside_within(self.began - begin) - self.inside_within(self.began - exact_from);
        late + (early - inside).clamp(0, early)
    }

    /// Nanoseconds inside MPI within the last `ns` before it came, as if that were even between two windows.
    fn inside_within(&self, ns: i64) -> i64 {
        let number = (0..WINDOWS).find(|&number| window(number) >= ns).unwrap_or(WINDOWS - 1);
        let inside = |number: usize| i64::from(self.inside_us[number]) * 1_000;
        let (from, known) =
            number.checked_sub(1).map_or((0, 0), |before| (window(before), inside(before)));
        let part = (ns.max(0) - from) as f64 / (window(number) - from) as f64;
        known + ((inside(number) - known) as f64 * part) as i64
    }

    /// When it had left MPI last, before `moment`.
    pub fn left_before(&self, moment: i64) -> Option<i64> {
        self.visits.iter().rev().map(|visit| visit.1).find(|&end| end < moment)
    }

    /// Nanoseconds of `begin..end` in which it could have run and did not, about.
    pub fn starved_within(&self, begin: i64, end: i64) -> i64 {
        self.starved.iter().map(|interval| interval.share_of(begin, end)).sum()
    }
}

impl Meetings {
    /// Adds what other members tell.
    #[must_use]
    pub fn merge(mut self, other: Meetings) -> Meetings {
        for (key, more) in other.0 {
            let known = self.0.entry(key).or_default();
            let both = known.len().min(more.len());
            let mut more = more.into_iter();
            for (meeting, more) in known.iter_mut().zip(more.by_ref().take(both)) {
                if is_later(&more.collective, &meeting.collective) {
                    meeting.before = more.before;
                }
                meeting.collective.merge(&more.collective);
            }
            known.extend(more);
        }
        self
    }
}

impl Trace {
    /// When the last member of its collective began, and the place of that rank, where all members are known.
    #[inline]
    pub fn last_member(&self, half: &Half<'_>) -> Option<(i64, u32)> {
        let collective = self.collective(half).filter(|collective| collective.is_complete())?;
        Some((collective.last_begin, collective.last_rank))
    }

    /// All that take part in the collective of `half` and were read, itself among them.
    pub fn members<'a>(&'a self, half: &Half<'_>) -> impl Iterator<Item = Half<'a>> + 'a {
        let collective = self.collective(half).map(|_| half.partner);
        collective
            .into_iter()
            .flat_map(|collective| self.members.endpoints(collective))
            .map(|(rank, endpoint)| self.half(rank as usize, endpoint as usize))
    }

    /// Other members of its collective: all of a small communicator, of a large one those next to it in the order of the run. They are
    /// among the ranks that are read with it.
    pub fn other_members<'a>(&'a self, half: &Half<'_>) -> impl Iterator<Item = Half<'a>> + 'a {
        let collective = self.collective(half).map(|_| half.partner);
        let group = collective.and_then(|collective| self.members.group(collective));
        let own = half.rank as u32;
        let others = group.map(|group| {
            let known: Vec<u32> = group.members.iter().map(|(rank, _)| *rank).collect();
            let all = self.roster.communicators.get(&group.key).map_or(&known[..], |all| all);
            nearest(all, own)
        });
        let others = others.unwrap_or_default();
        self.members(half).filter(move |member| others.contains(&(member.rank as u32)))
    }

    /// The communicator of a collective, the collective's number there, and how many there are.
    #[inline]
    pub fn meeting_of(&self, half: &Half<'_>) -> Option<(CommKey, u32, u32)> {
        let group = self.collective(half).and_then(|_| self.members.group(half.partner))?;
        Some((group.key, half.partner - group.first, group.count))
    }

    /// What the rank that came last to the collective of `half` did before.
    #[inline]
    pub fn before(&self, half: &Half<'_>) -> Option<&Before> {
        self.collective(half).and_then(|_| self.before.get(half.partner as usize))
    }

    /// When everything began that a member of a collective had to wait for, and the place of the rank that was last: the
    /// root in a broadcast, all members at the root of a reduction. `None` when it waits for nobody or it is not known.
    pub fn awaited(&self, half: &Half<'_>) -> Option<(i64, u32)> {
        let collective = self.collective(half).filter(|collective| collective.is_complete())?;
        let is_root = collective.root == Some(half.rank as u32);
        let all = Some((collective.last_begin, collective.last_rank));
        let call = &self.blocking_calls[collective.blocking_call as usize];
        // a fence need not wait for anybody where it ends nothing; one that stood waited for those that came meanwhile
        match call.waits_for()? {
            Needs::All => all,
            Needs::Root => collective.root_begin.zip(collective.root).filter(|_| !is_root),
            Needs::AllAtRoot => all.filter(|_| is_root),
            Needs::Lower | Needs::Neighbors | Needs::Other => None,
        }
    }

    /// Notes anew when members began, after these moments were changed.
    pub fn time_collectives(&mut self) {
        let members = std::mem::take(&mut self.members);
        let meetings = meetings(self, &members.0);
        for group in &members.0 {
            self.take_meetings(group, &meetings);
        }
        self.members = members;
    }

    fn take_meetings(&mut self, group: &CommunicatorCollectives, meetings: &Meetings) {
        for (place, meeting) in
            (group.first as usize..).zip(meetings.0.get(&group.key).into_iter().flatten())
        {
            self.collectives[place] = meeting.collective;
            if let Some(before) = self.before.get_mut(place) {
                before.clone_from(&meeting.before);
            }
        }
    }

    /// Takes over the collectives of the run, and tells each endpoint which one it takes part in.
    pub(super) fn join_meetings(
        &mut self,
        groups: &mut [CommunicatorCollectives],
        meetings: &Meetings,
    ) {
        for group in groups {
            group.first = self.collectives.len() as u32;
            for meeting in meetings.0.get(&group.key).into_iter().flatten() {
                self.collectives.push(meeting.collective);
                self.before.push(meeting.before.clone());
            }
            group.count = self.collectives.len() as u32 - group.first;
            for (rank, endpoints) in &group.members {
                let rows = &mut self.ranks[*rank as usize].endpoints;
                for (number, &index) in (group.first..).zip(endpoints) {
                    rows[index as usize].partner = number;
                }
            }
        }
    }
}

/// The members of a communicator, in order, that `own` looks at.
pub(crate) fn nearest(members: &[u32], own: u32) -> Vec<u32> {
    let size = members.len();
    if size <= FEW_MEMBERS {
        return members.iter().copied().filter(|&member| member != own).collect();
    }
    let Ok(place) = members.binary_search(&own) else { return Vec::new() };
    let around = (1..=NEXT).flat_map(|step| [(place + step) % size, (place + size - step) % size]);
    around.map(|place| members[place]).collect()
}

/// Which endpoints take part in the collectives of each communicator, in order.
pub(super) fn groups(
    comms: &[CommKey],
    lanes: &[LaneKey],
    orders: &[LaneOrder],
) -> Vec<CommunicatorCollectives> {
    let mut members: BTreeMap<usize, Vec<(u32, Vec<u32>)>> = BTreeMap::new();
    for (rank, order) in (0..).zip(orders) {
        for lane in order.lanes().filter(|&lane| lanes[lane as usize].is_collective) {
            let endpoints = order.endpoints_in(lane, false).to_vec();
            members.entry(lane as usize).or_default().push((rank, endpoints));
        }
    }
    let group = |(lane, members): (usize, _)| CommunicatorCollectives {
        key: comms[lanes[lane].comm as usize],
        first: NONE,
        count: 0,
        members,
    };
    members.into_iter().map(group).collect()
}

/// How long a rank had been inside MPI by any moment.
struct InsideMpi<'a> {
    intervals: &'a [(i64, i64)],
    /// Before each of them.
    sums: Vec<i64>,
}

impl<'a> InsideMpi<'a> {
    fn new(rank: &'a RankTrace) -> InsideMpi<'a> {
        let intervals = rank.presence.intervals();
        let lengths = intervals.iter().map(|(begin, end)| end - begin);
        let before = |sum: &mut i64, ns: i64| Some(std::mem::replace(sum, *sum + ns));
        InsideMpi { intervals, sums: lengths.scan(0, before).collect() }
    }

    fn until(&self, moment: i64) -> i64 {
        let behind = self.intervals.partition_point(|&(begin, _)| begin < moment);
        let Some(last) = behind.checked_sub(1) else { return 0 };
        let (begin, end) = self.intervals[last];
        self.sums[last] + end.min(moment) - begin
    }
}

/// What the members in the trace's focus tell of collectives; after the clocks were corrected.
pub(super) fn meetings(trace: &Trace, groups: &[CommunicatorCollectives]) -> Meetings {
    let mut found = Meetings::default();
    let mut inside: BTreeMap<u32, InsideMpi<'_>> = BTreeMap::new();
    for group in groups {
        let mut all: Vec<(Collective, u32)> = Vec::new();
        for (rank, endpoints) in &group.members {
            if !trace.is_in_focus(*rank as usize) {
                continue;
            }
            for (number, &index) in endpoints.iter().enumerate() {
                let one = Collective::of_member(&trace.ranks[*rank as usize], index, *rank);
                match all.get_mut(number) {
                    Some((known, last)) => {
                        if is_later(&one, known) {
                            *last = index;
                        }
                        known.merge(&one);
                    }
                    None => all.push((one, index)),
                }
            }
        }
        let mut meeting = |(collective, last): (Collective, u32)| {
            let rank = &trace.ranks[collective.last_rank as usize];
            let call = rank.calls.get(rank.endpoints[last as usize].call as usize);
            let begin = collective.last_begin;
            let end = call.map_or(rank.end, |call| call.begin + call.duration);
            let inside = inside.entry(collective.last_rank).or_insert_with(|| InsideMpi::new(rank));
            Meeting { collective, before: Before::measure(rank, inside, begin, end) }
        };
        if !all.is_empty() {
            found.0.insert(group.key, all.into_iter().map(&mut meeting).collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::presence::Presence;
    use super::*;

    #[test]
    fn what_came_before_is_known_as_far_as_it_goes_back() {
        let visits = vec![(100, 200), (300, 400)];
        let before = Before { visits, began: 500, known_from: 100, ..Before::default() };
        assert_eq!(before.outside(200, 500), 200);
        assert_eq!(before.outside(150, 350), 100);
        assert_eq!(before.outside(0, 500), 200, "before 100 nothing is known");
        assert_eq!((before.left_before(500), before.left_before(400)), (Some(400), Some(200)));
    }

    /// Work between many short visits, of which only the last few are kept one by one.
    #[test]
    fn of_many_visits_it_is_known_how_long_they_were_together() {
        const MS: i64 = 1_000_000;
        let visits = (0..1_000).map(|at| (at * MS, at * MS + MS / 10)).collect();
        let mut rank = RankTrace { end: 1_000 * MS, ..RankTrace::default() };
        rank.presence = Presence::new(visits);
        let before = Before::measure(&rank, &InsideMpi::new(&rank), 1_000 * MS, 1_001 * MS);
        for from in [0, 300, 600, 900, 990] {
            let (outside, all) = (before.outside(from * MS, 1_000 * MS), (1_000 - from) * MS);
            let share = outside as f64 / all as f64;
            assert!((share - 0.9).abs() < 0.02, "from {from} ms: {share}");
        }
    }

    #[test]
    fn members_look_at_all_others_or_at_the_next() {
        assert_eq!(nearest(&[3, 5, 9], 5), [3, 9]);
        let many: Vec<u32> = (0..100).map(|rank| rank * 2).collect();
        assert_eq!(nearest(&many, 0), [2, 198, 4, 196, 6, 194, 8, 192]);
        assert_eq!(nearest(&many, 1), [0u32; 0]);
    }
}
