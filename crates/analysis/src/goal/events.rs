//! What a rank did, in the order of time: posts, completing calls and blocking calls with their endpoints.

use std::ops::Range;

use crate::trace::Trace;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    Post,
    Blocking,
    Completion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    pub end: i64,
    pub what: What,
    /// Endpoints of the rank.
    pub halves: Range<usize>,
}

/// All that communicated; halves of one call together.
pub fn events(trace: &Trace, rank: usize) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let endpoints = &trace.ranks[rank].endpoints;
    let mut index = 0;
    while index < endpoints.len() {
        let half = trace.half(rank, index);
        let is_request = half.operation.is_request;
        // requests that one call completed, and the halves of one blocking call, are neighbours
        let is_same = |other: &usize| {
            half.call.is_some_and(|call| endpoints[*other].call == call)
                && trace.half(rank, *other).operation.is_request == is_request
        };
        let behind = index + 1;
        let end = behind + (behind..endpoints.len()).take_while(is_same).count();
        let (begin, what) = match is_request {
            true => (half.completion_begin, What::Completion),
            false => (Some(half.post_begin), What::Blocking),
        };
        if let Some(begin) = begin {
            let until = half.completion_end.unwrap_or(begin);
            events.push(Event { begin, end: until, what, halves: index..end });
        }
        if is_request {
            events.extend((index..end).map(|index| {
                let half = trace.half(rank, index);
                let (begin, end) = (half.post_begin, half.post_end);
                Event { begin, end, what: What::Post, halves: index..index + 1 }
            }));
        }
        index = end;
    }
    events.sort_by_key(|event| (event.begin, event.what, event.halves.start));
    events
}
