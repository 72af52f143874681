//! Runs made in memory, for tests: what ranks do one after the other, at call sites that are lines.

use std::sync::Arc;

use super::collective::{Collective, CollectiveMembers, CommunicatorCollectives};
use super::endpoint::{Call, Endpoint, OtherCall, Span, NONE};
use super::injected::page::Page;
use super::operation::{Direction, Operation, RequestEnd};
use super::target::Awaited;
use super::{RankTrace, Trace};
use lapscope_data::model::{
    Bytes, CallName, Ended, Kind, Mode, Nanos, Needs, Rank, RankInfo, RankKey,
};
use lapscope_data::places::{Places, SiteId};

const COLLECTIVES: [(&str, Needs); 3] =
    [("MPI_Barrier", Needs::All), ("MPI_Bcast", Needs::Root), ("MPI_Reduce", Needs::AllAtRoot)];

/// A run under way. Each call is made when the one before it has ended and the computation behind that; durations, nanoseconds,
/// are what is recorded of it, and what a replay takes it to cost without waiting. One thread a rank.
pub struct MadeUp {
    ranks: Vec<RankTrace>,
    sites: Vec<(CallName, u64)>,
    collectives: Vec<Collective>,
    groups: Vec<CommunicatorCollectives>,
    awaited_targets: Vec<Awaited>,
}

/// What one of four ranks wrote down about the injection that it chose by itself: whether tests every millisecond are
/// `in_force` (1) or not (0), and what they gain, as a share of its time.
///
/// # Panics
/// Never: it is a page.
pub fn page(rank: i64, in_force: usize, share: f64) -> Page {
    let gain = format!(
        "{{\"share\":{share},\"low\":{},\"high\":{},\"rounds\":9}}",
        share - 0.1,
        share + 0.1
    );
    let arm = |mode: &str, interval: &str| {
        format!(
            "{{\"mode\":\"{mode}\",\"interval_us\":{interval},\"slots\":5,\"steps\":20,\"step_ns\":10000000,\"problem\":null}}"
        )
    };
    let text = format!(
        "{{\"version\":1,\"rank\":{rank},\"ranks\":4,\"world\":1,\"host\":\"h\",\"job\":\"j\",\"command\":\"./a\",\
         \"began_unix\":1.5,\"seconds\":10.0,\"ended\":true,\"arms\":[{},{}],\"decided\":1,\
         \"decisions\":[{{\"at\":2.5,\"what\":\"keep\",\"arm\":1,\"gain\":{gain}}}],\"in_force\":{in_force},\
         \"gain\":{gain},\"spent_ns\":100000000,\"lost_ns\":0,\"tests\":3,\"found\":2,\"interrupts\":3,\
         \"sites\":[{{\"call\":\"MPI_Isend\",\"path\":[\"a+0x1 -\"],\"bytes\":9,\"on\":{},\"tests\":3,\"found\":2}}]}}",
        arm("off", "null"),
        arm("timer", "1000"),
        rank != 2
    );
    Page::parse(&text).expect("a page")
}

/// A rank of which nothing is known but its number.
pub(super) fn info(rank: usize) -> RankInfo {
    RankInfo {
        key: RankKey(rank as i64),
        rank: Rank::of_first_world(rank as i64),
        life: 1,
        gone: None,
        world_size: 0,
        host: "node".into(),
        pid: 1,
        command: String::new(),
        executable: String::new(),
        mpi_abi: String::new(),
        mpi_library: String::new(),
        mpi_standard: String::new(),
        thread_level: 0,
        lapscope_version: String::new(),
        job: String::new(),
        epoch_unix_ns: 0,
        init_end: Nanos(0),
        end: Nanos(0),
        ended: Ended::Finalize,
        lost_records: 0,
        damaged_pieces: 0,
        lost_marks: 0,
        cut_paths: 0,
        processor: None,
        copied_sends: None,
        accelerator: None,
        device_buffers: None,
        cuda_unused: false,
        cuda_injection: None,
        device_recorder: None,
        unknown_requests: 0,
        summarized: None,
        spawned: 0,
    }
}

impl MadeUp {
    /// So many ranks on one node, all out of MPI_Init at 0.
    pub fn new(ranks: usize) -> MadeUp {
        let rank = |rank| RankTrace { info: Some(info(rank).into()), ..RankTrace::default() };
        MadeUp {
            ranks: (0..ranks).map(rank).collect(),
            sites: Vec::new(),
            collectives: Vec::new(),
            groups: Vec::new(),
            awaited_targets: Vec::new(),
        }
    }

    /// Lets a rank return from MPI_Init so much later.
    pub fn starts(&mut self, rank: usize, at: i64) {
        (self.ranks[rank].init_end, self.ranks[rank].end) = (at, at);
    }

    /// How a rank ended, and such.
    pub fn info(&mut self, rank: usize) -> &mut RankInfo {
        self.ranks[rank].info_mut()
    }

