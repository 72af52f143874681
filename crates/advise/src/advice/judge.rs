//! Turns what was gathered into advice: decides about late partners, names places, ranks by time.
//!
//! - A late partner is busy, and the work uneven, when it waits less than half as long for others in the whole run as
//!   the ranks that wait for it. One that was inside MPI meanwhile, or has time of its own to wait, could have posted
//!   its receive earlier.
//! - Ranks are named until they have 95 % of the time, so that a sentence is not about ranks that hardly matter.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::{Chains, Origin};
use super::finding::Finding;
use super::gather::Gathered;
use super::headline::headline;
use super::merge::{merge, Piece};
use super::reach::Moves;
use super::sums::{join_ranges, most, Late, Sums};
use super::{
    order, profile, uneven, words, Advice, AdviceCause, AdviceContext, AdviceEvidence, Began,
    CallSite, Cure, Limit, OrCopy, OrTest, UnevenAdvice,
};
use crate::starved::{crowded_first, give_processors};
use lapscope_data::model::{Nanos, Rank, RankInfo};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_measure::overlap::exposure::Exposure;
use lapscope_trace::gpu::exposed_is_upper_bound;
use lapscope_trace::Trace;

/// Advice on less than this fraction of the run time is left out.
const WORTH_LISTING: f64 = 0.001;
/// A post that takes less is not worth a sentence, nanoseconds.
const CHEAP_POST: i64 = 5_000;

/// From this share of the run time on ranks without a processor distort everything else; below it other processes now and then
/// took one, which is no fault of how the program was started.
const DISTORTS: f64 = 0.02;

impl Gathered {
    /// Advice on all that was gathered, in the order of [`order::sort`]. `run_time` is that of all ranks together.
    pub fn advise(
        mut self,
        trace: &Trace,
        setting: AdviceContext<'_>,
        run_time: Nanos,
        names: &mut dyn NameFrames,
    ) -> Vec<Advice> {
        self.waits.values_mut().for_each(|waits| waits.sort_unstable());
        let origins = Chains::new(&self.waits).origins();
        let infos: Vec<&RankInfo> = trace.ranks.iter().map(|rank| rank.info()).collect();
        let (crowded, processors) = (crowded_first(&infos), give_processors(&infos));
        let mut judge = Judge { trace, setting, run_time, names, origins, crowded, processors };
        let findings = judge_findings(&self, setting.limits, judge.copies_sends());
        let judged = Moves(setting.reach).take(findings);
        let pieces = merge(judged, &trace.places, judge.names);
        let least =
            |cure: Cure| if cure == Cure::GiveProcessors { DISTORTS } else { WORTH_LISTING };
        let is_worth =
            |piece: &&Piece| Nanos(piece.sums.time()).share_of(run_time) >= least(piece.cure);
        let worth = pieces.iter().filter(is_worth);
        let mut advice: Vec<Advice> = worth.map(|piece| judge.word(piece, &self)).collect();
        order::sort(&mut advice);
        uneven::say_once(&mut advice);
        profile::say_how(&mut advice, setting.samples);
        advice
    }
}

impl Sums {
    pub fn time(&self) -> i64 {
        self.parts.total() + self.posting
    }

    /// The computation in which tests would save most, if those would save most of the time.
    fn test_instead(&self) -> Option<(SiteId, SiteId)> {
        let all: i64 = self.or_test.values().copied().fold(0, i64::saturating_add);
        let most = self.or_test.iter().max_by_key(|(_, ns)| **ns).map(|(region, _)| *region);
        most.filter(|_| all.saturating_mul(2) >= self.time())
    }

    /// Whether most of these waits are for sends that may go from copies.
    fn may_be_copied(&self) -> bool {
        self.time() > 0 && self.standard_sends.saturating_mul(2) >= self.time()
    }

    /// Whether most of it was waited in calls that post, which a replay takes for their own time.
    fn is_in_posts(&self) -> bool {
        self.time() > 0 && self.in_posts.saturating_mul(2) >= self.time()
    }

    /// Behind what most of these waits could come, though that overlaps little of them.
    fn wait_behind(&self) -> Option<SiteId> {
        let all: i64 = self.behind.values().copied().fold(0, i64::saturating_add);
        most(&self.behind).filter(|_| all.saturating_mul(2) >= self.time())
    }
}

