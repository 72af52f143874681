//! From copied registers and stacks to call paths, by the unwind tables of the files that are mapped.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

use super::callee;
use super::maps::{read_memory, read_word, Mapping};
use super::python::{Found, Interpreter, Mixed, PythonLine, PythonLines};
use super::registers::{self, Known, UnwindTables};
use super::stop::{Registers, ThreadCopy};
use lapscope_data::model::{is_mpi_library, is_python_interpreter, python_address, Frame, Module};
use lapscope_data::symbols::{base_name, build_id, Passed};

#[cfg(target_arch = "aarch64")]
type Machine = framehop::aarch64::UnwinderAarch64<Arc<[u8]>>;
#[cfg(target_arch = "aarch64")]
type Cache = framehop::aarch64::CacheAarch64;
#[cfg(target_arch = "x86_64")]
type Machine = framehop::x86_64::UnwinderX86_64<Arc<[u8]>>;
#[cfg(target_arch = "x86_64")]
type Cache = framehop::x86_64::CacheX86_64;

/// Frames beyond these say nothing more.
const MOST_FRAMES: usize = 512;

/// A file with code: where its sections would be, and what they hold.
struct CodeFile {
    number: u32,
    /// Offsets in the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
    sections: HashMap<&'static str, (Range<u64>, Arc<[u8]>)>,
    /// Those of [`SYMBOLS`] that it has.
    symbols: HashMap<&'static str, Range<u64>>,
}

/// What is asked of an interpreter of Python, of the C library, and of an MPI and its programs.
const SYMBOLS: [&str; 9] = [
    "ompi_mpi_comm_world",
    "ompi_mpi_comm_self",
    "_PyRuntime",
    "Py_Version",
    "PyCode_Type",
    "PyUnicode_Type",
    "PyBytes_Type",
    "_PyEval_EvalFrameDefault",
    NUMBER_OF_THREAD,
];
/// For debuggers: bits, count and offset of the kernel's number in a thread's description.
const NUMBER_OF_THREAD: &str = "_thread_db_pthread_tid";

const SECTIONS: [&str; 5] = [".text", ".eh_frame", ".eh_frame_hdr", ".got", ".debug_frame"];

impl CodeFile {
    fn parse(number: u32, path: &str, bytes: &[u8]) -> Option<CodeFile> {
        let file = object::File::parse(bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset..offset + size, segment.address())
        });
        let sections = SECTIONS.iter().filter_map(|&name| {
            let section = file.section_by_name(name)?;
            let data = section.uncompressed_data().ok()?;
            Some((name, (section.address()..section.address() + section.size(), data.into())))
        });
        let (segments, sections) = (segments.collect(), sections.collect());
        let is_c_library =
            ["libc.so", "libc-2", "libpthread"].iter().any(|it| base_name(path).starts_with(it));
        let is_asked = is_c_library
            || is_python_interpreter(path)
            || is_mpi_library(path)
            || !base_name(path).contains(".so");
        let symbols = match is_asked {
            true => file
                .dynamic_symbols()
                .filter_map(|symbol| {
                    let name = symbol.name().ok()?;
                    let known = SYMBOLS.iter().find(|&&it| it == name && symbol.is_definition())?;
                    Some((*known, symbol.address()..symbol.address() + symbol.size()))
                })
                .collect(),
            false => HashMap::new(),
        };
        Some(CodeFile { number, segments, sections, symbols })
    }

    /// What is to be added to an address of the file to have that in memory.
    fn bias(&self, mapping: &Mapping) -> Option<u64> {
        const PAGE: u64 = 4096;
        let begin = |(range, _): &&(Range<u64>, u64)| range.start / PAGE * PAGE;
        let covers = |it: &&(Range<u64>, u64)| {
            begin(it) <= mapping.offset && mapping.offset < it.0.end.max(it.0.start + 1)
        };
        let (range, address) = self.segments.iter().filter(covers).max_by_key(|it| begin(it))?;
        let of_mapping = address.wrapping_sub(range.start).wrapping_add(mapping.offset);
        Some(mapping.addresses.start.wrapping_sub(of_mapping))
    }

    fn tables(&self) -> Option<UnwindTables<'_>> {
        let section =
            |name: &str| self.sections.get(name).map(|(at, bytes)| (at.start, &bytes[..]));
        let text = self.sections.get(".text").map_or(0, |(at, _)| at.start);
        Some(UnwindTables {
            text,
            frames: section(".eh_frame")?,
            header: section(".eh_frame_hdr")?,
        })
    }

    fn info(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        let range = |name: &str| Some(self.sections.get(name)?.0.clone());
        let data = |name: &str| Some(self.sections.get(name)?.1.clone());
        ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            text: data(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..Default::default()
        }
    }
}

