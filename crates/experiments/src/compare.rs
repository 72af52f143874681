//! Puts what lapscope says of a run beside what the program said of itself: the same quantity of the same messages.
//!
//! Overlap counts from when both sides have posted, also where one side is first on purpose: from its own post on,
//! whoever is first would overlap computation with the other's delay. The kernel tells user from system time by its
//! ticks, so only the idle share of long calls is compared.

use std::collections::HashSet;

use super::outside::{spread, CollectiveKey, Collectives, CpuTimes, RecordedRun};
use super::results::{Inject, Spread, Table, TableRow};
use lapscope_trace::{Direction, Half};

/// Times may differ by so many microseconds: the program reads its clock before lapscope is entered and after it is left, which
/// takes some when what both need has left the caches.
const CLOSE_US: f64 = 5.0;
/// With injection lapscope's work for its timer or thread lies there, too.
const CLOSE_INJECTED_US: f64 = 25.0;
/// The least for shares, percent.
const CLOSE_PERCENT: f64 = 5.0;
/// Medians may differ by so much of the larger one: clocks are read a call apart.
const CLOSE_SHARE: f64 = 0.05;

/// Adds to the tables of an experiment what lapscope says; quantities that it cannot know stay as they are.
///
/// # Errors
/// A database of the run cannot be read.
pub fn add_outside(
    program: &str,
    tables: &mut [Table],
    outside: &RecordedRun,
) -> anyhow::Result<()> {
    // one reading of all calls serves all tables
    let collectives = match program {
        "collective_cpu" => outside.collectives()?,
        _ => Collectives::new(),
    };
    for table in tables {
        match (program, table.name.as_str()) {
            ("overlap", "steps") => add_steps(table, outside),
            ("overlap", "overlap") => add_overlap(table, outside),
            ("progress", "progress") => add_progress(table, outside),
            ("t0_t3", "t0_t3") => add_t0_t3(table, outside),
            ("collective_cpu", "collective_cpu") => add_collectives(table, &collectives),
            ("ghost_cells", "steps") => add_ghost_cells(table, outside),
            ("wavefront", "wavefront") => add_wavefront(table, outside),
            _ => (),
        }
    }
    Ok(())
}

/// Whether two measurements of the same agree: their quartiles overlap, or they are as close as clocks allow.
pub fn agree(inject: Inject, quantity: &str, program: Spread, outside: Spread) -> bool {
    let least = match inject {
        _ if quantity.ends_with("_percent") => CLOSE_PERCENT,
        Inject::Off => CLOSE_US,
        Inject::Timer | Inject::Thread => CLOSE_INJECTED_US,
    };
    let slack = least.max(CLOSE_SHARE * program.median.abs().max(outside.median.abs()));
    let distance = (program.median - outside.median).abs();
    let ends = |spread: Spread| {
        (spread.low.unwrap_or(spread.median), spread.high.unwrap_or(spread.median))
    };
    let ((a, b), (c, d)) = (ends(program), ends(outside));
    distance <= slack || (a <= d && c <= b)
}

fn set(row: &mut TableRow, quantity: &str, outside: Option<Spread>) {
    if let Some(value) = row.values.get_mut(quantity).filter(|value| value.program.is_some()) {
        value.outside = outside;
    }
}

fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

fn spread_us(halves: &[Half<'_>], of: impl Fn(&Half<'_>) -> Option<i64>) -> Option<Spread> {
    spread(halves.iter().filter_map(|half| of(half).map(us)).collect())
}

/// The side whose communication is non-blocking.
fn measured_rank(table: &Table) -> usize {
    usize::from(table.attribute("side") == "receive")
}

// --- one message -------------------------------------------------------------------------------------------------

fn post_ns(half: &Half<'_>) -> Option<i64> {
    Some(half.post_end - half.post_begin)
}

fn wait_ns(half: &Half<'_>) -> Option<i64> {
    Some(half.completion_end? - half.completion_begin?)
}

/// When the later of both sides posted.
fn both_posted(outside: &RecordedRun, half: &Half<'_>) -> Option<i64> {
    Some(half.post_begin.max(outside.trace.partner(half)?.post_begin))
}

