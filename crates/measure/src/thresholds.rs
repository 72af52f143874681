//! From which size on sends wait for their receiver: the posting call itself, the completion for the receiver to be inside
//! MPI, and the completion for the receive; per message, or by the bytes on their way to a receiver.

mod apart;
mod cells;
mod collect;
mod cumulative;
mod declared;
mod evidence;
mod slack;
mod split;

use serde::{Deserialize, Serialize};

use crate::reference::Reference;
use cells::{Cells, SizeCell};
pub(crate) use collect::Margins;
pub use cumulative::{Cumulative, CumulativeVerdict};
pub use declared::{limit_variable, Declared, DeclaredBy, Governing};
use evidence::{Completion, PostOutcome};
use lapscope_data::model::Rank;
use lapscope_trace::{Locality, Trace};
use split::{split, Split, SplitRow};

/// The limit lies between sizes farther apart than this: other sizes have to be tried.
const WIDE: u64 = 4;
/// Sends that were done as soon as the receiver was inside MPI tell of a limit of their own from this many and this share
/// of those done without a receive.
const FEW_AFTER_PROGRESS: u64 = 2;
const SHARE_AFTER_PROGRESS: f64 = 0.02;
/// Sends that waited for their receive and nothing else tell what the others waited for when they are more than this share
/// of them.
const SHARE_CERTAIN: f64 = 0.02;

/// What is known of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// It lies between the two sizes.
    Bracket,
    /// As `Bracket`, but they are far apart.
    NotEnoughSizes,
    /// It lies above all sizes that were sent, if there is one.
    AlwaysEager,
    /// It lies below all sizes that were sent.
    AlwaysWaits,
    /// Some messages waited and some did not, and size does not tell which.
    Unclear,
    /// No message showed anything, or too few.
    NoEvidence,
}

/// A limit, in bytes, and what speaks for it.
#[derive(Debug, Clone, Serialize)]
pub struct Threshold {
    pub verdict: LimitVerdict,
    pub largest_eager_bytes: Option<u64>,
    pub smallest_waiting_bytes: Option<u64>,
    /// Messages up to the first size that did not wait; from the second on that did.
    pub eager: u64,
    pub waiting: u64,
    /// Messages of such sizes that did the contrary.
    pub contradictions: u64,
    /// Messages of sizes in between, which say both or are too few.
    pub unsettled: u64,
    /// The limit in words, empty until somebody writes it.
    pub sentence: String,
    /// What to do to know more; `None` when enough is known, or until somebody says it.
    #[serde(rename = "try")]
    pub next: Option<String>,
}

/// What a send that is not complete waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// For its receive to be posted.
    Receive,
    /// For the receive, or only for the receiver to be inside MPI: receivers always did both at once.
    Receiver,
}

/// Messages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeCounts {
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// MPI_Isend returned before the receiver was there; only then.
    pub post_returned: u64,
    pub post_waited: u64,
    /// Complete before the receiver was inside MPI.
    pub early: u64,
    /// The same, though its receive was posted already.
    pub without_receiver_progress: u64,
    /// Complete without a receive, while or after the receiver was inside MPI.
    pub eager: u64,
    /// The same, and not before the receiver was inside MPI.
    pub after_receiver_progress: u64,
    /// Complete without a receive and not at once, while no record says that the receiver was inside MPI.
    pub unseen: u64,
    /// Complete only when the receiver was inside MPI with the receive posted.
    pub waited_for_receiver: u64,
    /// Complete only when the receive was posted, though the receiver had been inside MPI before.
    pub waited_for_receive: u64,
}

impl SizeCounts {
    /// Adds messages of larger sizes.
    pub fn merge(&mut self, other: &SizeCounts) {
        self.to_bytes = other.to_bytes;
        self.post_returned += other.post_returned;
        self.post_waited += other.post_waited;
        self.early += other.early;
        self.without_receiver_progress += other.without_receiver_progress;
        self.eager += other.eager;
        self.after_receiver_progress += other.after_receiver_progress;
        self.unseen += other.unseen;
        self.waited_for_receiver += other.waited_for_receiver;
        self.waited_for_receive += other.waited_for_receive;
    }
}

