//! The report card of `lapscope bench`.

mod applications;
mod kernels;
pub mod simulated;

use std::io::{self, Write};

use crate::compare::agree;
use crate::results::{Link, Results, Run, Spread, Table, TableRow};
use lapscope_data::text::style::Style;
use lapscope_show::render::table::{Align, Table as Lines};

/// Disagreements that are listed one by one.
const LISTED: usize = 12;

/// The runs of one MPI on one link.
#[derive(Clone, Copy)]
struct BenchSection<'a> {
    results: &'a Results,
    mpi: usize,
    link: Link,
}

impl<'a> BenchSection<'a> {
    fn runs(self) -> impl Iterator<Item = &'a Run> {
        let is_ours = move |run: &&Run| run.mpi == self.mpi && run.link == self.link;
        self.results.runs.iter().filter(is_ours)
    }

    fn tables(self, program: &'a str, name: &'a str) -> impl Iterator<Item = (&'a Run, &'a Table)> {
        let runs = self.runs().filter(move |run| run.program == program);
        runs.flat_map(move |run| {
            let named = run.tables.iter().filter(move |table| table.name == name);
            named.map(move |table| (run, table))
        })
    }
}

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, results: &Results, style: Style) -> io::Result<()> {
    write_head(out, results, style)?;
    for mpi in 0..results.mpis.len() {
        for link in Link::ALL {
            let section = BenchSection { results, mpi, link };
            if section.runs().next().is_some() {
                let title =
                    format!("{}, {}", results.mpis[mpi].version, link.words().to_uppercase());
                writeln!(out, "\n{}", style.bold(&style.wrap(&title, "", "  ")))?;
                kernels::write(out, section, style)?;
                applications::write(out, section, style)?;
            }
        }
    }
    write_agreement(out, results, style)?;
    write_failures(out, results, style)
}

fn write_head(out: &mut dyn Write, results: &Results, style: Style) -> io::Result<()> {
    let fact = |name: &str| results.facts.get(name).map_or("", String::as_str);
    let seconds = results.runs.iter().fold(0.0, |sum, run| sum + run.seconds);
    let about = format!(
        "{} runs in {:.0} min {:.0} s · {} · {} processors ({}) · {}",
        results.runs.len(),
        (seconds / 60.0).floor(),
        seconds % 60.0,
        fact("host"),
        fact("processors"),
        fact("processor"),
        fact("created")
    );
    writeln!(out, "{}", style.headed("lapscope bench", &about))?;
    let how = "Medians of what the programs measured themselves; after | what lapscope saw of the same run from outside. off, \
               timer and thread: LAPSCOPE_INJECT. Programs, methods and sources: examples/README.md.";
    writeln!(out, "{}", style.wrap(how, "", ""))
}

// --- cells -----------------------------------------------------------------------------------------------------------

/// A heading with what it is about.
fn heading(out: &mut dyn Write, style: Style, name: &str, about: &str) -> io::Result<()> {
    writeln!(out, "\n{}", style.wrap(&format!("{name}  {about}"), "  ", "    "))
}

/// A digit behind the point where there are less than two in front.
fn rounded(value: f64) -> String {
    match value.abs() {
        small if small < 9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// "12.3", "12.3 | 12.1"; empty where nothing was measured.
fn cell(row: Option<&TableRow>, quantity: &str) -> String {
    let Some(row) = row else { return String::new() };
    let number = |spread: Spread| rounded(spread.median);
    match (row.program(quantity), row.outside(quantity)) {
        (Some(program), Some(outside)) => format!("{} | {}", number(program), number(outside)),
        (Some(program), None) => number(program),
        (None, _) => String::new(),
    }
}

/// A table of sizes: each column is a quantity of one of the tables that an experiment printed.
struct BySize<'a> {
    columns: Vec<(&'static str, &'a Table, &'static str)>,
}

impl<'a> BySize<'a> {
    fn new() -> BySize<'a> {
        BySize { columns: Vec::new() }
    }

    /// Nothing is added where there is no table.
    fn add(&mut self, title: &'static str, table: Option<&'a Table>, quantity: &'static str) {
        self.columns.extend(table.map(|table| (title, table, quantity)));
    }

    fn write(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let mut sizes: Vec<u64> = self
            .columns
            .iter()
            .flat_map(|(_, table, _)| table.rows.iter().filter_map(TableRow::bytes))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut columns = vec![("bytes", Align::Right)];
        columns.extend(self.columns.iter().map(|(title, ..)| (*title, Align::Right)));
        let mut lines = Lines::new(&columns);
        for size in sizes {
            let value = |(_, table, quantity): &(_, &Table, &str)| {
                // the longest delay of a size is the last
                let row = table.rows.iter().rev().find(|row| row.bytes() == Some(size));
                cell(row, quantity)
            };
            let mut cells = vec![size.to_string()];
            cells.extend(self.columns.iter().map(value));
            lines.row(cells, None);
        }
        lines.write(out, style)
    }
}

// --- both numbers ----------------------------------------------------------------------------------------------------

/// A quantity that both measured.
struct QuantityPair<'a> {
    run: &'a Run,
    table: &'a str,
    row: &'a TableRow,
    quantity: &'a str,
    program: Spread,
    outside: Spread,
}

