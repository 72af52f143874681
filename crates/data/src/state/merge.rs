//! Several parts of a job as one: what was seen from several nodes.

use super::intern::{CommunicatorKey, Names};
use super::{
    Collective, Condition, Failed, JobState, Lane, Lock, OpenOperation, RankState, Sequence, Unseen,
};
use crate::model::Frame;

/// What the indices of one part are in the whole.
struct Renumbered {
    paths: Vec<u32>,
    calls: Vec<u32>,
    communicators: Vec<u32>,
}

impl JobState {
    /// One state of all parts. A rank that several have seen is taken from the one that knows more of it: whether it runs, and
    /// else the later look. What could not be seen from one place, and was from another, is seen.
    pub fn merge(parts: Vec<JobState>) -> JobState {
        let mut names = Names::default();
        let (mut ranks, mut unseen): (Vec<RankState>, Vec<_>) = (Vec::new(), Vec::new());
        for mut part in parts {
            let renumbered = Renumbered::number(&part, &mut names);
            names.describe(&part.command, &part.mpi_library);
            for rank in &mut part.ranks {
                renumbered.rank(rank);
            }
            ranks.append(&mut part.ranks);
            unseen.append(&mut part.unseen);
        }
        let mut job = names.job();
        job.ranks = latest_lives(ranks);
        let is_seen = |unseen: &Unseen| {
            let is_node = unseen.file.starts_with("node-"); // the spools of all ranks of a host
            let is_it = |rank: &RankState| match is_node {
                true => rank.host == unseen.host,
                false => file_stem(rank) == unseen.file,
            };
            job.ranks.iter().any(|rank| rank.condition != Condition::Unknown && is_it(rank))
        };
        unseen.retain(|unseen| !is_seen(unseen));
        unseen.sort_by(|a, b| (&a.file, &a.host, &a.why).cmp(&(&b.file, &b.host, &b.why)));
        unseen.dedup();
        job.unseen = unseen;
        job
    }
}

/// In the order of ranks; of several lives of a rank the last, and of several sights of it the best.
pub(super) fn latest_lives(mut ranks: Vec<RankState>) -> Vec<RankState> {
    let sight = |rank: &RankState| (rank.condition != Condition::Unknown, rank.now);
    ranks.sort_by(|a, b| {
        (a.rank, a.life).cmp(&(b.rank, b.life)).then_with(|| sight(a).cmp(&sight(b)))
    });
    ranks.reverse();
    ranks.dedup_by_key(|rank| rank.rank); // keeps the first of each
    ranks.reverse();
    ranks
}

/// `rank-3`, as its files in the run directory are called.
pub(super) fn file_stem(rank: &RankState) -> String {
    let world = match rank.rank.world {
        1 => String::new(),
        world => format!("world-{world}-"),
    };
    let life = match rank.life {
        1 => String::new(),
        life => format!("-{life}"),
    };
    format!("{world}rank-{}{life}", rank.rank.number)
}

impl Renumbered {
    fn number(part: &JobState, names: &mut Names) -> Renumbered {
        let modules: Vec<u32> = part.modules.iter().map(|module| names.module(module)).collect();
        let paths = part.paths.iter().map(|path| {
            let frame = |frame: &Frame| Frame {
                module: frame.module.and_then(|at| modules.get(at as usize).copied()),
                ..*frame
            };
            names.path(path.frames.iter().map(frame).collect(), path.truncated)
        });
        let paths = paths.collect();
        let calls = part.calls.iter().map(|call| names.call(call)).collect();
        let communicators = part.communicators.iter().map(|it| {
            let key = CommunicatorKey {
                world: it.world,
                identity: it.identity,
                ordinal: it.ordinal,
                is_inter: it.is_inter,
            };
            names.communicator(key, || (it.name.clone(), it.members.clone()))
        });
        Renumbered { paths, calls, communicators: communicators.collect() }
    }

    fn rank(&self, rank: &mut RankState) {
        for thread in &mut rank.threads {
            if let Some(open) = &mut thread.open {
                self.operation(&mut open.operation);
            }
            if let Some(unsuccessful) = &mut thread.unsuccessful {
                self.operation(unsuccessful);
            }
            if let Some(last) = &mut thread.last {
                last.call = self.call(last.call);
                last.path = self.path(last.path);
            }
        }
        for request in &mut rank.requests {
            self.operation(&mut request.operation);
        }
        let history = &mut rank.history;
        for Lane { communicator, .. } in history.sent.iter_mut().chain(&mut history.received) {
            *communicator = self.communicator(*communicator);
        }
        for Lock { communicator, .. } in &mut history.locks {
            *communicator = self.communicator(*communicator);
        }
        for Failed { call, path, .. } in &mut history.failed {
            *call = self.call(*call);
            *path = self.path(*path);
        }
        for Sequence { communicator, last, .. } in &mut history.collectives {
            *communicator = self.communicator(*communicator);
            for Collective { call, path, .. } in last {
                *call = self.call(*call);
                *path = self.path(*path);
            }
        }
    }

    fn operation(&self, operation: &mut OpenOperation) {
        operation.call = self.call(operation.call);
        operation.path = self.path(operation.path);
        operation.communicator = operation.communicator.map(|at| self.communicator(at));
        operation.made_by = operation.made_by.map(|at| self.call(at));
        if let Some(receive) = &mut operation.receive {
            self.operation(receive);
        }
    }

    // Parts come from files: an index that is none stays one.

    fn call(&self, at: u32) -> u32 {
        self.calls.get(at as usize).copied().unwrap_or(at)
    }

    fn path(&self, at: Option<u32>) -> Option<u32> {
        self.paths.get(at? as usize).copied()
    }

    fn communicator(&self, at: u32) -> u32 {
        self.communicators.get(at as usize).copied().unwrap_or(at)
    }
}
