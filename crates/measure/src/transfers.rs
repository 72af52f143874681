//! What was transferred: by size and by kind.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::overlap::sums::OverlapTimes;
use crate::sites::CallNumbers;
use lapscope_data::model::{Bytes, Category, Kind, Nanos, Transfers};
use lapscope_trace::sums::cell::CallCell;
use lapscope_trace::sums::combine::{Entry, RunSums};

/// Calls of similar size.
#[derive(Debug, Serialize)]
pub struct SizeClass {
    pub kind: SizeKind,
    pub from_bytes: u64,
    /// The first size that is too large.
    pub below_bytes: u64,
    #[serde(flatten)]
    pub numbers: CallNumbers,
    /// What overlap says of the same transfers, where it is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapTimes>,
}

/// What is put together in one table of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeKind {
    PointToPoint,
    Collective,
    Rma,
    Io,
}

/// Requests and calls of one kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct KindRow {
    pub kind: Kind,
    pub requests: u64,
    /// Calls that communicate and make no request.
    pub calls: u64,
    pub bytes: u64,
}

/// Requests and blocking calls by size.
pub fn size_classes(run: &RunSums, run_time: Nanos) -> Vec<SizeClass> {
    let mut classes: BTreeMap<(SizeKind, u8), CallCell> = BTreeMap::new();
    for entry in run.entries.iter().filter(|entry| entry.cell.count > 0) {
        if let Some(kind) = size_kind(run, entry) {
            *classes.entry((kind, entry.size_class)).or_default() += &entry.cell;
        }
    }
    classes
        .into_iter()
        .map(|((kind, class), cell)| SizeClass {
            kind,
            from_bytes: class.checked_sub(1).map_or(0, |exponent| 1 << exponent.min(63)),
            below_bytes: 1u64.checked_shl(class.into()).unwrap_or(u64::MAX),
            numbers: CallNumbers::new(&cell, run_time),
            overlap: None,
        })
        .collect()
}

/// `None` for what has no size: probes, and most calls on windows and files, move no bytes.
fn size_kind(run: &RunSums, entry: &Entry) -> Option<SizeKind> {
    let has_size = match run.category(entry) {
        Category::Posting | Category::Collective => true,
        Category::BlockingPointToPoint => run.places.call(entry.site).role != "PROBE",
        Category::Rma | Category::Io => entry.size_class > 0,
        _ => false,
    };
    let kind = match entry.kind {
        Kind::Collective => SizeKind::Collective,
        Kind::Rma => SizeKind::Rma,
        Kind::Io => SizeKind::Io,
        Kind::Generalized => return None,
        Kind::Send | Kind::Recv | Kind::Other => SizeKind::PointToPoint,
    };
    // of the others only MPI_Start, whose tallies do not say what it started
    let is_known = entry.kind != Kind::Other
        || run.places.call(entry.site).transfers == Some(Transfers::Started);
    Some(kind).filter(|_| has_size && is_known)
}

/// What was transferred, by kind; kinds that there are none of are left out.
pub fn kinds(run: &RunSums) -> Vec<KindRow> {
    let mut rows: BTreeMap<Kind, (u64, u64, Bytes)> = BTreeMap::new();
    for entry in &run.entries {
        let call = run.places.call(entry.site);
        let is_request = match run.category(entry) {
            Category::Posting => true,
            Category::BlockingPointToPoint | Category::Collective => false,
            Category::Rma | Category::Io => false,
            _ => continue,
        };
        if !call.counted {
            continue;
        }
        let (requests, calls, bytes) = rows.entry(entry.kind).or_default();
        *(if is_request { requests } else { calls }) += entry.cell.count;
        *bytes += entry.cell.bytes;
    }
    rows.into_iter()
        .filter(|(_, (requests, calls, bytes))| *requests > 0 || *calls > 0 || bytes.0 > 0)
        .map(|(kind, (requests, calls, bytes))| KindRow { kind, requests, calls, bytes: bytes.0 })
        .collect()
}
