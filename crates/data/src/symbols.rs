//! From addresses in modules to functions, files and lines.
//!
//! Sources, best first: DWARF in the module, DWARF in its separate debug file, ELF symbol tables.
//! A module whose build id differs from the recorded one is another program: nothing is read from it.

mod call_site;
mod debug_files;
mod debuginfod;
mod elf;
mod fortran;
mod name;
mod path;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::gimli;

use crate::model::{python_place, Frame, Module};
use call_site::CallSites;
pub use call_site::Passed;
pub use debug_files::find_locally;
pub use elf::build_id;
use elf::ElfSymbols;
pub use name::{base_name, innermost_name, short_function, FrameName};
pub use path::{name_path, of_program};

/// What names frames. A trait so that analyses can be tested without object files.
pub trait NameFrames {
    /// Names of a frame, innermost inlined function first, from its level on; never empty.
    fn name(&mut self, frame: Frame) -> Vec<FrameName>;

    /// In which column of its line the call is, where that is known.
    fn column(&mut self, frame: Frame) -> Option<u32>;

    /// Has the column in the name from now on.
    fn show_column(&mut self, frame: Frame);

    /// Size in bytes of the function that holds a frame's address, where a symbol table tells.
    fn code_bytes(&mut self, frame: Frame) -> Option<u64>;
}

/// Why a module could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModuleTrouble {
    /// The file is there, with another build id.
    Rebuilt,
    /// No such file, or not readable as an object file.
    Unavailable,
}

/// Names frames from the object files on this machine, loading only modules that are asked for.
#[derive(Default)]
pub struct Symbols {
    modules: Vec<(Module, Option<LoadedModule>)>,
    names: HashMap<Frame, Vec<FrameName>>,
}

impl Symbols {
    /// `modules` are what [`Frame::module`] indexes.
    pub fn new(modules: Vec<Module>) -> Self {
        let modules = modules.into_iter().map(|module| (module, None)).collect();
        Symbols { modules, names: HashMap::new() }
    }

    /// There are more modules than it has been told of: all of them, the known ones first; `kept`: where files can be read that are
    /// no longer at their modules' paths.
    pub fn learn(&mut self, modules: &[Module], kept: &[(u32, PathBuf)]) {
        for (number, module) in modules.iter().enumerate().skip(self.modules.len()) {
            let place = kept.iter().find(|(it, _)| *it as usize == number);
            let loaded = place.map(|(_, path)| LoadedModule::load(module, path));
            self.modules.push((module.clone(), loaded));
        }
    }

    /// What was passed in registers, by their numbers in DWARF, where a frame calls one of `callees`: as far as the debug information
    /// tells that by constants and registers, of which `register` gives those of the frame.
    pub fn passed(
        &mut self,
        frame: Frame,
        callees: &[&str],
        register: &dyn Fn(u16) -> Option<u64>,
    ) -> Vec<(u16, Passed)> {
        let loaded = frame.module.and_then(|module| self.modules.get_mut(module as usize));
        let Some((module, loaded)) = loaded.filter(|(it, _)| it.python_function().is_none()) else {
            return Vec::new();
        };
        let loaded = loaded.get_or_insert_with(|| LoadedModule::load_named(module));
        let sites = loaded.call_sites.get_or_insert_with(|| {
            CallSites::read(loaded.files.iter().find(|file| elf::has_dwarf(file))?)
        });
        sites.as_mut().map(|it| it.passed(frame.address, callees, register)).unwrap_or_default()
    }

    /// Modules from which frames were wanted that could not be named.
    pub fn troubles(&self) -> impl Iterator<Item = (&Module, ModuleTrouble)> {
        self.modules.iter().filter_map(|(module, loaded)| {
            loaded.as_ref().and_then(|loaded| loaded.trouble).map(|trouble| (module, trouble))
        })
    }

    fn look_up(&mut self, frame: Frame) -> Vec<FrameName> {
        let Some(index) = frame.module else { return vec![unnamed(frame, None)] };
        let Some((module, loaded)) = self.modules.get_mut(index as usize) else {
            return vec![unnamed(frame, None)];
        };
        if let Some(function) = module.python_function() {
            return vec![python_name(function, module, frame)];
        }
        let loaded = loaded.get_or_insert_with(|| LoadedModule::load_named(module));
        let mut names = loaded.names(frame.address);
        if names.is_empty() {
            names.push(unnamed(frame, None));
        }
        for name in &mut names {
            name.address = frame.address;
            name.module = Some(module.path.clone());
        }
        names
    }
}

