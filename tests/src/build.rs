//! Builds the programs of `tests/apps`, one binary for each MPI.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::mpi::Mpi;
use crate::{child, paths, rows, turn};

/// Flags of C and of C++.
const COMMON_FLAGS: &[&str] =
    &["-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"];

/// gcc takes MPICH's `MPI_STATUSES_IGNORE`, an address of 1, for an array of size 0: hence the last flag.
const FLAGS: &[&str] = &["-std=c11", "-Wno-stringop-overflow"];

/// The C++ bindings that some MPIs once had are left out: C++ programs call the C functions.
const CPP_FLAGS: &[&str] = &["-std=c++17", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-pthread"];

/// Modules and headers by which Fortran programs get at MPI: one source serves all (`tests/apps/binding.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    F08,
    Module,
    Header,
}

impl Binding {
    pub const ALL: [Self; 3] = [Self::F08, Self::Module, Self::Header];

    /// As expectations and file names call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::F08 => "f08",
            Self::Module => "module",
            Self::Header => "header",
        }
    }

    /// Where arguments are not declared the compiler sees calls that do not agree with each other.
    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::F08 => &["-DUSE_MPI_F08"],
            Self::Module => &["-DUSE_MPI_MODULE", "-fallow-argument-mismatch", "-w"],
            Self::Header => &["-DUSE_MPIF_H", "-fallow-argument-mismatch", "-w"],
        }
    }
}

const FORTRAN_FLAGS: &[&str] = &[
    "-cpp",
    "-O1",
    "-g",
    "-fno-range-check",
    "-ffree-line-length-none",
    "-Wall",
    "-Wno-unused",
    "-Wno-unused-dummy-argument",
];

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|facts| facts.modified()).ok()
}

fn is_current(binary: &Path, sources: &[PathBuf]) -> bool {
    changed(binary).is_some_and(|built| {
        sources.iter().all(|source| changed(source).is_some_and(|at| at < built))
    })
}

/// The headers that programs share, with others and with lapscope's own programs.
fn headers() -> Vec<PathBuf> {
    let mut all = rows::files(&paths::apps());
    all.extend(
        ["calibrate", "gpu"]
            .iter()
            .flat_map(|room| rows::files(&paths::root().join("interposer").join(room))),
    );
    all.extend(["torture", "hang"].iter().flat_map(|part| rows::files(&paths::apps().join(part))));
    all.retain(|path| path.extension().is_some_and(|end| end == "h"));
    all
}

/// Answers to questions about an MPI that take a compiler, by its name and the question.
fn asked(mpi: &Mpi, question: &str, ask: impl FnOnce() -> bool) -> bool {
    static KNOWN: Mutex<BTreeMap<(&str, String), bool>> = Mutex::new(BTreeMap::new());
    let _turn = turn::of_compilers(mpi.name);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (mpi.name, question.to_owned());
    let answer = known().get(&key).copied();
    answer.unwrap_or_else(|| {
        let answer = ask();
        known().insert(key, answer);
        answer
    })
}

/// The functions that an MPI does not have, of those that a program needs: a program that takes its address does not
/// compile, or does not link.
pub fn missing(mpi: &Mpi, functions: &[String]) -> Vec<String> {
    let lacks = |function: &&String| !asked(mpi, function, || has_function(mpi, function));
    functions.iter().filter(lacks).cloned().collect()
}

fn has_function(mpi: &Mpi, function: &str) -> bool {
    let place = tempfile::tempdir().expect("a temporary directory");
    let source = place.path().join("probe.c");
    let text = format!(
        "#include <mpi.h>\nint main(void) {{ void (*volatile there)(void) = (void (*)(void)){function}; return !there; }}\n"
    );
    fs::write(&source, text).expect("a source to compile");
    let output = child::command(mpi.compiler)
        .arg(&source)
        .arg("-o")
        .arg(place.path().join("probe"))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", mpi.compiler));
    output.status.success()
}

/// Runs a compiler to make `binary`. The file appears whole, so that tests at work at the same time do not meet.
fn compile(
    compiler: &mut Command,
    source: &Path,
    binary: &Path,
    options: &[&str],
) -> Result<(), String> {
    let directory = binary.parent().expect("a binary has a directory");
    fs::create_dir_all(directory).expect("a directory for test programs");
    let name = binary.file_name().expect("a binary has a name").to_string_lossy();
    let unfinished = directory.join(format!(".{name}.{}", process::id()));
    compiler.arg("-o").arg(&unfinished).arg(source).args(options);
    let output = compiler.output().unwrap_or_else(|error| panic!("{compiler:?}: {error}"));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{compiler:?}:\n{said}"));
    }
    fs::rename(&unfinished, binary).expect("the finished program");
    Ok(())
}

