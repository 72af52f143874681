//! What one call waited for: the requests that it completed, taken together.

use super::exposure::{BesideGpu, Exposure, ExposureBounds, Partner, Starved, Wait};
use super::side::{Culprit, OtherSide, Sides};
use crate::reference::Estimate;
use lapscope_trace::{DeviceTime, Direction, Half, Past};

/// Calls shorter than this waited for nobody, nanoseconds.
const SHORT_WAIT: i64 = 1_000;
/// Requests of one call whose other sides' absences are looked at.
const MOST_SIDES: usize = 16;

/// What one call waited for, put together from the requests that it completed.
pub(super) struct WaitingCall<'a> {
    pub wait: Wait,
    /// Most computation in one window, and what transfers could have overlapped with it.
    pub compute: i64,
    possible_overlap: i64,
    /// The same and what its transfers take, when all take the least that they may, and when all take the most.
    quickest: Taken,
    slowest: Taken,
    critical: Option<Critical<'a>>,
    /// Other sides whose absences may explain the call, and their requests.
    sides: Vec<(u32, OtherSide<'a>)>,
    /// The request whose transfer takes longest, and how long.
    pub longest: (i64, u32),
}

/// What the transfers of a call take one after the other, and its possible overlap by computation in their overlap windows.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    transfer: i64,
    possible_overlap: i64,
}

impl Taken {
    fn add(&mut self, transfer: i64, window: i64) {
        self.transfer = self.transfer.saturating_add(transfer);
        self.possible_overlap = self.possible_overlap.saturating_add(transfer.min(window));
    }
}

/// The request that could be completed last.
struct Critical<'a> {
    /// Index in the endpoints of its rank.
    half: u32,
    since: i64,
    culprit: Culprit<'a>,
}

impl<'a> WaitingCall<'a> {
    pub fn new(begin: i64, end: i64) -> WaitingCall<'a> {
        WaitingCall {
            wait: Wait { begin, end, ..Wait::default() },
            compute: 0,
            possible_overlap: 0,
            quickest: Taken::default(),
            slowest: Taken::default(),
            critical: None,
            sides: Vec::new(),
            longest: (i64::MIN, 0),
        }
    }

    pub fn is_worth_it(&self) -> bool {
        self.wait.end - self.wait.begin >= SHORT_WAIT
    }

    /// A transfer of which nothing is known may take any time.
    pub fn add(&mut self, half: &Half<'_>, transfer: Option<Estimate>, ready_compute: i64) {
        let alone = transfer.map_or(0, |estimate| estimate.ns);
        let window = if half.operation.direction == Direction::None { 0 } else { ready_compute };
        self.quickest.add(transfer.map_or(0, |estimate| estimate.low_ns), window);
        self.slowest.add(transfer.map_or(i64::MAX, |estimate| estimate.high_ns), window);
        self.wait.transfer = self.wait.transfer.saturating_add(alone);
        if alone > self.longest.0 {
            self.longest = (alone, half.index as u32);
        }
        if half.operation.direction != Direction::None {
            self.compute = self.compute.max(ready_compute);
            let possible_overlap =
                transfer.map_or(i64::MAX, |estimate| estimate.ns).min(ready_compute);
            self.possible_overlap = self.possible_overlap.saturating_add(possible_overlap);
        }
    }

    /// Considers the other side of a request as that which the call waited for: the one that was there last, among those
    /// that were there before the call ended.
    pub fn offer(&mut self, sides: Sides<'a>, half: &Half<'a>, side: Option<OtherSide<'a>>) {
        let Some(side) = side.filter(|side| side.posted <= self.wait.end) else { return };
        let inside = sides.inside(&side, side.posted.max(half.post_begin));
        let inside = inside.filter(|&inside| inside <= self.wait.end);
        let since = inside.unwrap_or(side.posted);
        if self.critical.as_ref().map_or(true, |critical| since > critical.since) {
            let half = half.index as u32;
            self.critical = Some(Critical { half, since, culprit: sides.last(&side) });
            let OtherSide { posted, is_certain, .. } = side;
            self.wait.partner = Some(Partner { posted, inside, is_certain });
        }
        if self.sides.len() < MOST_SIDES {
            self.sides.push((half.index as u32, side));
        }
    }

    /// The time of the call by cause, with bounds, and who is to blame: the one that came last, or the one that was away
    /// longest. `own`: this rank's place.
    pub fn split(
        mut self,
        sides: Sides<'a>,
        own: usize,
    ) -> (Exposure, ExposureBounds, Option<(u32, Culprit<'a>)>) {
        self.wait.possible_overlap = self.possible_overlap.min(self.compute);
        let end = self.wait.end;
        let came_last = self.critical.filter(|critical| critical.since > self.wait.begin);
        let mut away_longest = None;
        let mut absences: Option<(i64, i64)> = None; // since when, and how long
        let mut outside = |from: i64| {
            if let Some((_, known)) = absences.filter(|(since, _)| *since == from) {
                return known;
            }
            let all = self.sides.iter().map(|(half, side)| (*half, sides.absent(side, from, end)));
            let longest = all.max_by_key(|(_, (absent, _))| *absent);
            let (absent, culprit) =
                longest.map_or((0, None), |(half, (absent, who))| (absent, Some((half, who))));
            away_longest = away_longest.or(culprit);
            absences = Some((from, absent));
            absent
        };
        let mut exposed = self.wait.split(&mut outside);
        let taken = [self.quickest, self.slowest].map(|taken| Wait {
            transfer: taken.transfer,
            possible_overlap: taken.possible_overlap.min(self.compute),
            ..self.wait
        });
        let mut others = taken.map(|wait| wait.split(&mut outside));
        let blamed = came_last.map(|critical| (critical.half, critical.culprit)).or(away_longest);
        let partner = blamed.map(|(half, (rank, _))| {
            sides.trace.past(&sides.trace.half(own, half as usize), rank as usize)
        });
        for found in others.iter_mut().chain([&mut exposed]) {
            let starved = self.wait.starved(found, sides, own, partner);
            let rank = &sides.trace.ranks[own];
            found.lay_to_gpu(BesideGpu::of(&rank.devices, self.wait.begin, found, self.wait.end));
            found.lay_to_processors(starved);
        }
        let mut bounds = ExposureBounds::exactly(exposed);
        others.into_iter().for_each(|other| bounds.include(other));
        (exposed, bounds, blamed)
    }
}

