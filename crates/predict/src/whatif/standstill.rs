//! A replay that never ends, in words.

use super::document::{Blocked, Deadlock};
use super::paths::NamedSites;
use crate::replay::deadlock::{standstill, Reason, Waiting};
use crate::replay::scenario::Scenario;
use crate::replay::Outcome;
use lapscope_data::model::{Ended, Nanos, Rank, RankInfo};
use lapscope_data::symbols::NameFrames;
use lapscope_data::text::plural;
use lapscope_trace::{Direction, RankTrace, Trace};

/// Ranks of a circle of which a sentence tells each.
const TOLD: usize = 8;

/// `None`: the run ends.
pub fn deadlock(
    trace: &Trace,
    outcome: &Outcome,
    scenario: &Scenario,
    names: &mut dyn NameFrames,
) -> Option<Deadlock> {
    let found = standstill(trace, outcome)?;
    let begin = trace.ranks.iter().map(|rank| rank.init_end).min().unwrap_or(0);
    let mut teller = Teller { trace, named: NamedSites { trace, names, length: Nanos(0) } };
    let (cycle, says) = match &found.reason {
        Reason::Circle(circle) => {
            let blocked: Vec<Blocked> =
                circle.iter().map(|waiting| teller.blocked(waiting)).collect();
            let says = teller.circle(circle, &blocked, scenario);
            (blocked, says)
        }
        Reason::Missing(waiting) => (Vec::new(), teller.missing(waiting, scenario)),
    };
    Some(Deadlock { cycle, blocked: found.ranks, at_ns: Nanos(found.since - begin), says })
}

/// "with an eager limit of 0"
fn under(scenario: &Scenario) -> String {
    let limit_alone = Scenario {
        name: scenario.name.clone(),
        on: scenario.on,
        eager_limit: scenario.eager_limit,
        ..Scenario::default()
    };
    match scenario.eager_limit {
        Some(limit) if *scenario == limit_alone => format!("with an eager limit of {limit}"),
        _ => format!("with {}", scenario.options()),
    }
}

/// Why the end of a rank's record is not the end of what it did.
fn incomplete(info: &RankInfo) -> Option<&'static str> {
    match info.ended {
        _ if has_gaps(info) => Some("has gaps"),
        _ if info.summarized.is_some() => Some("keeps sums alone from some point on"),
        Ended::Finalize => None,
        Ended::Killed => Some("ends where it was killed"),
        Ended::Abort => Some("ends where it aborted"),
        Ended::Exit => Some("ends where it exited without MPI_Finalize"),
    }
}

/// Which message is whose is then not certain.
fn has_gaps(info: &RankInfo) -> bool {
    info.lost_records > 0 || info.damaged_pieces > 0
}

/// Waits in words.
pub(super) struct Teller<'a> {
    pub trace: &'a Trace,
    pub named: NamedSites<'a>,
}

