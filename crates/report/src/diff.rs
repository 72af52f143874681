//! Two runs side by side: what changed in their configuration, and what in their times, call site by call site.

mod pairing;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::report::{Accelerator, Host, OverlapSummary, Report};
use lapscope_advise::problem::in_short;
use lapscope_data::db::{Configuration, ValuesByName};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::plural;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_data::JSON_VERSION;
use lapscope_measure::overlap::sums::{BlockingNumbers, ByCause, Cause, OverlapNumbers};
use lapscope_measure::sites::{Site, SiteKind};

/// One of the two runs.
#[derive(Debug)]
pub struct DiffSide {
    pub report: Report,
    pub configuration: Configuration,
}

/// What `lapscope diff` says. Differences are b minus a.
#[derive(Debug, Serialize)]
pub struct Diff {
    pub json_version: u32,
    pub a: RunIdentity,
    pub b: RunIdentity,
    pub configuration: Vec<Change>,
    /// By the keys of `totals` of the report, and the run time of the rank that ran longest.
    pub totals: BTreeMap<&'static str, TimePair>,
    pub overlap: OverlapPair,
    /// The largest differences first.
    pub sites: Vec<SitePair>,
    /// Call sites in all, and of them in one run only.
    pub site_count: usize,
    pub only_in_a: usize,
    pub only_in_b: usize,
}

/// A run as a reader would know it again.
#[derive(Debug, Serialize)]
pub struct RunIdentity {
    pub run: String,
    pub command: String,
    pub started_unix_ns: i64,
    pub ranks: usize,
    /// What to know before believing its numbers.
    pub problems: Vec<String>,
}

/// Something that is not the same in both runs; `None` where it is not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub kind: ChangeKind,
    pub name: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// What sort of setting it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// What ran: command, program, ranks, hosts, MPI library.
    Run,
    Environment,
    /// Control variables of the MPI library.
    Cvar,
    /// LAPSCOPE_ options.
    Option,
}

/// A time in both runs, summed over ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TimePair {
    pub a_ns: Nanos,
    pub b_ns: Nanos,
    pub difference_ns: Nanos,
}

impl TimePair {
    pub fn new(a_ns: Nanos, b_ns: Nanos) -> TimePair {
        TimePair { a_ns, b_ns, difference_ns: b_ns - a_ns }
    }
}

/// How much of the communication was overlapped in both runs.
#[derive(Debug, Serialize)]
pub struct OverlapPair {
    /// What the transfers take with nothing in between.
    pub reference: TimePair,
    pub achieved_low: FractionPair,
    pub achieved_high: FractionPair,
    pub possible_low: FractionPair,
    pub possible: FractionPair,
    pub lost_low: FractionPair,
    pub lost_high: FractionPair,
    /// Time in calls that ended requests.
    pub exposed_by_cause: CausePair,
    /// Time in blocking sends, receives and collectives.
    pub blocked_by_cause: CausePair,
}

/// A fraction in both runs; `None` where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FractionPair {
    pub a: Option<f64>,
    pub b: Option<f64>,
}

/// Time in both runs by what was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CausePair {
    pub late_partner: TimePair,
    pub no_remote_progress: TimePair,
    pub no_local_progress: TimePair,
    pub transfer: TimePair,
    pub no_processor: TimePair,
}

impl CausePair {
    fn new(a: ByCause, b: ByCause) -> CausePair {
        let [late_partner, no_remote_progress, no_local_progress, transfer, no_processor] =
            std::array::from_fn(|cause| TimePair::new(a[cause], b[cause]));
        CausePair { late_partner, no_remote_progress, no_local_progress, transfer, no_processor }
    }

    pub fn by_cause(&self, cause: Cause) -> TimePair {
        match cause {
            Cause::LatePartner => self.late_partner,
            Cause::NoRemoteProgress => self.no_remote_progress,
            Cause::NoLocalProgress => self.no_local_progress,
            Cause::Transfer => self.transfer,
            Cause::NoProcessor => self.no_processor,
        }
    }
}

impl OverlapPair {
    fn new(a: &OverlapSummary, b: &OverlapSummary) -> OverlapPair {
        let (old, new) = (&a.totals.numbers, &b.totals.numbers);
        let fraction =
            |of: fn(&OverlapNumbers) -> Option<f64>| FractionPair { a: of(old), b: of(new) };
        let exposed = |numbers: &OverlapNumbers| Cause::ALL.map(|cause| numbers.exposed_of(cause));
        let blocked = |numbers: &BlockingNumbers| Cause::ALL.map(|cause| numbers.blocked_by(cause));
        OverlapPair {
            reference: TimePair::new(old.reference_ns, new.reference_ns),
            achieved_low: fraction(|numbers| numbers.achieved_low),
            achieved_high: fraction(|numbers| numbers.achieved_high),
            possible_low: fraction(|numbers| numbers.possible_low),
            possible: fraction(|numbers| numbers.possible),
            lost_low: fraction(|numbers| numbers.lost_low),
            lost_high: fraction(|numbers| numbers.lost_high),
            exposed_by_cause: CausePair::new(exposed(old), exposed(new)),
            blocked_by_cause: CausePair::new(blocked(&a.blocking), blocked(&b.blocking)),
        }
    }
}

