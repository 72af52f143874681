//! One walk through the requests of some ranks, and everything that is learned on the way.

use serde::{Deserialize, Serialize};

use crate::pictures::{Drawn, Painter};
use lapscope_advise::advice::{Gathered, Gatherer};
use lapscope_data::model::Rank;
use lapscope_measure::left_over::LeftOverSums;
use lapscope_measure::overlap::{EagerLimits, Measured, Measuring};
use lapscope_measure::reference::Reference;
use lapscope_measure::steps::{Plan, StepSums, Stepper};
use lapscope_measure::unexpected::{KeptLimits, KeptSums};
use lapscope_trace::Trace;

/// What is to be learned besides overlap.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct FindingsChoice {
    pub advice: bool,
    pub pictures: bool,
    /// What each step and region took.
    pub steps: bool,
    /// Messages that MPI kept for late receives, and what was left over at the end.
    pub kept: bool,
}

/// What a run is measured by.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    pub reference: &'a Reference,
    /// Which sends wait for nobody.
    pub eager: EagerLimits,
    /// Up to which size messages may be kept.
    pub kept: KeptLimits,
    /// How steps are told; `None`: not asked for, or none were found.
    pub steps: Option<&'a Plan>,
}

/// What was learned of some ranks. What was not wanted is empty.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Findings {
    pub measured: Measured,
    pub gathered: Gathered,
    pub drawn: Drawn,
    pub steps: StepSums,
    pub kept: KeptSums,
    pub left_over: LeftOverSums,
}

/// Looks at every request of `ranks`, or of all, once; `progress` is told how many
/// more requests were done.
pub fn find(
    trace: &Trace,
    By { reference, eager, kept, steps }: By<'_>,
    ranks: &[Rank],
    wanted: FindingsChoice,
    progress: &(dyn Fn(u64) + Sync),
) -> Findings {
    let of_run = (trace.roster.rows(), trace.run_ns());
    let witness = |rank| {
        (
            wanted.advice.then(|| Gatherer::new(trace, rank, of_run)),
            wanted.pictures.then(|| Painter::new(trace, rank)),
            wanted.steps.then(|| Stepper::new(trace, rank, steps)),
        )
    };
    let learned =
        |(gatherer, painter, stepper): (Option<Gatherer>, Option<Painter>, Option<Stepper>)| {
            Findings {
                gathered: gatherer.map(Gatherer::finish).unwrap_or_default(),
                drawn: painter.map(Painter::finish).unwrap_or_default(),
                steps: stepper.map(Stepper::finish).unwrap_or_default(),
                ..Findings::default()
            }
        };
    let (measured, findings) = Measuring { trace, reference, eager, ranks, progress }
        .learn(witness, (learned, Findings::merge));
    let mut findings = Findings { measured, ..findings };
    if wanted.kept {
        findings.kept = KeptSums::collect(trace, kept, ranks);
        findings.left_over = LeftOverSums::collect(trace, ranks);
    }
    findings
}

impl Findings {
    /// Adds what was found of other ranks.
    #[must_use]
    pub fn merge(mut self, other: Findings) -> Findings {
        self.gathered.merge(other.gathered);
        self.drawn.merge(other.drawn);
        self.steps.merge(other.steps);
        self.kept.merge(other.kept);
        self.left_over.merge(other.left_over);
        Findings { measured: self.measured.merge(other.measured), ..self }
    }
}
