//! An MPI library is asked itself which it is and how it is set: in a process of its own, bounded in time, as loading a
//! broken one may crash or never end. Both `MPI_Get_library_version` and the tools' interface (MPI 4.1, 15.3) may be called
//! before MPI is initialised, and start nothing.

use std::ffi::{c_char, c_int, c_void, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::tune::settings::table;

/// What an MPI library says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryAccount {
    /// What MPI_Get_library_version says; MPIs older than MPI 3 have none.
    pub version: Option<String>,
    /// It has the symbols by which the preload library knows Open MPI and its relatives.
    pub is_open_mpi: bool,
    /// Control variables that matter here, with the values in force in this environment.
    pub variables: Vec<(String, String)>,
}

impl LibraryAccount {
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Components of a framework of Open MPI (`pml`, `btl`, `mtl`): those that could be loaded have a version.
    pub fn components(&self, framework: &str) -> Vec<&str> {
        let name = |name: &'_ str| {
            name.strip_prefix(framework)?
                .strip_prefix('_')?
                .strip_suffix("_major_version")
                .map(str::len)
        };
        let at = framework.len() + 1;
        let names = self.variables.iter().filter_map(|(it, _)| Some(&it[at..at + name(it)?]));
        names.filter(|name| !matches!(*name, "base" | "monitoring" | "v")).collect()
    }
}

/// What stands before an answer, in whatever a library prints.
const MARK: &str = "lapscope-mpi-answer ";
/// The hidden command that [`answer`] is behind.
pub const COMMAND: &str = "ask-mpi";

/// Asks `library`, of a program that loads those at `places`.
///
/// # Errors
/// Why it gave no answer.
pub fn ask(library: &Path, places: &[PathBuf]) -> Result<LibraryAccount, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.arg(COMMAND).arg(library).args(places);
    let said = bounded::ask(&mut command, bounded::LIMIT).ok_or("no process could be started")?;
    let answers = said.output.lines().filter_map(|line| line.split_once(MARK));
    let answer = answers.filter_map(|(_, text)| serde_json::from_str(text).ok()).next_back();
    answer.ok_or_else(|| {
        let reason = said.complaint().unwrap_or_else(|| "it said nothing".into());
        reason.trim_start_matches("lapscope: ").to_owned()
    })
}

// --- in the process that is asked ------------------------------------------------------------------------------------

/// Names that are wanted besides those of the [table of settings](table), and those whose value is text.
const WANTED: [&str; 16] = [
    "pml",
    "btl",
    "mtl",
    "btl_tcp_progress_thread",
    "opal_progress_thread_mode",
    "opal_common_ucx_tls",
    "opal_common_ucx_devices",
    "MPIR_CVAR_ASYNC_PROGRESS",
    "MPIR_CVAR_PROGRESS_THREAD_AFFINITY",
    "MPIR_CVAR_CH4_PROGRESS_THREAD_AFFINITY",
    "MPIR_CVAR_CH4_NETMOD",
    "MPIR_CVAR_OFI_USE_PROVIDER",
    "MPIR_CVAR_NOLOCAL",
    "MPIR_CVAR_CH4_OFI_ENABLE_DATA_AUTO_PROGRESS",
    "MPIR_CVAR_CH4_OFI_ENABLE_CONTROL_AUTO_PROGRESS",
    "MPIR_CVAR_CH3_NOLOCAL",
];
const TEXTS: [&str; 8] = [
    "pml",
    "btl",
    "mtl",
    "opal_common_ucx_tls",
    "opal_common_ucx_devices",
    "MPIR_CVAR_CH4_NETMOD",
    "MPIR_CVAR_OFI_USE_PROVIDER",
    "MPIR_CVAR_CH4_PROGRESS_THREAD_AFFINITY",
];
/// MPI_MAX_LIBRARY_VERSION_STRING of every MPI known, and a zero.
const VERSION_BYTES: usize = 8192 + 1;
/// Values of control variables: the longest seen is 2048.
const VALUE_BYTES: usize = 1 << 16;

/// Loads `library` and says what it says: once when the version is known, and again with its variables, as asking for
/// those loads more. Where it does not find what it needs, as the program has told where that is, that is loaded first.
///
/// # Errors
/// It cannot be loaded.
pub fn answer(library: &Path, places: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<(), String> {
    no_core();
    let mpi = load(library).or_else(|reason| {
        // Those that others need come behind them in a loader's list.
        places.iter().rev().for_each(|place| drop(load(place)));
        load(library).map_err(|_| reason)
    })?;
    let is_open_mpi = mpi.symbol("ompi_mpi_comm_world").is_some();
    let mut answer = LibraryAccount { version: mpi.version(), is_open_mpi, variables: Vec::new() };
    say(&line(&answer));
    answer.variables = mpi.variables();
    say(&line(&answer));
    Ok(())
}

fn load(library: &Path) -> Result<Library, String> {
    let name = CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: a path with an end. What its constructors do is why this process is alone. Not unloaded again. Global, as
    // components of Open MPI look for its symbols there.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(Library(handle));
    }
    // SAFETY: dlerror has a text after a failure, which stays until the next call.
    let reason = unsafe { std::ffi::CStr::from_ptr(libc::dlerror()) };
    Err(reason.to_string_lossy().into_owned())
}

/// A crash here is an answer, and leaves no file.
fn no_core() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads a structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

/// A line of its own, whatever the library has printed before.
fn line(answer: &LibraryAccount) -> String {
    format!("\n{MARK}{}\n", serde_json::to_string(answer).unwrap_or_default())
}

