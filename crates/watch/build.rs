//! Compiles what the recorder knows of how Python's interpreters are built, once more: to read those of other processes. Writes
//! down what calls there are, and where they have which parameters.

#![allow(clippy::disallowed_macros)] // what cargo is told

use std::fmt::Write;
use std::path::Path;

use lapscope_generate::calls::{self, Param};

const SOURCES: [&str; 6] = ["code.c", "layout.c", "line_table.c", "mix.c", "sound.c", "walk.c"];
const HEADERS: [&str; 7] =
    ["code.h", "layout.h", "line_table.h", "memory.h", "mix.h", "sound.h", "walk.h"];

fn main() {
    // asked at run time: cargo takes this program along where the tree is copied
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let interposer = Path::new(&manifest).join("../../interposer");
    let room = interposer.join("recorder/python");
    write_calls(&interposer.join("calls.def"));
    let own = Path::new(&manifest).join("src/stacks/python.c");
    let files = || SOURCES.iter().chain(&HEADERS).map(|name| room.join(name)).chain([own.clone()]);
    for file in files() {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    cc::Build::new()
        .files(files().filter(|file| file.extension().is_some_and(|it| it == "c")))
        .define("PYTHON_ELSEWHERE", None)
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .warnings(true)
        .extra_warnings(true)
        .compile("lapscope_python");
}

/// What `lapscope hang` has to know of all calls: their names, the parameters of which it can say something, and whether they
/// only ask.
fn write_calls(path: &Path) {
    const SAID: [&str; 6] = ["dest", "source", "root", "tag", "sendtag", "comm"];
    println!("cargo:rerun-if-changed={}", path.display());
    let calls =
        lapscope_generate::read(path, calls::parse).unwrap_or_else(|error| panic!("{error}"));
    let is_said = |(_, param): &(usize, &Param)| {
        SAID.contains(&param.name.as_str()) && ["int", "comm"].contains(&param.kind.name)
    };
    let mut text = String::from("const CALLS: &[CallForStacks] = &[\n");
    for call in calls {
        let said = call.params.iter().enumerate().filter(is_said);
        let said: Vec<(usize, &str)> = said.map(|(place, it)| (place, it.name.as_str())).collect();
        let asks = call.param("flag*").is_some() || call.name == "MPI_Testsome";
        writeln!(
            text,
            "    CallForStacks {{ name: {:?}, parameters: &{said:?}, asks: {asks} }},",
            call.name
        )
        .expect("a string takes it");
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("calls.rs"), text + "];\n").expect("a file");
}
