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

/// The rows of the table `call_name`, in the order of the calls' numbers; empty: NULL.
///
/// `CALL(MPI_Isend, POINT_TO_POINT, POST, send, send, standard, 1, , , MPI_Send)`
pub(crate) fn call_rows() -> impl Iterator<Item = [&'static str; 10]> {
    CALLS.lines().filter_map(|line| {
        let inside = line.trim().strip_prefix("CALL(")?.strip_suffix(')')?;
        let columns: Vec<&str> = inside.split(',').map(str::trim).collect();
        columns.try_into().ok()
    })
}
