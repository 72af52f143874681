//! To whom frames belong: to MPI, to the program, or to what both use.

use std::collections::{HashMap, HashSet};

use super::abi;
use super::calls;
use super::loaded::Loaded;
use lapscope_data::model::is_mpi_library;
use lapscope_data::symbols::{base_name, FrameName};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Mpi,
    /// A function with the name of an MPI call outside of MPI: of a library that watches calls, and passes them on.
    Wrapper,
    /// Certainly the program's: no library of MPI's would call it unless the program had asked for that.
    Program,
    /// The C library, libraries that MPI needs or loads, what nobody knows.
    Other,
    /// Between a handler of a signal and what it interrupted.
    Signal,
}

/// The files of a process that are its program.
#[derive(Debug, Default)]
pub struct ProgramFiles {
    /// Empty where MPI is part of the executable: then nobody can tell.
    paths: HashSet<String>,
    /// The executable, where MPI is part of it.
    with_mpi: Option<String>,
}

impl ProgramFiles {
    /// The executable and the libraries that it needs and MPI does not; and what it has loaded itself that calls MPI.
    pub fn new(executable: &str, loaded: &[Loaded]) -> ProgramFiles {
        let executable = executable.strip_suffix(" (deleted)").unwrap_or(executable);
        if !loaded.iter().any(|it| is_mpi_library(&it.path)) {
            let with_mpi = Some(executable.to_owned());
            return ProgramFiles { paths: HashSet::new(), with_mpi };
        }
        let of_program = needed(loaded, |it| it.path == executable);
        let calls_mpi = |it: &Loaded| it.file.needed.iter().any(|name| is_mpi_library(name));
        // what was loaded later, and does not call MPI, may be what MPI has loaded
        let is_later = |it: &Loaded| !of_program.contains(it.path.as_str()) && !calls_mpi(it);
        let of_mpi = needed(loaded, |it| is_of_mpi(it) || is_later(it));
        let own = loaded.iter().filter(|it| calls_mpi(it)).map(|it| it.path.as_str());
        let paths = own.chain(of_program.iter().copied());
        let paths = paths.filter(|path| !of_mpi.contains(path)).map(str::to_owned).collect();
        ProgramFiles { paths, with_mpi: None }
    }

    #[cfg(test)]
    pub fn made_up(paths: &[&str]) -> ProgramFiles {
        ProgramFiles { paths: paths.iter().map(|it| (*it).to_owned()).collect(), with_mpi: None }
    }

    pub fn layer(&self, name: &FrameName) -> Layer {
        let function = name.function.as_deref().unwrap_or("");
        let module = name.module.as_deref().unwrap_or("");
        let is_call = || calls::name_of(function).is_some_and(|it| calls::find(&it).is_some());
        match () {
            () if name.is_signal() => Layer::Signal,
            () if name.is_mpi() && !is_namesake(module, function) => Layer::Mpi,
            () if name.is_python() && name.is_python_layer() => Layer::Other,
            () if name.is_python() => Layer::Program,
            () if self.with_mpi.as_deref() == Some(module) && is_call() => Layer::Mpi,
            () if is_call() => Layer::Wrapper,
            () if name.is_python_layer() || allocates(function) => Layer::Other,
            () if self.paths.contains(module) => Layer::Program,
            () => Layer::Other,
        }
    }
}

/// Its plugins, too.
fn is_of_mpi(it: &Loaded) -> bool {
    let name = base_name(&it.path);
    is_mpi_library(name) || ["mca_", "libmca_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Paths of some files and of all that they need.
fn needed(loaded: &[Loaded], is_wanted: impl Fn(&Loaded) -> bool) -> HashSet<&str> {
    let by_name: HashMap<&str, &Loaded> =
        loaded.iter().map(|it| (it.file.name.as_str(), it)).collect();
    let mut open: Vec<&Loaded> = loaded.iter().filter(|it| is_wanted(it)).collect();
    let mut found = HashSet::new();
    while let Some(it) = open.pop() {
        if found.insert(it.path.as_str()) {
            open.extend(it.file.needed.iter().filter_map(|name| by_name.get(name.as_str())));
        }
    }
    found
}

/// Whether a library that watches calls is only called as MPI's are: `MPI_Send` of `libmpitrace.so`. Those of MPI without an ABI have
/// the names of Fortran; the recorder is no wrapper to be shown.
fn is_namesake(module: &str, function: &str) -> bool {
    let library = base_name(module);
    let is_others = !library.starts_with("liblapscope") && !library.starts_with("libpmpi");
    function.starts_with("MPI_") && is_others && abi::of(library).is_none()
}

/// A program may have functions in place of the C library's, which MPI calls as those.
fn allocates(function: &str) -> bool {
    const NAMES: [&str; 10] = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "cfree",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
    ];
    const PREFIXES: [&str; 4] = ["tc_", "je_", "mi_", "scalable_"];
    let plain = PREFIXES.iter().find_map(|prefix| function.strip_prefix(prefix));
    NAMES.contains(&plain.unwrap_or(function))
}
