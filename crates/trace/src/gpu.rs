//! Ranks that use GPUs: why it is not known when these worked, and what time in MPI beside it is called then.

use lapscope_data::model::{Ended, Full, RankInfo};

/// The file that CUDA loads, by CUDA_INJECTION64_PATH.
pub const CUDA_PLUGIN: &str = "liblapscope-cuda.so";

/// Why it is not known, or not altogether, when GPUs of a rank worked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoGpuTime {
    /// Whose driver is of this name.
    OtherVendor(String),
    /// Why no more than sums was kept.
    Sums(Full),
    /// It is not installed.
    NoPlugin,
    /// CUDA was not told to load it.
    NotNamed,
    /// What CUDA was told to load.
    OtherTool(String),
    /// CUDA was told to, and it did not come.
    NotLoaded,
    /// What the plugin says of CUPTI: `say_why_not` and `what_is_missing` of interposer/gpu/cuda.c.
    Cupti(String),
    Lost,
    NoEnd,
}

impl NoGpuTime {
    /// `None`: it is known, or the rank uses no GPU.
    pub fn of_rank(rank: &RankInfo) -> Option<NoGpuTime> {
        let driver = rank.accelerator.as_ref().filter(|_| rank.may_use_gpu())?;
        if driver != "libcuda" {
            return Some(NoGpuTime::OtherVendor(driver.clone()));
        }
        if let Some(full) = rank.summarized {
            return Some(NoGpuTime::Sums(full));
        }
        let Some(recorder) = &rank.device_recorder else {
            return Some(NoGpuTime::not_loaded(rank.cuda_injection.as_deref()));
        };
        match &recorder.problem {
            Some(problem) => Some(NoGpuTime::Cupti(problem.clone())),
            None if recorder.lost > 0 => Some(NoGpuTime::Lost),
            None => (rank.ended != Ended::Finalize).then_some(NoGpuTime::NoEnd),
        }
    }

    fn not_loaded(named: Option<&str>) -> NoGpuTime {
        match named {
            None | Some("") => NoGpuTime::NotNamed,
            Some(path) if path.rsplit('/').next() == Some(CUDA_PLUGIN) => NoGpuTime::NotLoaded,
            Some(path) => NoGpuTime::OtherTool(path.to_owned()),
        }
    }

    /// As JSON has it.
    pub fn key(&self) -> &'static str {
        match self {
            NoGpuTime::OtherVendor(_) => "other_vendor",
            NoGpuTime::Sums(_) => "sums",
            NoGpuTime::NoPlugin => "no_plugin",
            NoGpuTime::NotNamed => "not_named",
            NoGpuTime::OtherTool(_) => "other_tool",
            NoGpuTime::NotLoaded => "not_loaded",
            NoGpuTime::Cupti(_) => "cupti",
            NoGpuTime::Lost => "lost",
            NoGpuTime::NoEnd => "no_end",
        }
    }

    /// A sentence without its full stop.
    pub fn why(&self) -> String {
        match self {
            NoGpuTime::OtherVendor(driver) => {
                format!("lapscope records work of NVIDIA's GPUs alone, and {driver} is not theirs")
            }
            NoGpuTime::Sums(full) => {
                format!("{}, and sums leave out when GPUs worked", full.sentence())
            }
            NoGpuTime::NoPlugin => format!("{CUDA_PLUGIN} is not beside the preload library"),
            NoGpuTime::NotNamed => {
                format!("CUDA_INJECTION64_PATH, by which CUDA loads {CUDA_PLUGIN}, was not set")
            }
            NoGpuTime::OtherTool(path) => {
                format!("CUDA_INJECTION64_PATH names {path}, and CUDA loads one tool")
            }
            NoGpuTime::NotLoaded => format!(
                "CUDA has not loaded {CUDA_PLUGIN}: the file is not there, or CUDA had been started before"
            ),
            NoGpuTime::Cupti(problem) => problem.clone(),
            NoGpuTime::Lost => "CUPTI or the spool had no room for some of it".to_owned(),
            NoGpuTime::NoEnd => {
                "the rank did not reach MPI_Finalize, and of a kernel nothing is known until it ends"
                    .to_owned()
            }
        }
    }

    /// What to do, to have it.
    pub fn way_out(&self) -> &'static str {
        match self {
            NoGpuTime::OtherVendor(driver) if driver == "libamdhip64" => {
                "record the program with AMD's rocprof-sys-run, whose timeline has kernels beside MPI"
            }
            NoGpuTime::OtherVendor(_) => "record the program with Intel's unitrace, whose timeline has kernels",
            NoGpuTime::Sums(Full::Asked) => "record without LAPSCOPE_RECORD=sums",
            NoGpuTime::Sums(Full::JobRecord) => "record by lapscope run -- <launch line>",
            NoGpuTime::Sums(Full::MaxMb) => "set a larger LAPSCOPE_MAX_MB",
            NoGpuTime::Sums(Full::Disk | Full::FileSize) => "record where there is more room",
            NoGpuTime::NoPlugin => "install lapscope anew",
            NoGpuTime::NotNamed => {
                "start the program by lapscope run; if it was, lapscope doctor says why not"
            }
            NoGpuTime::OtherTool(_) => "unset CUDA_INJECTION64_PATH while lapscope records",
            NoGpuTime::NotLoaded => "run lapscope doctor where these ranks ran",
            NoGpuTime::Cupti(problem) => by_cupti(problem),
            NoGpuTime::Lost => "set a larger LAPSCOPE_MAX_MB; where CUPTI had no room, fewer kernels at once help",
            NoGpuTime::NoEnd => "let the program end by MPI_Finalize",
        }
    }
}

