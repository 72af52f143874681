//! `lapscope report RUN RUN...` and `lapscope html RUN RUN RUN...`: runs of growing rank counts.

use std::path::Path;

use anyhow::Result;

use super::open_run;
use crate::args::{ReferenceArgs, ResourceArgs, WrapperArgs};
use lapscope_measure::scaling::ScalingMode;
use lapscope_report::scaling::{RunToScale, Scaling};

/// Reads the runs one after the other.
///
/// # Errors
/// One of them is no run, or no file of it can be read.
pub fn read<'a>(
    runs: impl IntoIterator<Item = &'a Path>,
    mode: ScalingMode,
    (times, wrappers, resources): (&ReferenceArgs, &WrapperArgs, &ResourceArgs),
) -> Result<Scaling> {
    let read = |run| RunToScale::read(&mut open_run(Some(run), times, wrappers, resources)?);
    Scaling::new(runs.into_iter().map(read).collect::<Result<_>>()?, mode)
}
