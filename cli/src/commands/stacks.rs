//! `lapscope hang --pid`, `--command` and `--job`: where ranks are, from outside, on one node or several.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{bail, Result};
use serde::Serialize;

use super::diagnosis_of;
use super::html as pages;
use crate::args::HangArgs;
use lapscope_data::model::RankList;
use lapscope_data::store::host_name;
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::visible::Form;
use lapscope_data::JSON_VERSION;
use lapscope_launch::gather;
use lapscope_launch::nodes::{self, Reach};
use lapscope_show::format::{self, Document};
use lapscope_show::{html, output, render};
use lapscope_watch::stacks::{
    self, HostLook, Processes, RecordedRun, StackDiagnosis, UnseenHost, Wanted,
};

/// Stacks of processes that nobody records, or that somebody does.
#[derive(Serialize)]
struct StackOutput {
    json_version: u32,
    #[serde(flatten)]
    found: StackDiagnosis,
    #[serde(skip)]
    listed: Option<RankList>,
}

/// Looks at the stacks of ranks twice and says where they are.
///
/// # Errors
/// There is no such process, or what is asked for cannot be written.
pub fn run(args: &HangArgs, wanted: &Wanted) -> Result<ExitCode> {
    if let Some(place) = &args.part {
        print_part(args, wanted, place)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.html {
        pages::check(path)?;
    }
    let found = match reaches(args, wanted) {
        Ok(reaches) if reaches.is_empty() => from_here(wanted, args.interval, None)?,
        Ok(reaches) => from_nodes(args, wanted, &reaches)?,
        Err(why) => from_here(wanted, args.interval, Some(&why))?,
    };
    if let Some(path) = &args.html {
        pages::write(path, &html::stacks::page(&found))?;
    }
    let listed = args.ranked.listed.clone();
    format::print(&mut StackOutput { json_version: JSON_VERSION, found, listed }, args.format)?;
    Ok(ExitCode::SUCCESS)
}

/// Who is to look; nobody: this process alone.
///
/// # Errors
/// Why nobody else can be asked, though others should be.
fn reaches(args: &HangArgs, wanted: &Wanted) -> Result<Vec<Reach>, String> {
    let (option, name) = match wanted {
        Wanted::Pids(_) => return Ok(Vec::new()),
        Wanted::Command(name) => ("--command", name.as_str()),
        Wanted::Job(job) => ("--job", job.as_str()),
    };
    if !args.launch.is_empty() {
        let launchers = args.launch.iter().map(String::as_str).chain(["env"]); // from here, too
        return Ok(launchers.map(|it| Reach::by_launcher(it, &[option, name])).collect());
    }
    let hosts = args.hosts.as_ref().map(|hosts| hosts.0.iter());
    match (hosts, wanted) {
        (Some(hosts), Wanted::Job(job)) => {
            Ok(hosts.map(|host| Reach::by_slurm(host, job)).collect())
        }
        (Some(hosts), _) => Ok(hosts.map(|host| Reach::by_name(host, name)).collect()),
        (None, Wanted::Job(job)) => Reach::of_job(job),
        (None, _) => Ok(Vec::new()),
    }
}

/// `alone`: why no other node is asked.
fn from_here(wanted: &Wanted, interval: Duration, alone: Option<&str>) -> Result<StackDiagnosis> {
    let processes = Processes::find(wanted);
    let alone = alone.map(|why| format!("only this machine was looked at: {why}"));
    if processes.found.is_empty() {
        let nobody = nobody(wanted, processes.forbidden);
        bail!("{nobody}{}", alone.map(|why| format!("; {why}")).unwrap_or_default());
    }
    // one after the other: whoever is stopped for a moment would be called stopped
    let (recorded, notes) = recorded(&processes.runs(), interval, None);
    let mut found = stacks::merge(vec![stacks::look(&processes, interval)], Vec::new());
    if matches!(wanted, Wanted::Pids(_)) {
        found.forget_absent(); // of these others may be here
    }
    found.notes.extend(alone);
    found.notes.extend(notes);
    Ok(with_records(found, recorded))
}

fn from_nodes(args: &HangArgs, wanted: &Wanted, reaches: &[Reach]) -> Result<StackDiagnosis> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let place = format!("hang-{}-{}-{}", host_name(), std::process::id(), now.subsec_nanos());
    let interval = args.interval.as_secs_f64().to_string();
    let patience = args.patience.to_string();
    let further = ["--interval", &interval, "--patience", &patience, "--part", &place];
    let answers = nodes::ask_all(reaches, &further.map(OsString::from), patience_of(args))?;
    let (mut looks, mut unseen, mut forbidden) = (Vec::new(), Vec::new(), 0);
    for (reach, answer) in reaches.iter().zip(answers) {
        let mut miss = |why: String| {
            let why = format!("{why}; to be typed there: {}", reach.line_to_paste());
            unseen.push(UnseenHost { host: reach.host.clone(), why });
        };
        answer.problem.into_iter().for_each(&mut miss);
        for part in answer.parts {
            match serde_json::from_str::<HostLook>(&part) {
                Ok(look) => {
                    forbidden += look.forbidden;
                    looks.push(look);
                }
                Err(error) => miss(format!("its answer cannot be read: {error}")),
            }
        }
    }
    let mut found = stacks::merge(looks, unseen);
    if found.ranks.is_empty() {
        bail!("{}", nobody_there(wanted, &found, forbidden));
    }
    let (recorded, notes) = recorded(&found.runs(), args.interval, Some(&place));
    found.notes.extend(notes);
    Ok(with_records(found, recorded))
}

