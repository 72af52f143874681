//! Many jobs as text.

use std::io::{self, Write};

use super::table::{Align, Cell, Table};
use crate::format::rows::{text, ExportColumn};
use lapscope_data::calendar::utc_of;
use lapscope_data::symbols::base_name;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, long_time, percent};
use lapscope_data::text::visible::visible;
use lapscope_report::jobs::{JobLine, JobSums, Jobs};

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, jobs: &Jobs, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.headed("lapscope jobs", &jobs.database))?;
    for line in [Some(about(&jobs.all)), imported(jobs)].into_iter().flatten() {
        writeln!(out, "{}", style.wrap(&line, "", "  "))?;
    }
    if jobs.all.jobs == 0 {
        return Ok(());
    }
    writeln!(out, "{}", style.labelled("Exposed  ", &exposed(&jobs.all)))?;
    if !jobs.groups.is_empty() {
        writeln!(out)?;
        return sums(&jobs.groups).write(out, style);
    }
    if !jobs.executables.is_empty() {
        writeln!(out, "\n{}", style.headed("EXECUTABLES", EXECUTABLES))?;
        for group in &jobs.executables {
            write_executable(out, group, style)?;
        }
    }
    if !jobs.jobs.is_empty() {
        let about = format!("{} of {}", jobs.jobs.len(), jobs.all.jobs);
        writeln!(out, "\n{}", style.headed("JOBS", &about))?;
        lines(&jobs.jobs, style).write(out, style)?;
    }
    Ok(())
}

/// What stands above the executables.
pub const EXECUTABLES: &str = "Those that would gain most: at most so much of the run time of all their ranks in these jobs. These are \
    bounds, no promises, and two of them may be the same time.";

/// "1234 jobs of 17 users, 2026-01-01 to 2026-02-01"
pub fn about(all: &JobSums) -> String {
    if all.jobs == 0 {
        return "No job is in it that these filters leave.".to_owned();
    }
    let jobs = format!(
        "{} job{} of {} user{}",
        count(all.jobs),
        plural(all.jobs),
        all.users,
        plural(all.users)
    );
    match all.first_unix_ns {
        0 => jobs,
        first => format!("{jobs}, {} to {} UTC", minute(first), minute(all.last_unix_ns)),
    }
}

fn imported(jobs: &Jobs) -> Option<String> {
    let done = jobs.imported.as_ref()?;
    let mut text = format!(
        "{} record{} imported, {} unchanged",
        count(done.records),
        plural(done.records),
        count(done.unchanged)
    );
    for (number, what) in [(done.left_out, "could not be read"), (done.forgotten, "jobs forgotten")]
    {
        if number > 0 {
            text += &format!(", {number} {what}");
        }
    }
    Some(text)
}

/// "12.3 % of the run time of all ranks: 1.20 h of 10.0 h"
pub fn exposed(all: &JobSums) -> String {
    let bound = all.upper_bound_jobs;
    let mut text = format!(
        "{}{} of the run time of all ranks is communication inside MPI: {} of {}",
        if bound > 0 { "At most " } else { "" },
        percent(all.exposed_share),
        long_time(all.exposed_seconds),
        long_time(all.run_seconds)
    );
    if bound > 0 {
        let s = plural(bound);
        text += &format!(
            "; in {} job{s} (≤) GPUs may have computed meanwhile, unrecorded",
            count(bound)
        );
    }
    text
}

/// Exposed time in a table, where GPUs may have computed meanwhile or not.
pub fn exposed_cell(seconds: f64, is_upper_bound: bool) -> String {
    let at_most = if is_upper_bound { "≤ " } else { "" };
    format!("{at_most}{}", long_time(seconds))
}

/// Path, sums, and a line for each cure.
fn write_executable(out: &mut dyn Write, group: &JobSums, style: Style) -> io::Result<()> {
    let title = style.bold(&format!("  {}", visible(&group.name)));
    writeln!(out, "{title}")?;
    writeln!(out, "{}", style.wrap(&sums_of(group), "    ", "      "))?;
    for cure in &group.cures {
        let (why, what) = cure.says();
        let share = format!("{:>6}", percent(cure.share));
        let text = format!("{share}  {}  {why}: {what}", long_time(cure.at_most_seconds));
        writeln!(out, "{}", style.wrap(&text, "    ", "            "))?;
    }
    Ok(())
}

/// "5 jobs of 2 users ran 123 h, 39.8 % of it exposed, most at MPI_Waitall iterate halo.c:95; tests were injected in 2"
pub fn sums_of(group: &JobSums) -> String {
    let mut text = format!(
        "{} job{} of {} user{} ran {}, {}{} of it exposed",
        count(group.jobs),
        plural(group.jobs),
        group.users,
        plural(group.users),
        long_time(group.run_seconds),
        if group.upper_bound_jobs > 0 { "at most " } else { "" },
        percent(group.exposed_share)
    );
    if let Some(place) = &group.exposed_at {
        text += &format!(", most at {place}");
    }
    if group.injected_jobs > 0 {
        text += &format!("; lapscope was asked for tests in {}", count(group.injected_jobs));
        if group.gained_seconds != 0.0 {
            text += &format!(", which saved {}", long_time(group.gained_seconds));
        }
    }
    text
}

