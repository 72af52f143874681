//! What numbers mean: which problems a run has, what is worth changing in the program, and the sentences that say so.

pub mod advice;
mod copied_sends;
pub mod how;
pub mod insight;
pub mod job_cures;
pub mod measures_in_words;
pub mod problem;
pub mod progress_in_words;
pub mod reach_in_words;
pub mod singletons;
pub mod standstill_in_words;
mod starved;
pub mod summary;
pub mod thresholds_in_words;
pub mod whatif_in_words;
