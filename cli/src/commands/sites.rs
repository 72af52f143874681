//! `lapscope sites`: every call site with its call paths.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::SitesArgs;
use lapscope_advise::problem::{module_problems, no_moments};
use lapscope_data::model::Nanos;
use lapscope_data::places::group::Grouping;
use lapscope_data::symbols::{name_path, NameFrames};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_data::JSON_VERSION;
use lapscope_measure::sites::{group_sites, name_site, Site};
use lapscope_report::pipeline::filters::{check_calls, check_ranks};
use lapscope_report::pipeline::view::View;
use lapscope_report::pipeline::OpenRun;
use lapscope_report::requests::is_wanted_call;
use lapscope_show::format::rows::{self, RowWriter};
use lapscope_show::format::{self, warn_of_data, Document};
use lapscope_show::render;
use lapscope_trace::stretch::NamedStretch;
use lapscope_trace::sums::combine::RunSums;
use lapscope_trace::wrappers::Wrapper;

#[derive(Serialize)]
struct SitesOutput<'a> {
    json_version: u32,
    run: String,
    /// What of the run this is of; `None`: all of it.
    stretch: Option<NamedStretch>,
    run_ns: Nanos,
    sites: Vec<Site>,
    wrappers: Vec<&'a Wrapper>,
    #[serde(skip)]
    mean: MeanOfRanks,
    #[serde(skip)]
    threaded_ranks: u64,
    /// As text: call paths as a tree, in place of one after the other.
    #[serde(skip)]
    is_tree: bool,
}

/// Prints the sites, grouped by whole call path.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &SitesArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.read.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    open.stretch = args.stretch.wanted();
    let (mut sums, stretch) = sum(&mut open)?;
    let mut problems = open.problems(&[]);
    problems.extend(no_moments(&sums.untold));
    let ranks = sums.ranks.iter().map(|rank| rank.info.rank);
    check_ranks("--ranks", args.ranks.chosen(), ranks, &open.name())?;
    check_calls(&args.calls, sums.places.calls.iter().map(|call| call.name.as_str()))?;
    sums.retain_ranks(&args.ranks.chosen());
    let run_time: Nanos = sums.ranks.iter().map(|rank| rank.info.run_time()).sum();
    let sites = wanted_sites(args, &sums, run_time, &mut open.symbols);
    problems.extend(module_problems(open.symbols.troubles()));
    warn_of_data(&problems);
    let mut answer = SitesOutput {
        json_version: JSON_VERSION,
        run: open.name(),
        stretch,
        run_ns: run_time,
        sites,
        wrappers: open.wrappers.iter().collect(),
        mean: MeanOfRanks(sums.ranks.len() as u64),
        threaded_ranks: sums.threaded_ranks,
        is_tree: !args.paths,
    };
    format::print(&mut answer, args.read.format)?;
    Ok(ExitCode::SUCCESS)
}

/// Single calls are looked at only where sums of a file do not tell all.
fn sum(open: &mut OpenRun) -> Result<(RunSums, Option<NamedStretch>)> {
    if open.stretch.is_none() {
        let sums = open.sum(Grouping::CallPath)?;
        if !sums.ranks.iter().any(|rank| rank.info.has_device_time()) {
            return Ok((sums, None));
        }
    }
    let (mut view, sums) = View::open(open, Grouping::CallPath, true)?;
    let mut sums = sums.unwrap_or_default();
    view.lay_to_gpus(&mut sums)?;
    Ok((sums, view.stretch))
}

impl Document for SitesOutput<'_> {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        render::stretch::write(out, self.stretch.as_ref(), style)?;
        if self.sites.is_empty() {
            return Ok(writeln!(out, "no such call site")?);
        }
        match self.is_tree {
            true => render::tree::write(out, &self.sites, self.mean, style)?,
            false => render::sites::write(out, &self.sites, self.mean, style)?,
        }
        if let Some(why) = render::report::beyond_all(self.threaded_ranks) {
            writeln!(out, "\n{}", style.wrap(&why, "", ""))?;
        }
        Ok(render::report::write_wrappers(out, self.wrappers.iter().copied(), style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(self, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        Ok(rows::write(rows, &render::columns::sites(), &self.sites)?)
    }
}

fn wanted_sites(
    args: &SitesArgs,
    sums: &RunSums,
    run_time: Nanos,
    symbols: &mut dyn NameFrames,
) -> Vec<Site> {
    let all = group_sites(sums, args.sort.into());
    let shown = match args.read.format.top(args.top, 20) {
        0 => all.len(),
        top => top,
    };
    let mut sites = Vec::new();
    for site in &all {
        if sites.len() == shown {
            break;
        }
        if !is_wanted_call(&sums.places.call(site.id).name, &args.calls) {
            continue;
        }
        if let Some(text) = &args.source {
            let path = sums.places.site(site.id).path.map(|path| sums.places.path(path));
            let frames = path.map(|path| name_path(&path.frames, symbols));
            if !frames.iter().flatten().any(|frame| frame.mentions(text)) {
                continue;
            }
        }
        sites.push(name_site(sums, site, run_time, symbols));
    }
    sites
}
