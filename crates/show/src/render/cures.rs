//! `lapscope help cures`: what advice asks for, as code.

use std::io::{self, Write};

use super::advice::write_snippet;
use lapscope_advise::how::{template, CodedCure, Language, CURES};
use lapscope_data::text::style::Style;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, style: Style) -> io::Result<()> {
    for (number, CodedCure { key, does, .. }) in CURES.into_iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", style.bold(&format!("{does}.")))?;
        for language in Language::ALL {
            writeln!(out, "\n  in {}", language.name())?;
            write_snippet(out, &template(key, language), style)?;
        }
    }
    Ok(())
}
