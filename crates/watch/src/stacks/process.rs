//! A process of a job.

use std::path::PathBuf;

use lapscope_data::model::Rank;

/// A process that is a rank, or may be one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: i64,
    /// `None`: no launcher said so.
    pub rank: Option<Rank>,
    pub size: Option<u64>,
    pub local_size: Option<u64>,
    pub job: Option<String>,
    pub command: String,
    /// It has the recorder of lapscope, which knows more.
    pub is_recorded: bool,
    /// The run directory that it records into, where that is known.
    pub run: Option<PathBuf>,
    pub(super) has_mpi: bool,
    pub(super) executable: Option<PathBuf>,
    pub(super) parent: i64,
    /// The parent of what it was started by as this rank.
    pub(super) started_by: i64,
}
