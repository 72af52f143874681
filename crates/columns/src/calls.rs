//! Calls that blocked, completed requests, or managed something, one row each.

use lapscope_data::model::CallName;
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_trace::{Half, Operation};

use super::run::RunRows;
use super::table::Column;
use super::words;

pub struct CallRow<'a> {
    run: &'a RunRows<'a>,
    rank: usize,
    /// Unique in its rank.
    id: usize,
    thread: u16,
    operation: &'a Operation,
    begin: i64,
    /// `None`: it had not returned when the process ended.
    duration: Option<i64>,
    completed: u32,
    /// That half of a blocking call which receives.
    receive: Option<Half<'a>>,
    exposed: Option<Exposure>,
    awaited: Option<i64>,
}

impl<'a> CallRow<'a> {
    /// A call that completed requests or communicated itself, which is `index` in [`lapscope_trace::RankTrace::calls`].
    pub(super) fn new(
        run: &'a RunRows<'a>,
        rank: usize,
        index: usize,
        receive: Option<Half<'a>>,
    ) -> CallRow<'a> {
        let trace = run.rank(rank);
        let call = &trace.calls[index];
        let number = index as u32;
        CallRow {
            run,
            rank,
            id: index,
            thread: trace.threads.of_call(number),
            operation: &trace.operations[call.operation as usize],
            begin: call.begin,
            duration: call.returned().then_some(call.duration),
            completed: call.completed(),
            receive,
            exposed: run.exposed_in_call(rank, number),
            awaited: run.awaited(rank, number),
        }
    }

    /// Any other, which is `index` in [`lapscope_trace::RankTrace::other_calls`]; their ids are behind.
    pub(super) fn other(run: &'a RunRows<'a>, rank: usize, index: usize) -> CallRow<'a> {
        let trace = run.rank(rank);
        let call = &trace.other_calls[index];
        CallRow {
            run,
            rank,
            id: trace.calls.len() + index,
            thread: call.thread,
            operation: &trace.operations[call.operation as usize],
            begin: call.begin,
            duration: Some(call.duration),
            completed: 0,
            receive: None,
            exposed: None,
            awaited: None,
        }
    }

    fn name(&self) -> &'a CallName {
        self.run.trace().call_of(self.operation)
    }

    fn exposed(&self, of: impl Fn(&Exposure) -> i64) -> Option<i64> {
        self.exposed.as_ref().map(of)
    }
}

pub fn columns<'a>() -> Vec<Column<CallRow<'a>>> {
    vec![
        Column::whole("rank", |row| row.run.key(row.rank)),
        Column::whole("call_id", |row| row.id as i64),
        Column::whole("thread", |row| row.thread.into()),
        Column::word("call", |row| Some(&row.name().name)),
        Column::word("family", |row| Some(&row.name().family)),
        Column::word("role", |row| Some(&row.name().role)),
        Column::word("kind", |row| Some(words::kind(row.operation.kind))),
        Column::whole("site_id", |row| row.operation.site.number().into()),
        Column::whole("bytes", |row| row.operation.bytes.0 as i64),
        Column::maybe("peer", |row| row.run.peer(row.operation)),
        Column::maybe("tag", |row| row.operation.tag),
        Column::word("locality", |row| row.run.locality(row.rank, row.operation)),
        Column::maybe("receive_bytes", |row| row.receive.map(|half| half.bytes().0 as i64)),
        Column::maybe("receive_peer", |row| row.run.peer(row.receive?.operation)),
        Column::whole("begin_ns", |row| row.begin),
        Column::maybe("end_ns", |row| row.duration.map(|duration| row.begin + duration)),
        Column::maybe("duration_ns", |row| row.duration),
        Column::whole("completed", |row| row.completed.into()),
        Column::maybe("waited_for", |row| row.awaited),
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
