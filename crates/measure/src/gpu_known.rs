//! What the program of `lapscope doctor --gpu` knows of its kernels, beside what was recorded of them. The names of regions that
//! interposer/calibrate/gpu.c marks say it.

use std::ops::RangeInclusive;

use lapscope_data::model::Nanos;
use lapscope_trace::Trace;

/// What rank 0 of that program said of its GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuKnown {
    /// There is none, and why.
    Missing(String),
    /// There may be one, and it cannot be used; why.
    Failed(String),
    Worked {
        /// So long kernels ran, those that ran at once counted once.
        computed: Nanos,
        /// So long waits were beside them.
        waited: Nanos,
    },
}

impl GpuKnown {
    /// `None`: it is no run of that program, or it did not come so far.
    pub fn of_run(trace: &Trace) -> Option<GpuKnown> {
        trace.mark_names.iter().find_map(|name| GpuKnown::parse(name))
    }

    fn parse(name: &str) -> Option<GpuKnown> {
        if let Some(why) = name.strip_prefix("gpu missing ") {
            return Some(GpuKnown::Missing(why.to_owned()));
        }
        if let Some(why) = name.strip_prefix("gpu fails ") {
            return Some(GpuKnown::Failed(why.to_owned()));
        }
        let (computed, waited) = name.strip_prefix("gpu computed ")?.split_once(" waited ")?;
        Some(GpuKnown::Worked {
            computed: Nanos(computed.parse().ok()?),
            waited: Nanos(waited.parse().ok()?),
        })
    }
}

/// A launch takes some microseconds, and so does the GPU's own clock.
pub fn kernels_as_recorded(computed: Nanos) -> RangeInclusive<Nanos> {
    share(computed, 0.99)..=share(computed, 1.05)
}

/// A wait may begin a little before its kernel, or end after it.
pub fn waits_as_recorded(waited: Nanos) -> RangeInclusive<Nanos> {
    share(waited, 0.95)..=share(waited, 1.05)
}

fn share(time: Nanos, share: f64) -> Nanos {
    Nanos((time.0 as f64 * share).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_regions_say_what_is_known() {
        let worked = GpuKnown::Worked { computed: Nanos(400), waited: Nanos(12) };
        assert_eq!(GpuKnown::parse("gpu computed 400 waited 12"), Some(worked));
        let missing = GpuKnown::Missing("libcuda.so.1: not here".into());
        assert_eq!(GpuKnown::parse("gpu missing libcuda.so.1: not here"), Some(missing));
        let failed = GpuKnown::Failed("error 803 of libcuda.so.1".into());
        assert_eq!(GpuKnown::parse("gpu fails error 803 of libcuda.so.1"), Some(failed));
        for other in ["moved nothing", "gpu computed 400", "gpu computed x waited 12"] {
            assert_eq!(GpuKnown::parse(other), None);
        }
    }

    #[test]
    fn what_is_far_from_what_is_known_is_not_as_known() {
        let known = Nanos(1_000);
        assert!(kernels_as_recorded(known).contains(&Nanos(1_040)));
        for wrong in [0, 500, 980, 1_060, 2_000] {
            assert!(!kernels_as_recorded(known).contains(&Nanos(wrong)), "{wrong}");
        }
        assert!(waits_as_recorded(known).contains(&Nanos(960)));
        assert!(!waits_as_recorded(known).contains(&Nanos(940)));
    }
}
