//! The rows of the big tables, packed: a run of ten million requests is held in memory at once.

use bytemuck::{Pod, Zeroable};

use lapscope_data::model::MemoryKind;
use serde::{Deserialize, Serialize};

/// A duration in 32 bits: exact below 2^27 ns (134 ms), beyond that to one part in 2^26, up to 2^58 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Span(u32);

impl Span {
    /// Not known.
    pub const NONE: Span = Span(u32::MAX);
    const MANTISSA_BITS: u32 = 27;
    const LONGEST: i64 = (1 << 58) - 1;

    /// Negative durations, which no healthy file has, become 0.
    #[inline]
    pub fn new(ns: i64) -> Span {
        let ns = ns.clamp(0, Self::LONGEST) as u64;
        let bits = u64::BITS - ns.leading_zeros();
        let shift = bits.saturating_sub(Self::MANTISSA_BITS);
        let packed = (shift << Self::MANTISSA_BITS) | (ns >> shift) as u32;
        Span(packed.min(u32::MAX - 1))
    }

    #[inline]
    pub fn from_ns(ns: Option<i64>) -> Span {
        ns.map_or(Span::NONE, Span::new)
    }

    /// Nanoseconds; `None` when not known.
    #[inline]
    pub fn get(self) -> Option<i64> {
        (self != Span::NONE).then(|| {
            let mantissa = i64::from(self.0 & ((1 << Self::MANTISSA_BITS) - 1));
            mantissa << (self.0 >> Self::MANTISSA_BITS)
        })
    }

    /// Nanoseconds; 0 when not known.
    #[inline]
    pub fn or_zero(self) -> i64 {
        self.get().unwrap_or(0)
    }
}

/// No index.
pub const NONE: u32 = u32::MAX;

/// What communicated: a request, a blocking call, or one half of either when it sends and receives.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Endpoint {
    /// Begin of the post, or of the blocking call: nanoseconds on the run's clock.
    pub begin: i64,
    /// In the posting call; 0 for blocking calls.
    pub post: Span,
    /// From the end of the post to the begin of the completing call; `NONE` while pending, 0 for blocking calls.
    pub window: Span,
    /// Inside other MPI calls during the window; `NONE` when another thread completed it.
    pub mpi: Span,
    /// `request.outstanding_bytes`.
    pub outstanding: Span,
    /// Index into [`super::RankTrace::operations`].
    pub operation: u32,
    /// Index into [`super::RankTrace::calls`] of the call that completed it, or that it is; [`NONE`]: nothing did.
    pub call: u32,
    /// Messages: index of the other end in the endpoints of its rank. Collectives: index into [`super::Trace::collectives`].
    pub partner: u32,
    /// Index into [`super::RankTrace::observations`].
    pub observed: u32,
}

/// What tests saw of a request before it ended, in nanoseconds since its post began, and where its data lay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Unsuccessful tests that covered it, and when the first and the last of them were.
    pub unsuccessful_tests: u64,
    pub first_unsuccessful_test: Option<i64>,
    pub last_unsuccessful_test: Option<i64>,
    /// Last time it was itself seen incomplete.
    pub last_incomplete: Option<i64>,
    /// First time it was seen complete without being ended.
    pub first_complete: Option<i64>,
    /// `None`: not asked, as where no accelerator was.
    pub memory: Option<MemoryKind>,
}

/// A call that completed requests, or that communicated itself.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Call {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    /// 0 when it had not returned at the end of the process, see [`Call::returned`].
    pub duration: i64,
    pub operation: u32,
    /// How many requests it completed, and whether it returned.
    ended: u32,
}

impl Call {
    const RETURNED: u32 = 1 << 31;

    /// `duration`: `None` when it had not returned.
    pub fn new(begin: i64, duration: Option<i64>, operation: u32, completed: u32) -> Call {
        let returned = duration.map_or(0, |_| Call::RETURNED);
        let ended = completed.min(Call::RETURNED - 1) | returned;
        Call { begin, duration: duration.unwrap_or(0), operation, ended }
    }

    /// Requests that it completed.
    #[inline]
    pub fn completed(&self) -> u32 {
        self.ended & !Call::RETURNED
    }

    /// Whether it had returned at the end of the process.
    #[inline]
    pub fn returned(&self) -> bool {
        self.ended & Call::RETURNED != 0
    }
}

/// A call that neither communicated nor completed a request: a probe, or one that manages communicators, windows or files.
#[derive(Debug, Clone, Copy)]
pub struct OtherCall {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    pub duration: i64,
    pub operation: u32,
    /// As [`super::Threads`] numbers them.
    pub thread: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_exact_where_they_say_so() {
        for ns in [0, 1, 999, (1 << 27) - 1] {
            assert_eq!(Span::new(ns).get(), Some(ns));
        }
        for ns in [1i64 << 27, 5_000_000_001, 86_400_000_000_000, (1 << 58) - 1] {
            let error = (Span::new(ns).or_zero() - ns).abs() as f64 / ns as f64;
            assert!(error <= 2f64.powi(-26), "{ns}: {error}");
        }
        assert_eq!(Span::new(-5).get(), Some(0));
        assert_eq!(Span::new(i64::MAX).get().map(|ns| ns > 1 << 57), Some(true));
        assert_eq!(Span::from_ns(None).get(), None);
    }

    #[test]
    fn an_endpoint_is_forty_bytes_and_a_call_twenty_four() {
        assert_eq!([size_of::<Endpoint>(), size_of::<Call>()], [40, 24]);
    }

    #[test]
    fn a_call_knows_whether_it_returned_and_what_it_completed() {
        for completed in [0, 5, Call::RETURNED - 1] {
            for duration in [None, Some(0), Some(7)] {
                let call = Call::new(1, duration, 2, completed);
                assert_eq!((call.returned(), call.completed()), (duration.is_some(), completed));
            }
        }
        assert_eq!(Call::new(1, None, 2, u32::MAX).completed(), Call::RETURNED - 1);
    }
}
