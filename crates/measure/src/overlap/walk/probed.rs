//! Probes that waited for a message that had not been sent: its sender was late, as for a receive that blocks, in which the message is
//! received behind the probe.

use super::super::sums::BlockingSums;
use super::Walk;
use crate::overlap::exposure::Starved;
use crate::overlap::exposure::{Exposure, ExposureBounds};
use crate::overlap::side::Culprit;
use crate::overlap::witness::{Awaited, Waited, Witness};
use lapscope_trace::{Half, Probe, NONE};

impl<W: Witness> Walk<'_, W> {
    pub(super) fn add_probes(&mut self) {
        let rank = &self.trace.ranks[self.rank];
        for probe in &rank.probes {
            if self.trace.is_counted(self.rank, probe.begin) && self.witness.looks_at(probe.begin) {
                self.add_probe(probe);
            }
        }
    }

    fn add_probe(&mut self, probe: &Probe) {
        let rank = &self.trace.ranks[self.rank];
        let is_loop = self.trace.is_look(self.rank, probe);
        let lasted = if is_loop { probe.waited } else { probe.duration };
        if lasted <= 0 {
            return;
        }
        let begin = if is_loop { probe.begin - probe.waited } else { probe.begin };
        let late = Exposure { late_partner: probe.waited, ..Exposure::default() };
        let transfer = lasted - probe.waited;
        let mut exposed = Exposure { transfer, ..late };
        let received = (probe.receive != NONE)
            .then(|| self.trace.half(self.rank, probe.receive as usize))
            .map(|half| waited_from(half, begin, begin + lasted));
        let send = received.as_ref().and_then(|half| self.trace.partner(half));
        let starved = send.map_or(0, |send| {
            let of = &self.trace.ranks[send.rank];
            let left = of.presence.left_before(send.post_begin).unwrap_or(begin).min(begin);
            of.starvation.within(left, begin + probe.waited)
        });
        let rest = rank.starvation.within(begin + probe.waited, begin + lasted);
        exposed.lay_to_processors(Starved { late: starved, outside: 0, rest });
        let operation = &rank.operations[probe.operation as usize];
        let cell = self.places[probe.operation as usize].cell;
        let sums = BlockingSums { calls: 1, exposed, ..BlockingSums::default() };
        if is_loop {
            self.found.polling += &sums;
        } else {
            self.found.cells[cell as usize].1.blocking += &sums;
            let moment = self.moment(probe.begin);
            self.found.add(moment, |cell| cell.blocking += &sums);
        }
        let Some((half, send)) = received.zip(send) else { return };
        let culprit: Culprit<'_> = (send.rank as u32, Some(send));
        self.blame(Some((half.index as u32, culprit)), &exposed);
        let waited = Waited {
            half,
            at: Some(operation.site),
            awaited: Awaited::Partner(send),
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
}

/// The half as if it had been waited for from then to then.
fn waited_from(mut half: Half<'_>, begin: i64, end: i64) -> Half<'_> {
    (half.completion_begin, half.completion_end) = (Some(begin), Some(end));
    half
}
