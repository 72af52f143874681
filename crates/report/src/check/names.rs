//! Numbers of the report by name: `totals.exposed_ns` or `/totals/exposed_ns`, and short names of those that matter most.

use serde_json::Value;
use strsim::{jaro_winkler, normalized_levenshtein};

/// A short name, the number in the report, and whether more of it is better (`None`: neither).
pub const SHORT_NAMES: [(&str, &str, Option<bool>); 20] = [
    ("run-time", "/head/longest_run_ns", Some(false)),
    ("mpi", "/totals/mpi_share", Some(false)),
    ("exposed", "/summary/exposed_share", Some(false)),
    ("overlappable", "/summary/overlappable_high_ns", Some(false)),
    ("achieved", "/overlap/totals/achieved_low", Some(true)),
    ("possible", "/overlap/totals/possible", Some(true)),
    ("lost", "/overlap/totals/lost_high", Some(false)),
    ("efficiency", "/efficiency/parallel_efficiency", Some(true)),
    ("load-balance", "/efficiency/load_balance", Some(true)),
    ("communication", "/efficiency/communication_efficiency", Some(true)),
    ("serialisation", "/efficiency/serialisation_efficiency", Some(true)),
    ("transfer", "/efficiency/transfer_efficiency", Some(true)),
    ("imbalance", "/spread/compute_imbalance", Some(false)),
    ("step", "/steps/duration/typical_ns", Some(false)),
    ("step-p95", "/steps/duration/p95_ns", Some(false)),
    ("step-worst", "/steps/duration/worst_ns", Some(false)),
    ("step-exposed", "/steps/exposed/typical_share", Some(false)),
    ("requests", "/totals/requests", None),
    ("calls", "/totals/calls", None),
    ("unsuccessful-tests", "/totals/unsuccessful_tests", None),
];

/// A number of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As it was typed.
    pub asked: String,
    pub pointer: String,
}

impl Name {
    /// A short name, or any other that is made of keys; whether a report has it is for [`Name::check`] to say.
    pub fn new(asked: &str) -> Name {
        Name::find(asked).unwrap_or_else(|| {
            let keys = asked.trim_start_matches(['/', '.']).replace(['.', '['], "/");
            Name { asked: asked.to_owned(), pointer: format!("/{}", keys.replace(']', "")) }
        })
    }

    /// A short name.
    pub(super) fn find(asked: &str) -> Option<Name> {
        let (_, pointer, _) = SHORT_NAMES.iter().find(|(short, ..)| *short == asked)?;
        Some(Name { asked: asked.to_owned(), pointer: (*pointer).to_owned() })
    }

    /// As the document of keys writes it.
    pub fn dotted(&self) -> String {
        self.pointer.trim_start_matches('/').replace('/', ".")
    }

    /// Whether more is better, where that is known.
    pub(super) fn is_more_better(&self) -> Option<bool> {
        SHORT_NAMES.iter().find(|(_, pointer, _)| *pointer == self.pointer)?.2
    }

    /// Whether it is a time, whose unit a limit may have.
    pub fn is_time(&self) -> bool {
        // as spread.compute_ns.max
        let of_several = ["min", "mean", "max", "low", "estimate", "high"];
        let (rest, key) = self.pointer.rsplit_once('/').unwrap_or(("", &self.pointer));
        key.ends_with("_ns") || rest.ends_with("_ns") && of_several.contains(&key)
    }

    /// Whether it may be less than is known where it is not recorded when GPUs computed: that is taken out of what is exposed.
    pub(super) fn gpus_may_lessen(&self) -> bool {
        const WORDS: [&str; 16] = [
            "/exposed",
            "/blocked",
            "/blocking_ns",
            "/collective_ns",
            "/posting_ns",
            "/rma_ns",
            "/io_ns",
            "/unsuccessful_test_ns",
            "/predicted",
            "/possible_overlap",
            "/overlappable",
            "/win_",
            "/inside_ns",
            "/time_ns",
            "/time_low_ns",
            "/time_high_ns",
        ];
        // that of a region is what it took, whatever was done in it
        let is_region = self.pointer.starts_with("/regions/") && self.pointer.ends_with("/time_ns");
        // elsewhere shares are of processors, and of what was tried
        const WITH_SHARES: [&str; 4] = ["/sites/", "/completing_sites/", "/sizes/", "/advice/"];
        let is_share = self.pointer.ends_with("/share") && self.is_of(&WITH_SHARES);
        !is_region && (is_share || self.is_of(&WORDS) || self.is_lost())
    }

    /// Whether it may be more: kernels beside other calls in an overlap window are computation, so that more was possible and
    /// achieved, and that more was lost, or less.
    pub(super) fn gpus_may_raise(&self) -> bool {
        const WORDS: [&str; 6] = [
            "/achieved",
            "/steps/overlap/",
            "/possible",
            "/overlappable",
            "/overlapped_with_gpu",
            "no_local_progress",
        ];
        self.is_of(&WORDS) || self.is_lost()
    }

    fn is_lost(&self) -> bool {
        self.is_of(&[
            "lost_low",
            "lost_high",
            "lost_late_partner",
            "lost_no_progress",
            "lost_other",
        ])
    }