/// The limits between processes of one kind of neighbourhood.
#[derive(Debug, Clone, Serialize)]
pub struct LocalityThresholds {
    pub locality: Locality,
    pub post: Threshold,
    /// From which size on the completion needs the receiver to be inside MPI, whatever it does there.
    pub needs_receiver_progress: Threshold,
    /// From which size on the completion waits for the receive.
    pub rendezvous: Threshold,
    pub waits_for: WaitsFor,
    pub cumulative: Cumulative,
    /// What MPI itself says of `rendezvous`.
    pub declared: Option<Governing>,
    pub sizes: Vec<SizeCounts>,
}

/// The limits of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Thresholds {
    pub localities: Vec<LocalityThresholds>,
    /// Limits that MPI's control variables or the environment declare.
    pub declared: Vec<Declared>,
    /// What is worth saying of them, the most important first; empty until somebody does.
    pub sentences: Vec<String>,
}

impl Thresholds {
    /// From the messages that `ranks` sent in all of the run, of all ranks when there are none.
    pub fn find(
        trace: &Trace,
        reference: &Reference,
        ranks: &[Rank],
        declared: Vec<Declared>,
    ) -> Thresholds {
        ThresholdEvidence::collect(trace, reference, ranks, false).thresholds(trace, declared)
    }
}

/// What the messages of some ranks show; what is merged in any order comes to the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ThresholdEvidence(collect::ByLocality);

impl ThresholdEvidence {
    /// Collects from messages that `ranks` of the trace's focus sent, all of them when there are none; of the whole run, or
    /// `in_stretch`.
    pub fn collect(
        trace: &Trace,
        reference: &Reference,
        ranks: &[Rank],
        in_stretch: bool,
    ) -> ThresholdEvidence {
        ThresholdEvidence(collect::collect(trace, reference, ranks, in_stretch))
    }

    #[must_use]
    pub fn merge(self, other: ThresholdEvidence) -> ThresholdEvidence {
        ThresholdEvidence(collect::merge(self.0, other.0))
    }

    /// What all of it says.
    pub fn thresholds(&self, trace: &Trace, declared: Vec<Declared>) -> Thresholds {
        let library = trace.ranks.first().map_or("", |rank| rank.info().mpi_library.as_str());
        let of_locality = |(&locality, cells)| of_locality(locality, cells, library, &declared);
        let localities: Vec<LocalityThresholds> = self.0.iter().map(of_locality).collect();
        Thresholds { localities, declared, sentences: Vec::new() }
    }
}

/// Sends that did not wait for their receive.
const BEFORE_RECEIVE: [Completion; 4] =
    [Completion::Early, Completion::Eager, Completion::AfterReceiverProgress, Completion::Unseen];
/// Those of them that were not done at once: they may have needed the receiver inside MPI.
const NOT_AT_ONCE: [Completion; 2] = [Completion::AfterReceiverProgress, Completion::Unseen];
/// Sends that did not wait for the receiver to be inside MPI.
const BEFORE_RECEIVER: [Completion; 2] = [Completion::Early, Completion::WithoutReceiverProgress];
/// Sends that waited, whatever for.
const WAITED: [Completion; 2] = [Completion::WaitedForReceive, Completion::WaitedForReceiver];

/// Which messages count, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThresholdView {
    /// For the receive. Sends that were done while a receiver who had posted was computing count as eager, or not at all.
    Rendezvous { with_no_progress: bool },
    /// For the receiver to be inside MPI.
    ReceiverProgress,
}

