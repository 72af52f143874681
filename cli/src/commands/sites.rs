//! `lapscope sites`: every call site with its call paths.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::warn;
use crate::args::{SiteSort, SitesArgs};
use crate::output::Format;
use crate::output::{print, print_json};
use crate::render;
use lapscope_analysis::combine::Grouping;
use lapscope_analysis::combine::RunSums;
use lapscope_analysis::pipeline::filters::{check_calls, check_ranks};
use lapscope_analysis::pipeline::OpenRun;
use lapscope_analysis::problem::module_problems;
use lapscope_analysis::requests::is_wanted_call;
use lapscope_analysis::sites::{group_sites, name_path, name_site, Order, Site};
use lapscope_analysis::wrappers::Wrapper;
use lapscope_analysis::JSON_VERSION;
use lapscope_data::model::Nanos;
use lapscope_data::symbols::{NameFrames, Renumbered};
use lapscope_data::text::style::Style;

impl From<SiteSort> for Order {
    fn from(sort: SiteSort) -> Order {
        match sort {
            SiteSort::Time => Order::Time,
            SiteSort::Exposed => Order::Completing,
            SiteSort::Posting => Order::Posting,
            SiteSort::Calls => Order::Calls,
            SiteSort::Bytes => Order::Bytes,
            SiteSort::OverlapWindow => Order::Window,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    json_version: u32,
    run: String,
    run_ns: Nanos,
    sites: &'a [Site],
    wrappers: Vec<&'a Wrapper>,
}

/// Prints the sites, grouped by whole call path.
///
/// # Errors
/// There is no run here, no file of it can be read, or standard output fails.
pub fn run(args: &SitesArgs) -> Result<ExitCode> {
    let mut open = OpenRun::open(args.run.as_deref())?;
    open.find_wrappers(&args.wrappers.names)?;
    let mut sums = open.sum()?;
    let mut problems = open.problems(&[]);
    let ranks = sums.ranks.iter().map(|rank| rank.info.rank);
    check_ranks("--rank", args.ranks.iter().copied(), ranks, &open.name())?;
    check_calls(&args.calls, sums.calls.iter().map(|call| call.name.as_str()))?;
    sums.retain_ranks(&args.ranks);
    let run_time: Nanos = sums.ranks.iter().map(|rank| rank.info.run_time()).sum();
    let modules = sums.modules.clone();
    let mut names = Renumbered::new(&mut open.symbols, &modules);
    sums.unify(Grouping::Path, &mut names);
    let sites = wanted_sites(args, &sums, run_time, &mut names);
    problems.extend(module_problems(open.symbols.troubles()));
    warn(&problems);
    let style = Style::for_stdout();
    match args.format {
        Format::Json => print_json(&Document {
            json_version: JSON_VERSION,
            run: open.name(),
            run_ns: run_time,
            sites: &sites,
            wrappers: open.wrappers.iter().collect(),
        })?,
        Format::Csv => print(|out| render::csv::write_sites(out, &sites))?,
        Format::Text if sites.is_empty() => print(|out| writeln!(out, "no such call site"))?,
        Format::Text => print(|out| {
            match args.paths {
                true => render::sites::write(out, &sites, style)?,
                false => render::tree::write(out, &sites, style)?,
            }
            render::report::write_wrappers(out, open.wrappers.iter(), style)
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

fn wanted_sites(
    args: &SitesArgs,
    sums: &RunSums,
    run_time: Nanos,
    symbols: &mut dyn NameFrames,
) -> Vec<Site> {
    let all = group_sites(sums, Grouping::Path, args.sort.into());
    let shown = if args.top == 0 { all.len() } else { args.top };
    let mut sites = Vec::new();
    for site in &all {
        if sites.len() == shown {
            break;
        }
        if !is_wanted_call(&sums.calls[site.call].name, &args.calls) {
            continue;
        }
        if let Some(text) = &args.source {
            let frames = site.path.map(|path| name_path(&sums.paths[path].frames, symbols));
            if !frames.iter().flatten().any(|frame| frame.mentions(text)) {
                continue;
            }
        }
        sites.push(name_site(sums, site, run_time, symbols));
    }
    sites
}
