//! SQLite's way to files, with a file beneath a connection that can be changed for another.

use std::ffi::{c_int, c_void, CStr, CString};
use std::mem::size_of;
use std::ptr::{null, null_mut, NonNull};
use std::sync::OnceLock;

use rusqlite::{ffi, Connection};

use super::FileName;
use crate::store;

/// A version that no file has to have: SQLite is shown it where the file is another.
pub(in crate::db) const NO_VERSION: [u8; 16] = [0xff; 16];
/// Where a file has its own: the change counter and what SQLite compares with it.
pub(in crate::db) const VERSION_AT: std::ops::Range<usize> = 24..40;

/// Files with as many bytes are read at once: those of ranks with few rows, whose pages are nearly all wanted.
const READ_AT_ONCE: i64 = 256 << 10;

/// It starts with what SQLite wants to have of it.
#[repr(C)]
struct Vfs {
    vfs: ffi::sqlite3_vfs,
    base: *mut ffi::sqlite3_vfs,
    methods: OnceLock<Methods>,
}

/// What SQLite does with a file: all but these three as ever.
struct Methods {
    all: ffi::sqlite3_io_methods,
    read: unsafe extern "C" fn(*mut ffi::sqlite3_file, *mut c_void, c_int, i64) -> c_int,
    unlock: unsafe extern "C" fn(*mut ffi::sqlite3_file, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut ffi::sqlite3_file) -> c_int,
}

/// What is known of a file of ours; a pointer to it stands behind the file.
#[derive(Default)]
struct Known {
    /// Nobody has looked at its change counter.
    is_new: bool,
    /// All of it, as long as it is locked, or nothing.
    whole: Vec<u8>,
    /// What is read, where that is noted.
    pieces: Option<Vec<FilePiece>>,
}

/// A part of a file, and where it is.
#[derive(Debug)]
pub(super) struct FilePiece {
    at: i64,
    bytes: Vec<u8>,
}

// SAFETY: filled once, and read from then on; SQLite's own does the same.
unsafe impl Send for Vfs {}
unsafe impl Sync for Vfs {}

const NAME: &CStr = c"lapscope-in-turn";

fn the_vfs() -> Option<&'static Vfs> {
    static VFS: OnceLock<Option<Box<Vfs>>> = OnceLock::new();
    let fill = || {
        let name = CString::new(store::vfs()).ok()?;
        // SAFETY: a text that ends with a zero. What is found is never let go of.
        let base = NonNull::new(unsafe { ffi::sqlite3_vfs_find(name.as_ptr()) })?.as_ptr();
        // SAFETY: it is a VFS, and plain data.
        let mut vfs = unsafe { std::ptr::read(base) };
        vfs.zName = NAME.as_ptr();
        vfs.pNext = null_mut();
        // behind a file stands what is known of it
        vfs.szOsFile += size_of::<*mut Known>() as c_int;
        vfs.xOpen = Some(open);
        vfs.xAccess = Some(is_nowhere);
        Some(Box::new(Vfs { vfs, base, methods: OnceLock::new() }))
    };
    VFS.get_or_init(fill).as_deref()
}

/// Its name, when SQLite knows it.
pub(super) fn vfs() -> Option<&'static str> {
    static IS_KNOWN: OnceLock<bool> = OnceLock::new();
    let make_known = || {
        let Some(ours) = the_vfs() else { return false };
        let ours = std::ptr::from_ref(&ours.vfs).cast_mut();
        // SAFETY: it lives as long as the process; SQLite alone changes it from here on.
        unsafe { ffi::sqlite3_vfs_register(ours, 0) == ffi::SQLITE_OK }
    };
    IS_KNOWN.get_or_init(make_known).then(|| NAME.to_str().ok()).flatten()
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let Some((ours, open)) = the_vfs().and_then(|ours| Some((ours, (*ours.base).xOpen?))) else {
        return ffi::SQLITE_CANTOPEN;
    };
    let code = open(ours.base, name, file, flags, out);
    if code == ffi::SQLITE_OK && flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        let methods = ours.methods.get_or_init(|| Methods::of(&*(*file).pMethods));
        (*file).pMethods = &methods.all;
        *behind(ours, file) = Box::into_raw(Box::default());
    }
    code
}

