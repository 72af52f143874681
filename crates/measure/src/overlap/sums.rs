//! What is summed over requests, and how it is shown.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::exposure::Exposure;
use super::together::EndedRequest;
use lapscope_data::model::Nanos;

/// Sums over requests that have something in common. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    pub requests: u64,
    pub bytes: u64,
    /// Requests with a reference time whose end is known; the next nine are sums over these.
    pub measured: u64,
    pub transfer: i64,
    pub possible_low: i64,
    pub possible_high: i64,
    pub lost_low: i64,
    pub achieved_low: i64,
    pub achieved_high: i64,
    pub late_partner: i64,
    pub no_progress: i64,
    pub rest: i64,
    /// What may be lost of all other requests: how long their transfers take is not known.
    pub unmeasured_lost: i64,
    /// In the posting calls, and of that while a GPU of the rank computed.
    pub post: i64,
    pub post_beside_gpu: i64,
    /// Shares of the completing calls.
    pub exposed: Exposure,
    /// What of these could at least, and at most, have been overlapped in the requests' own overlap windows.
    pub no_local_progress_low: i64,
    pub no_local_progress_high: i64,
}

impl Sums {
    pub(super) fn add_exposed(&mut self, share: Exposure, [low, high]: [i64; 2]) {
        self.exposed += share;
        self.no_local_progress_low = self.no_local_progress_low.saturating_add(low);
        self.no_local_progress_high = self.no_local_progress_high.saturating_add(high);
    }

    #[inline]
    pub(super) fn add_ended(&mut self, EndedRequest { is_measured, achieved, .. }: &EndedRequest) {
        if !is_measured {
            self.unmeasured_lost = self.unmeasured_lost.saturating_add(achieved.lost_high());
            return;
        }
        self.measured += 1;
        self.transfer = self.transfer.saturating_add(achieved.transfer);
        self.possible_low = self.possible_low.saturating_add(achieved.possible_low);
        self.possible_high = self.possible_high.saturating_add(achieved.possible_high);
        self.lost_low = self.lost_low.saturating_add(achieved.lost_low);
        self.achieved_low = self.achieved_low.saturating_add(achieved.low);
        self.achieved_high = self.achieved_high.saturating_add(achieved.high);
        self.late_partner = self.late_partner.saturating_add(achieved.late_partner);
        self.no_progress = self.no_progress.saturating_add(achieved.no_progress);
        self.rest = self.rest.saturating_add(achieved.rest);
    }
}

impl AddAssign<&Sums> for Sums {
    #[inline]
    fn add_assign(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.measured += other.measured;
        self.transfer = self.transfer.saturating_add(other.transfer);
        self.possible_low = self.possible_low.saturating_add(other.possible_low);
        self.possible_high = self.possible_high.saturating_add(other.possible_high);
        self.lost_low = self.lost_low.saturating_add(other.lost_low);
        self.achieved_low = self.achieved_low.saturating_add(other.achieved_low);
        self.achieved_high = self.achieved_high.saturating_add(other.achieved_high);
        self.late_partner = self.late_partner.saturating_add(other.late_partner);
        self.no_progress = self.no_progress.saturating_add(other.no_progress);
        self.rest = self.rest.saturating_add(other.rest);
        self.unmeasured_lost = self.unmeasured_lost.saturating_add(other.unmeasured_lost);
        self.post = self.post.saturating_add(other.post);
        self.post_beside_gpu = self.post_beside_gpu.saturating_add(other.post_beside_gpu);
        self.add_exposed(
            other.exposed,
            [other.no_local_progress_low, other.no_local_progress_high],
        );
    }
}

/// What most of the exposed time is due to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    LatePartner,
    NoRemoteProgress,
    NoLocalProgress,
    Transfer,
    NoProcessor,
}

impl Cause {
    pub const ALL: [Cause; 5] = [
        Cause::LatePartner,
        Cause::NoRemoteProgress,
        Cause::NoLocalProgress,
        Cause::Transfer,
        Cause::NoProcessor,
    ];
}

/// A time for each cause, in the order of [`Cause::ALL`].
pub type ByCause = [Nanos; Cause::ALL.len()];

impl Exposure {
    pub fn by_cause(&self, cause: Cause) -> Nanos {
        Nanos(match cause {
            Cause::LatePartner => self.late_partner,
            Cause::NoRemoteProgress => self.no_remote_progress,
            Cause::NoLocalProgress => self.no_local_progress,
            Cause::Transfer => self.transfer,
            Cause::NoProcessor => self.no_processor,
        })
    }

    /// The largest part; `None` of nothing.
    pub fn cause(&self) -> Option<Cause> {
        let largest = Cause::ALL.into_iter().rev().max_by_key(|&cause| self.by_cause(cause));
        largest.filter(|&cause| self.by_cause(cause).0 > 0)
    }
}

