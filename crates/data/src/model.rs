//! Rows of a lapscope database as types. Units live in the types: [`Nanos`], [`Bytes`], [`Rank`].

pub mod bounds;
mod call_name;
mod checked_words;
mod frame;
mod memory;
mod rank;
mod rank_list;
mod sample;
mod watch;

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use clap::ValueEnum;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use serde::{Deserialize, Serialize};

use self::bounds::{LONGEST_NS, MOST, MOST_BYTES};

pub use call_name::{nonblocking_name, CallName, Completes, Epoch, Mode, Needs, Transfers};
pub use frame::{
    innermost_own, is_mpi_library, is_python_interpreter, is_python_layer, python_address,
    python_place, site_frame, CallPath, Frame, Module,
};
pub use memory::MemoryKind;
pub use rank::{Rank, RankKey};
pub use rank_list::RankList;
pub use sample::{SamplePost, SampleRow, SampledThread, Sampler};
pub use watch::{LetGo, Side, Toucher, Watch, WatchLeftOut, WatchResult, Watcher};

/// A duration, or a moment since its rank's epoch, in nanoseconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// Seconds, for ratios and display.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// This duration as a fraction of `whole`; 0 when `whole` is not positive.
    pub fn share_of(self, whole: Nanos) -> f64 {
        if whole.0 > 0 {
            self.0 as f64 / whole.0 as f64
        } else {
            0.0
        }
    }

    /// This sum divided by `count`, rounded down; `None` of nothing.
    pub fn mean(self, count: u64) -> Option<Nanos> {
        (count > 0).then(|| Nanos((i128::from(self.0) / i128::from(count)) as i64))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(values: I) -> Nanos {
        values.fold(Nanos(0), Add::add)
    }
}

/// A time of a file: a duration, or a moment since its rank's epoch.
impl FromSql for Nanos {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        within(value, LONGEST_NS).map(Nanos)
    }
}

/// Believed from there on.
#[inline]
fn within(value: ValueRef<'_>, most: i64) -> FromSqlResult<i64> {
    let number = i64::column_result(value)?;
    if (0..=most).contains(&number) {
        Ok(number)
    } else {
        Err(FromSqlError::OutOfRange(number))
    }
}

/// Text as a file has it: command lines and paths need not be UTF-8, and what is not is shown as such.
#[derive(Debug, Clone)]
pub struct Text(pub String);

impl FromSql for Text {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Text(bytes) => Ok(Text(String::from_utf8_lossy(bytes).into_owned())),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// How many, as a file has it.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64);

impl FromSql for Count {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        within(value, MOST).map(|count| Count(count as u64))
    }
}

/// A size in bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The power-of-two class k that holds sizes in [2^(k-1), 2^k); 0 holds no bytes. As `tally.size_class`.
    pub fn size_class(self) -> u8 {
        (u64::BITS - self.0.leading_zeros()) as u8
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl FromSql for Bytes {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        within(value, MOST_BYTES).map(|bytes| Bytes(bytes as u64))
    }
}

/// How a rank's recording ended; `rank.ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Finalize,
    Abort,
    Exit,
    Killed,
}

impl FromSql for Ended {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value.as_str()? {
            "finalize" => Ended::Finalize,
            "abort" => Ended::Abort,
            "exit" => Ended::Exit,
            _ => Ended::Killed,
        })
    }
}

/// What was full when a rank went on with sums; `rank.summarized`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Full {
    MaxMb,
    Disk,
    FileSize,
    /// Nothing: LAPSCOPE_RECORD=sums.
    Asked,
    /// Nothing: it was made of the record of a job, LAPSCOPE_RECORD=job.
    JobRecord,
}

impl Full {
    /// What the column's number means; 0 is `None`.
    pub fn from_number(number: i64) -> Option<Full> {
        match number {
            0 => None,
            2 => Some(Full::Disk),
            3 => Some(Full::FileSize),
            4 => Some(Full::Asked),
            5 => Some(Full::JobRecord),
            _ => Some(Full::MaxMb),
        }
    }

