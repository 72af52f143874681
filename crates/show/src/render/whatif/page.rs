//! What would be as a page of HTML that stands alone: figures inline, and the table below.

use std::fmt::Write;

use super::rows::{self, WhatIfRow};
use crate::plot::sweep;
use lapscope_data::model::Nanos;
use lapscope_data::text::html::escape;
use lapscope_data::text::units::time;
use lapscope_predict::whatif::document::WhatIf;

const STYLE: &str = "\
:root{color-scheme:light dark;font-family:system-ui,sans-serif}body{margin:1.5rem auto;max-width:60rem;padding:0 1rem}\
svg{max-width:100%;height:auto}table{border-collapse:collapse}th,td{padding:.25rem .75rem;text-align:right;\
border-bottom:1px solid #8884}th:first-child,td:first-child{text-align:left}.stuck{font-weight:600}";

/// The whole file.
pub fn page(answer: &WhatIf) -> String {
    let mut figures = Vec::new();
    if !answer.sweeps.is_empty() {
        figures.push(sweep::sweeps(answer));
    }
    if !answer.scenarios.is_empty() {
        figures.push(sweep::scenarios(answer));
    }
    let mut body = format!("<h1>lapscope whatif: {}</h1>\n", escape(&answer.run));
    let facts = format!("{} · {}", answer.recorded.command, super::identity(answer));
    let _ = writeln!(body, "<p>{}</p>", escape(&facts));
    let stuck = answer
        .scenarios
        .iter()
        .filter_map(|scenario| Some((scenario, scenario.deadlock.as_ref()?)));
    for (scenario, deadlock) in stuck {
        let text = format!("{}: {}", scenario.name, deadlock.says);
        let _ = writeln!(body, "<p class=\"stuck\">{}</p>", escape(&text));
    }
    for (number, figure) in figures.iter().enumerate() {
        let _ = writeln!(body, "<figure>{}</figure>", inline(figure, number));
    }
    body.push_str(&table(&rows::all(answer)));
    let title = escape(&format!("lapscope whatif: {}", answer.run));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

/// Within a page each identifier stands for one element alone.
fn inline(svg: &str, number: usize) -> String {
    let svg = svg.replacen(
        "aria-labelledby=\"title desc\"",
        &format!("aria-labelledby=\"title{number} desc{number}\""),
        1,
    );
    let svg = svg.replacen("id=\"title\"", &format!("id=\"title{number}\""), 1);
    svg.replacen("id=\"desc\"", &format!("id=\"desc{number}\""), 1)
}

fn table(rows: &[WhatIfRow<'_>]) -> String {
    let mut text = String::from("<table>\n<tr>");
    for head in ["", "run time", "change", "exposed"] {
        let _ = write!(text, "<th>{head}</th>");
    }
    text.push_str("</tr>\n");
    for row in rows {
        let name = match (row.kind, row.value) {
            ("recorded", _) => "as recorded".to_owned(),
            ("identity", _) => "as it was, replayed".to_owned(),
            (_, Some(value)) => format!("{} {value}", row.name),
            _ => row.name.to_owned(),
        };
        let shown = |ns: Option<Nanos>| ns.map_or_else(String::new, time);
        let run = row.run_ns.map_or_else(|| super::DEADLOCK.to_owned(), time);
        let change = row.change.map_or_else(String::new, super::signed);
        let cells = [name, run, change, shown(row.exposed_ns)];
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = writeln!(text, "<tr>{cells}</tr>");
    }
    text + "</table>\n"
}
