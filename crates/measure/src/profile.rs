//! Which lines compute: samples of instructions, by the line that they are of.
//!
//! A share of samples is a share of the running time of these threads outside of MPI. Of n samples a share p is known to
//! within about 2 sqrt(p (1 - p) / n): from a hundred samples on it is worth saying.

use std::collections::HashMap;

use serde::Serialize;

use lapscope_data::model::{Frame, Rank, SampledThread};
use lapscope_data::places::{Places, SiteId};
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::samples::{RunSamples, Sampled};

/// From so many samples on lines are named.
pub const ENOUGH_SAMPLES: u64 = 100;
/// So many lines are named.
const MOST_LINES: usize = 10;
/// Where neither line nor function is known, instructions so near to each other are one place.
const BLOCK_BYTES: u64 = 256;

/// A line in which threads compute; where lines are not known, a function, or a place in a library.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComputingLine {
    pub place: FrameName,
    /// The functions that it is inlined into, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined_into: Vec<FrameName>,
    pub samples: u64,
    /// Of the samples that are looked at.
    pub share: f64,
}

/// Samples, and the lines that have most of them. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ComputingLines {
    pub samples: u64,
    /// Those with most of them, sorted by that.
    pub lines: Vec<ComputingLine>,
    /// How many threads that make no call of MPI compute meanwhile, a mean.
    pub other_threads: f64,
}

/// Where a run computes, by its samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Profile {
    /// Ranks on which samples were taken.
    pub ranks: usize,
    /// Samples a second of running time that were asked for.
    pub rate_hz: u64,
    /// Ranks on which a timer's signal took them.
    pub by_signal: usize,
    /// Why others took none, with their ranks.
    pub problems: Vec<SamplingProblem>,
    /// Samples for which there was no room.
    pub lost: u64,
    pub left_out: u64,
    /// Outside of MPI.
    pub outside: ComputingLines,
}

/// Ranks that took no samples, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SamplingProblem {
    pub problem: String,
    pub ranks: Vec<Rank>,
}

impl Profile {
    /// `None`: no rank was asked to take samples.
    pub fn of_run(
        samples: &RunSamples,
        places: &Places,
        names: &mut dyn NameFrames,
    ) -> Option<Profile> {
        let (_, first) = samples.samplers.first()?;
        let sum = |what: fn(&lapscope_data::model::Sampler) -> u64| {
            samples.samplers.iter().map(|(_, it)| what(it)).fold(0, u64::saturating_add)
        };
        let mut problems: Vec<SamplingProblem> = Vec::new();
        for (rank, problem) in
            samples.samplers.iter().filter_map(|(rank, it)| Some((*rank, it.problem.as_ref()?)))
        {
            match problems.iter_mut().find(|known| known.problem == *problem) {
                Some(known) => known.ranks.push(rank),
                None => {
                    problems.push(SamplingProblem { problem: problem.clone(), ranks: vec![rank] })
                }
            }
        }
        let without: usize = problems.iter().map(|problem| problem.ranks.len()).sum();
        Some(Profile {
            ranks: samples.samplers.len() - without,
            rate_hz: first.rate_hz,
            by_signal: samples.samplers.iter().filter(|(_, it)| it.by_signal).count(),
            problems,
            lost: sum(|it| it.lost),
            left_out: sum(|it| it.left_out),
            outside: lines(samples, |_| true, places, names),
        })
    }
}

/// The lines of those samples that were taken on one of these ranks, or any where none is named, while requests of one of these sites were under way; `None`:
/// there are too few to tell.
pub fn lines_while(
    samples: &RunSamples,
    posts: &[SiteId],
    ranks: &[Rank],
    places: &Places,
    names: &mut dyn NameFrames,
) -> Option<ComputingLines> {
    let is_meant = |it: &Sampled| {
        (ranks.is_empty() || ranks.contains(&it.rank))
            && it.posts.iter().any(|post| posts.contains(post))
    };
    let found = lines(samples, is_meant, places, names);
    (found.samples >= ENOUGH_SAMPLES).then_some(found)
}

/// What samples are of that are one line: of an inlined one, as it is inlined in one place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum LineKey {
    Line { module: Option<String>, from_innermost: Vec<LinePlace> },
    Block { module: Option<String>, number: u64 },
}

type LinePlace = (Option<String>, Option<String>, Option<u32>);

impl LineKey {
    fn of(names: &[FrameName]) -> Option<LineKey> {
        let innermost = names.first()?;
        let module = innermost.module.clone();
        if innermost.function.is_none() && innermost.line.is_none() {
            return Some(LineKey::Block { module, number: innermost.address / BLOCK_BYTES });
        }
        let place = |it: &FrameName| (it.function.clone(), it.file.clone(), it.line);
        Some(LineKey::Line { module, from_innermost: names.iter().map(place).collect() })
    }
}

/// The samples of one line: all of them, and the instruction with most.
struct LineSamples {
    samples: u64,
    most: u64,
    names: Vec<FrameName>,
}

fn lines(
    samples: &RunSamples,
    is_meant: impl Fn(&Sampled) -> bool,
    places: &Places,
    names: &mut dyn NameFrames,
) -> ComputingLines {
    let (mut by_frame, mut others) = (HashMap::<Frame, u64>::new(), 0u64);
    for sample in samples.samples.iter().filter(|sample| is_meant(sample)) {
        match (sample.thread, places.instruction(sample.instruction).frames.first()) {
            (SampledThread::Caller, Some(&frame)) => {
                *by_frame.entry(frame).or_default() += sample.count
            }
            (SampledThread::Caller, None) => {}
            (SampledThread::Other, _) => others += sample.count,
        }
    }
    let all: u64 = by_frame.values().sum();
    let share = |samples: u64| if all > 0 { samples as f64 / all as f64 } else { 0.0 };
    let mut frames: Vec<(Frame, u64)> = by_frame.into_iter().collect();
    frames.sort_unstable();
    let mut found: HashMap<LineKey, LineSamples> = HashMap::new();
    for (frame, samples) in frames {
        let named = names.name(frame);
        let Some(key) = LineKey::of(&named) else { continue };
        let line = found.entry(key).or_insert_with(|| LineSamples {
            samples: 0,
            most: 0,
            names: Vec::new(),
        });
        line.samples += samples;
        if samples > line.most {
            (line.most, line.names) = (samples, named);
        }
    }
    let mut lines: Vec<LineSamples> = found.into_values().collect();
    lines.sort_by(|a, b| {
        b.samples.cmp(&a.samples).then_with(|| {
            let place = |line: &LineSamples| (line.names[0].address, line.names[0].module.clone());
            place(a).cmp(&place(b))
        })
    });
    lines.truncate(MOST_LINES);
    let line = |mut line: LineSamples| {
        let inlined_into = line.names.split_off(1);
        let place = line.names.swap_remove(0);
        ComputingLine { place, inlined_into, samples: line.samples, share: share(line.samples) }
    };
    let lines = lines.into_iter().map(line).collect();
    // the rank's own thread computes for a part of the time only
    let most = samples.samplers.iter().map(|(_, sampler)| sampler.other_threads).max();
    let other_threads = share(others).min(most.unwrap_or(0) as f64);
    ComputingLines { samples: all, lines, other_threads }
}
