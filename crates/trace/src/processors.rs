//! Whether ranks had a processor when they could have run.

use lapscope_data::model::{Nanos, RankInfo};

/// Share of the run time that ranks waited for a processor, from which on times mean something else.
const MUCH: f64 = 0.1;

/// The share of the time in which ranks could have run in which they had a processor, when they lacked one for long.
pub fn processor_share(ranks: &[&RankInfo]) -> Option<f64> {
    let known = || ranks.iter().filter_map(|rank| Some((rank.run_time(), rank.processor?)));
    let wait: Nanos = known().map(|(_, it)| it.wait).sum();
    let ran: Nanos = known().map(|(_, it)| it.run).sum();
    let run_time: Nanos = known().map(|(run_time, _)| run_time).sum();
    (wait.share_of(run_time) >= MUCH).then(|| ran.share_of(ran + wait))
}
