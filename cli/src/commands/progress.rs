//! `lapscope doctor --progress`: runs lapscope's own MPI program under the user's launcher, and keeps how much moved while its
//! ranks computed.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{bail, Context};
use serde::Serialize;

use crate::args::DoctorArgs;
use lapscope_advise::progress_in_words::{is_disturbed, sentences};
use lapscope_data::db::list_files;
use lapscope_data::say;
use lapscope_data::secrets::hide_in_command;
use lapscope_data::text::progress::Progress;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::percent;
use lapscope_data::JSON_VERSION;
use lapscope_launch::doctor::progress::{setting_of, Setting};
use lapscope_launch::own_program::OwnProgram;
use lapscope_report::calibration::{lacked_processors, Circumstances, MeasuredProgress};
use lapscope_report::pipeline::follow;
use lapscope_show::format::{self, Document};
use lapscope_show::render;
use lapscope_trace::Trace;

/// With the start and the end of a launch below 20 s.
const SECONDS: u32 = 10;

/// # Errors
/// The launch line is none or has a program already, something of lapscope is missing, the launch failed or measured nothing,
/// or the file cannot be written.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let program = OwnProgram {
        used_as: "lapscope doctor --progress --",
        command: &args.command,
        mode: "progress",
        seconds: SECONDS,
        dir: None,
        mpi_library: args.mpi_library.as_deref(),
    };
    let own_run = match program.run()? {
        Ok(own_run) => own_run,
        Err(code) => return Ok(code),
    };
    let files = list_files(&own_run.directory)?.databases;
    let progress = Progress::default();
    let (trace, failed) = Trace::read(&files, &|rows| follow(&progress, rows))?;
    drop(progress);
    if let Some(error) = failed.into_iter().next() {
        return Err(error).context("part of the run cannot be read");
    }
    let line: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let shown = hide_in_command(&line.join(" "));
    let launch = shown.split(' ').map(str::to_owned).collect();
    let measured = MeasuredProgress::of_run(&trace, &files, launch)?;
    if measured.moved.is_empty() {
        bail!(
            "nothing was measured: it takes two ranks of one job, as in: {} mpirun -n 2",
            program.used_as
        );
    }
    let why_not = unreliable(&measured);
    let Circumstances { mpi_library, environment, .. } = &measured.circumstances;
    let setting = setting_of(mpi_library, environment);
    let sentences = sentences(&measured.moved);
    let mut answer = ProgressOutput { json_version: JSON_VERSION, measured, sentences, setting };
    format::print(&mut answer, args.format)?;
    match (why_not, &args.output) {
        (Some(why), None) => say!("{why}: not kept, measure again with a processor for each rank"),
        (why, output) => {
            let path = answer.measured.write(output.as_deref())?;
            say!("kept in {}", path.display());
            match why {
                Some(why) => say!("{why}"),
                None if output.is_none() => say!(
                    "used from now on for runs with this MPI and the same transport settings here"
                ),
                None => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn unreliable(measured: &MeasuredProgress) -> Option<String> {
    if let Some(share) = lacked_processors(measured.processor_share) {
        let share = percent(share);
        return Some(format!(
            "its ranks had a processor for only {share} of the time in which they could have run"
        ));
    }
    let text = "its ranks waited for small messages, too, which need nobody: they were disturbed";
    is_disturbed(&measured.moved).then(|| text.to_owned())
}

#[derive(Serialize)]
struct ProgressOutput {
    json_version: u32,
    #[serde(flatten)]
    measured: MeasuredProgress,
    sentences: Vec<String>,
    /// The MPI's own asynchronous progress; `None`: lapscope knows of none.
    setting: Option<Setting>,
}

impl Document for ProgressOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        render::progress::write(out, &self.measured, style)?;
        writeln!(out)?;
        for sentence in &self.sentences {
            writeln!(out, "{}", style.wrap(sentence, "", "  "))?;
        }
        let says = match &self.setting {
            Some(Setting { on_by: Some(variable), moves, .. }) => {
                format!("Asynchronous progress was on ({variable}): {moves}.")
            }
            Some(setting) => format!(
                "Asynchronous progress: {} ({}: leave it a processor). What it changes here is measured by the same command \
                 with that set.",
                setting.typed, setting.moves
            ),
            None => "lapscope knows of no asynchronous progress of this MPI.".to_owned(),
        };
        writeln!(out, "{}", style.wrap(&says, "", "  "))?;
        Ok(())
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        format::write_json(self, out)
    }
}
