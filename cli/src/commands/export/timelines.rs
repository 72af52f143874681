//! `lapscope export perfetto|chrome|otf2`: a run as a timeline.

use std::fs::OpenOptions;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, Context, Result};

use super::interrupt::Interrupts;
use super::with_cure;
use crate::args::TimelineArgs;
use lapscope_advise::problem::module_problems;
use lapscope_data::model::RankList;
use lapscope_data::places::group::Grouping;
use lapscope_data::say;
use lapscope_data::text::plural;
use lapscope_data::text::progress::Progress;
use lapscope_data::text::units::count;
use lapscope_report::pipeline::view::View;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::warn_of_data;
use lapscope_timelines::chrome::{self, Chrome};
use lapscope_timelines::limit::{self, Cost};
use lapscope_timelines::otf2::Otf2;
use lapscope_timelines::perfetto::{self, Perfetto};
use lapscope_timelines::unfinished::Unfinished;
use lapscope_timelines::{write, Definitions, ShownWindows, WriteProgress, Writer, Written};

/// # Errors
/// There is no run here, nothing of it can be read, the timeline would be too large, or the file cannot be written.
pub fn perfetto(args: &TimelineArgs) -> Result<ExitCode> {
    let wanted = |open: &OpenRun| wanted(args, open, "perfetto-trace");
    file(args, perfetto::COST, wanted, |out| Box::new(Perfetto::new(out)))
}

/// # Errors
/// As [`perfetto`].
pub fn chrome(args: &TimelineArgs) -> Result<ExitCode> {
    let wanted = |open: &OpenRun| wanted(args, open, "trace.json");
    file(args, chrome::COST, wanted, |out| Box::new(Chrome::new(out)))
}

/// # Errors
/// As [`perfetto`]; or there is no libotf2 here.
pub fn otf2(args: &TimelineArgs) -> Result<ExitCode> {
    let mut timeline = TimelineExport::open(args, None)?;
    let wanted = wanted(args, &timeline.open, "otf2");
    if wanted.symlink_metadata().is_ok() {
        bail!("{} exists already; name another directory, or remove it first", wanted.display());
    }
    let unfinished = Unfinished::directory(&wanted)?;
    let archive = unfinished.inside("archive");
    let mut writer = Otf2::create(&archive, &timeline.definitions, &timeline.shown)?;
    if writer.lacks_collectives() {
        say!("non-blocking collectives are left out: OTF2's library is older than 3.0");
    }
    let written = timeline.write(&mut writer);
    drop(writer);
    timeline.end(written, &wanted, || unfinished.publish("archive"))
}

/// A format that is one file, which appears when all of it is written.
fn file(
    args: &TimelineArgs,
    cost: Cost,
    wanted: impl Fn(&OpenRun) -> PathBuf,
    writer: impl Fn(Box<dyn std::io::Write>) -> Box<dyn Writer>,
) -> Result<ExitCode> {
    let mut timeline = TimelineExport::open(args, Some(cost))?;
    let wanted = wanted(&timeline.open);
    let is_special = wanted.metadata().is_ok_and(|it| !it.is_file());
    if is_special {
        // a pipe, or /dev/null: nothing can be put in its place
        let name = || wanted.display().to_string();
        let out = OpenOptions::new().write(true).open(&wanted).with_context(name)?;
        let written = timeline.write(&mut *writer(Box::new(BufWriter::new(out))));
        return timeline.end(written, &wanted, || Ok(()));
    }
    let unfinished = Unfinished::file(&wanted)?;
    let out = BufWriter::new(unfinished.writer()?);
    let written = timeline.write(&mut *writer(Box::new(out)));
    timeline.end(written, &wanted, || unfinished.publish())
}

/// Where to write: what was named, or the run's name with an ending, here.
fn wanted(args: &TimelineArgs, open: &OpenRun, ending: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| {
        let root = open.files.root.canonicalize().unwrap_or_else(|_| open.files.root.clone());
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "lapscope".to_owned());
        PathBuf::from(format!("{}.{ending}", name.strip_suffix(".db").unwrap_or(&name)))
    })
}

