//! The overlap of a run.

use anyhow::Result;
use serde::Serialize;

use super::filters::check_ranks;
use super::view::View;
use super::OpenRun;
use crate::findings::{Findings, FindingsChoice};
use lapscope_advise::measures_in_words;
use lapscope_advise::problem::module_problems;
use lapscope_data::places::group::Grouping;
use lapscope_measure::alike::Alike;
use lapscope_measure::injection::Injection;
use lapscope_measure::overlap::{EagerLimits, Overlap, OverlapOptions};
use lapscope_measure::reference::Reference;
use lapscope_measure::unexpected::KeptLimits;

/// What `lapscope overlap` says. Keys are documented in `docs/json.md`.
#[derive(Debug, Serialize)]
pub struct OverlapDocument {
    #[serde(flatten)]
    pub overlap: Overlap,
    /// Which ranks did alike, and which stand apart.
    pub alike: Alike,
    /// Where a rank was asked to inject.
    pub injection: Option<Injection>,
}

/// A run, and what it is measured by.
pub struct Prepared {
    pub view: View,
    pub reference: Reference,
    pub eager: EagerLimits,
    /// Sentences about the reference times.
    pub notes: Vec<String>,
}

/// Opens a run, its call sites by line, and finds reference times.
///
/// # Errors
/// As [`build`].
pub fn prepare(open: &mut OpenRun) -> Result<Prepared> {
    let (mut view, _) = View::open(open, Grouping::Line, false)?;
    let own = view.own_reference(false)?;
    let (reference, notes) = open.reference_times(&view.trace, own)?;
    let eager =
        EagerLimits::from_thresholds(&view.thresholds(&reference, &[], Vec::new(), false)?);
    Ok(Prepared { view, reference, eager, notes })
}

/// # Errors
/// No file of the run can be read, it has none of these ranks, or the reference times cannot be read.
pub fn build(open: &mut OpenRun, options: OverlapOptions<'_>) -> Result<OverlapDocument> {
    let (mut view, _) = View::open(open, Grouping::Line, false)?;
    let known = view.trace.ranks.iter().map(|trace| trace.info().rank);
    check_ranks("--ranks", options.ranks.iter().copied(), known, &open.name())?;
    let own = view.own_reference(false)?;
    let (reference, notes) = open.reference_times(&view.trace, own)?;
    let eager =
        EagerLimits::from_thresholds(&view.thresholds(&reference, &[], Vec::new(), false)?);
    let Findings { measured, .. } = view.find(
        &reference,
        (eager, KeptLimits::default()),
        options.ranks,
        FindingsChoice::default(),
    )?;
    let (trace, stretch) = (view.trace, view.stretch);
    let name = open.name();
    let names = &mut open.symbols;
    let mut overlap = Overlap::build(&name, &trace, &reference, &measured, options, names);
    overlap.stretch = stretch;
    let injection = open.injection_counted(options.ranks);
    overlap.problems = open.problems(&[]);
    overlap.problems.extend(module_problems(open.symbols.troubles()));
    measures_in_words::fill(&mut overlap);
    overlap.reference.notes.extend(notes);
    let alike = Alike::of_overlap(&overlap.ranks);
    Ok(OverlapDocument { overlap, alike, injection })
}
