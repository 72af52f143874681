//! From copied registers and stacks to call paths, by the unwind tables of the files that are mapped.

use std::cell::Cell;
use std::fs;
use std::ops::Range;
use std::sync::Arc;

use framehop::{FrameAddress, Unwinder};

use super::abi::{self, Abi};
use super::callee;
use super::code::{CodeFiles, NUMBER_OF_THREAD};
use super::layers::ProgramFiles;
use super::loaded::Loaded;
use super::maps::{read_word, Mapping};
use super::python::{Found, Interpreter, Mixed, PythonLines};
use super::registers::{self, Known};
use super::signal;
use super::stop::{Registers, StackReader, ThreadCopy};
use lapscope_data::model::{is_python_interpreter, Frame};
use lapscope_data::symbols::{base_name, Passed};

#[cfg(target_arch = "aarch64")]
type Machine = framehop::aarch64::UnwinderAarch64<Arc<[u8]>>;
#[cfg(target_arch = "aarch64")]
type Cache = framehop::aarch64::CacheAarch64;
#[cfg(target_arch = "x86_64")]
type Machine = framehop::x86_64::UnwinderX86_64<Arc<[u8]>>;
#[cfg(target_arch = "x86_64")]
type Cache = framehop::x86_64::CacheX86_64;

/// Stacks that are deeper are taken for endless.
const MOST_FRAMES: usize = 1 << 16;

/// A frame of machine code: its address, and the lowest address of its part of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native {
    pub frame: Frame,
    address: u64,
    stack: u64,
    /// What a handler of a signal returns to: the registers of what it interrupted.
    interrupted: Option<Registers>,
}

impl Native {
    pub fn is_signal(&self) -> bool {
        self.interrupted.is_some()
    }
}

/// Where a stack ends, as far as it was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackEnd {
    /// At what called nobody knows whom: nobody, or what has no tables.
    Outermost,
    /// It goes on in memory that was not copied, from that address on.
    NotCopied(u64),
    Unknown,
    /// It is deeper than anybody looks.
    Endless,
}

/// Callers, innermost first.
#[derive(Debug, Clone)]
pub struct Unwound {
    pub natives: Vec<Native>,
    pub end: StackEnd,
}

/// The code of a process, as it was mapped.
pub struct ProcessCode {
    pid: i64,
    machine: Machine,
    loaded: Vec<Loaded>,
    /// All that may run, also what no file is behind.
    executable: Vec<Range<u64>>,
    /// Of Python, where it has one; why its lines are not known.
    interpreter: Option<Result<Interpreter, String>>,
    pub program: ProgramFiles,
}

