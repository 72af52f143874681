//! Comma-separated values: a head, then a line a row; quoted where needed (RFC 4180, with line feeds alone).

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use lapscope_analysis::diff::SitePair;
use lapscope_analysis::overlap::sums::Cause;
use lapscope_analysis::pending::PendingItem;
use lapscope_analysis::sites::Site;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::visible::visible;

/// Writes flat rows one after the other; the head comes with the first, or from `columns` when there is none.
#[derive(Debug, Default)]
pub struct CsvWriter {
    has_head: bool,
}

impl CsvWriter {
    /// Writes `row`, which serialises to an object of plain values.
    ///
    /// # Errors
    /// Of the writer.
    pub fn write(&mut self, out: &mut dyn Write, row: &impl Serialize) -> io::Result<()> {
        let Value::Object(cells) = serde_json::to_value(row)? else { return Ok(()) };
        if !self.has_head {
            self.has_head = true;
            write_line(out, cells.keys().map(String::as_str))?;
        }
        let cells: Vec<String> = cells.values().map(plain).collect();
        write_line(out, cells.iter().map(String::as_str))
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes one line. Control characters of a cell are shown (`\x1b`), so that a line of the file is a row. What a spreadsheet
/// would take for a formula, as it begins with `=`, `+`, `-` or `@` and is no number, gets an apostrophe in front.
///
/// # Errors
/// Of the writer.
pub fn write_line<'a>(
    out: &mut dyn Write,
    cells: impl IntoIterator<Item = &'a str>,
) -> io::Result<()> {
    for (column, cell) in cells.into_iter().enumerate() {
        if column > 0 {
            out.write_all(b",")?;
        }
        let cell = visible(cell);
        let apostrophe = if is_formula(&cell) { "'" } else { "" };
        if cell.contains([',', '"']) {
            write!(out, "\"{apostrophe}{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(out, "{apostrophe}{cell}")?;
        }
    }
    out.write_all(b"\n")
}

fn is_formula(cell: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
    let is_number = || cell.chars().all(is_digit) && cell.parse::<f64>().is_ok();
    cell.trim_start().starts_with(['=', '+', '-', '@']) && !is_number()
}

/// Call sites. Keys are those of the JSON; a place is function, file and line, a call path one cell.
///
/// # Errors
/// Of the writer.
pub fn write_sites(out: &mut dyn Write, sites: &[Site]) -> io::Result<()> {
    const HEAD: &str = "call,kind,function,file,line,module,address,ranks,calls,bytes,time_ns,share,inside_ns,\
        exposed_ns,ended_requests,overlap_window_ns,timed_requests,mpi_ns,compute_ns,unsuccessful_tests,pending,completed_in,path";
    writeln!(out, "{HEAD}")?;
    for site in sites {
        let frame = site.site.as_ref();
        let numbers = &site.numbers;
        let path = site.frames.iter().flatten().map(|frame| frame.short()).collect::<Vec<_>>();
        let waited = site.completed_in.as_ref().map(|waited| {
            let place = waited.site.as_ref().map(|frame| frame.short()).unwrap_or_default();
            format!("{} {place}", waited.call)
        });
        let text = |text: Option<&String>| text.cloned().unwrap_or_default();
        let cells = [
            site.call.clone(),
            plain(&serde_json::to_value(site.kind)?),
            text(frame.and_then(|frame| frame.function.as_ref())),
            text(frame.and_then(|frame| frame.file.as_ref())),
            frame.and_then(|frame| frame.line).map(|line| line.to_string()).unwrap_or_default(),
            text(frame.and_then(|frame| frame.module.as_ref())),
            frame.map(|frame| frame.address.to_string()).unwrap_or_default(),
            site.ranks.to_string(),
            numbers.calls.to_string(),
            numbers.bytes.to_string(),
            numbers.time_ns.0.to_string(),
            numbers.share.to_string(),
            numbers.inside_ns.0.to_string(),
            numbers.exposed_ns.0.to_string(),
            numbers.ended_requests.to_string(),
            numbers.overlap_window_ns.0.to_string(),
            numbers.timed_requests.to_string(),
            numbers.mpi_ns.0.to_string(),
            numbers.compute_ns.0.to_string(),
            numbers.unsuccessful_tests.to_string(),
            numbers.pending.to_string(),
            waited.unwrap_or_default(),
            path.join(" < "),
        ];
        write_line(out, cells.iter().map(String::as_str))?;
    }
    Ok(())
}

/// Call sites of two runs; a time in three columns: run a, run b, difference.
///
/// # Errors
/// Of the writer.
pub fn write_site_pairs(out: &mut dyn Write, sites: &[SitePair]) -> io::Result<()> {
    const HEAD: &str = "call,kind,presence,function,file,line_a,line_b,calls_a,calls_b,bytes_a,bytes_b,time_a_ns,time_b_ns,\
        time_difference_ns,inside_a_ns,inside_b_ns,inside_difference_ns,completion_a_ns,completion_b_ns,\
        completion_difference_ns,late_partner_a_ns,late_partner_b_ns,late_partner_difference_ns,no_remote_progress_a_ns,\
        no_remote_progress_b_ns,no_remote_progress_difference_ns,no_local_progress_a_ns,no_local_progress_b_ns,no_local_progress_difference_ns,\
        transfer_a_ns,transfer_b_ns,transfer_difference_ns,no_processor_a_ns,no_processor_b_ns,no_processor_difference_ns";
    writeln!(out, "{HEAD}")?;
    for site in sites {
        let place = site.site_a.as_ref().or(site.site_b.as_ref());
        let line = |site: &Option<FrameName>| {
            let line = site.as_ref().and_then(|frame| frame.line);
            line.map(|line| line.to_string()).unwrap_or_default()
        };
        let mut cells = vec![
            site.call.clone(),
            plain(&serde_json::to_value(site.kind)?),
            plain(&serde_json::to_value(site.presence)?),
            place.and_then(|place| place.function.clone()).unwrap_or_default(),
            place.and_then(|place| place.file.clone()).unwrap_or_default(),
            line(&site.site_a),
            line(&site.site_b),
        ];
        let numbers = [site.calls_a, site.calls_b, site.bytes_a, site.bytes_b];
        cells.extend(numbers.map(|number| number.to_string()));
        let times = [site.time, site.inside, site.completion];
        let causes = Cause::ALL.map(|cause| site.exposed.of(cause));
        for pair in times.into_iter().chain(causes) {
            cells.extend([pair.a_ns, pair.b_ns, pair.difference_ns].map(|ns| ns.0.to_string()));
        }
        write_line(out, cells.iter().map(String::as_str))?;
    }
    Ok(())
}

/// What did not end.
///
/// # Errors
/// Of the writer.
pub fn write_pending(out: &mut dyn Write, items: &[PendingItem]) -> io::Result<()> {
    writeln!(
        out,
        "rank,host,ended,what,call,peer,posted_peer,tag,bytes,communicator,begin_ns,begin_after_init_ns,path"
    )?;
    for item in items {
        let number = |number: Option<i64>| number.map(|n| n.to_string()).unwrap_or_default();
        let path: Vec<String> = item.frames.iter().map(|frame| frame.short()).collect();
        let cells = [
            item.rank.to_string(),
            item.host.clone(),
            plain(&serde_json::to_value(item.ended)?),
            plain(&serde_json::to_value(item.what)?),
            item.call.clone(),
            item.peer.map(|rank| rank.to_string()).unwrap_or_default(),
            number(item.posted_peer),
            number(item.tag),
            item.bytes.to_string(),
            item.communicator.clone().unwrap_or_default(),
            item.begin_ns.0.to_string(),
            item.begin_after_init_ns.0.to_string(),
            path.join(" < "),
        ];
        write_line(out, cells.iter().map(String::as_str))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        #[derive(Serialize)]
        struct Row {
            a: &'static str,
            b: Option<u8>,
        }
        let mut out = Vec::new();
        let mut csv = CsvWriter::default();
        csv.write(&mut out, &Row { a: "x,\"y\"", b: None }).unwrap();
        csv.write(&mut out, &Row { a: "z", b: Some(1) }).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,b\n\"x,\"\"y\"\"\",\nz,1\n");
    }

    #[test]
    fn names_are_no_formulas_and_one_row_is_one_line() {
        let mut out = Vec::new();
        let cells =
            ["=1+2", "@SUM(1,2)", "-cmd", "+x", " =y", "-5", "+1.5e-3", "a=b", "two\nlines"];
        write_line(&mut out, cells).unwrap();
        let expected = "'=1+2,\"'@SUM(1,2)\",'-cmd,'+x,' =y,-5,+1.5e-3,a=b,two\\nlines\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
