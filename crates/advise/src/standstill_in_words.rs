//! A replay that never ends, and what relies on buffering, in words.

use lapscope_data::model::Rank;
use lapscope_data::text::plural;
use lapscope_data::text::units::bytes;
use lapscope_predict::replay::scenario::Scenario;
use lapscope_predict::whatif::buffering::{Doubt, DoubtfulCircle, ReliesOnBuffering};
use lapscope_predict::whatif::document::{Blocked, Deadlock, PeerAction, RecordEnd, Standstill};

/// Ranks of a circle of which a sentence tells each.
const TOLD: usize = 8;

/// What relies on buffering, where, from which size on it fails, and the cure.
pub fn fill_buffering(found: &mut ReliesOnBuffering) {
    let (wait, their) = match found.cycle.len() {
        1 => ("waits for itself", "its message"),
        _ => ("wait for each other", "their messages"),
    };
    let from = match found.waits_from_bytes {
        Some(from) => {
            format!("from about {} on with this one, with another perhaps before", bytes(from))
        }
        None => "with larger ones, or another MPI".to_owned(),
    };
    let cure = match found.sends.iter().all(|&is_send| is_send) {
        true => "Use MPI_Sendrecv, or post MPI_Irecv before the send",
        false => "Post the receives (MPI_Irecv) before the calls that wait here",
    };
    found.says = format!(
        "relies on buffering: {} {wait} for ever {}, where MPI does not keep {their} ({} now): {from}. {cure}.",
        ranks(&found.cycle),
        who_waits(&found.cycle),
        bytes(found.bytes)
    );
}

/// Why it is not known whether calls that would wait for each other do.
pub fn not_known(found: &DoubtfulCircle) -> String {
    let wait = if found.cycle.len() == 1 { "waits for itself" } else { "wait for each other" };
    format!(
        "not known whether this relies on it. Replayed without, {} {wait} {}; but {}. In detail: lapscope whatif --eager-limit 0 \
         --on all.",
        ranks(&found.cycle),
        who_waits(&found.cycle),
        doubt(found.doubt)
    )
}

fn doubt(doubt: Doubt) -> String {
    match doubt {
        Doubt::Gaps => "the record has gaps, or messages in it may be matched wrongly".to_owned(),
        Doubt::Counter => {
            "what ranks fetch from a window decides what they do, and may be something else then"
                .to_owned()
        }
        Doubt::Threads(rank) => format!("another thread of rank {rank} may act"),
        Doubt::Test(rank) => {
            format!("what rank {rank} does where its test says no is not recorded")
        }
        Doubt::AnyOf(rank) => {
            format!("rank {rank} waits for any of several requests, and another of them may end")
        }
        Doubt::Partitioned(rank) => format!("rank {rank} sends in parts, which go by themselves"),
        Doubt::Probe(rank) => {
            format!("rank {rank} had found by a probe what is not sent then, and may do something else without")
        }
        Doubt::AnySource(rank) => {
            format!("a receive of rank {rank} from any source may take another message")
        }
    }
}

/// Why a scenario never ends.
pub fn deadlock(found: &Deadlock, scenario: &Scenario) -> String {
    match &found.standstill {
        Standstill::Circle { gaps, is_wildcard } => {
            let is_certain = !is_wildcard;
            circle(&found.cycle, scenario, *gaps, is_certain)
        }
        Standstill::Missing { blocked, other } => missing(scenario, blocked, *other),
    }
}

fn circle(cycle: &[Blocked], scenario: &Scenario, gaps: Option<Rank>, is_certain: bool) -> String {
    let (ranks, how) = (ranks(cycle), who_waits(cycle));
    if let Some(rank) = gaps {
        return format!(
            "the replay does not end: {ranks} wait for each other {how}, but the record of rank {rank} has gaps, so that \
             this says nothing of the program"
        );
    }
    if scenario.is_identity() {
        return format!(
            "the replay of the run as it was does not end: {ranks} wait for each other {how}, as they did not in the run: its \
             eager limit or the order of its receives is not what the replay takes it to be"
        );
    }
    let alone = if cycle.len() == 1 { "deadlocks with itself" } else { "deadlock" };
    let if_so = if is_certain { "" } else { ", if receives from any source match as they did" };
    format!("{} {ranks} {alone} {how}{if_so}", under(scenario))
}

