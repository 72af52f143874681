//! The conversion from spool to SQLite: `interposer/recorder/store/store.c`, which the recorder uses too.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::mem::{offset_of, size_of};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{anyhow, Context};

/// What a conversion found in the spool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Converted {
    pub rank: i32,
    pub life: u32,
    /// `enum spool_end`; see [`Converted::was_killed`].
    end: u32,
    pub world: u32,
    /// Rows, those that never ended included.
    pub requests: u64,
    pub calls: u64,
    /// Requests and calls that had not ended.
    pub pending: u64,
    /// Records that the run could not keep.
    pub lost: u64,
    /// Chunks and records that could not be read.
    pub damaged: u64,
    /// Offset in the spool of the first of them; valid when there is one.
    pub damaged_at: u64,
}

impl Converted {
    /// Whether the process ended without a chance to say so.
    pub fn was_killed(&self) -> bool {
        self.end == 0
    }
}

#[repr(C)]
struct StoreSpool {
    path: *const c_char,
    result: Converted,
    error: [c_char; 1024],
}

#[repr(C)]
struct SpoolInfo {
    rank: i32,
    world_size: i32,
    life: u32,
    end: u32,
    pid: i64,
    pid_start: u64,
    host: [c_char; 256],
    boot_id: [c_char; 40],
    pid_namespace: u64,
    began_unix_ns: i64,
    job: [c_char; 256],
    launch: [c_char; 64],
}

// As store_layout.c, which the C compiler checks.
const _: () = {
    assert!(size_of::<Converted>() == 64 && offset_of!(Converted, world) == 12);
    assert!(offset_of!(Converted, lost) == 40 && offset_of!(Converted, damaged_at) == 56);
    assert!(size_of::<StoreSpool>() == 1096 && offset_of!(StoreSpool, error) == 72);
    assert!(size_of::<SpoolInfo>() == 664 && offset_of!(SpoolInfo, end) == 12);
    assert!(offset_of!(SpoolInfo, pid) == 16 && offset_of!(SpoolInfo, boot_id) == 288);
    assert!(offset_of!(SpoolInfo, pid_namespace) == 328 && offset_of!(SpoolInfo, launch) == 600);
};

extern "C" {
    fn store_convert(
        spool_path: *const c_char,
        database_path: *const c_char,
        progress: Option<unsafe extern "C" fn(*mut c_void, u64, u64)>,
        context: *mut c_void,
        result: *mut Converted,
        error: *mut c_char,
        error_bytes: usize,
    ) -> c_int;
    fn store_convert_all(
        spools: *mut StoreSpool,
        count: usize,
        database_path: *const c_char,
        progress: Option<unsafe extern "C" fn(*mut c_void, u64, u64)>,
        context: *mut c_void,
        error: *mut c_char,
        error_bytes: usize,
    ) -> c_int;
    fn store_vfs(locks: c_int) -> *const c_char;
    fn spool_inspect(
        path: *const c_char,
        info: *mut SpoolInfo,
        error: *mut c_char,
        error_bytes: usize,
    ) -> c_int;
}

/// The name of SQLite's way to files, without its limit of 512 bytes on their names: for opening databases.
pub fn vfs() -> &'static str {
    // SAFETY: a constant text that ends with a zero.
    unsafe { CStr::from_ptr(store_vfs(1)) }.to_str().unwrap_or("unix")
}

/// Whose a spool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub host: String,
    pub pid: i64,
    /// Identity of the job; empty in spools of earlier versions.
    pub job: String,
    /// The `lapscope run` that it belongs to; empty: none.
    pub launch: String,
    pub(crate) pid_start: u64,
    pub(crate) pid_namespace: u64,
    pub(crate) boot_id: String,
    pub(crate) began_unix_ns: i64,
}

/// What can be told from here of the process that writes a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Runs,
    Ended,
    /// It may still run: on another node, or in another process name space of this one.
    Unknown,
}

impl Owner {
    /// A process that was given its pid later is told by the time of its start. The same name with another boot is this
    /// host before it was booted, or another host of that name: it is this one when the process began before that.
    pub fn fate(&self) -> Fate {
        if own_boot_id() != Some(self.boot_id.as_str()) {
            let was_here = self.host == host_name() && !self.boot_id.is_empty();
            let is_over = was_here && boot_unix_ns().is_some_and(|boot| self.began_unix_ns < boot);
            return if is_over { Fate::Ended } else { Fate::Unknown };
        }
        if self.pid_namespace != 0 && Some(self.pid_namespace) != own_pid_namespace() {
            return Fate::Unknown;
        }
        match start_time(self.pid) {
            Some(start) if start == self.pid_start => Fate::Runs,
            _ => Fate::Ended,
        }
    }
}

impl Owner {
    /// Where a process is of which nothing can be told from here: "on node7".
    pub fn whereabouts(&self) -> String {
        match self.host == host_name() {
            true => "in another name space of processes or on a node of the same name".to_owned(),
            false => format!("on {}", self.host),
        }
    }
}

/// Of the system that this process runs on: asked once.
fn own_boot_id() -> Option<&'static str> {
    static BOOT_ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    BOOT_ID.get_or_init(|| Some(read()?.trim().to_owned())).as_deref()
}

