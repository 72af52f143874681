//! Progress beside computation in words: what `lapscope doctor --progress` measured.

use std::collections::BTreeMap;

use lapscope_data::text::units::{percent, round_bytes};
use lapscope_measure::progress::{is_put, Computing, MovedBetween, MovedKind, MovedShare, Moving};

/// The control, of which a sender has nothing left to wait for but what the recorder takes itself, says when a machine is too
/// busy to be measured.
const CONTROL: f64 = 0.5;

/// What a number is of, for a row of a table.
pub fn posted(it: MovedKind) -> &'static str {
    match it {
        MovedKind::Send => "MPI_Isend",
        MovedKind::SmallSend => "MPI_Isend, eager",
        MovedKind::Put => "MPI_Put, MPI_Win_create",
        MovedKind::PutAllocated => "MPI_Put, MPI_Win_allocate",
        MovedKind::Iallreduce => "MPI_Iallreduce",
        MovedKind::Ibcast => "MPI_Ibcast",
    }
}

pub fn computing(posted: MovedKind, who: Computing) -> &'static str {
    let [first, second] = ends(posted);
    match who {
        Computing::Nobody => "nobody",
        Computing::First => first,
        Computing::Second => second,
        Computing::Both if second == "the others" => "all",
        Computing::Both => "both",
    }
}

pub fn between(it: MovedBetween) -> &'static str {
    match it {
        MovedBetween::Node => "one node",
        MovedBetween::Network => "two nodes",
        MovedBetween::All => "all ranks",
    }
}

fn ends(it: MovedKind) -> [&'static str; 2] {
    match it {
        MovedKind::Send | MovedKind::SmallSend => ["sender", "receiver"],
        MovedKind::Put | MovedKind::PutAllocated => ["origin", "target"],
        MovedKind::Iallreduce => ["rank 0", "the others"],
        MovedKind::Ibcast => ["the root", "the others"],
    }
}

/// Whether the numbers are those of a machine that did something else meanwhile.
pub fn is_disturbed(moved: &[MovedShare]) -> bool {
    let is_control =
        |it: &&MovedShare| it.posted == MovedKind::SmallSend && it.computing == Computing::First;
    let mut controls = moved.iter().filter(is_control).peekable();
    controls.peek().is_none() || controls.any(|it| it.moved < CONTROL)
}

/// One sentence for each kind of transfer, without the control.
pub fn sentences(moved: &[MovedShare]) -> Vec<String> {
    let mut kinds: BTreeMap<(MovedBetween, MovedKind), Vec<&MovedShare>> = BTreeMap::new();
    for it in moved.iter().filter(|it| it.posted != MovedKind::SmallSend) {
        kinds.entry((it.between, it.posted)).or_default().push(it);
    }
    let mut all: Vec<String> = kinds.values().map(|rows| sentence(rows)).collect();
    if !moved.iter().any(|it| is_put(it.posted)) {
        all.push(
            "One-sided calls were not measured: windows could not be made, or time was short."
                .into(),
        );
    }
    all
}

fn sentence(rows: &[&MovedShare]) -> String {
    let first = rows[0];
    let posted_as = first.posted;
    let of = |who| rows.iter().copied().find(move |it| it.computing == who);
    let [a, b] = ends(first.posted);
    let verdict = |who| of(who).map(MovedShare::verdict);
    let size = round_bytes(first.bytes);
    let call = match first.posted {
        MovedKind::Send | MovedKind::SmallSend => format!("A send of {size}"),
        it => match posted(it).split_once(", ") {
            Some((call, window)) => format!("{call} of {size} into memory of {window}"),
            None => format!("{} of {size}", posted(it)),
        },
    };
    let where_to = match first.between {
        MovedBetween::All => String::new(),
        it => format!(" ({})", between(it)),
    };
    use Computing::{Both, First, Second};
    use Moving::{Moves, StandsStill};
    let says = match (verdict(First), verdict(Second), verdict(Both)) {
        (None, Some(Some(StandsStill)), None) => format!("moves only while its {b} is inside MPI"),
        (None, Some(Some(Moves)), None) => "moves by itself".to_owned(),
        (Some(Some(StandsStill)), Some(Some(StandsStill)), _) => match first.between {
            MovedBetween::All => "moves only while all ranks are inside MPI".to_owned(),
            _ => "moves only while both ends are inside MPI".to_owned(),
        },
        (Some(Some(Moves)), Some(Some(StandsStill)), _) => only_while(b),
        (Some(Some(StandsStill)), Some(Some(Moves)), _) => only_while(a),
        (Some(Some(Moves)), Some(Some(Moves)), Some(Some(Moves))) => "moves by itself".to_owned(),
        (Some(Some(Moves)), Some(Some(Moves)), Some(Some(StandsStill))) => {
            "moves only while one of its ends is inside MPI".to_owned()
        }
        (first, second, both) => {
            let all = [first, second, both];
            match (both, all.iter().flatten().any(Option::is_none)) {
                (Some(Some(StandsStill)), _) => {
                    format!("stands still while {} compute", computing(posted_as, Both))
                }
                (_, true) => "moves in some rounds and not in others".to_owned(),
                (_, false) => "moves in part".to_owned(),
            }
        }
    };
    let shares: Vec<String> = [First, Second, Both]
        .into_iter()
        .filter_map(|who| Some((who, of(who)?)))
        .map(|(who, it)| {
            let who = computing(it.posted, who);
            let is_many = ["the others", "all", "both"].contains(&who);
            let its = if is_many || a.contains(' ') { "" } else { "its " };
            let who = format!("{its}{who}");
            let computed = if is_many { "compute" } else { "computes" };
            format!("{} while {who} {computed}", percent(it.moved))
        })
        .collect();
    format!("{call}{where_to} {says}: moved {}.", shares.join(", "))
}

