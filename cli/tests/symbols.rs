//! Names for addresses in this very test program.

use std::fs;

use lapscope_data::model::{Frame, Module};
use lapscope_data::symbols::{FrameName, ModuleTrouble, NameFrames, Symbols};
use lapscope_fixture::landmark::{self, landmark};
use object::{Object, ObjectSymbol};

/// This program, and the address of [`landmark`] in its own numbering.
fn landmark_frame() -> (Module, Frame) {
    let executable = std::env::current_exe().unwrap();
    let path = executable.to_str().unwrap().to_owned();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let first = maps.lines().find(|line| line.ends_with(&path)).unwrap();
    let base = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
    let bytes = fs::read(&executable).unwrap();
    let id = object::File::parse(&*bytes).unwrap().build_id().unwrap().unwrap_or_default().to_vec();
    let build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    // One behind the first instruction, as a return address is behind its call.
    let address = landmark as *const () as u64 - base + 1;
    (Module { path, build_id }, Frame { module: Some(0), address, level: 0 })
}

#[test]
fn function_file_and_line() {
    assert_eq!(landmark(), 17);
    let (module, frame) = landmark_frame();
    let mut symbols = Symbols::new(vec![module]);
    let names = symbols.name(frame);
    let name: &FrameName = names.last().unwrap();
    assert!(name.function.as_ref().unwrap().contains("landmark"), "{name:?}");
    assert!(name.file.as_ref().unwrap().ends_with("landmark.rs"), "{name:?}");
    assert!(name.line.unwrap().abs_diff(landmark::LINE) <= 2, "{name:?}");
    assert_eq!(symbols.troubles().count(), 0);
}

#[test]
fn another_build_is_not_trusted() {
    let (module, frame) = landmark_frame();
    let mut symbols = Symbols::new(vec![Module { build_id: "00ff".to_owned(), ..module }]);
    assert_eq!(symbols.name(frame)[0].function, None);
    assert_eq!(symbols.troubles().next().unwrap().1, ModuleTrouble::Rebuilt);
}

#[test]
fn stripped_libraries_have_dynamic_symbols() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("libc.so"));
    let Some(path) = path else { return }; // a static C library
    let bytes = fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok("qsort")).unwrap();
    let id = file
        .build_id()
        .unwrap()
        .unwrap_or_default()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut symbols = Symbols::new(vec![Module { path: path.to_owned(), build_id: id }]);
    let frame = Frame { module: Some(0), address: symbol.address() + 2, level: 0 };
    let name = symbols.name(frame).pop().unwrap();
    assert!(name.function.unwrap().contains("qsort"));
}