/// [`compile`] of C.
///
/// # Panics
/// When it cannot be built.
fn compile_c(compiler: &str, source: &Path, binary: &Path, options: &[&str]) {
    compile(child::command(compiler).args(COMMON_FLAGS).args(FLAGS), source, binary, options)
        .unwrap_or_else(|said| panic!("{said}"));
}

/// The binary of `tests/apps/<app>.c` for an MPI, built anew when the source is newer.
///
/// # Panics
/// When it cannot be built.
pub fn app(mpi: &Mpi, app: &str) -> PathBuf {
    app_with(mpi, app, &[])
}

/// [`app`] with libraries of its own.
///
/// # Panics
/// As [`app`].
pub fn app_with(mpi: &Mpi, app: &str, libraries: &[&str]) -> PathBuf {
    app_as(mpi, app, app, libraries)
}

/// [`app`] linked with a library that has this file name: a binary beside that without.
///
/// # Panics
/// As [`app`].
pub fn app_beside(mpi: &Mpi, app: &str, library: &str) -> PathBuf {
    app_as(mpi, app, &format!("{app}-{library}"), &[&format!("-l:{library}")])
}

fn app_as(mpi: &Mpi, app: &str, name: &str, libraries: &[&str]) -> PathBuf {
    let _turn = turn::of_compilers(mpi.name);
    let source = paths::apps().join(format!("{app}.c"));
    let binary = paths::built(mpi.name).join(name);
    let mut sources = headers();
    sources.push(source.clone());
    if !is_current(&binary, &sources) {
        compile_c(mpi.compiler, &source, &binary, &[&["-pthread"], libraries].concat());
    }
    binary
}

/// The binary of `tests/apps/<app>.cpp` for an MPI. Its C compiler wrapper is told to run another compiler.
///
/// # Panics
/// When it cannot be built.
pub fn cpp(mpi: &Mpi, app: &str) -> PathBuf {
    let _turn = turn::of_compilers(mpi.name);
    let source = paths::apps().join(format!("{app}.cpp"));
    let binary = paths::built(mpi.name).join(app);
    let mut sources = headers();
    sources.push(source.clone());
    if !is_current(&binary, &sources) {
        let mut compiler = child::command(mpi.compiler);
        compiler.envs([("OMPI_CC", "g++"), ("MPICH_CC", "g++")]).args(COMMON_FLAGS).args(CPP_FLAGS);
        compile(&mut compiler, &source, &binary, &[]).unwrap_or_else(|said| panic!("{said}"));
    }
    binary
}

/// The binary of `tests/apps/<app>.f90` for an MPI, with one of its bindings. `extra` are flags of one's own, which go into
/// its name.
///
/// # Panics
/// When it cannot be built.
pub fn fortran(mpi: &Mpi, app: &str, binding: Binding, extra: &[&str]) -> PathBuf {
    let _turn = turn::of_compilers(mpi.name);
    let source = paths::apps().join(format!("{app}.f90"));
    let binary = paths::built(mpi.name).join(format!("{app}-{}{}", binding.word(), extra.concat()));
    let mut sources = headers();
    sources.push(source.clone());
    if !is_current(&binary, &sources) {
        let flags = [FORTRAN_FLAGS, binding.flags(), extra].concat();
        let mut compiler = child::command(mpi.fortran[0]);
        compile(compiler.args(flags), &source, &binary, &mpi.fortran[1..])
            .unwrap_or_else(|said| panic!("{said}"));
    }
    binary
}

/// Whether an MPI has a Fortran binding at all: a program that does nothing else than use it compiles.
pub fn has_fortran(mpi: &Mpi, binding: Binding) -> bool {
    let Some(compiler) = mpi.fortran.first() else { return false };
    asked(mpi, binding.word(), || {
        let place = tempfile::tempdir().expect("a temporary directory");
        let source = place.path().join("probe.f90");
        let text = match binding {
            Binding::F08 => "use mpi_f08\nend\n",
            Binding::Module => "use mpi\nend\n",
            Binding::Header => "include 'mpif.h'\nend\n",
        };
        fs::write(&source, text).expect("a source to compile");
        let binary = place.path().join("probe");
        compile(&mut child::command(compiler), &source, &binary, &mpi.fortran[1..]).is_ok()
    })
}