fn only_while(end: &str) -> String {
    match end {
        "the others" => "moves only while the other ranks are inside MPI".to_owned(),
        "rank 0" | "the root" => format!("moves only while {end} is inside MPI"),
        _ => format!("moves only while its {end} is inside MPI"),
    }
}

/// "measured: 0.0 % of an MPI_Put of 4 MiB moved while its target computed"
pub fn measured(row: &MovedShare) -> String {
    let who = match row.computing {
        Computing::Both => "both its ends".to_owned(),
        who => format!("its {}", computing(row.posted, who)),
    };
    let what = if row.posted == MovedKind::Send { "a message" } else { "an MPI_Put" };
    let (moved, size) = (percent(row.moved), round_bytes(row.bytes));
    format!("measured: {moved} of {what} of {size} moved while {who} computed")
}

/// Of messages of this size and more whether they move while both ends compute; where nodes and networks differ, nothing.
pub fn of_messages(moved: &[MovedShare], min_bytes: u64) -> Option<(&MovedShare, Moving)> {
    /// So many times smaller messages go as those that were measured, as a rule above every eager limit.
    const ALIKE: u64 = 16;
    let is_send = |it: &&MovedShare| {
        (it.posted, it.computing) == (MovedKind::Send, Computing::Both)
            && min_bytes >= it.bytes / ALIKE
    };
    agreed(moved.iter().filter(is_send))
}

/// Of one-sided data whether it moves while its target computes; where windows of both kinds, or on both ways, differ,
/// nothing.
pub fn of_targets(moved: &[MovedShare]) -> Option<(&MovedShare, Moving)> {
    agreed(moved.iter().filter(|it| is_put(it.posted)))
}

fn agreed<'m>(mut rows: impl Iterator<Item = &'m MovedShare>) -> Option<(&'m MovedShare, Moving)> {
    let first = rows.next()?;
    let verdict = first.verdict()?;
    rows.all(|it| it.verdict() == Some(verdict)).then_some((first, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(posted: MovedKind, computing: Computing, moved: f64) -> MovedShare {
        MovedShare {
            posted,
            computing,
            between: MovedBetween::Node,
            bytes: 4 << 20,
            moved,
            moved_low: moved,
            moved_high: moved,
            alone_ns: 1e6,
            rounds: 15,
        }
    }

    fn send(first: f64, second: f64, both: f64) -> String {
        let rows =
            [(Computing::First, first), (Computing::Second, second), (Computing::Both, both)];
        let rows = rows.map(|(who, moved)| row(MovedKind::Send, who, moved));
        sentences(&rows).remove(0)
    }

    #[test]
    fn who_has_to_be_inside_mpi() {
        for (shares, says) in [
            ([0.98, 0.02, 0.02], "moves only while its receiver is inside MPI"),
            ([0.02, 0.98, 0.02], "moves only while its sender is inside MPI"),
            ([0.02, 0.02, 0.02], "moves only while both ends are inside MPI"),
            ([0.98, 0.98, 0.98], "moves by itself"),
            ([0.98, 0.98, 0.02], "moves only while one of its ends is inside MPI"),
            ([0.98, 0.5, 0.5], "moves in part"),
        ] {
            let text = send(shares[0], shares[1], shares[2]);
            assert!(text.starts_with(&format!("A send of 4 MiB (one node) {says}: ")), "{text}");
        }
        let text = send(0.98, 0.02, 0.02);
        assert!(text.contains("2.0 % while its receiver computes"), "{text}");
    }

    #[test]
    fn windows_that_differ_say_nothing_of_targets() {
        let still = row(MovedKind::Put, Computing::Second, 0.0);
        let moves = row(MovedKind::PutAllocated, Computing::Second, 1.0);
        let found = of_targets(std::slice::from_ref(&still)).map(|(_, verdict)| verdict);
        assert_eq!(found, Some(Moving::StandsStill));
        assert_eq!(of_targets(&[still, moves]), None);
    }

    #[test]
    fn a_control_that_is_waited_for_tells_of_a_busy_machine() {
        assert!(is_disturbed(&[row(MovedKind::SmallSend, Computing::First, 0.3)]));
        assert!(!is_disturbed(&[row(MovedKind::SmallSend, Computing::First, 0.97)]));
    }
}