fn latency_ns(outside: &RecordedRun, half: &Half<'_>) -> Option<i64> {
    Some(half.completion_end? - both_posted(outside, half)?)
}

/// Computation after both sides had posted.
fn work_ns(outside: &RecordedRun, half: &Half<'_>) -> Option<i64> {
    let begin = half.post_end.max(both_posted(outside, half)?);
    Some((half.completion_begin? - begin).max(0))
}

// --- overlap, progress ----------------------------------------------------------------------------------------------

fn add_steps(table: &mut Table, outside: &RecordedRun) {
    let rank = measured_rank(table);
    for row in &mut table.rows {
        let Some(tag) = row.tag() else { continue };
        let halves = outside.halves(rank, tag);
        set(row, "post_us", spread_us(&halves, post_ns));
        set(row, "wait_us", spread_us(&halves, wait_ns));
        set(row, "latency_us", spread_us(&halves, |half| latency_ns(outside, half)));
        if row.number("work_us").is_some_and(|work| work > 0.0) {
            set(row, "work_us", spread_us(&halves, |half| work_ns(outside, half)));
        }
    }
}

fn add_overlap(table: &mut Table, outside: &RecordedRun) {
    let rank = measured_rank(table);
    for row in &mut table.rows {
        let tag = |name: &str| row.number(name).map(|tag| tag as i64);
        let (reference, achieved) = (tag("reference_tag"), tag("achieved_tag"));
        let latency = |tag| spread_us(&outside.halves(rank, tag), |half| latency_ns(outside, half));
        set(row, "l0_us", reference.and_then(latency));
        set(row, "achieved_percent", achieved.and_then(|tag| outside.hidden_percent(rank, tag)));
    }
}

/// When data arrive in a delay is seen by a receiver that looks at its buffer, and by nobody else.
fn add_progress(table: &mut Table, outside: &RecordedRun) {
    let rank = measured_rank(table);
    for row in &mut table.rows {
        let Some(tag) = row.tag() else { continue };
        let (measured, receives) = (outside.halves(rank, tag), outside.halves(1, tag));
        set(row, "post_delay_us", spread_us(&measured, |half| post_delay_ns(outside, half)));
        if row.number("arrived_us").is_none() {
            set(row, "latency_us", spread_us(&receives, |half| latency_ns(outside, half)));
        }
        if row.number("delay_us").is_some_and(|delay| delay > 0.0) {
            set(row, "delay_us", spread_us(&measured, |half| work_ns(outside, half)));
        }
    }
}

/// In the wait, from when both sides had posted.
fn post_delay_ns(outside: &RecordedRun, half: &Half<'_>) -> Option<i64> {
    Some(half.completion_end? - half.completion_begin?.max(both_posted(outside, half)?))
}

// --- several messages a repetition ------------------------------------------------------------------------------------

