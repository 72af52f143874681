//! Width and colour of the output.

use std::io::IsTerminal;

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub color: bool,
    /// Columns.
    pub width: usize,
}

impl Style {
    /// For standard output: colour only on a terminal and without NO_COLOR; 100 columns when piped.
    pub fn for_stdout() -> Style {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let is_terminal = std::io::stdout().is_terminal();
        Style {
            color: is_terminal && !no_color,
            width: width.filter(|_| is_terminal).map_or(100, |width| width.clamp(60, 160)),
        }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub fn alert(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Breaks `text` at blanks; `first` and `rest` go in front of the first line and of the others.
    pub fn wrap(self, text: &str, first: &str, rest: &str) -> String {
        let mut lines = vec![String::from(first)];
        let mut used = first.chars().count();
        let mut is_line_empty = true;
        for word in text.split(' ') {
            let length = word.chars().count();
            if !is_line_empty && used + 1 + length > self.width {
                lines.push(rest.to_owned());
                used = rest.chars().count();
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
        lines.join("\n")
    }

    /// Cuts `text` to `width` columns, with an ellipsis.
    pub fn cut(text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
        cut.push('…');
        cut
    }
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
    }

    #[test]
    fn bars() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(1.0 / 32.0, 4), "▏");
    }
}