    /// A sentence's beginning.
    pub fn sentence(self) -> &'static str {
        match self {
            Full::MaxMb => "LAPSCOPE_MAX_MB was reached",
            Full::Disk => "the disk was full",
            Full::FileSize => "the limit on the size of files (ulimit -f) was reached",
            Full::Asked => "sums alone were asked for (LAPSCOPE_RECORD=sums)",
            Full::JobRecord => "this is the record of a job (LAPSCOPE_RECORD=job)",
        }
    }
}

/// A row of `processor`: what a rank's thread that called MPI_Init got, from there to MPI_Finalize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// On a processor.
    pub run: Nanos,
    /// Able to run, and without one.
    pub wait: Nanos,
    /// Processors of the host.
    pub online: i64,
}

/// A row of `copied_sends`: sends that went from copies, so that waits for them say nothing of their transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedSends {
    /// Why nothing was copied from some time on.
    pub problem: Option<String>,
    /// Up to this size sends were copied.
    pub limit: Bytes,
    pub sends: u64,
    pub bytes: Bytes,
    /// Those of them that were complete when they were posted.
    pub at_once: u64,
    /// That went as they were: memory was in use; data could not be copied; they may lie on an accelerator.
    pub no_memory: u64,
    pub datatype: u64,
    pub device: u64,
    pub most: Bytes,
    /// Under way when MPI_Finalize was called.
    pub at_finalize: u64,
    /// That MPI could not complete.
    pub failed: u64,
}

/// A row of `rank`: one process that was one rank. Times are since its epoch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankInfo {
    pub key: RankKey,
    pub rank: Rank,
    pub life: i64,
    pub world_size: i64,
    pub host: String,
    pub pid: i64,
    pub command: String,
    pub executable: String,
    pub mpi_abi: String,
    pub mpi_library: String,
    pub mpi_standard: String,
    pub thread_level: i64,
    pub lapscope_version: String,
    pub job: String,
    pub epoch_unix_ns: i64,
    pub init_end: Nanos,
    pub end: Nanos,
    pub ended: Ended,
    /// For ranks that were killed: when the process was seen to be gone, so that it ended between `end` and this; of others that did not
    /// call MPI_Finalize: when they ended. `None`: not seen.
    pub gone: Option<Nanos>,
    /// With those that were in the damaged pieces of its spool.
    pub lost_records: u64,
    /// Chunks and records of its spool that could not be read.
    pub damaged_pieces: u64,
    /// What the program marked beyond what is kept.
    pub lost_marks: u64,
    /// Calls whose path is its innermost frame alone, as there were more paths than are kept.
    pub cut_paths: u64,
    /// `None`: not known, as of ranks that were killed.
    pub processor: Option<Processor>,
    /// `None`: sends were not to be copied.
    pub copied_sends: Option<CopiedSends>,
    pub unknown_requests: u64,
    /// Why it kept only sums from some time on; `None`: it did not.
    pub summarized: Option<Full>,
    /// Processes that it started as rank 0 of the communicator that did.
    pub spawned: i64,
    /// Library of an accelerator's driver that came into its process.
    pub accelerator: Option<String>,
    /// Whose device memory MPI takes buffers in, as it says itself: `cuda,rocm`, `none`. `None`: it was not asked, or cannot say.
    pub device_buffers: Option<String>,
    /// CUDA's driver came, and nobody started it.
    pub cuda_unused: bool,
    /// What CUDA_INJECTION64_PATH had CUDA load into it.
    pub cuda_injection: Option<String>,
    /// `None`: no plugin looked at its GPUs.
    pub device_recorder: Option<DeviceRecorder>,
}

/// What recorded when the GPUs of a rank worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecorder {
    /// The vendor's library that was asked.
    pub source: String,
    /// Why it could not record, or may not have recorded all; `None`: it did.
    pub problem: Option<String>,
    /// Pauses up to this are within rows.
    pub resolution: Nanos,
    /// Kernels and copies without a row.
    pub lost: u64,
    /// Some have one.
    pub has_rows: bool,
}

