//! The report as text.

use std::io::{self, Write};

use super::style::{bar, Style};
use super::table::{Align, Table};
use super::units::{bytes, count, percent, round_bytes, time};
use crate::analysis::insight::Insight;
use crate::analysis::problem::{plural, ProblemKind};
use crate::analysis::report::{Report, Totals};
use crate::analysis::sites::{Numbers, Site, SiteKind};
use crate::analysis::transfers::{KindRow, SizeKind};
use crate::model::{Ended, Kind, Nanos};

/// Writes the whole report.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    write_head(out, report, style)?;
    write_problems(out, report, style)?;
    write_finding(out, report, style)?;
    write_split(out, report, style)?;
    write_insights(out, report, style)?;
    write_sites(out, report, style)?;
    write_sizes(out, report, style)?;
    write_next(out, report, style)
}

fn write_head(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let head = &report.head;
    writeln!(out, "{}  {}", style.bold("lapscope report"), report.run)?;
    writeln!(out, "{}", style.wrap(&head.command, "", "  "))?;
    let hosts = match head.hosts.as_slice() {
        [host] => format!("on {}", host.name),
        hosts => format!("on {} hosts", hosts.len()),
    };
    write_spawned(out, report, style)?;
    let ranks = plural(head.world_size.max(0) as u64);
    let spawned = match head.worlds.get(1..).unwrap_or_default() {
        [] => String::new(),
        others => {
            let sizes: i64 = others.iter().map(|world| world.world_size).sum();
            format!(" and {sizes} spawned in {} world{}", others.len(), plural(others.len() as u64))
        }
    };
    let has_deaths = report.ranks.iter().any(|rank| rank.ended != Ended::Finalize);
    let end = if has_deaths { "the last record" } else { "MPI_Finalize" };
    let facts = format!(
        "{} rank{ranks}{spawned} {hosts} · {} (MPI {}) · {} from MPI_Init to {end}",
        head.world_size,
        library_name(&head.mpi_library),
        head.mpi_standard,
        time(head.longest_run_ns)
    );
    writeln!(out, "{}", style.wrap(&facts, "", "  "))
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

/// Open MPI's first line goes on with package, builder and dates.
fn library_name(line: &str) -> String {
    let name = line.split(',').next().unwrap_or(line);
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn write_problems(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.problems.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for problem in &report.problems {
        let text = style.wrap(&problem.message, "! ", "  ");
        // Colour after breaking the lines: escape codes have no width.
        let text = text.replacen("! ", &format!("{} ", style.alert("!")), 1);
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// The main finding, in one sentence.
fn write_finding(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let totals = &report.totals;
    let parts = split(totals);
    let largest = parts.iter().max_by_key(|(_, part)| *part);
    let mut sentence = format!("{} of the run time went into MPI", percent(totals.mpi_share));
    if let Some((name, part)) = largest.filter(|(_, part)| part.0 > 0) {
        sentence += &format!(
            ", most of it {} ({}, {})",
            name.in_sentence,
            percent(part.share_of(totals.run_ns)),
            time(*part)
        );
    }
    sentence.push('.');
    if report.head.threaded_ranks > 0 {
        sentence += &format!(
            " On {} rank{} several threads call MPI; their times add up, so shares may exceed 100 %.",
            report.head.threaded_ranks,
            plural(report.head.threaded_ranks)
        );
    }
    let text = style.wrap(&sentence, "", "");
    let lines: Vec<String> = text.lines().map(|line| style.bold(line)).collect();
    writeln!(out, "\n{}", lines.join("\n"))
}

struct Part {
    label: &'static str,
    in_sentence: &'static str,
}

fn split(totals: &Totals) -> [(Part, Nanos); 8] {
    let part = |label, in_sentence| Part { label, in_sentence };
    [
        (
            part("completing requests", "in calls that complete requests: exposed communication"),
            totals.waiting_ns,
        ),
        (part("posting requests", "posting non-blocking requests"), totals.posting_ns),
        (part("blocking point-to-point", "in blocking sends and receives"), totals.blocking_ns),
        (part("collectives", "in collectives"), totals.collective_ns),
        (part("windows", "in one-sided communication"), totals.rma_ns),
        (part("files", "in file operations"), totals.io_ns),
        (part("polls that said no", "in polls that said no"), totals.poll_ns),
        (part("other MPI", "in communicator management and other calls"), totals.other_ns),
    ]
}

fn write_split(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let totals = &report.totals;
    let outside = Nanos((totals.run_ns - totals.mpi_ns).0.max(0));
    writeln!(out)?;
    let mut line = |label: &str, part: Nanos| {
        let share = part.share_of(totals.run_ns);
        let numbers = format!("  {label:<24}{:>8}{:>9}", percent(share), time(part));
        writeln!(out, "{}", format!("{numbers}  {}", bar(share, 40)).trim_end())
    };
    for (part, ns) in split(totals).iter().filter(|(_, ns)| ns.0 > 0) {
        line(part.label, *ns)?;
    }
    line("outside MPI", outside)?;
    let transferred: Vec<String> = report.kinds.iter().filter_map(transferred).collect();
    if !transferred.is_empty() {
        let text = format!("transferred: {}", transferred.join(", "));
        writeln!(out, "{}", style.wrap(&text, "  ", "  "))?;
    }
    if report.ranks.len() > 1 {
        write_spread(out, report, style)?;
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

fn write_spread(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let (mpi, compute) = (report.spread.mpi_share, report.spread.compute_ns);
    let text = format!(
        "per rank: inside MPI {} (rank {}) to {} (rank {}), mean {}; outside MPI {} (rank {}) to {} (rank {}), \
         imbalance {} (largest over mean)",
        percent(mpi.min),
        mpi.min_rank,
        percent(mpi.max),
        mpi.max_rank,
        percent(mpi.mean),
        time(Nanos(compute.min as i64)),
        compute.min_rank,
        time(Nanos(compute.max as i64)),
        compute.max_rank,
        percent(report.spread.compute_imbalance)
    );
    writeln!(out, "{}", style.wrap(&text, "  ", "  "))
}

fn write_insights(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.insights.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("WHAT THIS MEANS"))?;
    for insight in &report.insights {
        writeln!(out, "{}", style.wrap(&sentence(insight), "  ", "  "))?;
    }
    Ok(())
}

fn sentence(insight: &Insight) -> String {
    match insight {
        Insight::ExposedCompletion { waiting_ns, completing_calls, hideable_ns, in_detail } => {
            let calls = plural(*completing_calls);
            let mut text = format!(
                "Exposed: {} in {} call{calls} that completed requests. ",
                time(*waiting_ns),
                count(*completing_calls)
            );
            let of = if *in_detail { "" } else { " of the requests recorded in detail" };
            text += &match hideable_ns.0 {
                0 => format!("No computation lay between post and completion{of} that could have hidden it."),
                _ => format!(
                    "At most {} of it could have been hidden: so much computation lay between post and completion{of}.",
                    time(*hideable_ns)
                ),
            };
            text
        }
        Insight::ExpensivePosting { posting_ns, requests, mean_ns } => format!(
            "Posting took {}: {} for each of {} requests. The time in these calls cannot overlap with computation.",
            time(*posting_ns),
            time(*mean_ns),
            count(*requests)
        ),
        Insight::BlockingCalls { blocking_ns, call, call_ns } => format!(
            "Blocking: {} in sends and receives that return when done, {} of it in {call}. No computation can run beside \
             them.",
            time(*blocking_ns),
            time(*call_ns)
        ),
        Insight::UnevenCollectives { rank, rank_ns, mean_ns } => format!(
            "Collectives: rank {rank} is in them for {} only, against {} in the mean: as when all others wait there for it.",
            time(*rank_ns),
            time(*mean_ns)
        ),
        Insight::Polling { poll_ns, polls } => format!(
            "{} polls found nothing to complete and took {}.",
            count(*polls),
            time(*poll_ns)
        ),
        Insight::LittleMpi { mpi_share } => format!(
            "Only {} of the run time is in MPI: hiding communication cannot make this run much faster.",
            percent(*mpi_share)
        ),
    }
}

const NUMBER_COLUMNS: [(&str, Align); 10] = [
    ("share", Align::Right),
    ("time", Align::Right),
    ("call", Align::Left),
    ("calls", Align::Right),
    ("bytes", Align::Right),
    ("in call", Align::Right),
    ("completing", Align::Right),
    ("window", Align::Right),
    ("computing", Align::Right),
    ("other MPI", Align::Right),
];

/// One row of numbers under [`NUMBER_COLUMNS`].
fn cells(label: String, numbers: &Numbers, has_requests: bool) -> Vec<String> {
    let of_requests = |text: Option<String>| text.filter(|_| has_requests).unwrap_or_default();
    vec![
        percent(numbers.share),
        time(numbers.time_ns),
        label,
        count(numbers.calls),
        if numbers.bytes > 0 { bytes(numbers.bytes) } else { String::new() },
        time(numbers.inside_ns),
        of_requests((numbers.ended_requests > 0).then(|| time(numbers.completion_ns))),
        of_requests(numbers.window_ns.mean(numbers.ended_requests).map(time)),
        of_requests(numbers.compute_share().map(percent)),
        of_requests(numbers.mpi_ns.mean(numbers.timed_requests).map(time)),
    ]
}

fn write_sites(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if report.sites.is_empty() {
        return writeln!(out, "\nNo MPI communication was recorded.");
    }
    let shown = report.sites.len();
    let which = if shown < report.site_count {
        format!("{shown} of {}", report.site_count)
    } else {
        format!("{shown}")
    };
    write_completing(out, report, style)?;
    writeln!(out, "\n{}  {which}", style.bold("CALL SITES"))?;
    let note = "completing: each request's equal share of the call that completed it. Means per request: window, from the \
                post to that call; how much of it was computation; how much other MPI";
    writeln!(out, "{}", style.dim(&style.wrap(note, "  ", "  ")))?;
    write_site_table(out, &report.sites, style)?;
    let unattributed = report.totals.unattributed_waiting_ns;
    if unattributed.0 > 0 {
        writeln!(
            out,
            "  {} of the completing time is of requests whose start was not seen",
            time(unattributed)
        )?;
    }
    Ok(())
}

/// Where the program stands still: each completing call once, whatever it completed.
fn write_completing(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    const SHOWN: usize = 5;
    if report.completing_sites.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("WHERE REQUESTS COMPLETE"))?;
    let mut table = Table::new(&[
        ("share", Align::Right),
        ("time", Align::Right),
        ("calls", Align::Right),
        ("mean", Align::Right),
        ("call site", Align::Left),
    ]);
    for site in report.completing_sites.iter().take(SHOWN) {
        let numbers = &site.numbers;
        let cells = vec![
            percent(numbers.share),
            time(numbers.inside_ns),
            count(numbers.calls),
            numbers.inside_ns.mean(numbers.calls).map(time).unwrap_or_default(),
            format!("{} {}", site.call, place(site)),
        ];
        table.row(cells, None);
    }
    table.write(out, style)
}

/// The table of call sites, each with its place on a line of its own.
///
/// # Errors
/// Of the writer.
pub fn write_site_table(out: &mut dyn Write, sites: &[Site], style: Style) -> io::Result<()> {
    let mut table = Table::new(&NUMBER_COLUMNS);
    for site in sites {
        let is_request = site.kind == SiteKind::Request;
        table.row(cells(site_label(site), &site.numbers, is_request), Some(place(site)));
    }
    table.write(out, style)
}

/// The call, and that it is about polls when it is.
pub fn site_label(site: &Site) -> String {
    match site.kind {
        SiteKind::Poll => format!("{} (no)", site.call),
        _ => site.call.clone(),
    }
}

/// "exchange halo.c:42, completed in MPI_Waitall exchange halo.c:57".
fn place(site: &Site) -> String {
    let own = site.site.as_ref().map(|frame| frame.short());
    let mut text = own.clone().unwrap_or_else(|| "(no call path)".to_owned());
    if let Some(waited) = site.completed_in.as_ref().filter(|waited| waited.completion_ns.0 > 0) {
        text += &format!(", completed in {}", waited.call);
        if let Some(frame) = &waited.site {
            text += &format!(" {}", frame.short());
        }
    }
    if site.numbers.pending > 0 {
        text += &format!(", {} never ended", site.numbers.pending);
    }
    text
}

fn write_sizes(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    for (kind, title) in [
        (SizeKind::PointToPoint, "MESSAGE SIZES"),
        (SizeKind::Collective, "COLLECTIVES BY SIZE ON EACH RANK"),
        (SizeKind::Rma, "ONE-SIDED BY SIZE"),
        (SizeKind::Io, "FILES BY SIZE"),
    ] {
        let mut columns = NUMBER_COLUMNS;
        columns[2].0 = "size";
        let mut table = Table::new(&columns);
        let mut rows = 0;
        for class in report.size_classes.iter().filter(|class| class.kind == kind) {
            let label = match (class.from_bytes, class.below_bytes) {
                (0, _) => "0 B".to_owned(),
                (1, _) => "1 B".to_owned(),
                (from, below) => format!("{} to {}", round_bytes(from), round_bytes(below)),
            };
            table.row(cells(label, &class.numbers, class.numbers.ended_requests > 0), None);
            rows += 1;
        }
        if rows > 0 {
            writeln!(out, "\n{}", style.bold(title))?;
            table.write(out, style)?;
        }
    }
    Ok(())
}

fn write_next(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let run = shell_word(&report.run);
    let mut next = Vec::new();
    let is_stuck = |kind: ProblemKind| matches!(kind, ProblemKind::Died | ProblemKind::Pending);
    if report.problems.iter().any(|problem| is_stuck(problem.kind)) {
        next.push((format!("lapscope pending {run}"), "what each rank was waiting for"));
    }
    next.push((format!("lapscope sites {run}"), "all call sites as a tree of call paths"));
    if report.totals.requests > 0 {
        next.push((format!("lapscope requests {run}"), "single requests, the costliest first"));
    }
    next.push((format!("lapscope sql {run}"), "the tables, to ask your own questions"));
    writeln!(out, "\n{}", style.bold("NEXT"))?;
    let width = next.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, what) in next {
        writeln!(out, "  {command:<width$}  {}", style.dim(what))?;
    }
    Ok(())
}

/// A word that a shell reads back as it is.
fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+,:@%=~".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