/// A run that is to be written.
struct TimelineExport {
    open: OpenRun,
    view: View,
    definitions: Definitions,
    shown: ShownWindows,
    interrupts: Interrupts,
}

impl TimelineExport {
    /// `cost`: of a format whose viewers open no file above a limit.
    fn open(args: &TimelineArgs, cost: Option<Cost>) -> Result<TimelineExport> {
        let mut open = OpenRun::open(args.run.as_deref())?;
        open.resources = args.resources.resources();
        open.find_wrappers(&args.wrappers.names)?;
        open.stretch = args.stretch.wanted();
        let is_all = args.ranks.is_none() && open.stretch.is_none();
        if let Some(cost) = cost.filter(|_| is_all) {
            cost.check_rows(open.rows())?;
        }
        let (view, _) = View::open(&mut open, Grouping::Line, false)?;
        let ranks = args.ranks.clone().unwrap_or(RankList::All);
        let stretch = view.trace.stretch.as_ref().map(|stretch| &stretch.ranks[..]);
        let shown = ShownWindows::new(&view.trace, &ranks, stretch);
        if shown.places().next().is_none() {
            bail!("--ranks: {} has none of these", open.name());
        }
        if let Some(cost) = cost {
            limit::check(cost.estimate(&view.trace, &shown, view.is_whole()))?;
        }
        let definitions = Definitions::collect(&view.trace, &mut open.symbols);
        Ok(TimelineExport { open, view, definitions, shown, interrupts: Interrupts::watch() })
    }

    fn write(&mut self, writer: &mut dyn Writer) -> Result<Written> {
        let progress = Progress::new("writing");
        let ranks = self.shown.places().count() as u64;
        progress.expect(self.open.rows() * ranks / (self.view.trace.ranks.len() as u64).max(1));
        let wrote = |rows| progress.add(rows);
        let told =
            WriteProgress { wrote: &wrote, is_stopped: &|| self.interrupts.signal().is_some() };
        write(&self.view, &self.definitions, &self.shown, writer, &told)
    }

    /// Gives what was written its name, and says what is in it and what is missing.
    fn end(
        mut self,
        written: Result<Written>,
        wanted: &Path,
        publish: impl FnOnce() -> Result<()>,
    ) -> Result<ExitCode> {
        if let Some(signal) = self.interrupts.signal() {
            say!("interrupted: {} was not made", wanted.display());
            return Ok(ExitCode::from(128 + signal));
        }
        let written = written.and_then(|written| publish().map(|()| written));
        let written = written.map_err(|error| with_cure(error, wanted))?;
        let mut problems = self.open.problems(&[]);
        problems.extend(module_problems(self.open.symbols.troubles()));
        warn_of_data(&problems);
        say_written(&written, wanted);
        Ok(ExitCode::SUCCESS)
    }
}

fn say_written(written: &Written, wanted: &Path) {
    let Written { ranks, calls, requests, messages, lone_sends, unreturned, pending } = *written;
    if lone_sends > 0 {
        say!(
            "no arrow for {} send{}: the receive is not known, or not among what is shown",
            count(lone_sends),
            plural(lone_sends)
        );
    }
    let had = |number: u64, what: &str, verbs: [&str; 2], rest: &str| {
        let verb = verbs[usize::from(number != 1)];
        let plural = plural(number);
        (number > 0).then(|| format!("{} {what}{plural} {verb} not {rest}", count(number)))
    };
    let unended = [
        had(unreturned, "call", ["had", "had"], "returned"),
        had(pending, "request", ["was", "were"], "completed"),
    ];
    let unended: Vec<String> = unended.into_iter().flatten().collect();
    if !unended.is_empty() {
        let what = unended.join(" and ");
        say!("{what} when the recording ended: they are drawn up to then");
    }
    say!(
        "{}: {} calls, {} requests, {} messages of {} rank{}",
        wanted.display(),
        count(calls),
        count(requests),
        count(messages),
        count(ranks),
        plural(ranks)
    );
}
