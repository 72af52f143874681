//! What a search among settings of the MPI has found, as text.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent, time};
use lapscope_launch::tune::bar::{limits, signed_percent};
use lapscope_launch::tune::settings::document::{
    BestSetting, SettingProof, SettingsAnswer, SettingsResult, StoppedBy, TriedSetting,
};
use lapscope_launch::tune::settings::trials::named;

/// One sentence or two.
pub fn verdict(answer: &SettingsAnswer) -> String {
    let mpi = &answer.mpi;
    let best = answer.best.as_ref().map(|best| (best, best.proof.as_ref()));
    match (answer.found, best) {
        (SettingsResult::Gain, Some((best, Some(proof)))) => saves(best, proof),
        (SettingsResult::Unproved, Some((best, Some(proof)))) => format!(
            "No certain gain by settings of {mpi}: {} gained {} in {} of its own ({}).",
            named(&best.candidate.variables),
            signed_percent(proof.estimate),
            pairs_of_runs(proof.pairs.len()),
            bounds(proof)
        ),
        (SettingsResult::Unproved, Some((best, None))) => format!(
            "No certain gain by settings of {mpi}: {} may gain, but no pair of runs proves it.",
            named(&best.candidate.variables)
        ),
        (SettingsResult::NothingToTry, _) => format!(
            "lapscope has no setting of {mpi} to try that could cure what this program waits for."
        ),
        _ => format!("No setting of {mpi} that was tried makes the program faster."),
    }
}

fn bounds(proof: &SettingProof) -> String {
    proof.gain.map_or("too few for bounds".to_owned(), limits)
}

fn saves(best: &BestSetting, proof: &SettingProof) -> String {
    let predicted = match best.candidate.predicted {
        Some(predicted) => format!("a replay said {}", signed_percent(predicted)),
        None => format!("{} were at stake", percent(best.candidate.at_stake)),
    };
    let costs = best.candidate.costs.join("; ");
    let costs = if costs.is_empty() { costs } else { format!(" It may cost: {costs}.") };
    format!(
        "{} saves {} of the time from launch to end ({} in {} without lapscope, at most 5 of 100 such answers are wrong); \
         {predicted}.{}",
        named(&best.candidate.variables),
        percent(proof.estimate),
        bounds(proof),
        pairs_of_runs(proof.pairs.len()),
        costs
    )
}

/// For pasting into a shell, a launch line or a file.
///
/// # Errors
/// Of the writer.
pub fn write_lines(out: &mut dyn Write, best: &BestSetting, style: Style) -> io::Result<()> {
    writeln!(out)?;
    for line in &best.exports {
        writeln!(out, "{line}")?;
    }
    let options = format!("or as options of the launcher: {}", best.options);
    writeln!(out, "{}", style.wrap(&options, "", "  "))?;
    if let Some(file) = &best.file {
        let text = format!("or in {}, for every run: {}", file.path, file.lines.join(", "));
        writeln!(out, "{}", style.wrap(&text, "", "  "))?;
    }
    Ok(())
}

/// What was tried, and what was not.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, answer: &SettingsAnswer, style: Style) -> io::Result<()> {
    write_proof(out, answer, style)?;
    if !answer.tried.is_empty() {
        let legend = "whole runs without lapscope; predicted: by a replay; at stake: what the causes that it can cure cost, mean over ranks";
        writeln!(out, "\n{}", style.bold(&format!("SETTINGS OF {}", answer.mpi)))?;
        writeln!(out, "{}", style.dim(&style.wrap(legend, "  ", "  ")))?;
        let mut table = Table::new(&[
            ("gain", Align::Right),
            ("pairs", Align::Right),
            ("predicted", Align::Right),
            ("at stake", Align::Right),
        ]);
        for tried in &answer.tried {
            table.row(cells(tried), Some(named(&tried.candidate.variables)));
        }
        table.write(out, style)?;
        for tried in &answer.tried {
            if let Some(reason) = &tried.failed {
                let text = format!("{}: {reason}", named(&tried.candidate.variables));
                writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
            }
        }
    }
    for left in &answer.not_tried {
        let text = format!("not tried: {}: {}", named(&left.variables), left.reason);
        writeln!(out, "{}", style.wrap(&text, "  ", "    "))?;
    }
    let stopped = answer.stopped.map(|stopped| match stopped {
        StoppedBy::Budget => "The time (--budget) ended the search among settings.",
        StoppedBy::Interrupt => "The search among settings was interrupted.",
    });
    for note in stopped.into_iter().chain(answer.notes.iter().map(String::as_str)) {
        writeln!(out, "{}", style.wrap(note, "  ", "    "))?;
    }
    Ok(())
}

fn write_proof(out: &mut dyn Write, answer: &SettingsAnswer, style: Style) -> io::Result<()> {
    let proof = answer.best.as_ref().and_then(|best| Some((best, best.proof.as_ref()?)));
    let Some((best, proof)) = proof else { return Ok(()) };
    let legend = format!("from launch to end, in turn, with {}", named(&best.candidate.variables));
    writeln!(out, "\n{}", style.headed_dimly("PROOF", &legend))?;
    let heads = ["pair", "as it is", "with it", "gain"];
    let mut table = Table::new(&heads.map(|head| (head, Align::Right)));
    for (number, pair) in (1..).zip(&proof.pairs) {
        let (without, with) = (time(pair.without_ns), time(pair.with_ns));
        table.row(vec![count(number), without, with, signed_percent(pair.gain)], None);
    }
    table.write(out, style)
}

fn cells(tried: &TriedSetting) -> Vec<String> {
    let gain = match (&tried.failed, tried.gain) {
        (Some(_), _) => "failed".to_owned(),
        (None, gain) => gain.map(signed_percent).unwrap_or_default(),
    };
    vec![
        gain,
        count(tried.pairs.len() as u64),
        tried.candidate.predicted.map(signed_percent).unwrap_or_default(),
        percent(tried.candidate.at_stake),
    ]
}

pub(super) fn pairs_of_runs(pairs: usize) -> String {
    format!("{pairs} pair{} of whole runs", if pairs == 1 { "" } else { "s" })
}
