//! Steps and marked regions as text.

use std::io::{self, Write};

use crate::render::table::{Align, Cell, Table};
use lapscope_data::text::plural;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{count, percent, percent_range, time};
use lapscope_measure::efficiency::Efficiency;
use lapscope_measure::steps::{StepRow, StepStart, Steps};
use lapscope_report::report::Report;

/// Regions that are shown.
const REGIONS: usize = 12;

/// # Errors
/// Of the writer.
pub(super) fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    if let Some(steps) = &report.steps {
        let headline = format!("{}, each {}", count(steps.count), what(&steps.what));
        writeln!(out, "\n{}", style.headed("STEPS", &headline))?;
        for line in lines(steps, report.stretch.is_some()) {
            writeln!(out, "{}", style.wrap(&line, "  ", "  "))?;
        }
    }
    write_regions(out, report, style)
}

/// What is told of them, a sentence or two each. `in_stretch`: of those in a stretch of the run.
pub(crate) fn lines(steps: &Steps, in_stretch: bool) -> Vec<String> {
    let efficiency = steps.efficiency.as_ref().map(super::efficiency::sentence);
    if let ([row], 1) = (steps.rows.as_slice(), steps.steps_in_row) {
        return [Some(only(steps, row)), efficiency, others(steps)].into_iter().flatten().collect();
    }
    let durations = Some(durations(steps, in_stretch));
    let lines = [durations, Some(exposed(steps)), efficiency, drift(steps), others(steps)];
    lines.into_iter().flatten().collect()
}

/// Of one step alone nothing is typical.
fn only(steps: &Steps, row: &StepRow) -> String {
    let (duration, exposed) = (&steps.duration, &steps.exposed);
    format!(
        "Step {} takes {} ({} on rank {}). Exposed and blocked time is {} of it ({}).",
        row.step,
        time(duration.typical_ns),
        time(duration.worst_rank_ns),
        duration.worst_rank,
        time(exposed.typical_ns),
        percent(exposed.typical_share),
    )
}

/// "from one MPI_Waitall (exchange halo.c:84) to the next"
pub fn what(what: &StepStart) -> String {
    match what {
        StepStart::Marks => "marked by MPI_Pcontrol(2)".to_owned(),
        StepStart::Region { name } => format!("a region {name}, marked by MPI_Pcontrol"),
        StepStart::Call { call, site, in_burst } => {
            let at = site.as_ref().map(|site| format!(" at {}", site.short())).unwrap_or_default();
            match in_burst {
                true => format!("from the first {call}{at} of several to the first of the next"),
                false => format!("from one {call}{at} to the next"),
            }
        }
        StepStart::Function { site } => {
            let at = site.as_ref().map(|site| format!(" {}", site.short())).unwrap_or_default();
            format!("from one call{at} to the next")
        }
    }
}

fn durations(steps: &Steps, in_stretch: bool) -> String {
    let of = &steps.duration;
    let first = steps
        .first_times_typical
        .map(|times| format!("; the first took {times:.1} times as long as a typical one"));
    let told: u64 = steps.rows.iter().map(|row| row.last_step - row.step + 1).sum();
    let fill = match in_stretch {
        true => format!("These numbers are of {} of them", count(told)),
        false => format!("They fill {} of the run time", percent(steps.share)),
    };
    format!(
        "{fill}. A typical step (the median) takes {}, 95 % take up to {}; step {} was the longest with {} \
         ({} on rank {}){}.",
        time(of.typical_ns),
        time(of.p95_ns),
        of.worst_step,
        time(of.worst_ns),
        time(of.worst_rank_ns),
        of.worst_rank,
        first.unwrap_or_default(),
    )
}

fn exposed(steps: &Steps) -> String {
    let of = &steps.exposed;
    let mut line = format!(
        "Exposed and blocked time is {} in a typical step ({} of it), and {} ({}) in step {}, where it is longest.",
        time(of.typical_ns),
        percent(of.typical_share),
        time(of.worst_ns),
        percent(of.worst_share),
        of.worst_step,
    );
    if of.typical_share.max(of.worst_share) > 1.0 {
        line += " Times of several threads that call MPI add up to more than the step.";
    }
    if let Some(hidden) = &steps.overlap {
        line += &format!(
            " Achieved overlap is {} in a typical step, {} in step {}, where it is least.",
            percent_range(hidden.typical_low, hidden.typical_high),
            percent_range(hidden.worst_low, hidden.worst_high),
            hidden.worst_step,
        );
    }
    line
}

fn drift(steps: &Steps) -> Option<String> {
    let drift = steps.drift?;
    let (low, high) =
        (drift.low.abs().min(drift.high.abs()), drift.low.abs().max(drift.high.abs()));
    let (way, more) = match drift.change > 0.0 {
        true => ("longer", "more"),
        false => ("shorter", "less"),
    };
    Some(format!(
        "Steps become {way}: the last ones take {} {more} than the first, {} with 95 % confidence.",
        percent(drift.change.abs()),
        percent_range(low, high),
    ))
}

fn others(steps: &Steps) -> Option<String> {
    let (others, without) = (steps.other_ranks, steps.ranks_without);
    let other = format!("{others} rank{} made another number of steps", plural(others));
    let none = format!("{without} rank{} made none", plural(without));
    let what = match (others, without) {
        (0, 0) => return None,
        (_, 0) => other,
        (0, _) => none,
        _ => format!("{other}, {none}"),
    };
    Some(format!("{what}: not in these numbers."))
}

fn write_regions(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let (regions, mean) = (&report.regions, report.mean());
    if regions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{}",
        style.headed("REGIONS", "marked by MPI_Pcontrol; time, exposed: mean over ranks")
    )?;
    let columns = [
        ("region", Align::Left),
        ("times", Align::Right),
        ("time", Align::Right),
        ("longest", Align::Right),
        ("exposed, blocked", Align::Right),
        ("overlap", Align::Right),
        ("efficiency", Align::Right),
        ("balance", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for region in regions.iter().take(REGIONS) {
        let overlap = region.numbers.achieved_low.zip(region.numbers.achieved_high);
        let overlap =
            overlap.map_or_else(|| "-".to_owned(), |(low, high)| percent_range(low, high));
        let exposed = mean.time(region.numbers.exposed_ns);
        let (all, longest) = (mean.time(region.time_ns), time(region.longest_ns));
        let share = |of: fn(&Efficiency) -> f64| {
            region.efficiency.as_ref().map_or_else(|| "-".to_owned(), |it| percent(of(it)))
        };
        let row = [
            region.name.clone(),
            count(region.count),
            all,
            longest,
            exposed,
            overlap,
            share(|it| it.parallel_efficiency),
            share(|it| it.load_balance),
        ];
        let row: Vec<Cell> = row.into_iter().map(Cell::from).collect();
        table.row(row, None);
    }
    table.write(out, style)?;
    if regions.len() > REGIONS {
        writeln!(out, "  and {} more: all are in --format json", regions.len() - REGIONS)?;
    }
    Ok(())
}
