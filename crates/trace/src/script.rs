//! Runs made in memory of what each thread calls, for replays of what nobody has recorded. Recorded times are those of a machine
//! on which nobody waits: only what lies between the calls of a thread means anything.

use std::collections::HashMap;

use super::collective::{CollectiveMembers, CommunicatorCollectives};
use super::endpoint::{Call, Endpoint, Observation, OtherCall, Span, NONE};
use super::operation::{Direction, Operation, RequestEnd};
use super::presence::Presence;
use super::{Collective, RankTrace, Trace};
use lapscope_data::model::{Bytes, CallName, Kind, Mode, Needs};
use lapscope_data::places::SiteId;

/// What a call takes for each request that it posts or completes, unless the script says otherwise, nanoseconds.
pub const CALL: i64 = 100;

/// A message as one of its ends sees it.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub peer: usize,
    pub tag: i64,
    pub bytes: u64,
    pub mode: Mode,
    pub is_wildcard: bool,
    pub site: SiteId,
}

impl Message {
    pub fn new(peer: usize, tag: i64, bytes: u64) -> Message {
        let (mode, site) = (Mode::Standard, SiteId::default());
        Message { peer, tag, bytes, mode, is_wildcard: false, site }
    }
}

/// What a thread does next. Requests are numbered by thread in the order of their posts.
#[derive(Debug, Clone)]
pub enum Act {
    /// Nanoseconds.
    Compute(i64),
    Isend(Message),
    Irecv(Message),
    Send(Message),
    Recv(Message),
    /// Both at once: what is sent and what is received.
    Sendrecv(Message, Message),
    Wait(Vec<usize>),
    /// Tests until all are complete.
    TestLoop(Vec<usize>),
    /// Tests once, and finds them complete.
    Test(Vec<usize>),
    /// A call of all ranks, by whom they need, with the root where there is one.
    Collective(Needs, usize),
    Icollective(Needs, usize),
    /// A call that communicates nothing.
    Other(i64),
}

/// What all threads of all ranks do.
#[derive(Debug, Clone)]
pub struct Script {
    /// By rank and thread.
    pub acts: Vec<Vec<Vec<Act>>>,
    /// The node of each rank.
    pub nodes: Vec<u32>,
    /// What the calls of each rank take for each request that they post or complete, nanoseconds.
    pub calls: Vec<i64>,
}

/// A rank on its way to being a trace.
#[derive(Default)]
struct RankWriter {
    trace: RankTrace,
    of_calls: Vec<u16>,
    of_endpoints: Vec<u16>,
    clock: i64,
    /// What a call takes for each request.
    of_request: i64,
    thread: u16,
    /// Endpoints of the thread's requests.
    requests: Vec<usize>,
}

impl Script {
    pub fn new(ranks: usize) -> Script {
        Script {
            acts: vec![vec![Vec::new()]; ranks],
            nodes: vec![0; ranks],
            calls: vec![CALL; ranks],
        }
    }

    /// Adds to what the first thread of a rank does.
    pub fn act(&mut self, rank: usize, act: Act) -> &mut Script {
        self.acts[rank][0].push(act);
        self
    }

    /// # Panics
    /// Of a message only one end is there.
    pub fn trace(&self) -> Trace {
        let written = self.acts.iter().zip(&self.calls);
        let mut ranks: Vec<RankTrace> =
            written.map(|(acts, &of_request)| RankWriter::write(acts, of_request)).collect();
        for (rank, &node) in ranks.iter_mut().zip(&self.nodes) {
            rank.node = node;
        }
        pair(&mut ranks);
        let (collectives, group) = assemble(&mut ranks);
        let name = |name: &str, needs| CallName {
            role: "BLOCK".into(),
            needs,
            ..CallName::unknown(name.into())
        };
        let mut blocking_calls = vec![name("MPI_Send", None)];
        blocking_calls.extend(KINDS.map(|needs| name("MPI_Collective", Some(needs))));
        let members = CollectiveMembers::new(vec![group]);
        Trace { ranks, blocking_calls, collectives, members, ..Trace::default() }
    }
}

const KINDS: [Needs; 3] = [Needs::All, Needs::Root, Needs::AllAtRoot];

/// Number of [`Trace::blocking_calls`].
fn blocking_call(needs: Needs) -> u32 {
    1 + KINDS.iter().position(|&kind| kind == needs).expect("one of the three") as u32
}

