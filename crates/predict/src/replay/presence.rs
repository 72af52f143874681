//! A rank comes into MPI, leaves it, or tests: what has arrived is handled, what both hosts move goes on or stops.

use super::state::Engine;

impl Engine<'_> {
    pub fn enter(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        state.inside += 1;
        if state.inside == 1 {
            state.visit += 1;
            // a test of the computation that ends here will not be made
            state.is_tick_due = false;
            self.look(rank, time);
        }
    }

    pub fn leave(&mut self, rank: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        state.inside -= 1;
        if state.inside == 0 && !self.is_async {
            state.left = time;
            if !state.movers.is_empty() {
                self.host_left(rank, time);
            }
        }
    }

    /// Handles what has arrived.
    fn look(&mut self, rank: u32, time: i64) {
        if !self.ranks[rank as usize].inbox.is_empty() {
            let mut inbox = std::mem::take(&mut self.ranks[rank as usize].inbox);
            for notice in inbox.drain(..) {
                self.handle(notice, time, false);
            }
            // nothing arrives while it is handled
            self.ranks[rank as usize].inbox = inbox;
        }
        // where progress is asynchronous they have not stopped
        if !self.is_async && !self.ranks[rank as usize].movers.is_empty() {
            self.host_came(rank, time);
        }
    }

    pub fn tick(&mut self, rank: u32, visit: u32, time: i64) {
        let state = &mut self.ranks[rank as usize];
        if state.inside > 0 || state.visit != visit {
            return;
        }
        state.is_tick_due = false;
        self.look(rank, time);
        let state = &self.ranks[rank as usize];
        if !state.movers.is_empty() || !state.inbox.is_empty() {
            self.expect_tick(rank, time);
        }
    }
}
