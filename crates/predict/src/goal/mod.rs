//! A recorded run as a GOAL schedule: the text that LogGOPSim's txt2bin reads (Hoefler, Siebert and Lumsdaine, Group
//! Operation Assembly Language, 2009). Of each rank what it computed between calls, its messages, and what had to be complete
//! before it could go on; how long calls took is for the simulator to find out.
//!
//! A message's tag is the number of its send, so that it is received by the receive that received it, whatever the program
//! said (any source, other communicators). LogGOPSim takes (s - 1) G of a message: one without bytes is written as one byte.

mod collective;
mod events;

use std::io::{self, Write};

use collective::{CollectiveStep, Exchange};
use events::{events, GoalEvent, GoalEventKind};
use lapscope_trace::{Direction, Half, Trace};

/// A time unit of LogGOPSim's parameters and schedules, which are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SimulatorUnit {
    Nanoseconds,
    /// G of today's networks is less than a nanosecond.
    #[default]
    Picoseconds,
}

impl SimulatorUnit {
    /// So many of it are a nanosecond.
    pub fn per_ns(self) -> u64 {
        match self {
            SimulatorUnit::Nanoseconds => 1,
            SimulatorUnit::Picoseconds => 1000,
        }
    }
}

/// Between two calls, nanoseconds: so little holds no other call, such as a probe.
const SHORT_GAP: i64 = 1_000;

/// What was written, and what was not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub ranks: u64,
    pub sends: u64,
    pub receives: u64,
    /// Parts of ranks in collectives, each of which became messages.
    pub collectives: u64,
    /// Messages whose other end is not known, and parts in collectives whose members or pattern are not known: nobody waits
    /// for them in the schedule.
    pub messages_left_out: u64,
    pub collectives_left_out: u64,
}

/// Writes the schedule, rank by rank.
///
/// # Errors
/// Of the writer.
pub fn write(trace: &Trace, unit: SimulatorUnit, out: &mut dyn Write) -> io::Result<Written> {
    let mut written = Written { ranks: trace.ranks.len() as u64, ..Written::default() };
    writeln!(out, "num_ranks {}", trace.ranks.len())?;
    let start = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
    for rank in 0..trace.ranks.len() {
        writeln!(out, "\nrank {rank} {{")?;
        let mut schedule = Schedule {
            trace,
            rank,
            unit,
            out: &mut *out,
            written: &mut written,
            moment: start,
            after: Vec::new(),
            labels: 0,
        };
        schedule.write()?;
        writeln!(out, "}}")?;
    }
    Ok(written)
}

/// What an operation waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    /// The end of another.
    End(String),
    /// Its begin: a request was posted.
    Begin(String),
}

/// The schedule of one rank, as far as it is written.
struct Schedule<'a> {
    trace: &'a Trace,
    rank: usize,
    unit: SimulatorUnit,
    out: &'a mut dyn Write,
    written: &'a mut Written,
    /// Nanoseconds on the run's clock up to which it has been told what the rank did.
    moment: i64,
    /// What the program's next operation waits for.
    after: Vec<After>,
    labels: u64,
}

/// The label of the operation that an endpoint ends with.
fn label(half: &Half<'_>) -> String {
    format!("m{}", half.index)
}

