//! What `LAPSCOPE_INJECT=auto` tried and decided: the pages that ranks leave, in `auto-HOST.jsonl` of the run directory and in
//! `injector.automatic`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use lapscope_data::db::{is_page, link_out};
use lapscope_data::files::open_regular;
use serde::{Deserialize, Serialize};

/// The format of pages that this program reads.
const VERSION: u32 = 1;
/// A page is shorter; what is longer is none.
const LONGEST: usize = 1 << 20;

/// What one rank left; keys are documented in `schema/README.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    pub version: u32,
    pub rank: i64,
    pub ranks: i64,
    pub world: u32,
    pub host: String,
    pub job: String,
    pub command: String,
    pub began_unix: f64,
    pub seconds: f64,
    /// The rank has come to its end.
    pub ended: bool,
    /// Ways of injecting; the first is the program as it is.
    pub arms: Vec<Arm>,
    pub decided: u64,
    pub decisions: Vec<Decision>,
    /// Which of `arms`.
    pub in_force: usize,
    pub gain: Option<Saving>,
    pub spent_ns: u64,
    pub lost_ns: u64,
    pub tests: u64,
    pub found: u64,
    pub interrupts: u64,
    pub sites: Vec<PageSite>,
}

/// A way of injecting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// off, timer, calls, thread
    pub mode: String,
    pub interval_us: Option<u64>,
    pub slots: u64,
    pub steps: u64,
    /// What a step took in its slots, a mean.
    pub step_ns: Option<u64>,
    /// Why it could not be had.
    pub problem: Option<String>,
}

/// What was decided, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds since injection began.
    pub at: f64,
    pub what: String,
    pub arm: usize,
    pub gain: Option<Saving>,
}

/// Share of the time of a step that is saved, and its interval of 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    pub share: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: u64,
}

/// Where large requests were posted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageSite {
    pub call: String,
    /// "MODULE+0xOFFSET BUILD-ID", innermost first, as in a policy.
    pub path: Vec<String>,
    pub bytes: u64,
    /// Tests are made for its requests.
    pub on: bool,
    pub tests: u64,
    pub found: u64,
}

impl Page {
    /// `None`: it is no page, or one of a later format.
    pub fn parse(text: &str) -> Option<Page> {
        let page: Page = serde_json::from_str(text).ok()?;
        let arms = page.arms.len();
        let is_whole = arms > 0
            && page.in_force < arms
            && page.decisions.iter().all(|decision| decision.arm < arms);
        (page.version == VERSION && is_whole).then_some(page)
    }

    /// The way in force; `None`: nothing is injected.
    pub fn arm_in_force(&self) -> Option<&Arm> {
        (self.in_force > 0).then(|| &self.arms[self.in_force])
    }
}

/// All pages of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Automatic {
    pub ranks: usize,
    /// What was in force at the end, on most ranks first.
    pub outcomes: Vec<Outcome>,
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
pub struct Outcome {
    pub mode: String,
    pub interval_us: Option<u64>,
    pub ranks: usize,
    /// The median of what these ranks found, with the lowest and highest ends of their intervals.
    pub gain: Option<Saving>,
}

impl Automatic {
    /// `None`: there are no pages.
    pub fn of(mut pages: Vec<Page>) -> Option<Automatic> {
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

fn outcomes(pages: &[Page]) -> Vec<Outcome> {
    let mut groups: BTreeMap<(&str, Option<u64>), Vec<&Page>> = BTreeMap::new();
    for page in pages {
        let arm = &page.arms[page.in_force];
        groups.entry((&arm.mode, arm.interval_us)).or_default().push(page);
    }
    let mut outcomes: Vec<Outcome> = groups
        .into_iter()
        .map(|((mode, interval_us), pages)| Outcome {
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

/// The pages that lie in a run directory; a rank that was there several times, by exec, has several. Lines that are none are left out.
pub fn pages_in(directory: &Path) -> Vec<Page> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| is_page(&name)) && link_out(path).is_none()
    });
    files.sort();
    files.iter().filter_map(|path| open_regular(path).ok()).flat_map(pages_of).collect()
}

fn pages_of(file: File) -> Vec<Page> {
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    lines
        .filter(|line| line.len() < LONGEST)
        .filter_map(|line| Page::parse(&String::from_utf8_lossy(&line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rank: i64, in_force: usize, share: f64) -> Page {
        let gain = format!(
            "{{\"share\":{share},\"low\":{},\"high\":{},\"rounds\":9}}",
            share - 0.1,
            share + 0.1
        );
        let arm = |mode: &str, interval: &str| {
            format!(
                "{{\"mode\":\"{mode}\",\"interval_us\":{interval},\"slots\":5,\"steps\":20,\"step_ns\":10000000,\"problem\":null}}"
            )
        };
        let text = format!(
            "{{\"version\":1,\"rank\":{rank},\"ranks\":4,\"world\":1,\"host\":\"h\",\"job\":\"j\",\"command\":\"./a\",\
             \"began_unix\":1.5,\"seconds\":10.0,\"ended\":true,\"arms\":[{},{}],\"decided\":1,\
             \"decisions\":[{{\"at\":2.5,\"what\":\"keep\",\"arm\":1,\"gain\":{gain}}}],\"in_force\":{in_force},\
             \"gain\":{gain},\"spent_ns\":100000000,\"lost_ns\":0,\"tests\":3,\"found\":2,\"interrupts\":3,\
             \"sites\":[{{\"call\":\"MPI_Isend\",\"path\":[\"a+0x1 -\"],\"bytes\":9,\"on\":{},\"tests\":3,\"found\":2}}]}}",
            arm("off", "null"),
            arm("timer", "1000"),
            rank != 2
        );
        Page::parse(&text).expect("a page")
    }

    #[test]
    fn ranks_are_told_together() {
        let pages = vec![page(3, 0, 0.3), page(2, 1, 0.2), page(1, 1, 0.4), page(0, 1, 0.3)];
        let automatic = Automatic::of(pages).expect("pages");
        assert_eq!((automatic.ranks, automatic.sites_left_out, automatic.page.rank), (4, 1, 0));
        assert!((automatic.spent - 0.01).abs() < 1e-12);
        let most = &automatic.outcomes[0];
        assert_eq!((most.mode.as_str(), most.ranks), ("timer", 3));
        let gain = most.gain.expect("a gain");
        assert!((gain.share, gain.low, gain.high) == (0.3, 0.1, 0.5), "{gain:?}");
        assert_eq!(automatic.outcomes[1].gain, None);
        assert_eq!(Automatic::of(Vec::new()), None);
    }

    #[test]
    fn what_is_no_page_is_left_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let whole = serde_json::to_string(&page(1, 1, 0.3)).expect("text");
        let later = whole.replacen("\"version\":1", "\"version\":2", 1);
        let beyond = whole.replace("\"in_force\":1", "\"in_force\":2");
        let cut = &whole[..whole.len() / 2];
        let text = format!("{whole}\n{later}\n{beyond}\n\u{fffd}\n{cut}\n{whole}\n");
        fs::write(directory.path().join("auto-h.jsonl"), text).expect("a file");
        fs::write(directory.path().join("other.jsonl"), &whole).expect("a file");
        assert_eq!(pages_in(directory.path()).len(), 2);
        assert!(pages_in(&directory.path().join("nowhere")).is_empty());
    }
}
