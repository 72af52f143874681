//! Which ranks a command is about, and which have a line of their own.

use clap::Args;

use lapscope_data::model::{Rank, RankList};

/// Arguments of commands that can be asked for some ranks.
#[derive(Debug, Args)]
pub struct RanksArgs {
    /// Only these ranks (of thresholds what they sent), as 0-15,64 or, of spawned processes, WORLD:RANK, 2:0-3
    #[arg(long = "ranks", alias = "rank", value_name = "LIST")]
    lists: Vec<RankList>,
}

impl RanksArgs {
    /// One by one; none: all of them.
    pub fn chosen(&self) -> Vec<Rank> {
        self.lists.iter().flat_map(RankList::ranks).collect()
    }
}

/// Arguments of commands that say of many ranks how these differ.
#[derive(Debug, Args)]
pub struct ListedArgs {
    /// A line for each rank, or for those of LIST, as 0-15,64,2:0-3, however many there are [default: above 32 ranks how they
    /// differ]
    #[arg(
        long = "each-rank",
        value_name = "LIST",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = RankList::ALL
    )]
    pub listed: Option<RankList>,
}