fn own_pid_namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    static NAMESPACE: OnceLock<Option<u64>> = OnceLock::new();
    let read = || std::fs::metadata("/proc/self/ns/pid").ok().map(|facts| facts.ino());
    *NAMESPACE.get_or_init(read)
}

/// When this host was booted; proc(5), `btime` of /proc/stat.
fn boot_unix_ns() -> Option<i64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse::<i64>().ok()?.checked_mul(1_000_000_000)
}

/// As the recorder has it.
pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: one byte less than there is, so that the name ends with a zero in any case.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Fields of /proc/PID/stat from the third on, the state: proc_pid_stat(5).
pub fn stat_fields(text: &str) -> Option<Vec<&str>> {
    let behind_name = &text[text.rfind(')')? + 1..]; // the name may hold blanks and brackets
    Some(behind_name.split_whitespace().collect())
}

/// Field 22 of /proc/PID/stat; `None` for a zombie, which writes no more unless further threads of it live on.
fn start_time(pid: i64) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat_fields(&text)?;
    let threads: u64 = fields.get(17)?.parse().ok()?;
    let is_dead = matches!(*fields.first()?, "Z" | "X") && threads <= 1;
    fields.get(19).filter(|_| !is_dead)?.parse().ok()
}

/// Reads whose a spool is from its header.
///
/// # Errors
/// It cannot be read, or is not a spool of this version.
pub fn owner(spool: &Path) -> anyhow::Result<Owner> {
    let path = c_path(spool)?;
    let mut error = [0 as c_char; 1024];
    // SAFETY: SpoolInfo is plain data; zero is valid for all of it.
    let mut info: SpoolInfo = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero; `info` and `error` are as large as the callee is told.
    let code = unsafe { spool_inspect(path.as_ptr(), &mut info, error.as_mut_ptr(), error.len()) };
    if code != 0 {
        return Err(anyhow!(text(&error)));
    }
    Ok(Owner {
        host: text(&info.host),
        pid: info.pid,
        job: text(&info.job),
        launch: text(&info.launch),
        pid_start: info.pid_start,
        pid_namespace: info.pid_namespace,
        boot_id: text(&info.boot_id),
        began_unix_ns: info.began_unix_ns,
    })
}

/// Converts `spool` into the new database `database`, which appears whole or not at all. The spool stays.
/// `progress` is told now and then how many more bytes of the spool were read.
///
/// # Errors
/// Says why not; the database is then not there.
pub fn convert(
    spool: &Path,
    database: &Path,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<Converted> {
    let (from, to) = (c_path(spool)?, c_path(database)?);
    let mut error = [0 as c_char; 1024];
    let mut result = Converted::default();
    let mut context = StoreProgress { progress, told: 0 };
    // SAFETY: paths end with a zero; `result` and `error` are as large as the callee is told; the callback is called
    // only during the call, with the context given here.
    let code = unsafe {
        store_convert(
            from.as_ptr(),
            to.as_ptr(),
            Some(on_progress),
            std::ptr::from_mut(&mut context).cast(),
            &mut result,
            error.as_mut_ptr(),
            error.len(),
        )
    };
    if code == 0 {
        Ok(result)
    } else {
        Err(anyhow!(text(&error)))
    }
}

/// As [`convert`], of the spools of several ranks: one database, with their ranks in this order. Of each spool what it held, or
/// why it is not in the database.
///
/// # Errors
/// As [`convert`]; no spool can be read.
pub fn convert_all(
    spools: &[PathBuf],
    database: &Path,
    progress: &mut dyn FnMut(u64),
) -> anyhow::Result<Vec<Result<Converted, String>>> {
    let paths: Vec<CString> = spools.iter().map(|path| c_path(path)).collect::<Result<_, _>>()?;
    let one = |path: &CString| StoreSpool {
        path: path.as_ptr(),
        result: Converted::default(),
        error: [0; 1024],
    };
    let mut all: Vec<StoreSpool> = paths.iter().map(one).collect();
    let to = c_path(database)?;
    let mut error = [0 as c_char; 1024];
    let mut context = StoreProgress { progress, told: 0 };
    // SAFETY: as in convert(); `all` has as many elements as is said, whose paths live as long as `paths`.
    let code = unsafe {
        store_convert_all(
            all.as_mut_ptr(),
            all.len(),
            to.as_ptr(),
            Some(on_progress),
            std::ptr::from_mut(&mut context).cast(),
            error.as_mut_ptr(),
            error.len(),
        )
    };
    if code != 0 {
        return Err(anyhow!(text(&error)));
    }
    let outcome = |spool: StoreSpool| match text(&spool.error) {
        why if why.is_empty() => Ok(spool.result),
        why => Err(why),
    };
    Ok(all.into_iter().map(outcome).collect())
}

struct StoreProgress<'a> {
    progress: &'a mut dyn FnMut(u64),
    told: u64,
}

unsafe extern "C" fn on_progress(context: *mut c_void, done: u64, _total: u64) {
    // SAFETY: `context` is the Progress that convert() passed, which nobody else uses during the call.
    let context = unsafe { &mut *context.cast::<StoreProgress<'_>>() };
    (context.progress)(done.saturating_sub(context.told));
    context.told = done;
}

fn c_path(path: &Path) -> anyhow::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).with_context(|| path.display().to_string())
}

fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy().into_owned()
}
