//! Collectives as messages. Who waits for all: dissemination, in round k to the member 2^k further on. Who waits for the root,
//! and a root that waits for all: a binomial tree. Who waits for those before: a chain. Each message has as many bytes as its
//! sender contributes. What an MPI really does is not recorded, and mostly quicker for large messages.

use lapscope_data::model::Needs;
use lapscope_trace::{Half, Trace};

/// One message of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveStep {
    pub is_send: bool,
    /// Place of the other rank.
    pub peer: usize,
    pub bytes: u64,
}

/// A member's part in a collective: rounds, each of which waits for the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    pub rounds: Vec<Vec<CollectiveStep>>,
    /// The tag of all its messages.
    pub tag: u64,
}

/// The members, and which of them this is.
struct MemberList {
    /// Place of each rank, and its bytes.
    all: Vec<(usize, u64)>,
    own: usize,
}

impl Exchange {
    /// Whether [`Exchange::from_half`] knows what to do.
    pub fn is_known(trace: &Trace, half: &Half<'_>) -> bool {
        needs(trace, half).is_some()
    }

    pub fn from_half(trace: &Trace, half: &Half<'_>) -> Option<Exchange> {
        let needs = needs(trace, half)?;
        let all: Vec<(usize, u64)> =
            trace.members(half).map(|member| (member.rank, member.bytes().0)).collect();
        let own = all.iter().position(|member| member.0 == half.rank)?;
        let root = trace.collective(half)?.root;
        let root = root.and_then(|root| all.iter().position(|member| member.0 == root as usize));
        let members = MemberList { all, own };
        let rounds = match needs {
            Needs::All => members.dissemination(),
            Needs::Root => members.tree_from(root?),
            Needs::AllAtRoot => {
                let mut rounds = members.tree_from(root?);
                rounds.reverse();
                rounds.iter_mut().flatten().for_each(|step| members.turn(step));
                rounds
            }
            Needs::Lower => members.chain(),
            Needs::Neighbors | Needs::Other => return None,
        };
        Some(Exchange { rounds, tag: 2 * number(trace, half)? + 1 })
    }
}

/// What members wait for, of a collective all of whose members are known and agree.
fn needs(trace: &Trace, half: &Half<'_>) -> Option<Needs> {
    trace.last_member(half)?;
    let collective = trace.collective(half)?;
    let needs = trace.blocking_calls[collective.blocking_call as usize].needs?;
    let is_rooted = matches!(needs, Needs::Root | Needs::AllAtRoot);
    let has_root = collective.root_begin.is_some();
    let is_pattern = !matches!(needs, Needs::Neighbors | Needs::Other);
    (is_pattern && (has_root || !is_rooted)).then_some(needs)
}

/// The same for all members, and for no other collective.
fn number(trace: &Trace, half: &Half<'_>) -> Option<u64> {
    Some(u64::from(trace.ranks[half.rank].endpoints[half.index].partner))
}

impl MemberList {
    fn count(&self) -> usize {
        self.all.len()
    }

    fn send(&self, to: usize) -> CollectiveStep {
        CollectiveStep { is_send: true, peer: self.all[to].0, bytes: self.all[self.own].1 }
    }

    fn receive(&self, from: usize) -> CollectiveStep {
        let (peer, bytes) = self.all[from];
        CollectiveStep { is_send: false, peer, bytes }
    }

    /// The message the other way.
    fn turn(&self, step: &mut CollectiveStep) {
        let other = self.all.iter().position(|member| member.0 == step.peer).unwrap_or(self.own);
        *step = if step.is_send { self.receive(other) } else { self.send(other) };
    }

    fn dissemination(&self) -> Vec<Vec<CollectiveStep>> {
        let count = self.count();
        let distances = (0..usize::BITS).map(|k| 1usize << k).take_while(|&far| far < count);
        let round = |far: usize| {
            vec![
                self.send((self.own + far) % count),
                self.receive((self.own + count - far) % count),
            ]
        };
        distances.map(round).collect()
    }

    /// By places from the root on: in round k those below 2^k send to those 2^k further on.
    fn tree_from(&self, root: usize) -> Vec<Vec<CollectiveStep>> {
        let count = self.count();
        let place = (self.own + count - root) % count;
        let member = |place: usize| (place + root) % count;
        let mut rounds = Vec::new();
        for far in (0..usize::BITS).map(|k| 1usize << k).take_while(|&far| far < count) {
            if place < far && place + far < count {
                rounds.push(vec![self.send(member(place + far))]);
            } else if (far..2 * far).contains(&place) {
                rounds.push(vec![self.receive(member(place - far))]);
            }
        }
        rounds
    }

    fn chain(&self) -> Vec<Vec<CollectiveStep>> {
        let before = self.own.checked_sub(1).map(|before| vec![self.receive(before)]);
        let next = (self.own + 1 < self.count()).then(|| vec![self.send(self.own + 1)]);
        before.into_iter().chain(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize, own: usize) -> MemberList {
        MemberList { all: (0..count).map(|rank| (10 + rank, 100 + rank as u64)).collect(), own }
    }

    /// What each member of five sends and receives: every message has both ends.
    fn check(steps: impl Fn(&MemberList) -> Vec<Vec<CollectiveStep>>) -> usize {
        let mut messages: Vec<(usize, usize, u64)> = Vec::new();
        let mut received = Vec::new();
        for own in 0..5 {
            for step in steps(&members(5, own)).concat() {
                match step.is_send {
                    true => messages.push((10 + own, step.peer, step.bytes)),
                    false => received.push((step.peer, 10 + own, step.bytes)),
                }
            }
        }
        messages.sort_unstable();
        received.sort_unstable();
        assert_eq!(messages, received);
        messages.len()
    }

    #[test]
    fn every_message_has_two_ends() {
        assert_eq!(check(MemberList::dissemination), 15, "3 rounds");
        assert_eq!(check(|members| members.tree_from(3)), 4);
        assert_eq!(check(MemberList::chain), 4);
        let to_root = |members: &MemberList| {
            let mut rounds = members.tree_from(3);
            rounds.reverse();
            rounds.iter_mut().flatten().for_each(|step| members.turn(step));
            rounds
        };
        assert_eq!(check(to_root), 4);
        assert_eq!(to_root(&members(5, 3)).len(), 3, "the root receives three times");
        assert!(to_root(&members(5, 3)).concat().iter().all(|step| !step.is_send));
    }

    #[test]
    fn one_member_talks_to_nobody() {
        assert!(members(1, 0).dissemination().is_empty() && members(1, 0).chain().is_empty());
        assert!(members(1, 0).tree_from(0).is_empty());
    }
}
