//! `lapscope reach`: how much earlier posts and how much later waits could be, of a run or of one that is recorded for it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::args::ReachArgs;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_measure::overlap::OverlapOptions;
use lapscope_report::pipeline::reach::{build, ReachDocument};
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::rows::{self, RowWriter};
use lapscope_show::format::{self, Document};
use lapscope_show::render;
use lapscope_trace::problem::Problem;

/// Prints the reach of a run; with a launch line, of the run that it records.
///
/// # Errors
/// There is no run here, no file of it can be read, it could not be launched, or standard output fails.
pub fn run(args: &ReachArgs) -> Result<ExitCode> {
    if args.command.is_empty() {
        print_of(args.read.run.as_deref(), args)?;
        return Ok(ExitCode::SUCCESS);
    }
    super::run::record(&args.run_args(), Some(&|recorded| print_of(Some(recorded), args)))
}

fn print_of(run: Option<&Path>, args: &ReachArgs) -> Result<()> {
    let mut open = OpenRun::open(run)?;
    open.reference.clone_from(&args.times.reference);
    open.find_wrappers(&args.wrappers.names)?;
    let options = OverlapOptions { top: args.top, ranks: &args.ranks.chosen() };
    let document = build(&mut open, options, &args.networks)?;
    let mut answer = ReachOutput { document, asks_networks: !args.networks.is_empty() };
    format::print(&mut answer, args.read.format)
}

struct ReachOutput {
    document: ReachDocument,
    asks_networks: bool,
}

impl Document for ReachOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> Result<()> {
        render::watching::write(out, &self.document, style)?;
        let reach = self.document.reach.as_ref();
        if let Some(reach) = reach {
            let watching = &self.document.watching;
            render::reach::write(out, reach, watching.run_ns, MeanOfRanks(watching.ranks), style)?;
        }
        match reach.and_then(|reach| reach.pairs.as_ref()) {
            Some(pairs) => render::pairs::write(out, pairs, style)?,
            None if self.asks_networks => {
                // why nothing was watched is said above
                let more = reach.map_or("", |_| "; a larger --share watches more");
                let text = format!(
                    "--network: of no message was enough watched of either side, so nothing is known of networks{more}"
                );
                writeln!(out, "\n{}", style.wrap(&text, "", ""))?;
            }
            None => {}
        }
        Ok(())
    }

    fn write_json(&mut self, out: &mut dyn Write) -> Result<()> {
        format::write_json(&self.document, out)
    }

    fn write_rows(&mut self, rows: &mut dyn RowWriter) -> Result<()> {
        let sites = self.document.reach.as_ref().map_or(&[][..], |reach| &reach.sites);
        Ok(rows::write(rows, &render::columns::reach(), sites)?)
    }

    fn problems(&self) -> &[Problem] {
        &self.document.problems
    }
}