impl Methods {
    fn of(base: &ffi::sqlite3_io_methods) -> Methods {
        // SAFETY: plain data.
        let mut all = unsafe { std::ptr::read(base) };
        let read = all.xRead.replace(read_as_it_is).expect("every file can be read");
        let unlock = all.xUnlock.replace(unlock).expect("every file can be unlocked");
        let close = all.xClose.replace(close).expect("every file can be closed");
        Methods { all, read, unlock, close }
    }

    /// Those of files of ours, of which one is open.
    fn base() -> Option<&'static Methods> {
        the_vfs()?.methods.get()
    }
}

/// Of journals and the like: there is none, which was looked for.
unsafe extern "C" fn is_nowhere(
    _: *mut ffi::sqlite3_vfs,
    _: *const std::ffi::c_char,
    _: c_int,
    is_there: *mut c_int,
) -> c_int {
    *is_there = 0;
    ffi::SQLITE_OK
}

unsafe fn behind(ours: &Vfs, file: *mut ffi::sqlite3_file) -> *mut *mut Known {
    file.cast::<u8>().add((*ours.base).szOsFile as usize).cast()
}

/// What is known of a file that `open` opened, for as long as it is open.
unsafe fn known<'f>(file: *mut ffi::sqlite3_file) -> Option<&'f mut Known> {
    (*behind(the_vfs()?, file)).as_mut()
}

/// As SQLite reads; but where it asks whether another process has changed the file, a new one has been.
unsafe extern "C" fn read_as_it_is(
    file: *mut ffi::sqlite3_file,
    bytes: *mut c_void,
    count: c_int,
    at: i64,
) -> c_int {
    const VERSION: (i64, c_int) = (VERSION_AT.start as i64, NO_VERSION.len() as c_int);
    let Some((methods, known)) = Methods::base().zip(known(file)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    if (at, count) == VERSION && std::mem::take(&mut known.is_new) {
        known.whole = read_whole(file, methods).unwrap_or_default(); // it is locked from here on
        bytes.cast::<[u8; NO_VERSION.len()]>().write(NO_VERSION);
        return ffi::SQLITE_OK;
    }
    let code = match known.whole.get(at as usize..(at + i64::from(count)) as usize) {
        Some(there) => {
            bytes.copy_from_nonoverlapping(there.as_ptr().cast(), there.len());
            ffi::SQLITE_OK
        }
        None => (methods.read)(file, bytes, count, at),
    };
    if let (Some(pieces), ffi::SQLITE_OK) = (&mut known.pieces, code) {
        let bytes = std::slice::from_raw_parts(bytes.cast(), count as usize).to_vec();
        pieces.push(FilePiece { at, bytes });
    }
    code
}

/// `None`: it is too large for that.
unsafe fn read_whole(file: *mut ffi::sqlite3_file, methods: &Methods) -> Option<Vec<u8>> {
    let mut size = 0;
    let code = methods.all.xFileSize?(file, &mut size);
    if code != ffi::SQLITE_OK || size > READ_AT_ONCE {
        return None;
    }
    let mut whole: Vec<u8> = Vec::with_capacity(usize::try_from(size).ok()?);
    let code = (methods.read)(file, whole.as_mut_ptr().cast(), size as c_int, 0);
    if code != ffi::SQLITE_OK {
        return None;
    }
    whole.set_len(size as usize);
    Some(whole)
}

/// From then on others may change the file.
unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, level: c_int) -> c_int {
    if let Some(known) = known(file).filter(|_| level == ffi::SQLITE_LOCK_NONE) {
        known.whole = Vec::new();
    }
    Methods::base().map_or(ffi::SQLITE_IOERR_UNLOCK, |methods| (methods.unlock)(file, level))
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let Some((ours, methods)) = the_vfs().zip(Methods::base()) else {
        return ffi::SQLITE_IOERR_CLOSE;
    };
    let known = std::mem::replace(&mut *behind(ours, file), null_mut());
    if !known.is_null() {
        drop(Box::from_raw(known));
    }
    (methods.close)(file)
}

