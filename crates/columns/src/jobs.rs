//! Many jobs as one table: the columns of `job` of `schema/jobs.def`.

use std::path::Path;

use anyhow::Result;
use lapscope_data::jobs::{Cell, JobTable, ListedJob};

use super::table::{Column, ColumnValue, TableFile};

fn columns() -> Vec<Column<ListedJob>> {
    let column = |(name, cell): &(&'static str, Cell<ListedJob>)| {
        let of = match *cell {
            Cell::Whole(of) => ColumnValue::Maybe(of),
            Cell::Real(of) => ColumnValue::Real(of),
            Cell::Word(of) => ColumnValue::Word(of),
        };
        Column { name, of }
    };
    ListedJob::CELLS.iter().map(column).collect()
}

/// Writes a file, which must not be there.
///
/// # Errors
/// It is there, or cannot be written.
pub fn write_jobs(path: &Path, jobs: impl IntoIterator<Item = ListedJob>) -> Result<()> {
    let mut file = TableFile::create(path, columns())?;
    for job in jobs {
        file.push(job)?;
    }
    file.finish()
}
