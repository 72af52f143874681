//! `docs/glossary.md` for a terminal: the page is the one source of what words mean.

use std::io::{self, Write};

use lapscope_data::text::style::Style;

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// # Errors
/// `out` cannot be written.
pub fn write_text(out: &mut dyn Write, style: Style) -> io::Result<()> {
    for (at, block) in blocks(GLOSSARY).iter().enumerate() {
        if at > 0 && !block.starts_with("- ") {
            writeln!(out)?;
        }
        writeln!(out, "{}", laid_out(block, style))?;
    }
    Ok(())
}

/// Headings, paragraphs and items of lists, each on one line.
fn blocks(markdown: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in markdown.lines().map(str::trim) {
        match blocks.last_mut() {
            Some(block) if is_open && !line.is_empty() && !line.starts_with("- ") => {
                block.push(' ');
                block.push_str(line);
            }
            _ if line.is_empty() => {}
            _ => blocks.push(line.to_owned()),
        }
        is_open = !line.is_empty() && !line.starts_with('#');
    }
    blocks
}

fn laid_out(block: &str, style: Style) -> String {
    if let Some(heading) = block.strip_prefix('#') {
        return style.bold(&heading.trim_start_matches('#').trim().to_uppercase());
    }
    if let Some(item) = block.strip_prefix("- ") {
        return style.wrap(&plain(item), "  ", "    ");
    }
    match block.rsplit_once("**: ") {
        Some((terms, meaning)) => {
            let term = style.wrap(&plain(terms), "  ", "  ");
            format!("{}\n{}", style.bold(&term), style.wrap(&plain(meaning), "      ", "      "))
        }
        None => style.wrap(&plain(block), "", ""),
    }
}

fn plain(markdown: &str) -> String {
    markdown.replace(['*', '`'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::text::style::display_width;

    fn text(width: usize) -> String {
        let mut out = Vec::new();
        write_text(&mut out, Style { color: false, width }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_page_is_laid_out_for_every_width() {
        for width in [40, 80, 100] {
            let text = text(width);
            assert!(text.lines().all(|line| display_width(line) <= width), "{text}");
            assert!(!text.contains(['*', '`', '#']), "{text}");
        }
    }

    #[test]
    fn terms_stand_above_their_meaning() {
        let text = text(100);
        assert!(text.starts_with("TERMS\n\nWhat the words in reports"), "{text}");
        assert!(text.contains("\n  eager\n      a send that is complete before"), "{text}");
        assert!(text.contains("\n  late sender, late receiver, late partner\n"), "{text}");
        assert!(text.contains("\n  [SP04] T. Saif"), "{text}");
    }
}
