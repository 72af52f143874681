//! Names for addresses in this very test program, and in such as were stripped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::fixture::command;
use crate::hostile::program_of;
use lapscope_data::model::{Frame, Module};
use lapscope_data::symbols::{build_id, FrameName, ModuleTrouble, NameFrames, Symbols};
use lapscope_fixture::child;
use lapscope_fixture::landmark::{self, landmark};
use lapscope_fixture::small::run as small_run;
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

/// Compiled from source, with its debug information in a file of its own beside it: the program, and that file.
fn separated(directory: &Path, compiler: &str, source: &str, code: &str) -> [PathBuf; 2] {
    let [text, program, debug] = [source, "program", "program.debug"].map(|it| directory.join(it));
    fs::write(&text, code).unwrap();
    let run = |name: &str, arguments: &[&str]| {
        let status = child::command(name).args(arguments).current_dir(directory).status().unwrap();
        assert!(status.success(), "{name} {arguments:?}");
    };
    let flags = ["-g", "-O0", "-shared", "-fPIC", "-Wl,--build-id", "-o"];
    run(compiler, &[&flags[..], &["program", source]].concat());
    run("objcopy", &["--only-keep-debug", "program", "program.debug"]);
    run("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"]);
    [program, debug]
}

/// The names of a function's first line, by its name for the linker, in the file that still has it.
fn names_of(program: &Path, debug: &Path, linker_name: &str) -> Vec<FrameName> {
    let bytes = fs::read(debug).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(linker_name)).unwrap();
    let frame = Frame { module: Some(0), address: symbol.address() + 1, level: 0 };
    let build_id = build_id(program).unwrap();
    Symbols::new(vec![Module { path: program.to_str().unwrap().to_owned(), build_id }]).name(frame)
}

const HALO: &str = "int halo(void) { return 7; }\n";

#[test]
fn debug_information_lies_beside_a_stripped_program() {
    let directory = tempfile::tempdir().unwrap();
    let [program, debug] = separated(directory.path(), "cc", "halo.c", HALO);
    let line = |debug: &Path| names_of(&program, debug, "halo")[0].line;
    assert_eq!(line(&debug), Some(1));
    let folder = directory.path().join(".debug");
    fs::create_dir(&folder).unwrap();
    fs::rename(&debug, folder.join("program.debug")).unwrap();
    assert_eq!(line(&folder.join("program.debug")), Some(1));
    // A file of that name that belongs to another build says nothing of this one.
    let elsewhere = tempfile::tempdir().unwrap();
    let [_, other] = separated(elsewhere.path(), "cc", "halo.c", &format!("\n\n{HALO}"));
    fs::rename(&other, folder.join("program.debug")).unwrap();
    assert_eq!(line(&folder.join("program.debug")), None);
}

#[test]
fn procedures_of_fortran_have_the_names_of_the_source() {
    let directory = tempfile::tempdir().unwrap();
    let code = "module halo_module\ncontains\nsubroutine exchange\nend subroutine\nend module\n\
                subroutine outside\nend subroutine\n";
    let [program, debug] = separated(directory.path(), "gfortran", "halo.f90", code);
    let name = |linker: &str| names_of(&program, &debug, linker)[0].function.clone().unwrap();
    assert_eq!(name("__halo_module_MOD_exchange"), "halo_module::exchange");
    assert_eq!(name("outside_"), "outside");
}

/// Answers as a debuginfod does, with `file` for its build id and nothing else, until the test ends; and its address.
fn serve(file: Vec<u8>, id: String) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            BufReader::new(&stream).read_line(&mut request).unwrap();
            let is_known = request.starts_with(&format!("GET /buildid/{id}/debuginfo "));
            let (status, body) =
                if is_known { ("200 OK", &file[..]) } else { ("404 Not Found", &[][..]) };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            stream.write_all(body).unwrap();
        }
    });
    address
}

/// Asked by elfutils' own client, where it is there.
#[test]
fn debug_information_is_fetched_from_the_servers_that_the_reader_names() {
    let run = small_run();
    program_of(run.path(), Path::new("/nowhere/call.c"), &[]);
    let program = run.path().join("program");
    let whole = fs::read(&program).unwrap();
    assert!(child::command("strip").arg(&program).status().unwrap().success());
    let cache = tempfile::tempdir().unwrap();
    let sites = |urls: &str| {
        let mut command = command(run.path(), &["sites", ".", "--format", "json"]);
        command.env("DEBUGINFOD_URLS", urls).env("DEBUGINFOD_CACHE_PATH", cache.path());
        let output = command.output().unwrap();
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    assert!(!sites("")[0].contains("call.c"));
    let [places, said] = sites(&serve(whole, build_id(&program).unwrap()));
    if said.contains("libdebuginfod.so.1 is not there") {
        lapscope_data::say!("SKIPPED: debuginfod (no libdebuginfod.so.1)");
        return;
    }
    assert!(places.contains("call.c"), "{places}{said}");
    // What was fetched is kept; a server that is not there costs a report nothing but its lines.
    assert!(sites("http://127.0.0.1:1")[0].contains("call.c"));
    fs::remove_dir_all(cache.path()).unwrap();
    assert!(!sites("http://127.0.0.1:1")[0].contains("call.c"));
}
