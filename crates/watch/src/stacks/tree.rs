//! Call paths of all ranks as one tree, as STAT draws them: from `main` inwards, each branch with its ranks.

use std::collections::HashMap;

use serde::Serialize;

use super::place::RankStack;
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
    let mut growing = Growing::default();
    for rank in ranks {
        let mut within = None;
        let places = shortened(rank.at.places(FrameName::brief).into_iter().rev());
        for place in places.into_iter().chain([rank.leaf()]) {
            let at = growing.branch(within, place);
            growing.count(at, rank);
            within = Some(at);
        }
    }
    let mut tree = growing.finish();
    sort(&mut tree);
    tree
}

/// Branches one after the other, each behind the one that it grows from; ten thousand may grow from one.
#[derive(Default)]
struct Growing {
    branches: Vec<(Option<usize>, Branch)>,
    known: HashMap<(Option<usize>, String), usize>,
}

impl Growing {
    fn branch(&mut self, within: Option<usize>, place: String) -> usize {
        let Growing { branches, known } = self;
        *known.entry((within, place)).or_insert_with_key(|(_, place)| {
            let (ranks, of_it) = (Vec::new(), Vec::new());
            branches
                .push((within, Branch { place: place.clone(), count: 0, ranks, branches: of_it }));
            branches.len() - 1
        })
    }

    fn count(&mut self, at: usize, rank: &RankStack) {
        let branch = &mut self.branches[at].1;
        branch.count += 1;
        branch.ranks.extend(rank.rank);
    }

    /// From the last on, so that each is whole when it is put on its own.
    fn finish(mut self) -> Vec<Branch> {
        let mut trunks = Vec::new();
        while let Some((within, mut branch)) = self.branches.pop() {
            branch.branches.reverse();
            match within {
                Some(at) => self.branches[at].1.branches.push(branch),
                None => trunks.push(branch),
            }
        }
        trunks.reverse();
        trunks
    }
}

/// Readers of JSON refuse what is nested deeper than some hundred levels, and a branch has two.
const DEEPEST: usize = 40;

/// Functions that call themselves are one place; of what is still too long the middle is left out.
fn shortened(places: impl Iterator<Item = String>) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for place in places {
        match counted.last_mut() {
            Some((last, count)) if *last == place => *count += 1,
            _ => counted.push((place, 1)),
        }
    }
    let times = |(place, count): (String, usize)| match count {
        1 => place,
        _ => format!("{place} × {count}"),
    };
    let mut path: Vec<String> = counted.into_iter().map(times).collect();
    if path.len() > DEEPEST {
        let left_out = path.len() - DEEPEST;
        path.splice(DEEPEST / 2..DEEPEST / 2 + left_out, [format!("… {left_out} places …")]);
    }
    path
}

fn sort(branches: &mut [Branch]) {
    branches.sort_by_key(|branch| branch.count);
    branches.iter_mut().for_each(|branch| sort(&mut branch.branches));
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn recursion_is_one_place_and_nothing_is_nested_too_deep() {
        let path = |text: &str| shortened(text.split(' ').map(str::to_owned));
        assert_eq!(path("main f f f g f"), ["main", "f × 3", "g", "f"]);
        let deep = path(&"a b ".repeat(100));
        assert_eq!((deep.len(), deep[20].as_str()), (41, "… 161 places …"));
    }
}
