//! A run as a timeline for the viewers that people use: Perfetto's TrackEvent, Chrome's trace event format, OTF2.
//!
//! One stream of events ([`rank`]) has each rank's calls, the lifetimes of its requests and where its messages begin and end, in
//! order of time on the run's one clock. A format is a [`Writer`] of that stream. Ranks are taken one part of the run after the
//! other, so that a run larger than memory is written as well.

pub mod chrome;
mod definitions;
mod event;
mod lanes;
pub mod limit;
pub mod otf2;
pub mod perfetto;
mod proto;
mod rank;
mod regions;
mod shown;
pub mod unfinished;
mod write;

pub use definitions::Definitions;
pub use event::{Event, EventKind};
pub use rank::{DeviceSpan, Lifetime, RankEvents, Visit};
pub use regions::Region;
pub use shown::ShownWindows;
pub use write::{write, WriteProgress, Writer, Written};
