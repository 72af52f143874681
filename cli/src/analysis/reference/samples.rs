//! Which transfers of a run had nothing in between: both sides were inside MPI for this one message from the post of the
//! send on. The others tell how long they took under the circumstances, not how long they have to take.

use rayon::prelude::*;

use super::{CollectiveSample, Fit, Reference, Sample, Source};
use crate::trace::{Direction, Half, PathClass, Trace};

/// Between two calls, nanoseconds: what a program needs to make the next one.
const SHORT_GAP: i64 = 1_000;
/// This part of a transfer is as good as nothing.
const LITTLE: i64 = 50;

impl Reference {
    /// From the run's own transfers; its source is [`Source::None`] when none will do.
    pub fn of_run(trace: &Trace) -> Reference {
        let fit = |rank: usize| {
            let mut fit = Fit::default();
            for half in trace.halves(rank) {
                match half.operation.direction {
                    Direction::Send => transfer(trace, &half).into_iter().for_each(|s| fit.add(s)),
                    Direction::Collective => {
                        collective(trace, &half).into_iter().for_each(|s| fit.add_collective(s))
                    }
                    _ => {}
                }
            }
            fit
        };
        let ranks = (0..trace.ranks.len()).into_par_iter();
        ranks.map(fit).reduce(Fit::default, Fit::merge).finish(Source::Run)
    }
}

/// The message of a send, when the receiver was already waiting for it alone and the sender did nothing else. A receiver that
/// says that it is ready enters its wait at the moment at which the send is posted, so a little later will do.
fn transfer(trace: &Trace, send: &Half<'_>) -> Option<Sample> {
    let is_alone = |half: &Half<'_>| half.completed_together == 1;
    if !send.operation.is_send() || send.outstanding > 0 || !is_alone(send) {
        return None;
    }
    let receive = trace.partner(send).filter(is_alone)?;
    let path = trace.path_class(send.rank, receive.rank);
    let (sent, received) = (send.completion_end?, receive.completion_end?);
    let waited_for = receive.completion_begin?;
    let ns = received - send.post_begin;
    let little = SHORT_GAP.max(ns / LITTLE);
    let is_awaited = match path {
        // nobody can wait and send; so at once behind the send
        PathClass::SelfRank => receive.post_begin <= send.post_begin && waited_for <= sent + little,
        _ => waited_for <= send.post_begin + little,
    };
    let computed = send.window()? - send.mpi.unwrap_or(0);
    (is_awaited && computed <= little).then(|| Sample { path, bytes: send.bytes().0, ns })
}

/// A rank's part of a blocking collective which all members entered together: nobody was longer in it before the last one
/// came than after.
fn collective<'a>(trace: &'a Trace, half: &Half<'_>) -> Option<CollectiveSample<'a>> {
    let operation = half.operation;
    if operation.is_request {
        return None;
    }
    let collective = trace.collective(half)?;
    let is_complete = collective.agrees && collective.members == collective.comm_size;
    let ns = half.completion_end? - collective.last_begin;
    let together = collective.last_begin - half.post_begin <= ns;
    (is_complete && together && ns > 0).then(|| CollectiveSample {
        call: &trace.calls[operation.blocking_call as usize].name,
        ranks: operation.comm_size,
        bytes: half.bytes().0,
        ns,
    })
}
