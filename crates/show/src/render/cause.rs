//! What the causes of exposed time are called: short, as a letter, and in words.

use lapscope_data::model::Kind;
use lapscope_measure::overlap::sums::Cause;

struct Words {
    name: &'static str,
    letter: char,
    meaning: &'static str,
    /// Behind a share of the waiting and a colon.
    answer: &'static str,
}

fn words(cause: Cause) -> Words {
    match cause {
        Cause::LatePartner => Words {
            name: "late partner",
            letter: 'l',
            meaning: "late sender, late receiver: it posted later",
            answer: "the other side came later (late partner)",
        },
        Cause::NoRemoteProgress => Words {
            name: "no remote progress",
            letter: 'r',
            meaning: "both had posted, the other was outside MPI",
            answer:
                "the other side had posted and computed, so that nothing moved (no remote progress)",
        },
        Cause::NoLocalProgress => Words {
            name: "no local progress",
            letter: 'o',
            meaning: "could have moved while this rank computed",
            answer:
                "messages stood still while the rank that posted them computed (no local progress)",
        },
        Cause::Transfer => Words {
            name: "transfer",
            letter: 't',
            meaning: "no computation beside it, copying, contention",
            answer: "the transfers themselves, with nothing computed beside them (transfer)",
        },
        Cause::NoProcessor => Words {
            name: "no processor",
            letter: 'p',
            meaning: "able to run, without a processor",
            answer: "a rank was able to run and had no processor (no processor)",
        },
    }
}

pub(crate) fn name(cause: Cause) -> &'static str {
    words(cause).name
}

pub(super) fn letter(cause: Cause) -> char {
    words(cause).letter
}

pub(crate) fn meaning(cause: Cause) -> &'static str {
    words(cause).meaning
}

pub(super) fn answer(cause: Cause) -> &'static str {
    words(cause).answer
}

/// What most of some time is due to. `is_vague`: between lack of local progress and transfer.
pub(super) fn main_name(cause: Cause, kind: Option<Kind>, is_vague: bool) -> &'static str {
    match (cause, kind) {
        (Cause::NoLocalProgress, _) if is_vague => "no local progress or transfer",
        (Cause::LatePartner, Some(Kind::Send)) => "late receiver",
        (Cause::LatePartner, Some(Kind::Recv)) => "late sender",
        _ => name(cause),
    }
}
