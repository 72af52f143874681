//! Width and colour of the output.

use std::io::IsTerminal;

use unicode_width::UnicodeWidthChar;

use super::visible::{visible, STYLE_MARKS};

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub color: bool,
    /// Columns.
    pub width: usize,
}

/// Columns where nothing says how many there are.
const DEFAULT_WIDTH: usize = 100;
/// No output is laid out for less.
const LEAST_WIDTH: usize = 30;
/// Longer lines of prose are hard to read.
const MOST_PROSE: usize = 160;
/// What goes in front of text that has no room where it should stand.
const BELOW: &str = "    ";

impl Style {
    /// For standard output: colour only on a terminal and without NO_COLOR. As wide as the terminal; elsewhere as COLUMNS
    /// says, else 100 columns.
    pub fn for_stdout() -> Style {
        Style { width: stdout_columns().unwrap_or(DEFAULT_WIDTH), color: is_coloured() }
    }

    /// For rows of data: one line each, however long, where neither a terminal nor COLUMNS has a width.
    pub fn for_rows() -> Style {
        Style { width: stdout_columns().unwrap_or(usize::MAX), color: is_coloured() }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(1, text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(2, text)
    }

    pub fn alert(self, text: &str) -> String {
        self.paint(3, text)
    }

    /// By marks, which have no width and become colours where text goes out.
    fn paint(self, mark: usize, text: &str) -> String {
        let (begin, end) = (STYLE_MARKS[mark].0, STYLE_MARKS[0].0);
        match text {
            "" => String::new(),
            text if self.color => {
                let lines: Vec<String> =
                    text.split('\n').map(|line| format!("{begin}{line}{end}")).collect();
                lines.join("\n")
            }
            text => text.to_owned(),
        }
    }

    /// Breaks `text` at blanks; `first` and `rest` go in front of the first line and of the others. A word that is wider
    /// than its line is left whole. Control characters of `text`, line ends among them, are shown.
    pub fn wrap(self, text: &str, first: &str, rest: &str) -> String {
        self.wrap_painted(&visible(text), first, rest)
    }

    /// As [`Style::wrap`], of text that may be painted and is made visible already.
    pub fn wrap_painted(self, text: &str, first: &str, rest: &str) -> String {
        let width = self.width.min(MOST_PROSE);
        // Text that stands so far to the right that it, or its longest word, has no room begins on a line of its own.
        let indent = display_width(rest);
        let longest = words_of(text).map(display_width).max().unwrap_or(0);
        let has_no_room = indent > width / 3 || (indent > BELOW.len() && indent + longest > width);
        let is_deep = has_no_room && rest.trim().is_empty();
        let (first, rest) = if is_deep { (first.trim_end(), BELOW) } else { (first, rest) };
        let mut lines = vec![String::from(first)];
        if is_deep {
            lines.push(rest.to_owned());
            lines.retain(|line| !line.is_empty());
        }
        let mut used = lines.last().map_or(0, |line| display_width(line));
        let mut is_line_empty = true;
        for word in words_of(text) {
            let length = display_width(word);
            if !is_line_empty && used + 1 + length > width && length > 0 {
                lines.push(rest.to_owned());
                used = display_width(rest);
                is_line_empty = true;
            }
            let line = lines.last_mut().expect("there is a first line");
            if !is_line_empty {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
            is_line_empty = false;
        }
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n")
    }

    /// A title, and beside it what it is about; the latter goes on below where there is no room.
    pub fn headed(self, title: &str, about: &str) -> String {
        let mark = title.replace(' ', "\u{a0}"); // one word, so that it is painted whole
        let text = self.wrap(&format!("{mark}  {about}"), "", "  ");
        text.replacen(&mark, &self.bold(title), 1)
    }

    /// As [`Style::headed`], with what it is about in the background.
    pub fn headed_dimly(self, title: &str, about: &str) -> String {
        let text = self.headed(title, about);
        let title = self.bold(title);
        let about = text.strip_prefix(title.as_str()).unwrap_or(&text);
        let lines: Vec<String> = about.split('\n').map(|line| self.dim_words(line)).collect();
        format!("{title}{}", lines.join("\n"))
    }

    fn dim_words(self, line: &str) -> String {
        let words = line.trim_start();
        format!("{}{}", &line[..line.len() - words.len()], self.dim(words))
    }

    /// A label in bold, and what is said of it beside it, hanging.
    pub fn labelled(self, label: &str, text: &str) -> String {
        let indent = " ".repeat(display_width(label));
        let lines = self.wrap(text, label, &indent);
        lines.replacen(label.trim_end(), &self.bold(label.trim_end()), 1)
    }

    /// A sentence behind an exclamation mark.
    pub fn warning(self, text: &str) -> String {
        let text = self.wrap(text, "! ", "  ");
        format!("{}{}", self.alert("!"), &text[1..])
    }

    /// Cuts `text` to `width` columns, with an ellipsis.
    pub fn cut(text: &str, width: usize) -> String {
        if display_width(text) <= width {
            return text.to_owned();
        }
        let mut room = width.saturating_sub(1);
        let fits = |letter: &char| {
            let columns = letter.width().unwrap_or(0);
            let has_room = columns <= room;
            room = room.saturating_sub(columns);
            has_room
        };
        let mut cut: String = text.chars().take_while(fits).collect();
        cut.push('…');
        cut
    }
}

/// What blanks separate; a number and its unit are one.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    const UNITS: [&str; 14] =
        ["ns", "µs", "ms", "s", "h", "%", "B", "KiB", "MiB", "GiB", "TiB", "M", "G", "bytes"];
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.find(' ').unwrap_or(text.len());
        let behind = text.get(end + 1..).unwrap_or_default();
        let next = &behind[..behind.find(' ').unwrap_or(behind.len())];
        let is_unit = UNITS.contains(&next.trim_end_matches([',', '.', ';', ':', ')']));
        let is_number = text[..end].ends_with(|letter: char| letter.is_ascii_digit());
        let end = if is_number && is_unit { end + 1 + next.len() } else { end };
        rest = text.get(end + 1..);
        Some(&text[..end])
    })
}

