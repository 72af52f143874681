//! Words for people, which every layer above may use: numbers with units, lists of ranks, lines as wide as the output, and
//! the way to standard error.

pub mod hosts;
pub mod html;
pub mod library;
mod lists;
pub mod progress;
pub mod ranks;
pub mod say;
pub mod shell;
pub mod style;
pub mod units;
pub mod visible;

pub use lists::{capitalized, list_ranks, plural};
