//! Letters that a terminal has.

use ratatui::buffer::Buffer;

/// Whether the locale says UTF-8: setlocale(3) takes the first of these variables that is set.
pub fn has_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
    let locale = name.and_then(|name| std::env::var(name).ok()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}

/// Says in ASCII what it can of `buffer`.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let letter = cell.symbol().chars().next().map_or(' ', ascii);
            cell.set_char(letter);
        }
    }
}

fn ascii(letter: char) -> char {
    match letter {
        '█' | '▉' | '▊' | '▋' | '▌' | '▇' => '#',
        '▍' | '▎' | '▏' | '▂' | '▁' => '.',
        '▃' | '▄' => ':',
        '▅' | '▆' => '+',
        '·' | '─' => '-',
        '…' => '~',
        '↑' => '^',
        '↓' => 'v',
        'µ' => 'u',
        _ => '?',
    }
}

/// Lines of `buffer` without what is blank at their ends and below.
pub fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width).max(1);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let mut text = String::new();
        let mut hidden = 0usize; // cells that a wide letter in front of them covers
        for cell in cells {
            if hidden == 0 {
                text.push_str(cell.symbol());
                hidden = lapscope_data::text::style::display_width(cell.symbol()).max(1);
            }
            hidden -= 1;
        }
        text.trim_end().to_owned()
    };
    let mut lines: Vec<String> = buffer.content.chunks(width).map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