impl ProcessCode {
    /// `None`: there is no such process any more, or it may not be looked at.
    pub fn read(pid: i64, files: &mut CodeFiles) -> Option<ProcessCode> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let mappings: Vec<Mapping> = Mapping::parse_all(&maps).collect();
        let executable = || mappings.iter().filter(|it| it.is_code);
        let mut code = ProcessCode {
            pid,
            machine: Machine::new(),
            loaded: Vec::new(),
            executable: executable().map(|it| it.addresses.clone()).collect(),
            interpreter: None,
            program: ProgramFiles::default(),
        };
        let is_file = |it: &&Mapping| it.path.starts_with('/') || it.path == "[vdso]";
        for mapping in executable().filter(is_file) {
            let Some(file) = files.open(pid, mapping, &mappings) else { continue };
            let Some(bias) = file.bias(mapping) else { continue };
            let (addresses, path) = (mapping.addresses.clone(), mapping.path.clone());
            let module = framehop::Module::new(path.clone(), addresses.clone(), bias, file.info());
            code.machine.add_module(module);
            code.loaded.push(Loaded { addresses, bias, file, path });
        }
        code.interpreter = code.find_interpreter();
        let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        code.program = ProgramFiles::new(&executable.to_string_lossy(), &code.loaded);
        Some(code)
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.loaded.iter().map(|it| it.path.as_str())
    }

    /// Files of it that were replaced since it was started.
    pub fn replaced(&self) -> impl Iterator<Item = &str> {
        self.loaded.iter().filter(|it| it.file.is_replaced).map(|it| it.path.as_str())
    }

    fn find_interpreter(&self) -> Option<Result<Interpreter, String>> {
        let pid = self.pid;
        let symbol = |name: &str| {
            let it = self.loaded.iter().find(|it| it.file.symbols.contains_key(name))?;
            let range = &it.file.symbols[name];
            Some(range.start.wrapping_add(it.bias)..range.end.wrapping_add(it.bias))
        };
        let Some(runtime) = symbol("_PyRuntime").map(|it| it.start) else {
            return self.unknown_interpreter().map(Err);
        };
        let own = |it: &&Loaded| it.file.symbols.contains_key("_PyRuntime");
        let code = || self.loaded.iter().filter(own).map(|it| &it.addresses);
        let path = self.loaded.iter().find(own).map(|it| it.path.as_str());
        let version = symbol("Py_Version").and_then(|it| read_word(pid, it.start));
        let find = || {
            let number = symbol(NUMBER_OF_THREAD)?;
            let types = ["PyCode_Type", "PyUnicode_Type", "PyBytes_Type"].map(symbol);
            let [Some(code_type), Some(text_type), Some(bytes_type)] = types else { return None };
            Some(Found {
                version: version.map(|it| it as u32).or_else(|| version_by_name(path?))?,
                runtime,
                types: [code_type, text_type, bytes_type].map(|it| it.start),
                code: code().map(|it| it.start).min()?..code().map(|it| it.end).max()?,
                eval: symbol("_PyEval_EvalFrameDefault")?,
                number_offset: (read_word(pid, number.start + 8)? & 0xffff_ffff) as u32,
            })
        };
        let Some(found) = find() else {
            return Some(Err("it has not all symbols that are needed".to_owned()));
        };
        let (major, minor) = (found.version >> 24, found.version >> 16 & 0xff);
        let named = |why| format!("{why} (this is Python {major}.{minor})");
        Some(Interpreter::new(pid, &found).map_err(named))
    }

    /// Why nothing is known of an interpreter without what all from 3.7 on have.
    fn unknown_interpreter(&self) -> Option<String> {
        if let Some(path) = self.paths().find(|path| is_python_interpreter(path)) {
            let minor = version_by_name(path).map(|it| it >> 16 & 0xff);
            let which =
                minor.map_or_else(|| "its version".to_owned(), |it| format!("Python 3.{it}"));
            return Some(format!(
                "those of {which} cannot be read, of Python 3.8 and later they can"
            ));
        }
        let is_other = |path: &&str| {
            ["python2", "libpython2", "pypy", "libpypy"]
                .iter()
                .any(|it| base_name(path).starts_with(it))
        };
        let path = self.paths().find(is_other)?;
        Some(format!(
            "those of {} cannot be read, of CPython 3.8 and later they can",
            base_name(path)
        ))
    }

    /// Why lines of Python are not known that there may be.
    pub fn python_problem(&self) -> Option<&str> {
        self.interpreter.as_ref()?.as_ref().err().map(String::as_str)
    }

    fn frame(&self, address: FrameAddress) -> Frame {
        // the first one is an instruction; frames are return addresses, which lie behind their calls
        let at = address.address_for_lookup();
        match self.loaded.iter().find(|it| it.addresses.contains(&at)) {
            Some(it) => Frame {
                module: Some(it.file.number),
                address: at.wrapping_sub(it.bias) + 1,
                level: 0,
            },
            None => Frame { module: None, address: at + 1, level: 0 },
        }
    }

    /// Instructions from an address on, of the file that is mapped there.
    fn instructions(&self, address: u64) -> &[u8] {
        let it = self.loaded.iter().find(|it| it.addresses.contains(&address));
        it.map(|it| it.file.instructions(address.wrapping_sub(it.bias))).unwrap_or_default()
    }

    /// The callers of a thread.
    pub fn unwind(&self, thread: &ThreadCopy) -> Unwound {
        let mut cache = Cache::new();
        let missing = Cell::new(None);
        let mut read = |address: u64| {
            let word = thread.word(address);
            missing.set(word.map_or(Some(address), |_| missing.get()));
            word.ok_or(())
        };
        let mut registers = native(&thread.registers);
        let mut address = FrameAddress::InstructionPointer(thread.registers.instruction);
        let mut natives = Vec::new();
        let end = loop {
            if natives.len() == MOST_FRAMES {
                break StackEnd::Endless;
            }
            let (code, stack) = (address.address(), registers.sp());
            let frame = self.frame(address);
            let is_return = address.is_return_address();
            if is_return && signal::is_return_from_handler(self.instructions(code)) {
                let interrupted = signal::interrupted(stack, |address| read(address).ok());
                natives.push(Native { frame, address: code, stack, interrupted });
                let Some(interrupted) = interrupted else { break not_copied(&missing) };
                registers = native(&interrupted);
                address = FrameAddress::InstructionPointer(interrupted.instruction);
                continue;
            }
            natives.push(Native { frame, address: code, stack, interrupted: None });
            missing.set(None);
            match self.machine.unwind_frame(address, &mut registers, &mut cache, &mut read) {
                // an innermost function may not have what its tables speak of; others have
                _ if is_return && missing.get().is_some() => break not_copied(&missing),
                // a guess without tables may end in data, which called nothing
                Ok(Some(caller)) => match FrameAddress::from_return_address(caller) {
                    Some(caller) if self.is_reached(caller) => address = caller,
                    _ => break StackEnd::Unknown,
                },
                Ok(None) => break StackEnd::Outermost,
                Err(_) => break not_copied(&missing),
            }
        };
        Unwound { natives, end }
    }

    /// Whether a frame may be there: the restorer of a handler stands at its first instruction.
    fn is_reached(&self, caller: FrameAddress) -> bool {
        self.may_run(caller.address_for_lookup())
            || signal::is_return_from_handler(self.instructions(caller.address()))
    }

    fn may_run(&self, address: u64) -> bool {
        self.executable.iter().any(|it| it.contains(&address))
    }

    /// What the call that returns to a frame has entered.
    pub fn entered(&self, caller: &Native) -> Option<Frame> {
        let target = callee::entered(self.pid, caller.address)?;
        FrameAddress::from_return_address(target + 1).map(|address| self.frame(address))
    }

    /// Registers of one of the frames, as far as functions further in have preserved them.
    pub fn registers(&self, thread: &ThreadCopy, natives: &[Native], at: usize) -> Option<Known> {
        // a signal has saved all
        let signal = natives[..at].iter().rposition(Native::is_signal);
        let innermost = signal.and_then(|it| natives[it].interrupted).unwrap_or(thread.registers);
        let natives = &natives[signal.map_or(0, |it| it + 1)..=at];
        let mut known = registers::innermost(&innermost);
        for (place, pair) in natives.windows(2).enumerate() {
            let called_at = pair[0].address - u64::from(place > 0);
            let it = self.loaded.iter().find(|it| it.addresses.contains(&called_at))?;
            let tables = it.file.tables()?;
            let address = called_at.wrapping_sub(it.bias);
            known = registers::of_caller(&known, address, &tables, thread)?;
            // by two ways to the same place
            if registers::place(&known) != Some((pair[1].address, pair[1].stack)) {
                return None;
            }
        }
        Some(known)
    }

    /// The ABI of the outermost of some frames that are MPI's.
    pub fn abi(&self, natives: &[Native]) -> Option<&'static Abi> {
        let path = |native: &Native| Some(self.loaded_at(native)?.path.as_str());
        natives.iter().rev().filter_map(path).find_map(|path| abi::of(base_name(path)))
    }

    fn loaded_at(&self, native: &Native) -> Option<&Loaded> {
        self.loaded.iter().find(|it| it.addresses.contains(&native.address))
    }

    /// The communicator that a handle is, which `caller` has passed.
    pub fn communicator(&self, caller: &Native, abi: &Abi, handle: Passed) -> Option<&'static str> {
        let handle = match handle {
            Passed::Value(value) => value,
            Passed::Address(address) => address.wrapping_add(self.loaded_at(caller)?.bias),
        };
        // where handles are addresses, a program may have an object of its library's copied into itself
        let symbol = |name: &str| {
            self.loaded
                .iter()
                .filter_map(|it| Some(it.file.symbols.get(name)?.start.wrapping_add(it.bias)))
                .any(|it| it == handle)
        };
        abi.communicators.iter().find(|it| it.is(handle, symbol)).map(|it| it.name)
    }

    /// Frames, and lines of Python in place of its interpreter's own.
    pub fn with_python(&self, natives: &[Native], python: &PythonLines) -> Vec<Mixed> {
        let interpreter = self.interpreter.as_ref().and_then(|it| it.as_ref().ok());
        let Some(interpreter) = interpreter.filter(|_| !python.lines.is_empty()) else {
            return (0..natives.len()).map(Mixed::Native).collect();
        };
        let places: Vec<(u64, u64)> = natives.iter().map(|it| (it.address, it.stack)).collect();
        interpreter.mix(&places, python)
    }
}

