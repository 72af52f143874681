//! Charts as SVG, for paper and for dark pages: lines, bars, and what both stand on.

pub mod bars;
pub mod chart;
pub mod palette;
pub mod scale;
pub mod sheet;
pub mod svg;
pub mod sweep;

#[cfg(test)]
mod tests;
