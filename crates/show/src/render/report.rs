//! The report as text.

mod efficiency;
mod loops;
mod overlap;
mod ranks;
mod sites;
mod steps;
mod summary;

use std::io::{self, Write};

use super::table::{Align, Cell, Table};
use lapscope_advise::advice::Advice;
use lapscope_advise::how::snippet;
use lapscope_advise::insight::Insight;
use lapscope_advise::measures_in_words::CALIBRATE;
use lapscope_advise::problem::in_short;
use lapscope_data::model::{Ended, Kind, Nanos, RankList};
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::library::library_name;
use lapscope_data::text::shell;
use lapscope_data::text::style::{display_width, Style};
use lapscope_data::text::units::{bytes, count, percent, time, MeanOfRanks};
use lapscope_data::text::{capitalized, plural};
use lapscope_measure::alike::MOST_ROWS;
use lapscope_measure::thresholds::{LimitVerdict, LocalityThresholds};
use lapscope_measure::totals::Totals;
use lapscope_measure::transfers::KindRow;
use lapscope_report::report::{Accelerator, Report};
use lapscope_trace::problem::ProblemKind;

pub(crate) use loops::sentences as loops_of_tests;
pub(crate) use overlap::{achieved, notes, source};
pub(crate) use sites::{mostly, place};
pub use sites::{site_label, write_site_table, write_wrappers};
pub(crate) use steps::{lines as step_lines, what as what_steps};
pub use summary::{answers, beyond_all};

/// What the text has besides.
#[derive(Debug, Clone, Default)]
pub struct AskedBesides {
    /// Ranks that have a line.
    pub listed: Option<RankList>,
    /// Advice as code.
    pub how: bool,
}

/// Writes the whole report.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    report: &Report,
    asked: &AskedBesides,
    style: Style,
) -> io::Result<()> {
    write_head(out, report, style)?;
    write_problems(out, report, style)?;
    summary::write(out, report, style)?;
    write_split(out, report, style)?;
    efficiency::write(out, report, style)?;
    ranks::write(out, report, asked.listed.as_ref(), style)?;
    overlap::write(out, report, style)?;
    steps::write(out, report, style)?;
    write_thresholds(out, report, style)?;
    super::injection::write(out, report.injection.as_ref(), style)?;
    if let Some(reach) = &report.reach {
        super::reach::write_brief(out, reach, report.totals.run_ns, report.mean(), style)?;
    }
    write_insights(out, report, style)?;
    super::advice::write(out, &report.advice, (report.summary.first, report.mean()), style)?;
    if asked.how {
        super::advice::write_code(out, report, style)?;
    }
    super::profile::write(out, report, style)?;
    sites::write(out, report, style)?;
    sites::write_sizes(out, report, style)?;
    super::unexpected::write(out, report, style)?;
    super::left_over::write(out, report, style)?;
    write_next(out, report, asked.how, style)
}

fn write_head(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let head = &report.head;
    writeln!(out, "{}", style.headed("lapscope report", &report.run))?;
    writeln!(out, "{}", style.wrap(&head.command, "", "  "))?;
    write_spawned(out, report, style)?;
    writeln!(out, "{}", style.wrap(&facts(report), "", "  "))
}

/// "4 ranks on n1 · Open MPI v4.1.4 (MPI 3.1) · 4.51 s from MPI_Init to MPI_Finalize".
pub(crate) fn facts(report: &Report) -> String {
    let head = &report.head;
    let hosts = match head.hosts.as_slice() {
        [host] => format!("on {}", host.name),
        hosts => {
            let names = list_hosts(hosts.iter().map(|host| host.name.as_str()));
            format!("on {} hosts ({names})", count(hosts.len() as u64))
        }
    };
    let are_alone = report.problems.iter().any(|problem| problem.kind == ProblemKind::Singletons);
    let ranks = match are_alone {
        true => format!("{} ranks, each alone", head.worlds.len()),
        false => format!("{} rank{}", head.world_size, plural(head.world_size.max(0) as u64)),
    };
    let spawned = match head.worlds.get(1..).unwrap_or_default() {
        _ if are_alone => String::new(),
        [] => String::new(),
        others => {
            let sizes: i64 = others.iter().map(|world| world.world_size).sum();
            format!(" and {sizes} spawned in {} world{}", others.len(), plural(others.len() as u64))
        }
    };
    let has_deaths = report.ranks.iter().any(|rank| rank.ended != Ended::Finalize);
    let end = if has_deaths { "the last record" } else { "MPI_Finalize" };
    let length = match head.longest_run_ns {
        Nanos(0) if has_deaths => "nothing recorded behind MPI_Init".to_owned(),
        longest => format!("{} from MPI_Init to {end}", time(longest)),
    };
    let length = report.stretch.as_ref().map_or(length, super::stretch::in_words);
    format!(
        "{ranks}{spawned} {hosts} · {} (MPI {}){} · {length}",
        library_name(&head.mpi_library),
        head.mpi_standard,
        accelerators(&head.accelerators),
    )
}