impl RankInfo {
    /// From the return of MPI_Init to the entry of MPI_Finalize: what percentages refer to.
    /// The last thing recorded stands in for MPI_Finalize when it was never reached.
    pub fn run_time(&self) -> Nanos {
        Nanos((self.end - self.init_end).0.max(0))
    }

    /// Whether an accelerator's driver came into it, and was not left unused.
    pub fn may_use_gpu(&self) -> bool {
        self.accelerator.is_some() && !self.cuda_unused
    }

    /// Whether it is known when its GPUs worked, all of the time or some of it.
    pub fn has_device_time(&self) -> bool {
        let is_known = |it: &DeviceRecorder| it.problem.is_none() || it.has_rows;
        self.device_recorder.as_ref().is_some_and(is_known)
    }
}

/// What a call or request does; `operation.kind`.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Send,
    Recv,
    Collective,
    Rma,
    Io,
    Generalized,
    #[default]
    Other,
}

impl Kind {
    /// The kind that the column's word names.
    pub fn parse(word: &str) -> Kind {
        match word {
            "send" => Kind::Send,
            "recv" => Kind::Recv,
            "collective" => Kind::Collective,
            "rma" => Kind::Rma,
            "io" => Kind::Io,
            "generalized" => Kind::Generalized,
            _ => Kind::Other,
        }
    }
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_str().map(Kind::parse)
    }
}

/// How a request ended; `operation.ended`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequestEnded {
    Waited,
    Tested,
    Freed,
    Cancelled,
    Failed,
    Pending,
}

impl RequestEnded {
    /// As the column has it.
    pub fn word(self) -> &'static str {
        match self {
            RequestEnded::Waited => "waited",
            RequestEnded::Tested => "tested",
            RequestEnded::Freed => "freed",
            RequestEnded::Cancelled => "cancelled",
            RequestEnded::Failed => "failed",
            RequestEnded::Pending => "pending",
        }
    }
}

/// Where a call's time is counted; every nanosecond inside MPI falls in exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// Calls that make requests.
    Posting,
    /// Calls that ended requests: the exposed time of non-blocking communication.
    Completing,
    /// Blocking point-to-point calls, probes that blocked among them.
    BlockingPointToPoint,
    Collective,
    /// One-sided communication: what is done to windows, but for requests.
    Rma,
    /// What is done to files, but for requests.
    Io,
    /// Tests and probes that found nothing.
    UnsuccessfulTest,
    /// Communicator management, what prepares requests, MPI_Pcontrol and the like.
    Other,
    /// MPI_Init and MPI_Finalize: outside the span that percentages refer to, so never counted.
    Outside,
}

/// The columns of `operation` that every analysis needs.
#[derive(Debug, Clone, Copy)]
pub struct OperationRow {
    pub id: i64,
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    pub kind: Kind,
    pub bytes: Bytes,
    /// The receiving half of a request that also receives.
    pub receive_id: Option<i64>,
}

/// A row of `call`. `begin` is since the rank's epoch.
#[derive(Debug, Clone, Copy)]
pub struct CallRow {
    pub id: i64,
    pub operation_id: i64,
    pub begin: Nanos,
    /// `None`: had not returned when the process ended.
    pub duration: Option<Nanos>,
    /// Requests that it completed.
    pub completed: u64,
    /// The operation of the receiving half of a call that also receives.
    pub receive_id: Option<i64>,
    /// That made it.
    pub thread_id: i64,
}

/// A row of `tally`.
#[derive(Debug, Clone, Copy)]
pub struct TallyRow {
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    /// Whether it counts unsuccessful tests; otherwise calls after the limit of detail was reached.
    pub is_unsuccessful: bool,
    pub size_class: u8,
    pub count: u64,
    pub bytes: Bytes,
    pub inside: Nanos,
    pub completion: Nanos,
    pub mpi: Nanos,
    pub window: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_half_open_powers_of_two() {
        let classes: Vec<u8> =
            [0, 1, 2, 3, 4, 1023, 1024, u64::MAX].iter().map(|&n| Bytes(n).size_class()).collect();
        assert_eq!(classes, [0, 1, 2, 2, 3, 10, 11, 64]);
    }
}
