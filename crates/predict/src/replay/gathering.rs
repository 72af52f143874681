//! Members come to a collective, and wait for those whom it needs.
//!
//! Other networks change what a collective takes as they change a message of 1 KiB. Of a non-blocking one a member that
//! computed in between waits as long as in the run on the average from where it waits.

use super::collective::{key, needs};
use super::outcome::NOBODY;
use super::queue::EndpointRef;
use super::scenario::Progress;
use super::state::{self, Engine, Trigger, NEVER};
use lapscope_data::model::Needs;
use lapscope_trace::{Half, Span};

impl Engine<'_> {
    /// A member is there.
    pub fn join(&mut self, end: EndpointRef, time: i64) {
        let trace = self.trace;
        let half = trace.half(end.rank as usize, end.endpoint as usize);
        let row = &trace.ranks[end.rank as usize].endpoints[end.endpoint as usize];
        let Some(collective) = trace.collective(&half) else { return };
        let gathering = &mut self.gatherings[row.partner as usize];
        gathering.entered += 1;
        gathering.last = Trigger { rank: end.rank, time };
        let is_root = collective.root == Some(end.rank);
        if is_root {
            gathering.root = time;
        }
        let is_whole = gathering.entered == collective.members;
        let (last, root_came) = (gathering.last, gathering.root);
        let own = Trigger { rank: end.rank, time };
        let takes = self.takes(&half);
        match needs(trace, collective) {
            Some(Needs::All) if is_whole => {
                let members: Vec<EndpointRef> =
                    trace.members(&half).map(|half| EndpointRef::from_half(&half)).collect();
                members.into_iter().for_each(|member| self.complete(member, time + takes, last));
            }
            Some(Needs::Root) if is_root => {
                self.complete(end, time, own);
                let others = trace.members(&half).map(|half| EndpointRef::from_half(&half));
                let here: Vec<EndpointRef> =
                    others.filter(|&other| self.has_joined(other, end)).collect();
                here.into_iter().for_each(|other| self.complete(other, time + takes, own));
            }
            Some(Needs::Root) if root_came != NEVER => {
                let root = collective.root.unwrap_or(NOBODY);
                let there = root_came + takes;
                let trigger = match there > time {
                    true => Trigger { rank: root, time: root_came },
                    false => own,
                };
                self.complete(end, there.max(time), trigger);
            }
            Some(Needs::AllAtRoot) => {
                if !is_root {
                    self.complete(end, time, own);
                }
                let root =
                    trace.members(&half).find(|half| collective.root == Some(half.rank as u32));
                if let Some(root) = root.filter(|_| is_whole) {
                    let takes = self.takes(&root);
                    self.complete(EndpointRef::from_half(&root), time + takes, last);
                }
            }
            _ => {}
        }
    }

    fn has_joined(&self, other: EndpointRef, root: EndpointRef) -> bool {
        let half = &self.ranks[other.rank as usize].halves[other.endpoint as usize];
        other.rank != root.rank && half.posted != NEVER
    }

    fn takes(&self, half: &Half<'_>) -> i64 {
        (self.durations.get(key(half)) as f64 * self.network.collectives).round() as i64
    }

    /// A non-blocking collective is waited for. While this member computed as much of it went by as in the recorded run; where
    /// that is not known no more than its first round, as all others need its members inside MPI.
    pub fn catch_up(&mut self, rank: u32, endpoint: u32, time: i64) {
        let state = &self.ranks[rank as usize];
        let half = state.halves[endpoint as usize];
        let has_progress = self.network.progress == Progress::Async || state.period > 0;
        if half.done == NEVER || has_progress {
            return;
        }
        let of_trace = self.trace.half(rank as usize, endpoint as usize);
        let takes = self.takes(&of_trace);
        let everybody = half.done - takes;
        let ranks = of_trace.operation.comm_size.max(2);
        let rounds = i64::from(u32::BITS - (ranks - 1).leading_zeros());
        if everybody < time {
            let left = self.durations.left.get(&key(&of_trace)).copied();
            let left = left.map(|left| left.ns() as f64 * self.network.collectives);
            let done = time + left.map_or(takes - takes / rounds, |left| left.round() as i64);
            let half = &mut self.ranks[rank as usize].halves[endpoint as usize];
            if done > half.done {
                *half = state::Half {
                    done,
                    flight: rank,
                    since_trigger: Span::new(done - time),
                    ..*half
                };
            }
        }
    }
}