/// " · libcuda in 2 ranks, MPI takes buffers in device memory (cuda)" for each; nothing where there are none.
fn accelerators(all: &[Accelerator]) -> String {
    let one = |it: &Accelerator| {
        let buffers = match it.device_buffers.as_deref() {
            None => String::new(),
            Some("none") => ", MPI takes no buffers in device memory".to_owned(),
            Some(whose) => format!(", MPI takes buffers in device memory ({whose})"),
        };
        format!(" · {} in {} rank{}{buffers}", it.library, it.ranks, plural(it.ranks as u64))
    };
    all.iter().map(one).collect()
}

/// Worlds beside the first, each command once.
fn write_spawned(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    const SHOWN: usize = 4;
    let mut commands: Vec<(&str, Vec<String>)> = Vec::new();
    for world in report.head.worlds.iter().skip(1) {
        let at = commands.iter().position(|(command, _)| *command == world.command);
        let at = at.unwrap_or_else(|| {
            commands.push((&world.command, Vec::new()));
            commands.len() - 1
        });
        commands[at].1.push(world.world.to_string());
    }
    for (command, worlds) in commands.iter().take(SHOWN) {
        let more = if worlds.len() > SHOWN { ", …" } else { "" };
        let numbers = worlds[..worlds.len().min(SHOWN)].join(", ");
        let line = format!("world{} {numbers}{more}: {command}", plural(worlds.len() as u64));
        writeln!(out, "{}", style.wrap(&line, "  ", "    "))?;
    }
    if commands.len() > SHOWN {
        let more = commands.len() - SHOWN;
        writeln!(out, "  and {more} more command{}", plural(more as u64))?;
    }
    Ok(())
}

fn write_problems(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.problems.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for sentence in in_short(&report.problems) {
        writeln!(out, "{}", style.warning(&sentence))?;
    }
    Ok(())
}

/// A part of the time inside MPI.
pub(crate) struct MpiTimePart {
    pub label: &'static str,
    in_sentence: &'static str,
    is_communication: bool,
    /// The key in the JSON's totals.
    pub key: &'static str,
}

pub(crate) fn split(totals: &Totals) -> [(MpiTimePart, Nanos); 9] {
    let part =
        |label, in_sentence, key| MpiTimePart { label, in_sentence, is_communication: true, key };
    let other = |label, in_sentence, key| MpiTimePart {
        is_communication: false,
        ..part(label, in_sentence, key)
    };
    let complete = "in calls that complete requests";
    let manage = "in communicator management and other calls";
    let blocking = "in blocking sends and receives";
    let tests = "in unsuccessful tests";
    [
        (part("completing requests", complete, "exposed_ns"), totals.exposed_ns),
        (
            other("MPI beside a GPU", "beside a GPU", "overlapped_with_gpu_ns"),
            totals.overlapped_with_gpu_ns,
        ),
        (
            part("posting requests", "posting non-blocking requests", "posting_ns"),
            totals.posting_ns,
        ),
        (part("blocking point-to-point", blocking, "blocking_ns"), totals.blocking_ns),
        (part("collectives", "in collectives", "collective_ns"), totals.collective_ns),
        (part("one-sided", "in one-sided communication", "rma_ns"), totals.rma_ns),
        (other("files", "in file operations", "io_ns"), totals.io_ns),
        (part("unsuccessful tests", tests, "unsuccessful_test_ns"), totals.unsuccessful_test_ns),
        (other("other MPI", manage, "other_ns"), totals.other_ns),
    ]
}

