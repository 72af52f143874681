//! Call paths of all ranks as one tree, as STAT draws them: from `main` inwards, each branch with its ranks.

use serde::Serialize;

use super::place::{Doing, RankStack};
use lapscope_data::model::Rank;
use lapscope_data::symbols::FrameName;

/// A place in the program and the ranks that are below it.
#[derive(Debug, Clone, Serialize)]
pub struct Branch {
    /// A line of the program; the call of MPI, or what is done, at the end of a branch.
    pub place: String,
    pub count: usize,
    /// Those that have a number.
    pub ranks: Vec<Rank>,
    pub branches: Vec<Branch>,
}

/// The tree, branches with fewest ranks first: these are the odd ones out.
pub(super) fn merge(ranks: &[RankStack]) -> Vec<Branch> {
    let mut tree = Vec::new();
    for rank in ranks {
        let mut path: Vec<String> = rank.frames.iter().rev().map(FrameName::brief).collect();
        path.push(leaf(rank));
        insert(&mut tree, &path, rank);
    }
    sort(&mut tree);
    tree
}

fn leaf(rank: &RankStack) -> String {
    let moves = if rank.stands { "" } else { ", moves" };
    let what = match (rank.doing, &rank.call) {
        (Doing::Unknown, _) => "not to be seen".to_owned(),
        (Doing::Stopped, _) => "stopped".to_owned(),
        (_, Some(call)) => call.clone(),
        (Doing::Asleep, None) => {
            format!("asleep in {}", rank.sleeps_in.as_deref().unwrap_or("the kernel"))
        }
        _ => "computes".to_owned(),
    };
    what + moves
}

fn insert(branches: &mut Vec<Branch>, path: &[String], rank: &RankStack) {
    let Some((place, rest)) = path.split_first() else { return };
    let at = branches.iter().position(|branch| branch.place == *place).unwrap_or_else(|| {
        let (ranks, branches_of_it) = (Vec::new(), Vec::new());
        branches.push(Branch { place: place.clone(), count: 0, ranks, branches: branches_of_it });
        branches.len() - 1
    });
    branches[at].count += 1;
    branches[at].ranks.extend(rank.rank);
    insert(&mut branches[at].branches, rest, rank);
}

fn sort(branches: &mut [Branch]) {
    branches.sort_by_key(|branch| branch.count);
    branches.iter_mut().for_each(|branch| sort(&mut branch.branches));
}
