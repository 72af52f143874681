//! Launches the experiments, recorded, and reads what they printed and what lapscope saw.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{bail, Context};

use super::compare::add_outside;
use super::mpi::Mpi;
use super::outside::RecordedRun;
use super::plan::Job;
use super::results::{AdviceGiven, Link, Run, Threshold};
use super::{model, program, table, timeline};
use lapscope_launch::run::child::{exit_code, HeldSignals, Watch};
use lapscope_launch::run::environment::EnvironmentChanges;
use lapscope_launch::run::{mpi_library, Recorded};
use lapscope_report::pipeline::report;
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::ReportOptions;

/// An experiment that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(90);
/// Launches before a run counts as failed: launchers and transports have their own moods.
const TRIALS: usize = 2;
/// Pieces of advice that are kept.
const ADVICE: usize = 3;

/// What all launches have in common.
pub struct Session<'a> {
    pub mpis: &'a [Mpi],
    pub processors: u32,
    /// Where programs were compiled to and runs are recorded.
    pub directory: &'a Path,
    pub preload: &'a Path,
    /// lapscope-calibrate.
    pub calibrator: &'a Path,
    /// The front of a command line over the slow link.
    pub slow_link: &'a [OsString],
    pub signals: &'a HeldSignals,
    /// Recorded runs stay.
    pub keeps: bool,
}

/// What becomes of a job.
pub enum Done {
    Run(Box<Run>),
    /// Somebody wants us to end.
    Interrupted,
}

