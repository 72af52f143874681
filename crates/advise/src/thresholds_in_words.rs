//! The limits in words.

use lapscope_data::text::plural;
use lapscope_measure::thresholds::{
    progress_differs, Cumulative, CumulativeVerdict, DeclaredBy, Governing, LimitVerdict,
    LocalityThresholds, Threshold, Thresholds, WaitsFor,
};
use lapscope_trace::{Locality, Trace};

/// Writes the sentence of each limit, what to do to know more, and what is worth saying of all.
pub fn fill(found: &mut Thresholds, trace: &Trace) {
    let library = trace.ranks.first().map_or("", |rank| rank.info().mpi_library.as_str());
    found.localities.iter_mut().for_each(|locality| fill_locality(locality, library));
    found.sentences = found.localities.iter().flat_map(of_locality).collect();
}

fn fill_locality(found: &mut LocalityThresholds, library: &str) {
    let locality = locality_words(found.locality);
    found.rendezvous.sentence = rendezvous(&found.rendezvous, found.waits_for, locality);
    if let Some(declared) = &found.declared {
        let words = declared_words(declared, &found.rendezvous, library_name(library));
        found.rendezvous.sentence += &words;
    }
    found.needs_receiver_progress.sentence = progress(&found.needs_receiver_progress, locality);
    found.post.sentence = post(&found.post, locality);
    found.cumulative.sentence = cumulative(&found.cumulative, locality);
    for threshold in [&mut found.rendezvous, &mut found.needs_receiver_progress, &mut found.post] {
        threshold.next = next(threshold);
    }
}

/// What is worth saying of a locality, the most important first.
fn of_locality(found: &LocalityThresholds) -> Vec<String> {
    let mut sentences = vec![found.rendezvous.sentence.clone()];
    if progress_differs(found) {
        sentences.push(found.needs_receiver_progress.sentence.clone());
    }
    if found.post.verdict != LimitVerdict::NoEvidence {
        sentences.push(found.post.sentence.clone());
    }
    if found.cumulative.verdict != CumulativeVerdict::NotEnough {
        sentences.push(found.cumulative.sentence.clone());
    }
    sentences
}

/// "between ranks of one node".
pub fn locality_words(locality: Locality) -> &'static str {
    match locality {
        Locality::SelfRank => "of a rank to itself",
        Locality::Node => "between ranks of one node",
        Locality::Network => "between nodes",
    }
}

fn bytes(size: Option<u64>) -> String {
    let size = size.unwrap_or(0);
    format!("{size} byte{}", plural(size))
}

/// ": 1204 messages agree, 2 disagree".
fn counts(of: &Threshold) -> String {
    let agree = of.eager + of.waiting;
    let verb = if agree == 1 { "agrees" } else { "agree" };
    format!("{agree} message{} {verb}, {} disagree", plural(agree), of.contradictions)
}

fn rendezvous(of: &Threshold, waits_for: WaitsFor, locality: &str) -> String {
    let (low, high) = (bytes(of.largest_eager_bytes), bytes(of.smallest_waiting_bytes));
    let whom = match waits_for {
        WaitsFor::Receive => "it (rendezvous)",
        WaitsFor::Receiver => "the receiver (to be inside MPI, or to post the receive)",
    };
    let counts = counts(of);
    match of.verdict {
        LimitVerdict::Bracket => {
            format!("sends {locality} are complete without their receive up to {low}; from {high} on they wait for {whom}; {counts}")
        }
        LimitVerdict::NotEnoughSizes => format!(
            "sends {locality} are complete without their receive up to {low}; from {high} on they wait for {whom}; no sizes in \
             between tell where the limit is; {counts}"
        ),
        LimitVerdict::AlwaysEager => {
            format!("sends {locality} are complete without their receive up to {low}, the largest size that tells; {counts}")
        }
        LimitVerdict::AlwaysWaits => {
            format!("sends {locality} wait for {whom} from {high} on, the smallest size that tells; {counts}")
        }
        LimitVerdict::Unclear => format!(
            "of the sends {locality} {} were complete without their receive and {} waited for {whom}, and their size does not tell \
             which",
            of.eager, of.waiting
        ),
        LimitVerdict::NoEvidence => {
            format!("nothing shows from which size on sends {locality} wait: receivers were there, or too few messages tell")
        }
    }
}

fn progress(of: &Threshold, locality: &str) -> String {
    let (low, high) = (bytes(of.largest_eager_bytes), bytes(of.smallest_waiting_bytes));
    let counts = counts(of);
    match of.verdict {
        LimitVerdict::Bracket | LimitVerdict::NotEnoughSizes => format!(
            "from {high} on sends {locality} need receiver progress: they are not complete before the receiver is inside MPI, \
             whatever it does there; up to {low} they are eager; {counts}"
        ),
        LimitVerdict::AlwaysEager => {
            format!("sends {locality} are eager up to {low}: complete while the receiver is outside MPI; {counts}")
        }
        LimitVerdict::AlwaysWaits => format!(
            "from {high} on, the smallest size that tells, sends {locality} need receiver progress: they are not complete before \
             the receiver is inside MPI, whatever it does there; {counts}"
        ),
        LimitVerdict::Unclear => format!(
            "of the sends {locality} {} were complete while the receiver was outside MPI and {} were not, and their size does not \
             tell which",
            of.eager, of.waiting
        ),
        LimitVerdict::NoEvidence => {
            format!("nothing shows whether sends {locality} need receiver progress")
        }
    }
}

