//! What was injected on each rank of a trace, for a replay that takes it out.

use std::path::PathBuf;

use super::read::read_files;
use crate::replay::injected::Injected;
use crate::trace::Trace;
use lapscope_data::db::DbError;

/// In the order of the trace's ranks; `None`: nothing was injected. Also why some files could not be read.
pub fn of_trace(databases: &[PathBuf], trace: &Trace) -> (Option<Vec<Injected>>, Vec<DbError>) {
    let (files, failed) = read_files(databases, &trace.places, &[]);
    let mut injected = vec![Injected::default(); trace.ranks.len()];
    for file in &files {
        for row in file.rows.iter().filter(|row| row.is_on) {
            let is_beside =
                file.ranks.iter().any(|rank| rank.rank == row.rank && rank.mode == "thread");
            let ranks = trace.ranks.iter().zip(&mut injected);
            for (_, injected) in ranks.filter(|(rank, _)| rank.info().rank == row.rank) {
                injected.sites.insert(row.at.0);
                injected.tests += row.tests.tests;
                if !is_beside {
                    injected.ns += row.tests.test_ns.0 + row.tests.interrupt_ns.0;
                }
            }
        }
    }
    (injected.iter().any(|rank| rank.tests > 0).then_some(injected), failed)
}
