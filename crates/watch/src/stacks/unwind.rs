//! From copied registers and stacks to call paths, by the unwind tables of the files that are mapped.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use object::{Object, ObjectSection, ObjectSegment};

use super::maps::Mapping;
use super::stop::{read_memory, Registers, ThreadCopy};
use lapscope_data::model::{Frame, Module};
use lapscope_data::symbols::build_id;

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
}

const SECTIONS: [&str; 5] = [".text", ".eh_frame", ".eh_frame_hdr", ".got", ".debug_frame"];

impl CodeFile {
    fn parse(number: u32, bytes: &[u8]) -> Option<CodeFile> {
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
        Some(CodeFile { number, segments: segments.collect(), sections: sections.collect() })
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
        let found = bytes.and_then(|bytes| CodeFile::parse(number, &bytes)).map(Arc::new);
        let build_id = build_id(Path::new(&mapping.path)).unwrap_or_default();
        self.modules.push(Module { path: mapping.path.clone(), build_id });
        self.by_path.insert(mapping.path.clone(), found.clone());
        found
    }
}

struct Loaded {
    addresses: Range<u64>,
    bias: u64,
    number: u32,
}

/// The code of a process, as it was mapped.
pub struct ProcessCode {
    machine: Machine,
    loaded: Vec<Loaded>,
}

impl ProcessCode {
    /// `None`: there is no such process any more, or it may not be looked at.
    pub fn read(pid: i64, files: &mut CodeFiles) -> Option<ProcessCode> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let mut code = ProcessCode { machine: Machine::new(), loaded: Vec::new() };
        let is_file =
            |it: &Mapping| it.is_code && (it.path.starts_with('/') || it.path == "[vdso]");
        for mapping in Mapping::parse_all(&maps).filter(is_file) {
            let Some(file) = files.open(pid, &mapping) else { continue };
            let Some(bias) = file.bias(&mapping) else { continue };
            code.loaded.push(Loaded {
                addresses: mapping.addresses.clone(),
                bias,
                number: file.number,
            });
            let name = mapping.path.clone();
            code.machine.add_module(framehop::Module::new(
                name,
                mapping.addresses,
                bias,
                file.info(),
            ));
        }
        Some(code)
    }

    fn frame(&self, address: FrameAddress) -> Frame {
        // the first one is an instruction; frames are return addresses, which lie behind their calls
        let at = address.address_for_lookup();
        match self.loaded.iter().find(|it| it.addresses.contains(&at)) {
            Some(it) => {
                Frame { module: Some(it.number), address: at.wrapping_sub(it.bias) + 1, level: 0 }
            }
            None => Frame { module: None, address: at + 1, level: 0 },
        }
    }

    /// Callers, innermost first, and whether they are all there.
    pub fn unwind(&self, thread: &ThreadCopy) -> (Vec<Frame>, bool) {
        let mut cache = Cache::new();
        let mut read = |address: u64| thread.word(address).ok_or(());
        let Registers { instruction, .. } = thread.registers;
        let registers = native(&thread.registers);
        let mut frames = Vec::new();
        let mut callers = self.machine.iter_frames(instruction, registers, &mut cache, &mut read);
        loop {
            match callers.next() {
                Ok(Some(_)) if frames.len() == MOST_FRAMES => return (frames, false),
                Ok(Some(address)) => frames.push(self.frame(address)),
                Ok(None) => return (frames, true),
                Err(_) => return (frames, false),
            }
        }
    }
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
