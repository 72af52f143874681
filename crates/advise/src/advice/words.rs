//! Advice in words.

use super::{Advice, AdviceCause, AdviceContext, Began, CallSite, Cure, Doing, Limit};
use crate::progress_in_words::{measured, of_messages, of_targets};
use lapscope_data::model::{nonblocking_name, Completes, Nanos, Transfers};
use lapscope_data::options;
use lapscope_data::text::ranks;
use lapscope_data::text::units::{bytes, percent, round_bytes, time};
use lapscope_measure::progress::Moving;

/// A limit is worth raising for messages up to this many times as large.
const NEAR_LIMIT: u64 = 16;
/// What ends a sentence that tells to test.
const INJECTION: &str = "; lapscope can do that: lapscope tune -- <launch line>";

/// `processors`: what to do where ranks lack them.
pub(super) fn sentence(
    advice: &Advice,
    collective: bool,
    setting: AdviceContext<'_>,
    processors: &str,
) -> String {
    let limits = setting.limits;
    match advice.cure {
        Cure::GiveProcessors => format!(
            "Give each rank a processor of its own: in these waits, most of them in {}, ranks or those that they waited for were \
             able to run and had none. {processors} What else is said here may be due to that.",
            place(&advice.waiting)
        ),
        Cure::Test => test(advice, collective, setting),
        Cure::WaitTogether => wait_together(advice),
        Cure::WaitBehind => format!(
            "Complete the sends of {} behind the receives, after {}: what is computed on the way there needs no send to be \
             complete, as long as it leaves their buffers alone{}.",
            place(&advice.waiting),
            place(advice.change.last().unwrap_or(&advice.waiting)),
            on(advice)
        ),
        Cure::PostReceiveEarlier => post_receive_earlier(advice),
        Cure::WaitLater => format!(
            "Wait later than in {}{}: its data are needed later only.",
            place(&advice.waiting),
            on(advice)
        ),
        Cure::PostEarlier => format!(
            "Post the sends that {} waits for earlier{}: their data are ready before.",
            place(&advice.waiting),
            on(advice)
        ),
        Cure::WaitAfterKernels => format!(
            "Wait in {} after the kernels that are started right behind it{}, where they do not need its data: GPUs are idle in this \
             wait, and so much of it could pass beside these kernels.",
            place(&advice.waiting),
            on(advice)
        ),
        Cure::StartBeforeKernels => format!(
            "Start the exchange, {}, before the kernels that run right in front of it{}, where they do not make its data: GPUs are \
             idle in {}, and so much of that wait could pass beside these kernels.",
            place(advice.change.last().unwrap_or(&advice.waiting)),
            on(advice),
            place(&advice.waiting)
        ),
        Cure::MakeNonblocking => format!(
            "Make {} an {} that is completed later: it blocks until the receive is posted{}.",
            place(&advice.waiting),
            nonblocking_send(&advice.waiting),
            on(advice)
        ),
        Cure::ProgressTarget => progress_target(advice, setting),
        Cure::CallEarlier => format!(
            "Call {} before the computation in front of it{}: nothing is put in between, and {} for it in {}.",
            place(advice.change.last().unwrap_or(&advice.waiting)),
            on(advice),
            wait(advice),
            place(&advice.waiting)
        ),
        Cure::LowerLimit | Cure::ExpensivePosts => expensive_posts(advice, limits),
        Cure::PartnerLate => partner_late(advice, collective),
        Cure::NothingToHideBehind => nothing(advice, collective),
        Cure::SlowTransfer => slow(advice, collective),
    }
}

/// Who has to enter MPI for a call: of a receive its senders.
pub(super) fn others(advice: &Advice) -> &'static str {
    match advice.evidence.max_bytes > 0 && advice.waiting.call.contains("ecv") {
        true => SENDERS,
        false => "targets",
    }
}

const SENDERS: &str = "senders";

