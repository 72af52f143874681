//! Goes through the requests of one rank, completing call by completing call.

mod beside;
mod loops;
mod message_waits;
mod polled;

use rustc_hash::FxHashMap;

use super::cells::{Blame, CulpritKey, Moment, OverlapCell, OverlapCellKey, RankOverlaps, Slices};
use super::exposure::{part, Exposure, ExposureBounds};
use super::later::Later;
use super::request::{Achieved, Life};
use super::side::{Culprit, OtherSide, Sides};
use super::sums::{BlockingSums, Sums};
use super::together::{limit_achieved, CommonWindow, EndedRequest, EndedTogether};
use super::waited::WaitingCall;
use super::witness::{Awaited, Waited, Witness};
use crate::reference::{Estimate, Reference};
use lapscope_data::model::Mode;
use lapscope_trace::{
    BusySums, Call, Direction, Half, Locality, Operation, RequestEnd, Trace, NONE,
};

/// Where an operation's requests are summed, and how long they take with nothing in between.
#[derive(Debug, Clone, Copy)]
struct OperationCell {
    cell: u32,
    transfer: Option<Estimate>,
}

pub(super) struct Walk<'a, W> {
    witness: W,
    trace: &'a Trace,
    rank: usize,
    sides: Sides<'a>,
    /// When the rank was inside MPI and a GPU of it computed.
    beside_calls: BusySums,
    places: Vec<OperationCell>,
    slices: Slices,
    found: RankOverlaps,
    later: Later<'a>,
    /// Requests of the call that is being looked at.
    requests: Vec<EndedRequest>,
    common: CommonWindow,
    /// Tests until then belong to a loop that was looked at.
    polled_until: i64,
    /// Likewise loops, whether or not they waited.
    looped_until: i64,
    /// See [`beside`].
    begins: Vec<i64>,
}

