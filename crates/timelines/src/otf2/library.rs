//! libotf2, opened when it is wanted: lapscope is built without it, and runs without it.
//!
//! Functions are called as headers of OTF2 3.0 declare them. Those of 2.x take fewer arguments at the end of some, which C's calling
//! conventions on the processors that lapscope runs on leave to the caller.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{bail, Result};

/// Names of the library: OTF2's own, and Debian's, of versions 3 and 2.
const NAMES: [&CStr; 5] = [
    c"libotf2.so.10",
    c"libopen-trace-format2.so.10",
    c"libotf2.so.9",
    c"libopen-trace-format2.so.9",
    c"libotf2.so",
];

/// Handles of the library.
pub type Handle = *mut c_void;

/// `OTF2_FlushCallbacks`.
#[repr(C)]
struct FlushCallbacks {
    before: extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8,
    /// Not wanted: no record is made of a flush.
    after: *const c_void,
}

// SAFETY: it is never changed, and holds no address but that of a function.
unsafe impl Sync for FlushCallbacks {}

/// Buffers that are full are written: OTF2_FLUSH.
extern "C" fn flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    1
}

static FLUSH: FlushCallbacks = FlushCallbacks { before: flush, after: std::ptr::null() };

/// The first error that the library met: what its functions return tells of what came of that.
static FIRST_ERROR: AtomicI32 = AtomicI32::new(0);

/// Keeps errors, which the library would print. Its last argument, a va_list, is not looked at.
extern "C" fn keep_error(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: c_int,
    _: *const c_char,
) -> c_int {
    if code > 0 {
        let _ = FIRST_ERROR.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }
    code
}

/// Declares the functions that are called, and looks them up.
macro_rules! functions {
    ($($field:ident = $name:literal($($type:ty),*) $(-> $gives:ty)?;)*) => {
        /// The library's functions.
        pub struct Library {
            $(pub $field: unsafe extern "C" fn($($type),*) $(-> $gives)?,)*
            /// Those that 2.x does not have.
            pub collective_request: Option<CollectiveRequest>,
            pub collective_complete: Option<CollectiveComplete>,
        }

        impl Library {
            /// # Errors
            /// It is not there, or lacks a function.
            pub fn open() -> Result<Library> {
                let library = load()?;
                // SAFETY: each has the type that the headers of OTF2 declare.
                unsafe {
                    let library = Library {
                        $($field: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($type),*) $(-> $gives)?,
                        >(find(library, $name)?),)*
                        collective_request: find(
                            library,
                            c"OTF2_EvtWriter_NonBlockingCollectiveRequest",
                        ).ok().map(|it| std::mem::transmute::<*mut c_void, CollectiveRequest>(it)),
                        collective_complete: find(
                            library,
                            c"OTF2_EvtWriter_NonBlockingCollectiveComplete",
                        ).ok().map(|it| std::mem::transmute::<*mut c_void, CollectiveComplete>(it)),
                    };
                    (library.register_callback)(keep_error as *const c_void, std::ptr::null_mut());
                    Ok(library)
                }
            }
        }
    };
}

/// Writer, attributes, time, request.
pub type CollectiveRequest = unsafe extern "C" fn(Handle, Handle, u64, u64) -> c_int;
/// Writer, attributes, time, operation, communicator, root, sent, received, request.
pub type CollectiveComplete =
    unsafe extern "C" fn(Handle, Handle, u64, u8, u32, u32, u64, u64, u64) -> c_int;