/// That one-sided data move only while their target is inside MPI is certain where it was measured.
fn progress_target(advice: &Advice, setting: AdviceContext<'_>) -> String {
    let who = ranks::in_words(&advice.change_ranks, advice.of_ranks);
    let third = ranks::third_person(&advice.change_ranks);
    let at = place(&advice.waiting);
    let (moves, together) = match (others(advice), of_targets(setting.moved)) {
        (SENDERS, _) => ("what they sent with MPI_Bsend moves only then here".to_owned(), "send"),
        (_, Some((row, Moving::Moves))) if !advice.waiting.call.contains("flush") => (
            format!(
                "perhaps the lock is given only then here: data alone move by themselves ({})",
                measured(row)
            ),
            "synchronise",
        ),
        (_, Some((row, Moving::Moves))) => {
            return format!(
                "{at} waits until {who} enter{third} MPI, computing meanwhile, though one-sided data move by themselves here \
                 ({}): look for a lock that is held there, or for an answer that only the program gives, before MPI_Test is \
                 called in that computation.",
                measured(row)
            )
        }
        (_, Some((row, Moving::StandsStill))) => {
            (format!("one-sided data move only then here ({})", measured(row)), "synchronise")
        }
        (_, _) => (
            "perhaps one-sided data move only then here, which lapscope doctor --progress -- <launch line> measures"
                .to_owned(),
            "synchronise",
        ),
    };
    format!(
        "{at} waits until {who} enter{third} MPI, computing meanwhile: {moves}. Call MPI_Test or MPI_Iprobe now and then in that \
         computation, have this MPI make progress by itself (asynchronous progress, where it has a setting for it), or \
         {together} where both are in MPI anyway."
    )
}

fn wait_together(advice: &Advice) -> String {
    format!(
        "{} in the {} that ends the receives, or later: each keeps the next send from being posted{}.",
        match advice.waiting.call.contains("end") {
            true => format!(
                "Make {} an {} and complete it",
                place(&advice.waiting),
                nonblocking_send(&advice.waiting)
            ),
            false => format!("Complete the sends of {}", place(&advice.waiting)),
        },
        place(advice.change.last().unwrap_or(&advice.waiting)),
        on(advice)
    )
}

/// Words on waits that another cure is for, or none.
pub(super) fn wait_behind(behind: &CallSite) -> String {
    format!(
        " These sends need not be complete before the receives: they could be completed behind {}, as well.",
        place(behind)
    )
}

pub(super) fn or_test(
    advice: &Advice,
    [from, to]: &[CallSite; 2],
    setting: AdviceContext<'_>,
) -> String {
    format!(
        "Or call MPI_Test now and then in the computation between {} and {}, where receivers are meanwhile{}.",
        place(from),
        place(to),
        if can_be_injected(advice, setting) { INJECTION } else { "" }
    )
}

pub(super) fn or_copy(bytes: u64) -> String {
    format!(
        "Without changing the program: with LAPSCOPE_BUFFER_SENDS={bytes} lapscope sends these from copies, and they need no \
         receiver to be complete."
    )
}

fn test(advice: &Advice, collective: bool, setting: AdviceContext<'_>) -> String {
    let from = advice.change.first().unwrap_or(&advice.waiting);
    let to = advice.change.last().unwrap_or(&advice.waiting);
    let what = if collective { "collectives" } else { "messages" };
    let what = format!("{what} of {}", sizes(advice));
    let why = match advice.cause {
        AdviceCause::NoRemoteProgress if advice.waiting.is_beside(to) => {
            format!("{what} stand still there while the other side waits for them")
        }
        AdviceCause::NoRemoteProgress => format!(
            "{what} stand still there while {} for them in {}",
            wait(advice),
            place(&advice.waiting)
        ),
        _ if advice.evidence.mean_reference_ns.is_some() => {
            format!("{what} could move there and stand still")
        }
        _ => format!("{what} may stand still there; their reference time is not known"),
    };
    let seen = match of_messages(setting.moved, advice.evidence.min_bytes).filter(|_| !collective) {
        Some((row, Moving::StandsStill)) => format!(" ({})", measured(row)),
        Some((row, Moving::Moves)) => format!(" (though {})", measured(row)),
        _ => String::new(),
    };
    let injects = if can_be_injected(advice, setting) { INJECTION } else { "" };
    let mut text = format!(
        "Call MPI_Test now and then in the computation between {} and {}{}: {why}{seen}{injects}.",
        place(from),
        place(to),
        on(advice)
    );
    if !collective {
        text += &raise(advice, setting.limits);
    }
    text
}

