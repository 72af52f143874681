//! What would be as rows: the run as recorded and as replayed, each scenario, each value of a sweep.

use std::io;

use serde::Serialize;

use crate::format::rows::{Objects, RowWriter};
use lapscope_data::model::Nanos;
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_predict::whatif::document::{ScenarioResult, WhatIf};

/// A row; all of a table have the same columns.
#[derive(Debug, Serialize)]
pub(super) struct WhatIfRow<'a> {
    /// `recorded`, `identity`, `scenario`, `sweep`.
    pub kind: &'static str,
    pub name: &'a str,
    /// The value that a sweep sets.
    pub value: Option<&'a str>,
    pub number: Option<f64>,
    pub run_ns: Option<Nanos>,
    pub change: Option<f64>,
    pub identity_error: f64,
    pub exposed_ns: Option<Nanos>,
    pub exposed_late_partner_ns: Option<Nanos>,
    pub exposed_no_remote_progress_ns: Option<Nanos>,
    pub exposed_no_local_progress_ns: Option<Nanos>,
    pub exposed_transfer_ns: Option<Nanos>,
    pub exposed_no_processor_ns: Option<Nanos>,
    pub deadlock: Option<&'a str>,
}

/// # Errors
/// Of the writer.
pub fn write_rows(rows: &mut dyn RowWriter, answer: &WhatIf) -> io::Result<()> {
    let mut objects = Objects::new(rows);
    all(answer).iter().try_for_each(|row| objects.write(row))
}

pub(super) fn all(answer: &WhatIf) -> Vec<WhatIfRow<'_>> {
    let error = answer.identity.identity_error;
    let mut rows = vec![recorded(answer), row_for("identity", "", &answer.identity)];
    rows.extend(
        answer.scenarios.iter().map(|scenario| row_for("scenario", &scenario.name, scenario)),
    );
    for sweep in &answer.sweeps {
        rows.extend(sweep.points.iter().map(|point| WhatIfRow {
            value: Some(&point.value),
            number: Some(point.number),
            run_ns: point.run_ns,
            change: change(point.run_ns, answer.identity.run_ns),
            exposed_ns: point.exposed_ns,
            deadlock: point.run_ns.is_none().then_some(super::DEADLOCK),
            ..empty("sweep", &sweep.knob, error)
        }));
    }
    rows
}

fn recorded(answer: &WhatIf) -> WhatIfRow<'_> {
    let recorded = &answer.recorded;
    let run = WhatIfRow {
        run_ns: Some(recorded.run_ns),
        exposed_ns: Some(recorded.exposed_ns),
        ..empty("recorded", "", answer.identity.identity_error)
    };
    with_causes(run, &recorded.exposed)
}

fn row_for<'a>(kind: &'static str, name: &'a str, answer: &'a ScenarioResult) -> WhatIfRow<'a> {
    let row = WhatIfRow {
        run_ns: answer.run_ns,
        change: answer.change,
        exposed_ns: answer.run_ns.map(|_| answer.exposed_ns),
        deadlock: answer.deadlock.as_ref().map(|deadlock| deadlock.says.as_str()),
        ..empty(kind, name, answer.identity_error)
    };
    match answer.run_ns {
        Some(_) => with_causes(row, &answer.exposed),
        None => row,
    }
}

fn change(run: Option<Nanos>, identity: Option<Nanos>) -> Option<f64> {
    let (run, identity) = run.zip(identity)?;
    Some((run - identity).share_of(identity))
}

fn with_causes<'a>(row: WhatIfRow<'a>, exposed: &OverlapTimes) -> WhatIfRow<'a> {
    WhatIfRow {
        exposed_late_partner_ns: Some(exposed.exposed_late_partner_ns),
        exposed_no_remote_progress_ns: Some(exposed.exposed_no_remote_progress_ns),
        exposed_no_local_progress_ns: Some(exposed.exposed_no_local_progress_ns),
        exposed_transfer_ns: Some(exposed.exposed_transfer_ns),
        exposed_no_processor_ns: Some(exposed.exposed_no_processor_ns),
        ..row
    }
}

fn empty<'a>(kind: &'static str, name: &'a str, identity_error: f64) -> WhatIfRow<'a> {
    WhatIfRow {
        kind,
        name,
        value: None,
        number: None,
        run_ns: None,
        change: None,
        identity_error,
        exposed_ns: None,
        exposed_late_partner_ns: None,
        exposed_no_remote_progress_ns: None,
        exposed_no_local_progress_ns: None,
        exposed_transfer_ns: None,
        exposed_no_processor_ns: None,
        deadlock: None,
    }
}