impl Schedule<'_> {
    fn write(&mut self) -> io::Result<()> {
        let of_rank = &self.trace.ranks[self.rank];
        let late = of_rank.init_end - self.moment;
        self.moment = of_rank.init_end;
        if late > 0 {
            self.calc(late)?;
        }
        for event in events(self.trace, self.rank) {
            self.compute_until(event.moment)?;
            self.event(&event)?;
            self.moment = self.moment.max(event.until);
        }
        self.compute_until(of_rank.end)
    }

    fn event(&mut self, event: &GoalEvent) -> io::Result<()> {
        match event.what {
            GoalEventKind::Completion => {}
            GoalEventKind::Post | GoalEventKind::Blocking => self.begin(event)?,
            GoalEventKind::End => self.end(event),
        }
        Ok(())
    }

    /// Writes what a post or a blocking call begins; what comes behind waits for its begin alone.
    fn begin(&mut self, event: &GoalEvent) -> io::Result<()> {
        let trace = self.trace;
        let mut begun = Vec::new();
        for index in event.halves.clone() {
            let half = trace.half(self.rank, index);
            match half.operation.direction {
                Direction::Send | Direction::Receive => {
                    if self.message(&half)? {
                        begun.push(After::Begin(label(&half)));
                    }
                }
                // its label is that of its end
                Direction::Collective => self.collective(&half)?,
                Direction::None => {}
            }
        }
        if !begun.is_empty() {
            self.after = begun; // which waits for all that was there
        }
        Ok(())
    }

    fn end(&mut self, event: &GoalEvent) {
        let halves = event.halves.clone().map(|index| self.trace.half(self.rank, index));
        let labels = halves.filter(|half| is_written(self.trace, half)).map(|half| label(&half));
        for label in labels.collect::<Vec<_>>() {
            self.after.retain(|after| *after != After::Begin(label.clone()));
            self.after.push(After::End(label));
        }
    }

    /// Writes a message. Whether there is one.
    fn message(&mut self, half: &Half<'_>) -> io::Result<bool> {
        let Some(partner) = self.trace.partner(half) else {
            let is_to_nobody = half.operation.peer.is_none() && !half.operation.is_untraceable;
            self.written.messages_left_out += u64::from(!is_to_nobody);
            return Ok(false);
        };
        let is_send = half.operation.direction == Direction::Send;
        let (send, peer) = if is_send { (half, &partner) } else { (&partner, half) };
        let other = if is_send { peer.rank } else { send.rank };
        let step = CollectiveStep { is_send, peer: other, bytes: send.bytes().0 };
        let after = self.after.clone();
        self.transfer(&label(half), step, 2 * send.index as u64, &after)?;
        Ok(true)
    }

    /// Writes a collective as messages.
    fn collective(&mut self, half: &Half<'_>) -> io::Result<()> {
        let Some(exchange) = Exchange::from_half(self.trace, half) else {
            self.written.collectives_left_out += 1;
            return Ok(());
        };
        self.written.collectives += 1;
        let mut after = self.after.clone();
        for round in exchange.rounds {
            let mut ends = Vec::new();
            for step in round {
                let label = self.new_label("x");
                self.transfer(&label, step, exchange.tag, &after)?;
                ends.push(After::End(label));
            }
            after = ends;
        }
        // one label that stands for all of it
        self.operation(&label(half), "calc 0", &after)
    }

    fn transfer(
        &mut self,
        label: &str,
        step: CollectiveStep,
        tag: u64,
        after: &[After],
    ) -> io::Result<()> {
        let CollectiveStep { is_send, peer, bytes } = step;
        let bytes = bytes.max(1);
        let (count, what, way) = match is_send {
            true => (&mut self.written.sends, "send", "to"),
            false => (&mut self.written.receives, "recv", "from"),
        };
        *count += 1;
        self.operation(label, &format!("{what} {bytes}b {way} {peer} tag {tag}"), after)
    }

    /// Computation from the last moment on; also where several things are waited for, so that what follows waits for one.
    fn compute_until(&mut self, moment: i64) -> io::Result<()> {
        let computed = match moment - self.moment {
            short @ ..=SHORT_GAP => short.max(0),
            _ => self.trace.ranks[self.rank].presence.outside(self.moment, moment),
        };
        if computed > 0 || self.after.len() > 1 {
            self.calc(computed)?;
        }
        Ok(())
    }

    fn calc(&mut self, ns: i64) -> io::Result<()> {
        let label = self.new_label("c");
        let after = std::mem::take(&mut self.after);
        let time = (ns as u64).saturating_mul(self.unit.per_ns());
        self.operation(&label, &format!("calc {time}"), &after)?;
        self.after.push(After::End(label));
        Ok(())
    }

    fn new_label(&mut self, of: &str) -> String {
        self.labels += 1;
        format!("{of}{}", self.labels)
    }

    fn operation(&mut self, label: &str, what: &str, after: &[After]) -> io::Result<()> {
        writeln!(self.out, "{label}: {what}")?;
        for other in after {
            match other {
                After::End(other) => writeln!(self.out, "{label} requires {other}")?,
                After::Begin(other) => writeln!(self.out, "{label} irequires {other}")?,
            }
        }
        Ok(())
    }
}

/// Whether an endpoint has a label.
fn is_written(trace: &Trace, half: &Half<'_>) -> bool {
    match half.operation.direction {
        Direction::Send | Direction::Receive => trace.partner(half).is_some(),
        Direction::Collective => Exchange::is_known(trace, half),
        Direction::None => false,
    }
}
