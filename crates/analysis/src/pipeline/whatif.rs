//! A run under scenarios.

use anyhow::{bail, Result};

use super::OpenRun;
use crate::replay::scenario::Scenario;
use crate::whatif::document::WhatIf;
use crate::whatif::sweep::SweepAsked;

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub scenarios: Vec<Scenario>,
    /// Each of one knob, with all others as in the first scenario, or as recorded.
    pub sweeps: Vec<SweepAsked>,
    /// Call sites, stretches of the critical path and root causes wanted; 0 means all.
    pub top: usize,
}

/// Replays the run as it was and under each scenario.
///
/// # Errors
/// No file of the run can be read.
pub fn build(open: &mut OpenRun, asked: &Asked) -> Result<WhatIf> {
    let _ = asked;
    bail!("{}: the replay is being written", open.name())
}
