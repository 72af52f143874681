//! What `lapscope hang` says, within the view.

use std::path::Path;

/// As lines of at most so many columns.
pub fn text(run: Option<&Path>, _columns: usize) -> String {
    match run {
        None => "There is no run yet.".into(),
        Some(run) => format!("type: lapscope hang {}", lapscope_data::text::shell::quote(run)),
    }
}
