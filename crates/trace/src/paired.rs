//! A run, or a part of it, on its way to a [`Trace`]: its messages are paired, and what has to be known of the whole run
//! (clocks, collectives) is asked of each part and told to all.

use std::sync::Arc;

use super::cache::Cache;
use super::clock::{evidence, ClockEvidence, ClockFit, Settled};
use super::collective::{groups, meetings, CollectiveMembers, CommunicatorCollectives, Meetings};
use super::combine::{Combiner, Common};
use super::file::FileTrace;
use super::kept::KeptPart;
use super::lane::LaneKey;
use super::matching::{self, LaneOrder, Matched, Matching};
use super::roster::Roster;
use super::Trace;
use lapscope_data::places::Places;

/// Ranks with their messages paired by order and size.
pub struct Paired {
    trace: Trace,
    messages: PairedMessages,
    groups: Vec<CommunicatorCollectives>,
}

/// How messages were paired.
enum PairedMessages {
    Here(LanesMatched),
    /// In an earlier stage, on the same clocks, to this.
    Kept(Matching),
}

struct LanesMatched {
    lanes: Vec<LaneKey>,
    orders: Vec<LaneOrder>,
    matched: Vec<Matched>,
}

impl Paired {
    /// `focus`: places of the ranks that will be looked at; `None`: all. The others that were read are there for their sake.
    pub(super) fn new(
        files: Vec<FileTrace>,
        roster: Arc<Roster>,
        places: Arc<Places>,
        focus: Option<&[u32]>,
    ) -> Paired {
        let (trace, Common { lanes, communicators }) = combined(files, roster, places, focus);
        Paired::match_messages(trace, lanes, &communicators)
    }

    /// The ranks at `places`, read for the sake of `focus`, on these clocks; kept so.
    pub(super) fn of_part(
        files: Vec<FileTrace>,
        (roster, all): (&Arc<Roster>, &Arc<Places>),
        (focus, clocks): (&[u32], &Settled),
        (places, cache): (&[u32], Option<&Cache>),
    ) -> Paired {
        let mut part = Paired::new(files, Arc::clone(roster), Arc::clone(all), Some(focus));
        part.set_clocks(clocks);
        if let Some(cache) = cache {
            let of_messages = (&part.groups[..], part.matching());
            KeptPart::keep(cache, (focus, clocks), (&part.trace, places), of_messages);
        }
        part
    }

    /// What [`Paired::of_part`] kept.
    pub(super) fn of_kept(
        cache: &Cache,
        (roster, all): (&Arc<Roster>, &Arc<Places>),
        (focus, clocks): (&[u32], &Settled),
    ) -> Option<Paired> {
        let kept = KeptPart::get(cache, focus, clocks)?;
        let mut part = Paired::new(Vec::new(), Arc::clone(roster), Arc::clone(all), Some(focus));
        part.set_clocks(clocks);
        let (matching, groups) = kept.fill(&mut part.trace);
        Some(Paired { messages: PairedMessages::Kept(matching), groups, ..part })
    }

    /// Matches messages and collectives of ranks whose operations know their lanes.
    pub(super) fn match_messages(
        mut trace: Trace,
        lanes: Vec<LaneKey>,
        communicators: &[(i64, i64, i64)],
    ) -> Paired {
        let orders = matching::orders(&trace.ranks, &lanes);
        let matched = matching::pair(&mut trace.ranks, &lanes, &orders);
        let groups = groups(communicators, &lanes, &orders);
        let messages = PairedMessages::Here(LanesMatched { lanes, orders, matched });
        Paired { trace, messages, groups }
    }

    /// Whether all ranks of the run are.
    pub fn is_on_one_node(&self) -> bool {
        self.trace.ranks.iter().all(|rank| rank.node == 0)
    }

    /// What its focus says of clocks, with the ranks of the nodes `split` as clocks of their own.
    pub fn clock_evidence(&self, split: &[u32]) -> ClockEvidence {
        evidence(&self.trace, &self.groups, split)
    }

    /// Puts all moments on one clock, and takes apart messages that contradict it.
    pub fn set_clocks(&mut self, settled: &Settled) {
        settled.apply(&mut self.trace.ranks);
        self.trace.clocks = settled.clocks.clone();
        if let PairedMessages::Here(LanesMatched { lanes, orders, matched }) = &mut self.messages {
            matching::verify(&mut self.trace.ranks, lanes, orders, matched);
        }
    }

    /// What its focus says of collectives; behind [`Paired::set_clocks`], as the next.
    pub fn meetings(&self) -> Meetings {
        meetings(&self.trace, &self.groups)
    }

    /// How much of the messages that its focus sent was matched.
    pub fn matching(&self) -> Matching {
        match &self.messages {
            PairedMessages::Here(LanesMatched { lanes, orders, matched }) => {
                matching::count(&self.trace, lanes, orders, matched)
            }
            PairedMessages::Kept(matching) => matching.clone(),
        }
    }

    /// How many endpoints the ranks in its focus have.
    pub fn endpoints(&self) -> u64 {
        self.trace.focus().map(|place| self.trace.ranks[place].endpoints.len() as u64).sum()
    }

    /// The trace, with the collectives and the matching of the whole run.
    pub fn finish(mut self, meetings: &Meetings, matching: Matching) -> Trace {
        self.trace.join_meetings(&mut self.groups, meetings);
        self.trace.members = CollectiveMembers::new(self.groups);
        self.trace.matching = matching;
        self.trace.find_targets();
        self.trace.find_message_waits();
        self.trace
    }

    /// All ranks are there: nothing has to be asked of others.
    pub(super) fn settle(mut self) -> Trace {
        let mut split = Vec::new();
        let settled = loop {
            match Settled::fit(&self.trace.ranks, &split, self.clock_evidence(&split)) {
                ClockFit::Settled(settled) => break settled,
                ClockFit::Split(nodes) => split = nodes,
            }
        };
        self.set_clocks(&settled);
        let (meetings, matching) = (self.meetings(), self.matching());
        self.finish(&meetings, matching)
    }
}

/// Ranks put together, on the clocks of their nodes.
fn combined(
    files: Vec<FileTrace>,
    roster: Arc<Roster>,
    places: Arc<Places>,
    focus: Option<&[u32]>,
) -> (Trace, Common) {
    let is_starved = roster.is_starved();
    let mut trace = Trace { places, is_starved, ..Trace::default() };
    trace.focus = focus.map(|focus| {
        let mut is_in = vec![false; roster.ranks().len()];
        focus.iter().for_each(|&place| is_in[place as usize] = true);
        is_in
    });
    let combiner = Combiner::new(&Arc::clone(&trace.places), &roster, &mut trace);
    let common = combiner.combine(files, &mut trace);
    trace.roster = roster;
    (trace, common)
}
