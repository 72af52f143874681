//! What to do about the time that communication costs: for each place one sentence that a person can act on.
//!
//! Every waiting or blocking call is explained once ([`Waited`](lapscope_measure::overlap::witness::Waited)), and each part of its time goes to one piece of advice, so
//! that no two pieces promise the same nanosecond. What is said is at stake, not promised: the cure may move a wait
//! elsewhere, or free a processor that somebody else waits for.

mod chain;
mod finding;
mod gather;
mod headline;
mod judge;
mod merge;
mod order;
mod profile;
mod reach;
mod serial;
mod sums;
mod uneven;
mod words;

use serde::{Deserialize, Serialize};

use lapscope_data::model::{Completes, Nanos, Rank, Transfers};
use lapscope_data::symbols::FrameName;
use lapscope_measure::efficiency::Bounds;
use lapscope_measure::overlap::sums::is_vague;
use lapscope_measure::progress::MovedShare;
use lapscope_measure::reach::document::Reach;
use lapscope_measure::thresholds::LocalityThresholds;
use lapscope_measure::uneven::UnevenPattern;
use lapscope_predict::whatif::uneven::UnevenWorks;
use lapscope_trace::gpu::UPPER_BOUND;
use lapscope_trace::samples::RunSamples;
use lapscope_trace::stats::Interval;
use lapscope_trace::Locality;

pub use chain::Doing;
pub use gather::{Gathered, Gatherer};
pub use order::first_to_do;
pub use profile::{line_in_words, ComputesAdvice};
pub use uneven::UnevenAdvice;

/// From which size sends of a path wait for their receiver, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub locality: Locality,
    pub largest_eager: Option<u64>,
    pub smallest_waiting: Option<u64>,
    /// The MPI's own variable, with its value.
    pub variable: Option<(String, String)>,
}

impl Limit {
    pub fn from_thresholds(found: &LocalityThresholds) -> Limit {
        Limit {
            locality: found.locality,
            largest_eager: found.rendezvous.largest_eager_bytes,
            smallest_waiting: found.rendezvous.smallest_waiting_bytes,
            variable: found
                .declared
                .as_ref()
                .map(|declared| (declared.name.clone(), declared.value.clone())),
        }
    }

    /// The variable that decides that sends of all these sizes are copied while they are posted.
    fn copied_by(bytes: Option<(u64, u64)>, limits: &[Limit]) -> Option<&(String, String)> {
        let (_, largest) = bytes?;
        let covers = |limit: &&Limit| limit.largest_eager.is_some_and(|most| largest <= most);
        limits.iter().filter(covers).find_map(|limit| limit.variable.as_ref())
    }
}

/// What sentences depend on besides the time.
#[derive(Debug, Clone, Copy)]
pub struct AdviceContext<'a> {
    pub limits: &'a [Limit],
    /// lapscope was asked to make tests of its own.
    pub is_injected: bool,
    /// What of posts and waits could be moved, where buffers were watched.
    pub reach: Option<&'a Reach>,
    pub replayed: Replayed,
    /// What `lapscope doctor --progress` measured here; empty: nobody did.
    pub moved: &'a [MovedShare],
    /// Whose work makes others wait; `None`: not looked for.
    pub uneven: Option<&'a UnevenWorks>,
    /// At which instructions threads were found computing, where that was asked for.
    pub samples: &'a RunSamples,
}

/// What replays of the run say that cures gain, as shares of the run time; `None`: not known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replayed {
    /// Messages that move as soon as they can.
    pub progress: Option<f64>,
    /// Ranks that compute equally long.
    pub balance: Option<f64>,
    /// The error to reckon with.
    pub error: f64,
}

impl Replayed {
    fn for_cure(&self, cure: Cure) -> Option<Replay> {
        let gain = match cure {
            Cure::Test => self.progress,
            Cure::PartnerLate => self.balance,
            _ => None,
        }?;
        let error = self.error;
        Some(Replay { gain, is_gain: gain > least_gain(error), of_region: false, error, part: 1.0 })
    }

