//! Ranks that do not leave MPI_Finalize, or ended there: with requests of their own under way, which MPI wants complete before
//! (MPI-4.1 11.2.2), or without.

use super::super::document::{Verdict, VerdictKind};
use super::super::job::Job;
use super::super::messages::NO_TAG;
use super::super::words::Words;
use super::sentence::verdict;
use crate::pending::Posted;
use lapscope_data::model::Kind;
use lapscope_data::state::{Condition, OpenRequest};
use lapscope_data::text::capitalized;

/// None where a rank is elsewhere without a request of its own being left in MPI_Finalize: others say why it does not go on.
pub fn verdict_there(job: &Job<'_>, words: &mut Words<'_>) -> Option<Verdict> {
    let all = 0..job.ranks().len();
    let is_there = |at: &usize| job.is_finalizing(*at) || job.is_inside_finalize(*at);
    let there: Vec<usize> = all.clone().filter(is_there).collect();
    let leaving: Vec<usize> =
        there.iter().copied().filter(|&at| own_requests(job, at).next().is_some()).collect();
    let first = *leaving.first().or(there.first())?;
    if !leaving.is_empty() {
        let who = capitalized(&words.ranks(&leaving));
        let (is, its) = match (leaving.len(), job.is_over) {
            (1, false) => ("is", "of its own"),
            (_, false) => ("are", "of their own"),
            (1, true) => ("was", "of its own"),
            (_, true) => ("were", "of their own"),
        };
        let when = if job.is_over { " when the job ended" } else { "" };
        let what = own_in_words(job, first, words);
        let sentence = format!(
            "{who} {is} inside MPI_Finalize with requests {its} under way{when}: {what}. MPI_Finalize may wait for them for ever, or \
             crash: complete all requests before."
        );
        return Some(verdict(job, VerdictKind::Unfinished, true, sentence, &leaving));
    }
    let is_past = |at: usize| job.rank(at).condition == Condition::Finalized || is_there(&at);
    (job.is_over && all.clone().all(is_past)).then(|| {
        let who = capitalized(&words.ranks(&there));
        let (was, it) = if there.len() == 1 { ("was", "it") } else { ("were", "one of them") };
        let sentence = format!(
            "{who} {was} inside MPI_Finalize when the job ended: {it} crashed there, or was ended from outside."
        );
        verdict(job, VerdictKind::Dead, false, sentence, &there)
    })
}

/// ", with requests of its own under way: MPI_Isend to rank 1, tag 7, 64 bytes (main x.c:7)", of a rank that is gone.
pub fn left_under_way(job: &Job<'_>, at: usize, words: &mut Words<'_>) -> String {
    match job.is_inside_finalize(at) && own_requests(job, at).next().is_some() {
        true => format!(", with requests of its own under way: {}", own_in_words(job, at, words)),
        false => String::new(),
    }
}

fn own_requests<'a>(job: &Job<'a>, at: usize) -> impl Iterator<Item = &'a OpenRequest> {
    job.rank(at).requests.iter().filter(|it| !it.is_seen_complete && !it.is_cancelled)
}

/// "MPI_Isend to rank 1, tag 7, 64 bytes (main x.c:7), and 2 more"
fn own_in_words(job: &Job<'_>, at: usize, words: &mut Words<'_>) -> String {
    let mut own = own_requests(job, at);
    let Some(first) = own.next().map(|it| &it.operation) else { return String::new() };
    let rank = job.rank(at).rank;
    let is_message = matches!(first.kind, Kind::Send | Kind::Recv);
    let posted = Posted {
        call: &job.told_by(first).name,
        peer: first.peer_world.map(|number| rank.neighbor(number)),
        posted_peer: Some(first.peer).filter(|_| is_message),
        tag: Some(first.tag).filter(|&tag| tag != NO_TAG),
        bytes: first.bytes,
    };
    let site = words.site(first.path).map_or(String::new(), |site| format!(" ({})", site.brief()));
    let more = match own.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{site}{more}", posted.describe())
}
