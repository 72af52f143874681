//! The calls that are wrapped, as `interposer/calls.def` lists them.

/// Every call that a recorder knows; a line each, as `CALL(MPI_Isend, ...)`.
const CALLS: &str = include_str!(concat!(env!("OUT_DIR"), "/generated/calls.inc"));

/// Their names, `MPI_Isend`.
pub fn mpi_calls() -> impl Iterator<Item = &'static str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    CALLS.lines().filter_map(move |line| {
        let name = &line[line.find("MPI_")?..];
        Some(&name[..name.find(|letter| !is_name(letter)).unwrap_or(name.len())])
    })
}

/// The lines of the table, in the order of the calls' numbers.
pub(crate) fn call_lines() -> impl Iterator<Item = &'static str> {
    CALLS.lines().filter(|line| line.starts_with("CALL("))
}