    pub fn compute(&mut self, rank: usize, ns: i64) {
        self.ranks[rank].end += ns;
    }

    /// A call that has its recorded duration.
    pub fn other(&mut self, rank: usize, line: u64, ns: i64) {
        let operation = self.operation(rank, "MPI_Comm_dup", line, Direction::None);
        let trace = &mut self.ranks[rank];
        trace.other_calls.push(OtherCall { begin: trace.end, duration: ns, operation, thread: 0 });
        trace.other_counts.resize(operation as usize, 0);
        trace.other_counts.push(1);
        trace.end += ns;
    }

    /// MPI_Send.
    pub fn send(&mut self, rank: usize, line: u64, to: usize, bytes: u64, ns: i64) {
        let operation = self.message(rank, "MPI_Send", line, (Direction::Send, to), bytes);
        self.blocking(rank, operation, ns);
    }

    /// MPI_Recv, recorded as one that did not wait; a rank has to compute behind it, or its record ends before it.
    pub fn receive(&mut self, rank: usize, line: u64, from: usize, bytes: u64) {
        let operation = self.message(rank, "MPI_Recv", line, (Direction::Receive, from), bytes);
        self.blocking(rank, operation, 0);
    }

    /// MPI_Recv, which returns at a moment.
    pub fn receive_until(&mut self, rank: usize, line: u64, from: usize, bytes: u64, until: i64) {
        let operation = self.message(rank, "MPI_Recv", line, (Direction::Receive, from), bytes);
        let ns = until - self.ranks[rank].end;
        self.blocking(rank, operation, ns);
    }

    /// Where a rank is.
    pub fn now(&self, rank: usize) -> i64 {
        self.ranks[rank].end
    }

    /// MPI_Isend; the request.
    pub fn isend(&mut self, rank: usize, line: u64, to: usize, bytes: u64, ns: i64) -> u32 {
        let operation = self.message(rank, "MPI_Isend", line, (Direction::Send, to), bytes);
        self.post(rank, operation, ns)
    }

    /// MPI_Irecv; the request.
    pub fn ireceive(&mut self, rank: usize, line: u64, from: usize, bytes: u64, ns: i64) -> u32 {
        let operation = self.message(rank, "MPI_Irecv", line, (Direction::Receive, from), bytes);
        self.post(rank, operation, ns)
    }

    /// MPI_Waitall.
    pub fn wait(&mut self, rank: usize, line: u64, requests: &[u32]) {
        let operation = self.operation(rank, "MPI_Waitall", line, Direction::None);
        let call = self.call(rank, operation, 0);
        let trace = &mut self.ranks[rank];
        let Call { begin, duration, operation, .. } = trace.calls[call as usize];
        let completed = requests.len() as u32;
        trace.calls[call as usize] = Call::new(begin, Some(duration), operation, completed);
        for &request in requests {
            trace.endpoints[request as usize].call = call;
        }
    }

    /// MPI_Win_unlock or MPI_Win_wait, which took `rest` from when another rank was inside MPI.
    pub fn one_sided(&mut self, rank: usize, line: u64, awaited: Awaited, ns: i64) {
        let operation = self.operation(rank, "MPI_Win_unlock", line, Direction::None);
        self.ranks[rank].operations[operation as usize].kind = Kind::Rma;
        let endpoint = self.blocking(rank, operation, ns);
        self.ranks[rank].endpoints[endpoint as usize].partner = self.awaited_targets.len() as u32;
        self.awaited_targets.push(awaited);
    }

    /// MPI_Barrier, MPI_Bcast or MPI_Reduce of all ranks, each at its own time; all leave `ns` after the last.
    pub fn collective(&mut self, name: &'static str, line: u64, root: usize, ns: i64) {
        let kind = COLLECTIVES.iter().position(|known| known.0 == name).expect("one of these");
        let last = (0..self.ranks.len()).max_by_key(|&rank| self.ranks[rank].end).unwrap_or(0);
        let last_begin = self.ranks[last].end;
        let collective = Collective {
            blocking_call: kind as u32,
            members: self.ranks.len() as u32,
            comm_size: self.ranks.len() as u32,
            last_begin,
            last_rank: last as u32,
            root: (kind > 0).then_some(root as u32),
            root_begin: (kind > 0).then(|| self.ranks[root].end),
            agrees: true,
        };
        let mut members = Vec::new();
        for rank in 0..self.ranks.len() {
            let operation = self.operation(rank, name, line, Direction::Collective);
            let row = &mut self.ranks[rank].operations[operation as usize];
            (row.blocking_call, row.kind, row.comm_size) =
                (kind as u32, Kind::Collective, collective.comm_size);
            row.peer = collective.root;
            let takes = last_begin + ns - self.ranks[rank].end;
            let endpoint = self.blocking(rank, operation, takes);
            self.ranks[rank].endpoints[endpoint as usize].partner = self.collectives.len() as u32;
            members.push((rank as u32, vec![endpoint]));
        }
        match self.groups.first_mut() {
            Some(all) => {
                all.count += 1;
                for ((_, endpoints), (_, own)) in all.members.iter_mut().zip(members) {
                    endpoints.extend(own);
                }
            }
            None => {
                let key = (0, 0, 0);
                self.groups.push(CommunicatorCollectives { key, first: 0, count: 1, members });
            }
        }
        self.collectives.push(collective);
    }

