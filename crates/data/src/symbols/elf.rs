//! What an ELF file says without DWARF.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use addr2line::gimli;
use object::read::ReadCache;
use object::{BinaryFormat, Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::files::open_regular;

pub(super) fn with_object<T>(
    path: &Path,
    read: impl for<'a> FnOnce(&object::File<'a, &'a ReadCache<File>>) -> T,
) -> Option<T> {
    let cache = ReadCache::new(open_regular(path).ok()?);
    let object = object::File::parse(&cache).ok()?;
    (object.format() == BinaryFormat::Elf).then(|| read(&object))
}

/// The build id of a file in hexadecimal, empty when it has none; `None` when it is not a readable object file.
pub fn build_id(path: &Path) -> Option<String> {
    with_object(path, |object| {
        let id = object.build_id().ok().flatten().unwrap_or_default();
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    })
}

/// Whether a file holds debug information itself.
pub fn has_dwarf(path: &Path) -> bool {
    with_object(path, |object| {
        // A stripped file's sections may still be named, without bytes in the file.
        object.section_by_name(".debug_info").is_some_and(|section| {
            section.size() > 0 && section.file_range().is_some_and(|(_, bytes)| bytes > 0)
        })
    })
    .unwrap_or(false)
}

/// The name of the file that has a program's debug information, where the program says one (`.gnu_debuglink`).
pub fn debug_link(path: &Path) -> Option<PathBuf> {
    let link = with_object(path, |object| {
        let (name, _) = object.gnu_debuglink().ok().flatten()?;
        Some(PathBuf::from(OsStr::from_bytes(name)))
    })??;
    (link.components().count() == 1).then_some(link)
}

/// The file that holds what several debug files share (made by dwz), when this one refers to such a file.
pub fn supplementary_file(path: &Path) -> Option<PathBuf> {
    let link = with_object(path, |object| {
        let (name, _) = object.gnu_debugaltlink().ok().flatten()?;
        Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()))
    })??;
    let link = path.parent()?.join(link);
    link.is_file().then_some(link)
}

/// Whether the files that hold parts of a module's debug information (split DWARF), and are opened by the names that it has, are
/// regular ones, as far as they are there.
pub fn parts_are_regular(path: &Path) -> bool {
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    let is_fine = |path: &Path| !path.exists() || open_regular(path).is_ok();
    let parts = with_object(path, parts).unwrap_or_default();
    let package =
        if path.extension().is_none() { path.with_extension("dwp") } else { package.into() };
    is_fine(&package) && parts.iter().all(|part| is_fine(part))
}

/// The names of these parts.
fn parts<'a>(object: &object::File<'a, &'a ReadCache<File>>) -> Vec<PathBuf> {
    let section = |name| {
        let section = object.section_by_name(name)?;
        section.uncompressed_data().ok()
    };
    if section(".debug_addr").is_none() {
        return Vec::new(); // what stands in parts has its addresses here
    }
    let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(section(id.name()).unwrap_or_default());
    let Ok(sections) = gimli::DwarfSections::load(load) else { return Vec::new() };
    let endian = if object.is_little_endian() {
        gimli::RunTimeEndian::Little
    } else {
        gimli::RunTimeEndian::Big
    };
    let dwarf = sections.borrow(|bytes| gimli::EndianSlice::new(bytes, endian));
    let mut names = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(Some(name)) = unit.dwo_name() else { continue };
        let Ok(name) = dwarf.attr_string(&unit, name) else { continue };
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        names.push(
            unit.comp_dir.map_or_else(PathBuf::new, |it| path(it.slice())).join(path(name.slice())),
        );
    }
    names
}

/// The function that holds an address. In bytes: how far behind its begin that is, and its size.
#[derive(Debug, PartialEq, Eq)]
pub struct EnclosingFunction<'a> {
    pub name: &'a str,
    pub offset: u64,
    pub size: u64,
}

/// Function symbols of one module, sorted by address.
#[derive(Debug, Default)]
pub struct ElfSymbols {
    functions: Vec<ElfFunction>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ElfFunction {
    address: u64,
    size: u64,
    name: String,
}

impl ElfSymbols {
    /// The static and dynamic symbols of all `files`, which describe the same module.
    pub fn read(files: &[PathBuf]) -> Self {
        let mut functions = Vec::new();
        for file in files {
            with_object(file, |object| {
                functions.extend(object.symbols().chain(object.dynamic_symbols()).filter_map(
                    |symbol| {
                        let is_code =
                            matches!(symbol.kind(), SymbolKind::Text) && symbol.is_definition();
                        let name = symbol.name().ok().filter(|name| is_code && !name.is_empty())?;
                        Some(ElfFunction {
                            address: symbol.address(),
                            size: symbol.size(),
                            name: name.to_owned(),
                        })
                    },
                ));
            });
        }
        functions.sort_unstable();
        functions.dedup();
        ElfSymbols { functions }
    }

    /// The function that holds `address`. A stripped file names only some of its functions, so the nearest symbol in
    /// front of an address is not good enough: the address must lie within its size.
    pub fn find(&self, address: u64) -> Option<EnclosingFunction<'_>> {
        let behind = self.functions.partition_point(|function| function.address <= address);
        let mut candidates = self.functions[..behind].iter().rev();
        // A few steps back: aliases and functions of size zero may stand between.
        candidates.by_ref().take(8).find(|function| address - function.address < function.size).map(
            |function| EnclosingFunction {
                name: &function.name,
                offset: address - function.address,
                size: function.size,
            },
        )
    }
}

/// `id` where it can be a build id: it becomes part of paths and of addresses.
pub fn hexadecimal(id: &str) -> Option<&str> {
    Some(id).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_between_functions_has_no_name() {
        let function =
            |address, size, name: &str| ElfFunction { address, size, name: name.to_owned() };
        let symbols = ElfSymbols { functions: vec![function(16, 8, "a"), function(64, 8, "b")] };
        assert_eq!(symbols.find(23), Some(EnclosingFunction { name: "a", offset: 7, size: 8 }));
        assert_eq!(symbols.find(24), None);
        assert_eq!(symbols.find(8), None);
        assert_eq!(symbols.find(64), Some(EnclosingFunction { name: "b", offset: 0, size: 8 }));
    }
}