/// Columns that `text` takes; painting takes none.
pub fn display_width(text: &str) -> usize {
    let width = |letter: char| match STYLE_MARKS.iter().any(|(mark, _)| *mark == letter) {
        true => 0,
        false => letter.width().unwrap_or(0),
    };
    text.chars().map(width).sum()
}

#[allow(clippy::disallowed_methods)] // only asked what it is
fn is_coloured() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !no_color
}

/// Columns of the terminal that standard output is, else by COLUMNS; `None` where neither says.
#[allow(clippy::disallowed_methods)] // only asked what it is
pub fn stdout_columns() -> Option<usize> {
    let stdout = std::io::stdout();
    let of_terminal =
        || terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    let of_variable = || std::env::var("COLUMNS").ok()?.trim().parse::<u16>().ok().map(usize::from);
    let columns = stdout.is_terminal().then(of_terminal).flatten().or_else(of_variable);
    columns.filter(|&columns| columns > 0).map(|columns| columns.max(LEAST_WIDTH))
}

/// A bar of eighths of a column, `columns` long for a fraction of 1.
pub fn bar(fraction: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks() {
        let style = Style { color: false, width: 12 };
        assert_eq!(style.wrap("one two three four", "- ", "  "), "- one two\n  three four");
        assert_eq!(
            style.wrap("\u{5bbd}\u{5bbd} \u{5bbd}\u{5bbd}\u{5bbd}\u{5bbd}", "", ""),
            "宽宽\n宽宽宽宽"
        );
        assert_eq!(style.wrap("forged\nline", "", ""), "forged\\nline");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let style = Style { color: false, width: 12 };
        assert_eq!(style.wrap("in all 25.3 ms, 40 calls", "", ""), "in all\n25.3 ms, 40\ncalls");
        assert_eq!(words_of("a  b 5 %").collect::<Vec<_>>(), ["a", "", "b", "5 %"]);
        assert_eq!(words_of("").count(), 1);
    }

    #[test]
    fn deep_text_goes_below_where_there_is_no_room() {
        let style = Style { color: false, width: 24 };
        assert_eq!(
            style.wrap("one two three four five", "   12 %  ", "         "),
            "   12 %\n    one two three four\n    five"
        );
        assert_eq!(
            style.wrap("see a/path/to/some/place", "12 %  ", "      "),
            "12 %\n    see\n    a/path/to/some/place"
        );
    }

    #[test]
    fn painting_takes_no_room() {
        let style = Style { color: true, width: 12 };
        let painted = style.wrap_painted(&format!("{} word", style.bold("bold")), "", "");
        assert_eq!(painted.lines().count(), 1);
        assert_eq!(display_width(&painted), "bold word".len());
        assert!(style
            .headed_dimly("TITLE", "one two three")
            .lines()
            .all(|line| display_width(line) <= 12));
    }

    #[test]
    fn bars() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(1.0 / 32.0, 4), "▏");
    }
}
