//! Everything that a page is made of.

use anyhow::Result;

use super::sources::Sources;
use lapscope_data::model::Rank;
use lapscope_data::places::group::Grouping;
use lapscope_data::symbols::NameFrames;
use lapscope_data::text::progress::Progress;
use lapscope_measure::sites::Site;
use lapscope_report::pictures::Pictures;
use lapscope_report::pipeline::pictures::{build, Pictured, TimelineChoice};
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::{Report, ReportOptions};
use lapscope_report::settings::Settings;
use lapscope_trace::call_paths::{call_paths, CallPaths};

/// Call paths of a site that are shown.
const MOST_PATHS: usize = 6;

/// What the user asked for.
pub struct PageChoice {
    /// Call sites that have a row of their own.
    pub top: usize,
    pub ranks: Vec<Rank>,
    /// Whose lines are shown.
    pub sources: Sources,
    /// In the timeline.
    pub shown: TimelineChoice,
}

/// What a page is made of.
pub struct Contents {
    /// With all call sites.
    pub report: Report,
    pub pictures: Pictures,
    pub settings: Settings,
    /// Places in `report.sites` of those that have a row.
    pub listed: Vec<usize>,
    /// The call paths of these.
    pub paths: Vec<CallPaths>,
    pub sources: Sources,
}

/// Reads the run and has it analysed.
///
/// # Errors
/// No file of it can be read, or it has none of these ranks.
pub fn collect(open: &mut OpenRun, asked: PageChoice) -> Result<Contents> {
    let options = ReportOptions::default();
    let Pictured { report, pictures, .. } = build(open, &asked.ranks, options, &asked.shown)?;
    let progress = Progress::new("writing");
    let settings = Settings::of_run(&open.files.databases);
    let listed = listed(&report, asked.top);
    progress.expect(listed.len() as u64);
    let places = open.places(Grouping::Line)?;
    let mut paths = Vec::new();
    for &site in &listed {
        let names: &mut dyn NameFrames = &mut open.symbols;
        paths.extend(call_paths(&places, &[report.sites[site].id], MOST_PATHS, names));
        progress.add(1);
    }
    let sources = asked.sources.older_than(report.head.started_unix_ns);
    Ok(Contents { report, pictures, settings, listed, paths, sources })
}

/// The costliest sites, and those that advice names.
fn listed(report: &Report, top: usize) -> Vec<usize> {
    let mut listed: Vec<usize> = (0..report.sites.len().min(top)).collect();
    let named =
        report.advice.iter().flat_map(|advice| advice.change.iter().chain([&advice.waiting]));
    let place = |named: &lapscope_advise::advice::CallSite| {
        let is_it = |site: &Site| site.call == named.call && site.site == named.site;
        report.sites.iter().position(is_it)
    };
    listed.extend(named.filter_map(place));
    listed.sort_unstable();
    listed.dedup();
    listed
}