impl StackReader for ProcessCode {
    fn python_lines(&self, tid: i64) -> PythonLines {
        match &self.interpreter {
            Some(Ok(interpreter)) => interpreter.read(tid),
            _ => PythonLines::default(),
        }
    }

    fn goes_on_at(&self, thread: &ThreadCopy) -> Option<u64> {
        match self.unwind(thread).end {
            StackEnd::NotCopied(address) => Some(address),
            _ => None,
        }
    }
}

fn not_copied(missing: &Cell<Option<u64>>) -> StackEnd {
    missing.get().map_or(StackEnd::Unknown, StackEnd::NotCopied)
}

/// Before 3.11 an interpreter does not say which it is: `libpython3.9.so.1.0`, `python3.9`.
fn version_by_name(path: &str) -> Option<u32> {
    let digits = base_name(path).split_once("python3.")?.1;
    let end = digits.find(|it: char| !it.is_ascii_digit()).unwrap_or(digits.len());
    Some(3 << 24 | (digits[..end].parse::<u8>().ok()? as u32) << 16)
}

#[cfg(target_arch = "x86_64")]
fn native(registers: &Registers) -> framehop::x86_64::UnwindRegsX86_64 {
    let Registers { instruction, stack, frame, .. } = *registers;
    framehop::x86_64::UnwindRegsX86_64::new(instruction, stack, frame.unwrap_or(0))
}

#[cfg(target_arch = "aarch64")]
fn native(registers: &Registers) -> framehop::aarch64::UnwindRegsAarch64 {
    let Registers { stack, frame, link, .. } = *registers;
    framehop::aarch64::UnwindRegsAarch64::new(link, stack, frame.unwrap_or(0))
}