impl ThresholdView {
    fn row(self, cell: &SizeCell) -> SplitRow {
        let (eager, waited) = match self {
            ThresholdView::Rendezvous { with_no_progress: true } => {
                let without_receiver_progress =
                    cell.completion(&[Completion::WithoutReceiverProgress]);
                (
                    cell.completion(&BEFORE_RECEIVE) + without_receiver_progress,
                    cell.completion(&WAITED),
                )
            }
            ThresholdView::Rendezvous { with_no_progress: false } => {
                (cell.completion(&BEFORE_RECEIVE), cell.completion(&WAITED))
            }
            ThresholdView::ReceiverProgress => {
                let after_receiver_progress = cell.completion(&[Completion::AfterReceiverProgress]);
                (
                    cell.completion(&BEFORE_RECEIVER),
                    cell.completion(&WAITED) + after_receiver_progress,
                )
            }
        };
        SplitRow { sizes: cell.bytes, eager, waited }
    }

    fn rows(self, cells: &[SizeCell]) -> Vec<SplitRow> {
        cells.iter().map(|cell| self.row(cell)).filter(|row| row.total() > 0).collect()
    }

    fn split(self, cells: &[SizeCell]) -> Split {
        split(&self.rows(cells))
    }
}

/// Whether sends need the receiver inside MPI at sizes at which they do not wait for their receive.
pub fn progress_differs(found: &LocalityThresholds) -> bool {
    let (progress, rendezvous) = (&found.needs_receiver_progress, &found.rendezvous);
    match (progress.smallest_waiting_bytes, rendezvous.largest_eager_bytes) {
        (Some(from), Some(eager)) => from <= eager,
        _ => false,
    }
}

fn of_locality(
    locality: Locality,
    cells: &Cells,
    library: &str,
    declared: &[Declared],
) -> LocalityThresholds {
    let together: Vec<SizeCell> = cells.iter().copied().collect();
    let sizes = by_size(&together);
    let progress = ThresholdView::ReceiverProgress.split(&sizes);
    let is_apart = is_apart(&sizes);
    let (rendezvous, cumulative) = if is_apart {
        (
            apart::split(&sizes, progress.largest_eager),
            cumulative::find(&together, ThresholdView::ReceiverProgress),
        )
    } else {
        let view = choose_view(&sizes);
        let cumulative = cumulative::find(&together, view);
        (rendezvous_of_one(&together, &sizes, view, &cumulative), cumulative)
    };
    let rendezvous = rendezvous.of_several();
    // far above the limit another protocol may be at work, which tells nothing of this one
    let near = rendezvous.smallest_waiting.map_or(u64::MAX, |limit| limit.saturating_mul(WIDE));
    let is_near = |cell: &&SizeCell| cell.bytes.least <= near;
    let count = |evidence| {
        sizes.iter().filter(is_near).map(|cell| cell.completion(&[evidence])).sum::<u64>()
    };
    let (receive, receiver) =
        (count(Completion::WaitedForReceive), count(Completion::WaitedForReceiver));
    let is_certain = is_apart || receive as f64 > SHARE_CERTAIN * receiver as f64;
    let post: Vec<SplitRow> = sizes
        .iter()
        .map(|cell| SplitRow {
            sizes: cell.bytes,
            eager: cell.post(PostOutcome::Returned),
            waited: cell.post(PostOutcome::Waited),
        })
        .filter(|row| row.total() > 0)
        .collect();
    let mut found = LocalityThresholds {
        locality,
        post: threshold(&split(&post).of_several()),
        needs_receiver_progress: threshold(&progress.of_several()),
        rendezvous: threshold(&rendezvous),
        waits_for: if is_certain { WaitsFor::Receive } else { WaitsFor::Receiver },
        cumulative,
        declared: None,
        sizes: sizes.iter().map(size_counts).collect(),
    };
    found.declared = declared::governing(&found, library, declared);
    found
}

