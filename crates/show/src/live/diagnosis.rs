//! What `lapscope hang` says, within the view.

use std::path::Path;

use crate::diagnosis::describe;

/// As lines of at most so many columns.
pub fn text(run: Option<&Path>, columns: usize) -> String {
    let Some(run) = run else { return "There is no run yet.".into() };
    match describe(run, columns.max(20)) {
        Ok((text, _)) => text,
        Err(error) => format!("nothing can be said: {error:#}"),
    }
}
