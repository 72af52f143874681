//! Debug information from servers that the reader names in `DEBUGINFOD_URLS`, by elfutils' own library, which is opened when it is
//! wanted: it keeps what it fetched where gdb and perf look for it, too.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void, CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::elf::hexadecimal;

/// Seconds that one file may take; `DEBUGINFOD_TIMEOUT` is how long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// `debuginfod_find_debuginfo`: with a length of 0 the build id is text.
type Find = unsafe extern "C" fn(*mut c_void, *const u8, c_int, *mut *mut c_char) -> c_int;
/// `debuginfod_set_progressfn`
type SetProgress =
    unsafe extern "C" fn(*mut c_void, extern "C" fn(*mut c_void, c_long, c_long) -> c_int);

/// No server answered once: it is not waited for again.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// The debug file with this build id; `None` where no server is named, none has it, or the library is not there.
pub fn find(id: &str) -> Option<PathBuf> {
    let is_asked = std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty());
    let id = hexadecimal(id).filter(|id| is_asked && !id.is_empty())?;
    if GIVEN_UP.load(Ordering::Relaxed) {
        return None;
    }
    let Some(client) = Client::open() else {
        GIVEN_UP.store(true, Ordering::Relaxed);
        crate::say!(
            "DEBUGINFOD_URLS is set, and libdebuginfod.so.1 is not there: no server is asked (Debian: libdebuginfod1)"
        );
        return None;
    };
    client.find(&CString::new(id).ok()?)
}

struct Client {
    handle: *mut c_void,
    find: Find,
    end: unsafe extern "C" fn(*mut c_void),
}

impl Client {
    fn open() -> Option<Client> {
        // SAFETY: the functions have the types of elfutils/debuginfod.h, which are kept by symbol versions.
        unsafe {
            let library = libc::dlopen(c"libdebuginfod.so.1".as_ptr(), libc::RTLD_NOW);
            let function = |name: &CStr| {
                let found = (!library.is_null()).then(|| libc::dlsym(library, name.as_ptr()));
                found.filter(|address| !address.is_null())
            };
            let begin: unsafe extern "C" fn() -> *mut c_void =
                std::mem::transmute(function(c"debuginfod_begin")?);
            let set_progress: SetProgress =
                std::mem::transmute(function(c"debuginfod_set_progressfn")?);
            let client = Client {
                find: std::mem::transmute::<*mut c_void, Find>(function(
                    c"debuginfod_find_debuginfo",
                )?),
                end: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(
                    function(c"debuginfod_end")?,
                ),
                handle: begin(),
            };
            set_progress(client.handle, is_overdue);
            Some(client)
        }
    }

    fn find(&self, id: &CStr) -> Option<PathBuf> {
        let mut path = std::ptr::null_mut();
        START.with(|start| start.set(Instant::now()));
        // SAFETY: the client is open, `id` ends with 0, and the path is the library's malloc, of which we make ours.
        unsafe {
            let file = (self.find)(self.handle, id.as_ptr().cast(), 0, &raw mut path);
            if file < 0 {
                if -file != libc::ENOENT && !GIVEN_UP.swap(true, Ordering::Relaxed) {
                    crate::say!("no server of DEBUGINFOD_URLS answered: places may lack lines");
                }
                return None;
            }
            libc::close(file);
            let found = OsStr::from_bytes(CStr::from_ptr(path).to_bytes()).to_owned();
            libc::free(path.cast());
            Some(found.into())
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: it was opened by the same library, once.
        unsafe { (self.end)(self.handle) }
    }
}

thread_local! {
    /// When the file under way was asked for.
    static START: Cell<Instant> = Cell::new(Instant::now());
}

/// Says, once, what is waited for, and ends a download that takes too long.
extern "C" fn is_overdue(_: *mut c_void, _: c_long, _: c_long) -> c_int {
    static SAID: AtomicBool = AtomicBool::new(false);
    let elapsed = START.with(Cell::get).elapsed();
    if elapsed > Duration::from_secs(1) && !SAID.swap(true, Ordering::Relaxed) {
        crate::say!(
            "waiting for debug information from DEBUGINFOD_URLS, {} s at most (DEBUGINFOD_TIMEOUT=S: less; unset DEBUGINFOD_URLS: none)",
            PATIENCE.as_secs()
        );
    }
    c_int::from(elapsed > PATIENCE)
}