/// The limit of a message by itself: one that waited because of others says nothing of its own size.
fn rendezvous_of_one(
    together: &[SizeCell],
    sizes: &[SizeCell],
    view: ThresholdView,
    cumulative: &Cumulative,
) -> Split {
    match cumulative.largest_eager_bytes {
        Some(most) if cumulative.verdict == CumulativeVerdict::Cumulative => {
            let is_free =
                |cell: &&SizeCell| cell.together.most <= most || cell.together == cell.bytes;
            let free: Vec<SizeCell> = together.iter().filter(is_free).copied().collect();
            view.split(&by_size(&free))
        }
        _ => view.split(sizes),
    }
}

/// Cells of one size put together, in ascending order.
fn by_size(cells: &[SizeCell]) -> Vec<SizeCell> {
    let mut sizes: Vec<SizeCell> = Vec::new();
    for cell in cells {
        match sizes.last_mut() {
            Some(last) if cell.bytes.least <= last.bytes.most => last.merge(cell),
            _ => sizes.push(*cell),
        }
    }
    sizes
}

/// Whether sends were seen to be done later than at once, and yet without a receive.
fn is_apart(sizes: &[SizeCell]) -> bool {
    let count =
        |evidence: &[Completion]| sizes.iter().map(|cell| cell.completion(evidence)).sum::<u64>();
    let (later, all) = (count(&NOT_AT_ONCE), count(&BEFORE_RECEIVE));
    later >= FEW_AFTER_PROGRESS && later as f64 >= SHARE_AFTER_PROGRESS * all as f64
}

/// Sends that were done while a receiver who had posted was computing are left out where they contradict the others: then
/// somebody else moves messages, and they say nothing of who waits for a receive.
fn choose_view(sizes: &[SizeCell]) -> ThresholdView {
    let (all, certain) = (
        ThresholdView::Rendezvous { with_no_progress: true },
        ThresholdView::Rendezvous { with_no_progress: false },
    );
    let (with, without) = (all.split(sizes), certain.split(sizes));
    let share = |split: &Split| split.contradictions as f64 / split.evidence().max(1) as f64;
    let is_better = share(&with) > 0.05 && share(&without) < share(&with) / 2.0;
    if is_better && without.smallest_waiting.is_some() {
        certain
    } else {
        all
    }
}

fn threshold(split: &Split) -> Threshold {
    let verdict = match (split.largest_eager, split.smallest_waiting) {
        _ if split.is_unclear => LimitVerdict::Unclear,
        (None, None) => LimitVerdict::NoEvidence,
        (Some(_), None) => LimitVerdict::AlwaysEager,
        (None, Some(_)) => LimitVerdict::AlwaysWaits,
        (Some(low), Some(high)) if high > WIDE * low.max(WIDE * WIDE) => {
            LimitVerdict::NotEnoughSizes
        }
        _ => LimitVerdict::Bracket,
    };
    Threshold {
        verdict,
        largest_eager_bytes: split.largest_eager,
        smallest_waiting_bytes: split.smallest_waiting,
        eager: split.eager,
        waiting: split.waiting,
        contradictions: split.contradictions,
        unsettled: split.unsettled,
        sentence: String::new(),
        next: None,
    }
}

fn size_counts(cell: &SizeCell) -> SizeCounts {
    let count = |evidence| cell.completion(&[evidence]);
    SizeCounts {
        from_bytes: cell.bytes.least,
        to_bytes: cell.bytes.most,
        post_returned: cell.post(PostOutcome::Returned),
        post_waited: cell.post(PostOutcome::Waited),
        early: count(Completion::Early),
        without_receiver_progress: count(Completion::WithoutReceiverProgress),
        eager: count(Completion::Eager),
        after_receiver_progress: count(Completion::AfterReceiverProgress),
        unseen: count(Completion::Unseen),
        waited_for_receiver: count(Completion::WaitedForReceiver),
        waited_for_receive: count(Completion::WaitedForReceive),
    }
}
