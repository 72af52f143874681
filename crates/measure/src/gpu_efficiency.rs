//! How well the GPUs of a run were used, by the definitions of TALP for devices (DLB 3.6): parallel efficiency = load balance ×
//! communication efficiency × orchestration efficiency. Useful is what a GPU runs kernels; with copies it is active; else it is
//! inactive. TALP takes the GPUs of a process as one device; here each counts. Its efficiency of the host, Device Offload
//! Efficiency, needs the time in calls of the vendor's library, which is not recorded: [`crate::efficiency`] has that as computation.

use serde::{Deserialize, Serialize};

use crate::efficiency::{Bounds, EfficiencyLine};
use lapscope_data::model::{Nanos, RankInfo};
use lapscope_trace::gpu::NoGpuTime;
use lapscope_trace::DeviceTime;

/// What to know of the efficiencies of ranks that use GPUs.
pub const WAITS_FOR_GPUS: &str =
    "Time in calls of the GPU's driver, as in waits for kernels (cuStreamSynchronize), counts as computation of the ranks; TALP has it \
     apart, as offload.";

/// Of some GPUs, each counted once for each rank that uses it. Put together in any order it comes to the same. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuUse {
    pub gpus: u64,
    pub computing: i64,
    pub most_computing: i64,
    pub most_working: i64,
    /// Of the rank that took longest.
    pub longest: i64,
    /// Ranks of which it is not known, or not altogether, when their GPUs worked.
    pub unknown: u64,
}

impl GpuUse {
    /// Of one rank, from then to then.
    pub fn of_rank(info: &RankInfo, devices: &DeviceTime, (begin, end): (i64, i64)) -> GpuUse {
        let unknown = u64::from(NoGpuTime::of_rank(info).is_some());
        let mut all = GpuUse { longest: end - begin, unknown, ..GpuUse::default() };
        for (computing, working) in devices.each_within(begin, end) {
            all.gpus += 1;
            all.computing = all.computing.saturating_add(computing);
            all.most_computing = all.most_computing.max(computing);
            all.most_working = all.most_working.max(working);
        }
        all
    }

    pub fn merge(&mut self, other: &GpuUse) {
        self.gpus += other.gpus;
        self.computing = self.computing.saturating_add(other.computing);
        self.most_computing = self.most_computing.max(other.most_computing);
        self.most_working = self.most_working.max(other.most_working);
        self.longest = self.longest.max(other.longest);
        self.unknown += other.unknown;
    }
}

/// Fractions, 1 at best. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GpuEfficiency {
    pub gpus: u64,
    /// Kernels, summed over GPUs.
    pub computing_ns: Nanos,
    pub parallel_efficiency: f64,
    pub load_balance: f64,
    pub communication_efficiency: f64,
    pub orchestration_efficiency: f64,
}

impl GpuEfficiency {
    /// `None`: no kernel was recorded, or not all that GPUs did.
    pub fn new(all: &GpuUse) -> Option<GpuEfficiency> {
        if all.unknown > 0 || all.gpus == 0 || all.most_computing <= 0 || all.longest <= 0 {
            return None;
        }
        let mean = all.computing as f64 / all.gpus as f64;
        let (most, working) = (all.most_computing as f64, all.most_working as f64);
        Some(GpuEfficiency {
            gpus: all.gpus,
            computing_ns: Nanos(all.computing),
            parallel_efficiency: mean / all.longest as f64,
            load_balance: mean / most,
            communication_efficiency: most / working,
            orchestration_efficiency: working / all.longest as f64,
        })
    }

    /// As they are told.
    pub fn lines(&self) -> [EfficiencyLine; 4] {
        let line = |label, of_what, key, value| {
            let value = Some(Bounds { low: value, high: value });
            EfficiencyLine { label, of_what, key, value }
        };
        [
            line(
                "GPU parallel efficiency",
                "mean time in kernels over run time",
                "parallel_efficiency",
                self.parallel_efficiency,
            ),
            line(
                "  Load balance",
                "mean time in kernels over the most of a GPU",
                "load_balance",
                self.load_balance,
            ),
            line(
                "  Communication efficiency",
                "most time in kernels over the most in kernels or copies",
                "communication_efficiency",
                self.communication_efficiency,
            ),
            line(
                "  Orchestration efficiency",
                "most time in kernels or copies over run time",
                "orchestration_efficiency",
                self.orchestration_efficiency,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_multiply_to_the_whole() {
        let gpu = |computing, working| GpuUse {
            gpus: 1,
            computing,
            most_computing: computing,
            most_working: working,
            longest: 100,
            unknown: 0,
        };
        let mut all = gpu(40, 50);
        all.merge(&gpu(20, 80));
        let found = GpuEfficiency::new(&all).unwrap();
        assert_eq!((found.parallel_efficiency, found.load_balance), (0.3, 0.75));
        assert_eq!((found.communication_efficiency, found.orchestration_efficiency), (0.5, 0.8));
        assert_eq!(GpuEfficiency::new(&GpuUse { longest: 100, ..GpuUse::default() }), None);
        assert_eq!(GpuEfficiency::new(&GpuUse { unknown: 1, ..all }), None);
    }
}
