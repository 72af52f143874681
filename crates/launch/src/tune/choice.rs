//! Which of the tried settings is best, and at which call sites it is of no use.

use super::policy::{comment_of, Policy, PolicyRule, PolicySite};
use super::trial::{InjectionSetting, Trial};
use crate::run::Mode;
use lapscope_data::model::Nanos;
use lapscope_measure::injection::{Gain, GainVerdict, SiteInjection};
use lapscope_trace::injected::Tests;
use lapscope_trace::stats::median;

/// Gains this near to each other, as fractions of the run time, count as equal.
const EQUAL: f64 = 0.005;

/// Less than this fraction of a step is no difference between two runs.
const USUAL_DIFFERENCE: f64 = 0.01;

/// A call site that cannot gain more than this fraction of the run time of all ranks gains nothing.
const NEGLIGIBLE: f64 = 0.002;

/// A fraction of a site's tests: with less of them having moved something, nobody is helped by them elsewhere either.
const IDLE: f64 = 0.01;

/// What mode thread costs while it is off, which a run cannot see by itself: MPI_THREAD_MULTIPLE, which it asks for, takes locks
/// in every call. It is the slowdown against the run without injection, less that of other modes, which ask for nothing and so
/// show how far two runs differ anyway; nothing when one of these is as slow.
pub fn cost_of_threads(tried: &[Trial]) -> f64 {
    let slowdowns = |is_wanted: fn(Mode) -> bool| -> Vec<f64> {
        let wanted = tried.iter().filter(|trial| is_wanted(trial.setting.mode));
        wanted.filter_map(|trial| trial.idle_slowdown).collect()
    };
    let others = slowdowns(|mode| mode != Mode::Thread);
    let slowest = others.iter().copied().fold(0.0, f64::max);
    let usual = median(others).unwrap_or(0.0);
    median(slowdowns(|mode| mode == Mode::Thread))
        .filter(|slowdown| *slowdown > slowest + USUAL_DIFFERENCE)
        .map_or(0.0, |slowdown| slowdown - usual)
}

/// What of that a setting has to pay.
pub fn hidden_cost(setting: InjectionSetting, tried: &[Trial]) -> f64 {
    match setting.mode {
        Mode::Thread => cost_of_threads(tried),
        _ => 0.0,
    }
}

/// Gain less what the run cannot see.
fn net_gain(trial: &Trial, tried: &[Trial]) -> f64 {
    trial.gain().map_or(0.0, |gain| gain.estimate) - hidden_cost(trial.setting, tried)
}

/// The trial that gained most, however sure that is; `None`: none gained anything to speak of.
pub fn highest<'a>(tried: impl Iterator<Item = &'a Trial>) -> Option<&'a Trial> {
    let value = |trial: &Trial| trial.gain().map_or(0.0, |gain| gain.estimate);
    tried.filter(|trial| value(trial) > EQUAL).max_by(|a, b| value(a).total_cmp(&value(b)))
}

/// The setting to use: of those that surely gain the one with the highest gain, or a cheaper one that gains as much.
pub fn best(tried: &[Trial]) -> Option<&Trial> {
    let surely = |trial: &&Trial| trial.gain().is_some_and(|gain| gain.low > 0.0);
    let useful = |trial: &&Trial| net_gain(trial, tried) > 0.0;
    let gaining: Vec<&Trial> = tried.iter().filter(surely).filter(useful).collect();
    let most = gaining.iter().map(|trial| net_gain(trial, tried)).max_by(f64::total_cmp)?;
    let near = gaining.into_iter().filter(|trial| net_gain(trial, tried) >= most - EQUAL);
    near.min_by(|a, b| a.cost().total_cmp(&b.cost()))
}

/// Whether a policy leaves this call site out: injecting there surely gains nothing, and its tests move nothing that others wait
/// for; or it costs more than it gains. `run_ns` is the run time of all ranks.
pub fn leaves_out(site: &SiteInjection, run_ns: Nanos) -> bool {
    let Some((gain, estimate, high)) = site.gain.as_ref().and_then(of_run) else { return false };
    let negligible = Nanos((run_ns.0 as f64 * NEGLIGIBLE) as i64);
    let Tests { tests, found, .. } = site.tests;
    let moves_nothing = tests > 0 && (found as f64) < IDLE * tests as f64;
    match gain.verdict {
        GainVerdict::Loss if estimate < Nanos(-negligible.0) => true,
        GainVerdict::Loss | GainVerdict::NoMeasurableGain => high < negligible && moves_nothing,
        _ => false,
    }
}

