//! Ranks and plurals.

use crate::model::Rank;

/// Ranks as "0-3, 7, 2:0-1", shortened when there are very many gaps.
pub fn list_ranks(ranks: &[Rank]) -> String {
    let mut ranges: Vec<(Rank, i64)> = Vec::new();
    for &rank in ranks {
        match ranges.last_mut() {
            Some((first, last)) if first.world == rank.world && rank.number - *last <= 1 => {
                *last = rank.number;
            }
            _ => ranges.push((rank, rank.number)),
        }
    }
    let shown = ranges.iter().take(8).map(|&(first, last)| match last - first.number {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    let mut list = shown.collect::<Vec<_>>().join(", ");
    if ranges.len() > 8 {
        list += ", …";
    }
    list
}

/// The s of "2 requests".
pub fn plural(count: u64) -> &'static str {
    if count == 1 {
        ""
    } else {
        "s"
    }
}

/// With a capital letter at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_as_ranges() {
        let ranks: Vec<Rank> = [0, 1, 2, 5, 7, 8].map(Rank::of_first_world).to_vec();
        assert_eq!(list_ranks(&ranks), "0-2, 5, 7-8");
        let spawned = [(2, 0), (2, 1), (3, 2)].map(|(world, number)| Rank { world, number });
        assert_eq!(list_ranks(&[&ranks[..2], &spawned].concat()), "0-1, 2:0-1, 3:2");
    }
}