impl RankWriter {
    fn write(threads: &[Vec<Act>], of_request: i64) -> RankTrace {
        let mut writer = RankWriter { of_request, ..RankWriter::default() };
        let mut end = 0;
        for (thread, acts) in (0..).zip(threads) {
            (writer.thread, writer.clock) = (thread, 0);
            writer.requests.clear();
            acts.iter().for_each(|act| writer.act(act));
            end = end.max(writer.clock);
        }
        writer.finish(threads.len(), end + of_request)
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Compute(ns) => self.clock += ns,
            Act::Isend(message) => self.post(of_message(message, Direction::Send, true)),
            Act::Irecv(message) => self.post(of_message(message, Direction::Receive, true)),
            Act::Icollective(needs, root) => self.post(of_collective(*needs, *root, true)),
            Act::Send(message) => self.block(&[of_message(message, Direction::Send, false)]),
            Act::Recv(message) => self.block(&[of_message(message, Direction::Receive, false)]),
            Act::Sendrecv(sent, received) => {
                let second = of_message(received, Direction::Receive, false);
                let second = Operation { is_second_half: true, ..second };
                self.block(&[of_message(sent, Direction::Send, false), second]);
            }
            Act::Collective(needs, root) => self.block(&[of_collective(*needs, *root, false)]),
            Act::Wait(requests) => self.complete(requests),
            Act::TestLoop(requests) => self.test_loop(requests),
            Act::Test(requests) => self.test(requests),
            Act::Other(ns) => {
                let (begin, thread) = (self.clock, self.thread);
                let call = OtherCall { begin, duration: *ns, operation: 0, thread };
                self.trace.other_calls.push(call);
                self.clock += ns;
            }
        }
    }

    fn endpoint(&mut self, operation: Operation, post: i64) -> usize {
        let index = self.trace.operations.len() as u32;
        self.trace.operations.push(operation);
        self.of_endpoints.push(self.thread);
        self.trace.endpoints.push(Endpoint {
            begin: self.clock,
            post: Span::new(post),
            window: Span::NONE,
            mpi: Span::new(0),
            outstanding: Span::new(0),
            operation: index,
            call: NONE,
            partner: NONE,
            observed: NONE,
        });
        index as usize
    }

    fn call(&mut self, completed: usize, operation: u32) -> u32 {
        let (begin, duration) = (self.clock, self.of_request * completed.max(1) as i64);
        let completed = completed as u32;
        self.trace.calls.push(Call::new(begin, Some(duration), operation, completed));
        self.of_calls.push(self.thread);
        self.clock += duration;
        self.trace.calls.len() as u32 - 1
    }

    fn post(&mut self, operation: Operation) {
        let endpoint = self.endpoint(operation, self.of_request);
        self.requests.push(endpoint);
        self.clock += self.of_request;
    }

    fn block(&mut self, operations: &[Operation]) {
        let endpoints: Vec<usize> =
            operations.iter().map(|&operation| self.endpoint(operation, 0)).collect();
        let call = self.call(1, endpoints[0] as u32);
        for endpoint in endpoints {
            let endpoint = &mut self.trace.endpoints[endpoint];
            (endpoint.call, endpoint.window) = (call, Span::new(0));
        }
    }

    fn complete(&mut self, requests: &[usize]) {
        let call = self.call(requests.len(), 0);
        for &request in requests {
            let endpoint = &mut self.trace.endpoints[self.requests[request]];
            let begin = self.trace.calls[call as usize].begin;
            endpoint.call = call;
            endpoint.window = Span::new(begin - endpoint.begin - endpoint.post.or_zero());
        }
    }

    fn test(&mut self, requests: &[usize]) {
        self.complete(requests);
        for &request in requests {
            let endpoint = &self.trace.endpoints[self.requests[request]];
            self.trace.operations[endpoint.operation as usize].is_tested = true;
        }
    }

    /// A thousand nanoseconds with two tests that find nothing, and one that ends it.
    fn test_loop(&mut self, requests: &[usize]) {
        let tests = [self.clock, self.clock + 500];
        self.clock += 1_000;
        self.test(requests);
        for &request in requests {
            let endpoint = &mut self.trace.endpoints[self.requests[request]];
            endpoint.observed = self.trace.observations.len() as u32;
            let [first, last] = tests.map(|test| Some(test - endpoint.begin));
            self.trace.observations.push(Observation {
                unsuccessful_tests: 2,
                first_unsuccessful_test: first,
                last_unsuccessful_test: last,
                last_incomplete: last,
                first_complete: None,
                memory: None,
            });
        }
    }

    fn finish(mut self, threads: usize, end: i64) -> RankTrace {
        let mut order: Vec<usize> = (0..self.trace.endpoints.len()).collect();
        order.sort_by_key(|&endpoint| self.trace.endpoints[endpoint].call);
        let all = std::mem::take(&mut self.trace.endpoints);
        self.trace.endpoints = order.iter().map(|&endpoint| all[endpoint]).collect();
        for thread in 0..threads as i64 {
            self.trace.threads.number(thread);
        }
        self.of_calls.iter().for_each(|&it| self.trace.threads.add_call(i64::from(it)));
        for &endpoint in &order {
            self.trace.threads.add_endpoint(i64::from(self.of_endpoints[endpoint]));
        }
        let calls = self.trace.calls.iter().map(|call| (call.begin, call.begin + call.duration));
        self.trace.presence = Presence::new(calls.collect());
        self.trace.end = end;
        self.trace
    }
}