/// What would help against each finding. A late partner that hardly waits itself has more to do than others; one that was
/// inside MPI, or has time to wait, could have posted its receive earlier. `is_copying`: sends go from lapscope's copies, so that
/// posts show no limit of the MPI.
fn judge_findings(
    gathered: &Gathered,
    limits: &[Limit],
    is_copying: bool,
) -> BTreeMap<(Cure, Finding), Sums> {
    let mut judged: BTreeMap<(Cure, Finding), Sums> = BTreeMap::new();
    for (&finding, sums) in &gathered.findings {
        let cure = match finding {
            Finding::NoProcessor => Cure::GiveProcessors,
            Finding::Test(_) => Cure::Test,
            Finding::WaitTogether(..) => Cure::WaitTogether,
            Finding::WaitBehind(..) => Cure::WaitBehind,
            Finding::Target(_) => Cure::ProgressTarget,
            Finding::LateCall(..) => Cure::CallEarlier,
            Finding::Blocking(_) => Cure::MakeNonblocking,
            Finding::Nothing(_) => Cure::NothingToHideBehind,
            Finding::Slow(_) => Cure::SlowTransfer,
            Finding::Late(_) => Cure::PartnerLate,
            Finding::WaitLater(_) => Cure::WaitLater,
            Finding::PostEarlier(_) => Cure::PostEarlier,
            Finding::KernelsBehind(_) => Cure::WaitAfterKernels,
            Finding::KernelsBefore(..) => Cure::StartBeforeKernels,
            Finding::Posts(_) if sums.posting < CHEAP_POST * sums.calls as i64 => continue,
            Finding::Posts(_)
                if sums.sends && !is_copying && Limit::copied_by(sums.bytes, limits).is_some() =>
            {
                Cure::LowerLimit
            }
            Finding::Posts(_) => Cure::ExpensivePosts,
            Finding::LateReceive(waiting, _) => {
                for (&(own, partner), late) in &sums.pairs {
                    let to = if is_busy(gathered, own, partner) && late.outside * 2 >= late.ns {
                        (Cure::PartnerLate, Finding::Late(waiting))
                    } else {
                        (Cure::PostReceiveEarlier, finding)
                    };
                    let judged = judged.entry(to).or_default();
                    judged.add_pair((own, partner), late, waiting);
                    if sums.may_be_copied() {
                        judged.standard_sends += late.ns;
                    }
                    if sums.is_in_posts() {
                        judged.in_posts += late.ns;
                    }
                    if let Some(behind) = sums.wait_behind() {
                        *judged.behind.entry(behind).or_default() += late.ns;
                    }
                }
                continue;
            }
        };
        judged.entry((cure, finding)).or_default().merge(sums.clone());
    }
    judged
}

/// Whether `partner` waits so much less than `own` that it must have more to do.
pub(super) fn is_busy(gathered: &Gathered, own: u32, partner: u32) -> bool {
    let waited = |rank: u32| gathered.waited.get(&rank).copied().unwrap_or(0);
    waited(partner) * 2 < waited(own)
}

impl Sums {
    /// Adds what one rank waited for another.
    fn add_pair(&mut self, pair: (u32, u32), late: &Late, waiting: SiteId) {
        self.parts.late_partner += late.ns;
        self.add_bounds((late.ns, late.ns));
        self.calls += late.calls;
        self.bytes = join_ranges(self.bytes, late.bytes);
        *self.waiting.entry(waiting).or_default() += late.ns;
        *self.ranks.entry(pair.0).or_default() += late.ns;
        *self.change_ranks.entry(pair.1).or_default() += late.ns;
        self.pairs.entry(pair).or_default().add(late);
    }
}

/// The ranks with the most time, until they have nearly all of it, and those that are like them: the others are left out of
/// sentences.
fn most_of(ranks: &BTreeMap<u32, i64>) -> BTreeSet<u32> {
    const NEARLY_ALL: f64 = 0.95;
    let mut by_time: Vec<(u32, i64)> = ranks.iter().map(|(&rank, &ns)| (rank, ns)).collect();
    by_time.sort_by_key(|&(rank, ns)| (std::cmp::Reverse(ns), rank));
    let all: i64 = by_time.iter().map(|&(_, ns)| ns).fold(0, i64::saturating_add);
    let mut named = 0;
    let mut count = 0;
    for &(_, ns) in &by_time {
        let mean = named / i64::max(count, 1);
        if named as f64 >= NEARLY_ALL * all as f64 && (ns * 2 < mean || ns <= 0) {
            break;
        }
        named += ns;
        count += 1;
    }
    by_time.into_iter().take(count as usize).map(|(rank, _)| rank).collect()
}

/// Cures beside which it is worth a sentence that a wait could come later.
fn may_come_later(cure: Cure) -> bool {
    use Cure::{NothingToHideBehind, PartnerLate, PostReceiveEarlier, SlowTransfer, Test};
    matches!(cure, NothingToHideBehind | PartnerLate | PostReceiveEarlier | SlowTransfer | Test)
}

