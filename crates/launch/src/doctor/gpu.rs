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
use lapscope_trace::gpu::NoGpuTime;

const TOPIC: &str = "gpu";
const NAME: &str = "GPU time";
const GET_GPU: &str = "see what nvidia-smi says there: libraries of the driver have to be those of the kernel, and nobody may have the GPU for himself";
/// What NVIDIA's driver has of itself.
const DRIVER: &str = "/proc/driver/nvidia/version";
const FOLLOWS: &str =
    "time in MPI beside a running kernel counts as exposed, which is then an upper bound";

/// `preload`: the library beside which the plugin is.
pub fn look(topic: &'static str, preload: &Path) -> Finding {
    let plugin = install::cuda_plugin(preload);
    let cupti = plugin.as_deref().and_then(find_cupti);
    finding(
        topic,
        plugin.is_some(),
        other_cuda_tool(),
        cupti.as_deref(),
        Path::new(DRIVER).exists(),
    )
}

fn finding(
    topic: &'static str,
    has_plugin: bool,
    tool: Option<NoGpuTime>,
    cupti: Option<&Path>,
    has_driver: bool,
) -> Finding {
    let not_recorded =
        |why: NoGpuTime| Finding::note(topic, NAME, why.why(), why.way_out()).follows(FOLLOWS);
    if !has_plugin {
        return not_recorded(NoGpuTime::NoPlugin);
    }
    if let Some(tool) = tool {
        return not_recorded(tool);
    }
    match cupti {
        Some(cupti) => Finding::ok(topic, NAME, format!("by {}", cupti.display()))
            .follows("`lapscope doctor --gpu -- mpirun -n 2` compares it with known kernels"),
        None if !has_driver => Finding::ok(topic, NAME, "no NVIDIA driver here, and no CUPTI"),
        None => not_recorded(NoGpuTime::Cupti(
            "no CUPTI was found, of which CUDA toolkits have one".into(),
        )),
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
    let not_recorded = |why: NoGpuTime| {
        let says = format!("not recorded: {}", why.why());
        vec![Finding::missing(TOPIC, NAME, says, why.way_out()).follows(FOLLOWS)]
    };
    let Some(recorder) = recorded.recorder else {
        return not_recorded(NoGpuTime::NotLoaded);
    };
    if let Some(problem) = &recorder.problem {
        return not_recorded(NoGpuTime::Cupti(problem.clone()));
    }
    vec![
        Finding::ok(TOPIC, NAME, format!("by {}", recorder.source)),
        compared("kernels", recorded.computed, &kernels_as_recorded(computed)),
        compared("waits beside them", recorded.waited, &waits_as_recorded(waited)),
    ]
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
        let says = |has_plugin, tool, cupti, has_driver| {
            let found = finding("lapscope", has_plugin, tool, cupti, has_driver);
            assert_eq!(found.status == Status::Note, found.advice.is_some());
            format!("{} {}", found.says, found.advice.unwrap_or_default())
        };
        assert_eq!(says(true, None, Some(cupti), true), "by /opt/libcupti.so.12 ");
        assert!(says(true, None, None, false).starts_with("no NVIDIA driver"));
        assert!(says(true, None, None, true).contains("CUDA_HOME"));
        let tool = NoGpuTime::OtherTool("/x/libTool.so".into());
        assert!(says(true, Some(tool), Some(cupti), true).contains("/x/libTool.so"));
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
