//! What the script draws, in few bytes: grids as base64 of varints (seven bits a byte, the lowest first), all else as arrays.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde_json::{json, Value};

use super::escape::{cut_to, script_json};
use crate::render::cause;
use lapscope_data::model::Nanos;
use lapscope_data::text::visible::visible;
use lapscope_measure::overlap::sums::Cause;
use lapscope_report::pictures::timeline::{CallSpan, RequestLife, Role, Timeline, Track};
use lapscope_report::pictures::{Pictures, RankBin};

const MOST_LETTERS: usize = 160;

/// JSON that may stand in a script element.
pub fn data(pictures: &Pictures) -> String {
    let cells = pictures.matrix.cells.iter();
    let waited = |it| pictures.waited_at_ends(it).0;
    let cells = cells.map(|it| json!([it.from, it.to, it.messages, it.bytes.0, waited(it)]));
    let all = json!({
        "bins": bins(pictures),
        "causes": causes(),
        "heat": heat(pictures),
        "matrix": cells.collect::<Vec<_>>(),
        "timeline": pictures.timeline.as_ref().map(timeline),
    });
    script_json(&all.to_string())
}

/// The same of two runs: ranks over time alone.
pub fn pair(a: &Pictures, b: &Pictures) -> String {
    let side = |pictures| json!({ "bins": bins(pictures), "heat": heat(pictures) });
    script_json(&json!({ "causes": causes(), "a": side(a), "b": side(b) }).to_string())
}

fn causes() -> Value {
    Cause::ALL.iter().map(|&it| json!([cause::name(it), cause::meaning(it)])).collect()
}

fn bins(pictures: &Pictures) -> Value {
    pictures.bins.iter().map(bin).collect()
}

fn heat(pictures: &Pictures) -> Value {
    let heat = &pictures.heat;
    let exposed =
        (0..Cause::ALL.len()).map(|at| packed(heat.exposed_ns.iter().map(|parts| parts[at])));
    json!({
        "slice": heat.slice_ns.0,
        "slices": heat.slices,
        "run": packed(heat.run_ns.iter().copied()),
        "exposed": exposed.collect::<Vec<_>>(),
    })
}

/// Names are drawn as letters, whatever they hold.
fn name(text: &str) -> String {
    visible(&cut_to(text, MOST_LETTERS)).into_owned()
}

/// First and last rank, how many, host, hosts, whether a node begins.
fn bin(bin: &RankBin) -> Value {
    let (first, last) = (bin.first.to_string(), bin.last.to_string());
    json!([first, last, bin.ranks, name(&bin.host), bin.hosts, u8::from(bin.begins_node)])
}

fn timeline(timeline: &Timeline) -> Value {
    let place = |place: &lapscope_report::pictures::timeline::TimelineSite| {
        json!([name(&place.call), name(&place.site)])
    };
    let message = |it: &lapscope_report::pictures::timeline::Message| {
        json!([it.from, it.to, it.sent_ns.0, it.received_ns.0, it.bytes.0])
    };
    json!({
        "begin": timeline.begin_ns.0,
        "length": timeline.length_ns.0,
        "places": timeline.places.iter().map(place).collect::<Vec<_>>(),
        "tracks": timeline.tracks.iter().map(track).collect::<Vec<_>>(),
        "messages": timeline.messages.iter().map(message).collect::<Vec<_>>(),
    })
}

fn track(track: &Track) -> Value {
    let thread = match track.thread {
        0 => String::new(),
        thread => format!(" thread {thread}"),
    };
    json!({
        "name": format!("{}{thread}", track.rank),
        "host": name(&track.host),
        "lanes": track.lanes,
        "spans": track.spans.iter().map(span).collect::<Vec<_>>(),
        "requests": track.requests.iter().map(request).collect::<Vec<_>>(),
        "gpu": track.gpu.iter().map(|(begin, end)| json!([begin.0, end.0 - begin.0])).collect::<Vec<_>>(),
    })
}

/// Begin, length, place, calls, time in MPI, role, cause: -1 is none.
fn span(span: &CallSpan) -> Value {
    let role = match span.role {
        Role::Post => 0,
        Role::Complete => 1,
        Role::Block => 2,
        Role::Collective => 3,
        Role::Other => 4,
    };
    let cause = span.cause.and_then(|cause| Cause::ALL.iter().position(|it| *it == cause));
    let cause = cause.map_or(-1, |cause| cause as i64);
    let length = span.end_ns.0 - span.begin_ns.0;
    json!([span.begin_ns.0, length, span.place, span.calls, span.mpi_ns.0, role, cause])
}

/// Begin, end (-1: not in this stretch), place, lane, whether it sends, bytes, peer.
fn request(it: &RequestLife) -> Value {
    let end = it.end_ns.map_or(-1, |end| end.0);
    let peer = it.peer.map_or_else(String::new, |peer| peer.to_string());
    json!([it.begin_ns.0, end, it.place, it.lane, u8::from(it.is_send), it.bytes.0, peer])
}

fn packed(numbers: impl Iterator<Item = Nanos>) -> String {
    let mut bytes = Vec::new();
    for Nanos(number) in numbers {
        let mut left = number.max(0) as u64;
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
    }
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_seven_bits_a_byte() {
        assert_eq!(
            packed([0, 1, 300, -1].map(Nanos).into_iter()),
            STANDARD.encode([0, 1, 0xac, 0x02, 0])
        );
    }
}
