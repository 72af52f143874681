//! The figures of the papers, from what `lapscope bench` measured: SVG for paper and for dark pages.

mod agreement;
mod collective;
mod ghost_cells;
mod overlap;
mod panels;
mod progress;
mod timeline;
mod words;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::results::Results;
use lapscope_show::plot::chart;

/// Why a figure is not there.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct Error {
    path: PathBuf,
    source: std::io::Error,
}

pub type Result<T> = std::result::Result<T, Error>;

/// An image and the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    pub name: String,
    pub svg: String,
}

impl Figure {
    fn draw(name: &str, chart: &chart::Chart) -> Figure {
        Figure { name: format!("{name}.svg"), svg: chart::draw(chart) }
    }
}

/// Writes all figures that there are results for; returns their files. The directory is made when it is not there.
pub fn draw(results: &Results, directory: &Path) -> Result<Vec<PathBuf>> {
    let figures = figures(results);
    if !figures.is_empty() {
        std::fs::create_dir_all(directory).map_err(|source| error(directory, source))?;
    }
    figures.iter().map(|figure| write(figure, directory)).collect()
}

/// All figures that there are results for.
pub fn figures(results: &Results) -> Vec<Figure> {
    let mut figures = overlap::figures(results);
    figures.extend(progress::figures(results));
    figures.extend(timeline::figures(results));
    figures.extend(collective::figure(results));
    figures.extend(ghost_cells::figure(results));
    figures.extend(agreement::figure(results));
    figures
}

fn write(figure: &Figure, directory: &Path) -> Result<PathBuf> {
    let path = directory.join(&figure.name);
    std::fs::write(&path, &figure.svg).map_err(|source| error(&path, source))?;
    Ok(path)
}

fn error(path: &Path, source: std::io::Error) -> Error {
    Error { path: path.to_owned(), source }
}