/// Whether lapscope would make tests for such messages if it were asked to, and was not.
fn can_be_injected(advice: &Advice, setting: AdviceContext<'_>) -> bool {
    let least = options::find("LAPSCOPE_INJECT_MIN_BYTES").and_then(|it| it.default.parse().ok());
    !setting.is_injected && least.is_some_and(|least: u64| advice.evidence.max_bytes >= least)
}

/// The other cure for messages that are not far above the limit.
fn raise(advice: &Advice, limits: &[Limit]) -> String {
    let size = advice.evidence.max_bytes;
    let near = |limit: &&Limit| {
        let least = limit.smallest_waiting.or(limit.largest_eager).unwrap_or(0);
        size >= least && size <= least.saturating_mul(NEAR_LIMIT)
    };
    let mut found = limits.iter().filter(|limit| limit.variable.is_some()).filter(near);
    match (found.next(), found.next()) {
        (Some(Limit { variable: Some((name, value)), .. }), None) => format!(
            " Or raise {name} ({value}) above {size}, so that sends need not wait for their receiver: takes a buffer of that \
             size for every message under way, from each peer."
        ),
        _ => String::new(),
    }
}

fn post_receive_earlier(advice: &Advice) -> String {
    let receive = advice.change.first().unwrap_or(&advice.waiting);
    let computing = advice.evidence.late_partner_outside.unwrap_or(0.0);
    let how = if computing < 0.5 {
        "the receiver was inside MPI and could have taken them".to_owned()
    } else {
        "the receiver computed until then. Put the post in front of that computation; where MPI moves nothing by itself, \
         also call MPI_Test in it"
            .to_owned()
    };
    format!(
        "Post {} earlier{}: {} for it in {}; {how}.",
        place(receive),
        on(advice),
        wait(advice),
        place(&advice.waiting)
    )
}

fn expensive_posts(advice: &Advice, limits: &[Limit]) -> String {
    let evidence = &advice.evidence;
    let mean = evidence.posting_ns.mean(evidence.calls).unwrap_or_default();
    let mut text = format!(
        "{} takes {} a call for {}: nothing is computed meanwhile.",
        place(&advice.waiting),
        time(mean),
        sizes(advice)
    );
    let bytes = Some((evidence.min_bytes, evidence.max_bytes));
    if let Some((name, value)) =
        Limit::copied_by(bytes, limits).filter(|_| advice.cure == Cure::LowerLimit)
    {
        text += &format!(
            " Messages of this size are copied while they are posted: a lower {name} ({value}) avoids that, and makes them \
             wait for their receiver."
        );
    }
    text
}