    /// Of ranks that compute equally long in all and not in each region, even work there alone gains, and that of all ranks nothing.
    fn within(&self, all: Option<Replay>, uneven: Option<&UnevenAdvice>) -> Option<Replay> {
        let of_region = uneven.and_then(|uneven| {
            let gain = uneven.gain.filter(|&gain| all.map_or(true, |all| gain > all.gain))?;
            let is_gain = gain > least_gain(self.error);
            Some(Replay { gain, is_gain, of_region: true, error: self.error, part: 1.0 })
        });
        of_region.or(all)
    }

    /// Messages stand still while a rank computes that everybody waits for anyway: tests there end nothing sooner, even work does.
    fn choose(&self, cure: Cure, cause: AdviceCause) -> Cure {
        let gains = |cure| self.for_cure(cure).map(|replay| replay.is_gain);
        let is_uneven = (gains(Cure::Test), gains(Cure::PartnerLate)) == (Some(false), Some(true));
        match (cure, cause) {
            (Cure::Test, AdviceCause::NoRemoteProgress) if is_uneven => Cure::PartnerLate,
            _ => cure,
        }
    }
}

/// What the replay of a cure gains, as shares of the run time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Replay {
    /// Negative: the run takes longer.
    pub gain: f64,
    /// Whether that is more than the error of the replay.
    pub is_gain: bool,
    /// Of even work in the region of [`Advice::uneven`] alone, which gains more than that of whole ranks.
    pub of_region: bool,
    pub error: f64,
    /// Of the time at stake with this cure, the part that this advice is about.
    pub part: f64,
}

/// A gain of less is none.
fn least_gain(error: f64) -> f64 {
    error.max(0.01)
}

/// What would help. The last four say that nothing in the communication would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cure {
    /// Ranks were able to run and had no processor.
    GiveProcessors,
    /// Call MPI_Test, or inject it, in a computation ([SP04] strategy 1).
    Test,
    /// Complete sends together with the receives, not one by one before them ([SP04] strategy 2).
    WaitTogether,
    /// Complete sends behind the receives, and behind what is computed with these.
    WaitBehind,
    PostReceiveEarlier,
    /// Wait behind what is computed without the data: they are needed later only ([SA06]).
    WaitLater,
    /// Post sends when their data are ready, which is earlier ([SA06]).
    PostEarlier,
    MakeNonblocking,
    /// Wait behind kernels that are started right after the wait, where these do not need its data.
    WaitAfterKernels,
    /// Post before kernels that run right before the post, where these do not make its data.
    StartBeforeKernels,
    /// One-sided calls wait until their target enters MPI, or receives until the sender of a copy does: tests there, or asynchronous
    /// progress.
    ProgressTarget,
    /// Call what others wait for before the computation that stands in front of it.
    CallEarlier,
    /// Posting takes long because messages are copied, which a limit decides.
    LowerLimit,
    /// Imbalance: the partner arrives late.
    PartnerLate,
    /// No computation lies beside the transfer.
    NothingToHideBehind,
    /// The transfer took much longer than it does alone, or there was computation enough beside it.
    SlowTransfer,
    /// Posting takes long, and no limit is known that would change it.
    ExpensivePosts,
}

impl Cure {
    /// Whether it holds only where kernels and messages do not need each other, which no record tells.
    pub fn is_for_independent_kernels(self) -> bool {
        matches!(self, Cure::WaitAfterKernels | Cure::StartBeforeKernels)
    }

    /// Whether there is something to do.
    pub fn helps(self) -> bool {
        use Cure::{ExpensivePosts, NothingToHideBehind, PartnerLate, SlowTransfer};
        !matches!(self, PartnerLate | NothingToHideBehind | SlowTransfer | ExpensivePosts)
    }
}

/// Why the time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdviceCause {
    LatePartner,
    NoRemoteProgress,
    NoLocalProgress,
    Transfer,
    NoProcessor,
    Posting,
}

