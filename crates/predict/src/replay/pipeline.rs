//! Messages that both hosts move in pieces: they move while both ranks are inside MPI, and without the one or the other as far as
//! what lies between them buffers.

use super::queue::QueuedEvent;
use super::state::{Engine, Flight, Trigger, NEVER};

/// Whether the sender and the receiver are inside MPI.
type PairInside = [bool; 2];

impl Flight {
    /// How far it moves without another event, nanoseconds of wire time.
    fn reach(&self, inside: PairInside) -> i64 {
        let of = |side: usize| if inside[side] { NEVER } else { self.buffered[side] };
        of(0).min(of(1))
    }

    /// Moves it up to `time`, while `inside` held.
    fn move_to(&mut self, time: i64, inside: PairInside) {
        let moved = (time - self.moved).max(0).min(self.reach(inside)).min(self.remaining);
        self.remaining -= moved;
        for (buffered, _) in self.buffered.iter_mut().zip(inside).filter(|(_, inside)| !inside) {
            *buffered -= moved;
        }
        self.moved = self.moved.max(time);
    }
}

impl Engine<'_> {
    fn sides(&self, number: u32) -> PairInside {
        let flight = &self.flights[number as usize];
        [flight.send.rank, flight.receive.rank].map(|rank| self.is_inside(rank))
    }

    /// The sender may begin.
    pub fn begin_moving(&mut self, number: u32, time: i64) {
        let Flight { send, receive, plan, .. } = self.flights[number as usize];
        let begin = self.links.take(time, plan.wire, send.rank, receive.rank);
        let flight = &mut self.flights[number as usize];
        (flight.moved, flight.reserved) = (begin, begin + plan.wire);
        for rank in [send.rank, receive.rank] {
            let movers = &mut self.ranks[rank as usize].movers;
            if !movers.contains(&number) {
                movers.push(number);
            }
        }
        self.plan_end(number, time);
        for rank in [send.rank, receive.rank] {
            if !self.is_inside(rank) {
                self.expect_tick(rank, time);
            }
        }
    }

    /// Says when it will be complete, if nothing happens before.
    fn plan_end(&mut self, number: u32, time: i64) {
        let inside = self.sides(number);
        self.queue_again(number, time, inside);
        let flight = &mut self.flights[number as usize];
        let finishes = match flight.remaining <= flight.reach(inside) {
            true => flight.moved.max(time) + flight.remaining,
            false => NEVER,
        };
        if finishes != flight.finishes {
            flight.version += 1;
            flight.finishes = finishes;
            if finishes != NEVER {
                let version = flight.version;
                self.queue.push(finishes, QueuedEvent::Finish { flight: number, version });
            }
        }
    }

    /// What has stood still has lost its turn on what it shares with others.
    fn queue_again(&mut self, number: u32, time: i64, inside: PairInside) {
        let flight = &mut self.flights[number as usize];
        let begin = flight.moved.max(time);
        if flight.remaining > flight.reach(inside) || begin + flight.remaining <= flight.reserved {
            return;
        }
        let (from, to) = (flight.send.rank, flight.receive.rank);
        let begin = self.links.take_again(flight.reserved, begin, flight.remaining, from, to);
        (flight.moved, flight.reserved) = (begin, begin + flight.remaining);
    }

    /// A rank has left MPI: what moves through it goes on as far as it is buffered.
    pub fn host_left(&mut self, rank: u32, time: i64) {
        for place in 0..self.ranks[rank as usize].movers.len() {
            let number = self.ranks[rank as usize].movers[place];
            let inside = self.were_inside(number, rank, true);
            self.flights[number as usize].move_to(time, inside);
            self.plan_end(number, time);
            self.expect_tick(rank, time);
        }
    }

    /// A rank is inside MPI, or tests for a moment: it buffers again.
    pub fn host_came(&mut self, rank: u32, time: i64) {
        for place in 0..self.ranks[rank as usize].movers.len() {
            let number = self.ranks[rank as usize].movers[place];
            let inside = self.were_inside(number, rank, false);
            let flight = &mut self.flights[number as usize];
            let was_stopped = flight.finishes == NEVER;
            flight.move_to(time, inside);
            for (side, end) in [flight.send, flight.receive].into_iter().enumerate() {
                if end.rank == rank {
                    flight.buffered[side] = flight.plan.buffered;
                }
            }
            if was_stopped {
                flight.trigger = Trigger { rank, time };
            }
            self.plan_end(number, time);
        }
    }

    /// Who was inside MPI until now, when `rank` has just changed.
    fn were_inside(&self, number: u32, rank: u32, was: bool) -> PairInside {
        let flight = &self.flights[number as usize];
        let ends = [flight.send.rank, flight.receive.rank];
        ends.map(|end| if end == rank { was } else { self.is_inside(end) })
    }

    /// All of it has moved, unless something came in between.
    pub fn finish_moving(&mut self, number: u32, version: u32, time: i64) {
        let Flight { send, receive, plan, trigger, version: current, finishes, .. } =
            self.flights[number as usize];
        if version != current || finishes != time {
            return;
        }
        for rank in [send.rank, receive.rank] {
            self.ranks[rank as usize].movers.retain(|&mover| mover != number);
        }
        // so that an event of this flight that is still to come finds another version in its place
        self.flights[number as usize].finishes = NEVER;
        self.complete_send(number, time, trigger);
        self.complete(receive, time + plan.latency, trigger);
        self.land(number);
    }
}