impl BesideGpu {
    /// Of a wait from then to then, whose parts these are.
    #[inline]
    pub(super) fn of(gpus: &DeviceTime, begin: i64, parts: &Exposure, end: i64) -> BesideGpu {
        if gpus.lanes.is_empty() {
            return BesideGpu::default();
        }
        let came = begin + parts.late_partner;
        let moving = came + parts.no_remote_progress;
        BesideGpu {
            late: gpus.computed_within(begin, came),
            outside: gpus.computed_within(came, moving),
            rest: gpus.computed_within(moving, end),
        }
    }
}

impl Wait {
    /// What this rank and the one that it waited for had to do without a processor. A late partner is late by what it lacked
    /// since it had last been inside MPI, too.
    fn starved(
        &self,
        exposed: &Exposure,
        sides: Sides<'_>,
        own: usize,
        partner: Option<Past<'_>>,
    ) -> Starved {
        if !sides.trace.is_starved() || self.end - self.begin < SHORT_WAIT {
            return Starved::default();
        }
        let came = self.begin + exposed.late_partner;
        let moving = came + exposed.no_remote_progress;
        let late = partner.filter(|_| exposed.late_partner > 0).map(|partner| {
            let left = partner.left_before(came).unwrap_or(self.begin);
            partner.starved_within(left.min(self.begin), came)
        });
        let outside = partner.filter(|_| exposed.no_remote_progress > 0);
        let other = partner.map_or(0, |partner| partner.starved_within(moving, self.end));
        let rest = sides.trace.ranks[own].starvation.within(moving, self.end);
        Starved {
            late: late.unwrap_or(0),
            outside: outside.map_or(0, |partner| partner.starved_within(came, self.end)),
            rest: rest.max(other),
        }
    }
}
