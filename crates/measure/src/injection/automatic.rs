//! What `LAPSCOPE_INJECT=auto` decided on the ranks of a run, together.

use std::collections::BTreeMap;

use serde::Serialize;

use lapscope_trace::injected::page::{Page, Saving};

/// All pages of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Automatic {
    pub ranks: usize,
    /// What was in force at the end, on most ranks first.
    pub outcomes: Vec<FinalMode>,
    /// Shares of the time of all ranks: cost that bought nothing, and what exploring lost against the program as it is.
    pub spent: f64,
    pub lost: f64,
    /// Sites at which tests found nothing, so that none are made there, on any rank.
    pub sites_left_out: usize,
    /// That of the lowest rank.
    pub page: Page,
}

/// Ranks at whose end the same way was in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FinalMode {
    pub mode: String,
    pub interval_us: Option<u64>,
    pub ranks: usize,
    /// The median of what these ranks found, with the lowest and highest ends of their intervals.
    pub gain: Option<Saving>,
}

impl Automatic {
    /// `None`: there are no pages.
    pub fn from_pages(mut pages: Vec<Page>) -> Option<Automatic> {
        pages.sort_by_key(|page| (page.world, page.rank));
        let page = pages.first()?.clone();
        let seconds: f64 = pages.iter().map(|page| page.seconds).sum();
        let share = |ns: u64| if seconds > 0.0 { ns as f64 / 1e9 / seconds } else { 0.0 };
        Some(Automatic {
            ranks: pages.len(),
            outcomes: outcomes(&pages),
            spent: share(pages.iter().map(|page| page.spent_ns).sum()),
            lost: share(pages.iter().map(|page| page.lost_ns).sum()),
            sites_left_out: left_out(&pages),
            page,
        })
    }
}

fn outcomes(pages: &[Page]) -> Vec<FinalMode> {
    let mut groups: BTreeMap<(&str, Option<u64>), Vec<&Page>> = BTreeMap::new();
    for page in pages {
        let arm = &page.arms[page.in_force];
        groups.entry((&arm.mode, arm.interval_us)).or_default().push(page);
    }
    let mut outcomes: Vec<FinalMode> = groups
        .into_iter()
        .map(|((mode, interval_us), pages)| FinalMode {
            mode: mode.to_owned(),
            interval_us,
            ranks: pages.len(),
            gain: if mode == "off" { None } else { middle(&pages) },
        })
        .collect();
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.ranks));
    outcomes
}

fn middle(pages: &[&Page]) -> Option<Saving> {
    let mut gains: Vec<Saving> = pages.iter().filter_map(|page| page.gain).collect();
    gains.sort_by(|a, b| a.share.total_cmp(&b.share));
    let middle = *gains.get(gains.len() / 2)?;
    let low = gains.iter().map(|gain| gain.low).fold(f64::INFINITY, f64::min);
    let high = gains.iter().map(|gain| gain.high).fold(f64::NEG_INFINITY, f64::max);
    Some(Saving { low, high, ..middle })
}

fn left_out(pages: &[Page]) -> usize {
    let sites = pages.iter().flat_map(|page| &page.sites).filter(|site| !site.on);
    sites.map(|site| (&site.call, &site.path)).collect::<std::collections::BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::made_up::page;

    #[test]
    fn ranks_are_told_together() {
        let pages = vec![page(3, 0, 0.3), page(2, 1, 0.2), page(1, 1, 0.4), page(0, 1, 0.3)];
        let automatic = Automatic::from_pages(pages).expect("pages");
        assert_eq!((automatic.ranks, automatic.sites_left_out, automatic.page.rank), (4, 1, 0));
        assert!((automatic.spent - 0.01).abs() < 1e-12);
        let most = &automatic.outcomes[0];
        assert_eq!((most.mode.as_str(), most.ranks), ("timer", 3));
        let gain = most.gain.expect("a gain");
        assert!((gain.share, gain.low, gain.high) == (0.3, 0.1, 0.5), "{gain:?}");
        assert_eq!(automatic.outcomes[1].gain, None);
        assert_eq!(Automatic::from_pages(Vec::new()), None);
    }
}
