//! Reads `interposer/calls.def` and writes what the preload library, the recorder and the command line are built from.
//!
//! [`calls`] is the description, [`facts`] what the database says of a call, [`kind`] the kinds of parameters in C and in Fortran, [`symbols`] the names under which
//! a call is found in each binding; [`tables`], [`c`] and [`fortran`] write.

pub mod body;
pub mod c;
pub mod calls;
pub mod facts;
pub mod fortran;
pub mod kind;
pub mod symbols;
pub mod tables;

use std::fmt::Write as _;
use std::path::Path;

/// The first lines of each generated file.
fn banner(what: &str) -> String {
    format!("/* {what} Made from calls.def by lapscope-generate. */\n")
}

/// Appends a line with the arguments of `format!`; a `String` takes everything.
macro_rules! line {
    ($text:expr) => { $crate::push_line($text, format_args!("")) };
    ($text:expr, $($argument:tt)*) => { $crate::push_line($text, format_args!($($argument)*)) };
}
pub(crate) use line;

pub(crate) fn push_line(text: &mut String, line: std::fmt::Arguments) {
    text.write_fmt(line).expect("a String takes everything");
    text.push('\n');
}

/// The generated files: name and text.
pub fn files(calls: &[calls::Call]) -> Vec<(&'static str, String)> {
    vec![
        ("calls.inc", tables::calls(calls)),
        ("functions.inc", tables::functions(calls)),
        ("prototypes.h", tables::prototypes(calls)),
        ("signatures.inc", tables::signatures(calls)),
        ("wrap_c.c", c::wrappers(calls)),
        ("wrap_fortran.c", fortran::wrappers(calls)),
    ]
}

/// Reads the description and writes all files into a directory. Files whose text has not changed are left alone, so that
/// nothing is compiled again for nothing.
///
/// # Errors
/// A line that says what is wrong, with the file's name and line number.
pub fn generate(description: &Path, directory: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(description)
        .map_err(|error| format!("{}: {error}", description.display()))?;
    let calls =
        calls::parse(&text).map_err(|error| format!("{}:{error}", description.display()))?;
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, text) in files(&calls) {
        let path = directory.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
