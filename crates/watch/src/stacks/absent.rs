//! Ranks of a job that were not found: which of them have ended, and which may be elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::place::RankStack;
use lapscope_data::model::Rank;

/// Ranks of the job that were not found; all empty: all are there, or nobody says how many there are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// They were started on hosts that were looked at, and are not there any more.
    pub ended: Vec<Rank>,
    /// They were started elsewhere, or have ended.
    pub elsewhere: Vec<Rank>,
    /// How many of these have ended; `null`: not known.
    pub elsewhere_ended: Option<u64>,
    /// They run programs that were not asked for.
    pub of_other_programs: Vec<Rank>,
}

/// `nameless`: processes that may be these.
pub fn find(ranks: &[RankStack], of_other_programs: Vec<Rank>, nameless: u64) -> Absent {
    let mut worlds: BTreeMap<i64, Vec<&RankStack>> = BTreeMap::new();
    for stack in ranks {
        if let Some(rank) = stack.rank {
            worlds.entry(rank.world).or_default().push(stack);
        }
    }
    let is_told = nameless == 0 && ranks.iter().all(|it| it.rank.is_some());
    let mut absent = Absent { elsewhere_ended: Some(0), ..Absent::default() };
    for found in worlds.values() {
        absent.add_world(found, &of_other_programs, is_told);
    }
    absent.of_other_programs = of_other_programs;
    absent
}

impl Absent {
    fn add_world(&mut self, found: &[&RankStack], others: &[Rank], is_told: bool) {
        const MOST: u64 = 1 << 21;
        let Some(any) = found.first().and_then(|it| it.rank) else { return };
        let size = found.iter().filter_map(|it| it.size).max().unwrap_or(0).min(MOST);
        let own: HashSet<Rank> = found.iter().filter_map(|it| it.rank).collect();
        let others = others.iter().filter(|it| it.world == any.world).copied();
        let here: HashSet<Rank> = own.into_iter().chain(others).collect();
        let all = (0..size as i64).map(|number| any.neighbor(number));
        let missing: Vec<Rank> = all.filter(|rank| !here.contains(rank)).collect();
        if missing.is_empty() {
            return;
        }
        let started = started(found).filter(|_| is_told);
        let ended = started.map(|started| started.saturating_sub(here.len() as u64));
        if ended == Some(missing.len() as u64) {
            self.ended.extend(missing);
        } else {
            self.elsewhere.extend(missing);
            self.elsewhere_ended =
                self.elsewhere_ended.zip(ended).map(|(before, ended)| before + ended);
        }
    }
}

/// Ranks that were started on the hosts of these, as their launcher counts them; a host may be several nodes to it.
fn started(found: &[&RankStack]) -> Option<u64> {
    let mut hosts: HashMap<&str, (u64, u64)> = HashMap::new();
    for stack in found {
        let (count, most) = hosts.entry(&stack.host).or_default();
        *count += 1;
        *most = (*most).max(stack.local_size?);
    }
    Some(hosts.values().map(|&(count, most)| count.max(most)).sum())
}
