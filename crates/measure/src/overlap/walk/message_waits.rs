//! Calls that wait for a message and communicate nothing themselves. Of a probe the sender was late, as for a receive that blocks, in
//! which the message is received behind it; of MPI_Buffer_detach the receiver of what a buffer holds.

use super::super::sums::BlockingSums;
use super::Walk;
use crate::overlap::exposure::{BesideGpu, Exposure, ExposureBounds, Starved};
use crate::overlap::side::Culprit;
use crate::overlap::witness::{Awaited, Waited, Witness};
use lapscope_trace::{Half, MessageWait, NONE};

impl<W: Witness> Walk<'_, W> {
    pub(super) fn add_message_waits(&mut self) {
        let rank = &self.trace.ranks[self.rank];
        for wait in &rank.message_waits {
            if self.trace.is_counted(self.rank, wait.begin) && self.witness.looks_at(wait.begin) {
                self.add_message_wait(wait);
            }
        }
    }

    fn add_message_wait(&mut self, wait: &MessageWait) {
        let rank = &self.trace.ranks[self.rank];
        let is_loop = self.trace.is_look(self.rank, wait);
        let lasted = if is_loop { wait.waited } else { wait.duration };
        let begin = if is_loop { wait.begin - wait.waited } else { wait.begin };
        if lasted <= 0 || (!is_loop && self.is_beside_others(begin, begin + lasted)) {
            return;
        }
        let own = (wait.message != NONE)
            .then(|| self.trace.half(self.rank, wait.message as usize))
            .map(|half| waited_from(half, begin, begin + lasted));
        let other = own.as_ref().and_then(|half| self.trace.partner(half));
        let exposed = self.exposed_by(wait, (begin, lasted), other.as_ref());
        let operation = &rank.operations[wait.operation as usize];
        let cell = self.places[wait.operation as usize].cell;
        let sums = BlockingSums { calls: 1, exposed, ..BlockingSums::default() };
        if is_loop {
            if rank.threads.count() == 1 {
                self.add_waiting_loop(begin, begin + lasted);
            }
            self.add_polling(&sums, wait.operation);
        } else {
            self.found.cells[cell as usize].1.blocking += &sums;
            let moment = self.moment(wait.begin);
            self.found.add(moment, |cell| cell.blocking += &sums);
        }
        let Some((half, other)) = own.zip(other) else { return };
        let culprit: Culprit<'_> = (other.rank as u32, Some(other));
        self.blame(Some((half.index as u32, culprit)), &exposed);
        let waited = Waited {
            half,
            at: Some(operation.site),
            awaited: Awaited::Partner(other),
            exposed,
            bounds: ExposureBounds::exactly(exposed),
            compute: 0,
            transfer: 0,
        };
        match is_loop {
            true => self.witness.polled(&waited),
            false => self.witness.call(&waited),
        }
    }

    /// The parts of its time, which lasted so long from that moment on.
    fn exposed_by(
        &self,
        wait: &MessageWait,
        (begin, lasted): (i64, i64),
        other: Option<&Half<'_>>,
    ) -> Exposure {
        let (late_partner, transfer) = (wait.waited, lasted - wait.waited);
        let mut exposed = Exposure { late_partner, transfer, ..Exposure::default() };
        let came = begin + late_partner;
        let late = other.map_or(0, |other| {
            let of = &self.trace.ranks[other.rank];
            let left = of.presence.left_before(other.post_begin).unwrap_or(begin);
            of.starvation.within(left.min(begin), came)
        });
        let rest = self.trace.ranks[self.rank].starvation.within(came, begin + lasted);
        let gpus = &self.trace.ranks[self.rank].devices;
        exposed.lay_to_gpu(BesideGpu::of(gpus, begin, &exposed, begin + lasted));
        exposed.lay_to_processors(Starved { late, outside: 0, rest });
        exposed
    }
}

/// The half as if it had been waited for from then to then.
fn waited_from(mut half: Half<'_>, begin: i64, end: i64) -> Half<'_> {
    (half.completion_begin, half.completion_end) = (Some(begin), Some(end));
    half
}
