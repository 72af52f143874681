//! The lines of Python that threads of other processes are inside of, read from their memory: `python.c`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::fs;
use std::mem::{offset_of, size_of};
use std::ops::Range;
use std::ptr;

use super::maps::read_memory;

/// A line of Python, as recorders have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonLine {
    pub file: String,
    pub function: String,
    pub line: u32,
    pub column: u32,
    activation: RawLine,
}

/// Those of a thread, innermost first.
#[derive(Debug, Clone, Default)]
pub struct PythonLines {
    pub lines: Vec<PythonLine>,
    /// There is more of Python on this thread, and it is not as its version has it.
    pub is_unsound: bool,
    truncated: bool,
}

/// What a call path is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixed {
    /// A frame of machine code, by its place among them.
    Native(usize),
    /// A line, by its place among them.
    Line(usize),
}

/// The interpreter of a process.
#[derive(Debug)]
pub struct Interpreter {
    pid: i64,
    version: u32,
    runtime: u64,
    runtime_copy: Vec<u64>,
    types: Types,
    code: MachineCode,
    number_offset: u32,
}

/// What symbols and memory say of an interpreter.
pub struct Found {
    /// As `Py_Version` has it: `0x030b02f0`.
    pub version: u32,
    pub runtime: u64,
    /// `PyCode_Type`, `PyUnicode_Type`, `PyBytes_Type`.
    pub types: [u64; 3],
    pub code: Range<u64>,
    /// `_PyEval_EvalFrameDefault`.
    pub eval: Range<u64>,
    /// In what a `pthread_t` points to, of the kernel's number of the thread.
    pub number_offset: u32,
}

impl Interpreter {
    /// # Errors
    /// Why its lines are not known.
    pub fn new(pid: i64, found: &Found) -> Result<Interpreter, String> {
        const RUNTIME_BYTES: usize = 1024; // as much of it as layouts speak of
        let address = |it: u64| it as usize;
        let runtime = read_memory(pid, found.runtime, RUNTIME_BYTES)
            .map_err(|error| format!("its memory cannot be read: {error}"))?;
        let words = runtime.chunks_exact(8).map(|it| it.try_into().expect("eight bytes"));
        let interpreter = Interpreter {
            pid,
            version: found.version,
            runtime: found.runtime,
            runtime_copy: words.map(u64::from_ne_bytes).collect(),
            types: Types(found.types.map(address)),
            code: MachineCode(
                [found.code.start, found.code.end, found.eval.start, found.eval.end].map(address),
            ),
            number_offset: found.number_offset,
        };
        // SAFETY: what it points to lives as long as `interpreter`; what is returned is a constant text.
        let problem = unsafe { python_elsewhere_problem(&interpreter.raw(ptr::null_mut())) };
        if problem.is_null() {
            return Ok(interpreter);
        }
        // SAFETY: a text that ends with a zero.
        Err(unsafe { CStr::from_ptr(problem) }.to_string_lossy().into_owned())
    }

    fn raw(&self, scratch: *mut c_void) -> Elsewhere {
        Elsewhere {
            version: self.version,
            number_offset: self.number_offset,
            runtime: self.runtime as usize,
            runtime_copy: self.runtime_copy.as_ptr().cast(),
            types: self.types,
            scratch,
            copy: copy_memory,
        }
    }

    /// Those of a thread that does not run while this reads.
    pub fn read(&self, tid: i64) -> PythonLines {
        MEMORY.with_borrow_mut(|memory| *memory = Memory { pid: self.pid, pages: HashMap::new() });
        let mut scratch = vec![0u64; MOST_TABLE / 8];
        let mut lines = RawLines::EMPTY;
        let mut texts = vec![RawText::EMPTY; MOST_FRAMES];
        let raw = self.raw(scratch.as_mut_ptr().cast());
        let number = number_within(self.pid, tid);
        // SAFETY: `lines` and `texts` have room for MOST_FRAMES, `scratch` is MOST_TABLE bytes long.
        let soundness =
            unsafe { python_elsewhere_read(&raw, number, &mut lines, texts.as_mut_ptr()) };
        let read = lines.line.iter().zip(&texts).take(lines.count as usize);
        PythonLines {
            lines: read.map(|(line, text)| self.line(line, text)).collect(),
            is_unsound: soundness == UNSOUND,
            truncated: lines.truncated != 0,
        }
    }

    fn line(&self, line: &RawLine, text: &RawText) -> PythonLine {
        PythonLine {
            file: whole(self.pid, until_zero(&text.file)),
            function: until_zero(&text.name),
            line: text.line,
            column: text.column,
            activation: *line,
        }
    }

    /// The call path of a thread: `native` are the addresses of its frames of machine code, innermost first, each with the lowest
    /// address of its part of the stack.
    pub fn mix(&self, native: &[(u64, u64)], python: &PythonLines) -> Vec<Mixed> {
        let mut lines = RawLines::EMPTY;
        for (to, line) in lines.line.iter_mut().zip(&python.lines) {
            *to = line.activation;
            lines.count += 1;
        }
        lines.truncated = c_int::from(python.truncated);
        let natives: Vec<Native> = native
            .iter()
            .map(|&(address, stack)| Native(address as usize, stack as usize))
            .collect();
        let mut to = vec![0usize; native.len() + lines.count as usize];
        // SAFETY: both arrays are as long as is said.
        let made = unsafe {
            python_mix_frames(
                &self.code,
                &lines,
                natives.as_ptr(),
                natives.len() as c_uint,
                None,
                to.as_mut_ptr(),
                to.len() as c_uint,
            )
        };
        let mut next = 0;
        let mut place = |address: usize| match address & !LINE {
            line if address & LINE != 0 && line < python.lines.len() => Some(Mixed::Line(line)),
            _ => {
                let further = natives[next..].iter().position(|native| native.0 == address)?;
                next += further + 1;
                Some(Mixed::Native(next - 1))
            }
        };
        to[..made as usize].iter().filter_map(|&address| place(address)).collect()
    }
}

