//! Ranks that did not get a processor when they could have run: their times are mostly that.

use std::collections::BTreeMap;

use lapscope_data::model::{Nanos, RankInfo};
use lapscope_data::text::plural;

/// Share of the run time that ranks waited for a processor, from which on times mean something else.
const MUCH: f64 = 0.1;

/// Of the time in which ranks could have run the share in which they had a processor, when they lacked one for long.
pub(super) fn processor_share(ranks: &[&RankInfo]) -> Option<f64> {
    let known = || ranks.iter().filter_map(|rank| Some((rank.run_time(), rank.processor?)));
    let wait: Nanos = known().map(|(_, it)| it.wait).sum();
    let ran: Nanos = known().map(|(_, it)| it.run).sum();
    let run_time: Nanos = known().map(|(run_time, _)| run_time).sum();
    (wait.share_of(run_time) >= MUCH).then(|| ran.share_of(ran + wait))
}

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
