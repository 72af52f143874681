//! Overlap by rank.

use std::io::{self, Write};

use super::{cells, new_table};
use crate::render::alike;
use lapscope_data::model::RankList;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::MeanOfRanks;
use lapscope_measure::alike::MOST_ROWS;
use lapscope_measure::overlap::groups::RankOverlap;
use lapscope_measure::overlap::Overlap;
use lapscope_report::pipeline::overlap::OverlapDocument;

/// Writes in what many ranks differ; a line a rank of few, and of those that are listed.
pub(super) fn write(
    out: &mut dyn Write,
    document: &OverlapDocument,
    listed: Option<&RankList>,
    style: Style,
) -> io::Result<()> {
    let rows = &document.overlap.ranks;
    let are_few = rows.len() <= MOST_ROWS;
    match are_few {
        true => writeln!(out, "\n{}", style.bold("RANKS"))?,
        false => alike::write(out, &document.alike, style)?,
    }
    let mut table = new_table();
    let is_listed = |row: &&RankOverlap| listed.map_or(are_few, |list| list.contains(row.rank));
    for row in rows.iter().filter(is_listed) {
        table.row(rank_cells(row), None);
    }
    table.write(out, style)
}

fn rank_cells(row: &RankOverlap) -> Vec<String> {
    cells(format!("rank {}", row.rank), None, &row.numbers, MeanOfRanks(1))
}

/// Whether ranks are worth a section.
pub(super) fn differ(overlap: &Overlap) -> bool {
    if overlap.ranks.len() > MOST_ROWS {
        return true;
    }
    let exposed = || overlap.ranks.iter().map(|row| row.numbers.exposed_ns);
    let (least, most) = (exposed().min().unwrap_or_default(), exposed().max().unwrap_or_default());
    overlap.ranks.len() > 1 && most.0 > least.0 + least.0 / 4
}
