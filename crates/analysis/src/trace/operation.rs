//! What the rows of a rank have in common, as analyses need it.

use lapscope_data::model::{Bytes, CallName, Kind};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Send,
    Receive,
    Collective,
    /// Windows, files, generalized requests, and calls that communicate nothing.
    None,
}

/// The mode of a send (MPI-4.1 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Standard,
    Synchronous,
    Buffered,
    Ready,
    Partitioned,
}

/// One row of `operation`, with indices of the run in place of ids of the file.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Index into [`super::Trace::calls`]: the call that posted or blocked.
    pub call: u32,
    /// The blocking call that does the same, as MPI_Allreduce for MPI_Iallreduce and MPI_Allreduce_init.
    pub blocking_call: u32,
    /// Index into [`super::Trace::paths`].
    pub path: Option<u32>,
    pub kind: Kind,
    pub direction: Direction,
    pub mode: Mode,
    /// Whether it makes a request.
    pub is_request: bool,
    /// The receiving half of an operation that also sends, which is the first half.
    pub is_second_half: bool,
    pub bytes: Bytes,
    /// Index into [`super::Trace::ranks`] of the peer or of the root.
    pub peer: Option<u32>,
    pub tag: Option<i64>,
    /// Which other operations it is matched with; [`super::NONE`] where nothing is to be matched.
    pub(super) lane: u32,
    /// A message whose peer or tag is not known.
    pub is_untraceable: bool,
    /// Processes in the communicator of a collective, its remote group included.
    pub comm_size: u32,
    pub ended: Ended,
    /// Completed by a test, not by a call that waits.
    pub is_tested: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Waited or tested for, or a blocking call.
    Completed,
    Freed,
    Cancelled,
    Failed,
    Pending,
}

impl Ended {
    pub(super) fn parse(text: Option<&str>) -> Ended {
        match text {
            Some("freed") => Ended::Freed,
            Some("cancelled") => Ended::Cancelled,
            Some("failed") => Ended::Failed,
            Some("pending") => Ended::Pending,
            _ => Ended::Completed,
        }
    }
}

impl Operation {
    /// A standard, synchronous, buffered or ready send; not a partitioned one, whose parts go by themselves.
    pub fn is_send(&self) -> bool {
        self.direction == Direction::Send && self.mode != Mode::Partitioned
    }
}

/// The mode of the sends that a call makes.
pub(super) fn mode_of(call: &str) -> Mode {
    let call = call.trim_start_matches("MPI_").trim_end_matches("_c").trim_end_matches("_init");
    match call {
        "Ssend" | "Issend" => Mode::Synchronous,
        "Bsend" | "Ibsend" => Mode::Buffered,
        "Rsend" | "Irsend" => Mode::Ready,
        "Psend" | "Precv" => Mode::Partitioned,
        _ => Mode::Standard,
    }
}

/// The blocking function that does the same: `MPI_Allreduce` of `MPI_Iallreduce`, `MPI_Allreduce_init` and their large forms.
pub fn blocking_name(call: &str) -> String {
    let name = call.trim_end_matches("_c").trim_end_matches("_init");
    let Some(rest) = name.strip_prefix("MPI_I") else { return name.to_owned() };
    let mut letters = rest.chars();
    match letters.next() {
        Some(first) if first.is_ascii_lowercase() && name != "MPI_Init" => {
            format!("MPI_{}{}", first.to_ascii_uppercase(), letters.as_str())
        }
        _ => name.to_owned(),
    }
}

/// Whether every member of this collective needs only its neighbours in a topology, whom nothing tells.
pub(super) fn is_neighbourhood(call: &CallName) -> bool {
    call.family == "NEIGHBORHOOD"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_names() {
        for (call, blocking) in [
            ("MPI_Iallreduce", "MPI_Allreduce"),
            ("MPI_Allreduce_init", "MPI_Allreduce"),
            ("MPI_Ibcast_c", "MPI_Bcast"),
            ("MPI_Barrier", "MPI_Barrier"),
            ("MPI_Isend", "MPI_Send"),
            ("MPI_Init", "MPI_Init"),
        ] {
            assert_eq!(blocking_name(call), blocking);
        }
    }

    #[test]
    fn modes() {
        assert_eq!(mode_of("MPI_Issend_c"), Mode::Synchronous);
        assert_eq!(mode_of("MPI_Ssend_init"), Mode::Synchronous);
        assert_eq!(mode_of("MPI_Isend"), Mode::Standard);
        assert_eq!(mode_of("MPI_Psend_init"), Mode::Partitioned);
    }
}
