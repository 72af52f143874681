//! The messages between two ranks, there and back.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Message, Scan, Traffic, Vote, Votes};

/// A run of fewer messages has no middle.
const LONG: usize = 3;
/// A source that computes no more within a run than this share of what it computes from there to the next run sends one
/// message in parts.
const IN_PARTS: f64 = 0.05;
/// Two ranks compute at the same time when they do so for this share of the computation of the one that computes less ...
const TOGETHER: f64 = 2.0 / 3.0;
/// ... and when that one computes at least this share of what the other does.
const COMPARABLE: f64 = 0.1;

/// Messages in one direction, with nothing in the other direction and no collective in between.
struct Run {
    /// Of [`Between::messages`].
    messages: Range<usize>,
    phase: usize,
    /// Run of the other direction that comes next, and of this one.
    answer: Option<usize>,
    next: Option<usize>,
}

pub struct Between<'t> {
    traffic: &'t Traffic<'t>,
    messages: Vec<Message>,
    runs: Vec<Run>,
}

impl<'t> Between<'t> {
    /// Of the messages between two ranks.
    pub fn new(traffic: &'t Traffic<'t>, places: &[u32]) -> Between<'t> {
        let messages: Vec<Message> =
            places.iter().map(|&place| traffic.messages[place as usize]).collect();
        let mut runs: Vec<Run> = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            let phase = traffic.phase(message.source, message.sent);
            match runs.last_mut() {
                Some(run)
                    if run.phase == phase
                        && messages[run.messages.start].source == message.source =>
                {
                    run.messages.end = place + 1;
                }
                _ => runs.push(Run { messages: place..place + 1, phase, answer: None, next: None }),
            }
        }
        let mut between = Between { traffic, messages, runs };
        between.link();
        between
    }

    fn link(&mut self) {
        // by the lower and the higher rank
        let mut behind: [Option<usize>; 2] = [None; 2];
        for place in (0..self.runs.len()).rev() {
            let first = self.first(place);
            let is_down = usize::from(first.source > first.destination);
            self.runs[place].next = behind[is_down];
            self.runs[place].answer = behind[1 - is_down];
            behind[is_down] = Some(place);
        }
    }

    fn first(&self, run: usize) -> &Message {
        &self.messages[self.runs[run].messages.start]
    }

    /// What the messages tell, by pair of sites. Runs that do not cross others are looked at one by one: so many, evenly
    /// spread.
    pub fn votes(&self, scan: &Scan<'_>, looks: usize) -> FxHashMap<u32, Votes> {
        let crossing = self.crossing();
        let is_open = |run: &Run| !run.messages.clone().all(|place| crossing[place]);
        let open = self.runs.iter().filter(|run| is_open(run)).count();
        let every = open.div_ceil(looks.max(1)).max(1);
        let mut seen = 0;
        let mut votes: FxHashMap<u32, Votes> = FxHashMap::default();
        for (place, run) in self.runs.iter().enumerate() {
            let mut vote = None;
            if is_open(run) {
                if looks > 0 && seen % every == 0 {
                    vote = self.look(place, scan);
                }
                seen += 1;
            }
            for place in run.messages.clone() {
                let vote = if crossing[place] { Some(Vote::Concurrent) } else { vote };
                if let Some(vote) = vote {
                    votes.entry(self.messages[place].pair).or_default().add(vote, 1);
                }
            }
        }
        votes
    }

    fn look(&self, run: usize, scan: &Scan<'_>) -> Option<Vote> {
        let is_long = self.runs[run].messages.len() >= LONG && !self.is_in_parts(run);
        if is_long {
            Some(self.long(run, scan))
        } else {
            self.short(run, scan)
        }
    }

    /// Which messages cross the nearest one of the other direction.
    fn crossing(&self) -> Vec<bool> {
        let mut crossing = vec![false; self.messages.len()];
        for pair in self.runs.windows(2) {
            let [before, after] = pair else { continue };
            let (last, first) =
                (self.messages[before.messages.end - 1], self.messages[after.messages.start]);
            if last.source == first.source {
                continue; // a collective came between
            }
            for place in before.messages.clone() {
                crossing[place] |= first.sent < self.messages[place].received;
            }
            for place in after.messages.clone() {
                crossing[place] |= self.messages[place].sent < last.received;
            }
        }
        crossing
    }

    /// What a rank computes.
    fn computes(&self, rank: u32, begin: i64, end: i64) -> f64 {
        self.traffic.presence[rank as usize].outside(begin, end) as f64
    }

    fn is_in_parts(&self, run: usize) -> bool {
        let (first, last) = (self.first(run), &self.messages[self.runs[run].messages.end - 1]);
        let next = self.runs[run].next.map(|next| self.first(next).sent);
        next.is_some_and(|next| {
            let within = self.computes(first.source, first.sent, last.sent);
            within <= IN_PARTS * self.computes(first.source, last.sent, next)
        })
    }

    /// A run that is one message, or too short to have a middle.
    fn short(&self, run: usize, scan: &Scan<'_>) -> Option<Vote> {
        let (first, last) = (self.first(run), &self.messages[self.runs[run].messages.end - 1]);
        let next = self.first(self.runs[run].next?);
        let (source, destination) = (first.source, first.destination);
        let answered = self.runs[run].answer.map(|answer| self.first(answer));
        let is_answered = answered
            .is_some_and(|answer| answer.sent >= last.received && answer.received <= next.sent);
        if is_answered || scan.follows(destination, source, last.received, next.sent) {
            let is_together = self.compute_together(source, destination, first.sent, next.sent);
            return Some(if is_together { Vote::Concurrent } else { Vote::Dependent });
        }
        scan.leads(destination, source, first.sent, next.sent).then_some(Vote::Concurrent)
    }

    fn compute_together(&self, a: u32, b: u32, begin: i64, end: i64) -> bool {
        let (of_a, of_b) = (self.computes(a, begin, end), self.computes(b, begin, end));
        let [a, b] = [a, b].map(|rank| self.traffic.presence[rank as usize]);
        let less = of_a.min(of_b);
        less > COMPARABLE * of_a.max(of_b)
            && a.outside_both(b, begin, end) as f64 >= TOGETHER * less
    }

    fn long(&self, run: usize, scan: &Scan<'_>) -> Vote {
        let messages = &self.messages[self.runs[run].messages.clone()];
        let (first, last) = (&messages[0], &messages[messages.len() - 1]);
        let (source, destination) = (first.source, first.destination);
        let middle = (messages.len() - 1) / 2;
        let (at, next) = (&messages[middle], &messages[middle + 1]);
        if scan.follows(destination, source, at.received, next.sent) {
            return Vote::Dependent;
        }
        let quarter = (last.received - first.sent) / 4;
        match scan.leads(destination, source, first.sent + quarter, last.received - quarter) {
            true => Vote::Concurrent,
            false => Vote::Pipelined,
        }
    }
}