impl NameFrames for Symbols {
    fn name(&mut self, frame: Frame) -> Vec<FrameName> {
        if let Some(names) = self.names.get(&frame) {
            return names.clone();
        }
        let mut names = self.look_up(frame);
        let inner = (frame.level as usize).min(names.len() - 1);
        names.drain(..inner);
        self.names.insert(frame, names.clone());
        names
    }

    fn column(&mut self, frame: Frame) -> Option<u32> {
        let (module, loaded) = self.modules.get_mut(frame.module? as usize)?;
        if module.python_function().is_some() {
            return Some(python_place(frame.address).1).filter(|&column| column > 0);
        }
        let loaded = loaded.get_or_insert_with(|| LoadedModule::load_named(module));
        let columns = loaded.columns(frame.address.saturating_sub(1));
        columns.get(frame.level as usize).copied().flatten()
    }

    fn show_column(&mut self, frame: Frame) {
        let column = self.column(frame);
        self.name(frame);
        if let Some(names) = self.names.get_mut(&frame) {
            names[0].column = column;
        }
    }

    fn code_bytes(&mut self, frame: Frame) -> Option<u64> {
        let (module, loaded) = self.modules.get_mut(frame.module? as usize)?;
        if module.python_function().is_some() {
            return None;
        }
        let loaded = loaded.get_or_insert_with(|| LoadedModule::load_named(module));
        loaded.elf().find(frame.address.saturating_sub(1)).map(|found| found.size)
    }
}

/// A line of Python says itself what it is.
fn python_name(function: &str, module: &Module, frame: Frame) -> FrameName {
    FrameName {
        function: Some(function.to_owned()),
        file: Some(module.path.clone()),
        line: Some(python_place(frame.address).0).filter(|&line| line > 0),
        ..unnamed(frame, Some(module))
    }
}

/// A frame of which only the address is known.
pub fn unnamed(frame: Frame, module: Option<&Module>) -> FrameName {
    FrameName {
        function: None,
        offset: None,
        file: None,
        line: None,
        column: None,
        module: module.map(|module| module.path.clone()),
        address: frame.address,
        inlined: false,
    }
}

struct LoadedModule {
    /// The module itself, its debug file; each only when its build id is the recorded one.
    files: Vec<PathBuf>,
    dwarf: Option<addr2line::Loader>,
    elf: Option<ElfSymbols>,
    /// `Some(None)`: there are none.
    call_sites: Option<Option<CallSites>>,
    trouble: Option<ModuleTrouble>,
}

impl LoadedModule {
    fn load_named(module: &Module) -> Self {
        LoadedModule::load(module, Path::new(&module.path))
    }

    fn load(module: &Module, path: &Path) -> Self {
        let (mut files, mut trouble) = (Vec::new(), None);
        match build_id(path) {
            Some(found) if found == module.build_id => files.push(path.to_path_buf()),
            Some(_) => trouble = Some(ModuleTrouble::Rebuilt),
            None => trouble = Some(ModuleTrouble::Unavailable),
        }
        if let Some(debug) = Self::debug_file(module, &files) {
            // It has the recorded build id, so it speaks for the program that ran, whatever happened to that since.
            files.push(debug);
            trouble = None;
        }
        let is_usable = |file: &&PathBuf| elf::has_dwarf(file) && elf::parts_are_regular(file);
        let dwarf = files.iter().find(is_usable).and_then(|file| {
            addr2line::Loader::new_with_sup(file, elf::supplementary_file(file)).ok()
        });
        LoadedModule { files, dwarf, elf: None, call_sites: None, trouble }
    }

    /// Not looked for where the module has what it would have.
    fn debug_file(module: &Module, files: &[PathBuf]) -> Option<PathBuf> {
        let is_complete = files.iter().any(|file| elf::has_dwarf(file));
        if is_complete {
            None
        } else {
            debug_files::find(module)
        }
    }

    fn names(&mut self, return_address: u64) -> Vec<FrameName> {
        // The call itself lies before the address it returns to, which may already belong to the next line, or to the
        // next function when the call does not return.
        let address = return_address.saturating_sub(1);
        let mut names = self.dwarf_names(address);
        if names.last().map_or(true, |name| name.function.is_none()) {
            if let Some((function, offset)) = self.elf_name(address) {
                if names.is_empty() {
                    names.push(FrameName { offset: Some(offset + 1), ..blank() });
                }
                names.last_mut().expect("there is one now").function = Some(function);
            }
        }
        names
    }

