//! Files with code, as processes have them mapped.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};

use super::image::Image;
use super::maps::{read_memory, Mapping};
use super::python::PythonLine;
use super::registers::UnwindTables;
use lapscope_data::model::{is_mpi_library, is_python_interpreter, python_address, Frame, Module};
use lapscope_data::symbols::{base_name, build_id};

/// A file with code: where its sections would be, and what they hold.
pub struct CodeFile {
    pub number: u32,
    /// Offsets in the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
    sections: HashMap<&'static str, (Range<u64>, Arc<[u8]>)>,
    /// Those of [`SYMBOLS`] that it has.
    pub symbols: HashMap<&'static str, Range<u64>>,
    /// By which others need it, and what it needs itself.
    pub name: String,
    pub needed: Vec<String>,
    /// Another one is on disk by now.
    pub is_replaced: bool,
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
pub const NUMBER_OF_THREAD: &str = "_thread_db_pthread_tid";

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
        let (name, needed) = dependencies(&file).unwrap_or_default();
        let name = name.unwrap_or_else(|| base_name(path).to_owned());
        Some(CodeFile { number, segments, sections, symbols, name, needed, is_replaced: false })
    }

    /// As far as it is mapped: its tables for unwinding, which are.
    fn mapped(number: u32, path: &str, image: &Image) -> CodeFile {
        CodeFile {
            number,
            segments: image.segments.clone(),
            sections: image.sections.clone(),
            symbols: HashMap::new(),
            name: base_name(path).to_owned(),
            needed: Vec::new(),
            is_replaced: true,
        }
    }

    /// What is to be added to an address of the file to have that in memory.
    pub fn bias(&self, mapping: &Mapping) -> Option<u64> {
        const PAGE: u64 = 4096;
        let begin = |(range, _): &&(Range<u64>, u64)| range.start / PAGE * PAGE;
        let covers = |it: &&(Range<u64>, u64)| {
            begin(it) <= mapping.offset && mapping.offset < it.0.end.max(it.0.start + 1)
        };
        let (range, address) = self.segments.iter().filter(covers).max_by_key(|it| begin(it))?;
        let of_mapping = address.wrapping_sub(range.start).wrapping_add(mapping.offset);
        Some(mapping.addresses.start.wrapping_sub(of_mapping))
    }

    pub fn tables(&self) -> Option<UnwindTables<'_>> {
        let section =
            |name: &str| self.sections.get(name).map(|(at, bytes)| (at.start, &bytes[..]));
        let text = self.sections.get(".text").map_or(0, |(at, _)| at.start);
        Some(UnwindTables {
            text,
            frames: section(".eh_frame")?,
            header: section(".eh_frame_hdr")?,
        })
    }

    pub fn info(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
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

    /// Instructions from an address of the file on.
    pub fn instructions(&self, address: u64) -> &[u8] {
        let text = self.sections.get(".text");
        let within = text.and_then(|(at, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(at.start)?).ok()?..)
        });
        within.unwrap_or_default()
    }
}

/// The name by which others need it, and the names of what it needs: elf(5), the dynamic section.
fn dependencies(file: &object::File<'_>) -> Option<(Option<String>, Vec<String>)> {
    const ENTRY: usize = 16;
    const NEEDED: u64 = 1;
    const NAME: u64 = 14;
    let section = |name: &str| file.section_by_name(name)?.uncompressed_data().ok();
    let (entries, texts) = (section(".dynamic")?, section(".dynstr")?);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let entries = entries.chunks_exact(ENTRY).map(|it| (word(&it[..8]), word(&it[8..])));
    let named = |wanted: u64| {
        let (entries, texts) = (entries.clone(), &texts);
        entries.filter(move |(tag, _)| *tag == wanted).filter_map(move |(_, at)| {
            let text = texts.get(usize::try_from(at).ok()?..)?;
            Some(String::from_utf8_lossy(text.split(|byte| *byte == 0).next()?).into_owned())
        })
    };
    let name = named(NAME).next();
    Some((name, named(NEEDED).collect()))
}

/// The files of all processes that were looked at; each is read once.
#[derive(Default)]
pub struct CodeFiles {
    known: HashMap<FileKey, Option<Arc<CodeFile>>>,
    /// Modules of Python functions, by file and name.
    functions: HashMap<(String, String), u32>,
    /// What frames count by.
    pub modules: Vec<Module>,
    /// Files in which names stand that are no longer at their modules' paths.
    pub kept: Vec<(u32, PathBuf)>,
    replaced: HashSet<u32>,
}

/// A file's path and its number there: other processes may have another one of that path.
type FileKey = (String, u64);

/// What the process has, where that can be read.
enum Source {
    OnDisk(Vec<u8>),
    /// Of a file that was replaced, and where it can still be read.
    Kept(Vec<u8>, PathBuf),
    /// Likewise, from memory.
    Mapped(Image),
}

