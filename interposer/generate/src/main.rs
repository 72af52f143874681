//! `lapscope-generate ROOT DIRECTORY` writes what it makes of the .def files in the tree at ROOT; `lapscope-generate ROOT`
//! lists the calls; `lapscope-generate ROOT --dictionary` writes the tables of columns into the pages of `schema`, and
//! docs/options.md.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods)] // what a build prints

use std::path::Path;
use std::process::ExitCode;

use lapscope_generate::{
    calls, dictionary, generate, options_page, read, symbols, DICTIONARIES, OPTIONS_PAGE,
};

/// One line for each symbol: call, family, role, binding, symbol.
fn list(root: &Path) -> Result<(), String> {
    for call in read(&root.join("interposer/calls.def"), calls::parse)? {
        for binding in symbols::bindings(&call) {
            for symbol in symbols::names(&call, binding) {
                println!("{}\t{}\t{}\t{binding}\t{symbol}", call.name, call.family, call.role);
            }
        }
    }
    Ok(())
}

fn write_dictionary(root: &Path) -> Result<(), String> {
    let write = |file: &str, text: String| {
        std::fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))
    };
    for made in DICTIONARIES {
        write(made.0, dictionary(root, made)?)?;
    }
    write(OPTIONS_PAGE, options_page(root)?)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [root] => list(Path::new(root)),
        [root, option] if option == "--dictionary" => write_dictionary(Path::new(root)),
        [root, directory] => generate(Path::new(root), Path::new(directory)),
        _ => Err("usage: lapscope-generate ROOT [DIRECTORY|--dictionary]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lapscope-generate: {error}");
            ExitCode::FAILURE
        }
    }
}
