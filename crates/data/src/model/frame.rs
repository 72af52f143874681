//! Where calls came from: frames of call paths, and what they lie in.

use serde::{Deserialize, Serialize};

/// A row of `module`, without the load address, which differs from rank to rank: an object file, or a Python function, whose
/// addresses are lines and columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Module {
    pub path: String,
    /// Hexadecimal, empty when the file had none; of Python functions `python:` and the name.
    pub build_id: String,
}

impl Module {
    /// The file's name without its directory.
    pub fn base_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether it belongs to the MPI implementation or to lapscope, not to the program.
    pub fn is_mpi(&self) -> bool {
        is_mpi_library(&self.path)
    }

    /// The name of the Python function that it is.
    pub fn python_function(&self) -> Option<&str> {
        self.build_id.strip_prefix("python:")
    }
}

/// How many bits of an address of a Python function are the column.
const COLUMN_BITS: u32 = 12;

/// The address of a line and column of a Python function, as recorders have it.
pub fn python_address(line: u32, column: u32) -> u64 {
    u64::from(line) << COLUMN_BITS | u64::from(column)
}

/// Line and column, from 1, that an address of a Python function means; 0: not known.
pub fn python_place(address: u64) -> (u32, u32) {
    ((address >> COLUMN_BITS) as u32, (address & ((1 << COLUMN_BITS) - 1)) as u32)
}

/// Whether a file is of what brings MPI to Python, or of how Python starts what it runs: its lines are no place in the program.
pub fn is_python_layer(path: &str) -> bool {
    const LIBRARIES: [&str; 3] = ["libffi.so", "_ctypes.", "_cffi_backend."];
    const MODULES: [&str; 3] = ["runpy", "threading", "importlib"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_frozen = |module: &&str| {
        path.strip_prefix("<frozen ").is_some_and(|frozen| frozen.starts_with(*module))
    };
    path.contains("/site-packages/mpi4py/")
        || path.contains("/dist-packages/mpi4py/")
        || LIBRARIES.iter().any(|prefix| name.starts_with(prefix))
        || MODULES.iter().any(|module| is_frozen(module) || is_standard(path, module))
}

/// Whether a file is the interpreter of Python: the executable, or the library that has it.
pub fn is_python_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["python3", "libpython3"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a file is that module of Python's own library: `/usr/lib/python3.11/threading.py`.
fn is_standard(path: &str, module: &str) -> bool {
    let mut parts = path.rsplit('/');
    let is_module = parts.next().and_then(|name| name.strip_suffix(".py")) == Some(module);
    is_module && parts.next().is_some_and(|directory| directory.starts_with("python3."))
}

/// Whether a file's name is that of a library of an MPI implementation, or of lapscope.
pub fn is_mpi_library(path: &str) -> bool {
    const PREFIXES: [&str; 7] =
        ["libmpi", "libpmpi", "libopen-pal", "libopen-rte", "libfmpich", "libucp", "liblapscope"];
    let name = path.rsplit('/').next().unwrap_or(path);
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A return address, in the numbering of its module; `module` indexes the modules of whoever holds the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Frame {
    pub module: Option<u32>,
    pub address: u64,
    /// How many of the functions that were inlined there are left out, from the innermost on; 0 in what was recorded.
    pub level: u32,
}

/// A call path, innermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallPath {
    pub frames: Vec<Frame>,
    pub truncated: bool,
    /// The caller of the wrappers, where functions only pass on to MPI; see [`site_frame`].
    pub caller: Option<Frame>,
}

/// The frame that a call site is named by: the caller of wrappers, or the innermost outside of the MPI libraries. `modules`
/// are those that frames index into.
pub fn site_frame(path: &CallPath, modules: &[Module]) -> Option<Frame> {
    path.caller.or_else(|| innermost_own(path, modules).map(|at| path.frames[at]))
}

/// Which frame calls MPI: the innermost outside of the MPI libraries, and of Python's layers where the path has lines of Python.
/// `None` of an empty path.
pub fn innermost_own(path: &CallPath, modules: &[Module]) -> Option<usize> {
    let module = |frame: &Frame| frame.module.map(|module| &modules[module as usize]);
    let is_line = |frame: &Frame| module(frame).is_some_and(|it| it.python_function().is_some());
    let is_mpi = |frame: &Frame| module(frame).is_some_and(Module::is_mpi);
    let is_layer = |frame: &Frame| module(frame).is_some_and(|it| is_python_layer(&it.path));
    let frames = || path.frames.iter();
    let line = frames().position(is_line);
    let own = match line {
        Some(line) => frames().position(|it| !is_mpi(it) && !is_layer(it)).or(Some(line)),
        None => frames().position(|it| !is_mpi(it)),
    };
    own.or((!path.frames.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_python_is_named_by_the_innermost_line_of_the_program() {
        let module =
            |path: &str, build_id: &str| Module { path: path.into(), build_id: build_id.into() };
        let modules = [
            module("/usr/lib/libmpi.so.40", ""),
            module("/v/lib/python3.11/site-packages/mpi4py/MPI.so", ""),
            module("/v/lib/python3.11/site-packages/mpi4py/futures/_core.py", "python:run"),
            module("/usr/lib/python3.11/threading.py", "python:Thread.run"),
            module("/home/me/threading.py", "python:run"),
            module("/home/me/fast.so", ""),
            module("/usr/lib/libpython3.11.so", ""),
        ];
        let own = |frames: &[u32]| {
            let frame = |&module: &u32| Frame { module: Some(module), address: 0, level: 0 };
            let frames = frames.iter().map(frame).collect();
            innermost_own(&CallPath { frames, ..CallPath::default() }, &modules)
        };
        assert_eq!(own(&[0, 1, 4]), Some(2));
        assert_eq!(own(&[0, 1, 5, 4]), Some(2), "an extension that calls mpi4py");
        assert_eq!(own(&[1, 2, 3]), Some(1), "nothing of the program");
        assert_eq!(own(&[0, 1, 6]), Some(1), "without lines of Python");
        assert_eq!(own(&[]), None);
        assert_eq!(python_place(41 << 12 | 9), (41, 9));
        assert_eq!(python_address(41, 9), 41 << 12 | 9);
    }

    #[test]
    fn mpi_libraries_are_told_from_programs() {
        let module = |path: &str| Module { path: path.into(), build_id: String::new() };
        assert!(module("/usr/lib/libmpi.so.40").is_mpi());
        assert!(module("/usr/lib/libmpich.so.12").is_mpi());
        assert!(!module("/home/u/mpi_app").is_mpi());
    }
}