fn partner_late(advice: &Advice, collective: bool) -> String {
    /// Where fewer of the waits began than that says little.
    const FEW: f64 = 0.25;
    let evidence = &advice.evidence;
    let at = place(&advice.waiting);
    let Some(computing) = evidence.late_partner_outside else {
        if let [from, .., to] = advice.change.as_slice() {
            let whom = ranks::in_words(&advice.change_ranks, advice.of_ranks);
            let s = ranks::third_person(&advice.change_ranks);
            let (from, to) = (place(from), place(to));
            return format!(
                "{at} waits for {whom}, which compute{s} between {from} and {to}. Messages stand still meanwhile, but tests there \
                 would not end the run sooner (replayed): the work is uneven, which overlap does not fix."
            );
        }
        return format!("{at} waits for a partner that is not known.");
    };
    let whom = ranks::in_words(&advice.change_ranks, advice.of_ranks);
    let s = ranks::third_person(&advice.change_ranks);
    let waited = evidence.partner_waited_ns.unwrap_or_default();
    if computing < 0.5 {
        let inside = percent(1.0 - computing);
        let known = advice.began.as_ref().filter(|began| began.share >= FEW);
        let began = known.map(began).unwrap_or_default();
        let s = if advice.change_ranks.len() == 1 { "is" } else { "are" };
        return format!(
            "{at} waits for {whom}, which {s} inside MPI for {inside} of that time{began}."
        );
    }
    if advice.threaded {
        return format!(
            "{at} waits for {whom}, which come{s} late from computing, in one of several threads: where others of its rank do the \
             work meanwhile, that wait costs nothing; where they do not, the work is uneven."
        );
    }
    if advice.is_order() {
        return format!(
            "{at} waits for {whom}, which come{s} late from computing; but replayed with even work the run takes as long. What \
             costs is the order in which they need each other: {}."
            , match collective {
                true => "synchronise less often, or let work that others wait for come first",
                false => "pass on smaller pieces sooner, take what comes first (MPI_Waitany), post sends before other work, or \
                          synchronise less",
            }
        );
    }
    if waited.0 * 2 < evidence.waited_ns.0 {
        let (waited, others) = (time(waited), time(evidence.waited_ns));
        return format!(
            "{at} waits for {whom}, which come{s} late from computing and hardly wait{s} ({waited} in all, against {others} \
             of those that wait): the work is uneven, which overlap does not fix."
        );
    }
    format!(
        "{at} waits for {whom}, which come{s} late from computing, at other times the others do: uneven steps, which \
         overlap does not fix."
    )
}

/// Where a chain of waits began.
fn began(began: &Began) -> String {
    let (rank, at) = (began.rank, place(&began.place));
    let share = percent(began.share);
    match began.doing {
        Doing::Computing => format!(
            ", mostly waiting as well: {share} of these waits began with rank {rank}, which came late from computing to {at}"
        ),
        Doing::WaitingInCircle => {
            format!(", waiting for each other: {share} of these waits in a circle that rank {rank} is in, with {at}")
        }
        Doing::WaitingForSeveral => format!(
            ": {share} of these waits began with rank {rank}, which waited for several ranks one after the other before it came to {at}"
        ),
        Doing::InMpi => format!(
            ": {share} of these waits began with rank {rank}, which was in another call of MPI before it came to {at}; for whom it \
             waited there is not known"
        ),
    }
}

fn nothing(advice: &Advice, collective: bool) -> String {
    let evidence = &advice.evidence;
    let at = place(&advice.waiting);
    let Some(compute) = evidence.mean_compute_ns else {
        if evidence.max_bytes == 0 {
            let mean = evidence.exposed_transfer_ns.mean(evidence.calls).unwrap_or_default();
            return format!(
                "{at} takes {} a call with everybody there: nothing is computed beside it.",
                time(mean)
            );
        }
        return format!(
            "{at} blocks while it transfers {}: nothing is computed beside it. {} could, if there is work that does not need it.",
            sizes(advice),
            nonblocking(&advice.waiting, collective)
        );
    };
    let takes = match evidence.mean_reference_ns {
        Some(transfer) => format!(", {}", alone(advice, transfer)),
        None => String::new(),
    };
    format!(
        "Too little to overlap with at {at}: {} of computation while {} could move{takes}.",
        time(compute),
        sizes(advice)
    )
}

/// "whose reference time is 2.1 ms"
fn alone(advice: &Advice, transfer: Nanos) -> String {
    if matches!(advice.waiting.completes, Some(Completes::All | Completes::Some)) {
        format!("whose transfers, one after the other, have a reference time of {}", time(transfer))
    } else {
        format!("whose reference time is {}", time(transfer))
    }
}

