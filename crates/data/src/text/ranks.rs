//! Ranks in words.

use super::list_ranks;
use super::units::count;
use crate::model::Rank;

/// "rank 3", "ranks 0-2, 7", "all 8 ranks", "all ranks but 5", "ranks 0, 32, … 992 (every 32nd)", "973 of 1,024 ranks, among them
/// 0-40", of ranks in order. `of`: how many the run has.
pub fn in_words(ranks: &[Rank], of: usize) -> String {
    const FEW: usize = 2;
    const MANY_RANGES: usize = 4;
    let [first, .., last] = ranks else { return format!("rank {}", list_ranks(ranks)) };
    if ranks.len() == of && of > FEW {
        return format!("all {} ranks", count(of as u64));
    }
    if let Some(others) = missing(ranks, of) {
        return format!("all ranks but {}", list_ranks(&others));
    }
    if let Some(step) = stride(ranks) {
        return format!("ranks {first}, {}, … {last} (every {step}{})", ranks[1], ordinal(step));
    }
    let ranges = 1 + ranks.windows(2).filter(|pair| !follows(pair)).count();
    if ranges > MANY_RANGES {
        let shown: Vec<Rank> = first_ranges(ranks, FEW);
        let (some, all) = (count(ranks.len() as u64), count(of as u64));
        return format!("{some} of {all} ranks, among them {}", list_ranks(&shown));
    }
    format!("ranks {}", list_ranks(ranks))
}

/// The s of "rank 0 waits".
pub fn third_person(ranks: &[Rank]) -> &'static str {
    match ranks.len() {
        1 => "s",
        _ => "",
    }
}

fn follows(pair: &[Rank]) -> bool {
    pair[0].world == pair[1].world && pair[1].number - pair[0].number == 1
}

/// The ranks of one world that are not there, where these are few of many.
fn missing(ranks: &[Rank], of: usize) -> Option<Vec<Rank>> {
    const MOST: usize = 3;
    const FEWEST_OF: usize = 8;
    let lacks = of.checked_sub(ranks.len()).filter(|lacks| (1..=MOST).contains(lacks))?;
    let numbers = (0..of as i64).map(|number| ranks[0].neighbor(number));
    let others: Vec<Rank> = numbers.filter(|rank| ranks.binary_search(rank).is_err()).collect();
    (of >= FEWEST_OF && others.len() == lacks).then_some(others)
}

/// The distance from each rank to the next, where that is always the same, and not 1.
fn stride(ranks: &[Rank]) -> Option<i64> {
    const FEWEST: usize = 4;
    let step = ranks.get(1)?.number - ranks[0].number;
    let is_regular =
        |pair: &[Rank]| pair[0].world == pair[1].world && pair[1].number - pair[0].number == step;
    (ranks.len() >= FEWEST && step > 1 && ranks.windows(2).all(is_regular)).then_some(step)
}

fn ordinal(number: i64) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

fn first_ranges(ranks: &[Rank], ranges: usize) -> Vec<Rank> {
    let gaps = ranks.windows(2).enumerate().filter(|(_, pair)| !follows(pair));
    let end = gaps.map(|(at, _)| at + 1).nth(ranges - 1).unwrap_or(ranks.len());
    ranks[..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(numbers: impl IntoIterator<Item = i64>, of: usize) -> String {
        let ranks: Vec<Rank> = numbers.into_iter().map(Rank::of_first_world).collect();
        in_words(&ranks, of)
    }

    #[test]
    fn ranks_are_said_by_their_pattern() {
        assert_eq!(words([3], 8), "rank 3");
        assert_eq!(words([0, 1], 2), "ranks 0-1");
        assert_eq!(words([0, 1, 2, 7], 64), "ranks 0-2, 7");
        assert_eq!(words(0..1024, 1024), "all 1024 ranks");
        assert_eq!(words((0..64).filter(|rank| rank % 40 != 5), 64), "all ranks but 5, 45");
        assert_eq!(words((0..32).map(|node| node * 32), 1024), "ranks 0, 32, … 992 (every 32nd)");
        let scattered = (0..1024).filter(|rank| rank % 10 != 3 && rank % 7 != 5);
        assert_eq!(words(scattered, 1024), "790 of 1024 ranks, among them 0-2, 4");
    }
}
