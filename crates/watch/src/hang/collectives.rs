//! Collectives of each communicator, in the order in which each member calls them: who has not come yet, and where members
//! called different things.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::job::Job;
use super::job::{Open, OpenAt};
use super::messages::open_operations;
use lapscope_data::model::{Needs, Rank};
use lapscope_data::state::{OpenOperation, Sequence};

/// A communicator of a world.
pub type GroupKey = (i64, u32);

/// A call that all members have to make, as the place in the communicator's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    pub group: GroupKey,
    /// From 0.
    pub position: u64,
    /// Members, by their places in the job and in their order, that have not come.
    pub missing: Vec<usize>,
    /// Likewise, that have come, and called something else.
    pub elsewhere: Vec<usize>,
    /// Whether these called the same with another root.
    pub has_roots: bool,
    /// Members of which nothing is known.
    pub unseen: usize,
    /// Whether the positions of all members can be believed.
    pub is_whole: bool,
    /// Whether its members have the same order in it as in the world.
    pub is_in_order: bool,
}

/// What is called, as far as all members have to call the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature {
    /// Index of the call, one of all that mean the same.
    pub call: u32,
    pub root: Root,
}

/// The rank from which a collective has its data, or to which it gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// It has none, or it is not known.
    None,
    /// A rank of the communicator.
    Rank(i64),
    /// A rank of the world, on one side of an inter-communicator.
    World(i64),
    /// On that side, but not this rank of the world: MPI_PROC_NULL.
    Beside(i64),
}

impl Root {
    fn fits(self, other: Root) -> bool {
        match (self, other) {
            (Root::None, _) | (_, Root::None) | (Root::Beside(_), Root::Beside(_)) => true,
            (Root::Beside(own), Root::World(root)) | (Root::World(root), Root::Beside(own)) => {
                own != root
            }
            (own, other) => own == other,
        }
    }
}

impl Signature {
    fn fits(self, other: Signature) -> bool {
        self.call == other.call && self.root.fits(other.root)
    }
}

/// Where members of a communicator first called different things.
#[derive(Debug, Clone)]
pub struct Mismatch {
    pub group: GroupKey,
    pub position: u64,
    /// Who called what, and from where.
    pub by: BTreeMap<Signature, Vec<(usize, Option<u32>)>>,
    pub is_whole: bool,
}

/// What a member did with a communicator.
struct MemberProgress<'a> {
    at: usize,
    count: u64,
    sequence: Option<&'a Sequence>,
    /// The blocking one that it is inside of.
    open: Option<&'a OpenOperation>,
}

struct CommunicatorMembers<'a> {
    members: Vec<MemberProgress<'a>>,
    /// Places in `members` by the ranks' places in the job.
    of_rank: FxHashMap<usize, usize>,
    unseen: usize,
    is_whole: bool,
}

/// The collectives of a job.
pub struct Collectives<'a> {
    groups: FxHashMap<GroupKey, CommunicatorMembers<'a>>,
    pub meetings: Vec<Meeting>,
    /// Places in `meetings` by open collectives.
    at: FxHashMap<OpenAt, usize>,
}