/// What does the same as a blocking call without blocking.
fn nonblocking(place: &CallSite, collective: bool) -> String {
    if collective {
        return nonblocking_name(&place.call);
    }
    match place.transfers {
        Some(Transfers::Both) => "MPI_Irecv and MPI_Isend".to_owned(),
        Some(Transfers::Receive) => "MPI_Irecv".to_owned(),
        _ if place.call.ends_with("robe") => "MPI_Irecv".to_owned(),
        _ => nonblocking_send(place),
    }
}

/// The send of the same mode that does not block: one that is synchronous stays so. A place may have no blocking send.
pub(super) fn nonblocking_send(place: &CallSite) -> String {
    match place.call.trim_end_matches("_c") {
        "MPI_Ssend" | "MPI_Bsend" | "MPI_Rsend" => nonblocking_name(&place.call),
        _ => "MPI_Isend".to_owned(),
    }
}

fn slow(advice: &Advice, collective: bool) -> String {
    let evidence = &advice.evidence;
    let at = place(&advice.waiting);
    let takes = time(evidence.exposed_transfer_ns.mean(evidence.calls).unwrap_or_default());
    let what = if collective { "collectives" } else { "transfers" };
    let beside = match evidence.mean_compute_ns {
        Some(compute) => format!(", with {} of computation beside them", time(compute)),
        None => String::new(),
    };
    match evidence.mean_reference_ns {
        Some(alone) => format!(
            "{at}: {what} of {} take {takes} here{beside}, and {} undisturbed (reference time): contention, copying, or \
             ranks that do not get a processor.",
            sizes(advice),
            time(alone)
        ),
        None => format!(
            "{at}: {what} of {} take {takes} here{beside}. How much of that could overlap is not known without \
             reference times (lapscope calibrate).",
            sizes(advice)
        ),
    }
}

/// "MPI_Waitall wait_exchange halo.c:84", "MPI_Wait exchange halo.c:84, 90, 96 and 5 more"
pub fn place(place: &CallSite) -> String {
    const SHOWN: usize = 3;
    let Some(site) = &place.site else { return place.call.clone() };
    let mut text = format!("{} {}", place.call, site.short());
    for line in place.other_lines.iter().take(SHOWN) {
        text += &format!(", {line}");
    }
    match place.other_lines.len().saturating_sub(SHOWN) {
        0 => text,
        more => text + &format!(" and {more} more"),
    }
}

fn sizes(advice: &Advice) -> String {
    let (min, max) = (advice.evidence.min_bytes, advice.evidence.max_bytes);
    if min == max {
        size(min)
    } else {
        format!("{} to {}", size(min), size(max))
    }
}

/// "4 MiB" where it is that exactly.
fn size(size: u64) -> String {
    let exact = round_bytes(size);
    if size.is_power_of_two() {
        exact
    } else {
        bytes(size)
    }
}

pub(super) fn on(advice: &Advice) -> String {
    match advice.change_ranks.as_slice() {
        [] => String::new(),
        _ if advice.everywhere => ", on every rank".to_owned(),
        ranks => format!(", on {}", ranks::in_words(ranks, advice.of_ranks)),
    }
}

pub(super) fn wait(advice: &Advice) -> String {
    let ranks = &advice.waiting_ranks;
    format!("{} wait{}", ranks::in_words(ranks, advice.of_ranks), ranks::third_person(ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_keeps_its_mode() {
        for (call, other) in [
            ("MPI_Ssend", "MPI_Issend"),
            ("MPI_Bsend_c", "MPI_Ibsend_c"),
            ("MPI_Send_c", "MPI_Isend"),
        ] {
            let call = call.to_owned();
            let (transfers, completes, site) = (None, None, None);
            let place = CallSite { call, transfers, completes, site, other_lines: Vec::new() };
            assert_eq!(nonblocking_send(&place), other);
        }
    }
}
