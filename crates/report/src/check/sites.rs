//! Call sites at which the time inside MPI changed between earlier runs and these, a mean over ranks and runs: each nanosecond
//! counts at the call in which it passed, waits for requests where they are waited for.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::runs::CheckedRun;
use lapscope_data::model::Nanos;
use lapscope_data::symbols::base_name;

/// Sites that are listed.
const MOST: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedSite {
    pub call: String,
    pub function: Option<String>,
    pub file: Option<String>,
    /// In these runs, or where they lack it, in the earlier ones.
    pub line: Option<u64>,
    /// Per rank, inside the calls; `None`: no such site among those that a side has.
    pub before_ns: Option<Nanos>,
    pub after_ns: Option<Nanos>,
    pub difference_ns: Nanos,
}

impl ChangedSite {
    /// "MPI_Waitall exchange halo.c:84"
    pub fn place(&self) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let file = self.file.as_ref().map(|file| format!(" {file}{line}")).unwrap_or_default();
        let function = self.function.as_ref().map(|function| format!(" {function}"));
        format!("{}{}{file}", self.call, function.unwrap_or_default())
    }
}

/// Call, function, file without directory, and which of several of these: lines move when a file is edited.
type ChangedKey = (String, Option<String>, Option<String>, usize);

#[derive(Default)]
struct Mean {
    sum: f64,
    line: Option<u64>,
}

pub(super) fn changed(runs: &[CheckedRun], against: &[CheckedRun]) -> Vec<ChangedSite> {
    let (mut after, before) = (sites(runs), sites(against));
    let mut changed: Vec<ChangedSite> = Vec::new();
    let ns = |mean: &Mean| Nanos(mean.sum.round() as i64);
    let mut add = |key: ChangedKey, before: Option<&Mean>, after: Option<&Mean>| {
        let line = after.or(before).and_then(|mean| mean.line);
        let (before_ns, after_ns) = (before.map(ns), after.map(ns));
        let difference_ns = after_ns.unwrap_or_default() - before_ns.unwrap_or_default();
        let (call, function, file, _) = key;
        changed.push(ChangedSite {
            call,
            function,
            file,
            line,
            before_ns,
            after_ns,
            difference_ns,
        });
    };
    for (key, mean) in before {
        let other = after.remove(&key);
        add(key, Some(&mean), other.as_ref());
    }
    for (key, mean) in after {
        add(key, None, Some(&mean));
    }
    changed.retain(|site| site.difference_ns.0 != 0);
    changed.sort_by_key(|site| std::cmp::Reverse(site.difference_ns.0.abs()));
    changed.truncate(MOST);
    changed
}

/// Nanoseconds per rank, a mean over runs.
fn sites(runs: &[CheckedRun]) -> BTreeMap<ChangedKey, Mean> {
    let mut means: BTreeMap<ChangedKey, Mean> = BTreeMap::new();
    for run in runs {
        let ranks = run.report["head"]["ranks"].as_f64().unwrap_or(1.0).max(1.0);
        let of_kind = |kind: &str| run.report[kind].as_array().into_iter().flatten();
        let mut listed: Vec<&Value> = of_kind("sites").chain(of_kind("completing_sites")).collect();
        listed.sort_by_key(|site| site["site"]["line"].as_u64());
        let mut seen: BTreeMap<ChangedKey, usize> = BTreeMap::new();
        for site in listed {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let file = text(&site["site"]["file"]);
            let file = file.map(|file| base_name(&file).to_owned());
            let call = text(&site["call"]).unwrap_or_default();
            let mut key = (call, text(&site["site"]["function"]), file, 0);
            let number = seen.entry(key.clone()).or_default();
            key.3 = *number;
            *number += 1;
            let mean = means.entry(key).or_default();
            mean.sum += site["inside_ns"].as_f64().unwrap_or(0.0) / ranks / runs.len() as f64;
            mean.line = site["site"]["line"].as_u64();
        }
    }
    means
}
