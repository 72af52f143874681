//! What ranks are compared by.

use serde::Serialize;

use crate::overlap::groups::RankOverlap as OverlapRow;
use crate::overlap::sums::Cause;
use crate::totals::RankRow;
use lapscope_data::model::{Nanos, Rank};

/// A number that each rank has. As JSON: the key that it has in the rows of ranks, or `outside_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Measure {
    /// The run time without that in MPI.
    #[serde(rename = "outside_ns")]
    Outside,
    #[serde(rename = "exposed_ns")]
    Completing,
    #[serde(rename = "overlapped_with_gpu_ns")]
    BesideGpu,
    #[serde(rename = "posting_ns")]
    Posting,
    #[serde(rename = "blocking_ns")]
    BlockingPointToPoint,
    #[serde(rename = "collective_ns")]
    Collective,
    #[serde(rename = "rma_ns")]
    Rma,
    #[serde(rename = "io_ns")]
    Io,
    #[serde(rename = "unsuccessful_test_ns")]
    UnsuccessfulTest,
    #[serde(rename = "other_ns")]
    Other,
    /// Blocking sends, receives and collectives.
    #[serde(rename = "blocked_ns")]
    Blocked,
    #[serde(rename = "exposed_late_partner_ns")]
    LatePartner,
    #[serde(rename = "exposed_no_remote_progress_ns")]
    NoRemoteProgress,
    #[serde(rename = "exposed_no_local_progress_ns")]
    NoLocalProgress,
    #[serde(rename = "exposed_transfer_ns")]
    Transfer,
    #[serde(rename = "exposed_no_processor_ns")]
    NoProcessor,
    #[serde(rename = "requests")]
    Requests,
    #[serde(rename = "bytes")]
    Bytes,
    #[serde(rename = "sent_bytes")]
    SentBytes,
    #[serde(rename = "received_bytes")]
    ReceivedBytes,
}

/// What a measure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureUnit {
    Nanoseconds,
    Bytes,
    Requests,
}

impl Measure {
    /// The measures of a report.
    pub const OF_TOTALS: [Measure; 13] = [
        Measure::Outside,
        Measure::Completing,
        Measure::BesideGpu,
        Measure::Posting,
        Measure::BlockingPointToPoint,
        Measure::Collective,
        Measure::Rma,
        Measure::Io,
        Measure::UnsuccessfulTest,
        Measure::Other,
        Measure::Requests,
        Measure::SentBytes,
        Measure::ReceivedBytes,
    ];

    /// The measures of an overlap.
    pub const OF_OVERLAP: [Measure; 9] = [
        Measure::Completing,
        Measure::Blocked,
        Measure::LatePartner,
        Measure::NoRemoteProgress,
        Measure::NoLocalProgress,
        Measure::Transfer,
        Measure::NoProcessor,
        Measure::Requests,
        Measure::Bytes,
    ];

    pub fn unit(self) -> MeasureUnit {
        match self {
            Measure::Requests => MeasureUnit::Requests,
            Measure::Bytes | Measure::SentBytes | Measure::ReceivedBytes => MeasureUnit::Bytes,
            _ => MeasureUnit::Nanoseconds,
        }
    }
}

/// A rank as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Compared<'a> {
    pub rank: Rank,
    pub host: &'a str,
    pub run_ns: Nanos,
    /// In the order of the measures.
    pub values: Vec<i64>,
}

/// In the order of [`Measure::OF_TOTALS`].
pub(super) fn of_totals(row: &RankRow) -> Vec<i64> {
    let totals = &row.totals;
    vec![
        (totals.run_ns - totals.mpi_ns).0.max(0),
        totals.exposed_ns.0,
        totals.overlapped_with_gpu_ns.0,
        totals.posting_ns.0,
        totals.blocking_ns.0,
        totals.collective_ns.0,
        totals.rma_ns.0,
        totals.io_ns.0,
        totals.unsuccessful_test_ns.0,
        totals.other_ns.0,
        as_i64(totals.requests),
        as_i64(row.sent_bytes),
        as_i64(row.received_bytes),
    ]
}

/// In the order of [`Measure::OF_OVERLAP`].
pub(super) fn of_overlap(row: &OverlapRow) -> Vec<i64> {
    let (requests, blocking) = (&row.numbers, &row.blocking);
    let by = |cause| (requests.exposed_of(cause) + blocking.blocked_by(cause)).0;
    let mut values = vec![requests.exposed_ns.0, blocking.blocked_ns.0];
    values.extend(Cause::ALL.map(by));
    values.extend([requests.requests, requests.bytes.saturating_add(blocking.bytes)].map(as_i64));
    values
}

fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
