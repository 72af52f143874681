//! Many ranks on one screen: how numbers are spread over them, which are alike, and which stand apart.

use std::io::{self, Write};

use super::table::{Align, Table};
use lapscope_data::model::Nanos;
use lapscope_data::text::hosts::list_hosts;
use lapscope_data::text::ranks;
use lapscope_data::text::style::Style;
use lapscope_data::text::units::{bytes, count, percent, time};
use lapscope_data::text::{capitalized, list_ranks, plural};
use lapscope_measure::alike::{
    Alike, AlikeGroup, Difference, Distribution, Likeness, Measure, MeasureUnit,
};

/// Groups that are listed, besides the largest.
const LISTED: usize = 6;
/// Times below this fraction of the run time on all ranks have no row.
const WORTH_A_ROW: f64 = 0.005;

/// Writes the section on ranks.
///
/// # Errors
/// Of the writer.
pub fn write(out: &mut dyn Write, alike: &Alike, style: Style) -> io::Result<()> {
    writeln!(out, "\n{}", style.headed_dimly("RANKS", &about(alike)))?;
    write_distributions(out, alike, style)?;
    for sentence in sentences(alike) {
        writeln!(out, "{}", style.wrap(&sentence, "  ", "    "))?;
    }
    Ok(())
}

fn about(alike: &Alike) -> String {
    let on = match alike.hosts {
        0 | 1 => String::new(),
        hosts => format!(" on {} nodes", count(hosts as u64)),
    };
    format!(
        "how {} rank{}{on} differ; --each-rank prints a line a rank, --each-rank=0-15,64 of some",
        count(alike.ranks as u64),
        plural(alike.ranks as u64)
    )
}

fn write_distributions(out: &mut dyn Write, alike: &Alike, style: Style) -> io::Result<()> {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("least", Align::Right),
        ("25 %", Align::Right),
        ("median", Align::Right),
        ("75 %", Align::Right),
        ("most", Align::Right),
        ("least to most", Align::Left),
        ("at ranks", Align::Left),
    ])
    .giving_up(&["at ranks", "25 %", "75 %"]);
    let is_worth = |it: &&Distribution| {
        it.measure.unit() != MeasureUnit::Nanoseconds
            || Nanos(it.max).share_of(alike.run_ns) >= WORTH_A_ROW
    };
    for it in alike.distributions.iter().filter(is_worth) {
        let values = [it.min, it.quartile_1, it.median, it.quartile_3, it.max];
        let mut cells = values.map(|value| in_unit(it.measure, value));
        let at = match it.min == it.max {
            true => {
                let others = cells.iter_mut().enumerate().filter(|(at, _)| *at != 2);
                others.for_each(|(_, cell)| cell.clear());
                "all".to_owned()
            }
            false => format!("{}, {}", it.min_rank, it.max_rank),
        };
        let mut row = vec![name(it.measure).to_owned()];
        row.extend(cells);
        row.extend([heights(&it.histogram), at]);
        table.row(row, None);
    }
    table.write(out, style)
}

/// Parts with a single rank can be seen.
fn heights(histogram: &[u64]) -> String {
    const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = histogram.iter().copied().max().unwrap_or(0).max(1);
    histogram.iter().map(|&ranks| HEIGHTS[(ranks * 8).div_ceil(most) as usize]).collect()
}

pub(crate) fn sentences(alike: &Alike) -> Vec<String> {
    let all = count(alike.ranks as u64);
    let sentence = match alike.verdict {
        Likeness::Few => None,
        Likeness::Alike => Some(format!(
            "All {all} ranks are alike: none differs from another by more than 5 % of the run time, or 10 % of requests or bytes."
        )),
        Likeness::Spread => Some(
            "No rank stands apart: there is no gap between ranks as wide as the others are spread.".to_owned(),
        ),
        Likeness::Different => Some(
            "No rank stands apart: ranks are of so many kinds that these are no groups.".to_owned(),
        ),
        Likeness::Groups => return groups(alike),
    };
    sentence.into_iter().collect()
}

fn groups(alike: &Alike) -> Vec<String> {
    let Some((typical, others)) = alike.groups.split_first() else { return Vec::new() };
    let (of, some) = (count(alike.ranks as u64), count(typical.count as u64));
    let mut sentences = vec![match typical.count * 2 > alike.ranks {
        true => format!("{}: alike ({some} of {of}).", capitalized(&whose(typical, alike))),
        false => format!(
            "{}: alike ({some} of {of}); the others are compared with these.",
            capitalized(&whose(typical, alike))
        ),
    }];
    for group in others.iter().take(LISTED) {
        sentences.push(format!("{} {}.", capitalized(&whose(group, alike)), differs(group)));
    }
    let listed: usize = alike.groups.iter().take(1 + LISTED).map(|group| group.count).sum();
    if let Some(more) = alike.ranks.checked_sub(listed).filter(|&more| more > 0) {
        let (ranks, differ) = match more {
            1 => ("rank", "differs"),
            _ => ("ranks", "differ"),
        };
        sentences.push(format!("{} more {ranks} {differ} in other ways.", count(more as u64)));
    }
    sentences
}

/// "rank 64 on n17", "all 8 ranks of n17 (40-47)", "ranks 0-63, 65-127".
fn whose(group: &AlikeGroup, alike: &Alike) -> String {
    let hosts = || list_hosts(group.hosts.iter().map(String::as_str));
    let of = alike.ranks;
    if alike.hosts < 2 || group.hosts.len() == alike.hosts {
        return ranks::in_words(&group.ranks, of);
    }
    if group.whole_hosts && group.count > group.hosts.len() {
        let nodes = match group.hosts.len() {
            1 => hosts(),
            nodes => format!("{} nodes ({})", count(nodes as u64), hosts()),
        };
        return format!(
            "all {} ranks of {nodes}: {}",
            count(group.count as u64),
            list_ranks(&group.ranks)
        );
    }
    match group.hosts.len() {
        1 => format!("{} on {}", ranks::in_words(&group.ranks, of), hosts()),
        _ => ranks::in_words(&group.ranks, of),
    }
}

