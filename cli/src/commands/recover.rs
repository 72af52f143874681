//! `lapscope recover`: spools that killed ranks left become databases.

use std::process::ExitCode;

use anyhow::bail;

use crate::args::RecoverArgs;
use lapscope_data::db;
use lapscope_data::recovery::{recover_spools, Recovered};
use lapscope_data::say;
use lapscope_data::store::Converted;
use lapscope_data::text::style::Style;
use lapscope_show::output::print;

/// Each of so many spools has a line; of more, those whose databases are not whole.
const MOST_LINES: usize = 32;

/// # Errors
/// No run there, or the directory cannot be listed.
pub fn run(args: &RecoverArgs) -> anyhow::Result<ExitCode> {
    let directory = db::find_run(args.run.as_deref())?;
    if !directory.is_dir() {
        bail!("{}: not a run directory", directory.display());
    }
    let summary = recover_spools(&directory, args.ended)?;
    let style = Style::for_stdout();
    print(|out| {
        let all = &summary.recovered;
        let is_whole = |it: &&Recovered| it.content.lost + it.content.damaged == 0;
        let (told, more): (Vec<&Recovered>, Vec<&Recovered>) =
            all.iter().partition(|it| all.len() <= MOST_LINES || !is_whole(it));
        let left_out = more.len() + told.len().saturating_sub(MOST_LINES);
        for recovered in told.into_iter().take(MOST_LINES) {
            writeln!(out, "{}", style.wrap(&describe(recovered), "", "  "))?;
        }
        if left_out > 0 {
            let requests: u64 = all.iter().map(|it| it.content.requests).sum();
            let text =
                format!("and {left_out} more; {} in all, with {requests} requests", all.len());
            writeln!(out, "{}", style.wrap(&text, "", "  "))?;
        }
        Ok(())
    })?;
    for sentence in summary.left.iter().take(MOST_LINES) {
        say!("{sentence}");
    }
    if let Some(more) = summary.left.len().checked_sub(MOST_LINES).filter(|&more| more > 0) {
        say!("and {more} more spools like these");
    }
    if summary.recovered.is_empty() && summary.left.is_empty() {
        let nothing = format!("{}: nothing to recover", directory.display());
        print(|out| writeln!(out, "{}", style.wrap(&nothing, "", "  ")))?;
    }
    Ok(if summary.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(recovered: &Recovered) -> String {
    let Converted { requests, calls, pending, lost, damaged, damaged_at, .. } = recovered.content;
    let ranks = match recovered.ranks {
        1 => String::new(),
        ranks => format!("{ranks} ranks, "),
    };
    let database = recovered.database.display();
    let mut text = format!("{database}: {ranks}{requests} requests, {calls} calls");
    let optional = [(pending, "had not ended"), (lost, "lost during the run")];
    for (count, what) in optional.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    if damaged > 0 {
        text.push_str(&format!(
            ", {damaged} damaged pieces left out, the first at byte {damaged_at}"
        ));
    }
    text
}
