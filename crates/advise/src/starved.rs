//! Ranks that did not get a processor when they could have run: their times are mostly that.

use std::collections::BTreeMap;

use lapscope_data::model::RankInfo;
use lapscope_data::text::plural;
use lapscope_trace::processors::processor_share;

/// What ranks waited for processors, when it was much.
pub(super) fn starved(ranks: &[&RankInfo]) -> Option<String> {
    let known: Vec<&RankInfo> =
        ranks.iter().copied().filter(|rank| rank.processor.is_some()).collect();
    let share = processor_share(ranks)?;
    Some(format!(
        "ranks had a processor for only {:.0} % of the time in which they could have run{}. What calls and transfers took is \
         mostly that; run with a processor for each rank before believing times, limits or advice",
        100.0 * share,
        why(&known)
    ))
}

/// ": 8 ranks on 2 processors of node1"; other processes, where there were enough.
fn why(ranks: &[&RankInfo]) -> String {
    let mut hosts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for rank in ranks {
        let (count, online) = hosts.entry(&rank.host).or_default();
        *count += 1;
        *online = rank.processor.map_or(*online, |it| it.online.max(*online));
    }
    let crowded = hosts.iter().filter(|(_, (count, online))| count > online);
    match crowded.max_by_key(|(_, (count, _))| *count) {
        Some((host, (count, online))) => {
            format!(": {count} ranks on {online} processor{} of {host}", plural(*online as u64))
        }
        None => ", as other processes used them too or several ranks are bound to one".to_owned(),
    }
}
