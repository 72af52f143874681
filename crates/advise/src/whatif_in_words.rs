//! What to know of replays, in words.

use lapscope_data::text::units::{percent, time};
use lapscope_predict::whatif::document::{ReplayNote, WhatIf};

use crate::standstill_in_words::deadlock;

/// Writes what the model rests on, what each scenario could not change, and why one never ends.
pub fn fill(found: &mut WhatIf) {
    let WhatIf { model, identity, scenarios, .. } = found;
    model.notes.splice(..0, model.to_know.iter().map(sentence));
    for it in std::iter::once(identity).chain(scenarios) {
        it.notes = it.to_know.iter().map(sentence).collect();
        if let Some(found) = &mut it.deadlock {
            found.says = deadlock(found, &it.scenario);
        }
    }
}

fn sentence(note: &ReplayNote) -> String {
    match note {
        ReplayNote::SummedUp => {
            "some ranks kept sums alone from some point on: what follows is replayed as computation".to_owned()
        }
        ReplayNote::FittedToWaits => "no message went undisturbed, so how long messages take is fitted to the waits: lapscope \
             calibrate -- <launch line> measures it"
            .to_owned(),
        ReplayNote::Injected(took) => format!(
            "lapscope injected tests into this run: they are in the replay of it as it was, and what they took, {:.3} ms of all \
             ranks, is taken out of scenarios; --progress every=TIME asks for some",
            took.0 as f64 / 1e6
        ),
        ReplayNote::Moved { calls, over, unknown } => format!(
            "{calls} calls moved, over {:.3} ms of computation together; of {unknown} call sites `lapscope reach` saw nothing, and \
             their calls stay where they were",
            over.0 as f64 / 1e6
        ),
        ReplayNote::LeftOut { site, left_out, collectives, unknown } => {
            let stay = match unknown {
                0 => String::new(),
                calls => format!("; {calls} calls there stay, as their other members are not known"),
            };
            format!(
                "{left_out} of {collectives} collectives of {site} left out, and all else as it was, whatever the program needs them \
                 for{stay}"
            )
        }
        ReplayNote::NonBlocking(collectives) => format!(
            "{collectives} blocking collectives begun where they are and waited for at the next call of MPI of their thread: the most \
             that non-blocking ones can free, as the program may need their results before"
        ),
        ReplayNote::Untraced { share, waiting } => format!(
            "{} of the waiting ({}) is in no root cause: waits of less than a hundred-thousandth of the run, and chains of waits too \
             long to follow",
            percent(*share),
            time(*waiting)
        ),
    }
}
