//! The messages between two ranks, there and back.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Scan, TimedMessage, Traffic, Vote, Votes};

/// A train of fewer messages has no middle.
const LONG: usize = 3;
/// A source that computes no more within a train than this share of what it computes from there to the next one sends one
/// message in parts.
const IN_PARTS: f64 = 0.05;
/// Two ranks compute at the same time when they do so for this share of the computation of the one that computes less ...
const TOGETHER: f64 = 2.0 / 3.0;
/// ... and when that one computes at least this share of what the other does.
const COMPARABLE: f64 = 0.1;

/// Where neither computes for this share of the time in between, nothing tells what an answer depends on.
const IDLE: f64 = 0.05;

/// Messages in one direction, with nothing in the other direction and no collective in between.
struct Train {
    /// The range of [`Between::messages`].
    messages: Range<usize>,
    phase: usize,
    /// Train of the other direction that comes next, and of this one.
    answer: Option<usize>,
    next: Option<usize>,
}

pub struct Between<'t> {
    traffic: &'t Traffic<'t>,
    messages: Vec<TimedMessage>,
    trains: Vec<Train>,
}

impl<'t> Between<'t> {
    /// Takes the messages between two ranks.
    pub fn new(traffic: &'t Traffic<'t>, places: &[u32]) -> Between<'t> {
        let messages: Vec<TimedMessage> =
            places.iter().map(|&place| traffic.messages[place as usize]).collect();
        let mut trains: Vec<Train> = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            let phase = traffic.phase(message.source, message.sent);
            match trains.last_mut() {
                Some(train)
                    if train.phase == phase
                        && messages[train.messages.start].source == message.source =>
                {
                    train.messages.end = place + 1;
                }
                _ => trains.push(Train {
                    messages: place..place + 1,
                    phase,
                    answer: None,
                    next: None,
                }),
            }
        }
        let mut between = Between { traffic, messages, trains };
        between.link();
        between
    }

    fn link(&mut self) {
        // by the lower and the higher rank
        let mut behind: [Option<usize>; 2] = [None; 2];
        for place in (0..self.trains.len()).rev() {
            let first = self.first(place);
            let is_down = usize::from(first.source > first.destination);
            self.trains[place].next = behind[is_down];
            self.trains[place].answer = behind[1 - is_down];
            behind[is_down] = Some(place);
        }
    }

    fn first(&self, train: usize) -> &TimedMessage {
        &self.messages[self.trains[train].messages.start]
    }

    /// What the messages tell, by pair of sites. Trains that do not cross others are looked at one by one: so many, evenly
    /// spread.
    pub fn votes(&self, scan: &Scan<'_>, looks: usize) -> FxHashMap<u32, Votes> {
        let crossing = self.crossing();
        let is_open = |train: &Train| !train.messages.clone().all(|place| crossing[place]);
        let open = self.trains.iter().filter(|train| is_open(train)).count();
        let every = open.div_ceil(looks.max(1)).max(1);
        let mut seen = 0;
        let mut votes: FxHashMap<u32, Votes> = FxHashMap::default();
        for (place, train) in self.trains.iter().enumerate() {
            let is_open = is_open(train);
            let is_looked_at = is_open && looks > 0 && seen % every == 0;
            seen += usize::from(is_open);
            let vote = is_looked_at.then(|| self.look(place, scan));
            for place in train.messages.clone() {
                let vote = if crossing[place] { Some(Some(Vote::Concurrent)) } else { vote };
                if let Some(vote) = vote {
                    votes.entry(self.messages[place].pair).or_default().add(vote);
                }
            }
        }
        votes
    }

    fn look(&self, train: usize, scan: &Scan<'_>) -> Option<Vote> {
        let is_long = self.trains[train].messages.len() >= LONG && !self.is_in_parts(train);
        if is_long {
            Some(self.long(train, scan))
        } else {
            self.short(train, scan)
        }
    }

    /// Which messages cross the nearest one of the other direction.
    fn crossing(&self) -> Vec<bool> {
        let mut crossing = vec![false; self.messages.len()];
        for pair in self.trains.windows(2) {
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

    fn is_in_parts(&self, train: usize) -> bool {
        let (first, last) =
            (self.first(train), &self.messages[self.trains[train].messages.end - 1]);
        let next = self.trains[train].next.map(|next| self.first(next).sent);
        next.is_some_and(|next| {
            let within = self.computes(first.source, first.sent, last.sent);
            within <= IN_PARTS * self.computes(first.source, last.sent, next)
        })
    }

    /// A train that is one message, or too short to have a middle.
    fn short(&self, train: usize, scan: &Scan<'_>) -> Option<Vote> {
        let (first, last) =
            (self.first(train), &self.messages[self.trains[train].messages.end - 1]);
        let next = self.first(self.trains[train].next?);
        let (source, destination) = (first.source, first.destination);
        let answered = self.trains[train].answer.map(|answer| self.first(answer));
        let is_answered = answered
            .is_some_and(|answer| answer.sent >= last.received && answer.received <= next.sent);
        if is_answered || scan.follows(destination, source, last.received, next.sent) {
            return self.in_turns(source, destination, first.sent, next.sent);
        }
        // others post in the same step, a little before or behind
        let half = (next.sent - first.sent) / 2;
        let leads = scan.leads(destination, source, first.sent - half, first.sent + half);
        leads.then_some(Vote::Concurrent)
    }

    /// Whether two ranks that answer each other have to.
    fn in_turns(&self, a: u32, b: u32, begin: i64, end: i64) -> Option<Vote> {
        let (of_a, of_b) = (self.computes(a, begin, end), self.computes(b, begin, end));
        let [a, b] = [a, b].map(|rank| self.traffic.presence[rank as usize]);
        let (less, more) = (of_a.min(of_b), of_a.max(of_b));
        if more < IDLE * (end - begin) as f64 {
            None
        } else if less > COMPARABLE * more
            && a.outside_both(b, begin, end) as f64 >= TOGETHER * less
        {
            Some(Vote::Concurrent)
        } else {
            Some(Vote::Dependent)
        }
    }

    fn long(&self, train: usize, scan: &Scan<'_>) -> Vote {
        let messages = &self.messages[self.trains[train].messages.clone()];
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