/// [`Sums`] as they are shown. Keys are documented in `docs/json.md`; fractions are of `reference_ns`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct OverlapNumbers {
    pub requests: u64,
    pub bytes: u64,
    pub measured: u64,
    pub unmeasured: u64,
    pub reference_ns: Nanos,
    pub achieved_low: Option<f64>,
    pub achieved_high: Option<f64>,
    pub possible_low: Option<f64>,
    pub possible: Option<f64>,
    pub lost_low: Option<f64>,
    pub lost_high: Option<f64>,
    pub achieved_low_ns: Nanos,
    pub achieved_high_ns: Nanos,
    pub possible_low_ns: Nanos,
    pub possible_ns: Nanos,
    pub lost_low_ns: Nanos,
    pub lost_high_ns: Nanos,
    pub lost_late_partner_ns: Nanos,
    pub lost_no_progress_ns: Nanos,
    pub lost_other_ns: Nanos,
    pub unmeasured_lost_high_ns: Nanos,
    pub post_ns: Nanos,
    pub exposed_ns: Nanos,
    pub exposed_late_partner_ns: Nanos,
    pub exposed_no_remote_progress_ns: Nanos,
    pub exposed_no_local_progress_ns: Nanos,
    /// Bounds of it, for all that transfers may take.
    pub exposed_no_local_progress_low_ns: Nanos,
    pub exposed_no_local_progress_high_ns: Nanos,
    pub exposed_transfer_ns: Nanos,
    pub exposed_no_processor_ns: Nanos,
    /// Besides: in the same calls, while a GPU of the rank computed.
    pub overlapped_with_gpu_ns: Nanos,
    pub cause: Option<Cause>,
}

/// A time that may be less by this share is told as an interval.
const VAGUE: f64 = 0.2;

/// Whether a time between these bounds is told as an interval.
pub fn is_vague(low: Nanos, high: Nanos) -> bool {
    (high - low).share_of(high) >= VAGUE
}

impl OverlapNumbers {
    /// Whether the bounds of what the requests' own overlap windows could have overlapped are far apart: reference times would tell
    /// more.
    pub fn is_no_local_progress_vague(&self) -> bool {
        let (low, high) =
            (self.exposed_no_local_progress_low_ns, self.exposed_no_local_progress_high_ns);
        is_vague(low, high)
    }

    /// The exposed time that is laid to a cause.
    pub fn exposed_of(&self, cause: Cause) -> Nanos {
        match cause {
            Cause::LatePartner => self.exposed_late_partner_ns,
            Cause::NoRemoteProgress => self.exposed_no_remote_progress_ns,
            Cause::NoLocalProgress => self.exposed_no_local_progress_ns,
            Cause::Transfer => self.exposed_transfer_ns,
            Cause::NoProcessor => self.exposed_no_processor_ns,
        }
    }
}

impl From<&Sums> for OverlapNumbers {
    fn from(sums: &Sums) -> OverlapNumbers {
        let fraction = |part: i64| (sums.transfer > 0).then(|| part as f64 / sums.transfer as f64);
        let lost_low = sums.lost_low;
        let lost_high = sums.late_partner + sums.no_progress + sums.rest;
        OverlapNumbers {
            requests: sums.requests,
            bytes: sums.bytes,
            measured: sums.measured,
            unmeasured: sums.requests - sums.measured,
            reference_ns: Nanos(sums.transfer),
            achieved_low: fraction(sums.achieved_low),
            achieved_high: fraction(sums.achieved_high),
            possible_low: fraction(sums.possible_low),
            possible: fraction(sums.possible_high),
            lost_low: fraction(lost_low),
            lost_high: fraction(lost_high),
            achieved_low_ns: Nanos(sums.achieved_low),
            achieved_high_ns: Nanos(sums.achieved_high),
            possible_low_ns: Nanos(sums.possible_low),
            possible_ns: Nanos(sums.possible_high),
            lost_low_ns: Nanos(lost_low),
            lost_high_ns: Nanos(lost_high),
            lost_late_partner_ns: Nanos(sums.late_partner),
            lost_no_progress_ns: Nanos(sums.no_progress),
            lost_other_ns: Nanos(sums.rest),
            unmeasured_lost_high_ns: Nanos(sums.unmeasured_lost),
            post_ns: Nanos(sums.post),
            exposed_ns: Nanos(sums.exposed.total()),
            exposed_late_partner_ns: Nanos(sums.exposed.late_partner),
            exposed_no_remote_progress_ns: Nanos(sums.exposed.no_remote_progress),
            exposed_no_local_progress_ns: Nanos(sums.exposed.no_local_progress),
            exposed_no_local_progress_low_ns: Nanos(sums.no_local_progress_low),
            exposed_no_local_progress_high_ns: Nanos(sums.no_local_progress_high),
            exposed_transfer_ns: Nanos(sums.exposed.transfer),
            exposed_no_processor_ns: Nanos(sums.exposed.no_processor),
            overlapped_with_gpu_ns: Nanos(sums.exposed.beside_gpu),
            cause: sums.exposed.cause(),
        }
    }
}

/// Sums over blocking calls: no window, so nothing was overlapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockingSums {
    pub calls: u64,
    pub bytes: u64,
    pub exposed: Exposure,
}

impl AddAssign<&BlockingSums> for BlockingSums {
    fn add_assign(&mut self, other: &BlockingSums) {
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.exposed += other.exposed;
    }
}