impl<'a> Collectives<'a> {
    pub fn match_open(job: &Job<'a>) -> Collectives<'a> {
        let waiting = open_collectives(job);
        let mut groups: FxHashMap<GroupKey, CommunicatorMembers<'_>> = FxHashMap::default();
        for (_, key, _) in &waiting {
            groups.entry(*key).or_insert_with(|| group(job, *key));
        }
        let mut all = Collectives { groups, meetings: Vec::new(), at: FxHashMap::default() };
        let mut numbers: FxHashMap<(GroupKey, u64, Signature), usize> = FxHashMap::default();
        let mut positions = Positions::default();
        for (place, key, operation) in waiting {
            let Some(position) = positions.position(job, &all.groups[&key], place, operation)
            else {
                continue;
            };
            let root = (operation.peer, operation.peer_world);
            let call = operation.made_by.unwrap_or(operation.call);
            let signature = signature(job, (place.0, key.1), call, root);
            let meetings = &mut all.meetings;
            let groups = &all.groups;
            let number = *numbers.entry((key, position, signature)).or_insert_with(|| {
                meetings.push(meeting(job, key, &groups[&key], position, signature));
                meetings.len() - 1
            });
            all.at.insert(place, number);
        }
        all
    }

    /// The meeting of an open collective; `None`: its communicator's members are not known.
    pub fn meeting(&self, place: OpenAt) -> Option<usize> {
        self.at.get(&place).copied()
    }

    /// The first position at which members of a communicator called different things, among those that are kept.
    pub fn mismatch(&self, job: &Job<'_>, key: GroupKey) -> Option<Mismatch> {
        let group = self.groups.get(&key)?;
        let position = first_difference(job, key, group)?;
        let mut by: BTreeMap<Signature, Vec<(usize, Option<u32>)>> = BTreeMap::new();
        for member in &group.members {
            if let Some((mut signature, path)) = member.called(job, key, position) {
                if let Root::Beside(own) = &mut signature.root {
                    *own = 0; // all of them in one line
                }
                by.entry(signature).or_default().push((member.at, path));
            }
        }
        Some(Mismatch { group: key, position, by, is_whole: group.is_whole })
    }
}

impl MemberProgress<'_> {
    fn first_kept(&self) -> u64 {
        self.count - self.sequence.map_or(0, |it| it.last.len() as u64)
    }

    /// What it called at a position, and from where; `None`: it has not come, or it is not kept.
    fn called(
        &self,
        job: &Job<'_>,
        key: GroupKey,
        position: u64,
    ) -> Option<(Signature, Option<u32>)> {
        if position == self.count {
            let open = self.open?;
            let root = (open.peer, open.peer_world);
            return Some((signature(job, (self.at, key.1), open.call, root), open.path));
        }
        let place = position.checked_sub(self.first_kept())?;
        let called = self.sequence?.last.get(usize::try_from(place).ok()?)?;
        let root = (called.root, called.root_world);
        Some((signature(job, (self.at, key.1), called.call, root), called.path))
    }

    fn has_come(&self, position: u64) -> bool {
        self.count > position || (self.count == position && self.open.is_some())
    }
}

/// Every open call or request that all members of a communicator have to make.
fn open_collectives<'a>(job: &Job<'a>) -> Vec<(OpenAt, GroupKey, &'a OpenOperation)> {
    let mut waiting = Vec::new();
    for (at, rank) in job.ranks().iter().enumerate() {
        for (open, operation) in open_operations(job, at) {
            let needs = job.gathers(operation.made_by.unwrap_or(operation.call));
            if let Some(communicator) = operation.communicator.filter(|_| needs.is_some()) {
                waiting.push(((at, open), (rank.rank.world, communicator), operation));
            }
        }
    }
    waiting
}

fn group<'a>(job: &Job<'a>, (world, communicator): GroupKey) -> CommunicatorMembers<'a> {
    let members = job.members(communicator).unwrap_or_default();
    let found: Vec<usize> =
        members.iter().filter_map(|&number| job.find(Rank { world, number })).collect();
    let member = |&at: &usize| {
        let rank = job.rank(at);
        let of = |it: &&Sequence| it.communicator == communicator;
        let sequence = rank.history.collectives.iter().find(of);
        let is_meant = |it: &&OpenOperation| {
            it.communicator == Some(communicator) && job.gathers(it.call).is_some()
        };
        let opened = rank.threads.iter().filter_map(|it| it.open.as_ref());
        let open = opened.map(|it| &it.operation).find(is_meant);
        MemberProgress { at, count: sequence.map_or(0, |it| it.count), sequence, open }
    };
    let is_whole = found.iter().all(|&at| job.rank(at).history.is_whole);
    let of_rank = found.iter().enumerate().map(|(place, &at)| (at, place)).collect();
    let unseen = members.len() - found.len();
    CommunicatorMembers { members: found.iter().map(member).collect(), of_rank, unseen, is_whole }
}

/// Which position an open collective has; non-blocking ones are looked for from the end of what was begun.
#[derive(Default)]
struct Positions {
    /// Which requests stand where, by rank and communicator.
    of_requests: FxHashMap<(usize, u32), FxHashMap<usize, u64>>,
}