impl<'a, W: Witness> Walk<'a, W> {
    pub fn new(
        trace: &'a Trace,
        rank: usize,
        reference: &Reference,
        sides: Sides<'a>,
        slices: Slices,
        witness: W,
    ) -> Walk<'a, W> {
        let mut found = RankOverlaps {
            slices: vec![OverlapCell::default(); slices.count],
            slots: vec![OverlapCell::default(); trace.ranks[rank].detail.len()],
            ..RankOverlaps::default()
        };
        let mut cells: FxHashMap<OverlapCellKey, u32> = FxHashMap::default();
        let mut place = |operation: &Operation| {
            let key = key_of(trace, rank, operation);
            let cell = *cells.entry(key).or_insert_with(|| {
                found.cells.push((key, OverlapCell::default()));
                (found.cells.len() - 1) as u32
            });
            OperationCell { cell, transfer: reference_time(trace, rank, reference, operation) }
        };
        let places = trace.ranks[rank].operations.iter().map(&mut place).collect();
        let later = Later::new(&trace.ranks[rank]);
        Walk {
            witness,
            trace,
            rank,
            sides,
            beside_calls: trace.ranks[rank].computed_in_calls(),
            places,
            slices,
            found,
            later,
            requests: Vec::new(),
            common: CommonWindow::default(),
            polled_until: i64::MIN,
            looped_until: i64::MIN,
            begins: beside::begins(&trace.ranks[rank]),
        }
    }

    /// Every endpoint once; `progress` is told now and then how many more were looked at.
    pub fn run(mut self, progress: &(dyn Fn(u64) + Sync)) -> (RankOverlaps, W) {
        const EVERY: usize = 1 << 16;
        let rank = &self.trace.ranks[self.rank];
        let call_of = |index: u32| rank.endpoints[index as usize].call;
        // Files have requests in the order of the calls that completed them, unless somebody edited them.
        let mut order: Vec<u32> = Vec::new();
        let calls =
            rank.endpoints.iter().map(|endpoint| endpoint.call).filter(|&call| call != NONE);
        let is_ordered = calls.clone().zip(calls.skip(1)).all(|(a, b)| a <= b);
        if !is_ordered {
            order = (0..rank.endpoints.len() as u32).collect();
            order.sort_by_key(|&index| call_of(index));
        }
        let at = |place: usize| order.get(place).copied().unwrap_or(place as u32);
        let mut members: Vec<u32> = Vec::new();
        let mut told = 0;
        for place in 0..rank.endpoints.len() {
            let index = at(place);
            if !self.trace.is_endpoint_counted(self.rank, index as usize) {
                continue;
            }
            let call = call_of(index);
            if call == NONE {
                self.add_pending(index as usize);
                continue;
            }
            if !self.witness.looks_at(rank.calls[call as usize].begin) {
                continue;
            }
            if members.first().is_some_and(|&first| call_of(first) != call) {
                self.add_call(&members);
                members.clear();
                if place - told >= EVERY {
                    progress((place - told) as u64);
                    told = place;
                }
            }
            members.push(index);
        }
        if !members.is_empty() {
            self.add_call(&members);
        }
        self.add_message_waits();
        let is_counted = |call: &&Call| self.trace.is_counted(self.rank, call.begin);
        let completing = rank.calls.iter().filter(|call| call.completed() > 0 && call.returned());
        let completing = completing.filter(is_counted);
        let all: i64 = completing.map(|call| call.duration).fold(0, i64::saturating_add);
        let attributed: i64 = self
            .found
            .cells
            .iter()
            .map(|(_, cell)| cell.requests.exposed)
            .map(|exposed| exposed.total().saturating_add(exposed.beside_gpu))
            .fold(0, i64::saturating_add);
        self.found.unattributed = all - attributed;
        (self.found, self.witness)
    }

    fn add_pending(&mut self, index: usize) {
        let half = self.trace.half(self.rank, index);
        let sums = self.counted(&half);
        let cell = self.places[self.operation_of(index)].cell;
        self.found.cells[cell as usize].1.requests += &sums;
        let moment = self.moment(half.post_begin);
        self.found.add(moment, |cell| cell.requests += &sums);
    }

    /// What ended behind a slot counts there: it was posted in it.
    fn moment(&self, moment: i64) -> Moment {
        let detail = &self.trace.ranks[self.rank].detail;
        let behind = detail.partition_point(|slot| slot.begin <= moment);
        let slot = (!detail.is_empty()).then(|| behind.saturating_sub(1));
        Moment { slice: self.slices.slice_at(moment), slot }
    }

    fn operation_of(&self, index: usize) -> usize {
        self.trace.ranks[self.rank].endpoints[index].operation as usize
    }

    /// All halves that one call completed, or that one blocking call is.
    fn add_call(&mut self, members: &[u32]) {
        let endpoints = &self.trace.ranks[self.rank].endpoints;
        let first = &endpoints[members[0] as usize];
        let operation = &self.trace.ranks[self.rank].operations[first.operation as usize];
        if operation.is_request {
            self.add_completing_call(members);
        } else {
            self.add_blocking_call(members);
        }
    }

    fn add_completing_call(&mut self, members: &[u32]) {
        let endpoints = &self.trace.ranks[self.rank].endpoints;
        let call_index = endpoints[members[0] as usize].call;
        let call = self.trace.ranks[self.rank].calls[call_index as usize];
        self.add_polled(members, call);
        self.add_loop(members, call);
        let moment = self.moment(call.begin);
        let end = call.begin + if call.returned() { call.duration } else { 0 };
        let mut group = WaitingCall::new(call.begin, end);
        let mut requests = std::mem::take(&mut self.requests);
        let beside = self.trace.ranks[self.rank].devices.computed_within(call.begin, end);
        let mut ended = EndedTogether {
            begin: call.begin,
            end: call.begin,
            completion: end - call.begin - beside,
            compute: 0,
            beside: 0,
            later_compute: 0,
        };
        for &index in members {
            let half = self.trace.half(self.rank, index as usize);
            let place = self.places[self.operation_of(index as usize)];
            let side = self.sides.other(&half);
            let sums = self.counted(&half);
            let (half, is_loop) = self.before_loop(half);
            let certain = side.as_ref().filter(|side| side.is_certain);
            let ready = certain.map(|side| self.ready_compute(&half, side.posted));
            let ready_beside = certain.map(|side| self.beside_wait(&half, side.posted));
            let later = if is_loop { 0 } else { self.later.compute(&half) };
            let is_known = half.operation.ended == RequestEnd::Completed && call.returned();
            if is_known {
                let with_wait = ready.zip(ready_beside).map(|(ready, beside)| ready + beside);
                let achieved =
                    self.achieved(&half, place.transfer, (with_wait, later), side.as_ref());
                let is_other_side_known = ready.is_some();
                ended.begin = ended.begin.min(half.post_end);
                ended.compute = ended.compute.max(self.compute(&half));
                ended.beside = ended.beside.max(self.beside_wait(&half, i64::MIN));
                ended.later_compute = ended.later_compute.max(later);
                requests.push(EndedRequest {
                    index,
                    cell: place.cell,
                    is_measured: place.transfer.is_some(),
                    is_other_side_known,
                    achieved,
                });
            }
            let cell = &mut self.found.cells[place.cell as usize].1.requests;
            *cell += &sums;
            self.found.add(moment, |cell| cell.requests += &sums);
            let ready = ready.unwrap_or(self.compute(&half)).saturating_add(later);
            group.add(&half, place.transfer, ready);
            if group.is_worth_it() {
                group.offer(self.sides, &half, side);
            }
        }
        let (waited, blamed) = self.lay(group);
        let Waited { exposed, bounds, .. } = waited;
        if !self.is_beside_others(call.begin, end) {
            self.blame(blamed, &exposed);
            self.witness.call(&waited);
        }
        let measured = requests.iter().filter(|request| request.is_measured).count();
        let are_all_measured = measured >= members.len().max(call.completed() as usize);
        if members.len() > 1 && are_all_measured {
            limit_achieved(&mut requests, exposed.no_local_progress + exposed.transfer);
        }
        let rank = &self.trace.ranks[self.rank];
        if !requests.is_empty() && rank.threads.count() == 1 {
            let computed = |begin, end| {
                rank.presence.outside(begin, end) + self.beside_calls.within(begin, end)
            };
            self.common.limit_lost(&mut requests, ended, computed);
        }
        for request in requests.drain(..) {
            if request.is_measured {
                let half = self.trace.half(self.rank, request.index as usize);
                self.witness.request(&half, &request.achieved);
            }
            self.found.cells[request.cell as usize].1.requests.add_ended(&request);
            self.found.add(moment, |cell| cell.requests.add_ended(&request));
        }
        self.requests = requests;
        self.share_out(members, (call.completed(), call.operation), moment, &exposed, &bounds);
    }

    /// Every request gets an equal part of the call that completed it; the requests whose start was not seen too, so
    /// their parts are missing here.
    fn share_out(
        &mut self,
        members: &[u32],
        (completed, by): (u32, u32),
        moment: Moment,
        exposed: &Exposure,
        bounds: &ExposureBounds,
    ) {
        let is_request = |&&index: &&u32| {
            let operation = self.operation_of(index as usize);
            !self.trace.ranks[self.rank].operations[operation].is_second_half
        };
        let known = members.iter().filter(is_request).count() as u64;
        let of = known.max(u64::from(completed));
        let mut number = 0;
        for &index in members {
            let operation = self.operation_of(index as usize);
            if self.trace.ranks[self.rank].operations[operation].is_second_half {
                continue;
            }
            let share = exposed.share(number, of);
            let window = [bounds.least, bounds.most]
                .map(|of_all| part(of_all.no_local_progress, number, of));
            number += 1;
            let cell = self.places[operation].cell;
            self.found.cells[cell as usize].1.requests.add_exposed(share, window);
            self.found.add(moment, |cell| cell.requests.add_exposed(share, window));
            *self.found.completed_in.entry((cell, by)).or_default() += share;
        }
    }

    fn add_blocking_call(&mut self, members: &[u32]) {
        let first = self.trace.half(self.rank, members[0] as usize);
        let begin = first.post_begin;
        let mut group = WaitingCall::new(begin, first.completion_end.unwrap_or(begin));
        let mut sums = BlockingSums { calls: 1, ..BlockingSums::default() };
        for &index in members {
            let half = self.trace.half(self.rank, index as usize);
            let place = self.places[self.operation_of(index as usize)];
            sums.bytes = sums.bytes.saturating_add(half.bytes().0);
            group.add(&half, place.transfer, 0);
            if group.is_worth_it() {
                group.offer(self.sides, &half, self.sides.other(&half));
            }
        }
        if !self.is_beside_others(begin, group.wait.end) {
            let (waited, blamed) = self.lay(group);
            self.blame(blamed, &waited.exposed);
            self.witness.call(&waited);
            sums.exposed = waited.exposed;
        }
        let cell = self.places[self.operation_of(members[0] as usize)].cell;
        self.found.cells[cell as usize].1.blocking += &sums;
        let moment = self.moment(begin);
        self.found.add(moment, |cell| cell.blocking += &sums);
    }

    /// A group's time by cause, and who is to blame.
    fn lay(&self, group: WaitingCall<'a>) -> (Waited<'a>, Option<(u32, Culprit<'a>)>) {
        let (compute, transfer, longest) = (group.compute, group.wait.transfer, group.longest.1);
        let (exposed, bounds, blamed) = group.split(self.sides, self.rank);
        let awaited = match blamed {
            Some((_, (_, Some(partner)))) => Awaited::Partner(partner),
            Some((_, (rank, None))) => Awaited::Member(rank),
            None => Awaited::Unknown,
        };
        let half = blamed.map_or(longest, |(half, _)| half);
        let half = self.trace.half(self.rank, half as usize);
        (Waited { half, at: None, awaited, exposed, bounds, compute, transfer }, blamed)
    }

    fn blame(&mut self, culprit: Option<(u32, Culprit<'a>)>, exposed: &Exposure) {
        let blame = Blame { late: exposed.late_partner, outside: exposed.no_remote_progress };
        if let Some((half, culprit)) = culprit.filter(|_| blame != Blame::default()) {
            let cell = self.places[self.operation_of(half as usize)].cell;
            let key = culprit_key(self.trace, cell, culprit);
            *self.found.culprits.entry(key).or_default() += blame;
        }
    }

    /// Computation in the window of a request, on a processor or, during other calls, on a GPU.
    fn compute(&self, half: &Half<'_>) -> i64 {
        compute(half) + self.beside_window(half)
    }

    /// How long other calls in the window of a request had kernels beside them.
    fn beside_window(&self, half: &Half<'_>) -> i64 {
        let end = half.completion_begin.unwrap_or(half.post_end);
        self.beside_calls.within(half.post_end, end).min(half.mpi.unwrap_or(0))
    }

    /// For how long the call that completed a request had kernels beside it, after that.
    fn beside_wait(&self, half: &Half<'_>, moment: i64) -> i64 {
        let Some((begin, end)) = half.completion_begin.zip(half.completion_end) else { return 0 };
        self.trace.ranks[self.rank].devices.computed_within(begin.max(moment), end)
    }

    /// Computation of the window after the other side had posted.
    fn ready_compute(&self, half: &Half<'_>, posted: i64) -> i64 {
        let all = self.compute(half);
        let Some(end) = half.completion_begin.filter(|_| all > 0) else { return 0 };
        if posted <= half.post_end {
            return all;
        }
        let rank = &self.trace.ranks[self.rank];
        all.min(rank.presence.outside(posted, end) + self.beside_calls.within(posted, end))
    }

    /// What every request counts for. One that sends and receives is a request of either kind, and was posted once.
    fn counted(&self, half: &Half<'_>) -> Sums {
        let (begin, end) = match half.operation.is_second_half {
            true => (half.post_begin, half.post_begin),
            false => (half.post_begin, half.post_end),
        };
        let beside = self.trace.ranks[self.rank].devices.computed_within(begin, end);
        Sums {
            requests: 1,
            bytes: half.bytes().0,
            post: end - begin,
            post_beside_gpu: beside,
            ..Sums::default()
        }
    }

    /// `ready_compute`, `later_compute`: see [`Life`].
    fn achieved(
        &self,
        half: &Half<'_>,
        transfer: Option<Estimate>,
        (ready_compute, later_compute): (Option<i64>, i64),
        side: Option<&OtherSide<'a>>,
    ) -> Achieved {
        let post = half.post_end - half.post_begin;
        let completion = half.completion_end.zip(half.completion_begin).map_or(0, |(e, b)| e - b);
        // a GPU that computes beside the wait makes that part of it a part of the window
        let beside = self.beside_wait(half, half.post_end);
        let seen = half.observed.and_then(|observed| observed.first_complete);
        let life = Life {
            transfer: transfer.unwrap_or(Estimate::exactly(0)),
            post,
            window: half.window().unwrap_or(0) + beside,
            mpi: half.mpi.map(|mpi| mpi - self.beside_window(half)),
            completion: completion - beside,
            is_shared: half.completed_together > 1,
            ready_compute,
            needs_partner: half.operation.direction == Direction::Receive,
            seen_complete: seen.map(|since_begin| since_begin - post),
            is_tested: half.observed.is_some_and(|observed| observed.unsuccessful_tests > 0),
            later_compute,
        };
        if transfer.is_none() {
            return life.achieved_unmeasured();
        }
        life.achieved(|| side.and_then(|side| self.sides.standstill(half, side)))
    }
}

fn culprit_key(trace: &Trace, cell: u32, (rank, half): Culprit<'_>) -> CulpritKey {
    let none = CulpritKey { cell, rank, site: None, completing: None };
    half.map_or(none, |half| CulpritKey {
        site: Some(half.operation.site),
        completing: half.call.filter(|_| half.operation.is_request).map(|call| {
            let rank = &trace.ranks[half.rank];
            let by = &rank.operations[rank.calls[call as usize].operation as usize];
            by.site
        }),
        ..none
    })
}

/// Time in the window of a request outside MPI.
fn compute(half: &Half<'_>) -> i64 {
    half.window().map_or(0, |window| (window - half.mpi.unwrap_or(0)).max(0))
}

fn key_of(trace: &Trace, rank: usize, operation: &Operation) -> OverlapCellKey {
    OverlapCellKey {
        site: operation.site,
        kind: operation.kind,
        size_class: operation.bytes.size_class(),
        locality: locality(trace, rank, operation),
        is_request: operation.is_request,
    }
}

/// Where the other side of a message is, if it is known.
fn locality(trace: &Trace, rank: usize, operation: &Operation) -> Option<Locality> {
    let is_message = matches!(operation.direction, Direction::Send | Direction::Receive);
    let peer = operation.peer.filter(|_| is_message)?;
    Some(trace.locality(rank, peer as usize))
}

/// How long a rank's operation takes with nothing in between.
pub fn reference_time(
    trace: &Trace,
    rank: usize,
    reference: &Reference,
    operation: &Operation,
) -> Option<Estimate> {
    match operation.direction {
        Direction::Send | Direction::Receive if operation.mode != Mode::Partitioned => {
            reference.transfer(locality(trace, rank, operation)?, operation.bytes.0)
        }
        Direction::Collective => {
            let call = &trace.blocking_calls[operation.blocking_call as usize].name;
            let (ranks, bytes) = (operation.comm_size, operation.bytes.0);
            if operation.is_request {
                reference.nonblocking_collective(call, ranks, bytes)
            } else {
                reference.collective(call, ranks, bytes)
            }
        }
        _ => None,
    }
}