fn add_t0_t3(table: &mut Table, outside: &RecordedRun) {
    let messages = table.attribute("messages").parse().unwrap_or(1usize).max(1);
    for row in &mut table.rows {
        let Some(tag) = row.tag() else { continue };
        for (rank, direction, post, compute, wait) in [
            (0, Direction::Send, "isend_us", "compute0_us", "wait0_us"),
            (1, Direction::Receive, "irecv_us", "compute1_us", "wait1_us"),
        ] {
            let mut halves = outside.halves(rank, tag);
            halves.retain(|half| half.operation.direction == direction);
            let of_repetitions = |of: &dyn Fn(&[Half<'_>]) -> Option<i64>| {
                let values = halves.chunks_exact(messages).filter_map(|them| of(them).map(us));
                spread(values.collect())
            };
            set(row, post, of_repetitions(&|them| them.iter().map(post_ns).sum()));
            let is_tested = table.attributes.get("tests").is_some_and(|tests| tests != "0");
            if !(rank == 1 && is_tested) {
                set(row, compute, of_repetitions(&computed));
                set(row, wait, of_repetitions(&waited));
            }
        }
    }
}

/// Outside of MPI between the last post of a repetition and its wait.
fn computed(halves: &[Half<'_>]) -> Option<i64> {
    let last = halves.iter().max_by_key(|half| half.post_end)?;
    Some(last.window()? - last.mpi?)
}

/// In the calls that completed them, each counted once.
fn waited(halves: &[Half<'_>]) -> Option<i64> {
    let mut seen = HashSet::new();
    halves.iter().filter(|half| seen.insert(half.call)).map(wait_ns).sum()
}

/// Steps of the ghost-cell program by pairs, as it measures them itself: in each a rank was heavy once.
fn add_ghost_cells(table: &mut Table, outside: &RecordedRun) {
    for row in &mut table.rows {
        let Some(tag) = row.tag() else { continue };
        let ranks: Vec<Vec<PairOfSteps>> =
            (0..outside.trace.ranks.len()).map(|rank| pairs_of_steps(outside, rank, tag)).collect();
        let of_pairs = |of: fn(&PairOfSteps) -> i64| {
            let pairs = ranks.iter().map(Vec::len).min().unwrap_or(0);
            let a_step = |pair: usize| {
                let sum: i64 = ranks.iter().map(|rank| of(&rank[pair])).sum();
                us(sum) / (STEPS_OF_A_PAIR * ranks.len()) as f64
            };
            spread((0..pairs).map(a_step).collect())
        };
        set(row, "post_us", of_pairs(|pair| pair.posted));
        set(row, "wait_receive_us", of_pairs(|pair| pair.received));
        set(row, "wait_send_us", of_pairs(|pair| pair.sent));
        if row.number("test_us").is_none() {
            let all = of_pairs(|pair| pair.posted + pair.received + pair.sent);
            set(row, "communication_us", all);
        }
    }
}

const STEPS_OF_A_PAIR: usize = 2;
const NEIGHBOURS: usize = 2;

/// Nanoseconds of a rank in calls that posted, that ended receives, and that ended sends alone.
struct PairOfSteps {
    posted: i64,
    received: i64,
    sent: i64,
}

fn pairs_of_steps(outside: &RecordedRun, rank: usize, tag: i64) -> Vec<PairOfSteps> {
    let halves = outside.halves(rank, tag);
    let (sends, receives): (Vec<Half<'_>>, Vec<Half<'_>>) =
        halves.into_iter().partition(|half| half.operation.direction == Direction::Send);
    let ends_receives: HashSet<Option<u32>> = receives.iter().map(|half| half.call).collect();
    let messages = STEPS_OF_A_PAIR * NEIGHBOURS;
    let pair = |(sends, receives): (&[Half<'_>], &[Half<'_>])| {
        let alone: Vec<Half<'_>> =
            sends.iter().filter(|half| !ends_receives.contains(&half.call)).copied().collect();
        PairOfSteps {
            posted: sends.iter().chain(receives).filter_map(post_ns).sum(),
            received: waited(receives).unwrap_or(0),
            sent: waited(&alone).unwrap_or(0),
        }
    };
    sends.chunks_exact(messages).zip(receives.chunks_exact(messages)).map(pair).collect()
}

/// Sweeps of the pipeline: of each rank and direction as many messages as there are blocks.
fn add_wavefront(table: &mut Table, outside: &RecordedRun) {
    for row in &mut table.rows {
        let (Some(tag), Some(blocks)) = (row.tag(), row.number("blocks")) else { continue };
        let ranks = outside.trace.ranks.len();
        let mut sweeps: Vec<i64> = Vec::new();
        let of_rank = |rank| of_sweeps(outside, rank, tag, (blocks as usize).max(1));
        for (sweep, ns) in (0..ranks).flat_map(of_rank) {
            sweeps.resize(sweeps.len().max(sweep + 1), 0);
            sweeps[sweep] += ns;
        }
        let all = spread(sweeps.into_iter().map(|ns| us(ns) / ranks as f64).collect());
        set(row, "communication_us", all);
    }
}

/// (sweep, nanoseconds in posts and waits) of a rank's messages.
fn of_sweeps(outside: &RecordedRun, rank: usize, tag: i64, blocks: usize) -> Vec<(usize, i64)> {
    let (sends, receives): (Vec<Half<'_>>, Vec<Half<'_>>) = outside
        .halves(rank, tag)
        .into_iter()
        .partition(|half| half.operation.direction == Direction::Send);
    let time = |half: &Half<'_>| post_ns(half).unwrap_or(0) + wait_ns(half).unwrap_or(0);
    let of_one = |halves: &[Half<'_>]| halves.iter().map(time).sum();
    let of_all = |halves: &[Half<'_>]| -> Vec<i64> { halves.chunks(blocks).map(of_one).collect() };
    let enumerated = |halves| of_all(halves).into_iter().enumerate();
    enumerated(&sends[..]).chain(enumerated(&receives[..])).collect()
}

// --- collectives ------------------------------------------------------------------------------------------------------

/// Calls that are shorter are not compared, nanoseconds: reading the CPU time of a thread takes half a microsecond, in and out.
const LONG_CALL: i64 = 20_000;

fn add_collectives(table: &mut Table, found: &Collectives) {
    let Ok(ranks) = table.attribute("ranks").parse() else { return };
    let call = match table.attribute("op") {
        "allreduce" => "MPI_Allreduce",
        "bcast" => "MPI_Bcast",
        _ => "MPI_Barrier",
    };
    for row in &mut table.rows {
        let Some(in_batch) = row.number("calls").filter(|&calls| calls >= 1.0) else { continue };
        let key = CollectiveKey { ranks, call: call.into(), bytes: row.bytes().unwrap_or(0) };
        let Some(ranks) = found.get(&key) else { continue };
        let calls = ranks.iter().flatten().count().max(1) as i64;
        if ranks.iter().flatten().map(|call| call.wall).sum::<i64>() >= LONG_CALL * calls {
            // the kernel splits user from system time by ticks, which are too few in a batch
            let idle =
                batch_means(ranks, in_batch as usize, |sum| sum.wall - sum.user - sum.system);
            set(row, "idle_percent", spread(idle));
        }
    }
}

/// Percent of the time in the calls of each batch, a mean over ranks.
fn batch_means(ranks: &[Vec<CpuTimes>], in_batch: usize, of: fn(&CpuTimes) -> i64) -> Vec<f64> {
    let add = |sum: CpuTimes, call: &CpuTimes| CpuTimes {
        wall: sum.wall + call.wall,
        user: sum.user + call.user,
        system: sum.system + call.system,
    };
    let of_batch = |calls: &[CpuTimes]| {
        let sum = calls.iter().fold(CpuTimes::default(), add);
        100.0 * of(&sum) as f64 / sum.wall.max(1) as f64
    };
    let of_ranks: Vec<Vec<f64>> =
        ranks.iter().map(|calls| calls.chunks_exact(in_batch).map(of_batch).collect()).collect();
    let batches = of_ranks.iter().map(Vec::len).min().unwrap_or(0);
    let mean =
        |batch: usize| of_ranks.iter().map(|rank| rank[batch]).sum::<f64>() / of_ranks.len() as f64;
    (0..batches).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(low: f64, median: f64, high: f64) -> Spread {
        Spread { median, low: Some(low), high: Some(high) }
    }

    #[test]
    fn medians_agree_within_their_spread() {
        let agree_us = |a, b| agree(Inject::Off, "latency_us", a, b);
        assert!(agree_us(spread(90.0, 100.0, 120.0), spread(115.0, 130.0, 140.0)));
        assert!(!agree_us(spread(90.0, 100.0, 110.0), spread(115.0, 130.0, 140.0)));
        assert!(agree_us(spread(1.0, 1.0, 1.0), spread(2.5, 2.5, 2.5)), "two clock readings");
        let (long, short) = (spread(30.0, 30.0, 30.0), spread(10.0, 10.0, 10.0));
        assert!(!agree_us(long, short) && agree(Inject::Timer, "post_us", long, short));
        assert!(agree_us(spread(1e3, 1e3, 1e3), spread(1.04e3, 1.04e3, 1.04e3)));
        let value = |median| Spread { median, low: None, high: None };
        assert!(agree(Inject::Off, "idle_percent", value(3.0), value(7.5)));
        assert!(!agree(Inject::Off, "idle_percent", value(3.0), value(18.5)));
    }
}
