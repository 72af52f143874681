//! A replay that never ends: who waits for whom.

use super::document::{Blocked, Deadlock, PeerAction, RecordEnd, Standstill};
use super::paths::NamedSites;
use crate::replay::deadlock::{standstill, Reason, Waiting};
use crate::replay::Outcome;
use lapscope_data::model::{Ended, Nanos, Rank, RankInfo};
use lapscope_data::symbols::NameFrames;
use lapscope_trace::{Direction, Operation, RankTrace, Trace};

/// `None`: the run ends.
pub fn deadlock(trace: &Trace, outcome: &Outcome, names: &mut dyn NameFrames) -> Option<Deadlock> {
    let found = standstill(trace, outcome)?;
    let begin = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
    let mut waits = NamedWaits::new(trace, names);
    let (cycle, standstill) = match &found.reason {
        Reason::Circle(circle) => (waits.blocked_each(circle), waits.circle(circle)),
        Reason::Missing(waiting) => (Vec::new(), waits.missing(waiting)),
    };
    Some(Deadlock {
        cycle,
        blocked: found.ranks,
        at_ns: Nanos(found.since - begin),
        standstill,
        says: String::new(),
    })
}

fn record_end(info: &RankInfo) -> RecordEnd {
    match info.ended {
        _ if has_gaps(info) => RecordEnd::Gaps,
        _ if info.summarized.is_some() => RecordEnd::SummedUp,
        Ended::Finalize => RecordEnd::Whole,
        Ended::Killed => RecordEnd::Killed,
        Ended::Abort => RecordEnd::Aborted,
        Ended::Exit => RecordEnd::Exited,
    }
}

/// Which message is whose is then not certain.
fn has_gaps(info: &RankInfo) -> bool {
    info.lost_records > 0 || info.damaged_pieces > 0
}

/// Waits with the names of their places.
pub(super) struct NamedWaits<'a> {
    trace: &'a Trace,
    named: NamedSites<'a>,
}

impl<'a> NamedWaits<'a> {
    pub fn new(trace: &'a Trace, names: &'a mut dyn NameFrames) -> Self {
        NamedWaits { trace, named: NamedSites { trace, names, length: Nanos(0) } }
    }

    pub fn blocked_each(&mut self, waiting: &[Waiting]) -> Vec<Blocked> {
        waiting.iter().map(|waiting| self.blocked(waiting)).collect()
    }

    fn blocked(&mut self, waiting: &Waiting) -> Blocked {
        let rank = &self.trace.ranks[waiting.stuck.rank as usize];
        let (call, site) = match rank.calls.get(waiting.stuck.call as usize) {
            Some(call) => self.named.call(rank.operations[call.operation as usize].site),
            None => ("MPI".to_owned(), None),
        };
        let operation = self.operation(waiting);
        let message = operation.filter(|it| it.direction != Direction::Collective);
        Blocked {
            rank: rank.info().rank,
            call,
            site,
            waits_for: waiting.ranks.iter().map(|&rank| self.rank(rank)).collect(),
            bytes: message.map(|it| it.bytes.0),
            tag: message.and_then(|it| it.tag),
            awaits: match operation.map(|it| it.direction) {
                Some(Direction::Send) => PeerAction::Receive,
                Some(Direction::Receive) => PeerAction::Send,
                _ => PeerAction::Part,
            },
        }
    }

    fn rank(&self, place: u32) -> Rank {
        self.trace.ranks[place as usize].info().rank
    }

    /// What it does not get.
    fn operation(&self, waiting: &Waiting) -> Option<&'a Operation> {
        let rank = &self.trace.ranks[waiting.stuck.rank as usize];
        let endpoint = rank.endpoints.get(waiting.stuck.endpoint as usize)?;
        Some(&rank.operations[endpoint.operation as usize])
    }

    fn circle(&self, circle: &[Waiting]) -> Standstill {
        let mut infos = self.trace.ranks.iter().map(RankTrace::info);
        let of_any = |it: &Waiting| self.operation(it).is_some_and(|it| it.is_wildcard);
        Standstill::Circle {
            gaps: infos.find(|info| has_gaps(info)).map(|info| info.rank),
            is_wildcard: circle.iter().any(of_any),
        }
    }

    fn missing(&mut self, waiting: &Waiting) -> Standstill {
        let other = waiting.ranks.first().map(|&other| {
            let info = self.trace.ranks[other as usize].info();
            (info.rank, record_end(info))
        });
        Standstill::Missing { blocked: Box::new(self.blocked(waiting)), other }
    }
}