impl Session<'_> {
    /// Launches the job, again when it fails; `number` tells its files from those of others. A run that failed is a result,
    /// too.
    pub fn run(&self, job: &Job, number: usize, tick: &dyn Fn()) -> Done {
        let mut run = self.blank(job);
        for trial in 1..=TRIALS {
            let began = Instant::now();
            let place = self.directory.join(format!("run-{number}-{trial}"));
            let settings = self.settings(job);
            let recorded = Recorded::into_directory(&place.join("run"), settings);
            let ended = self.launch(job, &place, &recorded, tick);
            let result = ended.and_then(|ended| match ended {
                Some(output) => self.read(job, &recorded, &output, &mut run).map(|()| true),
                None => Ok(false),
            });
            run.seconds = began.elapsed().as_secs_f64();
            if !self.keeps {
                let _ = std::fs::remove_dir_all(&place); // a directory of temporary files, removed with them
            }
            match result {
                Ok(true) => return Done::Run(Box::new(Run { problem: None, ..run })),
                Ok(false) => return Done::Interrupted,
                Err(error) => {
                    let (problem, seconds) = (Some(format!("{error:#}")), run.seconds);
                    run = Run { problem, seconds, ..self.blank(job) };
                }
            }
        }
        Done::Run(Box::new(run))
    }

    fn blank(&self, job: &Job) -> Run {
        let settings: Vec<String> =
            job.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Run {
            mpi: job.mpi,
            link: job.link,
            inject: job.inject,
            program: job.program.name.to_owned(),
            arguments: job.arguments.join(" "),
            settings: settings.join(" "),
            ranks: job.ranks,
            seconds: 0.0,
            problem: None,
            tables: Vec::new(),
            thresholds: Vec::new(),
            segments: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// What the program printed; `None`: interrupted.
    fn launch(
        &self,
        job: &Job,
        place: &Path,
        recorded: &Recorded,
        tick: &dyn Fn(),
    ) -> anyhow::Result<Option<String>> {
        std::fs::create_dir_all(place).with_context(|| place.display().to_string())?;
        let line = self.line(job);
        let file = |name: &str| File::create(place.join(name)).with_context(|| name.to_owned());
        let mut command = recorded.settings.command(&line);
        command
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(file("stdout")?)
            .stderr(file("stderr")?);
        let tick = || {
            tick();
            false
        };
        let watch = Watch { limit: Some(LIMIT), tick: &tick };
        let ended = self.signals.run(&mut command, Some(watch));
        let ended = ended.with_context(|| line[0].to_string_lossy().into_owned())?;
        if ended.interrupted {
            return Ok(None);
        }
        if ended.out_of_time {
            bail!("took longer than {} s and was ended", LIMIT.as_secs());
        }
        if !ended.status.success() {
            let said = std::fs::read(place.join("stderr")).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            bail!("failed with exit code {}: {last}", exit_code(ended.status));
        }
        let output = std::fs::read(place.join("stdout")).context("what it printed")?;
        Ok(Some(String::from_utf8_lossy(&output).into_owned()))
    }

    fn line(&self, job: &Job) -> Vec<OsString> {
        let mpi = &self.mpis[job.mpi];
        let mut line = match job.link {
            Link::SharedMemory => Vec::new(),
            Link::SlowLink => self.slow_link.to_vec(),
        };
        line.extend(mpi.launch_line(job.ranks, self.processors));
        line.push(match job.program {
            program::CALIBRATE => self.calibrator.as_os_str().to_owned(),
            other => other.executable(self.directory, mpi).into_os_string(),
        });
        line.extend(job.arguments.iter().map(OsString::from));
        line
    }

    fn settings(&self, job: &Job) -> EnvironmentChanges {
        let mut settings = EnvironmentChanges::default();
        for (name, value) in self.mpis[job.mpi].environment(job.link) {
            settings.set(name, value);
        }
        settings.preload(self.preload);
        for name in ["ENABLE", "QUIET", "CONVERT"] {
            settings.set(format!("LAPSCOPE_{name}"), "on");
        }
        settings.set("LAPSCOPE_INJECT", job.inject.key());
        if job.program == program::CALIBRATE {
            settings.set("LAPSCOPE_CALLPATH", "off");
            let line = self.mpis[job.mpi].launch_line(job.ranks, self.processors);
            if let Some(library) = mpi_library::find(&line) {
                settings.set("LAPSCOPE_MPI_LIBRARY", library);
            }
        }
        for (name, value) in &job.settings {
            settings.set(name, value);
        }
        settings
    }

    fn read(
        &self,
        job: &Job,
        recorded: &Recorded,
        output: &str,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        if job.program == program::CALIBRATE {
            let recorded = recorded.recovered_run(false)?.directory;
            run.tables = vec![model::messages(&recorded)?];
            return Ok(());
        }
        run.tables = table::read(output)?;
        if run.tables.is_empty() {
            bail!("{} printed no table", job.program.name);
        }
        let recorded = recorded.recovered_run(false)?.directory;
        let outside = RecordedRun::read(&recorded)?;
        add_outside(job.program.name, &mut run.tables, &outside)?;
        if job.asks.thresholds {
            run.thresholds = thresholds(&outside);
        }
        if job.asks.timeline {
            let tables = run.tables.iter().filter(|table| table.name == "t0_t3");
            run.segments = tables.flat_map(|table| timeline::segments(table, &outside)).collect();
        }
        drop(outside);
        if job.asks.advice {
            run.advice = advice(&recorded)?;
        }
        Ok(())
    }
}

/// The thresholds of the locality of the two ranks.
fn thresholds(outside: &RecordedRun) -> Vec<Threshold> {
    let Some(locality) = outside.thresholds.localities.first() else { return Vec::new() };
    let limit = |what: &str, found: &lapscope_measure::thresholds::Threshold| Threshold {
        what: what.into(),
        largest_eager_bytes: found.largest_eager_bytes,
        smallest_waiting_bytes: found.smallest_waiting_bytes,
        verdict: word(&found.verdict),
        sentence: found.sentence.clone(),
    };
    let cumulative = &locality.cumulative;
    vec![
        limit("post", &locality.post),
        limit("needs_receiver_progress", &locality.needs_receiver_progress),
        limit("rendezvous", &locality.rendezvous),
        Threshold {
            what: "cumulative".into(),
            largest_eager_bytes: cumulative.largest_eager_bytes,
            smallest_waiting_bytes: cumulative.smallest_blocking_bytes,
            verdict: word(&cumulative.verdict),
            sentence: cumulative.sentence.clone(),
        },
    ]
}

fn advice(recorded: &Path) -> anyhow::Result<Vec<AdviceGiven>> {
    let mut open = OpenRun::open(Some(recorded))?;
    open.find_wrappers(&[])?;
    let report = report::build(&mut open, &[], ReportOptions::default())?;
    let given = report.advice.iter().filter(|advice| advice.helps).take(ADVICE);
    let given = given.map(|advice| {
        let other = advice.or_test.iter().map(|other| format!(" {}", other.sentence));
        AdviceGiven {
            cure: word(&advice.cure),
            share: advice.share,
            sentence: std::iter::once(advice.sentence.clone()).chain(other).collect(),
        }
    });
    Ok(given.collect())
}

/// As JSON has a value of an enumeration.
fn word(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