/// Over the run: the estimate, and the upper end of its interval.
fn of_run(gain: &Gain) -> Option<(&Gain, Nanos, Nanos)> {
    Some((gain, gain.run_estimate_ns?, gain.run_high_ns?))
}

/// Whether a run in which sites were left out gains no less than the run with all of them: it surely gains, and the intervals
/// meet.
pub fn is_no_worse(trial: &Trial, with_all: &Trial) -> bool {
    let (Some(gain), Some(before)) = (trial.gain(), with_all.gain()) else { return false };
    gain.low > 0.0 && gain.high >= before.low
}

/// The call sites that can be named, with what is to be done at each; without any that is left out when `with_off` is not set.
pub fn policy(trial: &Trial, run_ns: Nanos, heading: Vec<String>, with_off: bool) -> Policy {
    let mut rules = vec![PolicyRule::everywhere(true)];
    for site in &trial.injection.sites {
        // what an earlier run has left out is not judged anew
        let on = site.policy && !(with_off && leaves_out(site, run_ns));
        let comment = site.site.as_ref().map(comment_of).unwrap_or_default();
        let places =
            site.addresses.iter().filter_map(|address| PolicySite::for_post(&site.call, address));
        rules.extend(places.map(|place| PolicyRule {
            on,
            place: Some(place),
            comment: comment.clone(),
        }));
    }
    Policy { heading, rules }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::search::Search;
    use super::*;
    use lapscope_measure::injection::{
        Injection, InjectionTotals, PostAddress, PostPath, WholeGain,
    };

    fn whole(low: f64, estimate: f64) -> WholeGain {
        let high = Some(2.0 * estimate - low);
        WholeGain {
            verdict: GainVerdict::Gain,
            slots_on: 20,
            slots_off: 20,
            estimate: Some(estimate),
            low: Some(low),
            high,
            iteration_ns: None,
            suggested_ab_ms: None,
        }
    }

    fn trial(mode: Mode, interval_us: u32, low: f64, estimate: f64) -> Trial {
        let spent_ns = Nanos(10);
        let injection = Injection {
            ranks: Vec::new(),
            totals: InjectionTotals {
                spent_ns,
                run_ns: Nanos(1_000),
                ..InjectionTotals::default()
            },
            sites: Vec::new(),
            ab_slot_ns: None,
            whole: Some(whole(low, estimate)),
            automatic: None,
        };
        Trial {
            setting: InjectionSetting { mode, interval_us },
            name: String::new(),
            with_policy: false,
            wall: Duration::from_secs(1),
            injection,
            idle_slowdown: Some(0.0),
        }
    }

    /// Gains so many nanoseconds over the run: low, estimate, high.
    fn site(
        verdict: GainVerdict,
        [low, estimate, high]: [i64; 3],
        tests: u64,
        found: u64,
    ) -> SiteInjection {
        let gain = Gain {
            verdict,
            requests_on: 20,
            requests_off: 20,
            slots_on: 10,
            slots_off: 10,
            exposed_on_ns: None,
            exposed_off_ns: None,
            cost_ns: Nanos(0),
            estimate_ns: None,
            low_ns: None,
            high_ns: None,
            run_estimate_ns: Some(Nanos(estimate)),
            run_low_ns: Some(Nanos(low)),
            run_high_ns: Some(Nanos(high)),
        };
        let post = |address| {
            let (module, build_id) = ("/opt/bin/app".into(), "aa11".into());
            PostPath { call: PostAddress { module, build_id, address }, callers: Vec::new() }
        };
        SiteInjection {
            call: "MPI_Irecv".into(),
            site: None,
            addresses: vec![post(0x100 + found), post(0x200 + found)],
            ranks: 2,
            policy: true,
            tests: Tests { tests, found, ..Tests::default() },
            gain: Some(gain),
        }
    }

    #[test]
    fn modes_come_first_then_intervals_of_the_best() {
        let modes = [Mode::Timer, Mode::Thread, Mode::Timer, Mode::Calls];
        let search = Search::new(&modes, &[1000, 300, 3000], 7);
        assert_eq!(search.longest(), 6);
        let mut tried = Vec::new();
        let mut order = Vec::new();
        while let Some(InjectionSetting { mode, interval_us }) = search.next(&tried) {
            order.push((mode, interval_us));
            let value = if mode == Mode::Thread { 0.2 } else { 0.1 };
            tried.push(trial(mode, interval_us, 0.05, value));
        }
        let thread = [1000, 300, 3000].map(|us| (Mode::Thread, us));
        assert_eq!(
            order,
            [(Mode::Timer, 1000), thread[0], (Mode::Calls, 1000), thread[1], thread[2]]
        );
    }

    #[test]
    fn the_search_ends_early_when_it_may_or_nothing_gains() {
        let count = |runs, value: f64| {
            let search = Search::new(&[Mode::Timer, Mode::Calls], &[1000, 300], runs);
            let mut tried = Vec::new();
            while let Some(setting) = search.next(&tried) {
                tried.push(trial(setting.mode, setting.interval_us, value - 0.1, value));
            }
            assert!(tried.len() <= search.longest());
            tried.len()
        };
        assert_eq!([count(7, 0.1), count(7, -0.1), count(7, 0.001), count(2, 0.1)], [3, 2, 2, 1]);
    }

    #[test]
    fn only_what_surely_gains_is_chosen_and_the_cheaper_of_equals() {
        let unsure = trial(Mode::Timer, 300, -0.01, 0.3);
        assert!(best(std::slice::from_ref(&unsure)).is_none());
        let (short, mut long) =
            (trial(Mode::Timer, 300, 0.1, 0.2), trial(Mode::Timer, 1000, 0.1, 0.197));
        long.injection.totals.spent_ns = Nanos(2);
        let tried = [unsure, short, long];
        assert_eq!(best(&tried).unwrap().setting.interval_us, 1000);
    }

    #[test]
    fn threads_pay_for_what_the_run_cannot_see() {
        let mut tried = [trial(Mode::Timer, 1000, 0.1, 0.2), trial(Mode::Thread, 1000, 0.1, 0.25)];
        assert_eq!(best(&tried).unwrap().setting.mode, Mode::Thread);
        tried[0].idle_slowdown = Some(0.02); // the machine itself
        tried[1].idle_slowdown = Some(0.12);
        let cost = |place: usize| hidden_cost(tried[place].setting, &tried);
        assert!((cost(1) - 0.1).abs() < 1e-9);
        assert_eq!(cost(0), 0.0);
        assert_eq!(best(&tried).unwrap().setting.mode, Mode::Timer);
        tried[1].idle_slowdown = Some(0.5);
        assert!(best(&tried[1..]).is_none(), "it loses more than it gains");
        tried[0].idle_slowdown = Some(0.6);
        assert_eq!(cost_of_threads(&tried), 0.0, "another mode is as slow");
    }

    #[test]
    fn sites_without_gain_are_left_out_unless_their_tests_move_something() {
        let run = Nanos(1_000_000);
        let out = |verdict, gain, tests, found| leaves_out(&site(verdict, gain, tests, found), run);
        let (no, loss) = (GainVerdict::NoMeasurableGain, GainVerdict::Loss);
        assert!(!out(GainVerdict::Gain, [5_000, 9_000, 13_000], 100, 50));
        assert!(out(no, [-900, 100, 1_100], 100, 0));
        assert!(!out(no, [-900, 100, 1_100], 100, 50), "a partner may gain");
        assert!(!out(no, [-9_000, 100, 9_200], 100, 0), "noise");
        assert!(!out(no, [-900, 100, 1_100], 0, 0), "nothing was injected");
        assert!(out(loss, [-9_000, -5_000, -1_000], 100, 50));
        assert!(!out(loss, [-9, -5, -1], 100, 50), "nobody would notice");
        assert!(out(loss, [-9, -5, -1], 100, 0), "nobody gains");
        assert!(!out(GainVerdict::NotEnoughSlots, [-900, 100, 1_100], 100, 0));
        let unknown = SiteInjection { gain: None, ..site(no, [0, 0, 0], 100, 0) };
        assert!(!leaves_out(&unknown, run));
    }

    #[test]
    fn the_policy_names_every_address() {
        let mut trial = trial(Mode::Timer, 1000, 0.1, 0.2);
        trial.injection.sites = vec![
            site(GainVerdict::Gain, [5_000, 9_000, 13_000], 100, 50),
            site(GainVerdict::NoMeasurableGain, [-900, 100, 1_100], 100, 0),
        ];
        let text = |with_off| policy(&trial, Nanos(1_000_000), vec![], with_off).to_string();
        let line = |word, address| format!("{word} MPI_Irecv app+0x{address:x} aa11\n");
        let on = format!("default on\n{}{}", line("on", 0x132), line("on", 0x232));
        assert_eq!(text(true), format!("{on}{}{}", line("off", 0x100), line("off", 0x200)));
        assert_eq!(text(false), format!("{on}{}{}", line("on", 0x100), line("on", 0x200)));
    }
}