struct Library(*mut c_void);

type GetVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type InitThread = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
type GetCount = unsafe extern "C" fn(*mut c_int) -> c_int;
/// MPI_T_cvar_get_info. A datatype is an int or a pointer.
type GetInfo = unsafe extern "C" fn(
    c_int,
    *mut c_char,
    *mut c_int,
    *mut c_int,
    *mut *mut c_void,
    *mut *mut c_void,
    *mut c_char,
    *mut c_int,
    *mut c_int,
    *mut c_int,
) -> c_int;
/// MPI_T_cvar_handle_alloc. A handle is a pointer in all of them.
type AllocateHandle =
    unsafe extern "C" fn(c_int, *mut c_void, *mut *mut c_void, *mut c_int) -> c_int;
type ReadValue = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

impl Library {
    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: a handle that is open, and a name with an end.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    fn version(&self) -> Option<String> {
        let mut text = vec![0_u8; VERSION_BYTES];
        let mut length = 0;
        let function = self.symbol("PMPI_Get_library_version")?;
        // SAFETY: MPI 4.1, 9.1.1: no more than the bytes that there are; at any time.
        let code = unsafe {
            let get: GetVersion = std::mem::transmute(function);
            get(text.as_mut_ptr().cast(), &mut length)
        };
        (code == 0).then(|| terminated(&text))
    }

    fn variables(&self) -> Vec<(String, String)> {
        self.all_variables().unwrap_or_default()
    }

    fn all_variables(&self) -> Option<Vec<(String, String)>> {
        let mut answer = 0;
        let (init, count) = (self.symbol("MPI_T_init_thread")?, self.symbol("MPI_T_cvar_get_num")?);
        let info = self.symbol("MPI_T_cvar_get_info")?;
        // SAFETY: functions of MPI 3.0, 14.3, with the types that every ABI gives them.
        unsafe {
            let init: InitThread = std::mem::transmute(init);
            let count: GetCount = std::mem::transmute(count);
            const SINGLE: c_int = 0; // MPI_THREAD_SINGLE, in all of them
            if init(SINGLE, &mut answer) != 0 || count(&mut answer) != 0 {
                return None;
            }
        }
        // SAFETY: as above.
        let info: GetInfo = unsafe { std::mem::transmute(info) };
        let wanted: Vec<String> =
            table::controls().chain(WANTED.into_iter().map(str::to_owned)).collect();
        Some((0..answer).filter_map(|index| self.variable(index, info, &wanted)).collect())
    }

    /// One that is wanted, with its value.
    fn variable(&self, index: c_int, info: GetInfo, wanted: &[String]) -> Option<(String, String)> {
        let mut name = [0_u8; 256];
        let mut length = name.len() as c_int;
        let (mut no_text, mut verbosity, mut binding, mut scope) = (0, 0, 0, 0);
        let (mut datatype, mut names) = (null_mut(), null_mut());
        // SAFETY: every output has room; a length of 0 asks for no description.
        let code = unsafe {
            let (name, length) = (name.as_mut_ptr().cast(), &mut length);
            let (datatype, names) = (&mut datatype, &mut names);
            let (no_text, verbosity) = (&mut no_text, &mut verbosity);
            info(
                index,
                name,
                length,
                verbosity,
                datatype,
                names,
                null_mut(),
                no_text,
                &mut binding,
                &mut scope,
            )
        };
        let name = (code == 0).then(|| terminated(&name))?;
        if name.ends_with("_major_version")
            && ["pml_", "btl_", "mtl_"].iter().any(|it| name.starts_with(it))
        {
            return Some((name, String::new()));
        }
        let is_wanted = wanted.contains(&name);
        let value = is_wanted.then(|| self.value(index, TEXTS.contains(&name.as_str())))?;
        Some((name, value?))
    }

    fn value(&self, index: c_int, is_text: bool) -> Option<String> {
        let (allocate, read) =
            (self.symbol("MPI_T_cvar_handle_alloc")?, self.symbol("MPI_T_cvar_read")?);
        let mut bytes = vec![0_u8; VALUE_BYTES];
        let (mut handle, mut count) = (null_mut(), 0);
        // SAFETY: not bound to an object; `count` elements of at most eight bytes fit, which is looked at first.
        unsafe {
            let allocate: AllocateHandle = std::mem::transmute(allocate);
            let read: ReadValue = std::mem::transmute(read);
            let is_there = allocate(index, null_mut(), &mut handle, &mut count) == 0;
            let fits = usize::try_from(count).is_ok_and(|count| count < VALUE_BYTES / 8);
            if !is_there || !fits || read(handle, bytes.as_mut_ptr().cast()) != 0 {
                return None;
            }
        }
        if is_text {
            return Some(terminated(&bytes));
        }
        // A bool of one byte or an int: the rest is zero.
        Some(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).to_string())
    }
}

/// Up to the zero, where there is one.
fn terminated(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_open_mpi() {
        let names = [
            "pml_ob1_major_version",
            "pml_base_verbose",
            "pml_v_major_version",
            "btl_tcp_major_version",
        ];
        let variables = names.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        let answer = LibraryAccount { variables, ..LibraryAccount::default() };
        assert_eq!(answer.components("pml"), ["ob1"]);
        assert_eq!(answer.components("btl"), ["tcp"]);
        assert!(answer.components("mtl").is_empty());
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let reason = answer(Path::new("/dev/null"), &[], &mut |_| {}).unwrap_err();
        assert!(reason.contains("/dev/null"), "{reason}");
    }
}
