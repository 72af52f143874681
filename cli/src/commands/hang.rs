//! `lapscope hang`: what everybody is waiting for.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::{diagnosis_of, hint_at_newer, html as pages, pending, stacks};
use crate::args::{usage_error, HangArgs};
use lapscope_data::db::{find_run, DbError};
use lapscope_data::model::RankList;
use lapscope_data::secrets::hide_in_command;
use lapscope_data::state::{before_init, Loaded};
use lapscope_data::text::style::Style;
use lapscope_data::text::visible::visible;
use lapscope_data::JSON_VERSION;
use lapscope_launch::gather::{self, look_twice};
use lapscope_show::format::{self, Document};
use lapscope_show::html;
use lapscope_show::render;
use lapscope_watch::hang::Diagnosis;
use lapscope_watch::stacks::Wanted;

/// A diagnosis, and of what.
#[derive(Serialize)]
pub struct HangOutput {
    json_version: u32,
    pub run: String,
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
    /// As text: ranks that are shown one by one, however many there are.
    #[serde(skip)]
    listed: Option<RankList>,
}

/// Looks twice and reports who waits for whom.
///
/// # Errors
/// There is no run here, nothing of it can be read, or what is asked for cannot be written.
pub fn run(args: &HangArgs) -> Result<ExitCode> {
    if args.pending {
        return pending::run(&args.into());
    }
    if args.format.is_table() || !args.ranks.chosen().is_empty() {
        usage_error("tables and --ranks belong to lapscope hang --pending");
    }
    if let Some(wanted) = wanted(args) {
        return stacks::run(args, &wanted);
    }
    if args.hosts.is_some() {
        usage_error("--hosts belongs to --command or --job: of a recorded run --launch looks from other nodes");
    }
    let root = find_run(args.run.as_deref()).map_err(not_there)?;
    hint_at_newer(args.run.as_deref());
    if let Some(path) = &args.html {
        pages::check(path)?;
    }
    if let Some(place) = &args.gather {
        gather::gather(place, &root, args.interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    let looks = match args.launch.is_empty() {
        true => look_twice(&root, args.interval)?,
        false => gather::look_from_nodes(&root, args.interval, &args.launch)?,
    };
    let diagnosis = diagnosis_of(&looks);
    let run = root.to_string_lossy().into_owned();
    let listed = args.ranked.listed.clone();
    let mut answer = HangOutput { json_version: JSON_VERSION, run, diagnosis, listed };
    if let Some(path) = &args.html {
        pages::write(path, &html::hang::page(&answer.run, &answer.diagnosis))?;
    }
    format::print(&mut answer, args.format)?;
    Ok(ExitCode::SUCCESS)
}

fn wanted(args: &HangArgs) -> Option<Wanted> {
    match (args.pid.is_empty(), &args.command, &args.job) {
        (false, ..) => Some(Wanted::Pids(args.pid.clone())),
        (_, Some(name), _) => Some(Wanted::Command(name.clone())),
        (_, _, Some(job)) => Some(Wanted::Job(job.clone())),
        _ => None,
    }
}

/// Where there is no run: whether a job may hang before there is one.
fn not_there(error: DbError) -> anyhow::Error {
    const MOST: usize = 8;
    let loaded = before_init();
    if loaded.is_empty() || !matches!(error, DbError::NoRun | DbError::NotFound(_)) {
        return error.into();
    }
    let count = loaded.len() as u64;
    let mut text = format!(
        "{error}; a job makes its run directory when it comes out of MPI_Init, and {count} process{} on this machine with lapscope \
         loaded {} not got that far:",
        if count == 1 { "" } else { "es" },
        if count == 1 { "has" } else { "have" }
    );
    for Loaded { pid, command, sleeps_in } in loaded.iter().take(MOST) {
        let does = match sleeps_in.as_str() {
            "" => "runs".to_owned(),
            place => format!("sleeps in the kernel's {}", visible(place)),
        };
        let shown: String = hide_in_command(command).chars().take(120).collect();
        text += &format!("\n  lapscope hang --pid {pid}   {}, {does}", visible(&shown));
    }
    anyhow::anyhow!(text)
}

impl Document for HangOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        Ok(render::hang::write(out, &self.run, &self.diagnosis, self.listed.as_ref(), style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }
}
