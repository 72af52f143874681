//! Whether what GPUs compute would be recorded, and whether what is recorded is what a program knows of its kernels.

use std::ffi::{CStr, CString, OsStr};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::install;
use crate::run::environment::other_cuda_tool;
use lapscope_data::model::{DeviceRecorder, Nanos};
use lapscope_data::text::units::time;
use lapscope_measure::gpu_known::{kernels_as_recorded, waits_as_recorded, GpuKnown};

const TOPIC: &str = "gpu";
const NAME: &str = "GPU time";
const GET_CUPTI: &str = "load the module of a CUDA toolkit, set CUDA_HOME, or: pip install nvidia-cuda-cupti, with its directory in LD_LIBRARY_PATH";
const GET_GPU: &str = "see what nvidia-smi says there: libraries of the driver have to be those of the kernel, and nobody may have the GPU for himself";
/// What NVIDIA's driver has of itself.
const DRIVER: &str = "/proc/driver/nvidia/version";
const FOLLOWS: &str =
    "time in MPI beside a running kernel counts as exposed, which is then an upper bound";

/// `preload`: the library beside which the plugin is.
pub fn look(topic: &'static str, preload: &Path) -> Finding {
    let plugin = install::cuda_plugin(preload);
    let tool = other_cuda_tool().map(PathBuf::from);
    let cupti = plugin.as_deref().and_then(find_cupti);
    finding(topic, plugin.is_some(), tool.as_deref(), cupti.as_deref(), Path::new(DRIVER).exists())
}

fn finding(
    topic: &'static str,
    has_plugin: bool,
    tool: Option<&Path>,
    cupti: Option<&Path>,
    has_driver: bool,
) -> Finding {
    if !has_plugin {
        let says = "liblapscope-cuda.so is not beside the preload library";
        return Finding::note(topic, NAME, says, "install lapscope anew").follows(FOLLOWS);
    }
    if let Some(tool) = tool {
        let says =
            format!("CUDA_INJECTION64_PATH names {}, and CUDA loads one tool", tool.display());
        let advice = "unset CUDA_INJECTION64_PATH while lapscope records";
        return Finding::note(topic, NAME, says, advice).follows(FOLLOWS);
    }
    match cupti {
        Some(cupti) => Finding::ok(topic, NAME, format!("by {}", cupti.display()))
            .follows("`lapscope doctor --gpu -- mpirun -n 2` compares it with known kernels"),
        None if !has_driver => Finding::ok(topic, NAME, "no NVIDIA driver here, and no CUPTI"),
        None => {
            let says = "no CUPTI was found, of which CUDA toolkits have one";
            Finding::note(topic, NAME, says, GET_CUPTI).follows(FOLLOWS)
        }
    }
}

/// What was recorded of rank 0 in the run of `lapscope doctor --gpu`.
#[derive(Debug, Clone, Copy, Default)]
pub struct GpuRecorded<'a> {
    /// `None`: CUDA has loaded no plugin.
    pub recorder: Option<&'a DeviceRecorder>,
    pub computed: Nanos,
    pub waited: Nanos,
}

/// What was recorded beside what is known; one finding where nothing can be compared.
pub fn compare(known: &GpuKnown, recorded: GpuRecorded<'_>) -> Vec<Finding> {
    let (computed, waited) = match known {
        GpuKnown::Worked { computed, waited } => (*computed, *waited),
        GpuKnown::Missing(why) => {
            let says = format!("no GPU of NVIDIA's here: {why}");
            return vec![Finding::note(TOPIC, NAME, says, "launch it where the GPUs are")];
        }
        GpuKnown::Failed(why) => {
            let says = format!("the GPU cannot be used: {why}");
            return vec![Finding::missing(TOPIC, NAME, says, GET_GPU).follows(FOLLOWS)];
        }
    };
    let not_recorded = |problem: &str, advice: &str| {
        let says = format!("not recorded: {problem}");
        vec![Finding::missing(TOPIC, NAME, says, advice).follows(FOLLOWS)]
    };
    let Some(recorder) = recorded.recorder else {
        return not_recorded("CUDA has not loaded liblapscope-cuda.so", "lapscope doctor says why");
    };
    if let Some(problem) = &recorder.problem {
        return not_recorded(problem, way_out(problem));
    }
    vec![
        Finding::ok(TOPIC, NAME, format!("by {}", recorder.source)),
        compared("kernels", recorded.computed, &kernels_as_recorded(computed)),
        compared("waits beside them", recorded.waited, &waits_as_recorded(waited)),
    ]
}

