//! `lapscope whatif`: a recorded run replayed under scenarios.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::{usage_error, WhatIfArgs};
use lapscope_data::files::{cannot_write, read_short_text};
use lapscope_data::say;
use lapscope_data::text::visible::visible;
use lapscope_predict::replay::scenario::Scenario;
use lapscope_predict::whatif::document::WhatIf;
use lapscope_predict::whatif::sweep::{self as asked_sweep, SweepRequest};
use lapscope_predict::whatif::{file, standard};
use lapscope_report::pipeline::whatif::{build, WhatIfOptions};
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format;
use lapscope_show::plot::sweep;
use lapscope_show::render;

/// The exit code for a scenario that never ends.
const DEADLOCK: u8 = 3;

/// Replays the run, prints what would be, and draws it where that is wanted.
///
/// # Errors
/// There is no run here, no file of it or of the scenarios can be read, the figure cannot be written, or standard output fails.
pub fn run(args: &WhatIfArgs) -> Result<ExitCode> {
    let asked = asked(args)?;
    let kind = args.figure.as_deref().map(figure_kind);
    let mut open = OpenRun::open(args.read.run.as_deref())?;
    open.reference.clone_from(&args.times.reference);
    open.find_wrappers(&args.wrappers.names)?;
    let mut answer = build(&mut open, &asked)?;
    format::print(&mut answer, args.read.format)?;
    if let Some((path, kind)) = args.figure.as_deref().zip(kind) {
        draw(&answer, path, kind)?;
    }
    Ok(if deadlocks(&answer) { ExitCode::from(DEADLOCK) } else { ExitCode::SUCCESS })
}

/// What is wanted; the end of the process, where that makes no sense.
fn asked(args: &WhatIfArgs) -> Result<WhatIfOptions> {
    let own = args.knobs.scenario().unwrap_or_else(|why| usage_error(&why));
    let mut sweeps: Vec<SweepRequest> =
        args.sweeps.iter().flat_map(|sweep| sweep.0.clone()).collect();
    if let Err(why) = asked_sweep::check(&sweeps) {
        usage_error(&format!("--sweep: {why}"));
    }
    if own.is_identity() && own.on.is_some() && sweeps.is_empty() {
        usage_error("--on says between whom other knobs change; turn one, as --bandwidth x2");
    }
    let on = own.on;
    let mut scenarios: Vec<Scenario> = Vec::new();
    if !own.is_identity() {
        scenarios.push(own);
    }
    for path in &args.files {
        scenarios.extend(read(path)?);
    }
    // one knob after the other, all others as in the first scenario
    let first = scenarios.first().cloned().unwrap_or(Scenario { on, ..Scenario::default() });
    for point in sweeps.iter_mut().flat_map(|sweep| &mut sweep.points) {
        point.scenario = first.overlaid(&point.scenario);
    }
    if scenarios.is_empty() && sweeps.is_empty() {
        scenarios = standard::all();
    }
    Ok(WhatIfOptions { scenarios, sweeps, top: args.top })
}

/// A scenario file is not longer.
const MOST_BYTES: u64 = 1 << 20;

fn read(path: &Path) -> Result<Vec<Scenario>> {
    let name = path.display().to_string();
    let text = read_short_text(path, MOST_BYTES).with_context(|| name.clone())?;
    file::parse(&name, &text).map_err(anyhow::Error::msg)
}

/// Whether the run's own replay does not end, so that no scenario says anything.
fn deadlocks(answer: &WhatIf) -> bool {
    let of_scenarios = answer.scenarios.iter().map(|scenario| scenario.run_ns);
    let of_sweeps = answer.sweeps.iter().flat_map(|sweep| &sweep.points).map(|point| point.run_ns);
    answer.identity.run_ns.is_some() && of_scenarios.chain(of_sweeps).any(|run_ns| run_ns.is_none())
}

#[derive(Debug, Clone, Copy)]
enum FigureKind {
    Svg,
    Html,
}

fn figure_kind(path: &Path) -> FigureKind {
    match path.extension().and_then(|end| end.to_str()) {
        Some(end) if end.eq_ignore_ascii_case("svg") => FigureKind::Svg,
        Some(end) if end.eq_ignore_ascii_case("html") => FigureKind::Html,
        _ => usage_error(&format!(
            "--figure {}: its name ends with .svg or .html, which says what it is to be",
            visible(&path.to_string_lossy())
        )),
    }
}

fn draw(answer: &WhatIf, path: &Path, kind: FigureKind) -> Result<()> {
    let text = match kind {
        FigureKind::Svg => sweep::figure(answer),
        FigureKind::Html => render::whatif::page(answer),
    };
    fs::write(path, text).map_err(|error| cannot_write(path, error))?;
    say!("figure in {}", visible(&path.to_string_lossy()));
    Ok(())
}
