//! What can be told about a program from its file: whether it can be profiled, and which MPI it links.

use std::ffi::CString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf;
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use serde::Serialize;

use crate::files::open_regular;
use crate::symbols::find_locally;

/// A program file.
#[derive(Debug, Clone, Serialize)]
pub struct ProgramFile {
    pub path: PathBuf,
    pub kind: ProgramKind,
    /// Runs with the rights of its owner, or with capabilities: the loader then ignores LD_PRELOAD.
    pub privileged: bool,
    /// Line numbers are in the file, or in the separate file that distributions make.
    pub debug_info: bool,
    /// MPI libraries that it loads at its start, those of its libraries included.
    pub mpi: Vec<MpiLibrary>,
    /// Libraries that the loader does not find.
    pub missing: Vec<String>,
    /// Where all those lie that the loader finds.
    #[serde(skip)]
    pub places: Vec<PathBuf>,
    /// The loader, or the interpreter that a script names.
    pub interpreter: Option<PathBuf>,
    /// An MPI is part of the program itself: its calls reach nobody else.
    pub mpi_inside: bool,
    /// Which other processor or word length than this command's it is for.
    pub foreign: Option<String>,
}

/// Why nothing can be recorded of a program, as far as its file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Its C library is musl, which cannot load the recorder, made for glibc: it would not even start.
    Musl,
    /// Made for this machine.
    Foreign(String),
    Static,
    MpiInside,
    Privileged,
}

impl Obstacle {
    /// What it is, behind the name of the program.
    pub fn what(&self) -> String {
        match self {
            Obstacle::Musl => "is linked with musl, and the recorder needs glibc".into(),
            Obstacle::Foreign(machine) => {
                format!("is a program for {machine}, and the recorder one for {OWN_MACHINE}")
            }
            Obstacle::Static => "is statically linked: LD_PRELOAD has no effect on it".into(),
            Obstacle::MpiInside => {
                "has its MPI linked into itself, statically: its calls reach no preloaded library"
                    .into()
            }
            Obstacle::Privileged => {
                "is set-uid, set-gid or has capabilities: the loader ignores LD_PRELOAD".into()
            }
        }
    }

    /// What to do about it.
    pub fn cure(&self) -> &'static str {
        match self {
            Obstacle::Musl => {
                "build the program where glibc is the C library (Debian, Ubuntu, RHEL, SUSE; not Alpine)"
            }
            Obstacle::Foreign(_) => "build the program for this machine, or use the lapscope made for that one",
            Obstacle::Static | Obstacle::MpiInside => {
                "link it dynamically (without -static; on Cray: cc -dynamic, or CRAYPE_LINK_TYPE=dynamic)"
            }
            Obstacle::Privileged => "run a copy without them: cp PROGRAM COPY",
        }
    }
}

/// As [`machine_name`] says it.
const OWN_MACHINE: &str = if cfg!(target_arch = "x86_64") {
    "x86-64"
} else if cfg!(target_arch = "aarch64") {
    "AArch64"
} else {
    "this machine"
};

impl ProgramFile {
    /// Whether it loads gcc's shared runtime of the address sanitizer, which ends a program where another library comes first.
    pub fn has_shared_asan(&self) -> bool {
        let names = self.places.iter().filter_map(|place| place.file_name());
        names.into_iter().any(|name| name.to_string_lossy().starts_with("libasan.so"))
    }