/// The files of all processes that were looked at; each is read once.
#[derive(Default)]
pub struct CodeFiles {
    by_path: HashMap<String, Option<Arc<CodeFile>>>,
    /// Modules of Python functions, by file and name.
    functions: HashMap<(String, String), u32>,
    /// What frames count by.
    pub modules: Vec<Module>,
}

impl CodeFiles {
    fn open(&mut self, pid: i64, mapping: &Mapping) -> Option<Arc<CodeFile>> {
        if let Some(known) = self.by_path.get(&mapping.path) {
            return known.clone();
        }
        let bytes = match mapping.path.as_str() {
            "[vdso]" => {
                let bytes = (mapping.addresses.end - mapping.addresses.start) as usize;
                read_memory(pid, mapping.addresses.start, bytes).ok()
            }
            // in the process's own file system, as in a container
            path => fs::read(format!("/proc/{pid}/root{path}")).or_else(|_| fs::read(path)).ok(),
        };
        let number = self.modules.len() as u32;
        let found =
            bytes.and_then(|bytes| CodeFile::parse(number, &mapping.path, &bytes)).map(Arc::new);
        let build_id = build_id(Path::new(&mapping.path)).unwrap_or_default();
        self.modules.push(Module { path: mapping.path.clone(), build_id });
        self.by_path.insert(mapping.path.clone(), found.clone());
        found
    }

    /// The frame of a line of Python: a function is a module, as recorders have it.
    pub fn line(&mut self, line: &PythonLine) -> Frame {
        let name = (line.file.clone(), line.function.clone());
        let modules = &mut self.modules;
        let number = *self.functions.entry(name).or_insert_with(|| {
            let build_id = format!("python:{}", line.function);
            modules.push(Module { path: line.file.clone(), build_id });
            modules.len() as u32 - 1
        });
        let address = python_address(line.line, line.column);
        Frame { module: Some(number), address, level: 0 }
    }
}

struct Loaded {
    addresses: Range<u64>,
    bias: u64,
    file: Arc<CodeFile>,
    path: String,
}

/// A frame of machine code: its address, and the lowest address of its part of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native {
    pub frame: Frame,
    address: u64,
    stack: u64,
}

/// The code of a process, as it was mapped.
pub struct ProcessCode {
    machine: Machine,
    loaded: Vec<Loaded>,
    /// All that may run, also what no file is behind.
    executable: Vec<Range<u64>>,
    /// Of Python, where it has one; why its lines are not known.
    interpreter: Option<Result<Interpreter, String>>,
}

