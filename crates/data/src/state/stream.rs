//! The records of one thread, in the order of writing.

use super::fresh::skim_requests;
use super::layout::record;
use super::records::{read, Record};
use super::tables::{SpoolEvent, Tables};

/// What is known of a thread where its records go on.
#[derive(Debug, Default)]
pub struct Stream {
    /// Ticks at which the last CALL began, from which the next one's is counted.
    begin: u64,
    /// The last CALL, which ended the requests behind it.
    call: Option<LastCall>,
    /// Who posted the REQUEST to come.
    foreign: Option<u16>,
    /// Thread, begin of the post, and outcome: a rank that is killed between the writing of a REQUEST and the clearing of its entry
    /// leaves both.
    last_request: Option<(u16, u64, u32)>,
}

/// A call that ended, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct LastCall {
    pub operation: u32,
    pub begin: u64,
    pub duration: u64,
}

/// What became of a piece of a stream.
pub struct Fed {
    /// Bytes of whole records.
    pub bytes: usize,
    /// Bytes that the record behind them needs at least.
    pub needed: u64,
    pub is_damaged: bool,
}

impl Stream {
    pub fn begin_chunk(&mut self, base: u64) {
        self.begin = base;
    }

    /// Behind damage: requests in the next chunk may have been ended by a call that cannot be read.
    pub fn forget(&mut self) {
        *self = Stream::default();
    }

    pub fn last_call(&self) -> Option<LastCall> {
        self.call
    }

    pub fn last_request(&self) -> Option<(u16, u64, u32)> {
        self.last_request
    }

    /// Takes the records that `bytes` hold whole.
    pub fn feed(&mut self, bytes: &[u8], thread: u16, tables: &mut Tables) -> Fed {
        let mut at = 0;
        loop {
            if !tables.has_history {
                at += skim_requests(&bytes[at..], |outcome| tables.take_outcome(outcome));
            }
            match read(&bytes[at..]) {
                Record::Hot { kind, fields, bytes } => {
                    at += bytes;
                    match kind {
                        record::CALL => self.take_call(fields, thread, tables),
                        record::REQUEST => self.take_request(fields, thread, tables),
                        _ => self.take_other(kind, fields, tables),
                    }
                }
                Record::Definition { definition, bytes } => {
                    at += bytes;
                    tables.define(&definition);
                }
                Record::Cut(needed) => return Fed { bytes: at, needed, is_damaged: false },
                // padding stands behind what is in use
                Record::End | Record::Bad => return Fed { bytes: at, needed: 0, is_damaged: true },
            }
        }
    }

    #[inline]
    fn take_call(&mut self, fields: [u64; 5], thread: u16, tables: &mut Tables) {
        let [operation, since, duration, receive, _] = fields;
        self.begin = self.begin.wrapping_add(since);
        let event = SpoolEvent {
            thread,
            is_request: false,
            id: operation as u32,
            receive: receive as u32,
            begin: self.begin,
            duration,
            post_begin: 0,
        };
        let last = LastCall { operation: event.id, begin: self.begin, duration };
        self.call = Some(last);
        tables.last = tables.last.max(self.begin.saturating_add(duration));
        tables.take(&event);
        self.foreign = None;
    }

    #[inline]
    fn take_request(&mut self, fields: [u64; 5], thread: u16, tables: &mut Tables) {
        let [outcome, since_post, ..] = fields;
        let posted_by = self.foreign.take().unwrap_or(thread);
        let Some(call) = self.call else {
            tables.is_cut = true; // which call ended it cannot be read, and so not when it began
            return;
        };
        let post_begin = call.begin.wrapping_sub(since_post);
        let event = SpoolEvent {
            thread,
            is_request: true,
            id: outcome as u32,
            receive: 0,
            begin: call.begin,
            duration: call.duration,
            post_begin,
        };
        self.last_request = Some((posted_by, post_begin, event.id));
        tables.take(&event);
    }

    #[cold]
    fn take_other(&mut self, kind: u8, fields: [u64; 5], tables: &mut Tables) {
        match kind {
            record::FOREIGN => self.foreign = Some(fields[0] as u16),
            record::LEFT_OUT => tables.is_cut = true,
            // MPI_Pcontrol(0): what follows is not recorded
            record::MARK if fields[1] == 0 => tables.is_cut = true,
            _ => {}
        }
    }
}
