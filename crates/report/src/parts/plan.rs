//! Which ranks are looked at together.

use std::collections::BTreeSet;

use lapscope_trace::survey::Survey;

/// What a row takes in memory, bytes: endpoints, calls, their order, when their ranks were inside MPI, and what is made of them
/// while they are looked at.
pub const BYTES_PER_ROW: u64 = 80;

/// Cuts a run into parts of neighbouring ranks, each as large as fits into `bytes` with those that it has to be read with; one
/// rank at least.
pub fn plan(survey: &Survey, bytes: u64) -> Vec<Vec<u32>> {
    let mut parts = Vec::new();
    let mut part = Draft::default();
    for place in survey.places() {
        let more = survey.with_others(&[place]);
        if !part.focus.is_empty() && part.bytes_with(survey, &more) > bytes {
            parts.push(std::mem::take(&mut part).focus);
        }
        part.add(survey, place, more);
    }
    parts.extend(Some(part.focus).filter(|focus| !focus.is_empty()));
    parts
}

/// A part that may grow.
#[derive(Default)]
struct Draft {
    focus: Vec<u32>,
    /// With those that it has to be read with, and what they take in memory, about.
    ranks: BTreeSet<u32>,
    bytes: u64,
}

impl Draft {
    fn bytes_with(&self, survey: &Survey, more: &BTreeSet<u32>) -> u64 {
        let new = more.iter().filter(|place| !self.ranks.contains(place));
        self.bytes + new.map(|&place| bytes_of(survey, place)).sum::<u64>()
    }

    fn add(&mut self, survey: &Survey, place: u32, others: BTreeSet<u32>) {
        self.bytes = self.bytes_with(survey, &others);
        self.ranks.extend(others);
        self.focus.push(place);
    }
}

fn bytes_of(survey: &Survey, place: u32) -> u64 {
    survey.facts[place as usize].rows * BYTES_PER_ROW
}

/// How often ranks are read in all, for the sake of each other, by the rows that there are.
pub fn overhead(survey: &Survey, parts: &[Vec<u32>]) -> f64 {
    let all: u64 = survey.places().map(|place| bytes_of(survey, place)).sum();
    let read = parts.iter().flat_map(|part| survey.with_others(part));
    read.map(|place| bytes_of(survey, place)).sum::<u64>() as f64 / all.max(1) as f64
}

/// So many parts of about as many ranks.
pub fn plan_count(survey: &Survey, count: usize) -> Vec<Vec<u32>> {
    let places: Vec<u32> = survey.places().collect();
    let count = count.clamp(1, places.len().max(1));
    let bounds: Vec<usize> = (0..=count).map(|part| part * places.len() / count).collect();
    bounds.windows(2).map(|pair| places[pair[0]..pair[1]].to_vec()).collect()
}