/// A call site in both runs, or in one of them.
#[derive(Debug, Serialize)]
pub struct SitePair {
    pub call: String,
    pub kind: SiteKind,
    /// Place in run a and in run b; they differ where the source was edited.
    pub site_a: Option<FrameName>,
    pub site_b: Option<FrameName>,
    pub presence: Presence,
    pub calls_a: u64,
    pub calls_b: u64,
    pub bytes_a: u64,
    pub bytes_b: u64,
    pub time: TimePair,
    /// In the calls themselves.
    pub inside: TimePair,
    /// Exposed time: shares of the calls that ended the requests.
    pub exposed: TimePair,
    /// What was waited for, in the completing calls or, of blocking calls, in the calls themselves.
    pub exposed_by_cause: CausePair,
    /// `time` as a mean over the ranks of each run: what is compared when these are not as many.
    pub per_rank: TimePair,
}

/// Which run has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Both,
    A,
    B,
}

/// The mean of a rank of what is summed over so many in each run.
fn per_rank(pair: TimePair, (a, b): (usize, usize)) -> TimePair {
    let mean = |ranks: usize, sum| MeanOfRanks(ranks as u64).of(sum);
    TimePair::new(mean(a, pair.a_ns), mean(b, pair.b_ns))
}

impl Diff {
    /// Times that are summed over ranks as means of one: the runs may not have as many.
    pub fn mean(&self, pair: TimePair) -> TimePair {
        per_rank(pair, (self.a.ranks, self.b.ranks))
    }

    /// Compares two reports with all their call sites; `top` limits how many are listed, 0 lists all.
    pub fn new(a: &DiffSide, b: &DiffSide, top: usize) -> Diff {
        let ranks = (a.report.head.ranks, b.report.head.ranks);
        let pairs = pairing::pair(&a.report.sites, &b.report.sites);
        let mut sites: Vec<SitePair> =
            pairs.into_iter().map(|(a, b)| SitePair::new(a, b, ranks)).collect();
        sites.sort_by_key(|site| {
            Reverse((site.per_rank.difference_ns.0.abs(), site.time.difference_ns.0.abs()))
        });
        let count = |presence| sites.iter().filter(|site| site.presence == presence).count();
        let (only_in_a, only_in_b) = (count(Presence::A), count(Presence::B));
        let site_count = sites.len();
        sites.truncate(if top == 0 { site_count } else { top });
        Diff {
            json_version: JSON_VERSION,
            a: RunIdentity::new(&a.report),
            b: RunIdentity::new(&b.report),
            configuration: changes(a, b),
            totals: totals(&a.report, &b.report),
            overlap: OverlapPair::new(&a.report.overlap, &b.report.overlap),
            sites,
            site_count,
            only_in_a,
            only_in_b,
        }
    }
}

impl RunIdentity {
    fn new(report: &Report) -> RunIdentity {
        RunIdentity {
            run: report.run.clone(),
            command: report.head.command.clone(),
            started_unix_ns: report.head.started_unix_ns,
            ranks: report.head.ranks,
            problems: in_short(&report.problems).into_iter().map(Cow::into_owned).collect(),
        }
    }
}

fn totals(a: &Report, b: &Report) -> BTreeMap<&'static str, TimePair> {
    let of = |report: &Report| {
        let totals = &report.totals;
        [
            ("longest_run_ns", report.head.longest_run_ns),
            ("run_ns", totals.run_ns),
            ("mpi_ns", totals.mpi_ns),
            ("posting_ns", totals.posting_ns),
            ("exposed_ns", totals.exposed_ns),
            ("overlapped_with_gpu_ns", totals.overlapped_with_gpu_ns),
            ("blocking_ns", totals.blocking_ns),
            ("collective_ns", totals.collective_ns),
            ("rma_ns", totals.rma_ns),
            ("io_ns", totals.io_ns),
            ("unsuccessful_test_ns", totals.unsuccessful_test_ns),
            ("other_ns", totals.other_ns),
        ]
    };
    let mut totals: BTreeMap<_, _> =
        of(a).into_iter().zip(of(b)).map(|((key, a), (_, b))| (key, TimePair::new(a, b))).collect();
    if [a, b].iter().any(|report| report.summary.exposed_is_upper_bound) {
        totals.remove("overlapped_with_gpu_ns"); // it is not known of both
    }
    totals
}

