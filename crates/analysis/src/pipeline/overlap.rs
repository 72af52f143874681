//! The overlap of a run.

use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use serde::Serialize;

use super::filters::check_ranks;
use super::view::View;
use super::OpenRun;
use crate::alike::Alike;
use crate::calibration::{self, Calibration};
use crate::findings::{Findings, Wanted};
use crate::injection::Injection;
use crate::overlap::{EagerLimits, Options, Overlap};
use crate::problem::module_problems;
use crate::reference::{Reference, Source};
use lapscope_data::places::group::Grouping;

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

/// Opens a run, its call sites by line, and finds reference times: `wanted` as for [`build`].
///
/// # Errors
/// As [`build`].
pub fn prepare(open: &mut OpenRun, wanted: Option<&str>) -> Result<Prepared> {
    let (mut view, _) = View::open(open, Grouping::Line, false)?;
    let (reference, notes) = reference(wanted, &mut view, &open.files.databases)?;
    let eager = EagerLimits::of(&view.thresholds(&reference, &[], Vec::new(), false)?);
    Ok(Prepared { view, reference, eager, notes })
}

/// By the reference times that `wanted` names: `run`, `calibration`, or a file; else those that fit.
///
/// # Errors
/// No file of the run can be read, it has none of these ranks, or the reference times cannot be read.
pub fn build(
    open: &mut OpenRun,
    wanted: Option<&str>,
    options: Options<'_>,
) -> Result<OverlapDocument> {
    let (mut view, _) = View::open(open, Grouping::Line, false)?;
    let known = view.trace.ranks.iter().map(|trace| trace.info().rank);
    check_ranks("--rank", options.ranks.iter().copied(), known, &open.name())?;
    let (reference, notes) = reference(wanted, &mut view, &open.files.databases)?;
    let eager = EagerLimits::of(&view.thresholds(&reference, &[], Vec::new(), false)?);
    let Findings { measured, .. } =
        view.find(&reference, eager, options.ranks, Wanted::default())?;
    let (trace, stretch) = (view.trace, view.stretch);
    let name = open.name();
    let names = &mut open.symbols;
    let mut overlap = Overlap::build(&name, &trace, &reference, &measured, options, names);
    overlap.stretch = stretch;
    let injection = open.injection_counted(options.ranks);
    overlap.problems = open.problems(&[]);
    overlap.problems.extend(module_problems(open.symbols.troubles()));
    overlap.reference.notes.extend(notes);
    let alike = Alike::of_overlap(&overlap.ranks);
    Ok(OverlapDocument { overlap, alike, injection })
}

/// The reference times that were asked for, and sentences about them.
fn reference(
    wanted: Option<&str>,
    view: &mut View,
    databases: &[PathBuf],
) -> Result<(Reference, Vec<String>)> {
    let own = view.own_reference()?;
    let file = match wanted {
        None => return Ok(calibration::reference_with(&view.trace, databases, own)),
        Some("run") => return Ok(calibration::reference_of_run(own)),
        Some("calibration") => {
            let (reference, notes) = calibration::reference_with(&view.trace, databases, own);
            if !matches!(reference.source, Source::Calibration { .. }) {
                let why = notes.iter().map(|note| format!("; {note}")).collect::<String>();
                bail!("no calibration fits this run; make one with: lapscope calibrate -- <launch line>{why}");
            }
            return Ok((reference, notes));
        }
        Some(file) => Path::new(file),
    };
    let Calibration { created, mut times, .. } = Calibration::read(file)?;
    times.source = Source::Calibration { file: file.into(), created };
    Ok(calibration::completed((times, Vec::new()), own))
}
