//! Processes, one row each.

use lapscope_data::model::{Processor, RankInfo};
use lapscope_trace::RankTrace;

use super::table::Column;
use super::words;

pub struct RankRow<'a> {
    pub(super) key: i64,
    pub(super) rank: &'a RankTrace,
}

impl<'a> RankRow<'a> {
    fn info(&self) -> &'a RankInfo {
        self.rank.info()
    }

    fn processor(&self, of: impl Fn(&Processor) -> i64) -> Option<i64> {
        self.info().processor.as_ref().map(of)
    }
}

pub fn columns<'a>() -> Vec<Column<RankRow<'a>>> {
    let mut columns = who();
    columns.extend(how());
    columns
}

fn who<'a>() -> Vec<Column<RankRow<'a>>> {
    vec![
        Column::whole("rank", |row| row.key),
        Column::whole("world", |row| row.info().rank.world),
        Column::whole("world_rank", |row| row.info().rank.number),
        Column::whole("life", |row| row.info().life),
        Column::whole("world_size", |row| row.info().world_size),
        Column::word("node", |row| Some(&row.info().host)),
        Column::whole("pid", |row| row.info().pid),
        Column::word("command", |row| Some(&row.info().command)),
        Column::word("executable", |row| Some(&row.info().executable)),
        Column::word("mpi_abi", |row| Some(&row.info().mpi_abi)),
        Column::word("mpi_library", |row| Some(&row.info().mpi_library)),
        Column::word("mpi_standard", |row| Some(&row.info().mpi_standard)),
        Column::whole("thread_level", |row| row.info().thread_level),
        Column::word("lapscope_version", |row| Some(&row.info().lapscope_version)),
        Column::word("job", |row| Some(&row.info().job)),
    ]
}

fn how<'a>() -> Vec<Column<RankRow<'a>>> {
    vec![
        Column::whole("epoch_unix_ns", |row| row.info().epoch_unix_ns),
        Column::whole("init_end_ns", |row| row.rank.init_end),
        Column::whole("end_ns", |row| row.rank.end),
        Column::whole("run_ns", |row| row.info().run_time().0),
        Column::word("ended", |row| Some(words::rank_ended(row.info().ended))),
        Column::maybe("gone_ns", |row| row.info().gone.map(|gone| gone.0)),
        Column::whole("lost_records", |row| row.info().lost_records as i64),
        Column::whole("unknown_requests", |row| row.info().unknown_requests as i64),
        Column::word("summarized", |row| row.info().summarized.map(words::summarized)),
        Column::maybe("processor_run_ns", |row| row.processor(|all| all.run.0)),
        Column::maybe("processor_wait_ns", |row| row.processor(|all| all.wait.0)),
    ]
}
