//! Ranks that did not get a processor when they could have run: their times are that, too.

use std::collections::BTreeMap;

use lapscope_data::model::{Nanos, RankInfo};
use lapscope_data::text::plural;
use lapscope_data::text::units::percent;
use lapscope_trace::processors::processor_share;

/// What ranks waited for processors, when it was much.
pub(super) fn starved(ranks: &[&RankInfo]) -> Option<String> {
    let share = processor_share(ranks)?;
    let how_much = if share < 0.5 { "mostly" } else { "partly" };
    Some(format!(
        "ranks had a processor for only {:.0} % of the time in which they could have run{}. What calls and transfers took is \
         {how_much} that; run with a processor for each rank before believing times, limits or advice",
        100.0 * share,
        why(ranks)
    ))
}

/// ": 8 ranks on 2 processors of node1"; other processes, where there were enough.
fn why(ranks: &[&RankInfo]) -> String {
    match crowded(ranks) {
        Some(crowd) => format!(": {crowd}"),
        None => ", as other processes used them too or several ranks are bound to one".to_owned(),
    }
}

/// What to see to before work is called uneven: ranks that share processors, and how long they lacked one. `None`: they hardly did.
pub(super) fn crowded_first(ranks: &[&RankInfo]) -> Option<String> {
    /// Share of the run time.
    const HARDLY: f64 = 0.02;
    let crowd = crowded(ranks)?;
    let known = || ranks.iter().filter_map(|rank| Some((rank.run_time(), rank.processor?.wait)));
    let lacked: Nanos = known().map(|(_, wait)| wait).sum();
    let share = lacked.share_of(known().map(|(run_time, _)| run_time).sum());
    (share >= HARDLY).then(|| {
        let share = percent(share);
        format!("{crowd}, which they lacked for {share} of the run time: give each its own first.")
    })
}

/// Why ranks have no processor of their own, and what to do about it, as a headline and within a sentence.
pub(super) fn give_processors(ranks: &[&RankInfo]) -> [String; 2] {
    match crowded(ranks) {
        Some(crowd) => [
            format!("Give each rank a processor of its own: there are {crowd}."),
            format!("There are {crowd}: start fewer on a node, or ask for more processors."),
        ],
        None => [
            "Give each rank a processor of its own: others use them, too, or several ranks are bound to one.".to_owned(),
            "There are enough processors: see what else runs there, and how the launcher binds the ranks.".to_owned(),
        ],
    }
}

/// "8 ranks on 2 processors of node1", where most share them.
fn crowded(ranks: &[&RankInfo]) -> Option<String> {
    let mut hosts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for rank in ranks.iter().filter(|rank| rank.processor.is_some()) {
        let (count, online) = hosts.entry(&rank.host).or_default();
        *count += 1;
        *online = rank.processor.map_or(*online, |it| it.online.max(*online));
    }
    let crowded = hosts.iter().filter(|(_, (count, online))| count > online);
    let (host, (count, online)) = crowded.max_by_key(|(_, (count, _))| *count)?;
    Some(format!("{count} ranks on {online} processor{} of {host}", plural(*online as u64)))
}