fn write_split(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let totals = &report.totals;
    let outside = Nanos((totals.run_ns - totals.mpi_ns).0.max(0));
    writeln!(out)?;
    let columns =
        [Align::Left, Align::Right, Align::Right, Align::Bar(40)].map(|align| ("", align));
    let mut table = Table::new(&columns);
    let mut line = |label: &str, part: Nanos| {
        let share = part.share_of(totals.run_ns);
        let numbers = [percent(share), report.mean().time(part)].map(Cell::from);
        let [share_text, time_text] = numbers;
        table.row(vec![label.into(), share_text, time_text, Cell::Bar(share)], None);
    };
    for (part, ns) in split(totals).iter().filter(|(_, ns)| ns.0 > 0) {
        line(part.label, *ns);
    }
    line("outside MPI", outside);
    table.write(out, style)?;
    let transferred: Vec<String> = report.kinds.iter().filter_map(transferred).collect();
    if !transferred.is_empty() {
        let text = format!("transferred: {}", transferred.join(", "));
        writeln!(out, "{}", style.wrap(&text, "  ", "  "))?;
    }
    if (2..=MOST_ROWS).contains(&report.ranks.len()) {
        ranks::write_spread(out, report, style)?;
    }
    Ok(())
}

/// "sent 96 MiB"
fn transferred(row: &KindRow) -> Option<String> {
    let what = match row.kind {
        Kind::Send => "sent",
        Kind::Recv => "received",
        Kind::Collective => "in collectives",
        Kind::Rma => "one-sided",
        Kind::Io => "to and from files",
        Kind::Generalized | Kind::Other => "else",
    };
    (row.bytes > 0).then(|| format!("{what} {}", bytes(row.bytes)))
}

/// A sentence for each path of which something is known.
fn write_thresholds(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let localities = &report.thresholds.localities;
    let tells = |found: &&LocalityThresholds| match found.rendezvous.verdict {
        LimitVerdict::NoEvidence => false,
        LimitVerdict::AlwaysEager => found.rendezvous.largest_eager_bytes != Some(0),
        _ => true,
    };
    let known: Vec<&LocalityThresholds> = localities.iter().filter(tells).collect();
    if known.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("THRESHOLDS"))?;
    for found in known {
        let sentence = format!("{}.", found.rendezvous.sentence.trim_end_matches('.'));
        writeln!(out, "{}", style.wrap(&capitalized(&sentence), "  ", "  "))?;
    }
    Ok(())
}

fn write_insights(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    // Overlap and advice say more of waiting, posting and blocking.
    let is_said = |insight: &&Insight| match insight {
        Insight::ExposedCommunication { .. } => report.overlap.totals.numbers.exposed_ns.0 > 0,
        Insight::ExpensivePosting { .. }
        | Insight::BlockingCalls { .. }
        | Insight::UnevenCollectives { .. } => {
            report.overlap.totals.numbers.requests == report.totals.requests
        }
        _ => false,
    };
    let insights: Vec<&Insight> =
        report.insights.iter().filter(|insight| !is_said(insight)).collect();
    if insights.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("WHAT THIS MEANS"))?;
    for insight in insights {
        writeln!(out, "{}", style.wrap(&sentence(insight, report.mean()), "  ", "  "))?;
    }
    Ok(())
}

