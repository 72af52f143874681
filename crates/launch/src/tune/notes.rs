//! What to know before believing the numbers of a search.

use std::collections::BTreeMap;

use super::choice::{self, cost_of_threads};
use super::first::{Crowd, FirstRun, Slots};
use super::trial::{InjectionSetting, Trial};
use crate::run::Mode;
use lapscope_data::model::Rank;
use lapscope_data::text::units::{percent, time};
use lapscope_data::text::{list_ranks, plural};
use lapscope_trace::injected::Tests;
use lapscope_trace::stats::Interval;

/// The note on the slots.
pub fn on_slots(slots: &Slots) -> Option<String> {
    slots.too_few.then(|| {
        format!(
            "The run is short for this: {} slots of {} ms fit into it, and a confidence interval needs some with and some \
             without injection. Run it for longer.",
            slots.count, slots.ms
        )
    })
}

/// The note on a mode that was asked for and not tried.
pub const NO_TIMER: &str = "timer is not tried: the driver of a GPU is in the processes. An interrupt may come while it holds a lock, and \
                            MPI calls it within a test. thread and calls interrupt nobody.";

/// The note on a gain that may be one.
pub fn on_unsure(tried: &[Trial]) -> Option<String> {
    let highest = choice::highest(tried.iter())?;
    let gain = highest.gain().filter(|gain| gain.low <= 0.0)?;
    Some(format!(
        "{} may gain {}, but that is not sure ({:.1} to {:.1} %): a longer run, or processors without other work, tell more.",
        highest.name,
        percent(gain.estimate),
        100.0 * gain.low,
        100.0 * gain.high
    ))
}

/// Notes on a run with injection.
pub fn on_trial(trial: &Trial, first: &FirstRun) -> Vec<String> {
    let problems = on_problems(trial);
    let tests = trial.setting.mode != Mode::Sends;
    let idle = on_tests(trial, first).filter(|_| tests && problems.is_empty());
    let notes = problems.into_iter().chain(idle).chain(on_deferred(trial));
    notes.map(|note| format!("{}: {note}", trial.name)).collect()
}

/// What the ranks say, each sentence once.
fn on_problems(trial: &Trial) -> Vec<String> {
    let mut ranks_of: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for rank in &trial.injection.ranks {
        if let Some(problem) = &rank.problem {
            ranks_of.entry(problem).or_default().push(rank.rank);
        }
    }
    let all = trial.injection.ranks.len();
    let whose = |ranks: &[Rank]| match ranks.len() == all {
        true => "every rank".to_owned(),
        false => format!("rank{} {}", plural(ranks.len() as u64), list_ranks(ranks)),
    };
    ranks_of.iter().map(|(problem, ranks)| format!("{}: {problem}", whose(ranks))).collect()
}

fn on_tests(trial: &Trial, first: &FirstRun) -> Option<String> {
    match (trial.tests(), trial.found()) {
        (0, _) => Some(format!("no test was made: {}.", why_no_test(trial.setting, first))),
        (tests, 0) => Some(format!(
            "none of {tests} tests moved anything: transfers were complete, or go on without them."
        )),
        _ => None,
    }
}

fn on_deferred(trial: &Trial) -> Option<String> {
    let Tests { deferred, interrupts, .. } = trial.injection.totals.tests;
    trial.was_kept_out().then(|| {
        format!(
            "{deferred} of {interrupts} interrupts came where MPI cannot be entered, as inside the C library or MPI itself: \
             thread does not mind."
        )
    })
}

fn why_no_test(setting: InjectionSetting, first: &FirstRun) -> String {
    let window = first.compute_ns.mean(first.large_requests).unwrap_or_default();
    let is_long = window.0 >= 2_000 * i64::from(setting.interval_us);
    let window = time(window);
    match setting.mode {
        Mode::Sends => "sends went from copies".to_owned(),
        Mode::Calls => "the program calls nothing of MPI while large requests are pending".to_owned(),
        Mode::Timer if is_long => format!(
            "its interrupts come while the program runs, and it hardly runs in the {window} for which a large request is pending: \
             it sleeps there, waits for something else, or has no processor"
        ),
        Mode::Thread if is_long => "its thread got no processor".to_owned(),
        Mode::Timer | Mode::Thread => {
            format!("a large request is pending for {window} of computation only, a mean")
        }
    }
}

/// More was gained than there was to gain.
pub fn on_stake(gain: Interval, first: &FirstRun) -> Option<String> {
    let stake = first.stake_ns.share_of(first.run_ns);
    (gain.estimate > stake).then(|| {
        format!(
            "{} is more than the {} of the run time that was at stake in waits which tests may shorten: doubt it. Ranks that poll \
             may have taken the processors of others, or something else differs between these runs.",
            percent(gain.estimate),
            percent(stake)
        )
    })
}

/// Notes on what the runs with mode thread have in common.
pub fn on_threads(tried: &[Trial], crowd: Option<Crowd>) -> Vec<String> {
    let threads: Vec<&Trial> =
        tried.iter().filter(|trial| trial.setting.mode == Mode::Thread).collect();
    let slowdowns = threads.iter().filter_map(|trial| trial.idle_slowdown);
    let slowdowns: Vec<String> =
        slowdowns.map(|slowdown| format!("{:+.1} %", 100.0 * slowdown)).collect();
    let price = (!slowdowns.is_empty()).then(|| on_price(&slowdowns.join(", "), tried));
    let gains = |trial: &&Trial| trial.gain().is_some_and(|gain| gain.low > 0.0);
    let is_in_vain = !threads.is_empty() && !threads.iter().any(gains);
    let crowded = crowd.filter(|crowd| is_in_vain && crowd.ranks >= crowd.processors);
    let crowded = crowded.map(|Crowd { ranks, processors }| {
        format!(
            "thread: no processor was free for the threads, with {ranks} ranks on {processors} processors here."
        )
    });
    price.into_iter().chain(crowded).collect()
}

/// What no run can see by itself.
fn on_price(slowdowns: &str, tried: &[Trial]) -> String {
    let taken_off = match cost_of_threads(tried) {
        0.0 => "Nothing is taken off its gain for that: it is no more than runs differ by anyway."
            .to_owned(),
        cost => format!("{} more than in other modes are taken off its gain.", percent(cost)),
    };
    format!(
        "thread: it asks for MPI_THREAD_MULTIPLE, which may slow down every call, also while nothing is injected; a run by \
         itself cannot see that. Against the first run its steps without injection took {slowdowns} time. {taken_off}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::model::{Bytes, Nanos};

    /// With one request under way for so long.
    fn first(window_ns: i64) -> FirstRun {
        FirstRun {
            longest_ns: Nanos(1_000_000_000),
            run_ns: Nanos(2_000_000_000),
            ranks: 2,
            requests: 1,
            large_requests: 1,
            largest_bytes: Bytes(1 << 20),
            min_bytes: 1 << 16,
            compute_ns: Nanos(window_ns),
            step_ns: None,
            stake_ns: Nanos(0),
            copies: None,
            smaller_bytes: None,
            crowd: None,
            has_gpu_driver: false,
        }
    }

    #[test]
    fn a_program_that_sleeps_is_not_said_to_be_quick() {
        let why = |window_ns| {
            why_no_test(
                InjectionSetting { mode: Mode::Timer, interval_us: 1000 },
                &first(window_ns),
            )
        };
        assert!(why(50_000_000).contains("hardly runs in the 50.0 ms"), "{}", why(50_000_000));
        assert!(why(900_000).contains("pending for 900 µs"), "{}", why(900_000));
    }
}
