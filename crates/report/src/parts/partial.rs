//! What parts are asked, and what they answer. Both go to other processes as CBOR ([`super::wire`]); `docs/parts.md` describes them.

use std::sync::Arc;

use anyhow::{bail, Result};
use serde::{Deserialize, Serialize};

use crate::findings::{find, By, Findings, FindingsChoice};
use lapscope_data::db::FileDefinitions;
use lapscope_data::model::Rank;
use lapscope_measure::overlap::EagerLimits;
use lapscope_measure::reference::{Reference, Samples};
use lapscope_measure::steps::{Plan, StepCounts, StepRule};
use lapscope_measure::thresholds::ThresholdEvidence;
use lapscope_measure::unexpected::KeptLimits;
use lapscope_trace::sums::aggregate::FileSums;
use lapscope_trace::{clock, Matching, Meetings, Paired, Settled, Stretch};

/// What a stage asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Stage {
    /// Sums by site: of the files of the part's ranks, without looking at the other ends of messages.
    Sums,
    /// What messages say of clocks, with the ranks of these nodes as clocks of their own.
    Clocks { split: Vec<u32> },
    /// When members of collectives came, and how much was matched.
    Meetings,
    /// Transfers with nothing in between; how many steps there are by this rule.
    Samples { steps: Option<StepRule> },
    /// Which sends waited for their receivers.
    Thresholds { ranks: Vec<Rank>, in_stretch: bool },
    /// How many steps there are, and where those lie that were asked for: the first and the last of so many.
    Steps { rule: StepRule, asked: Option<(u64, u64, u64)> },
    /// What was overlapped, and what was waited for.
    Overlap { ranks: Vec<Rank>, wanted: FindingsChoice },
}

/// What earlier stages came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EarlierStages {
    pub clocks: Settled,
    pub meetings: Meetings,
    pub matching: Matching,
    pub reference: Reference,
    pub eager: EagerLimits,
    pub kept: KeptLimits,
    /// What of the run counts; `None`: all of it.
    pub stretch: Option<Stretch>,
    pub steps: Option<Plan>,
}

/// A stage with what is known by then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    pub stage: Stage,
    pub known: Arc<EarlierStages>,
}

/// What collectives and messages were matched to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Matches {
    pub meetings: Meetings,
    pub matching: Matching,
    /// Requests, blocking messages and collectives.
    pub endpoints: u64,
}

impl Matches {
    fn merge(self, other: Matches) -> Matches {
        Matches {
            meetings: self.meetings.merge(other.meetings),
            matching: self.matching.merge(other.matching),
            endpoints: self.endpoints + other.endpoints,
        }
    }
}

/// What some ranks answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Partial {
    Sums(Vec<(FileDefinitions, FileSums)>),
    /// With what the next stage asks, where all ranks are on one node: as a rule that is one clock.
    Clocks(clock::ClockEvidence, Option<Box<Matches>>),
    Meetings(Box<Matches>),
    Samples(Samples, Option<StepCounts>),
    Thresholds(ThresholdEvidence),
    Steps(StepCounts),
    Overlap(Box<Findings>),
    /// Files that could not be read, and why: the run has to be looked at without them.
    Unreadable(Vec<(std::path::PathBuf, String)>),
}

impl Question {
    /// What the ranks in the focus of `part` answer.
    pub fn ask(&self, mut part: Paired) -> Partial {
        let EarlierStages { clocks, meetings, matching, reference, eager, kept, stretch, steps } =
            &*self.known;
        let found = |part: &Paired| {
            let (meetings, matching) = (part.meetings(), part.matching());
            Box::new(Matches { meetings, matching, endpoints: part.endpoints() })
        };
        if let Stage::Clocks { split } = &self.stage {
            let evidence = part.clock_evidence(split);
            let is_one = part.is_on_one_node() && split.is_empty();
            let found = is_one.then(|| {
                part.set_clocks(clocks);
                found(&part)
            });
            return Partial::Clocks(evidence, found);
        }
        if let Stage::Meetings = self.stage {
            return Partial::Meetings(found(&part));
        }
        let mut trace = part.finish(meetings, matching.clone());
        trace.stretch.clone_from(stretch);
        let is_nothing = &|_| ();
        match &self.stage {
            Stage::Samples { steps } => {
                let steps = steps.as_ref().map(|rule| StepCounts::count(&trace, rule, None));
                Partial::Samples(Samples::collect(&trace, |_| true), steps)
            }
            Stage::Thresholds { ranks, in_stretch } => Partial::Thresholds(
                ThresholdEvidence::collect(&trace, reference, ranks, *in_stretch),
            ),
            Stage::Steps { rule, asked } => Partial::Steps(StepCounts::count(&trace, rule, *asked)),
            Stage::Overlap { ranks, wanted } => {
                let by = By { reference, eager: *eager, kept: *kept, steps: steps.as_ref() };
                let findings = find(&trace, by, ranks, *wanted, is_nothing);
                Partial::Overlap(Box::new(findings))
            }
            Stage::Sums | Stage::Clocks { .. } | Stage::Meetings => {
                unreachable!("answered without the other ends")
            }
        }
    }
}

impl Partial {
    /// Puts two answers to one question together.
    ///
    /// # Errors
    /// They answer different questions.
    pub fn merge(self, other: Partial) -> Result<Partial> {
        Ok(match (self, other) {
            (Partial::Sums(mut a), Partial::Sums(b)) => {
                a.extend(b);
                Partial::Sums(a)
            }
            (Partial::Clocks(a, c), Partial::Clocks(b, d)) => {
                let found = c.zip(d).map(|(c, d)| Box::new(c.merge(*d)));
                Partial::Clocks(a.merge(b), found)
            }
            (Partial::Meetings(a), Partial::Meetings(b)) => {
                Partial::Meetings(Box::new(a.merge(*b)))
            }
            (Partial::Samples(a, c), Partial::Samples(b, d)) => {
                Partial::Samples(a.merge(b), c.zip(d).map(|(c, d)| c.merge(d)))
            }
            (Partial::Thresholds(a), Partial::Thresholds(b)) => Partial::Thresholds(a.merge(b)),
            (Partial::Steps(a), Partial::Steps(b)) => Partial::Steps(a.merge(b)),
            (Partial::Overlap(a), Partial::Overlap(b)) => Partial::Overlap(Box::new(a.merge(*b))),
            (Partial::Unreadable(mut a), Partial::Unreadable(b)) => {
                a.extend(b);
                Partial::Unreadable(a)
            }
            (unreadable @ Partial::Unreadable(_), _) | (_, unreadable @ Partial::Unreadable(_)) => {
                unreadable
            }
            _ => bail!("partial results of different stages cannot be put together"),
        })
    }
}