impl ProcessCode {
    /// `None`: there is no such process any more, or it may not be looked at.
    pub fn read(pid: i64, files: &mut CodeFiles) -> Option<ProcessCode> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let mappings: Vec<Mapping> = Mapping::parse_all(&maps).filter(|it| it.is_code).collect();
        let mut code = ProcessCode {
            machine: Machine::new(),
            loaded: Vec::new(),
            executable: mappings.iter().map(|it| it.addresses.clone()).collect(),
            interpreter: None,
        };
        let is_file = |it: &Mapping| it.path.starts_with('/') || it.path == "[vdso]";
        for mapping in mappings.into_iter().filter(is_file) {
            let Some(file) = files.open(pid, &mapping) else { continue };
            let Some(bias) = file.bias(&mapping) else { continue };
            code.loaded.push(Loaded {
                addresses: mapping.addresses.clone(),
                bias,
                file: file.clone(),
                path: mapping.path.clone(),
            });
            let name = mapping.path.clone();
            code.machine.add_module(framehop::Module::new(
                name,
                mapping.addresses,
                bias,
                file.info(),
            ));
        }
        code.interpreter = code.find_interpreter(pid);
        Some(code)
    }

    fn find_interpreter(&self, pid: i64) -> Option<Result<Interpreter, String>> {
        let symbol = |name: &str| {
            let it = self.loaded.iter().find(|it| it.file.symbols.contains_key(name))?;
            let range = &it.file.symbols[name];
            Some(range.start.wrapping_add(it.bias)..range.end.wrapping_add(it.bias))
        };
        let runtime = symbol("_PyRuntime")?.start;
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

    /// Lines of Python of a thread that does not run meanwhile.
    pub fn python_lines(&self, tid: i64) -> PythonLines {
        match &self.interpreter {
            Some(Ok(interpreter)) => interpreter.read(tid),
            _ => PythonLines::default(),
        }
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

    /// Callers, innermost first, and whether they are all there.
    pub fn unwind(&self, thread: &ThreadCopy) -> (Vec<Native>, bool) {
        let mut cache = Cache::new();
        let mut read = |address: u64| thread.word(address).ok_or(());
        let mut registers = native(&thread.registers);
        let mut address = FrameAddress::InstructionPointer(thread.registers.instruction);
        let mut frames = Vec::new();
        loop {
            if frames.len() == MOST_FRAMES {
                return (frames, false);
            }
            let (code, stack) = (address.address(), registers.sp());
            frames.push(Native { frame: self.frame(address), address: code, stack });
            match self.machine.unwind_frame(address, &mut registers, &mut cache, &mut read) {
                // a guess without tables may end in data, which called nothing
                Ok(Some(caller)) => match FrameAddress::from_return_address(caller) {
                    Some(caller) if self.may_run(caller.address_for_lookup()) => address = caller,
                    _ => return (frames, false),
                },
                Ok(None) => return (frames, true),
                Err(_) => return (frames, false),
            }
        }
    }

    fn may_run(&self, address: u64) -> bool {
        self.executable.iter().any(|it| it.contains(&address))
    }

    /// What the call that returns to a frame has entered.
    pub fn entered(&self, pid: i64, caller: &Native) -> Option<Frame> {
        let target = callee::entered(pid, caller.address)?;
        FrameAddress::from_return_address(target + 1).map(|address| self.frame(address))
    }

    /// Registers of one of the frames, as far as functions further in have preserved them.
    pub fn registers(&self, thread: &ThreadCopy, natives: &[Native], at: usize) -> Option<Known> {
        let mut known = registers::innermost(thread);
        for (place, pair) in natives[..=at].windows(2).enumerate() {
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

    /// The communicator that a handle is.
    pub fn communicator(&self, caller: &Native, handle: Passed) -> Option<&'static str> {
        const NAMES: [(&str, u64, &str); 2] = [
            ("ompi_mpi_comm_world", 0x4400_0000, "MPI_COMM_WORLD"),
            ("ompi_mpi_comm_self", 0x4400_0001, "MPI_COMM_SELF"),
        ];
        let caller = self.loaded.iter().find(|it| it.addresses.contains(&caller.address))?;
        let (address, number) = match handle {
            Passed::Value(value) => (value, Some(value & 0xffff_ffff)),
            Passed::Address(address) => (address.wrapping_add(caller.bias), None),
        };
        // the name is that of its ABI
        let of_mpich = ["libmpich.so.12", "libmpi.so.12"];
        let is_of_mpich = self
            .loaded
            .iter()
            .any(|it| of_mpich.iter().any(|name| base_name(&it.path).starts_with(name)));
        let is = |symbol: &str, known: u64| {
            let symbols = self
                .loaded
                .iter()
                .filter_map(|it| Some(it.file.symbols.get(symbol)?.start.wrapping_add(it.bias)));
            is_of_mpich && number == Some(known) || symbols.into_iter().any(|it| it == address)
        };
        NAMES.into_iter().find(|(symbol, known, _)| is(symbol, *known)).map(|(.., name)| name)
    }

    /// Frames with lines of Python in place of its interpreter's own.
    pub fn with_python(
        &self,
        natives: &[Native],
        python: &PythonLines,
        files: &mut CodeFiles,
    ) -> Vec<Frame> {
        let interpreter = self.interpreter.as_ref().and_then(|it| it.as_ref().ok());
        let Some(interpreter) = interpreter.filter(|_| !python.lines.is_empty()) else {
            return natives.iter().map(|native| native.frame).collect();
        };
        let places: Vec<(u64, u64)> = natives.iter().map(|it| (it.address, it.stack)).collect();
        let mixed = interpreter.mix(&places, python).into_iter();
        mixed
            .map(|it| match it {
                Mixed::Native(at) => natives[at].frame,
                Mixed::Line(at) => files.line(&python.lines[at]),
            })
            .collect()
    }
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
