//! Whether what GPUs compute would be recorded, and whether what is recorded is what a program knows of its kernels.

use std::ffi::{CStr, CString, OsStr};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::install;
use crate::run::environment::other_cuda_tool;
use lapscope_data::model::{DeviceRecorder, Nanos, RankInfo};
use lapscope_data::text::units::time;
use lapscope_measure::gpu_known::{kernels_as_recorded, waits_as_recorded, GpuKnown};
use lapscope_trace::gpu::{get_cupti, NoGpuTime};

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
        std::fs::read_to_string(DRIVER).ok().as_deref(),
    )
}

fn finding(
    topic: &'static str,
    has_plugin: bool,
    tool: Option<NoGpuTime>,
    cupti: Option<&Path>,
    driver: Option<&str>,
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
        None => match driver {
            None => Finding::ok(topic, NAME, "no NVIDIA driver here, and no CUPTI"),
            Some(driver) => {
                let says = "no CUPTI was found, of which CUDA toolkits have one";
                Finding::note(topic, NAME, says, get_cupti(major(driver))).follows(FOLLOWS)
            }
        },
    }
}

/// Of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 …": 535.
fn major(driver: &str) -> Option<u32> {
    driver.split_whitespace().find_map(|word| word.split_once('.')?.0.parse().ok())
}

/// What was recorded of rank 0 in the run of `lapscope doctor --gpu`.
#[derive(Debug, Clone, Default)]
pub struct GpuRecorded<'a> {
    /// `None`: CUDA has loaded no plugin.
    pub recorder: Option<&'a DeviceRecorder>,
    /// Why not all is.
    pub missing: Option<NoGpuTime>,
    pub computed: Nanos,
    pub waited: Nanos,
}

/// Why not all is recorded of a rank that was started from here.
pub fn missing(rank: &RankInfo) -> Option<NoGpuTime> {
    let has_plugin =
        || install::preload_library().is_ok_and(|it| install::cuda_plugin(&it).is_some());
    match NoGpuTime::of_rank(rank)? {
        NoGpuTime::NotNamed if !has_plugin() => Some(NoGpuTime::NoPlugin),
        why => Some(why),
    }
}