/// Both kinds of looks are within it.
fn patience_of(args: &HangArgs) -> Duration {
    Duration::from_secs(args.patience.into()) + args.interval * 2
}

/// What the records of these runs say, and of which they cannot be read. `place`: where other nodes have put what they see.
fn recorded(
    runs: &[PathBuf],
    interval: Duration,
    place: Option<&str>,
) -> (Vec<RecordedRun>, Vec<String>) {
    let (mut recorded, mut notes) = (Vec::new(), Vec::new());
    for root in runs {
        let run = root.to_string_lossy().into_owned();
        match gather::look_with_parts(root, interval, place) {
            Ok(looks) => recorded.push(RecordedRun { run, diagnosis: diagnosis_of(&looks) }),
            Err(error) => notes.push(format!("records in {run} cannot be read: {error:#}")),
        }
    }
    (recorded, notes)
}

fn with_records(mut found: StackDiagnosis, mut recorded: Vec<RecordedRun>) -> StackDiagnosis {
    let ranks = found.jobs().flat_map(|job| &job.ranks);
    let lost = ranks.filter(|rank| rank.is_recorded && rank.run.is_none()).count();
    if lost > 0 {
        found.notes.push(format!(
            "{lost} of these ranks {} recorded, where is not known: lapscope hang with the run directory knows for whom they wait",
            if lost == 1 { "is" } else { "are" }
        ));
    }
    for job in &mut found.other_jobs {
        let runs: Vec<PathBuf> = job.own_runs().collect();
        let is_of_it = |it: &RecordedRun| runs.iter().any(|run| run.as_os_str() == it.run.as_str());
        let (of_it, others) = recorded.into_iter().partition(is_of_it);
        (job.recorded, recorded) = (of_it, others);
    }
    found.recorded = recorded;
    found
}

/// What is started on a node. It ends in any case: its launcher may be gone.
fn print_part(args: &HangArgs, wanted: &Wanted, place: &str) -> Result<()> {
    let limit = patience_of(args).as_secs().saturating_add(1);
    // SAFETY: asks for a signal, which ends this process.
    unsafe { libc::alarm(u32::try_from(limit).unwrap_or(u32::MAX)) };
    let processes = Processes::find(wanted);
    let mut notes = Vec::new();
    for root in processes.runs() {
        if let Err(error) = gather::gather_beside(place, &root, args.interval) {
            notes.push(format!(
                "records in {} cannot be read from there: {error:#}",
                root.display()
            ));
        }
    }
    let mut look = stacks::look(&processes, args.interval);
    look.notes.extend(notes);
    let document = serde_json::to_string(&look)?;
    output::print_with(Form::Json, |out| Ok(nodes::write_part(&document, out)?))
}

fn nobody(wanted: &Wanted, forbidden: u64) -> String {
    let what = match wanted {
        Wanted::Pids(pids) => {
            let pids: Vec<String> = pids.iter().map(i64::to_string).collect();
            format!("there is no process {} on this machine that may be looked at", pids.join(", "))
        }
        Wanted::Command(name) => {
            format!("no rank of an MPI job on this machine runs {name}: name the program's file, or its processes by --pid")
        }
        Wanted::Job(job) => format!("no rank of job {job} is on this machine"),
    };
    what + &of_others(forbidden)
}

fn of_others(forbidden: u64) -> String {
    match forbidden {
        0 => String::new(),
        1 => "; a process is of another user: ask as that user, or as root".to_owned(),
        count => {
            format!("; {count} processes are of other users: ask as their user, or as root")
        }
    }
}

/// No rank was found on any node.
fn nobody_there(wanted: &Wanted, found: &StackDiagnosis, forbidden: u64) -> String {
    const MOST: usize = 5;
    let what = match wanted {
        Wanted::Command(name) => format!("no rank runs {name}"),
        _ => "no rank was found".to_owned(),
    };
    let hosts = found.hosts.len() as u64;
    let mut text = format!("{what} on the {hosts} node{} that answered", plural(hosts));
    text += &of_others(forbidden);
    for unseen in found.unseen.iter().take(MOST) {
        text += &format!("\n  {}: {}", unseen.host, unseen.why);
    }
    if found.unseen.len() > MOST {
        text += &format!("\n  and {} more that did not answer", found.unseen.len() - MOST);
    }
    text
}

impl Document for StackOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::stacks::write(out, &self.found, self.listed.as_ref(), style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}
