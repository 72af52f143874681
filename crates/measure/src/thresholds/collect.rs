//! Goes through the messages of a run, rank by rank, and sums up what they show.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cells::Cells;
use super::evidence::{Completion, ObservedMessage};
use super::slack::Slack;
use crate::reference::Reference;
use lapscope_data::model::{Mode, Rank};
use lapscope_trace::{Direction, Half, Locality, RequestEnd, Trace, NONE};

/// What was found on each locality.
pub type ByLocality = BTreeMap<Locality, Cells>;

/// Messages that `ranks` sent; of all ranks when there are none. `in_stretch`: only those that count there, else all of the run.
pub fn collect(
    trace: &Trace,
    reference: &Reference,
    ranks: &[Rank],
    in_stretch: bool,
) -> ByLocality {
    let margins = Margins::measure(trace);
    let is_wanted =
        |&rank: &usize| ranks.is_empty() || ranks.contains(&trace.ranks[rank].info().rank);
    let wanted: Vec<usize> = trace.focus().filter(is_wanted).collect();
    wanted
        .into_par_iter()
        .map(|rank| of_rank(trace, rank, (reference, &margins), in_stretch))
        .reduce(ByLocality::new, merge)
}

/// What was found of other messages.
pub fn merge(mut a: ByLocality, b: ByLocality) -> ByLocality {
    for (locality, cells) in b {
        a.entry(locality).or_default().merge(cells);
    }
    a
}

fn of_rank(
    trace: &Trace,
    rank: usize,
    (reference, margins): (&Reference, &Margins),
    in_stretch: bool,
) -> ByLocality {
    let mut slack = Slack::new(reference);
    let mut found = ByLocality::new();
    let mut sent: FxHashMap<usize, Sent> = FxHashMap::default();
    for index in standard_sends(trace, rank) {
        let send = trace.half(rank, index as usize);
        let Some(receive) = trace.partner(&send) else { continue };
        let Some(margin) = margins.between(rank, receive.rank) else { continue };
        let locality = trace.locality(rank, receive.rank);
        let sent = sent.entry(receive.rank).or_default();
        let earlier = sent.earlier(trace, receive.rank, send.post_begin);
        let slack = slack.of_transfer(locality, send.bytes().0, earlier);
        let message = ObservedMessage::new(trace, &send, &receive, slack, margin);
        let completion = message.as_ref().and_then(ObservedMessage::completion);
        let post = message.as_ref().and_then(ObservedMessage::post);
        let is_counted = !in_stretch || trace.is_endpoint_counted(rank, index as usize);
        if is_counted && (completion.is_some() || post.is_some()) {
            let cell = found.entry(locality).or_default().cell_mut(send.bytes().0, earlier);
            completion.into_iter().for_each(|evidence| cell.add_completion(evidence));
            post.into_iter().for_each(|evidence| cell.add_post(evidence));
        }
        sent.add(&send, completion);
    }
    found
}

/// Matched sends in standard mode, in the order of their posts.
fn standard_sends(trace: &Trace, rank: usize) -> Vec<u32> {
    let of_rank = &trace.ranks[rank];
    let is_standard: Vec<bool> = of_rank
        .operations
        .iter()
        .map(|operation| {
            operation.direction == Direction::Send
                && operation.mode == Mode::Standard
                && operation.ended != RequestEnd::Failed
        })
        .collect();
    let mut sends: Vec<u32> = (0..)
        .zip(&of_rank.endpoints)
        .filter(|(_, endpoint)| {
            endpoint.partner != NONE && is_standard[endpoint.operation as usize]
        })
        .map(|(index, _)| index)
        .collect();
    let begin = |&index: &u32| of_rank.endpoints[index as usize].begin;
    // quick where they are in order already, as blocking sends are
    sends.sort_by_key(begin);
    sends
}

/// What was sent to one rank since it was last inside MPI, where it clears what MPI keeps for it.
#[derive(Debug, Default)]
struct Sent {
    bytes: u64,
    last_post: i64,
}

impl Sent {
    /// Bytes on their way to `receiver` at a later post.
    fn earlier(&mut self, trace: &Trace, receiver: usize, post: i64) -> u64 {
        if self.bytes > 0 && trace.ranks[receiver].presence.any(self.last_post, post) {
            self.bytes = 0;
        }
        self.last_post = post;
        self.bytes
    }

    /// A message that waits for its receiver is nowhere in between.
    fn add(&mut self, send: &Half<'_>, completion: Option<Completion>) {
        let has_waited = [Completion::WaitedForReceive, Completion::WaitedForReceiver];
        if !completion.is_some_and(|evidence| has_waited.contains(&evidence)) {
            self.bytes = self.bytes.saturating_add(send.bytes().0);
        }
    }
}

/// How exactly moments of different clocks compare.
pub struct Margins {
    /// By rank: its clock, and how far its moments may be off; `None`: its clock was not brought together with the others.
    of_rank: Vec<Option<(usize, i64)>>,
}

impl Margins {
    pub fn measure(trace: &Trace) -> Margins {
        let first = trace.ranks.first().map(|rank| rank.node);
        let mut of_rank: Vec<Option<(usize, i64)>> = trace
            .ranks
            .iter()
            .map(|rank| (trace.clocks.clocks < 2 || Some(rank.node) == first).then_some((0, 0)))
            .collect();
        for (clock, correction) in (1..).zip(&trace.clocks.corrections) {
            for &rank in &correction.ranks {
                of_rank[rank] = Some((clock, correction.margin_ns.abs()));
            }
        }
        Margins { of_rank }
    }

    pub fn between(&self, a: usize, b: usize) -> Option<i64> {
        let ((clock_a, margin_a), (clock_b, margin_b)) = self.of_rank[a].zip(self.of_rank[b])?;
        Some(if clock_a == clock_b { 0 } else { margin_a + margin_b })
    }
}
