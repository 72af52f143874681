//! Reads the descriptions (`interposer/calls.def`, `interposer/options.def`, those in `schema`) and writes what the preload library, the
//! recorder and the command line are built from.
//!
//! [`calls`] is the description of calls, made of [`verb`]s and [`clauses`], [`facts`] what the database says of a call,
//! [`kind`] the kinds of parameters in C and in Fortran, [`symbols`] the names under which a call is found in each binding;
//! [`tables`], [`c`], [`fortran`] and [`substitutes`] write. [`options`] is all about options, [`schema`] about the database.

pub mod body;
pub mod c;
pub mod calls;
pub mod clauses;
pub mod facts;
pub mod fortran;
pub mod kind;
pub mod options;
pub mod schema;
pub mod substitutes;
pub mod symbols;
pub mod tables;
pub mod verb;

use std::fmt::Write as _;
use std::path::Path;

/// The first lines of each generated file.
fn banner(what: &str) -> String {
    banner_of(what, "calls.def")
}

fn banner_of(what: &str, source: &str) -> String {
    format!("/* {what} Made from {source} by lapscope-generate. */\n")
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
fn files(
    calls: &[calls::Call],
    options: &options::Options,
    schema: &schema::Schema,
    record: &schema::Schema,
    jobs: &schema::Schema,
) -> Vec<(&'static str, String)> {
    vec![
        ("calls.inc", tables::calls(calls)),
        ("columns.inc", schema::columns::places(schema)),
        ("columns.rs", schema::columns::types(schema)),
        ("functions.inc", tables::functions(calls)),
        ("job.inc", schema::record::writers(record)),
        ("job.rs", schema::record::readers(record)),
        ("jobs.rs", schema::jobs::rows(jobs)),
        ("jobs.sql", schema::sql::statements(jobs)),
        ("options.inc", options::c_table(options)),
        ("options.rs", options::rust_table(options)),
        ("prototypes.h", tables::prototypes(calls)),
        ("rules.rs", schema::rules::constants(schema)),
        ("schema.sql", schema::sql::statements(schema)),
        ("signatures.inc", tables::signatures(calls)),
        ("sorted.inc", tables::sorted(calls)),
        ("substitutes.inc", substitutes::functions(calls)),
        ("wrap_c.c", c::wrappers(calls)),
        ("wrap_fortran.c", fortran::wrappers(calls)),
    ]
}

/// What `parse` makes of a file.
///
/// # Errors
/// A line that says what is wrong, with the file's name and line number.
pub fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}:{error}", path.display()))
}

/// What [`generate`] reads, from the root of the tree.
pub const DESCRIPTIONS: [&str; 5] = [
    "interposer/calls.def",
    "interposer/options.def",
    "schema/tables.def",
    "schema/job.def",
    "schema/jobs.def",
];

/// Reads the descriptions of the tree at `root` and writes all files into a directory. Files whose text has not changed
/// are left alone, so that nothing is compiled again for nothing.
///
/// # Errors
/// As [`read`], and a file that cannot be written.
pub fn generate(root: &Path, directory: &Path) -> Result<(), String> {
    let [calls, options, tables, job, jobs] = DESCRIPTIONS.map(|file| root.join(file));
    let calls = read(&calls, calls::parse)?;
    let options = read(&options, options::parse)?;
    let schema = read(&tables, schema::parse)?;
    let record = read(&job, schema::parse)?;
    let jobs = read(&jobs, schema::parse)?;
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, text) in files(&calls, &options, &schema, &record, &jobs) {
        let path = directory.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The data dictionaries, whose tables of columns are made, each of a description.
pub const DICTIONARIES: [(&str, &str); 2] =
    [("schema/README.md", "schema/tables.def"), ("schema/jobs.md", "schema/jobs.def")];

/// A dictionary as it should be.
///
/// # Errors
/// As [`read`], and what it lacks.
pub fn dictionary(root: &Path, (page, source): (&str, &str)) -> Result<String, String> {
    let schema = read(&root.join(source), schema::parse)?;
    read(&root.join(page), |text| schema::dictionary::filled(&schema, text))
}

/// The page of options, all of which is made.
pub const OPTIONS_PAGE: &str = "docs/options.md";

/// That page as it should be.
///
/// # Errors
/// As [`read`].
pub fn options_page(root: &Path) -> Result<String, String> {
    Ok(options::page(&read(&root.join("interposer/options.def"), options::parse)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a file of the tree is what it would be made as now.
    fn check(file: &str, source: &str, make: impl Fn(&Path) -> Result<String, String>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let made = make(&root).unwrap_or_else(|error| panic!("{error}"));
        let stands = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let mut pairs = stands.lines().zip(made.lines());
        let differs = pairs.find(|(stands, made)| stands != made);
        let remedy = "cargo run -p lapscope-generate -- . --dictionary";
        assert!(stands == made, "{file} is not made of {source}: {remedy}\n{differs:?}");
    }

    #[test]
    fn dictionaries_say_what_descriptions_say() {
        for (page, source) in DICTIONARIES {
            check(page, source, |root| dictionary(root, (page, source)));
        }
    }

    #[test]
    fn the_page_of_options_says_what_options_def_says() {
        check(OPTIONS_PAGE, "options.def", options_page);
    }
}