impl Teller<'_> {
    pub fn blocked(&mut self, waiting: &Waiting) -> Blocked {
        let rank = &self.trace.ranks[waiting.stuck.rank as usize];
        let (call, site) = match rank.calls.get(waiting.stuck.call as usize) {
            Some(call) => self.named.call(rank.operations[call.operation as usize].site),
            None => ("MPI".to_owned(), None),
        };
        let endpoint = rank.endpoints.get(waiting.stuck.endpoint as usize);
        let operation = endpoint.map(|endpoint| &rank.operations[endpoint.operation as usize]);
        let message = operation.filter(|it| it.direction != Direction::Collective);
        Blocked {
            rank: rank.info().rank,
            call,
            site,
            waits_for: waiting.ranks.iter().map(|&rank| self.rank(rank)).collect(),
            bytes: message.map(|it| it.bytes.0),
            tag: message.and_then(|it| it.tag),
        }
    }

    fn rank(&self, place: u32) -> Rank {
        self.trace.ranks[place as usize].info().rank
    }

    /// What the other one has to do.
    fn verb(&self, waiting: &Waiting) -> &'static str {
        let rank = &self.trace.ranks[waiting.stuck.rank as usize];
        let endpoint = rank.endpoints.get(waiting.stuck.endpoint as usize);
        match endpoint.map(|it| rank.operations[it.operation as usize].direction) {
            Some(Direction::Send) => "receives",
            Some(Direction::Receive) => "sends",
            _ => "takes part",
        }
    }

    fn circle(&self, circle: &[Waiting], blocked: &[Blocked], scenario: &Scenario) -> String {
        let mut infos = self.trace.ranks.iter().map(RankTrace::info);
        let ranks = ranks(blocked);
        let how = self.who_waits(circle, blocked);
        if let Some(info) = infos.find(|info| has_gaps(info)) {
            return format!(
                "the replay does not end: {ranks} wait for each other {how}, but the record of rank {} has gaps, so that \
                 this says nothing of the program",
                info.rank
            );
        }
        if scenario.is_identity() {
            return format!(
                "the replay of the run as it was does not end: {ranks} wait for each other {how}, as they did not in the \
                 run: its eager limit or the order of its receives is not what the replay takes it to be"
            );
        }
        let alone = if blocked.len() == 1 { "deadlocks with itself" } else { "deadlock" };
        let wildcard = circle.iter().any(|it| self.is_wildcard(it));
        let if_so = if wildcard { ", if receives from any source match as they did" } else { "" };
        format!("{} {ranks} {alone} {how}{if_so}", under(scenario))
    }

    /// "in MPI_Send at exchange ring.c:42, each until the other receives"
    pub fn who_waits(&self, circle: &[Waiting], blocked: &[Blocked]) -> String {
        let same = |index: usize| {
            let place = |it: &Blocked| (it.call.clone(), short(it));
            place(&blocked[index]) == place(&blocked[0])
                && self.verb(&circle[index]) == self.verb(&circle[0])
        };
        if (0..blocked.len()).all(same) {
            let verb = self.verb(&circle[0]);
            let until = match blocked.len() {
                1 => format!(", until it {verb}"),
                2 => format!(", each until the other {verb}"),
                _ => format!(", each until the next {verb}"),
            };
            return format!("in {}{until}", at(&blocked[0]));
        }
        let one = |(waiting, it): (&Waiting, &Blocked)| {
            let other = it.waits_for.first().map_or(String::new(), ToString::to_string);
            format!("rank {} in {} until rank {other} {}", it.rank, at(it), self.verb(waiting))
        };
        let told: Vec<String> = circle.iter().zip(blocked).take(TOLD).map(one).collect();
        let more = match blocked.len().saturating_sub(TOLD) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("({}{more})", told.join(", "))
    }

    fn is_wildcard(&self, waiting: &Waiting) -> bool {
        let rank = &self.trace.ranks[waiting.stuck.rank as usize];
        let endpoint = rank.endpoints.get(waiting.stuck.endpoint as usize);
        endpoint.is_some_and(|it| rank.operations[it.operation as usize].is_wildcard)
    }

    /// It waits for a rank that does not do what it waits for: no deadlock, as far as is known.
    fn missing(&mut self, waiting: &Waiting, scenario: &Scenario) -> String {
        let it = self.blocked(waiting);
        let begin = match scenario.is_identity() {
            true => "the replay of the run as it was does not end".to_owned(),
            false => format!("{} the replay does not end", under(scenario)),
        };
        let Some(&other) = waiting.ranks.first() else {
            return format!("{begin}: rank {} is in {} for ever", it.rank, at(&it));
        };
        let info = self.trace.ranks[other as usize].info();
        let why = incomplete(info).unwrap_or("has nothing of it");
        format!(
            "{begin}: rank {} is in {} until rank {} {}, whose record {why}; whether that is a deadlock is not known",
            it.rank,
            at(&it),
            info.rank,
            self.verb(waiting)
        )
    }
}

fn short(it: &Blocked) -> Option<String> {
    it.site.as_ref().map(|site| site.short())
}

/// "MPI_Send at exchange ring.c:42"
fn at(it: &Blocked) -> String {
    match short(it) {
        Some(site) => format!("{} at {site}", it.call),
        None => it.call.clone(),
    }
}

/// "ranks 0, 1 and 2"
pub(super) fn ranks(blocked: &[Blocked]) -> String {
    let mut names: Vec<String> = blocked.iter().take(TOLD).map(|it| it.rank.to_string()).collect();
    match blocked.len().saturating_sub(TOLD) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    let last = names.pop().unwrap_or_default();
    let several = plural(blocked.len() as u64);
    match names.is_empty() {
        true => format!("rank{several} {last}"),
        false => format!("rank{several} {} and {last}", names.join(", ")),
    }
}