    fn dwarf_names(&self, address: u64) -> Vec<FrameName> {
        let Some(mut frames) =
            self.dwarf.as_ref().and_then(|dwarf| dwarf.find_frames(address).ok())
        else {
            return Vec::new();
        };
        let mut names: Vec<FrameName> = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(source_name);
            let location = frame.location.as_ref();
            if let Some(inner) = names.last_mut() {
                inner.inlined = true;
            }
            names.push(FrameName {
                function,
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line),
                ..blank()
            });
        }
        names
    }

    /// Innermost inlined function first.
    fn columns(&self, address: u64) -> Vec<Option<u32>> {
        let frames = self.dwarf.as_ref().and_then(|dwarf| dwarf.find_frames(address).ok());
        let Some(mut frames) = frames else { return Vec::new() };
        let mut columns = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            columns.push(frame.location.and_then(|location| location.column));
        }
        columns
    }

    /// The function and how far behind its begin the address is.
    fn elf_name(&mut self, address: u64) -> Option<(String, u64)> {
        let found = self.elf().find(address)?;
        let name = fortran::demangle(found.name)
            .unwrap_or_else(|| addr2line::demangle_auto(found.name.into(), None).into_owned());
        Some((name, found.offset))
    }

    fn elf(&mut self) -> &ElfSymbols {
        let files = &self.files;
        self.elf.get_or_insert_with(|| ElfSymbols::read(files))
    }
}

/// A function's name as the source has it.
fn source_name<R: gimli::Reader>(function: &addr2line::FunctionName<R>) -> Option<String> {
    if fortran::is_fortran(function.language) {
        return Some(fortran::demangle_fortran(&function.raw_name().ok()?));
    }
    Some(function.demangle().ok()?.into_owned())
}

fn blank() -> FrameName {
    unnamed(Frame { module: None, address: 0, level: 0 }, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_python_name_themselves() {
        let build_id = "python:Grid.step.<locals>.<lambda>".into();
        let module = Module { path: "/home/me/halo.py".into(), build_id };
        let frame = |address| Frame { module: Some(0), address, level: 0 };
        let mut symbols = Symbols::new(vec![module]);
        let at = frame(41 << 12 | 5);
        assert_eq!(symbols.name(at)[0].short(), "Grid.step.<lambda> halo.py:41");
        assert_eq!((symbols.column(at), symbols.code_bytes(at)), (Some(5), None));
        symbols.show_column(at);
        assert_eq!(symbols.name(at)[0].brief(), "Grid.step.<lambda> halo.py:41:5");
        assert_eq!(symbols.name(frame(0))[0].short(), "Grid.step.<lambda> halo.py");
        assert_eq!(symbols.troubles().count(), 0);
    }

    #[test]
    fn paths_begin_at_the_program_or_at_a_line_of_what_stands_for_it() {
        let layer = "/v/lib/python3.11/site-packages/mpi4py";
        let module = |path: String, build_id: &str| Module { path, build_id: build_id.into() };
        let modules = vec![
            module(format!("{layer}/MPI.so"), ""),
            module(format!("{layer}/futures/_core.py"), "python:client"),
            module("/home/me/halo.py".into(), "python:exchange"),
        ];
        let mut symbols = Symbols::new(modules);
        let mut first = |path: &[u32]| {
            let frame = |&module: &u32| Frame { module: Some(module), address: 9 << 12, level: 0 };
            let frames: Vec<Frame> = path.iter().map(frame).collect();
            name_path(&frames, &mut symbols)[0].brief()
        };
        assert_eq!(first(&[0, 1, 2]), "exchange halo.py:9");
        assert_eq!(first(&[0, 1]), "client mpi4py/futures/_core.py:9");
        assert_eq!(first(&[0]), "MPI.so+0x9000", "without lines");
    }

    #[test]
    fn unknown_addresses_still_say_where() {
        let module = Module { path: "/opt/app/bin/solver".into(), build_id: String::new() };
        let frame = Frame { module: Some(0), address: 0x1234, level: 0 };
        assert_eq!(unnamed(frame, Some(&module)).short(), "solver+0x1234");
        let mut symbols = Symbols::new(vec![module]);
        assert_eq!(symbols.name(frame)[0].short(), "solver+0x1234");
        assert_eq!(symbols.troubles().next().unwrap().1, ModuleTrouble::Unavailable);
    }
}
