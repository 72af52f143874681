//! What each thread waits for: from the call that it is inside of, and what the others do.
//!
//! A wait in which nothing is certain but which has not returned waits for one of its doubts: a blocking send that is
//! open in both looks is no eager one. Where a program passes on copies of its handles, as mpi4py does, all requests of
//! the thread are named, and not as certain.

mod buffers;

use rustc_hash::FxHashMap;

use super::collectives::Collectives;
use super::document::Activity;
use super::graph::{Freedom, Graph, Junction, Need, Node, Target};
use super::job::Job;
use super::job::{Open, OpenAt};
use super::locks::Locks;
use super::messages::{Match, Messages, ANY};
use lapscope_data::model::{Completes, Kind, Mode, Nanos, Needs, Rank};
use lapscope_data::state::{
    Condition, OpenCall, OpenOperation, Partitions, RankState, SystemState, ThreadState,
};

/// Why something is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A message has to be sent.
    Receive,
    /// A message has to be received.
    Send,
    /// Messages that a buffer holds have to be received.
    Taken,
    /// Partitions have to be made ready, by its own rank.
    Ready,
    /// The others have to make the same call; its place in [`Collectives::meetings`].
    Meeting(usize),
    /// Others of a group which is not recorded have to do their part.
    Group,
    /// The others have to reach MPI_Finalize.
    Finalize,
    /// Others have locked the window and have to unlock it.
    Lock,
    /// A transfer that needs the other end inside of MPI.
    Progress,
    /// It is there, or nothing tells what is in its way.
    Nothing,
}

/// Why, and whose request or call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Why {
    pub reason: Reason,
    pub place: OpenAt,
}

pub type WaitNode = Node<Why>;
type WaitNeed = Need<Why>;

/// Builds the graph of a job.
pub struct Builder<'a> {
    job: &'a Job<'a>,
    messages: &'a Messages,
    collectives: &'a Collectives<'a>,
    graph: Graph<Why>,
    of_meetings: FxHashMap<(usize, bool), usize>,
    /// Place of the junction for a world and a communicator; without a communicator, for the whole world.
    crowds: FxHashMap<(i64, Option<u32>), usize>,
    finalizing: FxHashMap<i64, usize>,
    locks: Locks,
}

/// The graph of everybody who waits.
pub fn graph(job: &Job<'_>, messages: &Messages, collectives: &Collectives<'_>) -> Graph<Why> {
    let graph = Graph { ranks: Vec::new(), junctions: Vec::new(), nodes: Vec::new() };
    let mut builder = Builder {
        job,
        messages,
        collectives,
        graph,
        of_meetings: FxHashMap::default(),
        crowds: FxHashMap::default(),
        finalizing: FxHashMap::default(),
        locks: Locks::collect(job),
    };
    for at in 0..job.ranks().len() {
        builder.add_rank(at);
    }
    builder.graph
}

/// Whether a call only asks, and returns at once.
pub fn only_asks(name: &str) -> bool {
    [
        "MPI_Test",
        "MPI_Request_get_status",
        "MPI_Iprobe",
        "MPI_Improbe",
        "MPI_Parrived",
        "MPI_Win_test",
    ]
    .iter()
    .any(|begin| name.starts_with(begin))
}

/// What a thread that never called MPI may come to do. Threads of MPI libraries, which have no say, began within MPI_Init and wait
/// for events; so may one of the program's, which began at another time.
fn of_other_thread(rank: &RankState, system: &SystemState) -> Freedom {
    // the system counts in hundredths of a second, and was asked a little after the rank
    const TOLERANCE_NS: i64 = 30_000_000;
    let waits_for_events = ["poll", "select"].iter().any(|part| system.sleeps_in.contains(part));
    let began = rank.now.0.saturating_sub(system.age.0);
    let is_of_mpi = (-TOLERANCE_NS..rank.init_end.0 - TOLERANCE_NS).contains(&began);
    match system.state {
        'T' | 't' | 'Z' | 'X' => Freedom::AsNodes,
        'S' if waits_for_events && is_of_mpi => Freedom::AsNodes,
        'S' if !system.wakes_by_itself => Freedom::Perhaps,
        _ => Freedom::Free,
    }
}

