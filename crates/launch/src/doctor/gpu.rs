//! Whether what GPUs compute would be recorded.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::install;
use crate::run::environment::other_cuda_tool;

const NAME: &str = "GPU time";
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
        Some(cupti) => Finding::ok(topic, NAME, format!("by {}", cupti.display())),
        None if !has_driver => Finding::ok(topic, NAME, "no NVIDIA driver here, and no CUPTI"),
        None => {
            let says = "no CUPTI was found, of which CUDA toolkits have one";
            let advice = "load the module of a CUDA toolkit, set CUDA_HOME, or: pip install nvidia-cuda-cupti, with its directory in LD_LIBRARY_PATH";
            Finding::note(topic, NAME, says, advice).follows(FOLLOWS)
        }
    }
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
}