/// "computes 31 % longer, waits in collectives 0.2x as long, sends 4.0x the bytes"
fn differs(group: &AlikeGroup) -> String {
    const TIMES: usize = 2;
    let is_one = group.count == 1;
    let is_time = |it: &&Difference| it.measure.unit() == MeasureUnit::Nanoseconds;
    let times = group.differences.iter().filter(is_time).take(TIMES);
    let others = group.differences.iter().filter(|it| !is_time(it)).take(1);
    let parts: Vec<String> = times.chain(others).map(|it| in_words(*it, is_one)).collect();
    parts.join(", ")
}

fn in_words(difference: Difference, is_one: bool) -> String {
    let Difference { measure, value, typical } = difference;
    let verb = verb(measure, is_one);
    let (what, [more, less], times) = match measure.unit() {
        MeasureUnit::Nanoseconds => ("", ["longer", "shorter"], "as long"),
        MeasureUnit::Bytes => (" bytes", ["more", "fewer"], "the bytes"),
        MeasureUnit::Requests => (" requests", ["more", "fewer"], "the requests"),
    };
    const MANY_TIMES: f64 = 20.0;
    let ratio = value as f64 / typical as f64;
    match ratio {
        _ if typical <= 0 || !(1.0 / MANY_TIMES..=MANY_TIMES).contains(&ratio) => {
            let [mine, others] = [value, typical].map(|it| in_unit(measure, it));
            let (for_, of) = match measure.unit() {
                MeasureUnit::Nanoseconds => (" for", ""),
                MeasureUnit::Bytes => ("", ""),
                MeasureUnit::Requests => ("", " requests"),
            };
            format!("{verb}{for_} {mine}{of} (the others {others})")
        }
        ratio if ratio >= 2.0 => format!("{verb} {ratio:.1}x {times}"),
        ratio if ratio >= 1.0 => format!("{verb} {} {more}{what}", share(ratio - 1.0)),
        ratio if ratio > 0.5 => format!("{verb} {} {less}{what}", share(1.0 - ratio)),
        ratio => format!("{verb} {}x {times}", small(ratio)),
    }
}

/// "31 %", "3.1 %"
fn share(fraction: f64) -> String {
    match fraction {
        large if large >= 0.0995 => format!("{:.0} %", large * 100.0),
        small => percent(small),
    }
}

/// "0.4", "0.08"
fn small(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 0.095 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// The verb for one rank, or for several.
fn verb(measure: Measure, is_one: bool) -> &'static str {
    let [one, several] = match measure {
        Measure::Outside => ["computes", "compute"],
        Measure::Completing => ["waits for requests", "wait for requests"],
        Measure::BesideGpu => ["is in MPI beside its GPU", "are in MPI beside their GPUs"],
        Measure::Posting => ["posts", "post"],
        Measure::BlockingPointToPoint => {
            ["blocks in sends and receives", "block in sends and receives"]
        }
        Measure::Collective => ["is in collectives", "are in collectives"],
        Measure::Rma => ["is in one-sided calls", "are in one-sided calls"],
        Measure::Io => ["is in file operations", "are in file operations"],
        Measure::UnsuccessfulTest => ["is in unsuccessful tests", "are in unsuccessful tests"],
        Measure::Other => ["is in other MPI calls", "are in other MPI calls"],
        Measure::Blocked => ["blocks", "block"],
        Measure::LatePartner => ["waits for late partners", "wait for late partners"],
        Measure::NoRemoteProgress => {
            ["waits for partners outside MPI", "wait for partners outside MPI"]
        }
        Measure::NoLocalProgress => {
            ["waits for want of local progress", "wait for want of local progress"]
        }
        Measure::Transfer => ["waits for transfers", "wait for transfers"],
        Measure::NoProcessor => ["waits for a processor", "wait for a processor"],
        Measure::Requests => ["makes", "make"],
        Measure::Bytes => ["moves", "move"],
        Measure::SentBytes => ["sends", "send"],
        Measure::ReceivedBytes => ["receives", "receive"],
    };
    if is_one {
        one
    } else {
        several
    }
}

pub(crate) fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Outside => "outside MPI",
        Measure::Completing => "completing requests",
        Measure::BesideGpu => "MPI beside a GPU",
        Measure::Posting => "posting requests",
        Measure::BlockingPointToPoint => "blocking messages",
        Measure::Collective => "collectives",
        Measure::Rma => "one-sided",
        Measure::Io => "files",
        Measure::UnsuccessfulTest => "unsuccessful tests",
        Measure::Other => "other MPI",
        Measure::Blocked => "blocking calls",
        Measure::LatePartner => "late partner",
        Measure::NoRemoteProgress => "no remote progress",
        Measure::NoLocalProgress => "no local progress",
        Measure::Transfer => "transfer",
        Measure::NoProcessor => "no processor",
        Measure::Requests => "requests",
        Measure::Bytes => "bytes",
        Measure::SentBytes => "sent",
        Measure::ReceivedBytes => "received",
    }
}

fn in_unit(measure: Measure, value: i64) -> String {
    let as_count = u64::try_from(value).unwrap_or(0);
    match measure.unit() {
        MeasureUnit::Nanoseconds => time(Nanos(value)),
        MeasureUnit::Bytes => bytes(as_count),
        MeasureUnit::Requests => count(as_count),
    }
}