fn post(of: &Threshold, locality: &str) -> String {
    let (low, high) = (bytes(of.largest_eager_bytes), bytes(of.smallest_waiting_bytes));
    let counts = counts(of);
    match of.verdict {
        LimitVerdict::Bracket | LimitVerdict::NotEnoughSizes => format!(
            "MPI_Isend {locality} returns at once up to {low}, from {high} on only when the receiver is there; {counts}"
        ),
        LimitVerdict::AlwaysEager => {
            format!("MPI_Isend {locality} returns at once at all sizes that tell, up to {low}; {counts}")
        }
        LimitVerdict::AlwaysWaits => {
            format!("MPI_Isend {locality} returns only when the receiver is there at all sizes that tell, from {high} on; {counts}")
        }
        LimitVerdict::Unclear => format!(
            "of the calls of MPI_Isend {locality} {} returned at once and {} only when the receiver was there, and their size does \
             not tell which",
            of.eager, of.waiting
        ),
        LimitVerdict::NoEvidence => format!("nothing shows whether MPI_Isend {locality} returns at once"),
    }
}

fn cumulative(of: &Cumulative, locality: &str) -> String {
    let (low, high) = (bytes(of.largest_eager_bytes), bytes(of.smallest_blocking_bytes));
    match of.verdict {
        CumulativeVerdict::PerMessage => {
            format!("the limit {locality} is one for each message: none for several together up to {low} on their way")
        }
        CumulativeVerdict::Cumulative => format!(
            "the limit {locality} is one for all that is on its way to a receiver: up to {low} together no message waits, from \
             {high} on the next one does; {} messages agree, {} disagree, and {} that waited would not with a limit for each \
             message",
            of.eager + of.waiting,
            of.contradictions,
            of.contradictions_per_message
        ),
        CumulativeVerdict::Unclear => format!(
            "{} messages {locality} waited behind others and would not have waited alone, and neither their size nor the bytes on \
             their way tell which do",
            of.waiting
        ),
        CumulativeVerdict::NotEnough => format!(
            "nothing shows whether the limit {locality} is one for each message or for all on their way: never were several on \
             their way to a receiver that was not there"
        ),
    }
}

fn declared_words(declared: &Governing, found: &Threshold, library: &str) -> String {
    let who = match declared.by {
        DeclaredBy::ControlVariable => format!("{library} declares"),
        DeclaredBy::Environment => "the environment sets".to_owned(),
    };
    let above = declared.bytes > found.smallest_waiting_bytes;
    let agreement = match declared.agrees {
        Some(true) => ", which agrees",
        Some(false) => ", which does not agree",
        None if declared.bytes.is_some() && above && found.smallest_waiting_bytes.is_some() => {
            ", up to which sends may need receiver progress only"
        }
        None => "",
    };
    format!("; {who} {} = {}{agreement}", declared.name, declared.value)
}

/// The command that sends what is missing.
const PROBE: &str =
    "lapscope thresholds --probe -- and your launch line without the program finds out";

/// What people call the library that says this of itself.
fn library_name(version: &str) -> &'static str {
    let names = [("Open MPI", "Open MPI"), ("MPICH", "MPICH"), ("Intel", "Intel MPI")];
    names.iter().find(|(begin, _)| version.starts_with(begin)).map_or("MPI", |(_, name)| name)
}

/// What would tell more.
fn next(of: &Threshold) -> Option<String> {
    let how = "to a receiver that computes for some milliseconds before it posts the receive";
    match of.verdict {
        LimitVerdict::NotEnoughSizes => {
            let (low, high) = (of.largest_eager_bytes?, of.smallest_waiting_bytes?);
            let sizes: Vec<String> = between(low, high).iter().map(u64::to_string).collect();
            Some(format!(
                "{PROBE}, or a run that sends messages of {} bytes {how}",
                sizes.join(", ")
            ))
        }
        LimitVerdict::NoEvidence | LimitVerdict::Unclear => {
            Some(format!("{PROBE}, or a run that sends messages of many sizes {how}"))
        }
        _ => None,
    }
}

/// Up to five sizes between two, evenly by their ratio.
fn between(low: u64, high: u64) -> Vec<u64> {
    let (low, high) = (low.max(16) as f64, high as f64);
    let steps = ((high / low).log2().floor() as u32).clamp(2, 6);
    let ratio = (high / low).powf(1.0 / f64::from(steps));
    (1..steps).map(|step| (low * ratio.powi(step as i32)).round() as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_between() {
        assert_eq!(between(1_000, 16_000), [2_000, 4_000, 8_000]);
        assert_eq!(between(0, 64), [32]);
        assert_eq!(between(1, 1 << 40).len(), 5);
    }
}
