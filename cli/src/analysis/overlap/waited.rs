//! What one call waited for: the requests that it completed, taken together.

use super::exposure::{Exposure, Partner, Starved, Wait};
use super::side::{Culprit, Side, Sides};
use crate::trace::{Direction, Half};

/// Calls shorter than this waited for nobody, nanoseconds.
const SHORT_WAIT: i64 = 1_000;
/// Requests of one call whose other sides' absences are looked at.
const MOST_SIDES: usize = 16;

/// What one call waited for, put together from the requests that it completed.
pub(super) struct Group<'a> {
    pub wait: Wait,
    /// Most computation in one window, and what transfers could have hidden behind it.
    pub compute: i64,
    hideable: i64,
    critical: Option<Critical<'a>>,
    /// Other sides whose absences may explain the call, and their requests.
    sides: Vec<(u32, Side<'a>)>,
    /// The request whose transfer takes longest, and how long.
    pub longest: (i64, u32),
}

/// The request that could be completed last.
struct Critical<'a> {
    /// Index in the endpoints of its rank.
    half: u32,
    since: i64,
    culprit: Culprit<'a>,
}

impl<'a> Group<'a> {
    pub fn new(begin: i64, end: i64) -> Group<'a> {
        Group {
            wait: Wait { begin, end, ..Wait::default() },
            compute: 0,
            hideable: 0,
            critical: None,
            sides: Vec::new(),
            longest: (i64::MIN, 0),
        }
    }

    pub fn is_worth_it(&self) -> bool {
        self.wait.end - self.wait.begin >= SHORT_WAIT
    }

    pub fn add(&mut self, half: &Half<'_>, transfer: Option<i64>, ready_compute: i64) {
        let alone = transfer.unwrap_or(0);
        self.wait.transfer = self.wait.transfer.saturating_add(alone);
        if alone > self.longest.0 {
            self.longest = (alone, half.index as u32);
        }
        if half.operation.direction != Direction::None {
            self.compute = self.compute.max(ready_compute);
            let hideable = transfer.unwrap_or(i64::MAX).min(ready_compute);
            self.hideable = self.hideable.saturating_add(hideable);
        }
    }

    /// Considers the other side of a request as that which the call waited for: the one that was there last, among those
    /// that were there before the call ended.
    pub fn offer(&mut self, sides: Sides<'a>, half: &Half<'a>, side: Option<Side<'a>>) {
        let Some(side) = side.filter(|side| side.posted <= self.wait.end) else { return };
        let inside = sides.inside(&side, side.posted.max(half.post_begin));
        let inside = inside.filter(|&inside| inside <= self.wait.end);
        let since = inside.unwrap_or(side.posted);
        if self.critical.as_ref().map_or(true, |critical| since > critical.since) {
            let half = half.index as u32;
            self.critical = Some(Critical { half, since, culprit: sides.last(&side) });
            let Side { posted, is_certain, .. } = side;
            self.wait.partner = Some(Partner { posted, inside, is_certain });
        }
        if self.sides.len() < MOST_SIDES {
            self.sides.push((half.index as u32, side));
        }
    }

    /// The time of the call by cause, and who is to blame: the one that came last, or the one that was away longest.
    /// `own`: this rank's place.
    pub fn split(mut self, sides: Sides<'a>, own: usize) -> (Exposure, Option<(u32, Culprit<'a>)>) {
        self.wait.hideable = self.hideable.min(self.compute);
        let end = self.wait.end;
        let came_last = self.critical.filter(|critical| critical.since > self.wait.begin);
        let mut away_longest = None;
        let mut exposed = self.wait.split(|from| {
            let absences =
                self.sides.iter().map(|(half, side)| (*half, sides.absent(side, from, end)));
            let longest = absences.max_by_key(|(_, (absent, _))| *absent);
            let (absent, culprit) =
                longest.map_or((0, None), |(half, (absent, who))| (absent, Some((half, who))));
            away_longest = culprit;
            absent
        });
        let blamed = came_last.map(|critical| (critical.half, critical.culprit)).or(away_longest);
        let partner = blamed.map(|(_, (rank, _))| rank as usize);
        exposed.lay_to_processors(self.wait.starved(&exposed, sides, own, partner));
        (exposed, blamed)
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
        partner: Option<usize>,
    ) -> Starved {
        if !sides.trace.is_starved() || self.end - self.begin < SHORT_WAIT {
            return Starved::default();
        }
        let ranks = &sides.trace.ranks;
        let of = |rank: usize, from: i64, to: i64| ranks[rank].starvation.within(from, to);
        let came = self.begin + exposed.late_partner;
        let moving = came + exposed.partner_outside;
        let late = partner.filter(|_| exposed.late_partner > 0).map(|partner| {
            let left = ranks[partner].presence.left_before(came).unwrap_or(self.begin);
            of(partner, left.min(self.begin), came)
        });
        let outside = partner.filter(|_| exposed.partner_outside > 0);
        let other = partner.map_or(0, |partner| of(partner, moving, self.end));
        Starved {
            late: late.unwrap_or(0),
            outside: outside.map_or(0, |partner| of(partner, came, self.end)),
            rest: of(own, moving, self.end).max(other),
        }
    }
}
