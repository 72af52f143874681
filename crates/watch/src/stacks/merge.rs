//! What was seen on several hosts, as one answer. Each has been looked at by a process of its own, which prints a [`HostLook`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::absent::{self, Absent};
use super::place::RankStack;
use super::processes::{distinct, RankOfJob};
use super::tree::{self, Branch};
use super::words;
use crate::hang::Diagnosis;
use lapscope_data::model::Nanos;

/// What was seen on one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostLook {
    pub host: String,
    pub observed_ns: Nanos,
    pub held_ns: Nanos,
    pub ranks: Vec<RankStack>,
    /// Processes of other users, which may be ranks, too.
    pub forbidden: u64,
    /// As [`super::Processes`] has them.
    pub of_other_programs: Vec<RankOfJob>,
    pub nameless: u64,
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

/// Where all ranks of a job are. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StackDiagnosis {
    /// Between the two looks; of several hosts the shortest.
    pub observed_ns: Nanos,
    /// What it comes to, in a sentence.
    pub sentence: String,
    /// As its launcher names it; `null`: it does not.
    pub job: Option<String>,
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
    #[serde(flatten)]
    pub absent: Absent,
    /// What else is to be known, as sentences.
    pub notes: Vec<String>,
    /// Jobs that were found besides, by the same names.
    pub other_jobs: Vec<StackDiagnosis>,
}

impl StackDiagnosis {
    /// The run directories that ranks record into, of all jobs.
    pub fn runs(&self) -> Vec<PathBuf> {
        distinct(self.jobs().flat_map(StackDiagnosis::own_runs))
    }

    /// Those of this job.
    pub fn own_runs(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.ranks.iter().filter_map(|rank| rank.run.clone())
    }

    /// This one, and those besides.
    pub fn jobs(&self) -> impl Iterator<Item = &StackDiagnosis> {
        std::iter::once(self).chain(&self.other_jobs)
    }

    /// Takes back what is not known where not all processes were asked for.
    pub fn forget_absent(&mut self) {
        self.absent = Absent::default();
        self.sentence = words::sentence(&self.ranks, &[]);
        self.other_jobs.iter_mut().for_each(StackDiagnosis::forget_absent);
    }
}

/// A host that several have looked at counts once. Of several jobs the one with most ranks comes first.
pub fn merge(mut looks: Vec<HostLook>, unseen: Vec<UnseenHost>) -> StackDiagnosis {
    looks.sort_by(|a, b| a.host.cmp(&b.host));
    let mut hosts: Vec<String> = looks.iter().map(|look| look.host.clone()).collect();
    hosts.dedup();
    let observed = looks.iter().map(|look| look.observed_ns).min().unwrap_or_default();
    let held = looks.iter().map(|look| look.held_ns).max().unwrap_or_default();
    let nameless = looks.iter().map(|look| look.nameless).sum();
    let (mut notes, mut others) = (Vec::new(), Vec::new());
    let mut ranks: Vec<RankStack> = Vec::new();
    for look in looks {
        notes.extend(look.notes.into_iter().map(|note| match hosts.len() {
            1 => note,
            _ => format!("{}: {note}", look.host),
        }));
        ranks.extend(look.ranks);
        others.extend(look.of_other_programs);
    }
    notes.dedup();
    let key = |it: &RankStack| (it.rank, it.pid, it.problem.is_some());
    ranks.sort_by(|a, b| a.host.cmp(&b.host).then_with(|| key(a).cmp(&key(b))));
    ranks.dedup_by(|a, b| (&a.host, a.pid) == (&b.host, b.pid)); // keeps the one without a problem
    let of_job = |(job, ranks): (Option<String>, Vec<RankStack>)| {
        let of_it = others.iter().filter(|it| it.job == job).map(|it| it.rank).collect();
        let absent = absent::find(&ranks, of_it, nameless);
        StackDiagnosis {
            observed_ns: observed,
            sentence: words::sentence(&ranks, &absent.ended),
            job,
            tree: tree::merge(&ranks),
            held_ns: held,
            hosts: hosts.clone(),
            absent,
            ranks,
            ..StackDiagnosis::default()
        }
    };
    let mut jobs = by_job(ranks).into_iter().map(of_job);
    let first = jobs.next().unwrap_or_else(|| of_job((None, Vec::new())));
    StackDiagnosis { unseen, notes, other_jobs: jobs.collect(), ..first }
}

fn by_job(ranks: Vec<RankStack>) -> Vec<(Option<String>, Vec<RankStack>)> {
    let mut jobs: BTreeMap<Option<String>, Vec<RankStack>> = BTreeMap::new();
    for rank in ranks {
        jobs.entry(rank.job.clone()).or_default().push(rank);
    }
    let mut jobs: Vec<(Option<String>, Vec<RankStack>)> = jobs.into_iter().collect();
    jobs.iter_mut().for_each(|(_, ranks)| ranks.sort_by_key(|it| it.rank));
    jobs.sort_by_key(|(_, ranks)| Reverse(ranks.len()));
    jobs
}

#[cfg(test)]
mod tests;