impl CodeFiles {
    /// `mappings`: all of the process.
    pub fn open(
        &mut self,
        pid: i64,
        mapping: &Mapping,
        mappings: &[Mapping],
    ) -> Option<Arc<CodeFile>> {
        let key = (mapping.path.clone(), mapping.inode);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let number = self.modules.len() as u32;
        let (path, source) = (&mapping.path, source(pid, mapping, mappings));
        let on_disk = || build_id(Path::new(path)).unwrap_or_default();
        // of what is mapped no file on disk has the names
        let kept = |image: Option<&Image>| {
            image.and_then(|it| it.build_id.clone()).unwrap_or_else(|| "replaced".to_owned())
        };
        let (file, build_id) = match source {
            Some(Source::OnDisk(bytes)) => (CodeFile::parse(number, path, &bytes), on_disk()),
            Some(Source::Kept(bytes, place)) => {
                let build_id = build_id(&place).unwrap_or_default();
                self.kept.push((number, place));
                let file = CodeFile::parse(number, path, &bytes);
                (file.map(|file| CodeFile { is_replaced: true, ..file }), build_id)
            }
            Some(Source::Mapped(image)) => {
                (Some(CodeFile::mapped(number, path, &image)), kept(Some(&image)))
            }
            None => (None, on_disk()),
        };
        self.modules.push(Module { path: path.clone(), build_id });
        let found = file.map(Arc::new);
        self.replaced.extend(found.iter().filter(|it| it.is_replaced).map(|it| it.number));
        self.known.insert(key, found.clone());
        found
    }

    /// Whether a module is not what is on disk.
    pub fn is_replaced(&self, module: u32) -> bool {
        self.replaced.contains(&module)
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

fn source(pid: i64, mapping: &Mapping, mappings: &[Mapping]) -> Option<Source> {
    let addresses = &mapping.addresses;
    if mapping.path == "[vdso]" {
        let bytes = (addresses.end - addresses.start) as usize;
        return read_memory(pid, addresses.start, bytes).ok().map(Source::OnDisk);
    }
    // in the process's own file system, as in a container
    let inside = PathBuf::from(format!("/proc/{pid}/root{}", mapping.path));
    let path = if inside.exists() { inside } else { PathBuf::from(&mapping.path) };
    let begin = || mappings.iter().find(|it| it.is_same_file(mapping) && it.offset == 0);
    if is_there(pid, &path, mapping, begin) {
        return fs::read(path).ok().map(Source::OnDisk);
    }
    let executable = PathBuf::from(format!("/proc/{pid}/exe"));
    let (begin_at, end_at) = (addresses.start, addresses.end);
    let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{begin_at:x}-{end_at:x}"));
    let is_same = |place: &&PathBuf| fs::metadata(place).is_ok_and(|it| it.ino() == mapping.inode);
    let place = [executable, mapped].iter().find(is_same).cloned();
    let kept = place.and_then(|place| Some(Source::Kept(fs::read(&place).ok()?, place)));
    kept.or_else(|| {
        let of_it: Vec<&Mapping> = mappings.iter().filter(|it| it.is_same_file(mapping)).collect();
        Image::read(pid, &of_it).map(Source::Mapped)
    })
}

/// Whether the file at the path is the one that is mapped. Some file systems number a file in one way and its mapping in another:
/// then its begin tells.
fn is_there<'a>(
    pid: i64,
    path: &Path,
    mapping: &Mapping,
    begin: impl Fn() -> Option<&'a Mapping>,
) -> bool {
    if mapping.is_deleted {
        return false;
    }
    let Ok(facts) = fs::metadata(path) else { return true }; // nothing speaks against it
    facts.ino() == mapping.inode || begin().map_or(true, |begin| begins_alike(pid, path, begin))
}

/// Whether what a process has mapped as the begin of a file stands in that file, its build id with it.
fn begins_alike(pid: i64, path: &Path, begin: &Mapping) -> bool {
    use std::io::Read;
    const PAGE: usize = 4096;
    let mut on_disk = Vec::with_capacity(PAGE);
    let read = fs::File::open(path).and_then(|it| it.take(PAGE as u64).read_to_end(&mut on_disk));
    let mapped = read_memory(pid, begin.addresses.start, PAGE).unwrap_or_default();
    read.is_err() || mapped.is_empty() || mapped.starts_with(&on_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this very program.
    #[test]
    fn what_is_mapped_has_the_tables_of_its_file() {
        let pid = i64::from(std::process::id());
        let path = std::env::current_exe().expect("a path");
        let maps = fs::read_to_string("/proc/self/maps").expect("maps");
        let mappings: Vec<Mapping> = Mapping::parse_all(&maps).collect();
        let is_own = |it: &&Mapping| Path::new(&it.path) == path;
        let own: Vec<&Mapping> = mappings.iter().filter(is_own).collect();
        let code = own.iter().find(|it| it.is_code).expect("code");
        let image = Image::read(pid, &own).expect("an image");
        assert_eq!(image.build_id, build_id(&path).filter(|id| !id.is_empty()));
        let mapped = CodeFile::mapped(0, &code.path, &image);
        let bytes = fs::read(&path).expect("a file");
        let on_disk = CodeFile::parse(0, &code.path, &bytes).expect("code");
        assert_eq!(mapped.bias(code), on_disk.bias(code));
        for name in [".eh_frame", ".eh_frame_hdr"] {
            let ((at, bytes), (place, all)) = (&on_disk.sections[name], &mapped.sections[name]);
            assert_eq!(at.start, place.start);
            assert!(all.starts_with(bytes), "{name}");
        }
        assert!(on_disk.needed.iter().any(|name| name.starts_with("libc.so")));
        assert!(is_there(pid, &path, code, || own.first().copied()));
        let other = Mapping { inode: code.inode + 1, ..(*code).clone() };
        assert!(is_there(pid, &path, &other, || own.first().copied()), "it begins alike");
        assert!(!is_there(
            pid,
            Path::new("/proc/self/exe"),
            &Mapping { is_deleted: true, ..other },
            || None
        ));
    }
}
