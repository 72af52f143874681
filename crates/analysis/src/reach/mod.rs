//! Reach: how much earlier a send could be posted, how much later a receive could be waited for ([SA06], docs/glossary.md).

pub mod available;
pub mod estimate;
pub mod network;
pub mod order;
pub mod pairs;
pub mod pattern;
pub mod read;
pub mod seen;
#[cfg(test)]
mod simulated;
pub mod watching;
pub mod words;
