//! Plays programs of ranks that compute, send and receive.

use std::collections::{HashMap, VecDeque};

use lapscope_fixture::random::Random;

use super::super::{Pattern, TimedMessage, Traffic, Votes};
use lapscope_trace::Presence;

/// Nanoseconds that a message travels, and in a call.
const LATENCY: i64 = 2_000;
const IN_CALL: i64 = 300;

/// What a rank does next.
#[derive(Debug, Clone, Copy)]
pub enum Do {
    /// About so many nanoseconds.
    Compute(i64),
    /// Returns at once.
    Send(usize),
    /// Returns when the receive has begun.
    SendSync(usize),
    Receive(usize),
    Collective,
}

/// A program: what each rank does.
pub struct Program(pub Vec<Vec<Do>>);

impl Program {
    pub fn for_ranks(ranks: usize, of: impl Fn(usize) -> Vec<Do>) -> Program {
        Program((0..ranks).map(of).collect())
    }

    /// The pattern of each two ranks that communicate, by source and destination.
    pub fn patterns(&self) -> HashMap<(usize, usize), Pattern> {
        let ranks = self.0.len();
        let played = Machine::new(self).play();
        let of = |(pair, votes): (u32, Votes)| {
            ((pair as usize / ranks, pair as usize % ranks), votes.pattern())
        };
        played.traffic().votes().into_iter().map(of).collect()
    }

    /// The pattern of all messages together, as if of one pair of sites.
    pub fn pattern(&self) -> Pattern {
        self.votes().pattern()
    }

    pub fn votes(&self) -> Votes {
        let played = Machine::new(self).play();
        let mut all = Votes::default();
        played.traffic().votes().into_values().for_each(|votes| all.merge(votes));
        all
    }
}

/// How far a rank is.
#[derive(Default)]
struct Rank {
    next: usize,
    now: i64,
    calls: Vec<(i64, i64)>,
    collectives: Vec<i64>,
}

struct Machine<'p> {
    program: &'p Program,
    ranks: Vec<Rank>,
    /// Moments of messages under way, by source and destination.
    under_way: HashMap<(usize, usize), VecDeque<i64>>,
    random: Random,
    messages: Vec<TimedMessage>,
}

pub struct Played {
    messages: Vec<TimedMessage>,
    collectives: Vec<Vec<i64>>,
    presence: Vec<Presence>,
}

impl Played {
    pub fn traffic(&self) -> Traffic<'_> {
        let mut messages = self.messages.clone();
        messages.sort_by_key(|message| message.sent);
        Traffic {
            messages,
            collectives: self.collectives.clone(),
            presence: self.presence.iter().collect(),
        }
    }
}

impl<'p> Machine<'p> {
    fn new(program: &'p Program) -> Machine<'p> {
        let ranks = program.0.iter().map(|_| Rank::default()).collect();
        let (under_way, messages) = (HashMap::new(), Vec::new());
        Machine { program, ranks, under_way, random: Random(7), messages }
    }

    fn play(mut self) -> Played {
        loop {
            let stepped: Vec<bool> = (0..self.ranks.len()).map(|rank| self.step(rank)).collect();
            if !stepped.contains(&true) && !self.collect() {
                break;
            }
        }
        for (rank, does) in self.ranks.iter().zip(&self.program.0) {
            assert_eq!(rank.next, does.len(), "a rank waits for ever");
        }
        let presence = self.ranks.iter().map(|rank| Presence::new(rank.calls.clone())).collect();
        let collectives = self.ranks.into_iter().map(|rank| rank.collectives).collect();
        Played { messages: self.messages, collectives, presence }
    }

    fn next(&self, rank: usize) -> Option<Do> {
        self.program.0[rank].get(self.ranks[rank].next).copied()
    }

    /// Lets a rank do what it can.
    fn step(&mut self, rank: usize) -> bool {
        let now = self.ranks[rank].now;
        let end = match self.next(rank) {
            Some(Do::Compute(ns)) => {
                self.ranks[rank].now += ns * (90 + self.random.below(20)) / 100;
                self.ranks[rank].next += 1;
                return true;
            }
            Some(Do::Send(to)) => {
                self.under_way.entry((rank, to)).or_default().push_back(now);
                now + IN_CALL
            }
            Some(Do::SendSync(to)) => match self.next(to) {
                Some(Do::Receive(from)) if from == rank && !self.has(rank, to) => {
                    self.under_way.entry((rank, to)).or_default().push_back(now);
                    now.max(self.ranks[to].now) + IN_CALL
                }
                _ => return false,
            },
            Some(Do::Receive(from)) => {
                let sent = self.under_way.entry((from, rank)).or_default().pop_front();
                let Some(sent) = sent else { return false };
                let received = now.max(sent + LATENCY) + IN_CALL;
                self.messages.push(TimedMessage {
                    source: from as u32,
                    destination: rank as u32,
                    sent,
                    received,
                    pair: (from * self.ranks.len() + rank) as u32,
                });
                received
            }
            Some(Do::Collective) | None => return false,
        };
        self.end(rank, end);
        true
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.under_way.get(&(from, to)).is_some_and(|messages| !messages.is_empty())
    }

    fn end(&mut self, rank: usize, end: i64) {
        let rank = &mut self.ranks[rank];
        rank.calls.push((rank.now, end));
        rank.now = end;
        rank.next += 1;
    }

    /// Lets all ranks out of a collective, when all are in one.
    fn collect(&mut self) -> bool {
        let are_in =
            (0..self.ranks.len()).all(|rank| matches!(self.next(rank), Some(Do::Collective)));
        if are_in {
            let end = self.ranks.iter().map(|rank| rank.now).max().unwrap_or(0) + LATENCY;
            for rank in 0..self.ranks.len() {
                let now = self.ranks[rank].now;
                self.ranks[rank].collectives.push(now);
                self.end(rank, end);
            }
        }
        are_in
    }
}
