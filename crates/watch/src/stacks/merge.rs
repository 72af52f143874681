//! What was seen on several hosts, as one answer. Each has been looked at by a process of its own, which prints a [`HostLook`].

use std::collections::HashSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::place::RankStack;
use super::processes::distinct;
use super::tree::{self, Branch};
use super::words;
use crate::hang::Diagnosis;
use lapscope_data::model::{Nanos, Rank};

/// What was seen on one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostLook {
    pub host: String,
    pub observed_ns: Nanos,
    pub held_ns: Nanos,
    pub ranks: Vec<RankStack>,
    /// Processes of other users, which may be ranks, too.
    pub forbidden: u64,
    pub notes: Vec<String>,
}

/// A host of which nothing was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnseenHost {
    pub host: String,
    /// Why, with the way out.
    pub why: String,
}

/// What the records of ranks tell that are recorded.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRun {
    pub run: String,
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// Where all ranks are. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct StackDiagnosis {
    /// Between the two looks; of several hosts the shortest.
    pub observed_ns: Nanos,
    /// What it comes to, in a sentence.
    pub sentence: String,
    /// Of those ranks that are recorded: for whom they wait.
    pub recorded: Vec<RecordedRun>,
    /// From `main` inwards, branches with fewest ranks first.
    pub tree: Vec<Branch>,
    pub ranks: Vec<RankStack>,
    /// The longest that a thread was stopped for; 0: none was.
    pub held_ns: Nanos,
    /// Hosts that were looked at.
    pub hosts: Vec<String>,
    pub unseen: Vec<UnseenHost>,
    /// Ranks that belong to the job and were not found; empty: all are there, or nobody says how many there are.
    pub elsewhere: Vec<Rank>,
    /// What else is to be known, as sentences.
    pub notes: Vec<String>,
}

impl StackDiagnosis {
    /// The run directories that its ranks record into.
    pub fn runs(&self) -> Vec<PathBuf> {
        distinct(self.ranks.iter().filter_map(|rank| rank.run.clone()))
    }
}

/// A host that several have looked at counts once.
pub fn merge(mut looks: Vec<HostLook>, unseen: Vec<UnseenHost>) -> StackDiagnosis {
    looks.sort_by(|a, b| a.host.cmp(&b.host));
    let mut hosts: Vec<String> = looks.iter().map(|look| look.host.clone()).collect();
    hosts.dedup();
    let observed = looks.iter().map(|look| look.observed_ns).min().unwrap_or_default();
    let held = looks.iter().map(|look| look.held_ns).max().unwrap_or_default();
    let mut notes = Vec::new();
    let mut ranks: Vec<RankStack> = Vec::new();
    for look in looks {
        notes.extend(look.notes.into_iter().map(|note| match hosts.len() {
            1 => note,
            _ => format!("{}: {note}", look.host),
        }));
        ranks.extend(look.ranks);
    }
    notes.dedup();
    let key = |it: &RankStack| (it.rank, it.pid, it.problem.is_some());
    ranks.sort_by(|a, b| a.host.cmp(&b.host).then_with(|| key(a).cmp(&key(b))));
    ranks.dedup_by(|a, b| (&a.host, a.pid) == (&b.host, b.pid)); // keeps the one without a problem
    ranks.sort_by_key(|it| it.rank);
    StackDiagnosis {
        observed_ns: observed,
        sentence: words::sentence(&ranks),
        recorded: Vec::new(),
        tree: tree::merge(&ranks),
        held_ns: held,
        hosts,
        unseen,
        elsewhere: elsewhere(&ranks),
        notes,
        ranks,
    }
}

fn elsewhere(ranks: &[RankStack]) -> Vec<Rank> {
    const MOST: u64 = 1 << 21;
    let size = ranks.iter().filter_map(|rank| rank.size).max().unwrap_or(0).min(MOST);
    let here: HashSet<Rank> = ranks.iter().filter_map(|it| it.rank).collect();
    let all = (0..size as i64).map(Rank::of_first_world);
    all.filter(|rank| !here.contains(rank)).collect()
}

#[cfg(test)]
mod tests;
