//! Messages from state to state: eager ones, and those that need their receive. Control messages are handled only while a rank is
//! inside MPI, unless progress is asynchronous.
//!
//! - Eager: complete at the post, there after latency and wire time. Those that need the receiver's progress are
//!   complete when the receiver was inside MPI.
//! - Rendezvous by write: ready to send, clear to send, then the network moves the data. By read: ready to send, then
//!   the network reads and tells the sender.
//! - Speculative [RA08]: an early receive announces itself, and the send that finds that writes; where both cross, the
//!   receiver reads; a receive from any source announces nothing.
//! - Pipeline (`pipeline.rs`): both hosts move the data after the clear to send.

use super::outcome::NOBODY;
use super::queue::{EndpointRef, Notice, QueuedEvent};
use super::replayed::is_replayed;
use super::scenario::Protocol;
use super::state::{Engine, Flight, Trigger};
use lapscope_trace::target::{Awaited, CallNumber};
use lapscope_trace::Direction;

impl Engine<'_> {
    /// Posts an endpoint: what it communicates begins.
    pub fn post(&mut self, rank: u32, endpoint: u32, time: i64) {
        let of_trace = &self.trace.ranks[rank as usize];
        let row = &of_trace.endpoints[endpoint as usize];
        let operation = &of_trace.operations[row.operation as usize];
        let half = &mut self.ranks[rank as usize].halves[endpoint as usize];
        half.posted = time;
        if !is_replayed(self.trace, row, operation) {
            half.done = time;
            half.flight = NOBODY;
            return;
        }
        let end = EndpointRef { rank, endpoint };
        match operation.direction {
            Direction::Send => self.send(end, time),
            Direction::Receive => self.receive(end, time),
            Direction::Collective => self.join(end, time),
            Direction::None => self.ask(end, time),
        }
    }

    /// The flight of an endpoint; a new one when neither side was posted before.
    fn flight(&mut self, end: EndpointRef, is_send: bool) -> u32 {
        let known = self.ranks[end.rank as usize].halves[end.endpoint as usize].flight;
        if known != NOBODY {
            return known;
        }
        let of_trace = &self.trace.ranks[end.rank as usize];
        let row = &of_trace.endpoints[end.endpoint as usize];
        let peer = of_trace.operations[row.operation as usize].peer.unwrap_or(end.rank);
        let other = EndpointRef { rank: peer, endpoint: row.partner };
        let (send, receive) = if is_send { (end, other) } else { (other, end) };
        let sender = &self.trace.ranks[send.rank as usize];
        let operation = sender.endpoints[send.endpoint as usize].operation;
        let plan = self.plans[send.rank as usize][operation as usize];
        let flight = Flight::new(send, receive, plan.expect("both ends have a peer"));
        let number = match self.free_flights.pop() {
            Some(number) => {
                // events of the flight that had the place may still come
                let version = self.flights[number as usize].version + 1;
                self.flights[number as usize] = Flight { version, ..flight };
                number
            }
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        };
        for end in [send, receive] {
            self.ranks[end.rank as usize].halves[end.endpoint as usize].flight = number;
        }
        number
    }

    fn send(&mut self, end: EndpointRef, time: i64) {
        let number = self.flight(end, true);
        let flight = &mut self.flights[number as usize];
        flight.is_sent = true;
        flight.trigger = Trigger { rank: end.rank, time };
        let (plan, trigger) = (flight.plan, flight.trigger);
        if plan.is_copied {
            self.complete(end, time, trigger);
        }
        if plan.protocol == Protocol::Eager {
            return self.send_eager(number, time);
        }
        let flight = &mut self.flights[number as usize];
        if flight.is_invited {
            return self.write(number, time);
        }
        flight.is_rts_sent = true;
        self.queue.push(time + plan.latency, QueuedEvent::Notice(Notice::Rts(number)));
    }

    /// The send of a flight is complete; from a copy it was so when it was posted.
    pub fn complete_send(&mut self, number: u32, time: i64, trigger: Trigger) {
        let Flight { send, plan, .. } = self.flights[number as usize];
        if !plan.is_copied {
            self.complete(send, time, trigger);
        }
    }

    fn send_eager(&mut self, number: u32, time: i64) {
        let Flight { send, receive, plan, trigger, .. } = self.flights[number as usize];
        let begin = self.links.take(time, plan.wire, send.rank, receive.rank);
        let arrives = begin + plan.wire + plan.latency;
        self.flights[number as usize].arrives = arrives;
        if plan.needs_progress {
            self.flights[number as usize].held += 1;
            self.queue.push(arrives, QueuedEvent::Notice(Notice::Data(number)));
        } else {
            self.complete_send(number, time, trigger);
        }
        if self.flights[number as usize].is_receiving {
            self.complete(receive, arrives, trigger);
            self.land(number);
        }
    }

    fn receive(&mut self, end: EndpointRef, time: i64) {
        let number = self.flight(end, false);
        let may_announce = self.may_announce(end);
        let flight = &mut self.flights[number as usize];
        flight.is_receiving = true;
        let own = Trigger { rank: end.rank, time };
        match flight.plan.protocol {
            Protocol::Eager if flight.is_sent => {
                let trigger = if flight.arrives > time { flight.trigger } else { own };
                let arrives = flight.arrives.max(time);
                self.complete(end, arrives, trigger);
                self.land(number);
            }
            Protocol::Eager => {}
            _ if flight.is_announced => {
                flight.trigger = own;
                self.matched(number, time);
            }
            Protocol::Speculative if !flight.is_rts_sent && may_announce => {
                flight.held += 1;
                let arrives = time + flight.plan.latency;
                self.queue.push(arrives, QueuedEvent::Notice(Notice::Rtr(number)));
            }
            _ => {}
        }
    }

    /// A receive from any source does not know to whom it could announce itself.
    fn may_announce(&self, end: EndpointRef) -> bool {
        let of_trace = &self.trace.ranks[end.rank as usize];
        let row = &of_trace.endpoints[end.endpoint as usize];
        !of_trace.operations[row.operation as usize].is_wildcard
    }

    fn addressee(&self, notice: Notice) -> u32 {
        match notice {
            Notice::Rts(flight) | Notice::Data(flight) => {
                self.flights[flight as usize].receive.rank
            }
            Notice::Cts(flight) | Notice::Rtr(flight) => self.flights[flight as usize].send.rank,
            Notice::Ask(end) => self.awaited(end).rank,
        }
    }

    /// A notice is at its rank: handled now, or when the rank is inside MPI again.
    pub fn arrive(&mut self, notice: Notice, time: i64) {
        let rank = self.addressee(notice);
        if self.is_inside(rank) {
            self.handle(notice, time, true);
        } else {
            self.ranks[rank as usize].inbox.push(notice);
            self.expect_tick(rank, time);
        }
    }

    /// `is_at_once`: the rank was inside MPI when it arrived.
    pub fn handle(&mut self, notice: Notice, time: i64, is_at_once: bool) {
        let came = (!is_at_once).then(|| Trigger { rank: self.addressee(notice), time });
        match notice {
            Notice::Rts(number) => {
                let flight = self.go_on(number, came);
                match flight.is_receiving {
                    true => self.matched(number, time),
                    false => flight.is_announced = true,
                }
            }
            Notice::Cts(number) => match self.go_on(number, came).plan.protocol {
                Protocol::Pipeline => self.begin_moving(number, time),
                _ => self.write(number, time),
            },
            Notice::Rtr(number) => {
                // of one that crossed the ready-to-send nothing is made: the receiver will read
                let flight = &mut self.flights[number as usize];
                flight.is_invited = !flight.is_sent;
                self.let_go(number);
            }
            Notice::Data(number) => {
                let trigger = self.go_on(number, came).trigger;
                self.complete_send(number, time, trigger);
                self.let_go(number);
            }
            Notice::Ask(end) => self.answer(end, time, is_at_once),
        }
    }

    /// A flight that goes on, perhaps because a rank came.
    fn go_on(&mut self, number: u32, came: Option<Trigger>) -> &mut Flight {
        let flight = &mut self.flights[number as usize];
        flight.trigger = came.unwrap_or(flight.trigger);
        flight
    }

    fn awaited(&self, end: EndpointRef) -> Awaited {
        let row = &self.trace.ranks[end.rank as usize].endpoints[end.endpoint as usize];
        self.trace.awaited_targets[row.partner as usize]
    }

    /// A one-sided call is made that needs its target: inside MPI, whoever brings it there, or in a call of its own.
    fn ask(&mut self, end: EndpointRef, time: i64) {
        let Awaited { rank, call, .. } = self.awaited(end);
        let Some(call) = call else { return self.arrive(Notice::Ask(end), time) };
        match self.awaited_calls.get_mut(&(rank, call)) {
            Some(awaited) if !awaited.has_begun => awaited.askers.push(end),
            _ => self.answer(end, time, true),
        }
    }

    /// A rank begins a call.
    pub fn begin_call(&mut self, rank: u32, call: CallNumber, time: i64) {
        let Some(awaited) = self.awaited_calls.get_mut(&(rank, call)) else { return };
        awaited.has_begun = true;
        for asker in std::mem::take(&mut awaited.askers) {
            self.answer(asker, time, false);
        }
    }

    /// The target is there; what the call took from then on it takes.
    fn answer(&mut self, end: EndpointRef, time: i64, is_at_once: bool) {
        let Awaited { rank, rest, .. } = self.awaited(end);
        let rank = if is_at_once { end.rank } else { rank };
        self.complete(end, time + rest, Trigger { rank, time });
    }

    /// A ready-to-send has met its receive, inside MPI of the receiver.
    fn matched(&mut self, number: u32, time: i64) {
        let plan = self.flights[number as usize].plan;
        match plan.protocol {
            Protocol::RendezvousWrite | Protocol::Pipeline => {
                self.queue.push(time + plan.latency, QueuedEvent::Notice(Notice::Cts(number)));
            }
            _ => self.read(number, time),
        }
    }

    /// The network writes into the receiver's buffer.
    fn write(&mut self, number: u32, time: i64) {
        let Flight { send, receive, plan, trigger, .. } = self.flights[number as usize];
        let begin = self.links.take(time, plan.wire, send.rank, receive.rank);
        let sent = begin + plan.wire;
        self.complete_send(number, sent, trigger);
        self.complete(receive, sent + plan.latency, trigger);
        self.land(number);
    }

    /// The network reads from the sender's buffer, and tells the sender when it is done.
    fn read(&mut self, number: u32, time: i64) {
        let Flight { send, receive, plan, trigger, .. } = self.flights[number as usize];
        let asked = time + plan.latency;
        let begin = self.links.take(asked, plan.wire, send.rank, receive.rank);
        let there = begin + plan.wire + plan.latency;
        self.complete(receive, there, trigger);
        self.complete_send(number, there + plan.latency, trigger);
        self.land(number);
    }

    /// Both ends are complete, or will be.
    pub fn land(&mut self, number: u32) {
        self.let_go(number);
    }

    /// One of those that hold a flight has done with it; the last one frees its place.
    fn let_go(&mut self, number: u32) {
        let flight = &mut self.flights[number as usize];
        flight.held -= 1;
        if flight.held == 0 {
            self.free_flights.push(number);
        }
    }
}
