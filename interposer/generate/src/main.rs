//! `lapscope-generate ROOT DIRECTORY` writes what it makes of the .def files in the tree at ROOT; `lapscope-generate ROOT`
//! lists the calls.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods)] // what a build prints

use std::path::Path;
use std::process::ExitCode;

use lapscope_generate::{calls, generate, read, symbols};

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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [root] => list(Path::new(root)),
        [root, directory] => generate(Path::new(root), Path::new(directory)),
        _ => Err("usage: lapscope-generate ROOT [DIRECTORY]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lapscope-generate: {error}");
            ExitCode::FAILURE
        }
    }
}
