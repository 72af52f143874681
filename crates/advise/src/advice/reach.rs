//! Advice on moving waits and posts, where buffers were watched: as far as the program needs its data later than it waits for
//! them, or has them ready before it posts. Where it does not, advice on the same call says so.
//!
//! It takes its time from what nothing else is a cure for, so that no time is promised twice.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::sums::{most, Sums};
use super::words::{on, wait};
use super::{Advice, Cure};
use crate::reach_in_words::{bounds, place, share, toucher};
use lapscope_data::model::{Side, Toucher};
use lapscope_data::places::SiteId;
use lapscope_data::text::units::percent;
use lapscope_measure::reach::document::Reach;
use lapscope_measure::reach::site::{Movability, ProgramCall, SiteReach, WaitReach};
use lapscope_measure::reach::who::TouchedBy;

/// What was found by cure.
type Judged = BTreeMap<(Cure, Finding), Sums>;

/// What could be moved.
#[derive(Clone, Copy)]
pub(super) struct Moves<'a>(pub Option<&'a Reach>);

impl<'a> Moves<'a> {
    /// Gives to these cures what they could save of the time that nothing else is a cure for: first to later waits, as they
    /// change one rank, then to earlier posts.
    pub fn take(self, mut judged: Judged) -> Judged {
        let Some(reach) = self.0 else { return judged };
        for wait in reach.waits.iter().filter(|wait| wait.verdict == Movability::Movable) {
            let id = wait.place.id;
            let of_wait = [
                (Cure::PartnerLate, Finding::Late(id)),
                (Cure::NothingToHideBehind, Finding::Nothing(id)),
                (Cure::SlowTransfer, Finding::Slow(id)),
            ];
            let all: i64 = of_wait.iter().filter_map(|key| judged.get(key)).map(Sums::time).sum();
            let share = part(wait.recoverable_ns.0, all);
            for key in of_wait {
                give(&mut judged, key, share, (Cure::WaitLater, Finding::WaitLater(id)));
            }
        }
        let is_movable =
            |site: &&SiteReach| site.side == Side::Send && site.verdict == Movability::Movable;
        for site in reach.sites.iter().filter(is_movable) {
            let id = site.place.id;
            let late = |sums: &Sums| sums.late_posts.get(&id).copied().unwrap_or(0);
            let waited: Vec<((Cure, Finding), i64, i64)> = judged
                .iter()
                .filter(|((cure, _), sums)| *cure == Cure::PartnerLate && late(sums) > 0)
                .map(|(&key, sums)| (key, late(sums), sums.time()))
                .collect();
            let all = waited.iter().map(|(_, late, _)| late).sum();
            for (key, late, time) in waited {
                let share = part(site.worth.recoverable_ns.0, all) * part(late, time);
                give(&mut judged, key, share, (Cure::PostEarlier, Finding::PostEarlier(id)));
            }
        }
        judged
    }

    /// What to do, shortest; `None` where the finding is none of reach.
    pub fn headline(self, finding: &Finding) -> Option<String> {
        match *finding {
            Finding::WaitLater(id) => {
                let (wait, first) = self.wait(id)?;
                Some(format!("Move {} to before {}.", place(&wait.place), line(first)?))
            }
            Finding::PostEarlier(id) => {
                let site = self.send(id)?;
                Some(format!(
                    "Post {} earlier: its data are last written {}.",
                    place(&site.place),
                    toucher(site.touchers.first()?)
                ))
            }
            _ => None,
        }
    }

    /// As [`Moves::headline`], with all that belongs to it.
    pub fn sentence(self, finding: &Finding, advice: &Advice) -> Option<String> {
        match *finding {
            Finding::WaitLater(id) => {
                let (wait, first) = self.wait(id)?;
                wait_later(wait, first, advice)
            }
            Finding::PostEarlier(id) => post_earlier(self.send(id)?, advice),
            _ => None,
        }
    }

    /// What to add to advice on a call that cannot be moved, or not with all of its data.
    pub fn beside(self, finding: &Finding, late_posts: &BTreeMap<SiteId, i64>) -> Option<String> {
        match *finding {
            Finding::Blocking(id) => self.send(id).and_then(blocking_send),
            Finding::Late(id) => {
                let sends = most(late_posts).and_then(|post| self.send(post));
                let texts = [self.not_later(id), sends.and_then(not_earlier)];
                Some(texts.into_iter().flatten().collect())
            }
            Finding::Nothing(id) | Finding::Slow(id) | Finding::Test(id) => self.not_later(id),
            _ => None,
        }
    }

    fn not_later(self, id: SiteId) -> Option<String> {
        let (wait, first) = self.wait(id)?;
        let by = first.touchers.first()?;
        match wait.verdict {
            Movability::AtOnce => Some(format!(
                " Waiting later gains nothing: its data are used at once, first touched {}.",
                toucher(by)
            )),
            Movability::HalfMovable => Some(format!(
                " All of its data cannot be waited for later, as some are first touched {}; half of them could, {} later, if \
                 they came in smaller messages.",
                toucher(by),
                bounds(first.half.as_ref()?)
            )),
            Movability::MovableWithCopy => Some(format!(
                " Its data are first touched {}, which only copies them: with that copying it could come {} later.{}",
                toucher(by),
                bounds(wait.all_with_copy.as_ref()?),
                copied(first).unwrap_or_default()
            )),
            Movability::Movable | Movability::Unknown => None,
        }
    }