impl Builder<'_> {
    fn add_rank(&mut self, at: usize) {
        let first = self.graph.nodes.len();
        let rank = self.job.rank(at);
        let is_held = self.job.sleeps_within(at).is_none();
        if is_held && !self.job.is_dead(at) && !self.job.progressed[at] {
            if self.job.is_finalizing(at) {
                self.add_finalizing(at);
            } else if !self.job.has_left(at) {
                for (place, thread) in rank.threads.iter().enumerate() {
                    self.add_thread(at, place, thread);
                }
            }
        }
        let has_nodes = self.graph.nodes.len() > first;
        let freedom = self.freedom(at, has_nodes);
        self.graph.ranks.push(freedom);
    }

    fn freedom(&self, at: usize, has_nodes: bool) -> Freedom {
        let (job, rank) = (self.job, self.job.rank(at));
        if job.is_dead(at) || job.has_left(at) {
            // functions of the program's may act in MPI_Finalize, for attributes of MPI_COMM_SELF
            let may_act = !rank.is_over() && job.may_sleep_within(at).is_some();
            return if may_act { Freedom::Perhaps } else { Freedom::Never };
        }
        if job.progressed[at] || !has_nodes {
            return Freedom::Free;
        }
        let is_doubtful = job.may_sleep_within(at).is_some() || job.had_other_threads(at);
        let least = if is_doubtful { Freedom::Perhaps } else { Freedom::AsNodes };
        if !rank.is_multithreaded() {
            return least; // while one thread is inside, no other may call MPI
        }
        let is_outside = |it: &&ThreadState| it.open.is_none() && !job.polls(at, it);
        // of what has ended it is not known what its threads were about to do, or whether they lived
        let counts = |it: &&ThreadState| {
            it.system.is_some() || rank.condition == Condition::Unknown || rank.is_over()
        };
        let outside = rank.threads.iter().filter(is_outside).filter(counts);
        let known = outside.map(|it| match (job.activity(at, it), &it.system) {
            (Activity::Asleep, Some(system)) if system.wakes_by_itself => Freedom::Free,
            (Activity::Asleep, _) => Freedom::Perhaps,
            _ if rank.is_over() => Freedom::Perhaps,
            _ => Freedom::Free,
        });
        let freedoms = known.chain(rank.other_threads.iter().map(|it| of_other_thread(rank, it)));
        freedoms.fold(least, |most, it| match (most, it) {
            (Freedom::Free, _) | (_, Freedom::Free) => Freedom::Free,
            (Freedom::Perhaps, _) | (_, Freedom::Perhaps) => Freedom::Perhaps,
            _ => Freedom::AsNodes,
        })
    }

    fn add_finalizing(&mut self, at: usize) {
        let job = self.job;
        let world = job.rank(at).rank.world;
        let junctions = &mut self.graph.junctions;
        let junction = *self.finalizing.entry(world).or_insert_with(|| {
            let mut junction = crowd(job, world, None);
            junction.is_any = false;
            junction.over.retain(|&it| !job.has_left(it));
            junctions.push(junction);
            junctions.len() - 1
        });
        let why = Why { reason: Reason::Finalize, place: (at, Open::Call(0)) };
        let need = Need { target: Target::Junction(junction), is_sure: true, why };
        self.add(at, 0, vec![need], false);
    }

    fn add(&mut self, rank: usize, thread: usize, mut needs: Vec<WaitNeed>, is_any: bool) {
        let is_sent = |need: &WaitNeed| matches!(need.why.reason, Reason::Send | Reason::Taken);
        let waits_for_one = needs.iter().any(is_sent) && self.has_waited_long(rank, thread);
        if let ([need], true) = (&mut needs[..], waits_for_one) {
            need.is_sure |= is_sent(need);
        }
        self.graph.nodes.push(Node { rank, thread, needs, is_any, waits_for_one });
    }

    /// Whether its call has not returned for so long that it does wait for something.
    fn has_waited_long(&self, at: usize, thread: usize) -> bool {
        const LONG: Nanos = Nanos(1_000_000_000);
        let rank = self.job.rank(at);
        let open = rank.threads.get(thread).and_then(|it| it.open.as_ref());
        !self.job.is_over
            || open.is_some_and(|it| rank.last_record - it.begin > LONG)
            || open.is_some_and(|it| rank.now - it.begin > LONG)
    }

    fn add_thread(&mut self, at: usize, place: usize, thread: &ThreadState) {
        let asks = |open: &OpenCall| only_asks(&self.job.call(open.operation.call).name);
        match thread.open.as_ref().filter(|open| !asks(open)) {
            Some(open) => {
                let (needs, is_any) = self.needs(at, place, open);
                self.add(at, place, needs, is_any);
            }
            None if self.job.polls(at, thread) => {
                let needs = self.polled(at, place, thread);
                self.add(at, place, needs, true);
            }
            None => {}
        }
    }

    /// What a thread that tests in vain needs: any of what it tests may let it go on, and it may also do something else.
    fn polled(&mut self, at: usize, place: usize, thread: &ThreadState) -> Vec<WaitNeed> {
        let rank = self.job.rank(at);
        let mut needs = Vec::new();
        for (request, it) in rank.requests.iter().enumerate() {
            let is_tested = it.thread == thread.number && it.unsuccessful_tests > 0;
            if is_tested && rank.now - it.last_unsuccessful_test <= self.job.elapsed(at) {
                self.add_needs(at, Open::Request(request), &it.operation, true, &mut needs);
            }
        }
        if let (true, Some(probe)) = (needs.is_empty(), self.job.probed(at, thread)) {
            needs.extend(self.receive((at, Open::Probe(place)), probe));
        }
        if needs.is_empty() {
            let target = Target::Junction(self.crowd(rank.rank.world, None));
            let why = Why { reason: Reason::Group, place: (at, Open::Call(place)) };
            needs.push(Need { target, is_sure: false, why });
        }
        needs.iter_mut().for_each(|need| need.is_sure = false);
        needs
    }

    fn needs(&mut self, at: usize, place: usize, open: &OpenCall) -> (Vec<WaitNeed>, bool) {
        let mut needs = Vec::new();
        let call = self.job.call(open.operation.call);
        let is_any = matches!(call.completes, Some(Completes::Any | Completes::Some));
        let Some(waits) = &open.waits else {
            self.add_needs(at, Open::Call(place), &open.operation, false, &mut needs);
            return (needs, false);
        };
        let requests = &self.job.rank(at).requests;
        for &request in &waits.requests {
            if let Some(it) = requests.get(request as usize) {
                let done = it.is_seen_complete || it.is_cancelled;
                let why =
                    Why { reason: Reason::Nothing, place: (at, Open::Request(request as usize)) };
                let missing = it.partitions.map_or(0, Partitions::missing);
                match done {
                    false if missing > 0 => {
                        // what was recorded of a rank that is dead does not tell: a perhaps, while it runs and after
                        let why = Why { reason: Reason::Ready, ..why };
                        needs.push(Need { target: Target::Rank(at), is_sure: false, why });
                    }
                    true => needs.push(Need { target: Target::Free, is_sure: true, why }),
                    false => self.add_needs(at, why.place.1, &it.operation, is_any, &mut needs),
                }
            }
        }
        if !waits.is_certain {
            needs.iter_mut().for_each(|need| need.is_sure = false);
            // It may wait for another request.
            let why = Why { reason: Reason::Nothing, place: (at, Open::Call(place)) };
            if !is_any {
                needs.push(Need { target: Target::Free, is_sure: false, why });
            }
        }
        (needs, is_any)
    }

    fn add_needs(
        &mut self,
        at: usize,
        open: Open,
        operation: &OpenOperation,
        is_any: bool,
        needs: &mut Vec<WaitNeed>,
    ) {
        let job = self.job;
        let told_by = job.told_by(operation);
        let place = (at, open);
        if let Some(receive) = &operation.receive {
            // the message that it receives is needed in any case, that which it sends may be kept
            needs.extend(self.receive(place, receive));
            needs.extend(self.send(place, operation, is_any));
        } else if operation.kind == Kind::Send {
            needs.extend(self.send(place, operation, is_any));
        } else if operation.kind == Kind::Recv {
            needs.extend(self.receive(place, operation));
        } else if told_by.gathers().is_some() && operation.communicator.is_some() {
            self.add_meeting(place, operation, needs);
        } else {
            let taken = if told_by.drains_buffers() { self.taken(place) } else { Vec::new() };
            if taken.is_empty() {
                needs.push(self.other(place, operation));
            }
            needs.extend(taken);
        }
    }

    fn send(&self, place: OpenAt, operation: &OpenOperation, is_any: bool) -> Option<WaitNeed> {
        let mode = self.job.told_by(operation).mode;
        let peer = self.peer(place.0, operation)?;
        let found = self.messages.send(place);
        let is_sure = is_any || matches!(mode, Some(Mode::Synchronous));
        let is_whole = self.is_whole(place.0) && self.is_whole(peer);
        let need = |target, is_sure, reason| Need { target, is_sure, why: Why { reason, place } };
        Some(match found {
            _ if mode == Some(Mode::Buffered) => need(Target::Free, true, Reason::Nothing),
            Match::Found(_) if self.job.is_inside(peer) => {
                need(Target::Free, false, Reason::Nothing)
            }
            Match::Found(_) => need(Target::Rank(peer), false, Reason::Progress),
            Match::Perhaps => need(Target::Rank(peer), false, Reason::Send),
            Match::Missing => need(Target::Rank(peer), is_sure && is_whole, Reason::Send),
        })
    }

    fn receive(&mut self, place: OpenAt, operation: &OpenOperation) -> Option<WaitNeed> {
        let reason = Reason::Receive;
        let need = |target, is_sure, reason| Need { target, is_sure, why: Why { reason, place } };
        let world = self.job.rank(place.0).rank.world;
        let found = self.messages.receive(place);
        if operation.peer == ANY {
            let is_sure = found == Match::Missing;
            return Some(match found {
                Match::Found(_) => need(Target::Free, true, Reason::Nothing),
                _ => need(
                    Target::Junction(self.crowd(world, operation.communicator)),
                    is_sure,
                    reason,
                ),
            });
        }
        let peer = self.peer(place.0, operation)?;
        let is_whole = self.is_whole(place.0) && self.is_whole(peer);
        Some(match found {
            Match::Found(Some(sender)) if !self.job.is_inside(sender) => {
                need(Target::Rank(sender), false, Reason::Progress)
            }
            Match::Found(_) => need(Target::Free, true, Reason::Nothing),
            Match::Perhaps => need(Target::Rank(peer), false, reason),
            Match::Missing => need(Target::Rank(peer), is_whole, reason),
        })
    }

    /// The other end; `None` where there is none, or nothing is known of it.
    fn peer(&self, at: usize, operation: &OpenOperation) -> Option<usize> {
        let number = operation.peer_world?;
        self.job.find(Rank { number, ..self.job.rank(at).rank })
    }

    fn is_whole(&self, at: usize) -> bool {
        self.job.rank(at).history.is_whole
    }

    fn add_meeting(&mut self, place: OpenAt, operation: &OpenOperation, needs: &mut Vec<WaitNeed>) {
        let job = self.job;
        let Some(number) = self.collectives.meeting(place) else { return };
        let meeting = &self.collectives.meetings[number];
        let why = Why { reason: Reason::Meeting(number), place };
        let need = |target, is_sure| Need { target, is_sure, why };
        if meeting.missing.is_empty() && meeting.elsewhere.is_empty() {
            needs.push(need(Target::Free, true));
            return;
        }
        let is_whole = meeting.is_whole;
        let has = |ranks: &[usize], root: usize| ranks.binary_search(&root).is_ok();
        let (root, is_root) = self.root(place.0, operation);
        let is_inter = operation.communicator.is_some_and(|it| job.is_inter(it));
        match (job.told_by(operation).gathers(), root) {
            (Some(Needs::All), _) => needs.push(need(self.all_of(number), is_whole)),
            // the root of an inter-communicator waits for one side
            (Some(Needs::AllAtRoot), _) if is_root && !is_inter => {
                needs.push(need(self.all_of(number), is_whole));
            }
            (Some(Needs::Root), Some(root)) if has(&meeting.missing, root) => {
                needs.push(need(Target::Rank(root), is_whole));
            }
            (Some(Needs::Root), Some(root)) if has(&meeting.elsewhere, root) => {
                needs.push(need(Target::Nobody, is_whole));
            }
            (Some(Needs::Lower), _) if meeting.missing.first().is_some_and(|&it| it < place.0) => {
                needs.push(need(Target::Rank(meeting.missing[0]), is_whole && meeting.is_in_order));
            }
            _ => self.add_tree(number, need, needs),
        }
    }

    /// The root of a rooted collective where it can be seen, and whether that is the rank itself.
    fn root(&self, at: usize, operation: &OpenOperation) -> (Option<usize>, bool) {
        let own = self.job.rank(at).rank;
        let root = operation.peer_world.and_then(|number| self.job.find(own.neighbor(number)));
        (root, root == Some(at))
    }

    /// Data go from rank to rank, so that somebody who has not come may be in the way, or nobody.
    fn add_tree(
        &mut self,
        meeting: usize,
        need: impl Fn(Target, bool) -> WaitNeed,
        needs: &mut Vec<WaitNeed>,
    ) {
        let junction = self.junction(meeting, true);
        needs.push(need(Target::Junction(junction), false));
        needs.push(need(Target::Free, false));
    }

    fn all_of(&mut self, meeting: usize) -> Target {
        Target::Junction(self.junction(meeting, false))
    }

    fn junction(&mut self, number: usize, is_any: bool) -> usize {
        let meeting = &self.collectives.meetings[number];
        let junctions = &mut self.graph.junctions;
        *self.of_meetings.entry((number, is_any)).or_insert_with(|| {
            let (over, others) = (meeting.missing.clone(), meeting.unseen);
            let never = !is_any && !meeting.elsewhere.is_empty();
            junctions.push(Junction { is_any, over, others, never });
            junctions.len() - 1
        })
    }

    fn crowd(&mut self, world: i64, communicator: Option<u32>) -> usize {
        let (job, junctions) = (self.job, &mut self.graph.junctions);
        *self.crowds.entry((world, communicator)).or_insert_with(|| {
            junctions.push(crowd(job, world, communicator));
            junctions.len() - 1
        })
    }

    fn other(&mut self, place: OpenAt, operation: &OpenOperation) -> WaitNeed {
        let call = self.job.told_by(operation);
        let world = self.job.rank(place.0).rank.world;
        let name = call.name.as_str();
        let need = |target, reason| Need { target, is_sure: false, why: Why { reason, place } };
        let ends_group = [
            "MPI_Comm_free",
            "MPI_Comm_disconnect",
            "MPI_Win_free",
            "MPI_File_close",
            "MPI_Intercomm_create",
        ];
        if ends_group.contains(&name) {
            return need(Target::Junction(self.crowd(world, None)), Reason::Group);
        }
        if call.family != "WINDOW" {
            return need(Target::Free, Reason::Nothing);
        }
        let holders = self.locks.holders(self.job, place.0, operation);
        if !holders.is_empty() {
            let all = Junction { is_any: false, over: holders, others: 0, never: false };
            self.graph.junctions.push(all);
            return need(Target::Junction(self.graph.junctions.len() - 1), Reason::Lock);
        }
        match self.peer(place.0, operation) {
            Some(peer) if !self.job.is_inside(peer) => need(Target::Rank(peer), Reason::Progress),
            _ => need(Target::Junction(self.crowd(world, operation.communicator)), Reason::Group),
        }
    }
}

/// Any member of a communicator, or of a world.
fn crowd(job: &Job<'_>, world: i64, communicator: Option<u32>) -> Junction {
    let members = communicator.and_then(|it| job.members(it));
    let (over, size): (Vec<usize>, usize) = match members {
        Some(members) => {
            let found = members.iter().filter_map(|&number| job.find(Rank { world, number }));
            (found.collect(), members.len())
        }
        None => {
            let of_world: Vec<usize> =
                (0..job.ranks().len()).filter(|&at| job.rank(at).rank.world == world).collect();
            let size = of_world.first().map_or(0, |&at| job.rank(at).world_size.max(0) as usize);
            (of_world, size)
        }
    };
    let others = size.saturating_sub(over.len()) + usize::from(communicator.is_some() && size == 0);
    Junction { is_any: true, over, others, never: false }
}