/// One piece of advice. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
    pub cure: Cure,
    pub helps: bool,
    pub cause: AdviceCause,
    /// At stake, summed over ranks.
    pub time_ns: Nanos,
    /// The least and the most that it may be, as it hangs on how long transfers take undisturbed.
    pub time_low_ns: Nanos,
    pub time_high_ns: Nanos,
    /// Share of the run time of all ranks.
    pub share: f64,
    /// Where the time goes by: the call that waits, blocks or posts, and the ranks that do.
    pub waiting: CallSite,
    /// Call sites where that is.
    pub waiting_sites: usize,
    pub waiting_ranks: Vec<Rank>,
    /// Where the code would change: from one call to another, or one call alone.
    pub change: Vec<CallSite>,
    /// Another cure for the same time.
    pub or_test: Option<OrTest>,
    /// A cure for the same time that needs no change.
    pub or_copy: Option<OrCopy>,
    pub change_ranks: Vec<Rank>,
    /// Whether these are all ranks of a run of several.
    pub everywhere: bool,
    /// Ranks of the run.
    pub of_ranks: usize,
    /// Whether a rank that waits has a GPU that may have computed meanwhile: no more is at stake than is said.
    pub rests_on_upper_bound: bool,
    /// Whether all ranks that wait call MPI from several threads: what the others do meanwhile is not known.
    pub threaded: bool,
    /// The run replayed with this cure; `None`: not known.
    pub replay: Option<Replay>,
    /// What following it may save, as a share of the run time.
    pub predicted: Bounds,
    /// What following it saved, as a share of the run time; `None`: nobody has measured that.
    pub verified: Option<Interval>,
    /// Where the program computes between the calls that it says to test between, of this advice or of `or_test`; `None`: not
    /// known.
    pub computes: Option<ComputesAdvice>,
    /// Whose work is uneven, and where, of a partner that comes late; `None`: nobody's, or not known.
    pub uneven: Option<UnevenAdvice>,
    /// Where waits for ranks began that were inside MPI themselves.
    pub began: Option<Began>,
    /// What to do, shortest.
    pub headline: String,
    pub sentence: String,
    pub evidence: AdviceEvidence,
}

/// MPI_Test in the computation from a post to a completing call, where that saves most of what another cure does.
#[derive(Debug, Clone, Serialize)]
pub struct OrTest {
    pub change: [CallSite; 2],
    pub sentence: String,
}

/// Standard sends of up to so many bytes from copies, which lapscope makes.
#[derive(Debug, Clone, Serialize)]
pub struct OrCopy {
    /// For LAPSCOPE_BUFFER_SENDS.
    pub bytes: u64,
    pub sentence: String,
}

impl Advice {
    /// Whether its time is known to within a wide interval only, so that reference times would tell more.
    pub fn is_vague(&self) -> bool {
        is_vague(self.time_low_ns, self.time_high_ns)
    }

    /// Share of the run time of all ranks, the most that it may be where that is vague.
    pub fn share_at_most(&self) -> f64 {
        let factor = self.time_high_ns.share_of(self.time_ns);
        if self.is_vague() && self.time_ns.0 > 0 {
            self.share * factor
        } else {
            self.share
        }
    }

    /// Follows from the rest of it. What was waited for may be waited for elsewhere, so the least is nothing.
    pub fn predict(&mut self) {
        let most =
            if self.helps || self.cure == Cure::PartnerLate { self.win_at_most() } else { 0.0 };
        self.predicted = Bounds { low: 0.0, high: most.clamp(0.0, 1.0) };
    }

    /// Of the run time, the most that there is to win. A replay gains less than is at stake where waits move to other calls, and
    /// more where other ranks wait for those that wait here.
    pub fn win_at_most(&self) -> f64 {
        let stake = self.share_at_most();
        match (self.cure, self.replay) {
            // the replay changes all work of a rank alike; more may be won where it is uneven in one place
            (Cure::PartnerLate, Some(replay)) => stake.max(replay.gain),
            // more than is at stake by more than the replay is off
            (_, Some(replay)) if replay.gain * replay.part > stake + replay.error => {
                replay.gain * replay.part
            }
            (_, Some(replay)) => stake.min(replay.gain.max(0.0) + replay.error),
            (_, None) => stake,
        }
    }

    /// Whether ranks wait for each other though all compute equally long: even work would have shown in the replay, were it what
    /// is at stake.
    pub fn is_order(&self) -> bool {
        /// What is at stake has to be so many times what a replay can tell.
        const CLEARLY: f64 = 2.0;
        let would_show =
            |replay: Replay| self.share_at_most() >= CLEARLY * least_gain(replay.error);
        self.cure == Cure::PartnerLate
            && self.uneven.is_none()
            && self.replay.is_some_and(|replay| !replay.is_gain && would_show(replay))
    }

