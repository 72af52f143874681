//! Requests, one row each.

use lapscope_measure::overlap::exposure::Exposure;
use lapscope_measure::overlap::request::Achieved;
use lapscope_trace::{Call, Half, Observation};

use super::run::RunRows;
use super::table::Column;
use super::words;

pub struct RequestRow<'a> {
    run: &'a RunRows<'a>,
    half: Half<'a>,
    /// That half of it which receives, of requests that do both.
    receive: Option<Half<'a>>,
    exposed: Option<Exposure>,
    achieved: Option<Achieved>,
}

impl<'a> RequestRow<'a> {
    pub(super) fn new(
        run: &'a RunRows<'a>,
        half: Half<'a>,
        receive: Option<Half<'a>>,
        achieved: Option<Achieved>,
    ) -> RequestRow<'a> {
        RequestRow { run, half, receive, exposed: run.exposed(&half), achieved }
    }

    /// The call that ended it.
    fn completion(&self) -> Option<&'a Call> {
        self.half.completion_begin?;
        Some(&self.run.rank(self.half.rank).calls[self.half.call? as usize])
    }

    fn completion_site(&self) -> Option<lapscope_data::places::SiteId> {
        let rank = self.run.rank(self.half.rank);
        self.completion().map(|call| rank.operations[call.operation as usize].site)
    }

    fn observed(&self, of: impl Fn(&Observation) -> Option<i64>) -> Option<i64> {
        self.half.observed.and_then(of)
    }

    fn exposed(&self, of: impl Fn(&Exposure) -> i64) -> Option<i64> {
        self.exposed.as_ref().map(of)
    }

    fn achieved(&self, of: impl Fn(&Achieved) -> i64) -> Option<i64> {
        self.achieved.as_ref().map(of)
    }
}

pub fn columns<'a>() -> Vec<Column<RequestRow<'a>>> {
    let mut columns = what();
    columns.extend(when());
    columns.extend(seen());
    columns.extend(why());
    columns.extend(overlap());
    columns
}

fn what<'a>() -> Vec<Column<RequestRow<'a>>> {
    vec![
        Column::whole("rank", |row| row.run.key(row.half.rank)),
        Column::whole("request_id", |row| row.half.index as i64),
        Column::whole("thread", |row| {
            row.run.rank(row.half.rank).threads.of_endpoint(row.half.index as u32).into()
        }),
        Column::word("call", |row| Some(row.run.call_name(row.half.operation.site))),
        Column::word("kind", |row| Some(words::kind(row.half.operation.kind))),
        Column::whole("site_id", |row| row.half.operation.site.number().into()),
        Column::whole("bytes", |row| row.half.bytes().0 as i64),
        Column::maybe("peer", |row| row.run.peer(row.half.operation)),
        Column::maybe("tag", |row| row.half.operation.tag),
        Column::word("locality", |row| row.run.locality(row.half.rank, row.half.operation)),
        Column::maybe("receive_bytes", |row| row.receive.map(|half| half.bytes().0 as i64)),
        Column::maybe("receive_peer", |row| row.run.peer(row.receive?.operation)),
        Column::word("ended", |row| Some(words::request_ended(row.half.operation))),
        Column::word("memory", |row| Some(row.half.observed?.memory?.word())),
    ]
}

fn when<'a>() -> Vec<Column<RequestRow<'a>>> {
    vec![
        Column::whole("post_begin_ns", |row| row.half.post_begin),
        Column::whole("post_end_ns", |row| row.half.post_end),
        Column::maybe("completion_begin_ns", |row| row.half.completion_begin),
        Column::maybe("completion_end_ns", |row| row.half.completion_end),
        Column::whole("post_ns", |row| row.half.post_end - row.half.post_begin),
        Column::maybe("overlap_window_ns", |row| row.half.window()),
        Column::maybe("mpi_ns", |row| row.half.mpi),
        Column::maybe("compute_ns", |row| Some(row.half.window()? - row.half.mpi?)),
        Column::maybe("completion_ns", |row| {
            row.completion().filter(|call| call.returned()).map(|call| call.duration)
        }),
        Column::maybe("completed_together", |row| {
            row.completion().map(|call| i64::from(call.completed()))
        }),
        Column::word("completion_call", |row| Some(row.run.call_name(row.completion_site()?))),
        Column::maybe("completion_site_id", |row| Some(row.completion_site()?.number().into())),
        Column::maybe("completion_id", |row| row.completion().and(row.half.call).map(i64::from)),
    ]
}

fn seen<'a>() -> Vec<Column<RequestRow<'a>>> {
    vec![
        Column::whole("outstanding_bytes", |row| row.half.outstanding),
        Column::whole("unsuccessful_tests", |row| {
            row.half.observed.map_or(0, |seen| seen.unsuccessful_tests as i64)
        }),
        Column::maybe("first_unsuccessful_test_ns", |row| {
            row.observed(|seen| seen.first_unsuccessful_test)
        }),
        Column::maybe("last_unsuccessful_test_ns", |row| {
            row.observed(|seen| seen.last_unsuccessful_test)
        }),
        Column::maybe("last_incomplete_ns", |row| row.observed(|seen| seen.last_incomplete)),
        Column::maybe("first_complete_ns", |row| row.observed(|seen| seen.first_complete)),
    ]
}

fn why<'a>() -> Vec<Column<RequestRow<'a>>> {
    vec![
        Column::maybe("exposed_ns", |row| row.exposed(Exposure::total)),
        Column::maybe("exposed_late_partner_ns", |row| row.exposed(|all| all.late_partner)),
        Column::maybe("exposed_no_remote_progress_ns", |row| {
            row.exposed(|all| all.no_remote_progress)
        }),
        Column::maybe("exposed_no_local_progress_ns", |row| {
            row.exposed(|all| all.no_local_progress)
        }),
        Column::maybe("exposed_transfer_ns", |row| row.exposed(|all| all.transfer)),
        Column::maybe("exposed_no_processor_ns", |row| row.exposed(|all| all.no_processor)),
        Column::maybe("overlapped_with_gpu_ns", |row| row.exposed(|all| all.beside_gpu)),
    ]
}

fn overlap<'a>() -> Vec<Column<RequestRow<'a>>> {
    vec![
        Column::maybe("reference_ns", |row| row.achieved(|all| all.transfer)),
        Column::maybe("achieved_low_ns", |row| row.achieved(|all| all.low)),
        Column::maybe("achieved_high_ns", |row| row.achieved(|all| all.high)),
        Column::maybe("possible_low_ns", |row| row.achieved(|all| all.possible_low)),
        Column::maybe("possible_ns", |row| row.achieved(|all| all.possible_high)),
        Column::maybe("lost_low_ns", |row| row.achieved(|all| all.lost_low)),
        Column::maybe("lost_high_ns", |row| row.achieved(Achieved::lost_high)),
        Column::maybe("lost_late_partner_ns", |row| row.achieved(|all| all.late_partner)),
        Column::maybe("lost_no_progress_ns", |row| row.achieved(|all| all.no_progress)),
        Column::maybe("lost_other_ns", |row| row.achieved(|all| all.rest)),
    ]
}
