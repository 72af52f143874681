//! Turns options.def into a table, and compiles the conversion from spool to SQLite, which the recorder shares.

#![allow(clippy::disallowed_macros)] // what cargo is told

use std::fmt::Write as _;
use std::path::Path;

// The tests and parts of the types are used by the library alone.
#[allow(dead_code)]
#[path = "src/options_def.rs"]
mod options_def;

/// What the conversion, the room `store`, needs of the rooms below it in interposer/recorder.
const BELOW_STORE: [&str; 4] =
    ["base/call.c", "base/secrets.c", "spool/definitions.c", "spool/reader.c"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    write_options(&root.join("interposer/options.def"));
    compile_conversion(&root);
}

fn write_options(path: &Path) {
    println!("cargo:rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(path).expect("interposer/options.def is in the source tree");
    let options = options_def::parse(&text).unwrap_or_else(|error| panic!("options.def: {error}"));
    let mut code = String::from("&[\n");
    for option in options {
        writeln!(
            code,
            "OptionDef {{ name: {:?}, kind: OptionKind::{:?}, default: {:?}, unit: {:?}, doc: {:?} }},",
            option.name, option.kind, option.default, option.unit, option.doc
        )
        .expect("a String takes everything");
    }
    code.push_str("]\n");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("options_table.rs"), code).expect("OUT_DIR is writable");
}

fn compile_conversion(root: &Path) {
    let recorder = root.join("interposer/recorder");
    let layout = root.join("crates/data/src/store_layout.c");
    println!("cargo:rerun-if-changed={}", layout.display());
    let mut build = cc::Build::new();
    build.file(layout);
    build.files(BELOW_STORE.map(|file| recorder.join(file)));
    let store = std::fs::read_dir(recorder.join("store")).expect("store/ is in the source tree");
    let store = store.map(|entry| entry.expect("a readable directory").path());
    build.files(store.filter(|path| path.extension().is_some_and(|extension| extension == "c")));
    for room in ["base", "spool", "store"] {
        println!("cargo:rerun-if-changed={}", recorder.join(room).display());
    }
    let calls = root.join("interposer/calls.def");
    println!("cargo:rerun-if-changed={}", calls.display());
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let generated = Path::new(&out).join("generated");
    lapscope_generate::generate(&calls, &generated).unwrap_or_else(|error| panic!("{error}"));
    build.include(&generated);
    println!("cargo:rerun-if-changed={}", root.join("schema").display());
    build
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Werror=implicit-function-declaration")
        .flag_if_supported("-Werror=incompatible-pointer-types")
        // embedded.c lets the assembler read schema/*.sql
        .flag(format!("-Wa,-I{}", root.join("schema").display()))
        .compile("lapscope_store");
    // libsqlite3 itself is linked by rusqlite: both must be the same one.
}
