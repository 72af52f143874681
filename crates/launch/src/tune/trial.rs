//! What a run that injected half of the time showed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::run::Mode;
use lapscope_data::model::Nanos;
use lapscope_measure::injection::Injection;
use lapscope_report::pipeline::OpenRun;
use lapscope_trace::injected::Tests;
use lapscope_trace::stats::Interval;

/// This fraction of interrupts that found MPI closed to them leaves most of the computation without tests.
const MANY_DEFERRED: f64 = 0.5;

/// What a run injects with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct InjectionSetting {
    pub mode: Mode,
    pub interval_us: u32,
}

/// A run.
#[derive(Debug)]
pub struct Trial {
    pub setting: InjectionSetting,
    /// Name of its directory among those of the other runs.
    pub name: String,
    /// Whether some call sites were left out.
    pub with_policy: bool,
    pub wall: Duration,
    pub injection: Injection,
    /// How much longer steps took in slots without injection than in the run without it, as a fraction.
    pub idle_slowdown: Option<f64>,
}

impl Trial {
    /// What injection gains, as a fraction of the time without it, cost included. `None`: it is not known.
    pub fn gain(&self) -> Option<Interval> {
        let whole = self.injection.whole.as_ref()?;
        Some(Interval { low: whole.low?, estimate: whole.estimate?, high: whole.high? })
    }

    /// Interrupts, and tests that found nothing, as a fraction of the run time of all ranks.
    pub fn cost(&self) -> f64 {
        self.injection.totals.spent_ns.share_of(self.injection.totals.run_ns)
    }

    pub fn tests(&self) -> u64 {
        self.injection.totals.tests.tests
    }

    /// Whether most interrupts came where MPI cannot be entered.
    pub fn was_kept_out(&self) -> bool {
        let Tests { deferred, interrupts, .. } = self.injection.totals.tests;
        deferred as f64 > MANY_DEFERRED * interrupts as f64
    }

    /// Whether tests were made in the computation, where a program would make them itself.
    pub fn tested_computation(&self) -> bool {
        let all_could = self.injection.ranks.iter().all(|rank| rank.problem.is_none());
        self.setting.mode == Mode::Timer && self.tests() > 0 && all_could && !self.was_kept_out()
    }

    /// Tests that moved something.
    pub fn found(&self) -> u64 {
        self.injection.totals.tests.found
    }
}

pub fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

/// What injection did in a recorded run.
///
/// # Errors
/// It cannot be read, or no rank was asked to inject: its recorder is another one.
pub fn read_injection(directory: &Path, wrappers: &[String]) -> Result<Injection> {
    let mut open = OpenRun::open(Some(directory))?;
    open.find_wrappers(wrappers)?;
    open.injection(&[]).with_context(|| {
        let directory = directory.display();
        format!("{directory}: no rank knows of injection: is the recorder of this lapscope?")
    })
}
