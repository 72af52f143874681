//! Requests as a table.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::{MemoryKind, Nanos};
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, percent, time};
use lapscope_report::requests::Request;

const COLUMNS: [(&str, Align); 12] = [
    ("rank", Align::Right),
    ("at", Align::Right),
    ("call", Align::Left),
    ("peer", Align::Right),
    ("tag", Align::Right),
    ("bytes", Align::Right),
    ("post", Align::Right),
    ("window", Align::Right),
    ("computing", Align::Right),
    ("completing", Align::Right),
    ("unsuccessful tests", Align::Right),
    ("ended", Align::Left),
];

/// The first requests of `found`.
///
/// # Errors
/// Of the writer.
pub fn write(
    out: &mut dyn Write,
    requests: &[Request],
    found: u64,
    style: Style,
) -> io::Result<()> {
    if requests.is_empty() {
        return writeln!(out, "no such request");
    }
    let mut table = Table::new(&COLUMNS).giving_up(&[
        "unsuccessful tests",
        "ended",
        "post",
        "computing",
        "tag",
    ]);
    for request in requests {
        table.row(cells(request), Some(places(request)));
    }
    table.write(out, style)?;
    let note = format!(
        "{} of {found} requests. at: since MPI_Init returned on that rank; completing: the whole \
         call, also when it completed several (of N)",
        requests.len()
    );
    writeln!(out, "\n{}", style.dim(&style.wrap(&note, "  ", "  ")))
}

fn cells(request: &Request) -> Vec<String> {
    let text = |number: Option<i64>| number.map(|n| n.to_string()).unwrap_or_default();
    let optional = |ns: Option<Nanos>| ns.map(time).unwrap_or_default();
    let together = match request.completed_together {
        Some(count) if count > 1 => format!(" (of {count})"),
        _ => String::new(),
    };
    let computing =
        request.overlap_window_ns.zip(request.compute_ns).filter(|(window, _)| window.0 > 0);
    vec![
        request.rank.to_string(),
        format!("{:.6} s", request.post_begin_after_init_ns.seconds()),
        match &request.init_call {
            Some(init) => format!("{} of {init}", request.call),
            None => request.call.clone(),
        },
        match (request.peer, request.posted_peer) {
            (Some(peer), _) => peer.to_string(),
            (None, Some(-1)) => "any".to_owned(),
            (None, Some(-2)) => "null".to_owned(),
            (None, _) => String::new(),
        },
        text(request.tag),
        bytes(request.bytes),
        time(request.post_ns),
        optional(request.overlap_window_ns),
        computing.map(|(window, compute)| percent(compute.share_of(window))).unwrap_or_default(),
        request.completion_ns.map(|ns| format!("{}{together}", time(ns))).unwrap_or_default(),
        if request.unsuccessful_tests > 0 {
            request.unsuccessful_tests.to_string()
        } else {
            String::new()
        },
        request.ended.clone().unwrap_or_default(),
    ]
}

fn places(request: &Request) -> String {
    let mut text = request.site.clone().unwrap_or_else(|| "(no call path)".to_owned());
    if let Some(received) = request.receive_bytes {
        let peer = request.receive_peer.map(|peer| format!(" from {peer}")).unwrap_or_default();
        text += &format!(", receives {}{peer}", bytes(received));
    }
    if let Some(memory) = request.memory.filter(|memory| *memory != MemoryKind::Host) {
        text += &format!(", in {} memory", memory.word());
    }
    if let Some(call) = &request.completion_call {
        let place = request.completion_site.as_deref().unwrap_or_default();
        text += &format!(", ended by {call} {place}");
    }
    text.trim_end().to_owned()
}