fn missing(scenario: &Scenario, it: &Blocked, other: Option<(Rank, RecordEnd)>) -> String {
    let begin = match scenario.is_identity() {
        true => "the replay of the run as it was does not end".to_owned(),
        false => format!("{} the replay does not end", under(scenario)),
    };
    let stands = format!("{begin}: rank {} is in {}", it.rank, at(it));
    match other {
        None => format!("{stands} for ever"),
        Some((other, end)) => format!(
            "{stands} until rank {other} {}, whose record {}; whether that is a deadlock is not known",
            verb(it),
            record_end(end)
        ),
    }
}

fn record_end(end: RecordEnd) -> &'static str {
    match end {
        RecordEnd::Gaps => "has gaps",
        RecordEnd::SummedUp => "keeps sums alone from some point on",
        RecordEnd::Killed => "ends where it was killed",
        RecordEnd::Aborted => "ends where it aborted",
        RecordEnd::Exited => "ends where it exited without MPI_Finalize",
        RecordEnd::Whole => "has nothing of it",
    }
}

/// "with an eager limit of 0"
fn under(scenario: &Scenario) -> String {
    let limit_alone = Scenario {
        name: scenario.name.clone(),
        on: scenario.on,
        eager_limit: scenario.eager_limit,
        ..Scenario::default()
    };
    match scenario.eager_limit {
        Some(limit) if *scenario == limit_alone => format!("with an eager limit of {limit}"),
        _ => format!("with {}", scenario.options()),
    }
}

/// "in MPI_Send at exchange ring.c:42, each until the other receives"
fn who_waits(cycle: &[Blocked]) -> String {
    let first = &cycle[0];
    let is_same = |it: &Blocked| it.awaits == first.awaits && at(it) == at(first);
    if cycle.iter().all(is_same) {
        let until = match cycle.len() {
            1 => ", until it",
            2 => ", each until the other",
            _ => ", each until the next",
        };
        return format!("in {}{until} {}", at(first), verb(first));
    }
    let one = |it: &Blocked| {
        let other = it.waits_for.first().map_or(String::new(), ToString::to_string);
        format!("rank {} in {} until rank {other} {}", it.rank, at(it), verb(it))
    };
    let told: Vec<String> = cycle.iter().take(TOLD).map(one).collect();
    let more = match cycle.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("({}{more})", told.join(", "))
}

/// What the other one has to do.
fn verb(it: &Blocked) -> &'static str {
    match it.awaits {
        PeerAction::Receive => "receives",
        PeerAction::Send => "sends",
        PeerAction::Part => "takes part",
    }
}

/// "MPI_Send at exchange ring.c:42"
fn at(it: &Blocked) -> String {
    match &it.site {
        Some(site) => format!("{} at {}", it.call, site.short()),
        None => it.call.clone(),
    }
}