/// [`BlockingSums`] as they are shown.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BlockingNumbers {
    pub calls: u64,
    pub bytes: u64,
    pub blocked_ns: Nanos,
    pub late_partner_ns: Nanos,
    pub no_remote_progress_ns: Nanos,
    /// Of loops of tests; a call that blocks has no overlap window.
    pub no_local_progress_ns: Nanos,
    pub transfer_ns: Nanos,
    pub no_processor_ns: Nanos,
    pub overlapped_with_gpu_ns: Nanos,
    pub cause: Option<Cause>,
}

impl BlockingNumbers {
    /// The time that is laid to a cause.
    pub fn blocked_by(&self, cause: Cause) -> Nanos {
        match cause {
            Cause::LatePartner => self.late_partner_ns,
            Cause::NoRemoteProgress => self.no_remote_progress_ns,
            Cause::NoLocalProgress => self.no_local_progress_ns,
            Cause::Transfer => self.transfer_ns,
            Cause::NoProcessor => self.no_processor_ns,
        }
    }
}

impl From<&BlockingSums> for BlockingNumbers {
    fn from(sums: &BlockingSums) -> BlockingNumbers {
        BlockingNumbers {
            calls: sums.calls,
            bytes: sums.bytes,
            blocked_ns: Nanos(sums.exposed.total()),
            late_partner_ns: Nanos(sums.exposed.late_partner),
            no_remote_progress_ns: Nanos(sums.exposed.no_remote_progress),
            no_local_progress_ns: Nanos(sums.exposed.no_local_progress),
            transfer_ns: Nanos(sums.exposed.transfer),
            no_processor_ns: Nanos(sums.exposed.no_processor),
            overlapped_with_gpu_ns: Nanos(sums.exposed.beside_gpu),
            cause: sums.exposed.cause(),
        }
    }
}

/// Sums over requests and blocking calls that have something in common; keys as in `lapscope overlap`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OverlapTimes {
    /// So many requests have a known reference time; the next seven are sums over these.
    pub measured: u64,
    pub reference_ns: Nanos,
    pub achieved_low_ns: Nanos,
    pub achieved_high_ns: Nanos,
    pub possible_low_ns: Nanos,
    pub possible_ns: Nanos,
    pub lost_low_ns: Nanos,
    pub lost_high_ns: Nanos,
    /// Exposed time by cause: of requests their shares of the completing calls, of blocking calls their own time.
    pub exposed_late_partner_ns: Nanos,
    pub exposed_no_remote_progress_ns: Nanos,
    pub exposed_no_local_progress_ns: Nanos,
    pub exposed_no_local_progress_low_ns: Nanos,
    pub exposed_no_local_progress_high_ns: Nanos,
    pub exposed_transfer_ns: Nanos,
    pub exposed_no_processor_ns: Nanos,
    /// Besides: in the same calls, while a GPU of the rank computed.
    pub overlapped_with_gpu_ns: Nanos,
}

impl OverlapTimes {
    pub fn add_requests(&mut self, numbers: &OverlapNumbers) {
        self.measured += numbers.measured;
        self.reference_ns += numbers.reference_ns;
        self.achieved_low_ns += numbers.achieved_low_ns;
        self.achieved_high_ns += numbers.achieved_high_ns;
        self.possible_low_ns += numbers.possible_low_ns;
        self.possible_ns += numbers.possible_ns;
        self.lost_low_ns += numbers.lost_low_ns;
        self.lost_high_ns += numbers.lost_high_ns;
        self.exposed_late_partner_ns += numbers.exposed_late_partner_ns;
        self.exposed_no_remote_progress_ns += numbers.exposed_no_remote_progress_ns;
        self.exposed_no_local_progress_ns += numbers.exposed_no_local_progress_ns;
        self.exposed_no_local_progress_low_ns += numbers.exposed_no_local_progress_low_ns;
        self.exposed_no_local_progress_high_ns += numbers.exposed_no_local_progress_high_ns;
        self.exposed_transfer_ns += numbers.exposed_transfer_ns;
        self.exposed_no_processor_ns += numbers.exposed_no_processor_ns;
        self.overlapped_with_gpu_ns += numbers.overlapped_with_gpu_ns;
    }

    pub fn add_blocking(&mut self, numbers: &BlockingNumbers) {
        self.exposed_late_partner_ns += numbers.late_partner_ns;
        self.exposed_no_remote_progress_ns += numbers.no_remote_progress_ns;
        self.exposed_no_local_progress_ns += numbers.no_local_progress_ns;
        self.exposed_transfer_ns += numbers.transfer_ns;
        self.exposed_no_processor_ns += numbers.no_processor_ns;
        self.overlapped_with_gpu_ns += numbers.overlapped_with_gpu_ns;
    }

    /// The exposed time, all of it and by cause.
    pub fn exposed(&self) -> (Nanos, ByCause) {
        let causes = [
            self.exposed_late_partner_ns,
            self.exposed_no_remote_progress_ns,
            self.exposed_no_local_progress_ns,
            self.exposed_transfer_ns,
            self.exposed_no_processor_ns,
        ];
        (causes.into_iter().sum(), causes)
    }
}