    fn is_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.pointer.contains(word))
    }

    /// Whether it is a fraction, which a limit may have in per cent.
    pub fn is_share(&self) -> bool {
        const WORDS: [&str; 9] = [
            "share",
            "efficiency",
            "balance",
            "possible",
            "achieved",
            "lost_low",
            "lost_high",
            "predicted",
            "verified",
        ];
        let mut last = self.pointer.rsplit('/').take(2);
        !self.is_time() && last.any(|key| WORDS.iter().any(|word| key.contains(word)))
    }

    /// # Errors
    /// A report has no such key; the nearest ones, as a sentence.
    pub fn check(&self, report: &Value) -> Result<(), String> {
        let parent = self.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        let is_there = report.pointer(&self.pointer).is_some();
        // of what is null none of its keys is known, and of a list a run may have fewer
        let mut around = parent;
        while !is_there && !around.is_empty() && report.pointer(around).is_none() {
            around = around.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        let is_open = report.pointer(around).is_some_and(|it| it.is_null() || it.is_array());
        let is_short = Name::find(&self.asked).is_some();
        let is_number = |it: &Value| it.is_number() || it.is_null() || it["low"].is_number();
        let why = match report.pointer(&self.pointer) {
            Some(it) if is_number(it) => return Ok(()),
            _ if is_short => return Ok(()),
            Some(_) => format!("{} is no number of a report", self.asked),
            None if is_open && !around.is_empty() => return Ok(()),
            None => format!("a report has no number {}", self.asked),
        };
        Err(format!("{why}; the nearest are {}", nearest(&self.asked, report).join(", ")))
    }
}

/// Three names, the nearest first; the report's head writes "Exposed".
fn nearest(asked: &str, report: &Value) -> Vec<String> {
    let asked = asked.to_lowercase();
    let mut names: Vec<String> =
        SHORT_NAMES.iter().map(|(short, ..)| (*short).to_owned()).collect();
    numbers(report, "", &mut names);
    let last = |name: &str| name.rsplit(['.', '/']).next().unwrap_or(name).to_owned();
    let near = |name: &String| {
        let of = |a: &str, b: &str| jaro_winkler(a, b) + normalized_levenshtein(a, b);
        of(&asked, name).max(of(&last(&asked), &last(name)))
    };
    names.sort_by(|a, b| near(b).total_cmp(&near(a)));
    names.truncate(3);
    names
}

/// All numbers of a document by name; of lists their first entry.
fn numbers(value: &Value, name: &str, names: &mut Vec<String>) {
    let within = |key: &str| match name {
        "" => key.to_owned(),
        _ => format!("{name}.{key}"),
    };
    match value {
        Value::Number(_) => names.push(name.to_owned()),
        Value::Object(keys) => {
            keys.iter().for_each(|(key, value)| numbers(value, &within(key), names));
        }
        Value::Array(items) => {
            items.iter().take(1).for_each(|item| numbers(item, &within("0"), names));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_short_or_those_of_the_document() {
        assert_eq!(Name::new("exposed").pointer, "/summary/exposed_share");
        for asked in ["totals.mpi_ns", "/totals/mpi_ns", "totals/mpi_ns"] {
            assert_eq!(Name::new(asked).pointer, "/totals/mpi_ns");
        }
        assert_eq!(Name::new("sites[0].time_ns").pointer, "/sites/0/time_ns");
        assert_eq!(Name::new("exposed").dotted(), "summary.exposed_share");
        let kinds = ["step", "spread.compute_ns.max", "spread.compute_ns.max_rank", "mpi", "calls"]
            .map(Name::new)
            .map(|name| (name.is_time(), name.is_share()));
        let (time, share, count) = ((true, false), (false, true), (false, false));
        assert_eq!(kinds, [time, time, count, share, count]);
    }

    /// Of whom it is not recorded when GPUs computed.
    #[test]
    fn what_gpus_compute_lessens_what_is_exposed_and_raises_what_is_overlapped() {
        let [less, more, either, neither] =
            [(true, false), (false, true), (true, true), (false, false)];
        for (asked, expected) in [
            ("exposed", less),
            ("step-exposed", less),
            ("completing_sites[0].time_ns", less),
            ("completing_sites[0].share", less),
            ("advice[0].predicted.high", less),
            ("totals.rma_ns", less),
            ("steps.overlap.typical_low", more),
            ("achieved", more),
            ("possible", more),
            ("totals.overlapped_with_gpu_ns", more),
            ("lost", either),
            ("overlap.totals.lost_late_partner_ns", either),
            ("overlap.totals.lost_no_progress_ns", either),
            ("overlap.totals.lost_other_ns", either),
            ("overlappable", either),
            ("mpi", neither),
            ("run-time", neither),
            ("ranks[0].lost_records", neither),
            ("regions[0].time_ns", neither),
            ("regions[0].exposed_ns", less),
            ("requests", neither),
        ] {
            let name = Name::new(asked);
            assert_eq!((name.gpus_may_lessen(), name.gpus_may_raise()), expected, "{asked}");
        }
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        let report =
            json!({ "totals": { "exposed_ns": 1, "mpi_ns": 2 }, "steps": null, "sites": [] });
        for known in ["totals.mpi_ns", "steps.duration.min_ns", "step", "sites[0].time_ns"] {
            assert_eq!(Name::new(known).check(&report), Ok(()), "{known}");
        }
        let why = Name::new("totals.exposd_ns").check(&report).unwrap_err();
        assert!(why.contains("the nearest are totals.exposed_ns"), "{why}");
        let why = Name::new("totals").check(&report).unwrap_err();
        assert!(why.contains("totals is no number of a report; the nearest are totals."), "{why}");
        for asked in ["exposd", "EXPOSED", "Exposed"] {
            let why = Name::new(asked).check(&report).unwrap_err();
            assert!(why.contains("the nearest are exposed"), "{why}");
        }
    }
}