fn pairs(results: &Results) -> impl Iterator<Item = QuantityPair<'_>> {
    let rows = results.runs.iter().flat_map(|run| {
        let tables = run.tables.iter();
        tables.flat_map(move |table| table.rows.iter().map(move |row| (run, table, row)))
    });
    rows.flat_map(|(run, table, row)| {
        row.values.iter().filter_map(move |(quantity, value)| {
            let (program, outside) = (value.program?, value.outside?);
            Some(QuantityPair { run, table: &table.name, row, quantity, program, outside })
        })
    })
}

fn write_agreement(out: &mut dyn Write, results: &Results, style: Style) -> io::Result<()> {
    let all: Vec<QuantityPair<'_>> = pairs(results).collect();
    let differ: Vec<&QuantityPair<'_>> = all
        .iter()
        .filter(|pair| !agree(pair.run.inject, pair.quantity, pair.program, pair.outside))
        .collect();
    writeln!(out, "\n{}", style.bold("PROGRAM AND LAPSCOPE"))?;
    let sentence = format!(
        "{} quantities were measured by a program and seen by lapscope: {} agree within their quartiles (or 5 %, 5 µs, 25 µs with injection, 5 points), \
         {} do not.",
        all.len(),
        all.len() - differ.len(),
        differ.len()
    );
    writeln!(out, "{}", style.wrap(&sentence, "  ", "  "))?;
    let mut lines = Lines::new(&[
        ("run", Align::Left),
        ("quantity", Align::Left),
        ("bytes", Align::Right),
        ("program", Align::Right),
        ("lapscope", Align::Right),
    ]);
    for pair in differ.iter().take(LISTED) {
        let mpi = &results.mpi(pair.run).name;
        let run = format!(
            "{mpi}, {}, {} {}",
            pair.run.link.words(),
            pair.run.program,
            pair.run.arguments
        );
        let number = |spread: Spread| format!("{:.1}", spread.median);
        lines.row(
            vec![
                run,
                format!("{}.{}", pair.table, pair.quantity),
                pair.row.bytes().map(|bytes| bytes.to_string()).unwrap_or_default(),
                number(pair.program),
                number(pair.outside),
            ],
            None,
        );
    }
    if !differ.is_empty() {
        lines.write(out, style)?;
    }
    if differ.len() > LISTED {
        let more = format!("… and {} more: --format json has all", differ.len() - LISTED);
        writeln!(out, "{}", style.wrap(&more, "  ", "    "))?;
    }
    Ok(())
}

fn write_failures(out: &mut dyn Write, results: &Results, style: Style) -> io::Result<()> {
    let failed: Vec<&Run> = results.runs.iter().filter(|run| run.problem.is_some()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("RUNS THAT FAILED, EACH TRIED TWICE"))?;
    for run in failed {
        let (mpi, problem) =
            (&results.mpi(run).version, run.problem.as_deref().unwrap_or_default());
        let link = run.link.words();
        let line = format!(
            "{mpi}, {link}: {} {}, inject {}: {problem}",
            run.program,
            run.arguments,
            run.inject.key()
        );
        writeln!(out, "{}", style.wrap(&line, "  ", "    "))?;
    }
    Ok(())
}