/// By what the plugin says (`say_why_not` and `what_is_missing` of interposer/gpu/cuda.c).
fn way_out(problem: &str) -> &'static str {
    match problem {
        _ if problem.starts_with("another tool") => "launch it without that tool",
        _ if problem.starts_with("this user may not") => {
            "let the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the container SYS_ADMIN"
        }
        _ if problem.starts_with("CUPTI has ") || problem.starts_with("CUPTI gave ") => {
            "see that no other tool in the process uses CUPTI; else report it as a mistake of lapscope"
        }
        _ => GET_CUPTI,
    }
}

fn compared(name: &str, found: Nanos, known: &RangeInclusive<Nanos>) -> Finding {
    let (least, most) = (time(*known.start()), time(*known.end()));
    let says = format!("{} recorded, known to be {least} to {most}", time(found));
    if known.contains(&found) {
        return Finding::ok(TOPIC, name, says);
    }
    let advice = "try again with a GPU and processors that nobody else uses; else report it as a mistake of lapscope";
    Finding::missing(TOPIC, name, says, advice).follows("what is recorded of GPUs here is wrong")
}

/// As the plugin itself would find it.
fn find_cupti(plugin: &Path) -> Option<PathBuf> {
    let path = CString::new(plugin.as_os_str().as_bytes()).ok()?;
    // SAFETY: both texts end with a zero; the function takes nothing, and gives a text that stays.
    let found = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        let find = (!library.is_null())
            .then(|| libc::dlsym(library, c"lapscope_find_cupti".as_ptr()))
            .filter(|find| !find.is_null())?;
        let find: extern "C" fn() -> *const libc::c_char = std::mem::transmute(find);
        CStr::from_ptr(find())
    };
    let found = Path::new(OsStr::from_bytes(found.to_bytes())).to_path_buf();
    (!found.as_os_str().is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn each_obstacle_has_a_way_out() {
        let cupti = Path::new("/opt/libcupti.so.12");
        let says = |has_plugin, tool: Option<&str>, cupti, has_driver| {
            let found = finding("lapscope", has_plugin, tool.map(Path::new), cupti, has_driver);
            assert_eq!(found.status == Status::Note, found.advice.is_some());
            format!("{} {}", found.says, found.advice.unwrap_or_default())
        };
        assert_eq!(says(true, None, Some(cupti), true), "by /opt/libcupti.so.12 ");
        assert!(says(true, None, None, false).starts_with("no NVIDIA driver"));
        assert!(says(true, None, None, true).contains("CUDA_HOME"));
        assert!(says(true, Some("/x/libTool.so"), Some(cupti), true).contains("/x/libTool.so"));
        assert!(says(false, None, None, true).contains("install"));
    }

    #[test]
    fn what_is_recorded_is_compared_with_what_is_known() {
        let source = "libcupti.so.12".to_owned();
        let recorder = DeviceRecorder {
            source,
            problem: None,
            resolution: Nanos(10_000),
            lost: 0,
            has_rows: true,
        };
        let known = GpuKnown::Worked { computed: Nanos(400_000), waited: Nanos(100_000) };
        let states = |computed, waited| {
            let (computed, waited) = (Nanos(computed), Nanos(waited));
            let recorded = GpuRecorded { recorder: Some(&recorder), computed, waited };
            compare(&known, recorded).iter().map(|it| it.status).collect::<Vec<_>>()
        };
        assert_eq!(states(401_000, 99_000), [Status::Ok; 3]);
        assert_eq!(states(200_000, 99_000), [Status::Ok, Status::Missing, Status::Ok]);
        assert_eq!(states(401_000, 0), [Status::Ok, Status::Ok, Status::Missing]);
    }

    #[test]
    fn what_cannot_be_compared_is_said_in_one_line() {
        let known = GpuKnown::Worked { computed: Nanos(400_000), waited: Nanos(100_000) };
        let problem = Some("no CUPTI was found".to_owned());
        let recorder = DeviceRecorder {
            source: "CUPTI".to_owned(),
            problem,
            resolution: Nanos(10_000),
            lost: 0,
            has_rows: false,
        };
        let with_problem = GpuRecorded { recorder: Some(&recorder), ..GpuRecorded::default() };
        let none = GpuKnown::Missing("libcuda.so.1: no such file".into());
        for (known, recorded, status, says) in [
            (&known, with_problem, Status::Missing, "no CUPTI was found"),
            (&known, GpuRecorded::default(), Status::Missing, "has not loaded"),
            (&none, GpuRecorded::default(), Status::Note, "no such file"),
        ] {
            let findings = compare(known, recorded);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert_eq!(findings[0].status, status, "{findings:?}");
            assert!(findings[0].says.contains(says), "{findings:?}");
        }
    }
}