/// What to do where lapscope has started the program itself, and a look at this machine has nothing to add.
fn way_out(why: &NoGpuTime) -> &'static str {
    match why {
        NoGpuTime::NotNamed => "let the launcher give ranks CUDA_INJECTION64_PATH of its own environment",
        NoGpuTime::NotLoaded => {
            "have lapscope installed where ranks run, by the same path as here; else report it as a mistake of lapscope"
        }
        _ => why.way_out(),
    }
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
    let not_recorded = |says: String, advice: &str| {
        vec![Finding::missing(TOPIC, NAME, says, advice).follows(FOLLOWS)]
    };
    if let Some(why) = recorded.missing {
        let has_rows = recorded.recorder.is_some_and(|it| it.has_rows);
        let how_much = if has_rows { "recorded in part" } else { "not recorded" };
        return not_recorded(format!("{how_much}: {}", why.why()), way_out(&why));
    }
    let Some(recorder) = recorded.recorder else {
        let says = "not recorded: lapscope took it that rank 0 used no GPU";
        return not_recorded(says.to_owned(), "report it as a mistake of lapscope");
    };
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

    fn recorder() -> DeviceRecorder {
        DeviceRecorder {
            source: "libcupti.so.12".to_owned(),
            problem: None,
            resolution: Nanos(10_000),
            lost: 0,
            has_rows: true,
        }
    }

    #[test]
    fn each_obstacle_has_a_way_out() {
        let cupti = Path::new("/opt/libcupti.so.12");
        let says = |has_plugin, tool, cupti, driver| {
            let found = finding("lapscope", has_plugin, tool, cupti, driver);
            assert_eq!(found.status == Status::Note, found.advice.is_some());
            format!("{} {}", found.says, found.advice.unwrap_or_default())
        };
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: gcc 12.2.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (a@b)\n";
        assert_eq!(says(true, None, Some(cupti), Some(closed)), "by /opt/libcupti.so.12 ");
        assert!(says(true, None, None, None).starts_with("no NVIDIA driver"));
        assert!(
            says(true, None, None, Some(closed)).contains("pip install nvidia-cuda-cupti-cu12,")
        );
        assert!(says(true, None, None, Some(open)).contains("pip install nvidia-cuda-cupti,"));
        assert!(says(true, None, None, Some("of another form")).contains("-cu12 (for"));
        let tool = NoGpuTime::OtherTool("/x/libTool.so".into());
        assert!(says(true, Some(tool), Some(cupti), Some(closed)).contains("/x/libTool.so"));
        assert!(says(false, None, None, Some(closed)).contains("install"));
    }

    #[test]
    fn what_is_recorded_is_compared_with_what_is_known() {
        let recorder = recorder();
        let known = GpuKnown::Worked { computed: Nanos(400_000), waited: Nanos(100_000) };
        let states = |computed, waited| {
            let (computed, waited) = (Nanos(computed), Nanos(waited));
            let recorded =
                GpuRecorded { recorder: Some(&recorder), missing: None, computed, waited };
            compare(&known, recorded).iter().map(|it| it.status).collect::<Vec<_>>()
        };
        assert_eq!(states(401_000, 99_000), [Status::Ok; 3]);
        assert_eq!(states(200_000, 99_000), [Status::Ok, Status::Missing, Status::Ok]);
        assert_eq!(states(401_000, 0), [Status::Ok, Status::Ok, Status::Missing]);
    }

    #[test]
    fn what_cannot_be_compared_is_said_in_one_line() {
        let known = GpuKnown::Worked { computed: Nanos(400_000), waited: Nanos(100_000) };
        let none = GpuKnown::Missing("libcuda.so.1: no such file".into());
        let because = |missing| GpuRecorded { missing, ..GpuRecorded::default() };
        let nsys = NoGpuTime::OtherTool("/opt/nsys/libToolsInjection64.so".into());
        for (known, missing, status, words) in [
            (
                &known,
                Some(NoGpuTime::Cupti("no CUPTI was found that goes with the driver".into())),
                Status::Missing,
                ["not recorded: no CUPTI was found", "CUDA_HOME"],
            ),
            (&known, Some(NoGpuTime::NotLoaded), Status::Missing, ["has not loaded", "same path"]),
            (&known, Some(NoGpuTime::NotNamed), Status::Missing, ["was not set", "launcher"]),
            (&known, Some(nsys), Status::Missing, ["/opt/nsys", "unset"]),
            (&known, Some(NoGpuTime::Lost), Status::Missing, ["no room", "LAPSCOPE_MAX_MB"]),
            (&known, None, Status::Missing, ["used no GPU", "mistake of lapscope"]),
            (&none, None, Status::Note, ["no such file", "where the GPUs are"]),
        ] {
            let findings = compare(known, because(missing));
            assert_eq!(findings.len(), 1, "{findings:?}");
            let Finding { says, advice, .. } = &findings[0];
            let advice = advice.as_deref().unwrap_or_default();
            assert_eq!(findings[0].status, status, "{findings:?}");
            assert!(says.contains(words[0]) && advice.contains(words[1]), "{findings:?}");
            assert!(!advice.contains("lapscope doctor"), "it is this that says it: {findings:?}");
        }
    }

    /// As many a reason has it, some kernels are there.
    #[test]
    fn what_is_recorded_in_part_is_said_to_be() {
        let recorder = recorder();
        let recorded = GpuRecorded {
            recorder: Some(&recorder),
            missing: Some(NoGpuTime::Lost),
            ..GpuRecorded::default()
        };
        let known = GpuKnown::Worked { computed: Nanos(400_000), waited: Nanos(100_000) };
        let says = &compare(&known, recorded)[0].says;
        assert!(says.starts_with("recorded in part: CUPTI or the spool"), "{says}");
    }
}