fn sums(groups: &[JobSums]) -> Table {
    let mut table = Table::new(&[
        ("exposed", Align::Right),
        ("share", Align::Right),
        ("run time", Align::Right),
        ("jobs", Align::Right),
        ("users", Align::Right),
        ("", Align::Left),
    ]);
    for group in groups {
        let cells = [
            exposed_cell(group.exposed_seconds, group.upper_bound_jobs > 0),
            percent(group.exposed_share),
            long_time(group.run_seconds),
            count(group.jobs),
            count(group.users),
            group.name.clone(),
        ];
        table.row(cells.map(Cell::from).into(), None);
    }
    table
}

/// Columns of a terminal that has room for the MPI.
const WITH_MPI: usize = 130;

/// Heads of the list of jobs.
pub const HEADS: [(&str, Align); 10] = [
    ("exposed", Align::Right),
    ("share", Align::Right),
    ("ran", Align::Right),
    ("nodes", Align::Right),
    ("ranks", Align::Right),
    ("began (UTC)", Align::Left),
    ("user", Align::Left),
    ("job", Align::Left),
    ("MPI", Align::Left),
    ("executable", Align::Left),
];

/// Without the MPI where it would stand on a line of its own for each job.
fn lines(jobs: &[JobLine], style: Style) -> Table {
    let is_shown = |head: &str| head != "MPI" || style.width >= WITH_MPI;
    let heads: Vec<_> = HEADS.into_iter().filter(|(head, _)| is_shown(head)).collect();
    let mut table = Table::new(&heads).giving_up(&["ranks", "began (UTC)", "job"]);
    for job in jobs {
        let cells = HEADS.into_iter().zip(cells(job)).filter(|((head, _), _)| is_shown(head));
        table.row(cells.map(|(_, cell)| Cell::from(cell)).collect(), None);
    }
    table
}

/// A job, below [`HEADS`]. Times are of all its ranks, but `ran` is that of the one that ran longest.
pub fn cells(line: &JobLine) -> [String; 10] {
    let job = &line.job;
    let given = job.given_nodes.filter(|given| *given > job.nodes);
    let identity = || job.job.chars().take(16).collect();
    let name = job.batch_job.clone().unwrap_or_else(identity);
    let unfinished = if line.without_finalize > 0 { " (no MPI_Finalize)" } else { "" };
    let open = if line.is_running { "+" } else { "" };
    [
        exposed_cell(job.exposed_seconds, line.exposed_is_upper_bound),
        percent(line.exposed_share),
        format!("{}{open}", long_time(job.longest_seconds)),
        given.map_or_else(|| job.nodes.to_string(), |given| format!("{} of {given}", job.nodes)),
        count(job.ranks.unsigned_abs()),
        minute(job.began_unix_ns),
        line.user_name.clone().unwrap_or_else(|| job.user.to_string()),
        format!("{name}{unfinished}"),
        job.mpi.clone(),
        base_name(&job.executable).to_owned(),
    ]
}

/// Of a node whose clock was not set yet no moment is known.
fn minute(unix_ns: i64) -> String {
    const IS_SET: i64 = 946_684_800; // 2000-01-01
    if unix_ns / 1_000_000_000 < IS_SET {
        return "-".to_owned();
    }
    let text = utc_of(unix_ns / 1_000_000_000);
    text[..text.len().min("2026-01-31 23:59".len())].to_owned()
}

/// Sums as rows; the cures are in JSON alone.
pub fn columns() -> Vec<ExportColumn<JobSums>> {
    vec![
        ExportColumn::new("name", |sums: &JobSums| text(&sums.name)),
        ExportColumn::new("jobs", |sums: &JobSums| text(sums.jobs)),
        ExportColumn::new("users", |sums: &JobSums| text(sums.users)),
        ExportColumn::new("first_unix_ns", |sums: &JobSums| text(sums.first_unix_ns)),
        ExportColumn::new("last_unix_ns", |sums: &JobSums| text(sums.last_unix_ns)),
        ExportColumn::new("run_seconds", |sums: &JobSums| text(sums.run_seconds)),
        ExportColumn::new("exposed_seconds", |sums: &JobSums| text(sums.exposed_seconds)),
        ExportColumn::new("exposed_share", |sums: &JobSums| text(sums.exposed_share)),
        ExportColumn::new("injected_jobs", |sums: &JobSums| text(sums.injected_jobs)),
        ExportColumn::new("gained_seconds", |sums: &JobSums| text(sums.gained_seconds)),
        ExportColumn::new("upper_bound_jobs", |sums: &JobSums| text(sums.upper_bound_jobs)),
    ]
}
