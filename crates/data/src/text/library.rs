//! The MPI library of a run.

/// Open MPI's first line goes on with package, builder and dates.
pub fn library_name(line: &str) -> String {
    let name = line.split(',').next().unwrap_or(line);
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}
