//! `lapscope hang --pending`: what had not ended when the processes did.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::{HangArgs, ListedArgs, PendingArgs, RanksArgs};
use lapscope_advise::problem::module_problems;
use lapscope_data::db::{find_run, list_files};
use lapscope_data::model::RankList;
use lapscope_data::state::Observer;
use lapscope_data::symbols::Symbols;
use lapscope_data::text::style::Style;
use lapscope_data::JSON_VERSION;
use lapscope_report::pipeline::filters::check_ranks;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::rows::{self, RowWriter};
use lapscope_show::format::{self, warn_of_data, Document, Format};
use lapscope_show::render;
use lapscope_trace::problem::ProblemKind;
use lapscope_watch::hang::{running, Running};
use lapscope_watch::pending::groups::{group_places, PlaceGroup, RankOutside};
use lapscope_watch::pending::PendingItem;

/// What was asked for.
pub struct PendingAsked<'a> {
    run: Option<&'a Path>,
    format: Format,
    top: Option<usize>,
    ranks: &'a RanksArgs,
    ranked: &'a ListedArgs,
}

impl<'a> From<&'a PendingArgs> for PendingAsked<'a> {
    fn from(args: &'a PendingArgs) -> Self {
        let PendingArgs { read, top, ranks, ranked } = args;
        PendingAsked { run: read.run.as_deref(), format: read.format, top: *top, ranks, ranked }
    }
}

impl<'a> From<&'a HangArgs> for PendingAsked<'a> {
    fn from(args: &'a HangArgs) -> Self {
        let HangArgs { run, format, top, ranks, ranked, .. } = args;
        PendingAsked { run: run.as_deref(), format: *format, top: *top, ranks, ranked }
    }
}

#[derive(Serialize)]
struct PendingOutput {
    json_version: u32,
    run: String,
    pending: Vec<PendingItem>,
    /// Ranks that were in no call.
    outside: Vec<RankOutside>,
    /// Who is where.
    places: Vec<PlaceGroup>,
    /// What ranks that still run have not ended.
    running: Running,
    /// As text: entries of a rank that are shown.
    #[serde(skip)]
    top: usize,
    /// As text: ranks that are shown one by one, however many there are.
    #[serde(skip)]
    listed: Option<RankList>,
}

/// Prints requests that never ended and calls that never returned.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &PendingAsked<'_>) -> Result<ExitCode> {
    let root = find_run(args.run)?;
    // first, as it makes databases of what dead ranks left: that needs no other look
    let opened = OpenRun::open(Some(&root));
    let running = look(&root)?;
    let mut open = match opened {
        Err(_) if !running.places.is_empty() => return print_running(args, &root, running),
        opened => opened?,
    };
    let found = open.pending()?;
    let known = found.ranks.iter().copied().chain(running.ranks());
    check_ranks("--ranks", args.ranks.chosen(), known, &open.name())?;
    let ranks = args.ranks.chosen();
    let is_wanted = |rank| ranks.is_empty() || ranks.contains(&rank);
    let (mut pending, mut outside) = (found.items, found.outside);
    pending.retain(|item| is_wanted(item.rank));
    outside.retain(|it| is_wanted(it.rank));
    let places = group_places(&pending, &outside);
    let mut problems = open.problems(&[]);
    if !running.places.is_empty() {
        problems.retain(|problem| problem.kind != ProblemKind::NotRecovered);
    }
    problems.extend(module_problems(open.symbols.troubles()));
    warn_of_data(&problems);
    let (run, top, listed) =
        (open.name(), args.format.top(args.top, 20), args.ranked.listed.clone());
    let running = running.only(is_wanted);
    let mut answer = PendingOutput {
        json_version: JSON_VERSION,
        run,
        pending,
        outside,
        places,
        running,
        top,
        listed,
    };
    format::print(&mut answer, args.format)?;
    Ok(ExitCode::SUCCESS)
}

/// What ranks do that run.
fn look(root: &Path) -> Result<Running> {
    let has_spools = list_files(root).is_ok_and(|files| !files.spools.is_empty());
    if !has_spools {
        return Ok(Running::default());
    }
    let state = Observer::open(root)?.without_databases().look(&mut ())?;
    let mut symbols = Symbols::new(state.modules.clone());
    Ok(running(state, &mut symbols))
}

/// Prints a job of which no rank has ended.
fn print_running(args: &PendingAsked<'_>, root: &Path, running: Running) -> Result<ExitCode> {
    let run = root.to_string_lossy().into_owned();
    check_ranks("--ranks", args.ranks.chosen(), running.ranks(), &run)?;
    let ranks = args.ranks.chosen();
    let is_wanted = |rank| ranks.is_empty() || ranks.contains(&rank);
    let mut answer = PendingOutput {
        json_version: JSON_VERSION,
        run,
        pending: Vec::new(),
        outside: Vec::new(),
        places: Vec::new(),
        running: running.only(is_wanted),
        top: args.format.top(args.top, 20),
        listed: args.ranked.listed.clone(),
    };
    format::print(&mut answer, args.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for PendingOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        let PendingOutput { run, pending, outside, places, running, top, listed, .. } = self;
        let shown = render::pending::PendingChoice { top: *top, listed: listed.as_ref() };
        if !running.places.is_empty() {
            render::hang::write_running(out, run, running, shown, style)?;
            if places.is_empty() {
                return Ok(());
            }
            writeln!(out)?;
        }
        Ok(render::pending::write(out, (pending, outside, places), shown, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::pending(), &self.pending)?)
    }
}
