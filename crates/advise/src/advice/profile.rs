//! In which lines the program computes where it should test: said beside advice to do so.

use serde::Serialize;

use super::Advice;
use lapscope_data::model::Rank;
use lapscope_data::places::{Places, SiteId};
use lapscope_data::symbols::NameFrames;
use lapscope_data::text::units::{count, percent};
use lapscope_measure::profile::{lines_while, ComputingLine, ComputingLines};
use lapscope_trace::samples::RunSamples;

/// Lines with less of the samples are not named in a sentence.
const LEAST_SHARE: f64 = 0.1;
/// So many are.
const NAMED: usize = 3;
/// From so many other threads on it is said that they compute, too.
const OTHERS_COMPUTE: f64 = 0.5;

/// Where the program computes while the requests of some posts are under way. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComputesAdvice {
    #[serde(flatten)]
    pub found: ComputingLines,
    pub sentence: String,
}

/// `None`: no samples say so.
pub(super) fn while_posted(
    samples: &RunSamples,
    posts: &[SiteId],
    ranks: &[Rank],
    places: &Places,
    names: &mut dyn NameFrames,
) -> Option<ComputesAdvice> {
    let found = lines_while(samples, posts, ranks, places, names)?;
    let sentence = sentence(&found);
    Some(ComputesAdvice { found, sentence })
}

/// "main halo.c:88", with the function that it is inlined into.
pub fn line_in_words(line: &ComputingLine) -> String {
    let into = line.inlined_into.iter().find(|name| name.function != line.place.function);
    let into = into.map(|name| format!(" (inlined into {})", name.brief())).unwrap_or_default();
    format!("{}{into}", line.place.short())
}

impl ComputesAdvice {
    /// What to do in the program, for whoever has found that tests in this computation gain.
    pub fn by_hand(&self) -> Option<String> {
        let named = named(&self.found);
        (!named.is_empty()).then(|| {
            format!(
                "The same in the program itself: call MPI_Test in a loop around {}, which is what is computed meanwhile, by {} samples.",
                named.join(", "),
                count(self.found.samples)
            )
        })
    }
}

/// "update_row halo.c:76 (93 %)", of each line that is worth it.
fn named(found: &ComputingLines) -> Vec<String> {
    let named = found.lines.iter().filter(|line| line.share >= LEAST_SHARE).take(NAMED);
    named.map(|line| format!("{} ({})", line_in_words(line), percent(line.share))).collect()
}

fn sentence(found: &ComputingLines) -> String {
    let named = named(found);
    let samples = count(found.samples);
    let mut text = match named.as_slice() {
        [] => format!(
            "That computation is spread over many lines, none with a tenth of {samples} samples."
        ),
        named => format!(
            "That computation is in {}, of {samples} samples: test in a loop around these.",
            named.join(", ")
        ),
    };
    if found.other_threads >= OTHERS_COMPUTE {
        text += &format!(
            " Meanwhile {:.1} other threads of a rank compute, in the mean.",
            found.other_threads
        );
    }
    text
}

/// Says once, in the first advice to test that is read, how its lines would be named.
pub(super) fn say_how(advice: &mut [Advice], samples: &RunSamples) {
    let is_to_test = |advice: &&mut Advice| advice.is_for_tests() && advice.is_worth_reading();
    if let Some(first) = advice.iter_mut().find(is_to_test).filter(|_| samples.samplers.is_empty())
    {
        let sentence = "lapscope run --sample names the lines of that computation.".to_owned();
        first.computes = Some(ComputesAdvice { found: ComputingLines::default(), sentence });
    }
}
