//! The times of collectives as LogGP predicts them ([HO07]), from messages between two ranks that `lapscope-calibrate` has
//! measured over the same link with the same MPI, and from the reduction's operation as `collective_cpu` measures it.

use std::path::Path;

use anyhow::{bail, Context};

use super::results::{Run, Spread, Table, TableRow, Value};
use lapscope_data::db::list_files;
use lapscope_measure::loggps::collective::{predict, Costs, Prediction, Shape};
use lapscope_measure::loggps::{self, LogGps};
use lapscope_trace::{Locality, Trace};

/// The table of what messages cost, a row for each of [`SIZES`].
pub const MESSAGES: &str = "loggps";
/// Its attribute: how far round trips were from what the parameters say of them, the median over sizes.
pub const RESIDUAL_PERCENT: &str = "residual_percent";
/// The quantities that are added to rows of `collective_cpu`.
pub const PREDICTED_US: &str = "predicted_us";
pub const PREDICTED_NETWORK_PERCENT: &str = "predicted_network_percent";

/// Bytes: nothing, and powers of two up to the largest message that is calibrated.
fn sizes() -> impl Iterator<Item = u64> {
    std::iter::once(0).chain((0..=24).map(|power| 1 << power))
}

/// What messages between two ranks cost, as a recorded run of `lapscope-calibrate` shows it.
///
/// # Errors
/// The run cannot be read, or has too few exchanges.
pub fn messages(directory: &Path) -> anyhow::Result<Table> {
    let databases = list_files(directory)?.databases;
    let (trace, failed) = Trace::read(&databases, &|_| ())?;
    if let Some(error) = failed.into_iter().next() {
        return Err(error).context("part of the calibration cannot be read");
    }
    let all = loggps::of_run(&trace);
    let of = |locality| all.iter().find(|found| found.locality == locality);
    match of(Locality::Network).or(of(Locality::Node)) {
        Some(found) => Ok(table(found)),
        None => bail!("no parameters of LogGPS: too few exchanges between two ranks"),
    }
}

/// What lapscope says is what it saw from outside.
fn seen(median: f64) -> Value {
    Value { program: None, outside: Some(Spread { median, low: None, high: None }) }
}

fn table(found: &LogGps) -> Table {
    let row = |bytes: u64| {
        let number = Spread { median: bytes as f64, low: None, high: None };
        let values = [
            ("bytes", Value { program: Some(number), outside: None }),
            ("send_us", seen(found.send_overhead(bytes) / 1e3)),
            ("network_us", seen(found.network(bytes) / 1e3)),
            ("receive_us", seen(found.receive_overhead(bytes) / 1e3)),
        ];
        TableRow { values: values.map(|(name, value)| (name.to_owned(), value)).into() }
    };
    let residual = format!("{:.0}", 100.0 * found.residual.median);
    Table {
        name: MESSAGES.into(),
        attributes: [(RESIDUAL_PERCENT.to_owned(), residual)].into(),
        rows: sizes().map(row).collect(),
    }
}

/// Adds to the rows of a run of `collective_cpu` what is predicted of them, where an earlier run has measured the messages.
/// More ranks than processors wait for each other, of which the model knows nothing: they get no prediction.
pub fn add_predictions(run: &mut Run, earlier: &[Run], processors: u32) {
    let is_alike = |other: &&Run| other.mpi == run.mpi && other.link == run.link;
    let mut tables = earlier.iter().filter(is_alike).flat_map(|other| &other.tables);
    let Some(messages) = tables.find(|table| table.name == MESSAGES) else { return };
    let reductions = run.tables.iter().find(|table| table.name == "local_reduction").cloned();
    for table in run.tables.iter_mut().filter(|table| table.name == "collective_cpu") {
        let Ok(ranks) = table.attribute("ranks").parse() else { continue };
        if ranks > processors {
            continue;
        }
        let op = table.attribute("op").to_owned();
        for row in &mut table.rows {
            if let Some(predicted) = prediction(&op, ranks, row, messages, reductions.as_ref()) {
                // below 0 where both processors work on a message at the same time
                let share = (100.0 * predicted.network_ns() / predicted.total_ns).max(0.0);
                row.values.insert(PREDICTED_US.into(), seen(predicted.total_ns / 1e3));
                row.values.insert(PREDICTED_NETWORK_PERCENT.into(), seen(share));
            }
        }
    }
}

fn of_size(table: &Table, bytes: u64) -> Option<&TableRow> {
    table.rows.iter().find(|row| row.bytes() == Some(bytes))
}

