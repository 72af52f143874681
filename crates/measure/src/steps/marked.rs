//! What programs mark by MPI_Pcontrol: regions with names, and steps.

use std::collections::BTreeMap;

use lapscope_trace::Trace;

/// Regions of one name of a rank: from when to when, in the order of their begins.
pub(super) type Regions = BTreeMap<String, Vec<(i64, i64)>>;

const BEGINS: i32 = 1;
const ENDS: i32 = -1;
const STEP: i32 = 2;

/// The regions of a rank by name. They are nested: an end is that of the last begin of that name that is open; what has none is
/// no region, as what a program says without a name may look like a begin.
pub(super) fn regions(trace: &Trace, place: usize) -> Regions {
    let rank = &trace.ranks[place];
    let mut regions = Regions::new();
    let mut open: Vec<(u32, i64)> = Vec::new();
    let mut add = |name: u32, begin: i64, end: i64| {
        if let Some(name) = trace.mark_names.get(name as usize) {
            regions.entry(name.clone()).or_default().push((begin, end.max(begin)));
        }
    };
    for mark in &rank.marks {
        let Some(name) = mark.name else { continue };
        match mark.level {
            BEGINS => open.push((name, mark.at)),
            ENDS => {
                if let Some(at) = open.iter().rposition(|(of, _)| *of == name) {
                    let (_, begin) = open.remove(at);
                    add(name, begin, mark.at);
                }
            }
            _ => {}
        }
    }
    regions.values_mut().for_each(|of_name| of_name.sort_unstable());
    regions
}

/// Steps that a rank marks: each from its mark to the next, the last to the end of the rank's communication.
pub(super) fn steps(trace: &Trace, place: usize) -> Vec<(i64, i64)> {
    let rank = &trace.ranks[place];
    let begins: Vec<i64> =
        rank.marks.iter().filter(|mark| mark.level == STEP).map(|mark| mark.at).collect();
    let calls = rank.calls.iter().map(|call| call.begin + call.duration);
    let last_call = calls.max().unwrap_or(i64::MIN);
    let Some(&last) = begins.last() else { return Vec::new() };
    let last_end = last_call.max(last);
    let ends = begins.iter().skip(1).copied().chain([last_end]);
    begins.iter().copied().zip(ends).collect()
}

/// Of the regions of all these ranks the one that steps are: of at least so many on each rank, the one that most time is in; of
/// several the outermost.
pub(super) fn of_most_time(ranks: &[Regions], fewest: usize) -> Option<String> {
    let first = ranks.first()?;
    let is_step = |name: &&String| {
        ranks.iter().all(|rank| rank.get(*name).is_some_and(|of| of.len() >= fewest))
    };
    let time = |name: &String| -> i64 {
        let of_rank =
            |rank: &Regions| rank[name].iter().map(|(begin, end)| end - begin).sum::<i64>();
        ranks.iter().map(of_rank).sum()
    };
    let begins_first = |name: &String| std::cmp::Reverse(first[name][0].0);
    first.keys().filter(is_step).max_by_key(|name| (time(name), begins_first(name))).cloned()
}
