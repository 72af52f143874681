//! What to know of measured numbers, in words: why steps are not known, what reference times lack, what a sample says.

use lapscope_data::model::Full;
use lapscope_data::text::plural;
use lapscope_measure::overlap::sampled::{Sampled, Share, FEWEST_SLOTS};
use lapscope_measure::overlap::sums::Cause;
use lapscope_measure::overlap::{Overlap, OverlapNote};
use lapscope_measure::reference::RefusedCalibration;
use lapscope_measure::steps::NoSteps;

/// What measures reference times.
pub const CALIBRATE: &str = "lapscope calibrate -- <launch line>";

/// [`CALIBRATE`], for the end of a sentence; after one that was refused with what has to be otherwise.
pub fn how_to_calibrate(refused: Option<&RefusedCalibration>) -> String {
    match refused {
        None => CALIBRATE.to_owned(),
        Some(_) => format!(
            "{CALIBRATE} once more, with a processor for each rank and nothing else running, as the last calibration was refused"
        ),
    }
}

/// Writes what limits the numbers of an analysis.
pub fn fill(overlap: &mut Overlap) {
    let refused = overlap.reference.description.refused.as_ref();
    let limits = overlap.notes.iter().map(|&note| limit(note, refused));
    overlap.reference.notes = limits.chain(overlap.sampled.as_ref().and_then(sampled)).collect();
}

fn limit(note: OverlapNote, refused: Option<&RefusedCalibration>) -> String {
    match note {
        OverlapNote::NoReferenceTimes => format!(
            "not enough data for reference times: overlap is not known; measure them with: {}",
            how_to_calibrate(refused)
        ),
        OverlapNote::FewReferenceTimes { without, transfers } => format!(
            "{without} of {transfers} requests have no reference time (their size or path was not measured, or their end is \
             not known); measure more with: {}",
            how_to_calibrate(refused)
        ),
        OverlapNote::SummedUp { why, ranks } => {
            let what = match why {
                Full::MaxMb => "these numbers are of what has records: all up to there, and slots of time drawn at random behind it",
                Full::Disk | Full::FileSize => "what came after that is not in these numbers",
                Full::Asked | Full::JobRecord => "there are no requests to tell of",
            };
            format!("{} on {ranks} rank{}: {what}", why.sentence(), plural(ranks))
        }
    }
}

/// "of the whole run ...", as far as chance has drawn enough of it.
fn sampled(found: &Sampled) -> Option<String> {
    if found.slots < FEWEST_SLOTS {
        let slots = found.slots;
        return Some(format!("{slots} slots are too few to estimate shares of the whole run from"));
    }
    let named = [
        (Cause::LatePartner, "late partners"),
        (Cause::NoRemoteProgress, "no remote progress"),
        (Cause::NoLocalProgress, "no local progress"),
        (Cause::Transfer, "transfer"),
        (Cause::NoProcessor, "no processor"),
    ];
    let said = |(cause, name): &(Cause, &str)| {
        let share = found.exposed.get(cause).filter(|share| share.estimate > 0.0)?;
        Some(format!("{} {name}", share_in_words(share)))
    };
    let causes: Vec<String> = named.iter().filter_map(said).collect();
    let overlap = found.achieved_low.zip(found.achieved_high);
    let overlap = overlap.map_or_else(String::new, |(low, high)| {
        let overlap = format!("{:.1} to {:.1} %", 100.0 * low.low, 100.0 * high.high);
        format!(", achieved overlap {overlap}")
    });
    (!causes.is_empty()).then(|| {
        format!(
            "of the whole run, estimated from {} slots with intervals of 95 %: exposed time is {}{overlap}",
            found.slots,
            causes.join(", ")
        )
    })
}

fn share_in_words(share: &Share) -> String {
    let [estimate, low, high] = [share.estimate, share.low, share.high].map(|it| 100.0 * it);
    format!("{estimate:.1} % ({low:.1} to {high:.1} %)")
}

/// Why there are no steps.
pub fn no_steps(why: NoSteps) -> String {
    const MARK: &str = "the program can mark steps by MPI_Pcontrol(2)";
    match why {
        NoSteps::NothingRecurs => format!(
            "no steps were found: nothing that is most of the run recurs in a way that is certain; {MARK}, or regions by \
             MPI_Pcontrol(1, \"name\") and MPI_Pcontrol(-1, \"name\")"
        ),
        NoSteps::SummedUp => {
            format!("steps are not looked for: a part of the run was only summed up; {MARK}")
        }
        NoSteps::MarksLost => {
            "steps are not counted: some of their marks were not kept; a higher LAPSCOPE_MAX_MB keeps more".to_owned()
        }
        NoSteps::RanksDiffer { all, ranks, count } => {
            format!("ranks do not agree in the number of steps: of {all} ranks {ranks} have {count} of them; {MARK}")
        }
    }
}
