//! Compiles the conversion from spool to SQLite, which the recorder shares, and what is made of the .def files.

#![allow(clippy::disallowed_macros)] // what cargo is told

use std::path::{Path, PathBuf};

/// What the conversion, the room `store`, needs of the rooms below it in interposer/recorder.
const BELOW_STORE: [&str; 5] =
    ["base/call.c", "base/process.c", "base/secrets.c", "spool/definitions.c", "spool/reader.c"];

fn main() {
    // asked at run time: cargo takes this program along where the tree is copied
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).join("../..");
    compile_conversion(&root);
}

fn compile_conversion(root: &Path) {
    let recorder = root.join("interposer/recorder");
    let layouts = ["store_layout.c", "state_layout.c"];
    let mut sources: Vec<PathBuf> =
        layouts.map(|file| root.join("crates/data/src").join(file)).into();
    sources.extend(BELOW_STORE.map(|file| recorder.join(file)));
    sources.extend(files_in(&recorder.join("store"), &["c"]));
    let mut build = cc::Build::new();
    build.files(&sources);
    // no more than these: whoever edits another file of the recorder does not wait for every crate
    let headers = ["base", "spool", "store"].map(|room| files_in(&recorder.join(room), &["h"]));
    let schema = files_in(&root.join("schema"), &["h", "sql"]);
    for file in sources.iter().chain(headers.iter().flatten()).chain(&schema) {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    for name in lapscope_generate::DESCRIPTIONS {
        println!("cargo:rerun-if-changed={}", root.join(name).display());
    }
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let generated = Path::new(&out).join("generated");
    lapscope_generate::generate(root, &generated).unwrap_or_else(|error| panic!("{error}"));
    build.include(&generated);
    build
        .std("gnu11")
        .opt_level(2)
        .debug(true)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-Werror=implicit-function-declaration")
        .flag_if_supported("-Werror=incompatible-pointer-types")
        // embedded.c lets the assembler read schema.sql and views.sql
        .flag(format!("-Wa,-I{},-I{}", generated.display(), root.join("schema").display()))
        .compile("lapscope_store");
    // libsqlite3 itself is linked by rusqlite: both must be the same one.
}

/// The files of a directory with one of these extensions.
fn files_in(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the source tree is whole");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let is_one = |path: &PathBuf| {
        path.extension().is_some_and(|it| extensions.iter().any(|extension| it == *extension))
    };
    paths.filter(is_one).collect()
}