/// `None`: its messages or its reduction were not measured.
fn prediction(
    op: &str,
    ranks: u32,
    row: &TableRow,
    messages: &Table,
    reductions: Option<&Table>,
) -> Option<Prediction> {
    let bytes = row.bytes()?;
    let shape = match op {
        "allreduce" => Shape::Allreduce { bytes },
        "bcast" => Shape::Broadcast { bytes },
        "barrier" => Shape::Barrier,
        _ => return None,
    };
    let reduction_us = match shape {
        Shape::Allreduce { .. } => of_size(reductions?, bytes)?.number("reduce_us")?,
        _ => 0.0,
    };
    let message = of_size(messages, bytes)?;
    let us = |name| message.outside(name).map(|spread: Spread| spread.median);
    // L + mG of a message of this size is one number here, as G differs by segment
    let costs = Costs {
        latency_ns: us("network_us")? * 1e3,
        overheads_ns: (us("send_us")? + us("receive_us")?) * 1e3,
        gap_ns_per_byte: 0.0,
        reduction_ns_per_byte: reduction_us * 1e3 / bytes.max(1) as f64,
    };
    Some(predict(shape, ranks.into(), &costs)).filter(|predicted| predicted.total_ns > 0.0)
}

#[cfg(test)]
mod tests {
    use super::super::results::{Inject, Link};
    use super::*;

    fn row(values: &[(&str, Value)]) -> TableRow {
        TableRow { values: values.iter().map(|(name, value)| ((*name).into(), *value)).collect() }
    }

    fn told(median: f64) -> Value {
        Value { program: Some(Spread { median, low: None, high: None }), outside: None }
    }

    fn run(tables: Vec<Table>) -> Run {
        Run {
            mpi: 0,
            link: Link::SharedMemory,
            inject: Inject::Off,
            program: String::new(),
            arguments: String::new(),
            settings: String::new(),
            ranks: 4,
            seconds: 0.0,
            problem: None,
            tables,
            thresholds: Vec::new(),
            segments: Vec::new(),
            advice: Vec::new(),
        }
    }

    fn collective(op: &str, ranks: u32) -> Table {
        Table {
            name: "collective_cpu".into(),
            attributes: [("op".into(), op.into()), ("ranks".into(), ranks.to_string())].into(),
            rows: vec![row(&[("bytes", told(1024.0)), ("call_us", told(50.0))])],
        }
    }

    /// o_s 1, L + mG 6, o_r 2, m gamma 4 µs.
    fn measured() -> (Run, Table) {
        let message = row(&[
            ("bytes", told(1024.0)),
            ("send_us", seen(1.0)),
            ("network_us", seen(6.0)),
            ("receive_us", seen(2.0)),
        ]);
        let reduction = row(&[("bytes", told(1024.0)), ("reduce_us", told(4.0))]);
        let table =
            |name: &str, row| Table { name: name.into(), rows: vec![row], ..Table::default() };
        (run(vec![table(MESSAGES, message)]), table("local_reduction", reduction))
    }

    fn predicted(run: &Run, table: usize) -> Option<(f64, f64)> {
        let row = &run.tables[table].rows[0];
        let of = |name| row.outside(name).map(|spread: Spread| spread.median);
        Some((of(PREDICTED_US)?, of(PREDICTED_NETWORK_PERCENT)?))
    }

    #[test]
    fn predictions_by_hand() {
        let (calibration, reduction) = measured();
        let tables = vec![collective("allreduce", 4), collective("bcast", 2), reduction];
        let mut run = run(tables);
        add_predictions(&mut run, &[calibration], 4);
        // two rounds of two messages and a reduction, of which the network has two rounds of two times 6
        assert_eq!(predicted(&run, 0), Some((44.0, 100.0 * 24.0 / 44.0)));
        assert_eq!(predicted(&run, 1), Some((9.0, 100.0 * 6.0 / 9.0)));
    }

    #[test]
    fn what_was_not_measured_is_not_predicted() {
        let (calibration, reduction) = measured();
        let mut crowded = run(vec![collective("allreduce", 4), reduction]);
        add_predictions(&mut crowded, std::slice::from_ref(&calibration), 2);
        assert_eq!(predicted(&crowded, 0), None);
        let mut no_reduction = run(vec![collective("allreduce", 4), collective("bcast", 4)]);
        add_predictions(&mut no_reduction, std::slice::from_ref(&calibration), 4);
        assert_eq!(predicted(&no_reduction, 0), None);
        assert!(predicted(&no_reduction, 1).is_some());
        let mut elsewhere = Run { link: Link::SlowLink, ..run(vec![collective("bcast", 4)]) };
        add_predictions(&mut elsewhere, &[calibration], 4);
        assert_eq!(predicted(&elsewhere, 0), None);
    }
}
