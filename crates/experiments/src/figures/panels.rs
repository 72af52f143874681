//! Small multiples: a column for each MPI, a row for each link.

use std::collections::BTreeMap;

use crate::results::{Link, Results, Run, Spread, TableRow};

use super::words;
use lapscope_show::plot::chart::{self, Panel, Point, Series};

/// A series and the panel that it belongs to.
#[derive(Debug, Clone)]
pub struct Placed {
    pub mpi: usize,
    pub link: Link,
    pub series: Series,
}

impl Placed {
    pub fn new(run: &Run, series: Series) -> Placed {
        Placed { mpi: run.mpi, link: run.link, series }
    }
}

/// Panels of all series that have points; a series that several runs have is one line.
pub fn arrange(results: &Results, placed: Vec<Placed>) -> Vec<Panel> {
    let mut cells: BTreeMap<(Link, usize), Vec<Series>> = BTreeMap::new();
    for Placed { mpi, link, series } in placed {
        if !series.points.is_empty() {
            join(cells.entry((link, mpi)).or_default(), series);
        }
    }
    let rows = distinct(cells.keys().map(|(link, _)| *link));
    let columns = distinct(cells.keys().map(|(_, mpi)| *mpi));
    let place = |all: &[_], one| all.iter().position(|other| *other == one).unwrap_or(0);
    let panel = |((link, mpi), series): ((Link, usize), Vec<Series>)| Panel {
        row: rows.iter().position(|row| *row == link).unwrap_or(0),
        column: place(&columns, mpi),
        title: words::place(results, mpi, link),
        series,
        ..Panel::default()
    };
    cells.into_iter().map(panel).collect()
}

fn join(all: &mut Vec<Series>, series: Series) {
    match all.iter_mut().find(|other| other.label == series.label) {
        Some(other) => {
            let is_new = |point: &Point| other.points.iter().all(|known| known.x != point.x);
            let new: Vec<Point> = series.points.into_iter().filter(is_new).collect();
            other.points.extend(new);
            chart::sort(&mut other.points);
        }
        None => all.push(series),
    }
}

/// In order, each once.
pub fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}

/// One quantity of a row against the size of its messages.
pub fn against_bytes(row: &TableRow, quantity: &str) -> Option<Point> {
    point(row.number("bytes")?, row.program(quantity)?)
}

/// `None` where there is no number.
pub fn point(x: f64, y: Spread) -> Option<Point> {
    let spread = y.low.zip(y.high).filter(|(low, high)| low.is_finite() && high.is_finite());
    (x.is_finite() && y.median.is_finite()).then_some(Point { x, y: y.median, spread })
}
