//! Call by call what was waited for, and request by request what was overlapped, for analyses that go on from there.

use super::exposure::{Exposure, ExposureBounds};
use super::request::Achieved;
use lapscope_data::model::Kind;
use lapscope_data::places::SiteId;
use lapscope_trace::Half;

/// A completing or blocking call, and what its time is laid to.
#[derive(Debug, Clone, Copy)]
pub struct Waited<'a> {
    /// The request that it waited for, as far as that is known, else one of those that it completed; or the call itself.
    pub half: Half<'a>,
    /// The call that waited, where that is another one: a probe for the message.
    pub at: Option<SiteId>,
    pub awaited: Awaited<'a>,
    /// The parts add up to its duration, but for what a GPU of the rank computed in.
    pub exposed: Exposure,
    pub bounds: ExposureBounds,
    /// Most computation in a window of its requests after their partners had posted; nanoseconds, as the next.
    pub compute: i64,
    /// What all its transfers take one after the other; 0 when not known.
    pub transfer: i64,
}

impl Waited<'_> {
    /// Whether that is what a one-sided call takes of its own, which is no waiting: nor is a put into memory that the target
    /// need not touch.
    pub fn is_own_work(&self) -> bool {
        let operation = self.half.operation;
        let is_unknown = matches!(self.awaited, Awaited::Unknown);
        operation.kind == Kind::Rma && !operation.is_request && is_unknown
    }
}

/// Whom a call waited for.
#[derive(Debug, Clone, Copy)]
pub enum Awaited<'a> {
    /// The other end of a message.
    Partner(Half<'a>),
    /// A member of a collective, the last or the one that was away longest: its place in [`lapscope_trace::Trace::ranks`].
    Member(u32),
    /// Nobody, or it is not known.
    Unknown,
}

/// Is told of every call of one rank, and of every request that has a reference time and an end.
pub trait Witness: Send {
    fn call(&mut self, _: &Waited<'_>) {}

    /// A loop of tests that waited, before the call that completed its requests: its half ends where the loop begins, and the parts
    /// add up to what its tests took.
    fn polled(&mut self, _: &Waited<'_>) {}

    /// A loop of tests or probes that waited: when it began, and how long it was in no other call.
    fn looped(&mut self, _begin: i64, _ns: i64) {}

    fn request(&mut self, _: &Half<'_>, _: &Achieved) {}

    /// Whether it looks at calls that begin then, nanoseconds on the run's clock. What nobody looks at is not measured.
    fn looks_at(&self, _: i64) -> bool {
        true
    }
}

impl Witness for () {}

/// Who may be there or not.
impl<W: Witness> Witness for Option<W> {
    fn call(&mut self, waited: &Waited<'_>) {
        if let Some(witness) = self {
            witness.call(waited);
        }
    }

    fn polled(&mut self, waited: &Waited<'_>) {
        if let Some(witness) = self {
            witness.polled(waited);
        }
    }

    fn looped(&mut self, begin: i64, ns: i64) {
        if let Some(witness) = self {
            witness.looped(begin, ns);
        }
    }

    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        if let Some(witness) = self {
            witness.request(half, achieved);
        }
    }
}

impl<A: Witness, B: Witness, C: Witness> Witness for (A, B, C) {
    fn call(&mut self, waited: &Waited<'_>) {
        self.0.call(waited);
        self.1.call(waited);
        self.2.call(waited);
    }

    fn polled(&mut self, waited: &Waited<'_>) {
        self.0.polled(waited);
        self.1.polled(waited);
        self.2.polled(waited);
    }

    fn looped(&mut self, begin: i64, ns: i64) {
        self.0.looped(begin, ns);
        self.1.looped(begin, ns);
        self.2.looped(begin, ns);
    }

    fn request(&mut self, half: &Half<'_>, achieved: &Achieved) {
        self.0.request(half, achieved);
        self.1.request(half, achieved);
        self.2.request(half, achieved);
    }
}
