//! A replayed run as a trace, so that the analyses of recorded runs say what it would cost.

use rayon::prelude::*;

use super::outcome::{Outcome, RankOutcome};
use lapscope_trace::{Presence, RankTrace, Span, Trace, NONE};

/// Gives the trace the times of an outcome. Its matches, sizes and call sites stay; what no step of the program has (rows behind a
/// call that never returned) keeps its time.
pub fn retime(trace: &mut Trace, outcome: &Outcome) {
    let ranks = trace.ranks.par_iter_mut().zip(&outcome.ranks);
    ranks.for_each(|(rank, outcome)| retime_rank(rank, outcome));
    trace.time_collectives();
}

fn retime_rank(rank: &mut RankTrace, outcome: &RankOutcome) {
    let mut inside: Vec<(i64, i64)> = Vec::with_capacity(rank.calls.len() + rank.endpoints.len());
    for (index, call) in rank.calls.iter_mut().enumerate() {
        let time = &outcome.calls[index];
        if time.begin != i64::MAX {
            (call.begin, call.duration) = (time.begin, time.duration.or_zero());
            inside.push((call.begin, call.begin + call.duration));
        }
    }
    for index in 0..rank.endpoints.len() {
        let posted = outcome.posted[index];
        if posted == i64::MAX {
            continue;
        }
        let endpoint = &mut rank.endpoints[index];
        endpoint.begin = posted;
        let post_end = posted + endpoint.post.or_zero();
        inside.push((posted, post_end));
        if endpoint.call != NONE {
            let call = &rank.calls[endpoint.call as usize];
            let window = (call.begin - post_end).max(0);
            let is_request = rank.operations[endpoint.operation as usize].is_request;
            // a collective that a scenario takes apart is blocking still to the analyses: where it is waited for
            endpoint.begin = if is_request { posted } else { call.begin };
            endpoint.window = Span::new(if is_request { window } else { 0 });
        }
    }
    inside.extend(&outcome.other_calls);
    rank.presence = Presence::new(inside);
    mpi_in_windows(rank);
    rank.end = outcome.end;
    clamp_observations(rank);
}

/// Time inside other calls during each window, anew.
fn mpi_in_windows(rank: &mut RankTrace) {
    for endpoint in &mut rank.endpoints {
        let (Some(window), Some(_)) = (endpoint.window.get(), endpoint.mpi.get()) else { continue };
        let begin = endpoint.begin + endpoint.post.or_zero();
        let outside = rank.presence.outside(begin, begin + window);
        endpoint.mpi = Span::new(window - outside);
    }
}

/// Tests that saw a request before it ended now did so within its new life.
fn clamp_observations(rank: &mut RankTrace) {
    for endpoint in &rank.endpoints {
        let Some(seen) = rank.observations.get_mut(endpoint.observed as usize) else { continue };
        let life = endpoint.post.or_zero() + endpoint.window.or_zero();
        let fields = [
            &mut seen.first_unsuccessful_test,
            &mut seen.last_unsuccessful_test,
            &mut seen.last_incomplete,
            &mut seen.first_complete,
        ];
        for field in fields.into_iter().flatten() {
            *field = (*field).min(life);
        }
    }
}
