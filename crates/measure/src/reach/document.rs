//! What is said of the reach of a run, site by site.

use serde::Serialize;

use super::bounds::LEAST_REQUESTS;
use super::gain;
use super::network::Network;
use super::pairs::{Pairs, Profiles};
use super::room::MoveRoom;
use super::site::{CopiedBy, Movability, Note, ProgramCall, SiteReach, WaitReach, Worth};
use super::sites::{group, Copied, SiteWatches};
use super::transfers::Transfers;
use super::waits;
use super::who::Who;
use crate::overlap::Measured;
use crate::reference::Reference;
use lapscope_data::model::{Nanos, Side, Toucher};
use lapscope_data::places::{Places, SiteId};
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::watched::{RankWatcher, RunWatches};
use lapscope_trace::Trace;

/// The reach of a run in which buffers were watched. Keys are documented in `docs/json.md`. Times of reach are those of the
/// program outside MPI.
#[derive(Debug, Serialize)]
pub struct Reach {
    /// What all completing and blocking calls took, summed over ranks.
    pub exposed_ns: Nanos,
    /// What moving posts and waits could save at most: no more than that.
    pub recoverable_ns: Nanos,
    /// Calls that complete receives, with what all of these allow; what moving them could save most first.
    pub waits: Vec<WaitReach>,
    /// Posts and blocking calls whose buffers were watched; where most was waited first.
    pub sites: Vec<SiteReach>,
    pub site_count: usize,
    /// Verdicts on all sites, in the order of `sites`: those that are left out where only the first are shown count, too.
    #[serde(skip)]
    pub verdicts: Vec<Movability>,
    /// Who sends what to whom; `None` where no message of these sites was matched.
    pub pairs: Option<Pairs>,
}

/// What a run is known by besides its watches.
#[derive(Debug, Clone, Copy)]
pub struct ReachInputs<'a> {
    pub trace: &'a Trace,
    pub reference: &'a Reference,
    pub measured: &'a Measured,
    /// Networks that are asked for, besides those of the tables.
    pub networks: &'a [Network],
}

impl Reach {
    /// The reach of what was watched. `None`: nothing was.
    pub fn of_watches(
        watches: RunWatches,
        known: ReachInputs<'_>,
        names: &mut dyn NameFrames,
    ) -> Option<Reach> {
        if watches.buffers.is_empty() {
            return None;
        }
        /// A hit costs about that where it was not measured.
        const USUAL_HIT: Nanos = Nanos(10_000);
        let nearest = watches.hit().unwrap_or(USUAL_HIT);
        let RunWatches { ranks, buffers } = watches;
        let transfers = Transfers::measure(known.trace, known.reference, known.measured);
        let groups = group(buffers, nearest.0 as f64);
        let places = &*known.trace.places;
        let mut namer = Namer { places, ranks: &ranks, who: Who::new(places, names) };
        let gains = gain::of_groups(&groups, &transfers, nearest);
        let mut sites: Vec<SiteReach> =
            groups.iter().zip(gains).map(|(group, gain)| namer.site(group, gain)).collect();
        sites.sort_by(|a, b| {
            let place = |site: &SiteReach| (site.place.id, site.side, site.min_bytes);
            b.worth.at_stake().cmp(&a.worth.at_stake()).then_with(|| place(a).cmp(&place(b)))
        });
        let waits = waits::of_sites(&sites, &transfers, nearest, &mut |id| namer.place(id));
        let exposed_ns = transfers.exposed_in_all();
        let recoverable_ns = gain::in_all(&sites, &waits).min(exposed_ns);
        let ReachInputs { trace, reference, networks, .. } = known;
        let pairs = Pairs::build(trace, reference, &Profiles::from_sites(&sites), networks, names);
        let verdicts = sites.iter().map(|site| site.verdict).collect();
        let site_count = sites.len();
        Some(Reach { exposed_ns, recoverable_ns, waits, sites, site_count, verdicts, pairs })
    }

    /// How far a replay may move the calls of each site: what is certain of all that it sends or receives, whatever its size.
    pub fn room(&self) -> MoveRoom {
        let mut room = MoveRoom::default();
        for site in self.sites.iter().filter(|site| site.is_request) {
            let Some(all) = site.all else { continue };
            let of_side = match site.side {
                Side::Receive => &mut room.first_touch,
                Side::Send => &mut room.last_write,
            };
            let ns = of_side.entry(site.place.id).or_insert(i64::MAX);
            *ns = (*ns).min(all.low as i64);
        }
        room
    }