    /// Whether it is about the transfers of calls that block: as non-blocking ones they could overlap, if there is work that does not
    /// need their data, which nobody can see.
    pub fn is_blocking_transfer(&self) -> bool {
        let evidence = &self.evidence;
        self.cure == Cure::NothingToHideBehind
            && evidence.mean_compute_ns.is_none()
            && evidence.max_bytes > 0
    }

    /// Whether it says that ranks come late from more work than others have.
    pub fn says_uneven_work(&self) -> bool {
        let computing = self.evidence.late_partner_outside;
        self.cure == Cure::PartnerLate && computing.is_some_and(|computing| computing >= 0.5)
    }

    /// Whether one rank or another has more to do, so that less depends on it the less often they meet.
    pub fn is_by_turns(&self) -> bool {
        self.uneven.as_ref().is_some_and(|uneven| uneven.pattern == UnevenPattern::ByTurns)
    }

    /// Whether it is shown; the rest is left to the JSON.
    pub fn is_worth_reading(&self) -> bool {
        /// Least share of the run time.
        const LEAST_SHARE: f64 = 0.005;
        self.share_at_most() >= LEAST_SHARE
    }

    /// What is said behind its sentence: what else is known, and other cures for the same time.
    pub fn further_sentences(&self) -> impl Iterator<Item = &str> {
        let uneven = self.uneven.iter().map(|uneven| uneven.sentence.as_str());
        let or_test = self.or_test.iter().map(|other| other.sentence.as_str());
        let or_copy = self.or_copy.iter().map(|other| other.sentence.as_str());
        let computes = self.computes.iter().map(|computes| computes.sentence.as_str());
        let bound = self.rests_on_upper_bound.then_some(UPPER_BOUND);
        uneven.chain(or_test).chain(computes).chain(or_copy).chain(bound)
    }

    /// Whether what it changes are lines of Python.
    pub fn is_in_python(&self) -> bool {
        let first = self.change.first().unwrap_or(&self.waiting);
        first.site.as_ref().is_some_and(FrameName::is_python)
    }

    /// Whether tests, which can be injected, are the cure or would do as well.
    pub fn is_for_tests(&self) -> bool {
        self.cure == Cure::Test || self.or_test.is_some()
    }
}

/// The end of a chain of waits, each for the next.
#[derive(Debug, Clone, Serialize)]
pub struct Began {
    pub rank: Rank,
    pub doing: Doing,
    /// The call that the next one waited for.
    pub place: CallSite,
    /// Share of the waits that this is said of: those that began there.
    pub share: f64,
}

/// A call in the program, or the same call on several lines of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct CallSite {
    pub call: String,
    #[serde(skip)]
    pub transfers: Option<Transfers>,
    #[serde(skip)]
    pub completes: Option<Completes>,
    /// Where most of the time is.
    pub site: Option<FrameName>,
    /// The other lines of the function with that call, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_lines: Vec<u32>,
}

impl CallSite {
    /// Whether that is the same call in the same function.
    fn is_beside(&self, other: &CallSite) -> bool {
        let function =
            |place: &CallSite| place.site.as_ref().and_then(|site| site.function.clone());
        let is_same_function = function(self).is_some() && function(self) == function(other);
        self.call == other.call && (is_same_function || self.site == other.site)
    }
}

/// The numbers that a piece of advice follows from.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AdviceEvidence {
    /// Calls that waited, blocked or posted.
    pub calls: u64,
    /// Messages, smallest to largest.
    pub min_bytes: u64,
    pub max_bytes: u64,
    /// The time at stake by cause.
    pub exposed_late_partner_ns: Nanos,
    pub exposed_no_remote_progress_ns: Nanos,
    pub exposed_no_local_progress_ns: Nanos,
    pub exposed_transfer_ns: Nanos,
    pub exposed_no_processor_ns: Nanos,
    /// In posting calls.
    pub posting_ns: Nanos,
    /// Computation in the windows that would change, a mean per call.
    pub mean_compute_ns: Option<Nanos>,
    /// What the transfers of a call take one after the other with nothing in between, a mean where it is known.
    pub mean_reference_ns: Option<Nanos>,
    /// What late partners did meanwhile: fraction of that time outside MPI.
    pub late_partner_outside: Option<f64>,
    /// Mean waiting time of the waiting ranks and of those waited for, in the whole run.
    pub waited_ns: Nanos,
    pub partner_waited_ns: Option<Nanos>,
}