/// What an example is compiled with, beside its own options; by the ending of its source.
fn example_compiler(mpi: &Mpi, source: &Path) -> Option<Command> {
    let end = source.extension().unwrap_or_default().to_string_lossy();
    let mut compiler = child::command(mpi.compiler);
    let warnings = ["-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"];
    match &*end {
        "c" => compiler.args(warnings).args(["-std=gnu11", "-Wno-stringop-overflow"]),
        "cpp" => compiler
            .envs([("OMPI_CC", "g++"), ("MPICH_CC", "g++"), ("I_MPI_CC", "g++")])
            .args(warnings)
            .args(CPP_FLAGS),
        "f90" if has_fortran(mpi, Binding::F08) => {
            compiler = child::command(mpi.fortran[0]);
            compiler.args(["-g", "-Wall", "-ffree-line-length-none"])
        }
        _ => return None,
    };
    Some(compiler)
}

/// The binary of a program of `examples`, as `reach/reach.c`, with these options of the compiler. `None` where the MPI has no such
/// Fortran.
///
/// # Panics
/// When it cannot be built.
pub fn example(mpi: &Mpi, example: &str, options: &[&str]) -> Option<PathBuf> {
    let examples = paths::root().join("examples");
    let source = examples.join(example);
    let mut compiler = example_compiler(mpi, &source)?;
    let _turn = turn::of_compilers(mpi.name);
    let name = format!("{}{}", example.replace('/', "-"), options.concat());
    let binary = paths::built(mpi.name).join("examples").join(name);
    let mut sources = rows::files(&examples.join("common"));
    sources.push(source.clone());
    if !is_current(&binary, &sources) {
        let fortran: &[&str] = if example.ends_with(".f90") { &mpi.fortran[1..] } else { &[] };
        compile(&mut compiler, &source, &binary, &[options, fortran].concat())
            .unwrap_or_else(|said| panic!("{said}"));
    }
    Some(binary)
}

/// The binary of `tests/apps/<tool>.c`, which is no MPI program.
///
/// # Panics
/// When it cannot be built.
pub fn tool(tool: &str) -> PathBuf {
    let _turn = turn::of_compilers("none");
    let source = paths::apps().join(format!("{tool}.c"));
    let binary = paths::built("none").join(tool);
    let mut sources = headers();
    sources.push(source.clone());
    if !is_current(&binary, &sources) {
        compile_c("cc", &source, &binary, &[]);
    }
    binary
}

/// The shared library of `tests/apps/<library>.c` for an MPI.
///
/// # Panics
/// When it cannot be built.
pub fn library(mpi: &Mpi, library: &str) -> PathBuf {
    let _turn = turn::of_compilers(mpi.name);
    let source = paths::apps().join(format!("{library}.c"));
    let stem = source.file_stem().expect("a name").to_string_lossy();
    let binary = paths::built(mpi.name).join(library).with_file_name(format!("lib{stem}.so"));
    if !is_current(&binary, std::slice::from_ref(&source)) {
        compile_c(mpi.compiler, &source, &binary, &["-shared", "-fPIC"]);
    }
    binary
}

/// Where the loader finds a library of the system, by the name of its file.
pub fn installed_library(name: &str) -> Option<PathBuf> {
    let listed = child::command("/sbin/ldconfig").arg("-p").output().ok()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_once(" => ").map(|(_, path)| PathBuf::from(path))
}

/// The program `unknown_program.c` with `unknown_mpi.c` as its MPI, a shared library beside it.
///
/// # Panics
/// When they cannot be built.
pub fn unknown_mpi_program() -> PathBuf {
    let _turn = turn::of_compilers("unknown");
    let directory = paths::built("unknown");
    let (library, program) = (directory.join("libmpi.so"), directory.join("program"));
    compile_c(
        "cc",
        &paths::apps().join("unknown_mpi.c"),
        &library,
        &["-shared", "-fPIC", "-Wl,-soname,libmpi.so"],
    );
    let search = format!("-L{}", directory.display());
    let source = paths::apps().join("unknown_program.c");
    compile_c("cc", &source, &program, &[&search, "-Wl,-rpath,$ORIGIN", "-lmpi"]);
    program
}