functions! {
    register_callback = c"OTF2_Error_RegisterCallback"(*const c_void, *mut c_void) -> *const c_void;
    error_name = c"OTF2_Error_GetName"(c_int) -> *const c_char;
    error_description = c"OTF2_Error_GetDescription"(c_int) -> *const c_char;
    // path, name, mode, chunk sizes of events and definitions, substrate, compression
    open_archive = c"OTF2_Archive_Open"(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    close_archive = c"OTF2_Archive_Close"(Handle) -> c_int;
    set_flush = c"OTF2_Archive_SetFlushCallbacks"(Handle, *const c_void, *mut c_void) -> c_int;
    set_serial = c"OTF2_Archive_SetSerialCollectiveCallbacks"(Handle) -> c_int;
    set_creator = c"OTF2_Archive_SetCreator"(Handle, *const c_char) -> c_int;
    set_description = c"OTF2_Archive_SetDescription"(Handle, *const c_char) -> c_int;
    open_event_files = c"OTF2_Archive_OpenEvtFiles"(Handle) -> c_int;
    close_event_files = c"OTF2_Archive_CloseEvtFiles"(Handle) -> c_int;
    open_definition_files = c"OTF2_Archive_OpenDefFiles"(Handle) -> c_int;
    close_definition_files = c"OTF2_Archive_CloseDefFiles"(Handle) -> c_int;
    event_writer = c"OTF2_Archive_GetEvtWriter"(Handle, u64) -> Handle;
    close_event_writer = c"OTF2_Archive_CloseEvtWriter"(Handle, Handle) -> c_int;
    definition_writer = c"OTF2_Archive_GetDefWriter"(Handle, u64) -> Handle;
    close_definition_writer = c"OTF2_Archive_CloseDefWriter"(Handle, Handle) -> c_int;
    global_writer = c"OTF2_Archive_GetGlobalDefWriter"(Handle) -> Handle;
    close_global_writer = c"OTF2_Archive_CloseGlobalDefWriter"(Handle, Handle) -> c_int;
    new_attributes = c"OTF2_AttributeList_New"() -> Handle;
    delete_attributes = c"OTF2_AttributeList_Delete"(Handle) -> c_int;
    add_string = c"OTF2_AttributeList_AddStringRef"(Handle, u32, u32) -> c_int;
    // resolution, offset, length, real time
    clock = c"OTF2_GlobalDefWriter_WriteClockProperties"(Handle, u64, u64, u64, u64) -> c_int;
    string = c"OTF2_GlobalDefWriter_WriteString"(Handle, u32, *const c_char) -> c_int;
    attribute = c"OTF2_GlobalDefWriter_WriteAttribute"(Handle, u32, u32, u32, u8) -> c_int;
    paradigm = c"OTF2_GlobalDefWriter_WriteParadigm"(Handle, u8, u32, u8) -> c_int;
    // self, name, class, parent
    tree_node = c"OTF2_GlobalDefWriter_WriteSystemTreeNode"(Handle, u32, u32, u32, u32) -> c_int;
    tree_domain = c"OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain"(Handle, u32, u8) -> c_int;
    // self, name, type, node, creating group
    location_group = c"OTF2_GlobalDefWriter_WriteLocationGroup"(Handle, u32, u32, u8, u32, u32) -> c_int;
    // self, name, type, events, group
    location = c"OTF2_GlobalDefWriter_WriteLocation"(Handle, u64, u32, u8, u64, u32) -> c_int;
    // self, name, canonical name, description, role, paradigm, flags, file, first and last line
    region = c"OTF2_GlobalDefWriter_WriteRegion"(Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> c_int;
    // self, name, type, paradigm, flags, members
    group = c"OTF2_GlobalDefWriter_WriteGroup"(Handle, u32, u32, u8, u8, u32, u32, *const u64) -> c_int;
    // self, name, group, parent, flags
    communicator = c"OTF2_GlobalDefWriter_WriteComm"(Handle, u32, u32, u32, u32, u32) -> c_int;
    count_events = c"OTF2_EvtWriter_GetNumberOfEvents"(Handle, *mut u64) -> c_int;
    // writer, attributes, time, and what each has besides
    enter = c"OTF2_EvtWriter_Enter"(Handle, Handle, u64, u32) -> c_int;
    leave = c"OTF2_EvtWriter_Leave"(Handle, Handle, u64, u32) -> c_int;
    // peer, communicator, tag, bytes, request
    send = c"OTF2_EvtWriter_MpiSend"(Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    isend = c"OTF2_EvtWriter_MpiIsend"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> c_int;
    isend_complete = c"OTF2_EvtWriter_MpiIsendComplete"(Handle, Handle, u64, u64) -> c_int;
    irecv_request = c"OTF2_EvtWriter_MpiIrecvRequest"(Handle, Handle, u64, u64) -> c_int;
    irecv = c"OTF2_EvtWriter_MpiIrecv"(Handle, Handle, u64, u32, u32, u32, u64, u64) -> c_int;
    recv = c"OTF2_EvtWriter_MpiRecv"(Handle, Handle, u64, u32, u32, u32, u64) -> c_int;
    collective_begin = c"OTF2_EvtWriter_MpiCollectiveBegin"(Handle, Handle, u64) -> c_int;
    // operation, communicator, root, sent, received
    collective_end = c"OTF2_EvtWriter_MpiCollectiveEnd"(Handle, Handle, u64, u8, u32, u32, u64, u64) -> c_int;
}

fn load() -> Result<*mut c_void> {
    for name in NAMES {
        // SAFETY: the name ends with a zero. The library stays open as long as the process.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !library.is_null() {
            return Ok(library);
        }
    }
    bail!(
        "OTF2 needs its library, which is not here: libotf2.so.10. On Debian and Ubuntu: sudo apt-get install \
         libopen-trace-format2-10 (or libotf2-trace-dev); elsewhere the package or module otf2, and its lib directory in \
         LD_LIBRARY_PATH"
    )
}

fn find(library: *mut c_void, name: &CStr) -> Result<*mut c_void> {
    // SAFETY: the library is open, and the name ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() {
        bail!("OTF2's library has no {}: it is older than 2.0", name.to_string_lossy());
    }
    Ok(found)
}

impl Library {
    /// What a function returned.
    ///
    /// # Errors
    /// It failed: a full disk is told as the system tells it.
    pub fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let first = FIRST_ERROR.load(Ordering::Relaxed);
        let code = if first > 0 { first } else { code };
        // SAFETY: texts of the library, which end with a zero and stay.
        let text = |text: *const c_char| unsafe {
            match text.is_null() {
                true => String::new(),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        };
        // SAFETY: any number may be asked for.
        let (name, what) =
            unsafe { (text((self.error_name)(code)), text((self.error_description)(code))) };
        // of the system's errors the library gives the number for a name
        if let Ok(number) = name.parse() {
            return Err(std::io::Error::from_raw_os_error(number).into());
        }
        bail!("OTF2 failed: {what} ({name})")
    }

    /// # Errors
    /// The library must not see how files are, see [`Library::check`].
    pub fn flush_with(&self, archive: Handle) -> Result<()> {
        let callbacks: *const FlushCallbacks = &FLUSH;
        // SAFETY: the callbacks stay as long as the process.
        self.check(unsafe { (self.set_flush)(archive, callbacks.cast(), std::ptr::null_mut()) })
    }
}

/// As C takes it; a zero, where the text would end, becomes what stands for unknown letters.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