    /// Leaves out all but the first sites.
    pub fn truncate(&mut self, most: usize) {
        if most > 0 {
            self.sites.truncate(most);
            self.waits.truncate(most);
            for wait in &mut self.waits {
                wait.first = wait.first.filter(|&site| site < most);
            }
            if let Some(pairs) = &mut self.pairs {
                pairs.rows.truncate(most);
            }
        }
    }
}

/// Gives sites their names.
struct Namer<'a> {
    places: &'a Places,
    ranks: &'a [RankWatcher],
    who: Who<'a>,
}

impl Namer<'_> {
    fn place(&mut self, id: SiteId) -> ProgramCall {
        let site = self.places.site(id).frame.map(|frame| self.who.frame(frame));
        ProgramCall { id, call: self.places.call(id).name.clone(), site }
    }

    fn site(&mut self, group: &SiteWatches, (worth, verdict): (Worth, Movability)) -> SiteReach {
        let (min_bytes, max_bytes) = group.bytes();
        let is_request = group.buffers.iter().any(|buffer| buffer.is_request);
        let completing = group.completing().filter(|_| is_request);
        SiteReach {
            place: self.place(group.id),
            side: group.side,
            is_request,
            completed_in: completing.map(|id| self.place(id)),
            min_bytes,
            max_bytes,
            ranks: group.ranks().len() as u64,
            buffers: group.buffers.len() as u64,
            words: group.words().count() as u64,
            all: group.found.all,
            half: group.found.half,
            word: group.found.word,
            order: group.found.order,
            touchers: self.who.touched(&group.touches()),
            copies: self.copies(group),
            all_with_copy: group.copied.all,
            half_with_copy: group.copied.half,
            worth,
            verdict,
            notes: self.notes(group),
        }
    }

    /// Instructions of one line are one.
    fn copies(&mut self, group: &SiteWatches) -> Vec<CopiedBy> {
        let mut lines: Vec<(Option<FrameName>, Vec<FrameName>, Copied)> = Vec::new();
        for (by, copied) in group.copies() {
            let (site, frames) = self.who.instruction(by, Toucher::Program);
            let label = |site: &Option<FrameName>| site.as_ref().map(FrameName::short);
            match lines.iter_mut().find(|(known, ..)| label(known) == label(&site)) {
                Some((_, _, sum)) => sum.merge(copied),
                None => lines.push((site, frames, copied)),
            }
        }
        lines.sort_by_key(|(_, _, copied)| std::cmp::Reverse(copied.words));
        let line = |(site, frames, copied): (_, _, Copied)| {
            let touchers = self.who.touched(&copied.touches);
            CopiedBy { site, frames, words: copied.words, all: copied.median(), touchers }
        };
        lines.into_iter().map(line).collect()
    }

    fn notes(&self, group: &SiteWatches) -> Vec<Note> {
        let (counts, words) = (group.counts(), group.words().count().max(1) as f64);
        let requests = group.buffers.len() as u64;
        let ranks = group.ranks();
        let others = self.ranks.iter().filter(|it| it.others_may_touch && ranks.contains(&it.rank));
        let share = |count: u64| count as f64 / words;
        let needed = LEAST_REQUESTS as u64;
        let told = [
            (requests < needed, Note::TooFew { requests, needed }),
            (
                others.clone().next().is_some(),
                Note::OthersMayTouch { ranks: others.count() as u64 },
            ),
            (counts.on_stack > 0, Note::OnStack { share: share(counts.on_stack) }),
            (counts.sparse > 0, Note::Sparse { share: share(counts.sparse) }),
            (counts.often > 0, Note::Often { share: share(counts.often) }),
            (
                counts.untouched > 0,
                Note::Untouched { share: share(counts.untouched), reused: share(counts.reused) },
            ),
            (
                group.found.tenth.is_some(),
                Note::Differ { tenth_ns: group.found.tenth.unwrap_or_default() },
            ),
            (requests >= needed && !group.found.order.is_known(), Note::NoOrder),
        ];
        told.into_iter().filter(|(is_true, _)| *is_true).map(|(_, note)| note).collect()
    }
}