fn of_message(message: &Message, direction: Direction, is_request: bool) -> Operation {
    Operation {
        site: message.site,
        path: None,
        blocking_call: 0,
        kind: if direction == Direction::Send { Kind::Send } else { Kind::Recv },
        direction,
        mode: message.mode,
        is_request,
        is_second_half: false,
        bytes: Bytes(message.bytes),
        peer: Some(message.peer as u32),
        tag: Some(message.tag),
        lane: NONE,
        is_wildcard: message.is_wildcard,
        is_untraceable: false,
        comm: NONE,
        comm_size: 0,
        ended: RequestEnd::Completed,
        is_tested: false,
    }
}

fn of_collective(needs: Needs, root: usize, is_request: bool) -> Operation {
    let operation = of_message(&Message::new(root, 0, 8), Direction::Collective, is_request);
    let peer = operation.peer.filter(|_| needs != Needs::All);
    let blocking_call = blocking_call(needs);
    Operation { kind: Kind::Collective, blocking_call, peer, tag: None, ..operation }
}

/// Endpoints of a rank by when they were posted, a first half before its second.
fn by_post(rank: &RankTrace) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank.endpoints.len()).collect();
    order.sort_by_key(|&index| (rank.endpoints[index].begin, rank.endpoints[index].operation));
    order
}

/// The k-th send of a tag from one rank to another goes to the k-th receive.
fn pair(ranks: &mut [RankTrace]) {
    let mut lanes: HashMap<(u32, u32, i64), [Vec<usize>; 2]> = HashMap::new();
    for (rank, of_rank) in (0..).zip(ranks.iter()) {
        for index in by_post(of_rank) {
            let operation = &of_rank.operations[of_rank.endpoints[index].operation as usize];
            let (Some(peer), Some(tag)) = (operation.peer, operation.tag) else { continue };
            let (key, side) = match operation.direction {
                Direction::Send => ((rank, peer, tag), 0),
                _ => ((peer, rank, tag), 1),
            };
            lanes.entry(key).or_default()[side].push(index);
        }
    }
    for ((from, to, _), [sends, receives]) in lanes {
        assert_eq!(sends.len(), receives.len(), "a script has both ends of each message");
        for (send, receive) in sends.into_iter().zip(receives) {
            ranks[from as usize].endpoints[send].partner = receive as u32;
            ranks[to as usize].endpoints[receive].partner = send as u32;
        }
    }
}

/// The k-th collectives of all ranks are one.
fn assemble(ranks: &mut [RankTrace]) -> (Vec<Collective>, CommunicatorCollectives) {
    let comm_size = ranks.len() as u32;
    let mut collectives: Vec<Collective> = Vec::new();
    let mut members = Vec::new();
    for (number, rank) in (0..).zip(ranks.iter_mut()) {
        let mut own = Vec::new();
        for index in by_post(rank) {
            let endpoint = &mut rank.endpoints[index];
            let operation = &mut rank.operations[endpoint.operation as usize];
            if operation.direction != Direction::Collective {
                continue;
            }
            (operation.comm_size, endpoint.partner) = (comm_size, own.len() as u32);
            if number == 0 {
                collectives.push(Collective {
                    blocking_call: operation.blocking_call,
                    members: comm_size,
                    comm_size,
                    last_begin: endpoint.begin,
                    last_rank: 0,
                    root: operation.peer,
                    root_begin: operation.peer.map(|_| endpoint.begin),
                    agrees: true,
                });
            }
            own.push(index as u32);
        }
        members.push((number, own));
    }
    let count = collectives.len() as u32;
    (collectives, CommunicatorCollectives { key: (0, 0, 0), first: 0, count, members })
}