fn changes(a: &DiffSide, b: &DiffSide) -> Vec<Change> {
    let mut changes = compare(ChangeKind::Run, &facts(a), &facts(b));
    let (old, new) = (&a.configuration, &b.configuration);
    changes.extend(compare(ChangeKind::Environment, &old.environment, &new.environment));
    changes.extend(compare(ChangeKind::Cvar, &old.cvars, &new.cvars));
    let mut options = compare(ChangeKind::Option, &old.options, &new.options);
    // Where a run was written and what was said at its end changes nothing of what it did.
    const OF_NO_EFFECT: [&str; 5] = [
        "LAPSCOPE_DIR",
        "LAPSCOPE_FILES",
        "LAPSCOPE_SPOOL_DIR",
        "LAPSCOPE_QUIET",
        "LAPSCOPE_CONVERT",
    ];
    options.retain(|change| !OF_NO_EFFECT.contains(&change.name.as_str()));
    changes.extend(options);
    changes
}

/// What ran, as settings.
fn facts(side: &DiffSide) -> ValuesByName {
    let head = &side.report.head;
    let mut facts = ValuesByName::from([
        ("command".into(), head.command.clone()),
        ("ranks".into(), head.ranks.to_string()),
        ("hosts (ranks)".into(), hosts_with_ranks(&head.hosts)),
        ("MPI library".into(), head.mpi_library.clone()),
        ("thread level".into(), head.thread_level.to_string()),
        ("lapscope".into(), head.lapscope_version.clone()),
    ]);
    if head.has_gpus() {
        facts.insert("kernels beside MPI".into(), time_of_gpus(&head.accelerators));
    }
    if let Some(build_id) = &side.configuration.build_id {
        facts.insert("program's build id".into(), build_id.clone());
    }
    facts
}

/// Exposed time is without what GPUs computed in where that is recorded, and with it elsewhere.
fn time_of_gpus(all: &[Accelerator]) -> String {
    let missing: usize = all.iter().flat_map(|it| it.missing.values()).sum();
    match missing {
        0 => "recorded, and not in what is exposed".to_owned(),
        _ => format!(
            "not, or not all, recorded of {missing} rank{}, and in what is exposed",
            plural(missing as u64)
        ),
    }
}

/// "node1 (4), node2 (2)"; of many hosts "n001 to n156 (64), n157 (16)".
fn hosts_with_ranks(hosts: &[Host]) -> String {
    const FEW: usize = 8;
    if hosts.len() <= FEW {
        let each = hosts.iter().map(|host| format!("{} ({})", host.name, host.ranks));
        return each.collect::<Vec<_>>().join(", ");
    }
    let mut names: BTreeMap<Reverse<usize>, Vec<&str>> = BTreeMap::new();
    for host in hosts {
        names.entry(Reverse(host.ranks)).or_default().push(&host.name);
    }
    let each = names.into_iter().map(|(ranks, names)| match names.len() {
        1 => format!("{} ({})", names[0], ranks.0),
        number => format!("{number} hosts {} ({})", list_hosts(names), ranks.0),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn compare(kind: ChangeKind, a: &ValuesByName, b: &ValuesByName) -> Vec<Change> {
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| Change {
            kind,
            name: name.clone(),
            a: a.get(name).cloned(),
            b: b.get(name).cloned(),
        })
        .collect()
}

impl SitePair {
    /// One of the two is there.
    fn new(a: Option<&Site>, b: Option<&Site>, ranks: (usize, usize)) -> SitePair {
        let either = a.or(b);
        let time = |of: fn(&Site) -> Nanos| {
            TimePair::new(a.map(of).unwrap_or_default(), b.map(of).unwrap_or_default())
        };
        let number = |site: Option<&Site>, of: fn(&Site) -> u64| site.map_or(0, of);
        let total = time(|site| site.numbers.time_ns);
        let causes = |site: Option<&Site>| {
            let part = site.and_then(|site| site.overlap);
            part.map_or(ByCause::default(), |part| part.exposed().1)
        };
        SitePair {
            call: either.map(|site| site.call.clone()).unwrap_or_default(),
            kind: either.map_or(SiteKind::Other, |site| site.kind),
            site_a: a.and_then(|site| site.site.clone()),
            site_b: b.and_then(|site| site.site.clone()),
            presence: match (a, b) {
                (Some(_), None) => Presence::A,
                (None, Some(_)) => Presence::B,
                _ => Presence::Both,
            },
            calls_a: number(a, |site| site.numbers.calls),
            calls_b: number(b, |site| site.numbers.calls),
            bytes_a: number(a, |site| site.numbers.bytes),
            bytes_b: number(b, |site| site.numbers.bytes),
            time: total,
            inside: time(|site| site.numbers.inside_ns),
            exposed: time(|site| site.numbers.exposed_ns),
            exposed_by_cause: CausePair::new(causes(a), causes(b)),
            per_rank: per_rank(total, ranks),
        }
    }
}
