//! Reach in words.

use lapscope_data::model::{Nanos, Side, Toucher};
use lapscope_data::text::plural;
use lapscope_data::text::units::{count, percent, time, time_range};
use lapscope_measure::reach::bounds::ConfidenceBounds;
use lapscope_measure::reach::site::{Movability, Note, ProgramCall, SiteReach};
use lapscope_measure::reach::who::TouchedBy;

/// "12.3 ms", "12.3 ms (11.9 to 12.8 ms)", "11.9 to 12.8 ms", "at least 11.9 ms", "at most 12.8 ms"; times that are known in part
/// are told as bounds.
pub fn bounds(bounds: &ConfidenceBounds) -> String {
    let ns = |ns: f64| Nanos(ns.round() as i64);
    let ConfidenceBounds { low, estimate, high } = *bounds;
    match (estimate, high) {
        (_, None) if low <= 0.0 => "an unknown time".to_owned(),
        (_, None) => format!("at least {}", time(ns(low))),
        (None, Some(high)) if low <= 0.0 => format!("at most {}", time(ns(high))),
        (None, Some(high)) => time_range(ns(low), ns(high)),
        (Some(estimate), Some(high)) => {
            let (likely, range) = (time(ns(estimate)), time_range(ns(low), ns(high)));
            if likely == range {
                likely
            } else {
                format!("{likely} ({range})")
            }
        }
    }
}

/// "78 %" of a fraction that is known, else "at least 70 %", "at most 90 %", "70 to 90 %".
pub fn share(bounds: &ConfidenceBounds) -> String {
    let ConfidenceBounds { low, estimate, high } = *bounds;
    match (estimate, high) {
        (Some(estimate), _) => percent(estimate),
        (None, Some(high)) if low <= 0.0 => format!("at most {}", percent(high)),
        (None, Some(high)) if percent(low) == percent(high) => percent(low),
        _ => format!("at least {}", percent(low)),
    }
}

/// "MPI_Waitall exchange halo.c:84"
pub fn place(place: &ProgramCall) -> String {
    let site = place.site.as_ref().map(|site| format!(" {}", site.short()));
    place.call.clone() + &site.unwrap_or_default()
}

/// "update halo.c:140"; of what MPI touched, "in MPI_Send exchange halo.c:90".
pub fn toucher(by: &TouchedBy) -> String {
    let site = by.site.as_ref().map(|site| site.short());
    match (by.toucher, &by.call) {
        (Toucher::Mpi, Some(call)) => format!("in {call} {}", site.unwrap_or_default()),
        (Toucher::Mpi, None) => format!("inside MPI, called at {}", site.unwrap_or_default()),
        (Toucher::Program, _) => {
            format!("at {}", site.unwrap_or_else(|| "an unknown place".into()))
        }
    }
}

/// The line that decides for most buffers, with how many where these are not all.
fn decisive(site: &SiteReach) -> String {
    /// Nearly all.
    const ALL: f64 = 0.995;
    let Some(by) = site.touchers.first() else { return String::new() };
    let what = match site.side {
        Side::Send => "last written",
        Side::Receive => "first touched",
    };
    let share = match by.decisive_share {
        share if share >= ALL => String::new(),
        share => format!(" ({} of buffers)", percent(share)),
    };
    format!("{what} {}{share}", toucher(by))
}