    /// The first reason why nothing can be recorded of it.
    pub fn obstacle(&self) -> Option<Obstacle> {
        let is_dynamic = self.kind == ProgramKind::Dynamic;
        let is_musl = is_dynamic && self.interpreter.as_deref().is_some_and(is_musl);
        match self {
            ProgramFile { foreign: Some(machine), .. } => Some(Obstacle::Foreign(machine.clone())),
            _ if is_musl => Some(Obstacle::Musl),
            ProgramFile { kind: ProgramKind::Static, .. } => Some(Obstacle::Static),
            ProgramFile { mpi_inside: true, .. } => Some(Obstacle::MpiInside),
            ProgramFile { privileged: true, .. } => Some(Obstacle::Privileged),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
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
pub fn inspect(path: &Path) -> std::io::Result<ProgramFile> {
    let mut data = Vec::new();
    open_regular(path)?.read_to_end(&mut data)?;
    let mut program = ProgramFile {
        path: path.into(),
        kind: if data.starts_with(b"#!") { ProgramKind::Script } else { ProgramKind::Other },
        privileged: is_privileged(path),
        debug_info: false,
        mpi: Vec::new(),
        missing: Vec::new(),
        places: Vec::new(),
        interpreter: named_interpreter(&data),
        mpi_inside: false,
        foreign: None,
    };
    let interpreter = match object::FileKind::parse(&*data) {
        Ok(object::FileKind::Elf64) => inspect_elf::<elf::FileHeader64<_>>(&data, &mut program),
        Ok(object::FileKind::Elf32) => inspect_elf::<elf::FileHeader32<_>>(&data, &mut program),
        _ => None,
    };
    if let Some(interpreter) = interpreter {
        if program.foreign.is_none() {
            list_libraries(&interpreter, &mut program);
        }
        program.interpreter = Some(interpreter);
    }
    Ok(program)
}

/// Whether a program is linked with musl, by its first bytes alone: each rank of a job may ask.
pub fn is_of_musl(path: &Path) -> bool {
    const BYTES: u64 = 1 << 16; // the headers and the loader's name lie in front
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(BYTES).read_to_end(&mut head));
    let interpreter = match object::FileKind::parse(&*head) {
        Ok(object::FileKind::Elf64) => loader_in::<elf::FileHeader64<object::Endianness>>(&head),
        Ok(object::FileKind::Elf32) => loader_in::<elf::FileHeader32<object::Endianness>>(&head),
        _ => None,
    };
    read.is_ok() && interpreter.is_some_and(|loader| is_musl(&loader))
}

fn loader_in<E: FileHeader<Endian = object::Endianness>>(head: &[u8]) -> Option<PathBuf> {
    let header = E::parse(head).ok()?;
    let endian = header.endian().ok()?;
    loader_named(header.program_headers(endian, head).ok()?, endian, head)
}

fn loader_named<P: ProgramHeader>(
    headers: &[P],
    endian: P::Endian,
    data: &[u8],
) -> Option<PathBuf> {
    let path = headers.iter().find_map(|header| header.interpreter(endian, data).ok()?)?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

/// `/lib/ld-musl-x86_64.so.1`
fn is_musl(loader: &Path) -> bool {
    loader.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-musl"))
}

/// What the first line of a script names: `#!/usr/bin/env python3` is `/usr/bin/env`.
fn named_interpreter(data: &[u8]) -> Option<PathBuf> {
    let line = data.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(PathBuf::from)
}

/// Fills in what the ELF file says, and returns the loader that it names.
fn inspect_elf<E: FileHeader<Endian = object::Endianness>>(
    data: &[u8],
    program: &mut ProgramFile,
) -> Option<PathBuf> {
    let file = ElfFile::<E>::parse(data).ok()?;
    let has = |name: &str| file.section_by_name(name).is_some_and(|section| section.size() > 0);
    let build_id = file.build_id().ok().flatten().unwrap_or_default();
    let build_id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    program.debug_info = has(".debug_info")
        || has(".zdebug_info")
        || find_locally(&program.path, &build_id).is_some();
    let header = file.elf_header();
    let endian = file.endian();
    let own = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    let (machine, is_64) = (header.e_machine(endian), header.is_class_64());
    if (machine, is_64, file.is_little_endian()) != (own, true, cfg!(target_endian = "little")) {
        program.foreign = Some(machine_name(machine, is_64));
    }
    let defines = |symbol: &object::read::elf::ElfSymbol<'_, '_, E>| {
        symbol.is_definition() && matches!(symbol.name(), Ok("PMPI_Init" | "PMPI_Init_thread"))
    };
    program.mpi_inside = file.symbols().any(|symbol| defines(&symbol))
        || file.dynamic_symbols().any(|symbol| defines(&symbol));
    let interpreter = interpreter::<E>(data);
    program.kind = if interpreter.is_some() { ProgramKind::Dynamic } else { ProgramKind::Static };
    interpreter
}

/// As a user would call it.
fn machine_name(machine: u16, is_64: bool) -> String {
    let name = match machine {
        elf::EM_X86_64 if is_64 => "x86-64",
        elf::EM_X86_64 => "x32",
        elf::EM_386 => "32-bit x86",
        elf::EM_AARCH64 if is_64 => "AArch64",
        elf::EM_ARM => "32-bit ARM",
        elf::EM_PPC64 => "POWER",
        elf::EM_RISCV if is_64 => "64-bit RISC-V",
        elf::EM_S390 => "IBM Z",
        elf::EM_LOONGARCH => "LoongArch",
        other => return format!("another processor (ELF machine {other})"),
    };
    name.into()
}

/// Fills in which MPI the program loads, and what its loader does not find.
fn list_libraries(interpreter: &Path, program: &mut ProgramFile) {
    for (name, path) in libraries(interpreter, &program.path) {
        match &path {
            Some(path) => program.places.push(path.clone()),
            None => program.missing.push(name.clone()),
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

fn interpreter<E: FileHeader<Endian = object::Endianness>>(data: &[u8]) -> Option<PathBuf> {
    let file = ElfFile::<E>::parse(data).ok()?;
    loader_named(file.elf_program_headers(), file.endian(), data)
}

/// The MPI ABI that a library of this name has; `None` when it is no MPI library.
pub fn abi_of(library: &str) -> Option<&'static str> {
    let (stem, version) = library.split_once(".so").unwrap_or((library, ""));
    match (stem, version) {
        ("libmpi_abi", _) => Some("mpiabi"),
        ("libmpich", _) | ("libmpi", ".12") => Some("mpich"),
        ("libmpi" | "libmpi_ibm", _) => Some("openmpi"), // libmpi_ibm: Spectrum MPI
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
        assert_eq!(abi_of("libmpi_ibm.so.3"), Some("openmpi"));
        assert_eq!(abi_of("libmpi_mpifh.so.40"), None);
        assert_eq!(abi_of("libm.so.6"), None);
    }

    #[test]
    fn this_very_program_is_dynamic() {
        let program = inspect(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(program.kind, ProgramKind::Dynamic);
        assert!(!program.privileged && program.mpi.is_empty() && program.missing.is_empty());
    }

    /// The header of a program and nothing else.
    fn header(class: u8, machine: u16) -> Vec<u8> {
        let bytes = if class == elf::ELFCLASS64 { 64 } else { 52 };
        let mut header = vec![0_u8; bytes];
        header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        header[16..18].copy_from_slice(&elf::ET_EXEC.to_le_bytes());
        header[18..20].copy_from_slice(&machine.to_le_bytes());
        header[20] = 1;
        let at = if class == elf::ELFCLASS64 { 52 } else { 40 };
        header[at..at + 2].copy_from_slice(&(bytes as u16).to_le_bytes());
        header
    }

    #[test]
    fn programs_of_other_machines_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let own = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
        for (class, machine, name) in [
            (elf::ELFCLASS32, elf::EM_386, Some("32-bit x86")),
            (elf::ELFCLASS32, elf::EM_ARM, Some("32-bit ARM")),
            (elf::ELFCLASS64, elf::EM_PPC64, Some("POWER")),
            (elf::ELFCLASS64, 9999, Some("another processor (ELF machine 9999)")),
            (elf::ELFCLASS64, own, None),
        ] {
            std::fs::write(&path, header(class, machine)).unwrap();
            let program = inspect(&path).unwrap();
            assert_eq!(program.foreign.as_deref(), name);
            let obstacle = name.map_or(Obstacle::Static, |name| Obstacle::Foreign(name.into()));
            assert_eq!(program.obstacle(), Some(obstacle));
        }
    }

    #[test]
    fn musl_is_told_by_the_loader() {
        let musl = |path: &str| is_musl(Path::new(path));
        assert!(musl("/lib/ld-musl-x86_64.so.1") && musl("/nix/ld-musl-aarch64.so.1"));
        assert!(!musl("/lib64/ld-linux-x86-64.so.2") && !musl("/lib/ld-linux-aarch64.so.1"));
        assert!(!is_of_musl(&std::env::current_exe().unwrap()));
        assert!(!is_of_musl(Path::new("/no/such/program")));
    }

    #[test]
    fn scripts_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        std::fs::write(&path, "#! /usr/bin/env python3\nprint()\n").unwrap();
        let program = inspect(&path).unwrap();
        assert_eq!(program.kind, ProgramKind::Script);
        assert_eq!(program.interpreter.as_deref(), Some(Path::new("/usr/bin/env")));
        assert_eq!(program.obstacle(), None);
    }
}
