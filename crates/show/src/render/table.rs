//! Columns as wide as what is in them. Where they are wider than the output, the last columns go below their row, each
//! with its head in front: nothing is left out but bars.

use std::borrow::Cow;
use std::io::{self, Write};

use lapscope_data::text::style::{bar, display_width, Style};
use lapscope_data::text::visible::visible;

/// Where a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
    /// Bars of at most so many columns, which say what numbers beside them say, too.
    Bar(usize),
}

/// What stands in a row and a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A fraction of 1.
    Bar(f64),
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(match visible(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(shown) => shown,
        })
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(visible(text).into_owned())
    }
}

impl Cell {
    fn is_empty(&self) -> bool {
        match self {
            Cell::Text(text) => text.is_empty(),
            Cell::Bar(fraction) => *fraction <= 0.0,
        }
    }

    fn text(&self) -> &str {
        match self {
            Cell::Text(text) => text,
            Cell::Bar(_) => "",
        }
    }
}

#[derive(Debug)]
struct Column {
    head: Cow<'static, str>,
    align: Align,
}

/// A table with a head; a row may have lines of text under it.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<(Vec<Cell>, Vec<String>)>,
    indent: usize,
    /// Heads of columns that go below before the last ones do.
    less_important: &'static [&'static str],
}

const GAP: usize = 2;
/// Columns of an output below which every one of them counts.
const NARROW: usize = 60;
/// Columns that the text under a row stands in.
const BELOW: usize = 6;
/// A shorter bar tells nothing.
const LEAST_BAR: usize = 6;
/// The last column is broken into lines when it has so much room.
const LEAST_TEXT: usize = 24;

/// Which columns stand in the row, how wide, and how far apart.
struct Layout {
    shown: Vec<(usize, usize)>,
    below: Vec<usize>,
    gap: usize,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        let column = |&(head, align): &(&'static str, Align)| Column { head: head.into(), align };
        Table::with_columns(columns.iter().map(column).collect())
    }

    /// With heads that somebody else chose, all to the left, but those of numbers.
    pub fn with_heads(heads: &[(String, Align)]) -> Self {
        let column = |(head, align): &(String, Align)| Column {
            head: visible(head).into_owned().into(),
            align: *align,
        };
        Table { indent: 0, ..Table::with_columns(heads.iter().map(column).collect()) }
    }

    fn with_columns(columns: Vec<Column>) -> Self {
        Table { columns, rows: Vec::new(), indent: 2, less_important: &[] }
    }

    /// Stands so far to the right.
    pub fn indented(self, indent: usize) -> Self {
        Table { indent, ..self }
    }

