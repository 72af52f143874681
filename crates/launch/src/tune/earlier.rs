//! What a search may begin with: what a run with `LAPSCOPE_INJECT=auto` leaves to it (where to begin, and what not to begin with),
//! or settings of the MPI that an earlier search has tried.

use std::path::Path;

use anyhow::{bail, Result};

use super::policy::{Address, Policy, PolicyRule, PolicySite};
use super::settings::document::TriedSetting;
use super::settings::trials::{of_earlier, FILE};
use crate::run::Mode;
use lapscope_trace::injected::page::{pages_in, Arm, Page};

/// The pages of such a run, and settings that were tried.
#[derive(Debug)]
pub struct Earlier {
    pages: Vec<Page>,
    pub settings: Vec<TriedSetting>,
}

impl Earlier {
    /// # Errors
    /// There is nothing of the kind in that directory, or it cannot be read.
    pub fn read(directory: &Path) -> Result<Earlier> {
        let (pages, settings) = (pages_in(directory), of_earlier(directory)?);
        if pages.is_empty() && settings.is_empty() {
            bail!(
                "{}: no run with LAPSCOPE_INJECT=auto has left a page (auto-HOST.jsonl) here, and no lapscope tune a {FILE}",
                directory.display()
            );
        }
        Ok(Earlier { pages, settings })
    }

    /// Modes in the order in which to try them: the one in force, what was not tried, and last what was no better than nothing.
    pub fn modes(&self, modes: &[Mode]) -> Vec<Mode> {
        let mut ordered = modes.to_vec();
        ordered.sort_by_key(|mode| self.rank_of(|arm| arm.mode == mode.word()));
        ordered
    }

    /// Likewise intervals: the one in force first, also if it was not asked for.
    pub fn intervals(&self, intervals: &[u32]) -> Vec<u32> {
        let in_force = self.pages.iter().find_map(Page::arm_in_force);
        let first = in_force.and_then(|arm| u32::try_from(arm.interval_us?).ok());
        let others = intervals.iter().copied().filter(|interval| Some(*interval) != first);
        first.into_iter().chain(others).collect()
    }

    /// 0: in force on some rank; 1: not tried, or tried and not worse than without; 2: worse.
    fn rank_of(&self, is_it: impl Fn(&Arm) -> bool) -> u8 {
        if self.pages.iter().filter_map(Page::arm_in_force).any(&is_it) {
            return 0;
        }
        let is_worse = |page: &Page| {
            let without = page.arms[0].step_ns;
            let of_it = page.arms.iter().skip(1).filter(|arm| is_it(arm));
            let best = of_it.filter_map(|arm| arm.step_ns).min();
            best.zip(without).is_some_and(|(best, without)| best >= without)
        };
        1 + u8::from(self.pages.iter().any(is_worse))
    }

    /// Call sites at which tests found nothing; `None`: there were none such.
    pub fn policy(&self) -> Option<Policy> {
        let sites = self.pages.iter().flat_map(|page| &page.sites);
        let mut places: Vec<PolicySite> = sites
            .filter(|site| !site.on)
            .filter_map(|site| {
                let addresses: Vec<Address> =
                    site.path.iter().map_while(|place| Address::parse(place)).collect();
                let is_named = !addresses.is_empty();
                is_named.then(|| PolicySite { call: site.call.clone(), addresses })
            })
            .collect();
        places.sort();
        places.dedup();
        if places.is_empty() {
            return None;
        }
        let comment = "tests found nothing";
        let off = |place| PolicyRule { on: false, place: Some(place), comment: comment.to_owned() };
        let rules = [PolicyRule::everywhere(true)].into_iter().chain(places.into_iter().map(off));
        let heading =
            vec!["For LAPSCOPE_INJECT_POLICY: what a run with LAPSCOPE_INJECT=auto left out"
                .to_owned()];
        Some(Policy { heading, rules: rules.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::injected::page::PageSite;

    fn arm(mode: &str, interval_us: Option<u64>, step_ns: Option<u64>) -> Arm {
        Arm { mode: mode.to_owned(), interval_us, slots: 4, steps: 16, step_ns, problem: None }
    }

    fn earlier(in_force: usize, on: bool) -> Earlier {
        let place = "halo+0x1a2b 4f3c2a";
        let site = PageSite {
            call: "MPI_Irecv".to_owned(),
            path: vec![place.to_owned(), "my halo+0x3 -".to_owned(), "libc.so.6+0x40 -".to_owned()],
            bytes: 9,
            on,
            tests: 40,
            found: 0,
        };
        let page = Page {
            version: 1,
            rank: 0,
            ranks: 1,
            world: 1,
            host: String::new(),
            job: String::new(),
            command: String::new(),
            began_unix: 0.0,
            seconds: 1.0,
            ended: true,
            arms: vec![
                arm("off", None, Some(100)),
                arm("timer", Some(1000), Some(110)),
                arm("calls", Some(250), Some(90)),
            ],
            decided: 0,
            decisions: Vec::new(),
            in_force,
            gain: None,
            spent_ns: 0,
            lost_ns: 0,
            tests: 0,
            found: 0,
            interrupts: 0,
            sites: vec![site],
        };
        Earlier { pages: vec![page], settings: Vec::new() }
    }

    #[test]
    fn what_was_bad_is_tried_last() {
        let modes = [Mode::Timer, Mode::Thread, Mode::Calls];
        let kept = earlier(2, true);
        assert_eq!(kept.modes(&modes), [Mode::Calls, Mode::Thread, Mode::Timer]);
        assert_eq!(kept.intervals(&[1000, 250, 3000]), [250, 1000, 3000]);
        let without = earlier(0, true);
        assert_eq!(without.modes(&modes), [Mode::Thread, Mode::Calls, Mode::Timer]);
        assert_eq!(without.intervals(&[1000, 300]), [1000, 300]);
    }

    #[test]
    fn sites_without_use_start_off() {
        assert_eq!(earlier(0, true).policy(), None);
        // what cannot be said in a rule ends it: the addresses before tell the site as well as can be
        let policy = earlier(0, false).policy().expect("a rule").to_string();
        assert!(
            policy.contains("default on\noff MPI_Irecv halo+0x1a2b 4f3c2a  # tests found nothing"),
            "{policy}"
        );
    }
}
