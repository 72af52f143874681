//! Which ranks are looked at together.

use super::survey::Survey;

/// What a row takes in memory once it is read, bytes: endpoints, calls, their order and when their ranks were inside MPI.
pub const BYTES_PER_ROW: u64 = 72;

/// Cuts a run into parts of neighbouring ranks, each as large as fits into `bytes` with those that it has to be read with; one
/// rank at least.
pub fn plan(survey: &Survey, bytes: u64) -> Vec<Vec<u32>> {
    let mut parts = Vec::new();
    let mut part: Vec<u32> = Vec::new();
    for place in survey.places() {
        part.push(place);
        if part.len() > 1 && bytes_of(survey, &part) > bytes {
            part.pop();
            parts.push(std::mem::replace(&mut part, vec![place]));
        }
    }
    parts.extend(Some(part).filter(|part| !part.is_empty()));
    parts
}

/// So many parts of about as many ranks.
pub fn plan_count(survey: &Survey, count: usize) -> Vec<Vec<u32>> {
    let places: Vec<u32> = survey.places().collect();
    let count = count.clamp(1, places.len().max(1));
    let bounds: Vec<usize> = (0..=count).map(|part| part * places.len() / count).collect();
    bounds.windows(2).map(|pair| places[pair[0]..pair[1]].to_vec()).collect()
}

/// What a part takes in memory, about.
pub fn bytes_of(survey: &Survey, focus: &[u32]) -> u64 {
    let wanted = survey.with_others(focus);
    wanted.iter().map(|&place| survey.facts[place as usize].rows * BYTES_PER_ROW).sum()
}
