//! What a rank did, in the order of time. A call that waits begins and ends apart, as other threads may do something in
//! between that it waits for.

use std::ops::Range;

use lapscope_trace::Trace;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GoalEventKind {
    /// The end of a completing or blocking call.
    End,
    /// The begin of a completing call.
    Completion,
    Post,
    /// The begin of a blocking call.
    Blocking,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalEvent {
    /// Nanoseconds on the run's clock.
    pub moment: i64,
    /// Until then the rank is inside this call.
    pub until: i64,
    pub what: GoalEventKind,
    /// Endpoints of the rank.
    pub halves: Range<usize>,
}

/// All that communicated; halves of one call together.
pub fn events(trace: &Trace, rank: usize) -> Vec<GoalEvent> {
    let mut events: Vec<GoalEvent> = Vec::new();
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
        let halves = index..behind + (behind..endpoints.len()).take_while(is_same).count();
        if is_request {
            events.extend(halves.clone().map(|index| {
                let half = trace.half(rank, index);
                let (moment, until) = (half.post_begin, half.post_end);
                GoalEvent { moment, until, what: GoalEventKind::Post, halves: index..index + 1 }
            }));
        }
        let (begin, what) = match is_request {
            true => (half.completion_begin, GoalEventKind::Completion),
            false => (Some(half.post_begin), GoalEventKind::Blocking),
        };
        // no end is at its begin, so that it comes behind it
        let end = half.completion_end.zip(begin).map(|(end, begin)| end.max(begin + 1));
        let until = end.or(begin).unwrap_or_default();
        let mut add = |moment, what| {
            events.push(GoalEvent { moment, until, what, halves: halves.clone() });
        };
        if let Some(begin) = begin {
            add(begin, what);
        }
        if let Some(end) = end {
            add(end, GoalEventKind::End);
        }
        index = halves.end;
    }
    events.sort_by_key(|event| (event.moment, event.what, event.halves.start));
    events
}