impl Positions {
    fn position(
        &mut self,
        job: &Job<'_>,
        group: &CommunicatorMembers<'_>,
        place: OpenAt,
        operation: &OpenOperation,
    ) -> Option<u64> {
        let (at, open) = place;
        let member = &group.members[*group.of_rank.get(&at)?];
        let Open::Request(request) = open else { return Some(member.count) };
        let communicator = operation.communicator?;
        let placed = self.of_requests.entry((at, communicator));
        let placed = placed.or_insert_with(|| place_requests(job, member, at, communicator));
        placed.get(&request).copied()
    }
}

fn place_requests(
    job: &Job<'_>,
    member: &MemberProgress<'_>,
    at: usize,
    communicator: u32,
) -> FxHashMap<usize, u64> {
    let mut placed = FxHashMap::default();
    let kept: &[_] = member.sequence.map_or(&[], |sequence| &sequence.last);
    let mut left = kept.len();
    let mut open = open_operations(job, at);
    open.retain(|(_, operation)| operation.communicator == Some(communicator));
    for (open, operation) in open.into_iter().rev() {
        let Open::Request(request) = open else { continue };
        let call = operation.made_by.unwrap_or(operation.call);
        let found =
            kept[..left].iter().rposition(|it| it.call == call || it.call == operation.call);
        let Some(found) = found else { continue };
        placed.insert(request, member.first_kept() + found as u64);
        left = found;
    }
    placed
}

fn meeting(
    job: &Job<'_>,
    key: GroupKey,
    group: &CommunicatorMembers<'_>,
    position: u64,
    signature: Signature,
) -> Meeting {
    let (mut missing, mut elsewhere, mut has_roots) = (Vec::new(), Vec::new(), true);
    for member in &group.members {
        if !member.has_come(position) {
            missing.push(member.at);
        } else if let Some((called, _)) = member.called(job, key, position) {
            if !called.fits(signature) {
                elsewhere.push(member.at);
                has_roots &= called.call == signature.call;
            }
        }
    }
    missing.sort_unstable();
    elsewhere.sort_unstable();
    let (unseen, is_whole) = (group.unseen, group.is_whole);
    let is_in_order = group.members.windows(2).all(|pair| pair[0].at < pair[1].at);
    Meeting { group: key, position, missing, elsewhere, has_roots, unseen, is_whole, is_in_order }
}

/// What the rank `at` called, whose root is that rank of the communicator and of the world.
fn signature(
    job: &Job<'_>,
    (at, communicator): (usize, u32),
    call: u32,
    (root, root_world): (i64, Option<i64>),
) -> Signature {
    const PROC_NULL: i64 = -2;
    let is_rooted = matches!(job.gathers(call), Some(Needs::Root | Needs::AllAtRoot));
    let root = match (is_rooted, job.is_inter(communicator)) {
        (false, _) => Root::None,
        (true, false) => Root::Rank(root),
        (true, true) if root == PROC_NULL => Root::Beside(job.rank(at).rank.number),
        (true, true) => root_world.map_or(Root::None, Root::World),
    };
    Signature { call, root }
}

/// What is kept of each member tells at each position whether it differs from the first one's; a second pass knows the roots that
/// members of an inter-communicator named behind those that named none.
fn first_difference(job: &Job<'_>, key: GroupKey, group: &CommunicatorMembers<'_>) -> Option<u64> {
    let end = group.members.iter().map(|it| it.count + u64::from(it.open.is_some())).max()?;
    let base = group.members.iter().map(MemberProgress::first_kept).min()?;
    let base = base.max(end.saturating_sub(4 * Sequence::KEPT as u64));
    let length = (end - base) as usize;
    let mut called: Vec<Option<Signature>> = vec![None; length];
    let mut first = length;
    let passes = 1 + usize::from(job.is_inter(key.1));
    for member in std::iter::repeat(&group.members).take(passes).flatten() {
        let from = member.first_kept().saturating_sub(base) as usize;
        let (from, to) = (from.min(first), first);
        for (at, known) in called[..to].iter_mut().enumerate().skip(from) {
            let Some((signature, _)) = member.called(job, key, base + at as u64) else { break };
            if !known.get_or_insert(signature).fits(signature) {
                first = at;
                break;
            }
            if matches!(signature.root, Root::World(_)) {
                *known = Some(signature);
            }
        }
    }
    (first < length).then(|| base + first as u64)
}