/// By how a problem begins: the first that fits.
const BY_CUPTI: [(&str, &str); 9] = [
    (
        "another tool in the process has",
        "start the program without that tool, or set LAPSCOPE_CUPTI=share where it only loads CUPTI",
    ),
    ("another tool", "start the program without that tool"),
    ("the program is linked with CUPTI", "set LAPSCOPE_CUPTI=share where it does not profile itself"),
    (
        "this user may not",
        "let the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the container SYS_ADMIN",
    ),
    ("CUPTI has ", NO_OTHER_TOOL),
    ("CUPTI gave ", NO_OTHER_TOOL),
    (
        "some GPU work was not handed over",
        "see whether the driver hangs, as by nvidia-smi; else report it as a mistake of lapscope",
    ),
    ("some GPU work", "wait for the GPUs before MPI_Finalize, as by cudaDeviceSynchronize"),
    ("the process was ending", "call MPI_Finalize before exit handlers and destructors run"),
];
const NO_OTHER_TOOL: &str =
    "see that no other tool in the process uses CUPTI; else report it as a mistake of lapscope";

fn by_cupti(problem: &str) -> &'static str {
    let found = BY_CUPTI.iter().find(|(begin, _)| problem.starts_with(begin));
    found.map_or(GET_CUPTI, |(_, way_out)| way_out)
}

/// Where there is none that goes with the driver: interposer/gpu/find.c has which of them are looked for.
const GET_CUPTI: &str = "load the module of a CUDA 12 or 13 that is no newer than the driver, set CUDA_HOME to it, or have in \
     LD_LIBRARY_PATH the directory of: pip install nvidia-cuda-cupti-cu12 (for drivers from 525 on), nvidia-cuda-cupti (of CUDA 13, from \
     580 on)";

/// The same where the first number of the driver's version is known.
pub fn get_cupti(driver: Option<u32>) -> &'static str {
    match driver {
        None => GET_CUPTI,
        Some(580..) => {
            "load the module of a CUDA toolkit, set CUDA_HOME, or: pip install nvidia-cuda-cupti, with its directory in LD_LIBRARY_PATH"
        }
        Some(525..) => {
            "load the module of a CUDA 12, set CUDA_HOME to it, or: pip install nvidia-cuda-cupti-cu12, with its directory in LD_LIBRARY_PATH"
        }
        Some(_) => {
            "lapscope uses the CUPTI of CUDA 12 and 13: have a driver from 525 on, or NVIDIA's package cuda-compat, and such a toolkit"
        }
    }
}

/// Whether the rank's GPUs may have computed while it was in MPI, and nobody knows: then its exposed time is no more than what is
/// called so, and all that rests on it likewise.
pub fn exposed_is_upper_bound(rank: &RankInfo) -> bool {
    NoGpuTime::of_rank(rank).is_some()
}