/// The open file of a connection, which has it open for as long as this is used.
#[derive(Clone, Copy)]
pub(super) struct OpenFile(NonNull<ffi::sqlite3_file>);

impl OpenFile {
    pub fn of(connection: &Connection) -> Option<OpenFile> {
        let mut file: *mut ffi::sqlite3_file = null_mut();
        let into = std::ptr::from_mut(&mut file).cast();
        // SAFETY: the connection is open, and `file` is written before the call returns.
        let code = unsafe {
            let (handle, which) = (connection.handle(), c"main".as_ptr());
            ffi::sqlite3_file_control(handle, which, ffi::SQLITE_FCNTL_FILE_POINTER, into)
        };
        NonNull::new(file).filter(|_| code == ffi::SQLITE_OK).map(OpenFile)
    }

    /// What is known of one of ours.
    fn known(&mut self) -> Option<&mut Known> {
        // SAFETY: it was opened by `open`, and is used by one thread, which is not within SQLite now.
        unsafe { known(self.0.as_ptr()) }
    }

    pub fn is_new(mut self) -> bool {
        self.known().is_some_and(|known| known.is_new)
    }

    /// Closes a file of ours, which no transaction reads, and opens another in its place. Whether that could be opened.
    pub fn change(self, name: &FileName) -> bool {
        let Some(ours) = the_vfs() else { return false };
        let flags = ffi::SQLITE_OPEN_READONLY | ffi::SQLITE_OPEN_MAIN_DB;
        let file = self.0.as_ptr();
        // SAFETY: the file is open. Without methods it is to SQLite one that is closed. The name lives as long as the file is open.
        unsafe {
            close(file);
            (*file).pMethods = null();
            let vfs = std::ptr::from_ref(&ours.vfs).cast_mut();
            let is_open = open(vfs, name.0.as_ptr(), file, flags, &mut 0) == ffi::SQLITE_OK;
            if let Some(known) = known(file).filter(|_| is_open) {
                known.is_new = true;
            }
            is_open
        }
    }

    /// From now on what SQLite reads of a file of ours is noted.
    pub fn note_pieces(mut self) {
        if let Some(known) = self.known() {
            known.pieces = Some(Vec::new());
        }
    }

    /// What was noted.
    pub fn noted_pieces(mut self) -> Vec<FilePiece> {
        self.known().and_then(|known| known.pieces.take()).unwrap_or_default()
    }

    /// Whether a file of ours has that piece. Of the header of the file nothing is compared.
    pub fn has(mut self, FilePiece { at, bytes }: &FilePiece) -> bool {
        const HEADER: usize = 100;
        let compared = if *at == 0 { HEADER.min(bytes.len()) } else { 0 }..;
        let end = *at as usize + bytes.len();
        if let Some(there) = self.known().and_then(|known| known.whole.get(*at as usize..end)) {
            return there[compared.clone()] == bytes[compared];
        }
        let mut read = vec![0u8; bytes.len()];
        let code = Methods::base().map(|methods| {
            // SAFETY: the file is open, and `read` has room for so many bytes.
            unsafe {
                let into = read.as_mut_ptr().cast();
                (methods.read)(self.0.as_ptr(), into, read.len() as c_int, *at)
            }
        });
        code == Some(ffi::SQLITE_OK) && read[compared.clone()] == bytes[compared]
    }
}

/// Bytes of the file of a connection; `None`: it has none.
pub(in crate::db) fn file_bytes(connection: &Connection) -> Option<i64> {
    let file = OpenFile::of(connection)?.0.as_ptr();
    let mut bytes = 0;
    // SAFETY: the connection has it open, or it has no methods.
    unsafe {
        let size = (*file).pMethods.as_ref()?.xFileSize?;
        (size(file, &mut bytes) == ffi::SQLITE_OK).then_some(bytes)
    }
}
