//! Matched messages, one row each with both ends.

use lapscope_measure::overlap::exposure::Exposure;
use lapscope_trace::Half;

use super::run::RunRows;
use super::table::Column;
use super::words;

pub struct MessageRow<'a> {
    run: &'a RunRows<'a>,
    send: MessageEnd<'a>,
    receive: MessageEnd<'a>,
}

struct MessageEnd<'a> {
    half: Half<'a>,
    exposed: Option<Exposure>,
}

impl<'a> MessageEnd<'a> {
    fn new(run: &RunRows<'a>, half: Half<'a>) -> MessageEnd<'a> {
        MessageEnd { half, exposed: run.exposed(&half) }
    }

    fn request(&self) -> Option<i64> {
        self.half.operation.is_request.then_some(self.half.index as i64)
    }

    fn exposed(&self, of: impl Fn(&Exposure) -> i64) -> Option<i64> {
        self.exposed.as_ref().map(of)
    }
}

impl<'a> MessageRow<'a> {
    pub(super) fn new(run: &'a RunRows<'a>, send: Half<'a>, receive: Half<'a>) -> MessageRow<'a> {
        MessageRow { run, send: MessageEnd::new(run, send), receive: MessageEnd::new(run, receive) }
    }
}

pub fn columns<'a>() -> Vec<Column<MessageRow<'a>>> {
    let mut columns = what();
    columns.extend(sent());
    columns.extend(received());
    columns
}

fn what<'a>() -> Vec<Column<MessageRow<'a>>> {
    vec![
        Column::whole("source", |row| row.run.key(row.send.half.rank)),
        Column::whole("destination", |row| row.run.key(row.receive.half.rank)),
        Column::word("destination_node", |row| {
            Some(&row.run.rank(row.receive.half.rank).info().host)
        }),
        Column::word("locality", |row| {
            Some(words::locality(
                row.run.trace().locality(row.send.half.rank, row.receive.half.rank),
            ))
        }),
        Column::whole("bytes", |row| row.send.half.bytes().0 as i64),
        Column::maybe("tag", |row| row.send.half.operation.tag),
        Column::word("mode", |row| words::mode(row.send.half.operation.mode)),
    ]
}

fn sent<'a>() -> Vec<Column<MessageRow<'a>>> {
    vec![
        Column::word("send_call", |row| Some(row.run.call_name(row.send.half.operation.site))),
        Column::whole("send_site_id", |row| row.send.half.operation.site.number().into()),
        Column::maybe("send_request_id", |row| row.send.request()),
        Column::maybe("send_completion_id", |row| row.send.half.call.map(i64::from)),
        Column::whole("send_post_begin_ns", |row| row.send.half.post_begin),
        Column::whole("send_post_end_ns", |row| row.send.half.post_end),
        Column::maybe("send_completion_begin_ns", |row| row.send.half.completion_begin),
        Column::maybe("send_completion_end_ns", |row| row.send.half.completion_end),
        Column::maybe("send_exposed_ns", |row| row.send.exposed(Exposure::total)),
        Column::maybe("send_exposed_late_partner_ns", |row| {
            row.send.exposed(|all| all.late_partner)
        }),
        Column::maybe("send_exposed_no_remote_progress_ns", |row| {
            row.send.exposed(|all| all.no_remote_progress)
        }),
        Column::maybe("send_exposed_no_local_progress_ns", |row| {
            row.send.exposed(|all| all.no_local_progress)
        }),
        Column::maybe("send_exposed_transfer_ns", |row| row.send.exposed(|all| all.transfer)),
        Column::maybe("send_exposed_no_processor_ns", |row| {
            row.send.exposed(|all| all.no_processor)
        }),
        Column::maybe("send_overlapped_with_gpu_ns", |row| row.send.exposed(|all| all.beside_gpu)),
    ]
}

fn received<'a>() -> Vec<Column<MessageRow<'a>>> {
    vec![
        Column::word("receive_call", |row| {
            Some(row.run.call_name(row.receive.half.operation.site))
        }),
        Column::whole("receive_site_id", |row| row.receive.half.operation.site.number().into()),
        Column::maybe("receive_request_id", |row| row.receive.request()),
        Column::maybe("receive_completion_id", |row| row.receive.half.call.map(i64::from)),
        Column::whole("receive_post_begin_ns", |row| row.receive.half.post_begin),
        Column::whole("receive_post_end_ns", |row| row.receive.half.post_end),
        Column::maybe("receive_completion_begin_ns", |row| row.receive.half.completion_begin),
        Column::maybe("receive_completion_end_ns", |row| row.receive.half.completion_end),
        Column::maybe("receive_exposed_ns", |row| row.receive.exposed(Exposure::total)),
        Column::maybe("receive_exposed_late_partner_ns", |row| {
            row.receive.exposed(|all| all.late_partner)
        }),
        Column::maybe("receive_exposed_no_remote_progress_ns", |row| {
            row.receive.exposed(|all| all.no_remote_progress)
        }),
        Column::maybe("receive_exposed_no_local_progress_ns", |row| {
            row.receive.exposed(|all| all.no_local_progress)
        }),
        Column::maybe("receive_exposed_transfer_ns", |row| row.receive.exposed(|all| all.transfer)),
        Column::maybe("receive_exposed_no_processor_ns", |row| {
            row.receive.exposed(|all| all.no_processor)
        }),
        Column::maybe("receive_overlapped_with_gpu_ns", |row| {
            row.receive.exposed(|all| all.beside_gpu)
        }),
    ]
}
