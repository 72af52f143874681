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
    /// Tests go into lines of Python, which no sample sees.
    #[serde(skip)]
    in_python: bool,
}

/// `None`: no samples say so.
pub(super) fn while_posted(
    samples: &RunSamples,
    posts: &[SiteId],
    ranks: &[Rank],
    places: &Places,
    names: &mut dyn NameFrames,
    in_python: bool,
) -> Option<ComputesAdvice> {
    let found = lines_while(samples, posts, ranks, places, names)?;
    let mut sentence = if in_python { sentence_of_python(&found) } else { sentence(&found) };
    sentence += &others(&found);
    Some(ComputesAdvice { found, sentence, in_python })
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
        let samples = count(self.found.samples);
        if self.in_python && self.found.samples > 0 {
            return Some(format!(
                "The same in the program itself: call MPI_Test in the loop of Python that comes to {}, by {samples} samples.",
                python_comes_to(&self.found)
            ));
        }
        let named = named(self.found.lines.iter());
        (!named.is_empty()).then(|| {
            format!(
                "The same in the program itself: call MPI_Test in a loop around {}, which is what is computed meanwhile, by \
                 {samples} samples.",
                named.join(", ")
            )
        })
    }
}

/// "update_row halo.c:76 (93 %)", of each line that is worth it.
fn named<'a>(lines: impl Iterator<Item = &'a ComputingLine>) -> Vec<String> {
    let named = lines.filter(|line| line.share >= LEAST_SHARE).take(NAMED);
    named.map(|line| format!("{} ({})", line_in_words(line), percent(line.share))).collect()
}

fn sentence(found: &ComputingLines) -> String {
    let samples = count(found.samples);
    match named(found.lines.iter()).as_slice() {
        [] => format!(
            "What the program computes meanwhile is spread over many lines, none with a tenth of {samples} samples."
        ),
        named => format!(
            "While requests of these calls are under way the program computes in {}, of {samples} samples: test in a loop around these.",
            named.join(", ")
        ),
    }
}

/// Samples are of machine code: the lines of Python are those between the two calls.
fn sentence_of_python(found: &ComputingLines) -> String {
    format!(
        "Samples see no line of Python: that computation is in {}, of {} samples. Test in the loop of Python between the two \
         calls that comes there.",
        python_comes_to(found),
        count(found.samples)
    )
}

/// "Python's interpreter (75 %), DOUBLE_add in umath.so (25 %)".
fn python_comes_to(found: &ComputingLines) -> String {
    let is_interpreter = |line: &&ComputingLine| line.place.is_python_interpreter();
    let interpreter: f64 = found.lines.iter().filter(is_interpreter).map(|it| it.share).sum();
    let mut places = named(found.lines.iter().filter(|line| !is_interpreter(line)));
    if interpreter >= LEAST_SHARE {
        places.insert(0, format!("Python's interpreter ({})", percent(interpreter)));
    }
    if places.is_empty() {
        places.push("many functions".to_owned());
    }
    places.join(", ")
}

fn others(found: &ComputingLines) -> String {
    let compute = found.other_threads >= OTHERS_COMPUTE;
    let text = " Meanwhile other threads of these ranks compute, too.";
    if compute { text } else { "" }.to_owned()
}

/// Says once, in the first advice to test that is read, how its lines would be named.
pub(super) fn say_how(advice: &mut [Advice], samples: &RunSamples) {
    let is_to_test = |advice: &&mut Advice| advice.is_for_tests() && advice.is_worth_reading();
    if let Some(first) = advice.iter_mut().find(is_to_test).filter(|_| samples.samplers.is_empty())
    {
        let sentence = match first.is_in_python() {
            true => "lapscope run --sample tells what of it is in the interpreter and what in which library.",
            false => "lapscope run --sample names the lines of that computation.",
        };
        let sentence = sentence.to_owned();
        let (found, in_python) = (ComputingLines::default(), first.is_in_python());
        first.computes = Some(ComputesAdvice { found, sentence, in_python });
    }
}
