//! The five answers that a report begins with: how much of the run is exposed communication, how much of that could be
//! overlapped, why it is not, what to do first, and what that may win.

use serde::Serialize;

use crate::advice::{first_to_do, Advice};
use lapscope_data::model::Nanos;
use lapscope_measure::overlap::sums::{BlockingNumbers, Cause, OverlapNumbers};
use lapscope_measure::overlap::Overlap;
use lapscope_measure::totals::Totals;
use lapscope_trace::gpu::exposed_is_upper_bound;
use lapscope_trace::sums::combine::RunSums;

/// From this share of the waiting on a second cause is named.
const WORTH_NAMING: f64 = 0.2;
/// From this share of what is exposed on its causes say why.
const WORTH_EXPLAINING: f64 = 0.05;

/// Times are sums over all ranks. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Inside MPI to communicate, whatever the call: nothing is computed meanwhile, on a GPU neither where that is recorded.
    pub exposed_ns: Nanos,
    /// Time in such calls while a GPU of the rank computed; `None`: of no rank is it recorded when its GPUs worked.
    pub overlapped_with_gpu_ns: Option<Nanos>,
    /// Exposed share of the run time.
    pub exposed_share: f64,
    /// Of both: on some rank a GPU may have computed meanwhile.
    pub exposed_is_upper_bound: bool,
    /// The share of that which single records tell of: causes, overlap and advice are of that part alone. `None`: of all.
    pub in_detail_share: Option<f64>,
    /// The most that can be overlapped of it: lost overlap of requests, no more than they cost. Computation lay between post
    /// and wait, and the transfer did not use it. There is no least: what of a transfer is work of its ranks' own processors,
    /// such as copies, is hidden by nothing, and is not known.
    pub overlappable_high_ns: Nanos,
    /// Time in calls that block: as they are, nothing can be computed beside them.
    pub blocked_ns: Nanos,
    /// What waiting and blocking calls waited for: the largest part first, at most two.
    pub causes: Vec<CauseShare>,
    /// Place in `advice` of what to do first; where nothing in the communication helps, of the largest finding.
    pub first: Option<usize>,
    /// What that may win at most, no more than is exposed; 0 where nothing helps.
    pub win_low_ns: Nanos,
    pub win_high_ns: Nanos,
}

/// Time inside MPI to communicate, whatever the call, but for what GPUs of the ranks computed in meanwhile.
pub fn exposed(totals: &Totals) -> Nanos {
    totals.posting_ns
        + totals.exposed_ns
        + totals.blocking_ns
        + totals.collective_ns
        + totals.rma_ns
        + totals.unsuccessful_test_ns
}

/// A cause of waiting, and its fraction of all waiting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CauseShare {
    pub cause: Cause,
    pub share: f64,
}

impl Summary {
    pub fn new(totals: &Totals, overlap: &Overlap, advice: &[Advice], run: &RunSums) -> Summary {
        let requests = &overlap.totals.numbers;
        let blocking = &overlap.blocking.totals;
        let exposed_ns = exposed(totals);
        let first = first_to_do(advice);
        // requests that one call completes cost its time once
        let own = totals.posting_ns + totals.exposed_ns + totals.unsuccessful_test_ns;
        let won = first.map(|first| &advice[first]).filter(|first| first.helps);
        let replayed = won.filter(|advice| advice.replay.is_some()).map(Advice::win_at_most);
        let replayed = replayed.map(|share| Nanos((totals.run_ns.0 as f64 * share).round() as i64));
        let high = replayed.or(won.map(|advice| advice.time_high_ns)).unwrap_or_default();
        let win_high_ns = high.min(exposed_ns);
        let in_detail = requests.exposed_ns + overlap.totals.unattributed_ns + blocking.blocked_ns;
        let waiting = exposed_ns - totals.posting_ns - totals.unsuccessful_test_ns;
        let in_detail_share = in_detail.min(waiting).share_of(waiting);
        Summary {
            in_detail_share: run.is_summarized().then_some(in_detail_share),
            exposed_ns,
            overlapped_with_gpu_ns: overlap
                .has_device_time
                .then_some(totals.overlapped_with_gpu_ns),
            exposed_share: exposed_ns.share_of(totals.run_ns),
            exposed_is_upper_bound: run.ranks.iter().any(|it| exposed_is_upper_bound(&it.info)),
            overlappable_high_ns: (requests.lost_high_ns + requests.unmeasured_lost_high_ns)
                .min(own),
            blocked_ns: totals.blocking_ns + totals.collective_ns,
            causes: causes(requests, [blocking, &overlap.polling], exposed_ns),
            first,
            win_low_ns: won.map_or(Nanos(0), |advice| advice.time_low_ns).min(win_high_ns),
            win_high_ns,
        }
    }
}

/// None where nearly all that is exposed has no cause, as of tests within computation that found nothing.
fn causes(
    requests: &OverlapNumbers,
    others: [&BlockingNumbers; 2],
    exposed_ns: Nanos,
) -> Vec<CauseShare> {
    let waited = others.iter().fold(requests.exposed_ns, |sum, other| sum + other.blocked_ns);
    if waited.share_of(exposed_ns) < WORTH_EXPLAINING {
        return Vec::new();
    }
    let mut causes: Vec<CauseShare> = Cause::ALL
        .into_iter()
        .map(|cause| {
            let time = others
                .iter()
                .fold(requests.exposed_of(cause), |sum, other| sum + other.blocked_by(cause));
            CauseShare { cause, share: time.share_of(waited) }
        })
        .filter(|it| it.share > 0.0)
        .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let named = causes.iter().enumerate().take(2);
    let count = named.filter(|(place, it)| *place == 0 || it.share >= WORTH_NAMING).count();
    causes.truncate(count);
    causes
}
