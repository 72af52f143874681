//! Sums over jobs as OpenMetrics text, which node_exporter's textfile collector reads, too. All are gauges: what is deleted from the
//! database, or left out by a filter, is not in them. Users are in none of them, and of an executable the file name alone.

use std::collections::BTreeMap;
use std::fmt::Write;

use lapscope_data::jobs::JobGroup;
use lapscope_data::symbols::base_name;
use lapscope_data::text::visible::visible;

/// Executables with samples of their own; what is left is called `other`.
const MOST: usize = 50;

/// Sums of one family's samples.
#[derive(Debug, Clone, Copy, Default)]
struct SampleSums {
    jobs: f64,
    run: f64,
    exposed: f64,
}

/// A family: its name, which ends in its unit, what it is, and its value.
struct MetricFamily {
    name: &'static str,
    unit: Option<&'static str>,
    help: &'static str,
    value: fn(&SampleSums) -> f64,
}

const FAMILIES: [MetricFamily; 3] = [
    MetricFamily {
        name: "lapscope_jobs",
        unit: None,
        help: "Jobs of which there are records.",
        value: |sums| sums.jobs,
    },
    MetricFamily {
        name: "lapscope_jobs_run_seconds",
        unit: Some("seconds"),
        help: "Time from MPI_Init to MPI_Finalize, summed over ranks.",
        value: |sums| sums.run,
    },
    MetricFamily {
        name: "lapscope_jobs_exposed_seconds",
        unit: Some("seconds"),
        help: "Of it, time in MPI calls that communicate, summed over ranks; an upper bound where GPUs compute meanwhile.",
        value: |sums| sums.exposed,
    },
];

/// Whether a file that begins so was written here.
pub fn is_openmetrics(begin: &[u8]) -> bool {
    begin.starts_with(format!("# TYPE {} ", FAMILIES[0].name).as_bytes())
}

/// `groups` are sums for each executable and MPI.
pub fn openmetrics(groups: &[JobGroup]) -> String {
    let samples = samples(groups);
    let mut text = String::new();
    for MetricFamily { name, unit, help, value } in FAMILIES {
        let _ = writeln!(text, "# TYPE {name} gauge");
        if let Some(unit) = unit {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        for ((executable, mpi), sums) in &samples {
            let labels = format!("executable=\"{}\",mpi=\"{}\"", escaped(executable), escaped(mpi));
            let rounded = (value(sums) * 1e3).round() / 1e3;
            let _ = writeln!(text, "{name}{{{labels}}} {rounded:?}");
        }
    }
    text + "# EOF\n"
}

/// By names of executables: those that ran longest, and all others together.
fn samples(groups: &[JobGroup]) -> BTreeMap<(&str, &str), SampleSums> {
    let mut ran: BTreeMap<&str, f64> = BTreeMap::new();
    for group in groups {
        *ran.entry(base_name(&group.name)).or_default() += group.run;
    }
    let mut longest: Vec<(&str, f64)> = ran.into_iter().collect();
    longest.sort_by(|a, b| b.1.total_cmp(&a.1));
    longest.truncate(MOST);
    let mut samples: BTreeMap<(&str, &str), SampleSums> = BTreeMap::new();
    for group in groups {
        let own = base_name(&group.name);
        let is_named = longest.iter().any(|(name, _)| *name == own);
        let name = if is_named { own } else { "other" };
        let sums = samples.entry((name, &group.second_name)).or_default();
        sums.jobs += group.jobs as f64;
        sums.run += group.run;
        sums.exposed += group.exposed;
    }
    samples
}

/// What a label may hold, which is all but three characters; what would command a terminal is shown.
fn escaped(value: &str) -> String {
    visible(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
