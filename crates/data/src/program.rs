//! What can be told about a program from its file: whether it can be profiled, and which MPI it links.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Object, ObjectSection};
use serde::Serialize;

/// A program file.
#[derive(Debug, Clone, Serialize)]
pub struct Program {
    pub path: PathBuf,
    pub kind: Kind,
    /// Runs with the rights of its owner, or with capabilities: the loader then ignores LD_PRELOAD.
    pub privileged: bool,
    /// Line numbers are in the file, or in the separate file that distributions make.
    pub debug_info: bool,
    /// MPI libraries that it loads at its start, those of its libraries included.
    pub mpi: Vec<MpiLibrary>,
    /// Libraries that the loader does not find.
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Started by the loader: can be profiled
    Dynamic,
    /// No loader, no LD_PRELOAD
    Static,
    /// Begins with `#!`
    Script,
    /// Neither
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MpiLibrary {
    /// `libmpi.so.40`
    pub name: String,
    pub path: Option<PathBuf>,
    /// `openmpi`, `mpich`, `mpiabi`
    pub abi: &'static str,
}

/// Looks at the file `path`.
///
/// # Errors
/// It cannot be read.
pub fn inspect(path: &Path) -> std::io::Result<Program> {
    let data = std::fs::read(path)?;
    let mut program = Program {
        path: path.into(),
        kind: if data.starts_with(b"#!") { Kind::Script } else { Kind::Other },
        privileged: is_privileged(path),
        debug_info: false,
        mpi: Vec::new(),
        missing: Vec::new(),
    };
    let interpreter = match object::FileKind::parse(&*data) {
        Ok(object::FileKind::Elf64) => inspect_elf::<elf::FileHeader64<_>>(&data, &mut program),
        Ok(object::FileKind::Elf32) => inspect_elf::<elf::FileHeader32<_>>(&data, &mut program),
        _ => None,
    };
    if let Some(interpreter) = interpreter {
        list_libraries(&interpreter, &mut program);
    }
    Ok(program)
}

/// Fills in what the ELF file says, and returns the loader that it names.
fn inspect_elf<E: FileHeader<Endian = object::Endianness>>(
    data: &[u8],
    program: &mut Program,
) -> Option<PathBuf> {
    let file = ElfFile::<E>::parse(data).ok()?;
    let has = |name: &str| file.section_by_name(name).is_some_and(|section| section.size() > 0);
    let build_id = file.build_id().ok().flatten().unwrap_or_default();
    program.debug_info =
        has(".debug_info") || has(".zdebug_info") || separate_file(build_id).exists();
    let interpreter = interpreter::<E>(data);
    program.kind = if interpreter.is_some() { Kind::Dynamic } else { Kind::Static };
    interpreter
}

/// Fills in which MPI the program loads, and what its loader does not find.
fn list_libraries(interpreter: &Path, program: &mut Program) {
    for (name, path) in libraries(interpreter, &program.path) {
        if path.is_none() {
            program.missing.push(name.clone());
        }
        if let Some(abi) = abi_of(&name) {
            program.mpi.push(MpiLibrary { name, path, abi });
        }
    }
}

/// The libraries that `file` loads, with their places; `None` where there is none. Asks the loader, as ldd does: it
/// alone knows its cache, RPATH and LD_LIBRARY_PATH.
fn libraries(interpreter: &Path, file: &Path) -> Vec<(String, Option<PathBuf>)> {
    let name = interpreter.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_loader = name.starts_with("ld-") || name.starts_with("ld64"); // else it might run the program
    let Some(file) = std::path::absolute(file).ok().filter(|_| is_loader) else {
        return Vec::new();
    };
    let listed =
        Command::new(interpreter).arg("--list").arg(file).env_remove("LD_PRELOAD").output();
    let text = listed.map(|output| output.stdout).unwrap_or_default();
    let entry = |line: &str| {
        let (library, target) = line.trim().split_once(" => ")?;
        let target = target.split(" (").next().unwrap_or(target);
        Some((library.to_owned(), (target != "not found").then(|| PathBuf::from(target))))
    };
    String::from_utf8_lossy(&text).lines().filter_map(entry).collect()
}

/// As [`libraries`], for a shared object, which names no loader: asks the one of this program.
pub fn libraries_of_object(object: &Path) -> Vec<(String, Option<PathBuf>)> {
    let own = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let interpreter = match object::FileKind::parse(&*own) {
        Ok(object::FileKind::Elf64) => interpreter::<elf::FileHeader64<_>>(&own),
        Ok(object::FileKind::Elf32) => interpreter::<elf::FileHeader32<_>>(&own),
        _ => None,
    };
    interpreter.map(|loader| libraries(&loader, object)).unwrap_or_default()
}

/// Where distributions put debug information that was taken out of a program.
fn separate_file(build_id: &[u8]) -> PathBuf {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (directory, rest) = hex.split_at(hex.len().min(2));
    PathBuf::from(format!("/usr/lib/debug/.build-id/{directory}/{rest}.debug"))
}

fn interpreter<E: FileHeader<Endian = object::Endianness>>(data: &[u8]) -> Option<PathBuf> {
    let file = ElfFile::<E>::parse(data).ok()?;
    let endian = file.endian();
    let headers = file.elf_program_headers();
    let path = headers.iter().find_map(|header| header.interpreter(endian, data).ok()?)?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// The MPI ABI that a library of this name has; `None` when it is no MPI library.
pub fn abi_of(library: &str) -> Option<&'static str> {
    let (stem, version) = library.split_once(".so").unwrap_or((library, ""));
    match (stem, version) {
        ("libmpi_abi", _) => Some("mpiabi"),
        ("libmpich", _) | ("libmpi", ".12") => Some("mpich"),
        ("libmpi", _) => Some("openmpi"),
        // Cray: libmpi_cray, libmpi_gnu_91, libmpi_intel
        (cray, ".12") if cray.starts_with("libmpi_") && !cray.contains("mpifh") => Some("mpich"),
        _ => None,
    }
}

fn is_privileged(path: &Path) -> bool {
    let set_id = path.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o6000 != 0);
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return set_id };
    // SAFETY: two strings with an end; a size of 0 only asks whether the attribute is there.
    let capabilities = unsafe {
        libc::getxattr(name.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0)
    };
    set_id || capabilities > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abis_by_library_name() {
        assert_eq!(abi_of("libmpi.so.40"), Some("openmpi"));
        assert_eq!(abi_of("libmpi.so.12"), Some("mpich"));
        assert_eq!(abi_of("libmpich.so.12"), Some("mpich"));
        assert_eq!(abi_of("libmpi_gnu_91.so.12"), Some("mpich"));
        assert_eq!(abi_of("libmpi_abi.so.0"), Some("mpiabi"));
        assert_eq!(abi_of("libmpi_mpifh.so.40"), None);
        assert_eq!(abi_of("libm.so.6"), None);
    }

    #[test]
    fn this_very_program_is_dynamic() {
        let program = inspect(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(program.kind, Kind::Dynamic);
        assert!(!program.privileged && program.mpi.is_empty() && program.missing.is_empty());
    }

    #[test]
    fn scripts_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(inspect(&path).unwrap().kind, Kind::Script);
    }
}
