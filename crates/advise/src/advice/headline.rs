//! What to do, in one short sentence; the whole advice says where, on whom and why.

use super::words::{nonblocking_send, others, place};
use super::{Advice, Cure};

/// `processors`: why ranks lack them.
pub(super) fn headline(advice: &Advice, processors: &str) -> String {
    let at = place(&advice.waiting);
    let from = place(advice.change.first().unwrap_or(&advice.waiting));
    let to = place(advice.change.last().unwrap_or(&advice.waiting));
    match advice.cure {
        Cure::GiveProcessors => processors.to_owned(),
        Cure::Test => format!("Call MPI_Test in the computation between {from} and {to}."),
        Cure::WaitTogether => format!("Complete the sends of {at} later, together with the receives in {to}."),
        Cure::WaitBehind => format!("Complete the sends of {at} later, after {to}."),
        Cure::ProgressTarget => {
            format!("Call MPI_Test or MPI_Iprobe where the {} of {at} compute: it waits until they enter MPI.", others(advice))
        }
        Cure::CallEarlier => {
            format!("Call {to} before the computation in front of it: {at} waits for that.")
        }
        Cure::PostReceiveEarlier => format!("Post {from} earlier."),
        Cure::WaitLater => format!("Wait later than in {at}: its data are needed later only."),
        Cure::PostEarlier => format!("Post the sends that {at} waits for earlier."),
        Cure::WaitAfterKernels => {
            format!("Wait in {at} after the kernels that are started behind it, if they do not need its data.")
        }
        Cure::StartBeforeKernels => {
            format!("Start the exchange, {to}, before the kernels in front of it, if they do not make its data.")
        }
        Cure::MakeNonblocking => {
            format!("Make {at} an {} that is completed later.", nonblocking_send(&advice.waiting))
        }
        Cure::LowerLimit => format!("Lower the eager limit for the messages of {at}, which are copied while they are posted."),
        Cure::PartnerLate if advice.is_order() => {
            format!("Let ranks need each other less often, or later, at {at}: they wait in turn, and even work would not change that.")
        }
        Cure::PartnerLate if advice.is_by_turns() => {
            format!("Let ranks need each other less often, or even out each step, at {at}: one or another takes longest.")
        }
        Cure::PartnerLate if advice.threaded => {
            format!("See what other threads compute while one waits in {at}: if they do the work, that wait costs nothing.")
        }
        Cure::PartnerLate => format!("Even out the work, which overlap cannot: {at} waits for ranks that come late."),
        Cure::NothingToHideBehind if advice.is_blocking_transfer() => format!(
            "Make {at} non-blocking, if there is work that does not need its data: as it is, nothing can be computed beside it."
        ),
        Cure::NothingToHideBehind => {
            format!("Nothing in the communication alone: {at} has too little computation beside its transfers.")
        }
        Cure::SlowTransfer => {
            format!("Find out why transfers take so long at {at}: longer than the same sizes do undisturbed.")
        }
        Cure::ExpensivePosts => format!("Nothing in the communication alone: the posts of {at} take long themselves."),
    }
}