    /// The run, its messages matched in the order of their posts.
    pub fn finish(mut self) -> Trace {
        self.pair();
        let (places, sites) = Places::in_memory(&self.sites);
        for rank in &mut self.ranks {
            // until now they are numbers of calls at lines
            for operation in &mut rank.operations {
                operation.site = sites[operation.lane as usize];
                operation.lane = NONE;
            }
        }
        let name = |(name, needs): (&str, Needs)| CallName {
            needs: Some(needs),
            ..CallName::unknown(name.into())
        };
        Trace {
            ranks: self.ranks,
            places: Arc::new(places),
            blocking_calls: COLLECTIVES.map(name).to_vec(),
            collectives: self.collectives,
            members: CollectiveMembers::new(self.groups),
            awaited_targets: self.awaited_targets,
            ..Trace::default()
        }
    }

    /// The k-th send from one rank to another is received by the k-th receive.
    fn pair(&mut self) {
        for sender in 0..self.ranks.len() {
            for receiver in 0..self.ranks.len() {
                let sends = self.between(sender, Direction::Send, receiver);
                let receives = self.between(receiver, Direction::Receive, sender);
                for (send, receive) in sends.into_iter().zip(receives) {
                    self.ranks[sender].endpoints[send as usize].partner = receive;
                    self.ranks[receiver].endpoints[receive as usize].partner = send;
                }
            }
        }
    }

    fn between(&self, rank: usize, way: Direction, peer: usize) -> Vec<u32> {
        let trace = &self.ranks[rank];
        let is_one = |&index: &u32| {
            let row = &trace.endpoints[index as usize];
            let operation = &trace.operations[row.operation as usize];
            operation.direction == way && operation.peer == Some(peer as u32)
        };
        (0..trace.endpoints.len() as u32).filter(is_one).collect()
    }

    fn operation(&mut self, rank: usize, name: &str, line: u64, way: Direction) -> u32 {
        let site = (CallName::unknown(name.into()), line);
        let place = self.sites.iter().position(|known| *known == site).unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        });
        let operation = Operation {
            site: SiteId::default(),
            path: None,
            blocking_call: 0,
            kind: Kind::Send,
            direction: way,
            mode: Mode::Standard,
            is_request: false,
            is_second_half: false,
            bytes: Bytes(0),
            peer: None,
            tag: None,
            lane: place as u32,
            is_wildcard: false,
            is_untraceable: false,
            comm: NONE,
            comm_size: 0,
            ended: RequestEnd::Completed,
            is_tested: false,
        };
        let operations = &mut self.ranks[rank].operations;
        operations.push(operation);
        operations.len() as u32 - 1
    }

    fn message(
        &mut self,
        rank: usize,
        name: &str,
        line: u64,
        (way, peer): (Direction, usize),
        bytes: u64,
    ) -> u32 {
        let operation = self.operation(rank, name, line, way);
        let row = &mut self.ranks[rank].operations[operation as usize];
        (row.peer, row.bytes, row.tag) = (Some(peer as u32), Bytes(bytes), Some(0));
        row.kind = if way == Direction::Send { Kind::Send } else { Kind::Recv };
        operation
    }

    fn call(&mut self, rank: usize, operation: u32, ns: i64) -> u32 {
        let trace = &mut self.ranks[rank];
        trace.calls.push(Call::new(trace.end, Some(ns), operation, 1));
        trace.end += ns;
        trace.calls.len() as u32 - 1
    }

    fn endpoint(&mut self, rank: usize, operation: u32, begin: i64, post: i64) -> u32 {
        let endpoints = &mut self.ranks[rank].endpoints;
        endpoints.push(Endpoint {
            begin,
            post: Span::new(post),
            window: Span::new(0),
            mpi: Span::new(0),
            outstanding: Span::new(0),
            operation,
            call: NONE,
            partner: NONE,
            observed: NONE,
        });
        endpoints.len() as u32 - 1
    }

    fn post(&mut self, rank: usize, operation: u32, ns: i64) -> u32 {
        self.ranks[rank].operations[operation as usize].is_request = true;
        let begin = self.ranks[rank].end;
        self.ranks[rank].end += ns;
        self.endpoint(rank, operation, begin, ns)
    }

    fn blocking(&mut self, rank: usize, operation: u32, ns: i64) -> u32 {
        let begin = self.ranks[rank].end;
        let call = self.call(rank, operation, ns);
        let endpoint = self.endpoint(rank, operation, begin, 0);
        self.ranks[rank].endpoints[endpoint as usize].call = call;
        endpoint
    }
}