fn sentence(insight: &Insight, mean: MeanOfRanks) -> String {
    match insight {
        Insight::ExposedCommunication { exposed_ns, completing_calls, possible_overlap_ns, in_detail } => {
            let calls = plural(*completing_calls);
            let mut text = format!(
                "Exposed: {} in {} call{calls} that completed requests. ",
                mean.time(*exposed_ns),
                count(*completing_calls)
            );
            let of = if *in_detail { "" } else { ", as far as sums tell" };
            text += &match possible_overlap_ns.0 {
                0 => format!("No computation lay between post and completion{of}: overlap was not possible."),
                _ => format!(
                    "Possible overlap: at most {} of it; so much computation lay between post and completion{of}.",
                    mean.time(*possible_overlap_ns)
                ),
            };
            text
        }
        Insight::ExpensivePosting { posting_ns, requests, mean_ns } => format!(
            "Posting took {}: {} for each of {} requests. The time in these calls cannot overlap with computation.",
            mean.time(*posting_ns),
            time(*mean_ns),
            count(*requests)
        ),
        Insight::BlockingCalls { blocking_ns, call, call_ns } => format!(
            "Blocking: {} in sends and receives that return when done, {} of it in {call}. No computation can run beside \
             them.",
            mean.time(*blocking_ns),
            mean.time(*call_ns)
        ),
        Insight::UnevenCollectives { rank, rank_ns, mean_ns } => format!(
            "Collectives: rank {rank} is in them for {} only, against {} in the mean: the others wait there for it.",
            time(*rank_ns),
            time(*mean_ns)
        ),
        Insight::UnsuccessfulTests { unsuccessful_test_ns, unsuccessful_tests } => format!(
            "{} unsuccessful tests took {}.",
            count(*unsuccessful_tests),
            mean.time(*unsuccessful_test_ns)
        ),
        Insight::LittleMpi { mpi_share } => format!(
            "Only {} of the run time is in MPI: overlap cannot make this run much faster.",
            percent(*mpi_share)
        ),
    }
}

/// `has_code`: advice as code was printed already.
fn write_next(
    out: &mut dyn Write,
    report: &Report,
    has_code: bool,
    style: Style,
) -> io::Result<()> {
    let run = shell::quote(&report.run);
    let mut next = Vec::new();
    let is_stuck = |kind: ProblemKind| matches!(kind, ProblemKind::Died | ProblemKind::Pending);
    let has_rows = report.summary.in_detail_share != Some(0.0);
    if has_rows && report.problems.iter().any(|problem| is_stuck(problem.kind)) {
        next.push((format!("lapscope hang --pending {run}"), "what each rank was waiting for"));
    }
    if report.would_calibrating_tell() {
        let what = match &report.overlap.reference.description.refused {
            None => "reference times, measured; then this report again: its intervals get narrower",
            Some(_) => {
                "the last one was refused: once more, with a processor for each rank and nothing else running; then this report again"
            }
        };
        next.push((CALIBRATE.to_owned(), what));
    }
    let is_code = |it: &Advice| it.is_worth_reading() && snippet(it).is_some();
    let is_any = report.relies_on_buffering.is_some() || report.advice.iter().any(is_code);
    if is_any && !has_code {
        next.push((format!("lapscope report --how {run}"), "the advice as code, before and after"));
    }
    next.push((
        format!("lapscope html {run}"),
        "the same with pictures, as a page for the browser",
    ));
    let has_requests = has_rows && report.totals.requests > 0;
    if has_requests {
        next.push((
            format!("lapscope overlap {run}"),
            "overlap by call site, size, locality, rank, and over time",
        ));
    }
    if !report.thresholds.localities.is_empty() {
        next.push((format!("lapscope thresholds {run}"), "from which size sends wait"));
    }
    if report.bounds.is_some() {
        let what = "run time with another network, protocol, progress, or load";
        next.push((format!("lapscope whatif {run}"), what));
    } else if report.is_too_large_to_replay {
        let what = "the most that any cure can bring, and (--eager-limit 0 --on all) whether sends rely on buffering: left out here, as it takes a while";
        next.push((format!("lapscope whatif {run}"), what));
    }
    next.push((format!("lapscope sites {run}"), "all call sites as a tree of call paths"));
    if has_requests {
        next.push((format!("lapscope requests {run}"), "single requests, the costliest first"));
    }
    if !has_rows {
        let what = "records rows: single requests, overlap, causes, and what a change would gain";
        next.push(("lapscope run -- <launch line>".to_owned(), what));
    }
    next.push((format!("lapscope sql {run}"), "the tables, to ask your own questions"));
    writeln!(out, "\n{}", style.bold("NEXT"))?;
    let width = next.iter().map(|(command, _)| display_width(command)).max().unwrap_or(0);
    let longest = next.iter().map(|(_, what)| display_width(what)).max().unwrap_or(0);
    for (command, what) in next {
        if 2 + width + 2 + longest <= style.width {
            let pad = " ".repeat(width - display_width(&command));
            writeln!(out, "  {command}{pad}  {}", style.dim(what))?;
        } else {
            // A command stays whole, to be copied.
            writeln!(out, "  {command}\n{}", style.dim(&style.wrap(what, "      ", "      ")))?;
        }
    }
    Ok(())
}
