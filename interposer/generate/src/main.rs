//! `lapscope-generate CALLS_DEF DIRECTORY` writes the generated files; `lapscope-generate CALLS_DEF` lists the calls.

#![allow(clippy::disallowed_macros, clippy::disallowed_methods)] // what a build prints

use std::path::Path;
use std::process::ExitCode;

use lapscope_generate::{calls, generate, symbols};

/// One line for each symbol: call, family, role, binding, symbol.
fn list(description: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(description)
        .map_err(|error| format!("{}: {error}", description.display()))?;
    for call in calls::parse(&text).map_err(|error| format!("{}:{error}", description.display()))? {
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
        [description] => list(Path::new(description)),
        [description, directory] => generate(Path::new(description), Path::new(directory)),
        _ => Err("usage: lapscope-generate CALLS_DEF [DIRECTORY]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lapscope-generate: {error}");
            ExitCode::FAILURE
        }
    }
}
