//! Reach: how much earlier a send could be posted, how much later a receive could be waited for ([SA06], docs/glossary.md).
//!
//! [`document::Reach::of_watches`] is the way in. Words of buffers were watched ([`lapscope_trace::watched`]); of each site
//! ([`sites`]) they give how long all of its data, and half of them, were ready before the post, or not needed behind the
//! completion ([`estimate`]), and [`who`] touched them. What that is worth is told by [`transfers`]: what a transfer takes, and
//! what was waited for it.

pub mod available;
pub mod bounds;
pub mod document;
pub mod estimate;
mod gain;
pub mod network;
pub mod order;
pub mod pairs;
pub mod pattern;
pub mod room;
#[cfg(test)]
mod simulated;
pub mod site;
pub mod sites;
pub mod transfers;
mod waits;
pub mod who;