/// Cures of sends that wait until their receivers come. Where a receiver has more to do than others copies move the wait.
fn waits_for_receivers(cure: Cure) -> bool {
    use Cure::{MakeNonblocking, PostReceiveEarlier, WaitBehind, WaitTogether};
    matches!(cure, MakeNonblocking | PostReceiveEarlier | WaitBehind | WaitTogether)
}

struct Judge<'a> {
    trace: &'a Trace,
    setting: AdviceContext<'a>,
    run_time: Nanos,
    names: &'a mut dyn NameFrames,
    /// Where waits began, by the call that waited, as it is in the trace.
    origins: BTreeMap<SiteId, BTreeMap<Origin, i64>>,
    /// Ranks share processors: what to say first where their work is called uneven.
    crowded: Option<String>,
    /// Why they lack processors, as [`give_processors`] says it.
    processors: [String; 2],
}

impl Judge<'_> {
    fn word(&mut self, piece: &Piece, gathered: &Gathered) -> Advice {
        let Piece { finding, sums, sites, .. } = piece;
        let cure = self.setting.replayed.choose(piece.cure, sums.cause());
        let [first, second] = finding.sites();
        let waiting = self.place(most(&sums.waiting).or(first), &sums.waiting);
        let or_test = sums.test_instead().map(|(post, region)| {
            [post, region].map(|site| self.place(Some(site), &BTreeMap::new()))
        });
        let behind = sums
            .wait_behind()
            .filter(|_| may_come_later(cure))
            .map(|site| self.place(Some(site), &sums.behind));
        let change = match finding {
            Finding::Test(_) => vec![(most(&sums.posts), &sums.posts), (first, &sites[0])],
            Finding::LateReceive(..) if cure == Cure::PostReceiveEarlier => {
                vec![(second, &sites[1])]
            }
            _ => vec![(first, &sites[0]), (second, &sites[1])],
        };
        let named = change.into_iter().filter(|(site, _)| site.is_some());
        let change = named.map(|(site, all)| self.place(site, all)).collect();
        let waiting_ranks = most_of(&sums.ranks);
        let changed = most_of(&sums.change_ranks);
        let threaded = !waiting_ranks.is_empty() && waiting_ranks.is_subset(&gathered.threaded);
        let is_bound = |&rank: &u32| exposed_is_upper_bound(self.trace.ranks[rank as usize].info());
        let replay = self.setting.replayed.for_cure(cure).filter(|_| !sums.is_in_posts());
        let mut advice = Advice {
            cure,
            helps: cure.helps(),
            cause: sums.cause(),
            time_ns: Nanos(sums.time()),
            time_low_ns: Nanos(sums.bounds.0 + sums.posting),
            time_high_ns: Nanos(sums.bounds.1 + sums.posting),
            share: Nanos(sums.time()).share_of(self.run_time),
            waiting,
            waiting_sites: sums.waiting.len(),
            waiting_ranks: self.ranks(&waiting_ranks),
            change,
            or_test: None,
            or_copy: None,
            change_ranks: self.ranks(&changed),
            everywhere: changed.len() > 1 && changed.len() == self.trace.ranks.len(),
            of_ranks: self.trace.ranks.len(),
            rests_on_upper_bound: waiting_ranks.iter().any(is_bound),
            threaded,
            // even work and waits are those of a rank, not of its threads
            replay: replay.filter(|_| !threaded || cure != Cure::PartnerLate),
            predicted: super::Bounds::default(),
            verified: None,
            computes: None,
            uneven: None,
            began: self.began(&sums.waiting).filter(|_| cure == Cure::PartnerLate),
            headline: String::new(),
            sentence: String::new(),
            evidence: sums.evidence(&waiting_ranks, &changed, &gathered.waited),
        };
        if cure == Cure::PartnerLate && !threaded {
            let uneven = self.uneven(&sums.waiting);
            advice.uneven = uneven.filter(|uneven| uneven::is_awaited(&advice, uneven));
            advice.replay = self.setting.replayed.within(advice.replay, advice.uneven.as_ref());
        }
        let moves = Moves(self.setting.reach);
        advice.headline =
            moves.headline(finding).unwrap_or_else(|| headline(&advice, &self.processors[0]));
        let of_reach = moves.sentence(finding, &advice);
        advice.sentence = of_reach.unwrap_or_else(|| {
            words::sentence(&advice, sums.collective, self.setting, &self.processors[1])
        });
        advice.sentence += &moves.beside(finding, &sums.late_posts).unwrap_or_default();
        advice.sentence += &behind.map(|behind| words::wait_behind(&behind)).unwrap_or_default();
        if let Some(crowded) = self.crowded.as_ref().filter(|_| advice.says_uneven_work()) {
            advice.headline = format!("{crowded} {}", advice.headline);
            advice.sentence = format!("{crowded} {}", advice.sentence);
        }
        let is_copied = sums.may_be_copied() && waits_for_receivers(cure) && !self.copies_sends();
        advice.or_copy = is_copied.then(|| OrCopy {
            bytes: advice.evidence.max_bytes,
            sentence: words::or_copy(advice.evidence.max_bytes),
        });
        // of another cure it is others that would test, wherever they are
        let (posts, ranks) = match (cure, sums.test_instead()) {
            (Cure::Test, _) => (sums.posts.keys().copied().collect(), &advice.change_ranks[..]),
            (_, region) => (region.map(|(post, _)| post).into_iter().collect::<Vec<_>>(), &[][..]),
        };
        let (samples, places) = (self.setting.samples, &self.trace.places);
        advice.computes = profile::while_posted(
            samples,
            &posts,
            ranks,
            places,
            self.names,
            advice.is_in_python(),
        );
        advice.or_test = or_test.map(|change| OrTest {
            sentence: words::or_test(&advice, &change, self.setting),
            change,
        });
        advice
    }

    /// What is uneven where ranks were that these calls waited for.
    fn uneven(&mut self, waiting: &BTreeMap<SiteId, i64>) -> Option<UnevenAdvice> {
        let (works, error) = (self.setting.uneven?, self.setting.replayed.error);
        let (work, waits_share) = uneven::choose(works, waiting, error)?;
        let it = &work.unevenness;
        let (from, to) = work.region;
        let [from, to] =
            [from, to].map(|site| site.map(|site| self.place(Some(site), &BTreeMap::new())));
        let recorded_ns = Nanos(self.trace.run_ns());
        let less = |gain: f64| Nanos((recorded_ns.0 as f64 * (1.0 - gain)).round() as i64);
        let mut advice = UnevenAdvice {
            from,
            to,
            pattern: it.pattern,
            ranks: self.ranks(&it.slow.iter().map(|&place| place as u32).collect()),
            of_ranks: work.ranks.len(),
            visits: it.visits,
            uneven_visits: it.uneven_visits,
            same_share: it.same,
            slow_ns: it.slow_ns,
            others_ns: it.others_ns,
            factor: it.factor(),
            waits_share,
            gain: work.gain,
            run_ns: work.gain.map(less),
            sentence: String::new(),
        };
        advice.sentence = uneven::sentence(&advice, recorded_ns);
        Some(advice)
    }

    /// Whether the run was asked to send from copies: what waits all the same is not helped by more of them.
    fn copies_sends(&self) -> bool {
        self.trace.ranks.iter().any(|rank| rank.info().copied_sends.is_some())
    }

    /// Where the waits of these calls began, for the most part of them.
    fn began(&mut self, waiting: &BTreeMap<SiteId, i64>) -> Option<Began> {
        let mut origins: BTreeMap<Origin, i64> = BTreeMap::new();
        for (site, of_site) in &self.origins {
            if waiting.contains_key(site) {
                for (origin, ns) in of_site {
                    *origins.entry(*origin).or_default() += ns;
                }
            }
        }
        let all: i64 = origins.values().copied().fold(0, i64::saturating_add);
        let (origin, ns) = origins.into_iter().max_by_key(|&(_, ns)| ns)?;
        Some(Began {
            rank: self.trace.ranks[origin.rank as usize].info().rank,
            doing: origin.doing,
            place: self.place(Some(origin.site), &BTreeMap::new()),
            share: Nanos(ns).share_of(Nanos(all)),
        })
    }

    /// `among`: where else the same is.
    fn place(&mut self, site: Option<SiteId>, among: &BTreeMap<SiteId, i64>) -> CallSite {
        let places = &self.trace.places;
        let call = site.map(|site| places.call(site));
        let mut name_of = |site| Some(self.names.name(places.site(site).frame?).swap_remove(0));
        let name = site.and_then(&mut name_of);
        let is_beside = |other: &FrameName| {
            name.as_ref().is_some_and(|name| {
                (&name.function, &name.file) == (&other.function, &other.file)
                    && name.line != other.line
            })
        };
        let call_of = |site| places.site(site).call;
        let is_same_call = |other| site.is_some_and(|site| call_of(site) == call_of(other));
        let same_call = among.keys().filter(|&&other| is_same_call(other));
        let others = same_call.filter_map(|&other| name_of(other)).filter(is_beside);
        let other_lines: BTreeSet<u32> = others.filter_map(|other| other.line).collect();
        CallSite {
            call: call.map(|call| call.name.clone()).unwrap_or_default(),
            transfers: call.and_then(|call| call.transfers),
            completes: call.and_then(|call| call.completes),
            site: name,
            other_lines: other_lines.into_iter().collect(),
        }
    }

    fn ranks(&self, places: &BTreeSet<u32>) -> Vec<Rank> {
        places.iter().map(|&place| self.trace.ranks[place as usize].info().rank).collect()
    }
}

