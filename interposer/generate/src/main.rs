//! `lapscope-generate FOLDER DIRECTORY` writes what it makes of the .def files in FOLDER; `lapscope-generate FOLDER`
//! lists the calls.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods)] // what a build prints

use std::path::Path;
use std::process::ExitCode;

use lapscope_generate::{calls, generate, read, symbols};

/// One line for each symbol: call, family, role, binding, symbol.
fn list(descriptions: &Path) -> Result<(), String> {
    for call in read(&descriptions.join("calls.def"), calls::parse)? {
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
        [descriptions] => list(Path::new(descriptions)),
        [descriptions, directory] => generate(Path::new(descriptions), Path::new(directory)),
        _ => Err("usage: lapscope-generate FOLDER [DIRECTORY]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lapscope-generate: {error}");
            ExitCode::FAILURE
        }
    }
}
