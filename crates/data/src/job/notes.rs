//! What is to be said of a record, and has no place in the tables of a run.

use super::{JobSite, NodeRecord};
use crate::model::Nanos;
use crate::text::plural;
use crate::text::units::{bytes, percent, time};

/// Sentences, the node in front.
pub fn of(record: &NodeRecord, now_unix_ns: i64) -> Vec<String> {
    let said = [
        still_running(record, now_unix_ns),
        unknown_places(record),
        sends(record),
        own_tests(record),
    ];
    let host = &record.record.host;
    said.into_iter().flatten().map(|what| format!("{host}: {what}")).collect()
}

fn still_running(record: &NodeRecord, now_unix_ns: i64) -> Option<String> {
    let running = record.running();
    let after = Nanos(record.record.written_unix_ns - record.record.began_unix_ns);
    let since = match now_unix_ns > record.due_unix_ns() {
        true => "; nothing was written since, so they ended without MPI_Finalize",
        false => "",
    };
    let ranks = format!("{running} rank{}", plural(running.unsigned_abs()));
    (running > 0).then(|| {
        format!(
            "{ranks} still ran when the record was written, {} after they began{since}",
            time(after)
        )
    })
}

/// Rows without a frame are what the tables of fixed size had no room for, or what has no call path.
fn unknown_places(record: &NodeRecord) -> Option<String> {
    let of = |is_counted: &dyn Fn(&JobSite) -> bool| {
        let sites = record.sites.iter().filter(|site| is_counted(site));
        sites.fold(Nanos(0), |sum, site| sum + site.inside) // what is exposed of requests is inside of other calls
    };
    let (all, nowhere) = (of(&|_| true), of(&|site| site.frame.is_none()));
    let error =
        record.sites.iter().filter(|site| site.frame.is_some()).map(|site| site.error).max();
    let may_have = error.filter(|error| error.0 > 0).map_or_else(String::new, |error| {
        format!("; a site that has a place may have up to {} of it", time(error))
    });
    let has_places = record.sites.iter().any(|site| site.frame.is_some()); // else there are no call paths at all
    (nowhere.0 > 0 && has_places).then(|| {
        format!(
            "there were more call sites than a record keeps, or some have no call path: of {} in MPI, sum of all ranks, the places of {} ({}) are not known{may_have}",
            time(all),
            time(nowhere),
            percent(nowhere.share_of(all))
        )
    })
}

/// Evidence for a limit from which on sends wait for their receivers.
fn sends(record: &NodeRecord) -> Option<String> {
    let at_once = record.sites.iter().filter(|site| site.at_once > 0);
    let most = at_once.map(|site| site.most_bytes_at_once).max()?;
    let least = record.sites.iter().filter_map(|site| site.least_bytes_waiting).min()?;
    Some(format!(
        "of sends that ended alone, the largest that took less than 10 µs inside MPI had {}, the smallest that took longer {}",
        bytes(most.0),
        bytes(least.0)
    ))
}

fn own_tests(record: &NodeRecord) -> Option<String> {
    let injector = record.injectors.first()?;
    let processes = injector.processes.unsigned_abs();
    let problem = injector.problem.as_ref().map_or_else(String::new, |problem| {
        format!("; on one of them at least none were made: {problem}")
    });
    let gain = injector.gain().map_or_else(String::new, |gain| {
        format!(
            "; by what one of them measured they {} {} of the time without them",
            if gain.share < 0.0 { "cost" } else { "saved" },
            percent(gain.share.abs())
        )
    });
    Some(format!(
        "lapscope was asked for tests of its own ({}) on {processes} rank{}: {} tests for {} requests, of which {} moved something, at a cost of {} \
         that bought nothing{problem}{gain}",
        injector.mode,
        plural(processes),
        injector.tests,
        injector.requests,
        injector.found,
        time(injector.spent)
    ))
}