/// What is said of such time.
pub const UPPER_BOUND: &str = "An upper bound: not all that GPUs compute meanwhile is recorded.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::MadeUp;
    use lapscope_data::model::{DeviceRecorder, Nanos};

    /// Of a rank with CUDA, whose GPUs' work is recorded before that is changed.
    fn reason(change: impl FnOnce(&mut RankInfo)) -> Option<NoGpuTime> {
        let mut run = MadeUp::new(1);
        let info = run.info(0);
        info.accelerator = Some("libcuda".to_owned());
        info.device_recorder = Some(DeviceRecorder {
            source: "libcupti.so.12".to_owned(),
            problem: None,
            resolution: Nanos(10_000),
            lost: 0,
            has_rows: true,
        });
        info.ended = Ended::Finalize;
        change(info);
        NoGpuTime::of_rank(info)
    }

    fn with_injection(named: Option<&str>) -> Option<NoGpuTime> {
        reason(|info| {
            info.device_recorder = None;
            info.cuda_injection = named.map(str::to_owned);
        })
    }

    #[test]
    fn each_reason_is_told_from_the_others() {
        assert_eq!(reason(|_| ()), None);
        assert_eq!(reason(|info| info.accelerator = None), None);
        let unused = reason(|info| {
            info.device_recorder = None;
            info.cuda_unused = true;
        });
        assert_eq!(unused, None);
        let of_amd = reason(|info| info.accelerator = Some("libamdhip64".to_owned()));
        assert_eq!(of_amd, Some(NoGpuTime::OtherVendor("libamdhip64".to_owned())));
        assert_eq!(with_injection(None), Some(NoGpuTime::NotNamed));
        assert_eq!(with_injection(Some("/a/liblapscope-cuda.so")), Some(NoGpuTime::NotLoaded));
        let nsys = "/opt/nsys/libToolsInjection64.so";
        assert_eq!(with_injection(Some(nsys)), Some(NoGpuTime::OtherTool(nsys.to_owned())));
        let sums = reason(|info| {
            info.device_recorder = None; // sums alone have none
            info.summarized = Some(Full::Asked);
        });
        assert_eq!(sums, Some(NoGpuTime::Sums(Full::Asked)));
        let with_recorder = |change: fn(&mut DeviceRecorder)| {
            reason(|info| info.device_recorder.iter_mut().for_each(change))
        };
        let taken = "another tool in the process has CUPTI";
        let problem = with_recorder(|it| {
            it.problem = Some("another tool in the process has CUPTI".to_owned())
        });
        assert_eq!(problem, Some(NoGpuTime::Cupti(taken.to_owned())));
        assert_eq!(with_recorder(|it| it.lost = 1), Some(NoGpuTime::Lost));
        assert_eq!(reason(|info| info.ended = Ended::Killed), Some(NoGpuTime::NoEnd));
    }

    #[test]
    fn what_the_plugin_says_has_its_way_out() {
        let way_out = |problem: &str| NoGpuTime::Cupti(problem.to_owned()).way_out();
        assert!(way_out("another tool in the process has CUPTI").contains("without that tool"));
        assert!(way_out("the program is linked with CUPTI, and may profile itself")
            .contains("LAPSCOPE_CUPTI=share"));
        assert!(way_out("this user may not use CUPTI (error 35)").contains("administrator"));
        assert!(way_out("CUPTI has kept a buffer of records").contains("other tool"));
        assert!(way_out("some GPU work had not ended, or CUPTI does not know its times")
            .contains("cudaDeviceSynchronize"));
        for problem in [
            "no CUPTI was found that goes with the driver",
            "CUPTI gives error 15: it does not go with driver or GPU",
        ] {
            let said = way_out(problem);
            assert!(said.contains("CUDA_HOME") && said.contains("-cu12 (for"), "{said}");
        }
    }

    /// Packages without a number are of the newest CUDA, which older drivers do not go with.
    #[test]
    fn the_package_goes_with_the_driver() {
        for (driver, package) in [
            (580, "nvidia-cuda-cupti,"),
            (535, "nvidia-cuda-cupti-cu12,"),
            (470, "driver from 525 on"),
        ] {
            let said = get_cupti(Some(driver));
            assert!(said.contains(package), "{driver}: {said}");
        }
    }
}
