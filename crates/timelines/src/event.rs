//! One entry of the stream of events that a rank's timeline is.

/// What begins or ends; numbers are places in the lists of [`crate::RankEvents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    Enter(u32),
    Leave(u32),
    Posted(u32),
    Ended(u32),
    RegionBegins(u32),
    RegionEnds(u32),
    /// A GPU works.
    DeviceBegins(u32),
    DeviceEnds(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// On the run's clock, nanoseconds.
    pub at: i64,
    pub what: EventKind,
}