/// What of a site could be moved, and how far.
pub fn sentence(site: &SiteReach) -> String {
    let (Some(all), Some(half)) = (&site.all, &site.half) else { return "not told".to_owned() };
    let (what, where_to) = match (site.side, site.is_request) {
        (Side::Send, true) => ("the post", "earlier"),
        (Side::Send, false) => ("a post of it", "earlier"),
        (Side::Receive, true) => ("the wait", "later"),
        (Side::Receive, false) => ("a wait for it", "later"),
    };
    let is_open = |bounds: &ConfidenceBounds| bounds.low <= 0.0 && bounds.high.is_none();
    let is_nothing_known = is_open(all) && is_open(half);
    let (all, half, line) = (bounds(all), bounds(half), decisive(site));
    let line = Some(line).filter(|line| !line.is_empty());
    let of_data = line.as_ref().map(|line| format!("; its data are {line}")).unwrap_or_default();
    match site.verdict {
        Movability::Movable => {
            format!("{what} could be {all} {where_to} for all of the buffer, {half} for half of it{of_data}")
        }
        Movability::HalfMovable => format!(
            "{what} could be {half} {where_to} for half of the buffer, but {all} for all of it{of_data}: only smaller messages could \
             gain"
        ),
        Movability::MovableWithCopy => {
            with_copy(site, what, where_to).unwrap_or_else(|| at_once(site, line.as_deref()))
        }
        Movability::AtOnce => at_once(site, line.as_deref()),
        Movability::Unknown if is_nothing_known => {
            format!("how much {where_to} {what} could be is not told{of_data}")
        }
        Movability::Unknown => format!(
            "how much {where_to} {what} could be is not told: {all} for all of the buffer, {half} for half of it{of_data}"
        ),
    }
}

/// What can be moved with the line that copies.
fn with_copy(site: &SiteReach, what: &str, where_to: &str) -> Option<String> {
    let copy = site.copies.first()?;
    let (copied, then) = match site.side {
        Side::Send => ("data are copied there until the post", "what is copied is last written"),
        Side::Receive => ("data are copied at once", "the copy is first used"),
    };
    let by = copy.touchers.first().map(|by| format!("; {then} {}", toucher(by)));
    Some(format!(
        "{copied}, at {line}: with that copying {what} could be {} {where_to} for all of the buffer, {} for half of it{}",
        bounds(site.all_with_copy.as_ref()?),
        bounds(site.half_with_copy.as_ref()?),
        by.unwrap_or_default(),
        line = copy.site.as_ref()?.short(),
    ))
}

fn at_once(site: &SiteReach, line: Option<&str>) -> String {
    let line = line.map(|line| format!(", {line}")).unwrap_or_default();
    match site.side {
        Side::Send => {
            format!("data are written until the post{line}: posting earlier gains nothing")
        }
        Side::Receive => format!("data are used at once{line}: waiting later gains nothing"),
    }
}

/// What to know before a site's numbers are believed.
pub fn note(note: &Note, side: Side) -> String {
    let less = match side {
        Side::Send => "written later",
        Side::Receive => "used earlier",
    };
    match note {
        Note::TooFew { requests, needed } => format!(
            "{} buffer{} watched, {needed} are needed: a longer run, or a larger share (lapscope reach --share 100)",
            count(*requests),
            if *requests == 1 { " was" } else { "s were" }
        ),
        Note::OthersMayTouch { ranks } => format!(
            "threads that were not watched ran on {} rank{}: data may have been {less} there, so reaches are upper bounds",
            count(*ranks),
            plural(*ranks)
        ),
        Note::OnStack { share } => format!(
            "{} of the words lie on the stack, where other functions may have touched them",
            percent(*share)
        ),
        Note::Sparse { share } => format!(
            "{} of the words are of datatypes with gaps, of which only first and last bytes of elements were watched",
            percent(*share)
        ),
        Note::Often { share } => format!(
            "{} of the words were written too often to see the last time (LAPSCOPE_REACH_HITS): upper bounds",
            percent(*share)
        ),
        Note::Untouched { share, reused } => {
            let reused = match *reused {
                0.0 => String::new(),
                share => format!(", {} until another call took the buffer", percent(share)),
            };
            format!("{} of the words were not touched while they were watched{reused}: lower bounds", percent(*share))
        }
        Note::Differ { tenth_ns } => format!(
            "buffers differ: a tenth of them allow {} at most, and the line no more than nearly all of them",
            time(Nanos(tenth_ns.round() as i64))
        ),
        Note::NoOrder => {
            "no order of the words is known: the worst of all may be worse than those that were watched".to_owned()
        }
    }
}
