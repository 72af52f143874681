//! What numbers mean: which problems a run has, what is worth changing in the program, and the sentences that say so.

pub mod advice;
mod copied_sends;
pub mod how;
pub mod insight;
pub mod problem;
pub mod progress_in_words;
pub mod reach_in_words;
pub mod singletons;
mod starved;
pub mod summary;
pub mod thresholds_in_words;
