//! What a program marked by MPI_Pcontrol: regions with a name, and steps.

use lapscope_trace::{Mark, Trace};

use crate::event::{Event, EventKind};
use crate::shown::ShownWindows;

/// A stretch of one rank's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// On the run's clock, nanoseconds.
    pub begin: i64,
    /// When the recording ended, of one whose end was not marked.
    pub end: i64,
    pub name: String,
    pub is_step: bool,
}

/// `MPI_Pcontrol(1, name)` begins a region, `MPI_Pcontrol(-1, name)` ends it, `MPI_Pcontrol(2)` begins a step.
const BEGINS: i32 = 1;
const ENDS: i32 = -1;
const STEP: i32 = 2;

/// Adds when the regions and steps of a rank begin and end; those that began last come first.
pub(crate) fn regions(
    trace: &Trace,
    shown: &ShownWindows,
    place: usize,
    events: &mut Vec<Event>,
) -> Vec<Region> {
    let rank = &trace.ranks[place];
    let mut all = steps(&rank.marks, rank.end);
    let steps = all.len();
    all.extend(named(&rank.marks, rank.end, &trace.mark_names));
    let is_shown = |region: &Region| shown.touches(place, region.begin, region.end);
    for kind in [0..steps, steps..all.len()] {
        let mut open: Vec<usize> = Vec::new();
        let close = |at: i64, open: &mut Vec<usize>, events: &mut Vec<Event>| {
            while let Some(&inner) = open.last().filter(|&&inner| all[inner].end <= at) {
                events
                    .push(Event { at: all[inner].end, what: EventKind::RegionEnds(inner as u32) });
                open.pop();
            }
        };
        for index in kind.filter(|&index| is_shown(&all[index])) {
            close(all[index].begin, &mut open, events);
            events
                .push(Event { at: all[index].begin, what: EventKind::RegionBegins(index as u32) });
            open.push(index);
        }
        close(i64::MAX, &mut open, events);
    }
    all
}

/// From one mark to the next, and to the end.
fn steps(marks: &[Mark], last: i64) -> Vec<Region> {
    let begins: Vec<i64> =
        marks.iter().filter(|mark| mark.level == STEP).map(|mark| mark.at).collect();
    let ends = begins.iter().skip(1).copied().chain([last]);
    let step = |(number, (&begin, end)): (usize, (&i64, i64))| Region {
        begin,
        end: end.max(begin),
        name: format!("step {number}"),
        is_step: true,
    };
    (1..).zip(begins.iter().zip(ends)).map(step).collect()
}

/// By begin. What is inside of one that ends, ends with it.
fn named(marks: &[Mark], last: i64, names: &[String]) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for mark in marks {
        let name = mark.name.and_then(|name| names.get(name as usize));
        let name = name.map_or("region", String::as_str);
        match mark.level {
            BEGINS => {
                open.push(regions.len());
                let (begin, end) = (mark.at, last.max(mark.at));
                regions.push(Region { begin, end, name: name.to_owned(), is_step: false });
            }
            ENDS => {
                let place = open.iter().rposition(|&region| regions[region].name == name);
                for region in open.split_off(place.unwrap_or(open.len())) {
                    regions[region].end = mark.at;
                }
            }
            _ => {}
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_end_with_those_around_them() {
        let mark = |at, level, name| Mark { at, level, name };
        let marks = vec![
            mark(10, 2, None),
            mark(10, 1, Some(0)),
            mark(20, 1, Some(1)),
            mark(30, -1, Some(0)),
            mark(35, -1, Some(1)),
            mark(40, 2, None),
            mark(50, 1, Some(1)),
        ];
        let mark_names = vec!["outer".to_owned(), "inner".to_owned()];
        let found = |regions: &[Region]| -> Vec<(i64, i64, String)> {
            regions.iter().map(|it| (it.begin, it.end, it.name.clone())).collect()
        };
        let expected = [(10, 30, "outer"), (20, 30, "inner"), (50, 60, "inner")];
        let expected = expected.map(|(begin, end, name)| (begin, end, name.to_owned()));
        assert_eq!(found(&named(&marks, 60, &mark_names)), expected);
        let expected = [(10, 40, "step 1".to_owned()), (40, 60, "step 2".to_owned())];
        assert_eq!(found(&steps(&marks, 60)), expected);
    }
}
