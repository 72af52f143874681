//! Messages that MPI had to keep for receives that were not posted, as sentences.

use std::io::{self, Write};

use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_data::text::{plural, ranks};
use lapscope_measure::unexpected::{KeptAtSite, Pile, Unexpected};
use lapscope_report::report::Report;

/// Ranks that text and page name, and senders, tags and call sites of one.
const MOST_RANKS: usize = 4;
const MOST: usize = 3;
/// Bytes of a message that costs more by being one than by its length.
const SMALL: u64 = 1024;

/// Nothing where little was kept.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(found) = report.unexpected.as_ref().filter(|found| !found.ranks.is_empty()) else {
        return Ok(());
    };
    let head =
        style.headed("UNEXPECTED", "messages that MPI kept until their receives were posted");
    writeln!(out, "\n{head}")?;
    for line in sentences(found, report) {
        writeln!(out, "{}", style.wrap(&line, "  ", "    "))?;
    }
    Ok(())
}

/// What the ranks are at which most was kept, what to do, and how many receives were early.
pub fn sentences(found: &Unexpected, report: &Report) -> Vec<String> {
    let of = report.ranks.len();
    let mut lines: Vec<String> =
        found.ranks.iter().take(MOST_RANKS).map(|pile| sentence(pile, of)).collect();
    if found.ranks.len() > MOST_RANKS {
        let more = found.ranks.len() - MOST_RANKS;
        lines.push(format!("The same at {} more rank{}.", count(more as u64), plural(more as u64)));
    }
    let is_unsafe = report.relies_on_buffering.is_some();
    lines.extend(found.ranks.first().and_then(|pile| cure(pile, is_unsafe)));
    lines.push(credit(found));
    lines
}

/// "Rank 1: up to 3,000 messages at once, 5.7 MiB, from rank 0, ..."
fn sentence(pile: &Pile, of: usize) -> String {
    let mut text = format!(
        "Rank {}: {} messages at once, {}{}, kept from {} to {} of the run, the most at {}; {}.",
        pile.rank,
        count(pile.low.messages),
        bytes(pile.low.bytes.0),
        more(pile),
        time(pile.since_ns),
        time(pile.until_ns),
        time(pile.peak_ns),
        senders(pile, of),
    );
    text += &format!(" They are of {}{}", sizes(pile), tags(pile));
    text += &format!(", sent by {}", sites(&pile.sent));
    if !pile.received.is_empty() {
        let any = if pile.any_source > 0 { ", from any source" } else { "" };
        text += &format!(", received later by {}{any}", sites(&pile.received));
    }
    text += ".";
    if pile.buffered > 0 {
        let all = pile.buffered == pile.low.messages;
        let which =
            if all { "They".to_owned() } else { format!("{} of them", count(pile.buffered)) };
        text += &format!(" {which} are of buffered sends, and may lie in the buffers that their senders attached.");
    }
    match pile.never_received {
        0 => {}
        1 => text += " One of them is never received.",
        never => text += &format!(" {} of them are never received.", count(never)),
    }
    text
}

/// Whether MPI's own record of a message takes about as much memory as the message: 0.2 to 0.9 KB were seen.
fn is_small(pile: &Pile) -> bool {
    pile.low.bytes.0 / SMALL < pile.low.messages
}

/// The high bound, where it says something else, and what it leaves out.
fn more(pile: &Pile) -> String {
    let (low, high) = (bytes(pile.low.bytes.0), bytes(pile.high.bytes.0));
    let mut text = match low == high {
        true => String::new(),
        false => format!(" (up to {high} with sends that are not known to have been complete)"),
    };
    if is_small(pile) {
        text += " and MPI's own record of each, some hundred bytes";
    }
    text
}

fn senders(pile: &Pile, of: usize) -> String {
    if let [only] = pile.from.as_slice() {
        return format!("all from rank {}", only.rank);
    }
    if pile.senders == pile.from.len() && is_even(pile) {
        let mut from: Vec<_> = pile.from.iter().map(|it| it.rank).collect();
        from.sort_unstable();
        return format!("from {} alike", ranks::in_words(&from, of));
    }
    let named: Vec<String> = pile
        .from
        .iter()
        .take(MOST)
        .map(|it| format!("rank {} ({})", it.rank, count(it.volume.messages)))
        .collect();
    format!("from {} ranks, most from {}", count(pile.senders as u64), named.join(", "))
}

/// Whether each sender sent about as much as the others.
fn is_even(pile: &Pile) -> bool {
    let messages = || pile.from.iter().map(|it| it.volume.messages);
    let (least, most) = (messages().min().unwrap_or(0), messages().max().unwrap_or(0));
    most - least <= most / 10
}

fn sizes(pile: &Pile) -> String {
    let (least, most) = (pile.smallest_bytes.0, pile.largest_bytes.0);
    if least == most {
        bytes(most)
    } else {
        format!("{} to {}", bytes(least), bytes(most))
    }
}

fn tags(pile: &Pile) -> String {
    match pile.tags.as_slice() {
        [] => String::new(),
        [tag] => format!(", tag {tag}"),
        tags if tags.len() <= MOST => {
            let tags: Vec<String> = tags.iter().map(i64::to_string).collect();
            format!(", tags {}", tags.join(", "))
        }
        [first, ..] => format!(", tag {first} and others"),
    }
}

/// "MPI_Send ahead x.c:7, MPI_Isend y.c:9"
fn sites(sites: &[KeptAtSite]) -> String {
    let name = |it: &KeptAtSite| {
        let place = it.site.as_ref().map_or(String::new(), |site| format!(" {}", site.short()));
        format!("{}{place}", it.call)
    };
    let mut named: Vec<String> = sites.iter().take(MOST).map(name).collect();
    if sites.len() > MOST {
        named.push("others".to_owned());
    }
    named.join(", ")
}

/// `None` where nobody receives them, of which the list of what is left over tells. `is_unsafe`: a replay without buffering stood still.
fn cure(pile: &Pile, is_unsafe: bool) -> Option<String> {
    if pile.never_received * 2 > pile.low.messages {
        return None;
    }
    let mut text = if pile.overtaken > 0 {
        let as_it_is = match is_unsafe {
            true => "the run ends only because MPI keeps messages, as the line Unsafe says: without, it is a deadlock",
            false => "as it is now a synchronous send among them would end in a deadlock",
        };
        format!("Post their receives, with MPI_Irecv, before the receiver waits for what their sender does after them; {as_it_is}.")
    } else {
        "Post their receives earlier, with MPI_Irecv before the messages are sent, or make one \
         send in a hundred an MPI_Ssend, which waits until the receiver has come that far; that \
         is safe where the receiver needs nothing that its sender does later."
            .to_owned()
    };
    if is_small(pile) {
        text += " Fewer, larger messages cost less than these.";
    }
    Some(text)
}

/// How many receives were posted in time, and how many messages had to be kept.
pub fn credit(found: &Unexpected) -> String {
    let share = |messages: u64| percent(messages as f64 / found.all.messages.max(1) as f64);
    let (low, high) = (share(found.low.messages), share(found.high.messages));
    let kept = if low == high { low } else { format!("{low} to {high}") };
    format!(
        "Of {} message{}, {} had their receive posted before they were sent; {kept} came before it.",
        count(found.all.messages),
        plural(found.all.messages),
        share(found.early.messages),
    )
}