impl Sums {
    fn cause(&self) -> AdviceCause {
        let Exposure {
            late_partner,
            no_remote_progress,
            no_local_progress,
            transfer,
            no_processor,
            beside_gpu: _,
        } = self.parts;
        let causes = [
            (late_partner, AdviceCause::LatePartner),
            (no_remote_progress, AdviceCause::NoRemoteProgress),
            (no_local_progress, AdviceCause::NoLocalProgress),
            (transfer, AdviceCause::Transfer),
            (no_processor, AdviceCause::NoProcessor),
            (self.posting, AdviceCause::Posting),
        ];
        let largest = causes.into_iter().rev().max_by_key(|(ns, _)| *ns);
        largest.map_or(AdviceCause::Transfer, |(_, cause)| cause)
    }

    fn evidence(
        &self,
        waiting: &BTreeSet<u32>,
        changed: &BTreeSet<u32>,
        waited: &BTreeMap<u32, i64>,
    ) -> AdviceEvidence {
        let mean = |ranks: &BTreeSet<u32>| {
            let sum: i64 = ranks
                .iter()
                .filter_map(|rank| waited.get(rank))
                .copied()
                .fold(0, i64::saturating_add);
            Nanos(sum).mean(ranks.len() as u64)
        };
        let (late, outside) =
            self.pairs.values().fold((0, 0), |sum, late| (sum.0 + late.ns, sum.1 + late.outside));
        let (min_bytes, max_bytes) = self.bytes.unwrap_or_default();
        AdviceEvidence {
            calls: self.calls,
            min_bytes,
            max_bytes,
            exposed_late_partner_ns: Nanos(self.parts.late_partner),
            exposed_no_remote_progress_ns: Nanos(self.parts.no_remote_progress),
            exposed_no_local_progress_ns: Nanos(self.parts.no_local_progress),
            exposed_transfer_ns: Nanos(self.parts.transfer),
            exposed_no_processor_ns: Nanos(self.parts.no_processor),
            posting_ns: Nanos(self.posting),
            mean_compute_ns: Nanos(self.compute).mean(self.windows),
            mean_reference_ns: Nanos(self.transfer).mean(self.transfers),
            late_partner_outside: (late > 0).then(|| outside as f64 / late as f64),
            waited_ns: mean(waiting).unwrap_or_default(),
            partner_waited_ns: mean(changed).filter(|_| !self.pairs.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_named_until_they_have_nearly_all_of_the_time() {
        let named = |times: &[i64]| -> Vec<u32> {
            most_of(&(0..).zip(times.iter().copied()).collect()).into_iter().collect()
        };
        assert_eq!(named(&[96, 4]), [0]);
        assert_eq!(named(&[4, 90, 6]), [1, 2]);
        assert_eq!(named(&[25, 25, 25, 25]), [0, 1, 2, 3]);
        assert_eq!(named(&[10; 40]).len(), 40, "all alike: none is left out");
        assert!(named(&[]).is_empty());
    }

    #[test]
    fn busy_is_who_waits_much_less() {
        let gathered =
            Gathered { waited: [(0, 100), (1, 49), (2, 50)].into(), ..Gathered::default() };
        assert!(is_busy(&gathered, 0, 1) && is_busy(&gathered, 0, 3));
        assert!(!is_busy(&gathered, 0, 2) && !is_busy(&gathered, 1, 0));
    }

    #[test]
    fn a_limit_covers_messages_that_are_copied() {
        let limit = |largest, name: &str| Limit {
            locality: lapscope_trace::Locality::Node,
            largest_eager: largest,
            smallest_waiting: None,
            variable: Some((name.into(), "4096".into())),
        };
        let limits = [limit(None, "a"), limit(Some(4096), "b")];
        let name = |bytes| Limit::copied_by(Some(bytes), &limits).map(|(name, _)| name.as_str());
        assert_eq!(name((1, 4096)), Some("b"));
        assert_eq!(name((1, 4097)), None);
    }
}
