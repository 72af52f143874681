//! Arguments of `lapscope check`.

use std::path::PathBuf;

use clap::Args;

use super::{ReferenceArgs, ResourceArgs, WrapperArgs};
use lapscope_report::check::{Limit, Name};
use lapscope_show::format::Format;

/// Hold runs against limits, and against earlier runs: an exit code for CI.
#[derive(Debug, Args)]
#[command(after_help = "\
WHAT is any number of `lapscope report --format json` by its keys (totals.exposed_ns, steps.duration.worst_ns), or short:
run-time, mpi, exposed, overlappable, achieved, possible, lost, efficiency, load-balance, communication, serialisation,
transfer, imbalance, step, step-p95, step-worst, step-exposed, requests, calls, unsuccessful-tests. VALUE is as 20%, 0.2,
5ms or 3s. Of several runs the mean counts.

Against earlier runs run-time, exposed, efficiency and step are compared. They fall short where the whole 95 % interval
of the change is to the worse, and the change is larger than --tolerance. That takes three runs on each side.

Exit codes: 0 all of it holds; 1 something falls short; 2 it cannot be judged: too few runs, ranks that died or
lacked processors, no such number, no run.

Examples:
  lapscope check --max exposed=20% --min efficiency=0.8 runs/ci
  lapscope check runs/new-* --write-baseline baseline.json
  lapscope check runs/new-* --against baseline.json --junit check.xml --format markdown
  lapscope check runs/new-* --against runs/old-* --advice 0     what following the first advice gained")]
pub struct CheckArgs {
    /// Run directories or databases [default: the newest lapscope-* here]
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,

    /// Earlier runs, or a file that --write-baseline wrote
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub against: Vec<PathBuf>,

    /// Falls short where WHAT is more; may be given several times
    #[arg(long, value_name = "WHAT=VALUE", value_parser = max)]
    pub max: Vec<Limit>,

    /// Falls short where WHAT is less; may be given several times
    #[arg(long, value_name = "WHAT=VALUE", value_parser = min)]
    pub min: Vec<Limit>,

    /// A TOML file with tables [max] and [min] of such values, and perhaps a tolerance
    #[arg(long, value_name = "FILE")]
    pub limits: Option<PathBuf>,

    /// Against earlier runs a smaller change is none: of times a fraction of them, of shares their difference [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub tolerance: Option<f64>,

    /// Say what following this piece of advice gained: its place in `advice` of the first earlier run, from 0 on
    #[arg(long, value_name = "N", requires = "against")]
    pub advice: Option<usize>,

    #[arg(long, value_parser = Format::any(), default_value_t)]
    pub format: Format,

    /// Write the answer as JUnit XML, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Write the answer as a badge, an SVG picture, too
    #[arg(long, value_name = "FILE")]
    pub badge: Option<PathBuf>,

    /// Keep these runs for --against, in a few KB each
    #[arg(long, value_name = "FILE")]
    pub write_baseline: Option<PathBuf>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    #[command(flatten)]
    pub resources: ResourceArgs,
}

fn max(text: &str) -> Result<Limit, String> {
    limit(text, true)
}

fn min(text: &str) -> Result<Limit, String> {
    limit(text, false)
}

fn limit(text: &str, is_max: bool) -> Result<Limit, String> {
    let (what, value) = text.split_once('=').ok_or("expected WHAT=VALUE, as exposed=20%")?;
    let name = Name::new(what.trim());
    let value = value_of(&name, value)?;
    Ok(Limit { name, is_max, value })
}

/// 20%, 0.2; of a time 5ms.
///
/// # Errors
/// It is no number, or has a unit that does not fit; as a sentence.
pub fn value_of(name: &Name, text: &str) -> Result<f64, String> {
    const TIMES: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 6e10), ("s", 1e9)];
    let text = text.trim();
    let as_number = |text: &str| text.trim().parse().ok().filter(|value: &f64| value.is_finite());
    let in_units = TIMES
        .iter()
        .find_map(|(unit, size)| as_number(text.strip_suffix(unit)?).map(|value| value * size));
    let found = in_units.filter(|_| name.is_time()).or_else(|| match text.strip_suffix('%') {
        Some(percent) if !name.is_time() => as_number(percent).map(|value| value / 100.0),
        _ => as_number(text),
    });
    let example = if name.is_time() { "5ms or 3s" } else { "20% or 0.2" };
    // names are looked for when there is a report: until then one that is misspelt is none of a time
    let is_other = in_units.is_some() && !name.is_time();
    let why = if is_other { format!("; {} is no time", name.asked) } else { String::new() };
    let found = found.ok_or_else(|| format!("{text}: expected a number, as {example}{why}"))?;
    // who writes exposed=20 means 20 %, and a limit of 2000 % would hold always
    match name.is_share() && found > 1.0 && !text.ends_with('%') {
        true => Err(format!("{text}: of a share write {text}% or {}%", found * 100.0)),
        false => Ok(found),
    }
}

/// 5%, 0.05.
///
/// # Errors
/// It is none; as a sentence.
pub fn share(text: &str) -> Result<f64, String> {
    let value = value_of(&Name::new("exposed"), text)?;
    (0.0..=1.0).contains(&value).then_some(value).ok_or_else(|| "expected 0% to 100%".to_owned())
}
