//! What `LAPSCOPE_INJECT=auto` tried and decided: the pages that ranks leave, in `auto-HOST.jsonl` of the run directory and in
//! `injector.automatic`.

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
    use crate::made_up::page;

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