    /// Where there is no room, columns with these heads go below first, in this order.
    pub fn giving_up(self, heads: &'static [&'static str]) -> Self {
        Table { less_important: heads, ..self }
    }

    /// `cells` are as many as there are columns; `below` are texts on lines of their own.
    pub fn row<C: Into<Cell>>(&mut self, cells: Vec<C>, below: impl IntoIterator<Item = String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push((cells.into_iter().map(Into::into).collect(), Vec::from_iter(below)));
    }

    /// # Errors
    /// Of the writer.
    pub fn write(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let layout = self.layout(style.width);
        let heads: Vec<Cell> =
            self.columns.iter().map(|column| Cell::Text(column.head.to_string())).collect();
        if layout.shown.iter().any(|&(column, _)| !heads[column].is_empty()) {
            for line in self.lines(&layout, &heads) {
                writeln!(out, "{}", style.dim(&line))?;
            }
        }
        for (cells, below) in &self.rows {
            for line in self.lines(&layout, cells) {
                writeln!(out, "{line}")?;
            }
            let folded = self.folded(&layout, cells);
            for line in below.iter().chain(&folded).filter(|line| !line.is_empty()) {
                writeln!(out, "{}", style.wrap(line, &" ".repeat(BELOW), &" ".repeat(BELOW + 2)))?;
            }
        }
        Ok(())
    }

    // --- what fits -----------------------------------------------------------------------------------------------------

    fn layout(&self, room: usize) -> Layout {
        let mut below: Vec<usize> = Vec::new();
        let mut used: Vec<usize> =
            (0..self.columns.len()).filter(|&column| self.is_used(column)).collect();
        loop {
            // Columns close to each other are hard to tell apart; on a narrow output fewer of them are worse.
            let gaps = if room < NARROW { &[GAP, 1][..] } else { &[GAP] };
            for &gap in gaps {
                if let Some(shown) = self.fit(&used, room, gap) {
                    return Layout { shown, below, gap };
                }
            }
            let Some(column) = self.next_below(&used) else {
                let shown = used.iter().map(|&column| (column, self.width(column))).collect();
                return Layout { shown, below, gap: 1 };
            };
            used.retain(|&other| other != column);
            below.push(column);
            below.sort_unstable();
        }
    }

    /// The widths at which these columns fit: bars get shorter, then go; then the last column is broken into lines.
    fn fit(&self, used: &[usize], room: usize, gap: usize) -> Option<Vec<(usize, usize)>> {
        let taken = |widths: &[(usize, usize)]| {
            let shown = widths.iter().filter(|(_, width)| *width > 0);
            let columns: usize = shown.map(|(_, width)| width + gap).sum();
            (self.indent_at(gap) + columns).saturating_sub(gap)
        };
        let full: Vec<(usize, usize)> =
            used.iter().map(|&column| (column, self.width(column))).collect();
        let is_long = |&&(column, width): &&(usize, usize)| {
            self.columns[column].align == Align::Left && width > LEAST_TEXT
        };
        let texts =
            if full.last().filter(is_long).is_some() { &[false, true][..] } else { &[false] };
        for &is_broken in texts {
            for least_bar in [usize::MAX, LEAST_BAR, 0] {
                let mut widths = full.clone();
                if let Some(last) = widths.last_mut().filter(|_| is_broken) {
                    last.1 = LEAST_TEXT;
                }
                for (_, width) in widths.iter_mut().filter(|(column, _)| self.is_bar(*column)) {
                    *width = least_bar.min(*width);
                }
                if let Some(spare) = room.checked_sub(taken(&widths)) {
                    return Some(self.share_out(widths, &full, spare, is_broken));
                }
            }
        }
        None
    }

    fn indent_at(&self, gap: usize) -> usize {
        if self.indent > GAP {
            self.indent
        } else {
            self.indent.min(gap)
        }
    }

    /// What is over goes to bars that are there, then to the last column.
    fn share_out(
        &self,
        mut widths: Vec<(usize, usize)>,
        full: &[(usize, usize)],
        mut spare: usize,
        is_broken: bool,
    ) -> Vec<(usize, usize)> {
        let bars =
            widths.iter().filter(|&&(column, width)| self.is_bar(column) && width > 0).count();
        let each = if bars > 0 && !is_broken { spare / bars } else { 0 };
        for ((column, width), (_, most)) in widths.iter_mut().zip(full) {
            if self.is_bar(*column) && *width > 0 {
                let more = each.min(most - *width);
                *width += more;
                spare -= more;
            }
        }
        if let (true, Some(last), Some((_, most))) = (is_broken, widths.last_mut(), full.last()) {
            last.1 = (last.1 + spare).min(*most);
        }
        widths.retain(|&(_, width)| width > 0);
        widths
    }

    fn is_bar(&self, column: usize) -> bool {
        matches!(self.columns[column].align, Align::Bar(_))
    }

    /// The least important of these columns; `None` when there is only one.
    fn next_below(&self, used: &[usize]) -> Option<usize> {
        if used.len() < 2 {
            return None;
        }
        let named =
            |head: &&str| used.iter().copied().find(|&column| self.columns[column].head == **head);
        let least = self.less_important.iter().find_map(named);
        least.or_else(|| {
            // A last column of text says what the row is about, where the first does not.
            let is_named = self.columns[used[0]].align == Align::Left;
            let is_label = |column: usize| {
                !is_named
                    && Some(&column) == used.last()
                    && self.columns[column].align == Align::Left
            };
            used.iter().rev().copied().find(|&column| !is_label(column))
        })
    }

    /// A column without a single cell is left out.
    fn is_used(&self, column: usize) -> bool {
        self.rows.iter().any(|(cells, _)| !cells[column].is_empty())
    }

    fn width(&self, column: usize) -> usize {
        if let Align::Bar(most) = self.columns[column].align {
            return most;
        }
        let cells = self.rows.iter().map(|(cells, _)| display_width(cells[column].text()));
        cells.chain([display_width(&self.columns[column].head)]).max().unwrap_or(0)
    }

    // --- lines -----------------------------------------------------------------------------------------------------------

    /// The row, and further lines where its last cell is broken.
    fn lines(&self, layout: &Layout, cells: &[Cell]) -> Vec<String> {
        let mut line = " ".repeat(self.indent_at(layout.gap));
        let mut more = Vec::new();
        for (place, &(column, width)) in layout.shown.iter().enumerate() {
            if place > 0 {
                line.push_str(&" ".repeat(layout.gap));
            }
            let text = match &cells[column] {
                Cell::Bar(fraction) => Cow::Owned(bar(*fraction, width)),
                Cell::Text(text)
                    if place + 1 == layout.shown.len() && display_width(text) > width =>
                {
                    let hanging = " ".repeat(display_width(&line));
                    let broken = broken(text, width);
                    more = broken[1..].iter().map(|part| format!("{hanging}{part}")).collect();
                    Cow::Owned(broken[0].clone())
                }
                Cell::Text(text) => Cow::Borrowed(text.as_str()),
            };
            let pad = " ".repeat(width.saturating_sub(display_width(&text)));
            match self.columns[column].align {
                Align::Right => line.extend([pad.as_str(), &text]),
                Align::Left | Align::Bar(_) => line.extend([&text, pad.as_str()]),
            }
        }
        let mut lines = vec![line.trim_end().to_owned()];
        lines.extend(more);
        lines
    }

    /// "in call 4.33 ms, window 130 ms"
    fn folded(&self, layout: &Layout, cells: &[Cell]) -> Option<String> {
        let full = layout.below.iter().filter(|&&column| !cells[column].text().is_empty());
        let parts: Vec<String> = full
            .map(|&column| match self.columns[column].head.as_ref() {
                "" => cells[column].text().to_owned(),
                head => format!("{head} {}", cells[column].text()),
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Lines of `width` columns.
fn broken(text: &str, width: usize) -> Vec<String> {
    let style = Style { color: false, width };
    style.wrap_painted(text, "", "").lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(table: &Table, width: usize) -> Vec<String> {
        let mut out = Vec::new();
        table.write(&mut out, Style { color: false, width }).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    fn sites() -> Table {
        let mut table = Table::new(&[
            ("share", Align::Right),
            ("call", Align::Left),
            ("calls", Align::Right),
            ("bytes", Align::Right),
        ]);
        table.row(vec!["8.7 %", "MPI_Irecv", "48", "192 MiB"], Some("exchange halo.c:76".into()));
        table.row(vec!["0.6 %", "MPI_Barrier", "8", ""], None);
        table
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let expected = [
            "  share  call         calls    bytes",
            "  8.7 %  MPI_Irecv       48  192 MiB",
            "      exchange halo.c:76",
            "  0.6 %  MPI_Barrier      8",
        ];
        assert_eq!(lines(&sites(), 36), expected);
    }

    #[test]
    fn what_has_no_room_goes_below_with_its_head() {
        let expected = [
            " share call        calls",
            " 8.7 % MPI_Irecv      48",
            "      exchange halo.c:76",
            "      bytes 192 MiB",
            " 0.6 % MPI_Barrier     8",
        ];
        assert_eq!(lines(&sites(), 24), expected);
        let given_up = sites().giving_up(&["calls"]);
        assert!(lines(&given_up, 28).contains(&"      calls 48".to_owned()));
    }

    #[test]
    fn bars_get_shorter_and_the_last_column_is_broken() {
        let mut table = Table::new(&[("", Align::Right), ("", Align::Bar(20)), ("", Align::Left)]);
        let meaning = "could have moved before, in its own window";
        table.row(vec![Cell::from("69 %"), Cell::Bar(0.5), Cell::from(meaning)], None);
        assert_eq!(lines(&table, 80), [format!("  69 %  {}            {meaning}", "█".repeat(10))]);
        assert_eq!(
            lines(&table, 60),
            [format!("  69 %  ████      {meaning}")],
            "8 columns are left for the bar"
        );
        let narrow = lines(&table, 40);
        assert!(
            narrow.len() == 2 && narrow.iter().all(|line| display_width(line) <= 40),
            "{narrow:?}"
        );
        assert_eq!(narrow[1].trim_start(), "in its own window");
    }

    #[test]
    fn values_cannot_forge_rows() {
        let mut table = Table::new(&[("name", Align::Left)]);
        table.row(vec!["a\n\x1b[2Jb"], Some("c\x1b[0m".into()));
        assert_eq!(lines(&table, 80), ["  name", "  a\\n\\x1b[2Jb", "      c\\x1b[0m"]);
    }
}
