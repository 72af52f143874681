//! What a program left over at MPI_Finalize.

use super::markup::Html;
use super::Contents;
use crate::render::left_over::sentence;

pub fn section(html: &mut Html, contents: &Contents) {
    let report = &contents.report;
    match report.left_over.as_deref() {
        None => html.missing(
            "What was left over is not looked for: the run was looked at in part, or in parts.",
        ),
        Some([]) => {
            html.missing("Nothing was left over at MPI_Finalize, as far as it is recorded.")
        }
        Some(left) => html.within("ul", &[], |html| {
            for it in left {
                html.within("li", &[], |html| html.whole_text(&sentence(it, report.ranks.len())));
            }
        }),
    }
}
