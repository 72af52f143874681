//! Ranks that a user names.

use std::str::FromStr;

use super::Rank;

/// Stretches of ranks, as `0-15,64,2:0-3`; or all ranks there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankList {
    All,
    /// The first of each, and the number of its last.
    Some(Vec<(Rank, i64)>),
}

impl RankList {
    /// What stands for all of them.
    pub const ALL: &'static str = "all";

    /// One by one, of each stretch no more than there can be; none of all of them.
    pub fn ranks(&self) -> Vec<Rank> {
        const MOST: usize = 1 << 24;
        let RankList::Some(stretches) = self else { return Vec::new() };
        let ranks = stretches.iter().flat_map(|(first, last)| {
            (first.number..=*last).take(MOST).map(|number| Rank { number, ..*first })
        });
        ranks.collect()
    }

    pub fn contains(&self, rank: Rank) -> bool {
        match self {
            RankList::All => true,
            RankList::Some(stretches) => stretches.iter().any(|(first, last)| {
                first.world == rank.world && (first.number..=*last).contains(&rank.number)
            }),
        }
    }
}

impl FromStr for RankList {
    type Err = String;

    fn from_str(text: &str) -> Result<RankList, String> {
        if text == RankList::ALL {
            return Ok(RankList::All);
        }
        let stretch = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, ""));
            let first: Rank = first.parse()?;
            let last = match last {
                "" if part.contains('-') => None,
                "" => Some(first.number),
                last => last.parse::<u32>().ok().map(i64::from),
            };
            let last = last.filter(|last| *last >= first.number);
            last.map(|last| (first, last))
                .ok_or_else(|| format!("{part}: a stretch of ranks is as 0-15"))
        };
        text.split(',')
            .map(|part| stretch(part.trim()))
            .collect::<Result<_, _>>()
            .map(RankList::Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_and_single_ranks() {
        let list: RankList = "0-15,64, 2:0-3".parse().unwrap();
        let has = |text: &str| list.contains(text.parse().unwrap());
        assert!(["0", "15", "64", "2:0", "2:3"].into_iter().all(has));
        assert!(!["16", "63", "2:4", "2:64", "3:0"].into_iter().any(has));
        let ranks: Vec<String> = list.ranks().iter().map(Rank::to_string).collect();
        assert_eq!((ranks.len(), ranks[16].as_str(), ranks[20].as_str()), (21, "64", "2:3"));
        assert!("all".parse::<RankList>().unwrap().contains(Rank { world: 7, number: 7 }));
        for text in ["", "3-", "-3", "5-3", "0-1-2", "a", "0,,1", "runs/a"] {
            assert!(text.parse::<RankList>().is_err(), "{text}");
        }
    }
}
