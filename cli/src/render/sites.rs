//! Call sites one by one, each with its whole call path.

use std::io::{self, Write};

use super::report::write_site_table;
use super::style::Style;
use crate::analysis::sites::Site;
use crate::symbols::FrameName;

/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, sites: &[Site], style: Style) -> io::Result<()> {
    for (index, site) in sites.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_site_table(out, std::slice::from_ref(site), style)?;
        write_frames(out, site.frames.as_deref().unwrap_or_default(), "        ", style)?;
        if site.truncated {
            writeln!(out, "        … (cut by LAPSCOPE_CALLPATH_DEPTH)")?;
        }
    }
    Ok(())
}

/// One line a frame, innermost first.
///
/// # Errors
/// Of the writer.
pub fn write_frames(
    out: &mut dyn Write,
    frames: &[FrameName],
    indent: &str,
    style: Style,
) -> io::Result<()> {
    for frame in frames {
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        let line =
            Style::cut(&full(frame), style.width.saturating_sub(indent.len() + inlined.len()));
        writeln!(out, "{indent}{line}{inlined}")?;
    }
    Ok(())
}

/// "exchange  src/halo.c:42"; the whole path of the file, so that an editor can open it.
fn full(frame: &FrameName) -> String {
    match (&frame.function, &frame.file) {
        (Some(function), Some(file)) => {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{function}  {file}{line}")
        }
        _ => frame.short(),
    }
}
