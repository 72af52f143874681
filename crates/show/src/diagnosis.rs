//! What `lapscope hang` says of a job, for whoever shows it amid other things: the live view, the watchdog.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::render;
use lapscope_data::state::JobState;
use lapscope_data::symbols::Symbols;
use lapscope_data::text::style::Style;
use lapscope_launch::gather::look_twice;
use lapscope_watch::hang::diagnose;

/// Between the two looks where nobody has asked for a time.
const INTERVAL: Duration = Duration::from_millis(500);

/// What this command prints of a job, without colours, and the job as it was seen last.
///
/// # Errors
/// Nothing of it can be read.
pub fn describe(root: &Path, columns: usize) -> Result<(String, JobState)> {
    let (before, after) = look_twice(root, INTERVAL)?;
    let diagnosis = diagnose(&before, &after, &mut Symbols::new(after.modules.clone()));
    let style = Style { color: false, width: columns };
    let mut text = Vec::new();
    render::hang::write(&mut text, &root.to_string_lossy(), &diagnosis, None, style)?;
    Ok((String::from_utf8_lossy(&text).into_owned(), after))
}
