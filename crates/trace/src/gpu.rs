//! Ranks that use GPUs: whether what these compute is recorded, and what time in MPI beside it is called where it is not.

use lapscope_data::model::{Ended, RankInfo};

/// Whether the rank's GPUs may have computed while it was in MPI, and nobody knows: then its exposed time is no more than what is
/// called so, and all that rests on it likewise.
pub fn exposed_is_upper_bound(rank: &RankInfo) -> bool {
    let recorder = rank.device_recorder.as_ref();
    let is_in_part = recorder.is_some_and(|it| it.lost > 0 || it.problem.is_some());
    // of a kernel nothing is known until it ends, and the last of them come with MPI_Finalize
    let is_cut_off = rank.ended != Ended::Finalize;
    let is_seen = rank.has_device_time() && !is_in_part && !is_cut_off;
    rank.accelerator.is_some() && (!is_seen || rank.summarized.is_some())
}