    /// A wait, and the receive whose data are needed first.
    fn wait(self, id: SiteId) -> Option<(&'a WaitReach, &'a SiteReach)> {
        let reach = self.0?;
        let wait = reach.waits.iter().find(|wait| wait.place.id == id)?;
        Some((wait, reach.sites.get(wait.first?)?))
    }

    /// The send with most to save, where there are several sizes.
    fn send(self, id: SiteId) -> Option<&'a SiteReach> {
        let is_send = |site: &&SiteReach| site.place.id == id && site.side == Side::Send;
        self.0?.sites.iter().filter(is_send).max_by_key(|site| site.worth.recoverable_ns)
    }
}

/// As a fraction of 1 at most.
fn part(of: i64, all: i64) -> f64 {
    (of as f64 / all.max(1) as f64).clamp(0.0, 1.0)
}

fn give(judged: &mut Judged, from: (Cure, Finding), share: f64, to: (Cure, Finding)) {
    /// What would be left of it is not worth a piece of its own.
    const NEARLY_ALL: f64 = 0.95;
    if share <= 0.0 {
        return;
    }
    let Some(sums) = judged.remove(&from) else { return };
    let (moved, rest) = sums.split(if share >= NEARLY_ALL { 1.0 } else { share });
    judged.entry(to).or_default().merge(moved);
    if rest.time() > 0 {
        judged.insert(from, rest);
    }
}

/// "update halo.c:140", "MPI_Send exchange halo.c:90": before that the wait has to be.
fn line(site: &SiteReach) -> Option<String> {
    let by = site.touchers.first()?;
    let name = by.site.as_ref()?.short();
    Some(match (by.toucher, &by.call) {
        (Toucher::Mpi, Some(call)) => format!("{call} {name}"),
        _ => name,
    })
}

/// "in 98.0 % of buffers", of which line decides where it does not always.
fn how_often(by: &TouchedBy) -> String {
    const ALL: f64 = 0.995;
    if by.decisive_share >= ALL {
        String::new()
    } else {
        format!(" (of {} of buffers)", percent(by.decisive_share))
    }
}

fn wait_later(wait: &WaitReach, first: &SiteReach, advice: &Advice) -> Option<String> {
    let (before, by) = (line(first)?, first.touchers.first()?);
    let move_it = if first.is_request {
        format!("Move {} to before {before}", place(&wait.place))
    } else {
        format!("Make {} non-blocking, and complete it before {before}", place(&wait.place))
    };
    let mut text = format!(
        "{move_it}{}: its data are first touched there{}, {} later",
        on(advice),
        how_often(by),
        bounds(wait.all.as_ref()?)
    );
    if let Some(hides) = &first.worth.hides {
        text += &format!("; hides {} of a transfer", share(hides));
    }
    text += ".";
    if wait.completes_sends {
        text += " It completes sends, too: their buffers must not be written before.";
    }
    if !wait.unwatched.is_empty() {
        let others: Vec<String> =
            wait.unwatched.iter().map(place as fn(&ProgramCall) -> String).collect();
        text += &format!(
            " Nothing was watched of {}, whose data it waits for as well.",
            others.join(", ")
        );
    }
    Some(text + &copied(first).unwrap_or_default())
}

/// Where what touches first only copies.
fn copied(site: &SiteReach) -> Option<String> {
    let copy = site.copies.first()?;
    let (copies, uses) = (copy.site.as_ref()?, copy.touchers.first()?);
    let away = copy.all.as_ref().map(|all| format!(", {} behind the wait", bounds(all)));
    Some(format!(
        " {} copies them; the copy is first used {}{}.",
        copies.short(),
        toucher(uses),
        away.unwrap_or_default()
    ))
}

fn post_earlier(site: &SiteReach, advice: &Advice) -> Option<String> {
    let by = site.touchers.first()?;
    let post = if site.is_request {
        format!("Post {}", place(&site.place))
    } else {
        format!("Make {} an MPI_Isend, and post it", place(&site.place))
    };
    Some(format!(
        "{post} {} earlier{}: its data are last written {}{}; {} for it in {}.",
        bounds(site.all.as_ref()?),
        on(advice),
        toucher(by),
        how_often(by),
        wait(advice),
        super::words::place(&advice.waiting)
    ))
}

fn blocking_send(site: &SiteReach) -> Option<String> {
    let by = site.touchers.first()?;
    if site.verdict == Movability::MovableWithCopy {
        return packed(site);
    }
    (site.verdict == Movability::Movable).then_some(())?;
    Some(format!(
        " It could be posted {} earlier: its data are last written {}.",
        bounds(site.all.as_ref()?),
        toucher(by)
    ))
}

fn not_earlier(site: &SiteReach) -> Option<String> {
    let by = site.touchers.first()?;
    if site.verdict == Movability::MovableWithCopy {
        return packed(site);
    }
    (site.verdict == Movability::AtOnce).then_some(())?;
    Some(format!(
        " {} cannot be posted earlier: its data are written until then, last {}.",
        place(&site.place),
        toucher(by)
    ))
}

/// A send whose data are copied beside its post.
fn packed(site: &SiteReach) -> Option<String> {
    let copy = site.copies.first()?;
    let then =
        copy.touchers.first().map(|by| format!(": what it copies is last written {}", toucher(by)));
    Some(format!(
        " {} copies the data of {}: both together could come {} earlier{}.",
        copy.site.as_ref()?.short(),
        place(&site.place),
        bounds(site.all_with_copy.as_ref()?),
        then.unwrap_or_default()
    ))
}