/// "ranks 0, 1 and 2"
fn ranks(blocked: &[Blocked]) -> String {
    let mut names: Vec<String> = blocked.iter().take(TOLD).map(|it| it.rank.to_string()).collect();
    match blocked.len().saturating_sub(TOLD) {
        0 => {}
        more => names.push(format!("{more} more")),
    }
    let last = names.pop().unwrap_or_default();
    let several = plural(blocked.len() as u64);
    match names.is_empty() {
        true => format!("rank{several} {last}"),
        false => format!("rank{several} {} and {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::model::{Frame, Nanos};
    use lapscope_data::symbols::{unnamed, FrameName};
    use lapscope_predict::replay::scenario::{Progress, Size};

    /// Each sends to the next, the last one at a line of its own.
    fn round(ranks: i64, last_line: u32) -> Vec<Blocked> {
        let blocked = |number: i64| Blocked {
            rank: Rank::of_first_world(number),
            call: "MPI_Send".to_owned(),
            site: Some(FrameName {
                function: Some("exchange".to_owned()),
                file: Some("ring.c".into()),
                line: Some(if number + 1 == ranks { last_line } else { 42 }),
                ..unnamed(Frame { module: None, address: 0, level: 0 }, None)
            }),
            waits_for: vec![Rank::of_first_world((number + 1) % ranks)],
            bytes: Some(8),
            tag: None,
            awaits: PeerAction::Receive,
        };
        (0..ranks).map(blocked).collect()
    }

    fn said(cycle: Vec<Blocked>, scenario: Scenario, standstill: Standstill) -> String {
        let (blocked, at_ns, says) = (cycle.len(), Nanos(0), String::new());
        deadlock(&Deadlock { cycle, blocked, at_ns, standstill, says }, &scenario)
    }

    fn no_eager() -> Scenario {
        Scenario { eager_limit: Some(Size(0)), ..Scenario::default() }
    }

    const CERTAIN: Standstill = Standstill::Circle { gaps: None, is_wildcard: false };

    #[test]
    fn a_deadlock_says_who_is_where() {
        assert_eq!(
            said(round(2, 42), no_eager(), CERTAIN),
            "with an eager limit of 0 ranks 0 and 1 deadlock in MPI_Send at exchange ring.c:42, each until the other receives"
        );
        let says = said(round(3, 42), no_eager(), CERTAIN);
        assert!(says.contains(
            "ranks 0, 1 and 2 deadlock in MPI_Send at exchange ring.c:42, each until the next receives"
        ));
        let scenario = Scenario { progress: Some(Progress::Async), ..no_eager() };
        assert_eq!(
            said(round(2, 50), scenario, CERTAIN),
            "with --eager-limit 0 --progress async ranks 0 and 1 deadlock (rank 0 in MPI_Send at exchange ring.c:42 until rank 1 \
             receives, rank 1 in MPI_Send at exchange ring.c:50 until rank 0 receives)"
        );
    }

    #[test]
    fn what_is_not_known_is_called_no_deadlock() {
        let says = said(round(2, 42), Scenario::default(), CERTAIN);
        assert!(says.starts_with("the replay of the run as it was does not end"), "{says}");
        let gaps = Some(Rank::of_first_world(1));
        let says = said(round(2, 42), no_eager(), Standstill::Circle { gaps, is_wildcard: false });
        assert!(says.contains("the record of rank 1 has gaps"), "{says}");
        let blocked = Box::new(round(2, 42).remove(0));
        let other = Some((Rank::of_first_world(1), RecordEnd::Killed));
        assert_eq!(
            said(Vec::new(), no_eager(), Standstill::Missing { blocked, other }),
            "with an eager limit of 0 the replay does not end: rank 0 is in MPI_Send at exchange ring.c:42 until rank 1 receives, \
             whose record ends where it was killed; whether that is a deadlock is not known"
        );
    }

    #[test]
    fn sends_that_rely_on_buffering_are_named_with_their_cure() {
        let mut found = ReliesOnBuffering {
            cycle: round(3, 42),
            bytes: 8,
            waits_from_bytes: None,
            says: String::new(),
            sends: vec![true; 3],
        };
        fill_buffering(&mut found);
        assert_eq!(
            found.says,
            "relies on buffering: ranks 0, 1 and 2 wait for each other for ever in MPI_Send at exchange ring.c:42, each until the \
             next receives, where MPI does not keep their messages (8 B now): with larger ones, or another MPI. Use MPI_Sendrecv, \
             or post MPI_Irecv before the send."
        );
    }
}