fn until_zero(text: &[u8]) -> String {
    String::from_utf8_lossy(text.split(|&byte| byte == 0).next().unwrap_or(text)).into_owned()
}

/// A file's name may be relative to where the interpreter was started.
fn whole(pid: i64, file: String) -> String {
    let is_whole = file.starts_with(['/', '<', '?']);
    let directory = (!is_whole).then(|| fs::read_link(format!("/proc/{pid}/cwd")).ok()).flatten();
    let path = directory.map(|it| it.join(&file)).filter(|path| path.exists());
    path.map_or(file, |path| path.to_string_lossy().into_owned())
}

/// A thread's number in its own namespace, pid_namespaces(7).
fn number_within(pid: i64, tid: i64) -> c_uint {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = numbers.and_then(|it| it.split_whitespace().last()?.parse().ok());
    innermost.unwrap_or(tid as c_uint)
}

// --- memory ------------------------------------------------------------------------------------------------------------

const PAGE: u64 = 4096;

/// What has been read of a process.
#[derive(Default)]
struct Memory {
    pid: i64,
    /// By number; `None`: there is none.
    pages: HashMap<u64, Option<Vec<u8>>>,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

impl Memory {
    /// How many bytes from an address on there are.
    ///
    /// # Safety
    /// `to` has room for `bytes`.
    unsafe fn copy(&mut self, to: *mut u8, from: u64, bytes: usize) -> usize {
        let pid = self.pid;
        let mut done = 0;
        while done < bytes {
            let Some(at) = from.checked_add(done as u64) else { break };
            let (page, begin) = (at / PAGE, (at % PAGE) as usize);
            let read = || read_memory(pid, page * PAGE, PAGE as usize).ok();
            let Some(page) = self.pages.entry(page).or_insert_with(read) else { break };
            let Some(there) = page.get(begin..).filter(|it| !it.is_empty()) else { break };
            let now = there.len().min(bytes - done);
            // SAFETY: the caller's promise.
            unsafe { ptr::copy_nonoverlapping(there.as_ptr(), to.add(done), now) };
            done += now;
        }
        done
    }
}

/// # Safety
/// `to` has room for `bytes`.
unsafe extern "C" fn copy_memory(to: *mut c_void, from: usize, bytes: usize) -> usize {
    // SAFETY: the caller's promise.
    MEMORY.with_borrow_mut(|memory| unsafe { memory.copy(to.cast(), from as u64, bytes) })
}

// --- as python.c has it, which the C compiler checks ---------------------------------------------------------------------

const MOST_FRAMES: usize = 128;
const MOST_TABLE: usize = 1 << 20;
const UNSOUND: c_int = 2;
/// Set in what stands for a line.
const LINE: usize = 1 << 63;

#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Types([usize; 3]);

/// Begin and end of the interpreter, and of what runs frames.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct MachineCode([usize; 4]);

#[repr(C)]
struct Elsewhere {
    version: c_uint,
    number_offset: c_uint,
    runtime: usize,
    runtime_copy: *const c_void,
    types: Types,
    scratch: *mut c_void,
    copy: unsafe extern "C" fn(*mut c_void, usize, usize) -> usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct RawLine {
    address: usize,
    is_outermost: c_int,
    stands_at: usize,
}

#[repr(C)]
struct RawLines {
    line: [RawLine; MOST_FRAMES],
    count: c_uint,
    truncated: c_int,
}

impl RawLines {
    const EMPTY: RawLines = RawLines {
        line: [RawLine { address: 0, is_outermost: 0, stands_at: 0 }; MOST_FRAMES],
        count: 0,
        truncated: 0,
    };
}

#[derive(Clone, Copy)]
#[repr(C)]
struct RawText {
    file: [u8; 1024],
    name: [u8; 112],
    line: u32,
    column: u32,
}

impl RawText {
    const EMPTY: RawText = RawText { file: [0; 1024], name: [0; 112], line: 0, column: 0 };
}

/// Address, stack.
#[repr(C)]
struct Native(usize, usize);

const _: () = {
    assert!(offset_of!(Elsewhere, types) == 24 && offset_of!(Elsewhere, copy) == 56);
    assert!(size_of::<RawText>() == 1144 && size_of::<RawLines>() == 3080);
};

extern "C" {
    fn python_elsewhere_problem(it: *const Elsewhere) -> *const c_char;
    fn python_elsewhere_read(
        it: *const Elsewhere,
        number: c_uint,
        lines: *mut RawLines,
        texts: *mut RawText,
    ) -> c_int;
    fn python_mix_frames(
        code: *const MachineCode,
        lines: *const RawLines,
        native: *const Native,
        count: c_uint,
        drop_start: Option<unsafe extern "C" fn(*const usize, c_uint, c_uint) -> c_uint>,
        to: *mut usize,
        most: c_uint,
    ) -> c_uint;
}
