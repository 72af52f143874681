//! What can be read of a file with code from the memory of a process: where the file itself is no longer there.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use object::elf::{FileHeader64, NT_GNU_BUILD_ID, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};
use object::Endianness;

use super::maps::{read_memory, Mapping};

/// A file's segments, and its tables for unwinding, which are in memory as they are needed there.
pub struct Image {
    /// Offsets in the file, and the address of the first.
    pub segments: Vec<(Range<u64>, u64)>,
    pub sections: HashMap<&'static str, (Range<u64>, Arc<[u8]>)>,
    /// In hexadecimal.
    pub build_id: Option<String>,
}

impl Image {
    /// `mappings`: those of the file.
    pub fn read(pid: i64, mappings: &[&Mapping]) -> Option<Image> {
        const MOST: usize = 64 << 20;
        let begin = mappings.iter().find(|it| it.offset == 0)?;
        let bytes = |it: &Mapping| ((it.addresses.end - it.addresses.start) as usize).min(MOST);
        let first = read_memory(pid, begin.addresses.start, bytes(begin)).ok()?;
        let header = FileHeader64::<Endianness>::parse(first.as_slice()).ok()?;
        let endian = header.endian().ok()?;
        let programs = header.program_headers(endian, first.as_slice()).ok()?;
        let of_type = |wanted| programs.iter().filter(move |it| it.p_type(endian) == wanted);
        let segments: Vec<(Range<u64>, u64)> = of_type(PT_LOAD)
            .map(|it| {
                let offset = it.p_offset(endian);
                (offset..offset + it.p_filesz(endian), it.p_vaddr(endian))
            })
            .collect();
        // up to the end of its segment
        let loaded = |address: u64| -> Option<(Range<u64>, Arc<[u8]>)> {
            let (file, start) = segments.iter().find(|(file, start)| {
                (*start..start + (file.end - file.start)).contains(&address)
            })?;
            let offset = file.start + (address - start);
            let mapping = mappings.iter().find(|it| {
                (it.offset..it.offset + (it.addresses.end - it.addresses.start)).contains(&offset)
            })?;
            let length = (file.end - offset) as usize;
            let at = mapping.addresses.start + (offset - mapping.offset);
            let bytes = read_memory(pid, at, length.min(MOST)).ok()?;
            Some((address..address + bytes.len() as u64, bytes.into()))
        };
        let mut sections = HashMap::new();
        if let Some(index) = of_type(PT_GNU_EH_FRAME).next() {
            let (range, bytes) = loaded(index.p_vaddr(endian))?;
            let frames = loaded(table_of(&bytes, range.start)?)?;
            sections.extend([(".eh_frame_hdr", (range, bytes)), (".eh_frame", frames)]);
        }
        let build_id = of_type(PT_NOTE).find_map(|it| {
            let mut notes = it.notes(endian, first.as_slice()).ok()??;
            std::iter::from_fn(|| notes.next().ok()?).find_map(|note| {
                let is_id = note.n_type(endian) == NT_GNU_BUILD_ID && note.name() == b"GNU";
                is_id.then(|| note.desc().iter().map(|byte| format!("{byte:02x}")).collect())
            })
        });
        Some(Image { segments, sections, build_id })
    }
}

/// Where `.eh_frame` is, by the head of its index: the Linux Standard Base, 10.6.2. Compilers write it relative to where it stands.
fn table_of(index: &[u8], at: u64) -> Option<u64> {
    const RELATIVE: u8 = 0x1b;
    let (&[version, encoding], rest) = (index.get(..2)?.first_chunk::<2>()?, index.get(4..8)?);
    let distance = i32::from_le_bytes(rest.try_into().ok()?);
    (version == 1 && encoding == RELATIVE).then(|| (at + 4).wrapping_add_signed(distance.into()))
}
