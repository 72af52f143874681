//! What somebody should look at.

use super::document::{Alert, AlertKind, Moment, RankPace};
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::{Condition, JobState, RankState};
use lapscope_data::symbols::FrameName;
use lapscope_data::text::ranks::{in_words, third_person};
use lapscope_data::text::{list_ranks, units};

/// The gravest first. `moment` is of `state`.
pub fn find(moment: &Moment, state: &JobState, alert: Nanos) -> Vec<Alert> {
    let all = moment.ranks.len();
    let mut alerts = Vec::new();
    alerts.extend(dead(state, all));
    let stopped = ranks_that(moment, |rank| rank.is_stopped);
    if !stopped.is_empty() {
        let (who, s) = (in_words(&stopped, all), if stopped.len() == 1 { "is" } else { "are" });
        let sentence = format!("{who} {s} stopped, by a signal or a debugger");
        alerts.push(Alert { kind: AlertKind::Stopped, sentence, ranks: stopped });
    }
    let running: Vec<&RankPace> =
        moment.ranks.iter().filter(|rank| rank.condition.runs()).collect();
    let quiet: Vec<&RankPace> =
        running.iter().filter(|rank| rank.quiet_ns >= alert).copied().collect();
    if !running.is_empty() && quiet.len() == running.len() {
        alerts.push(no_progress(&quiet));
    } else if let Some(longest) = quiet.iter().max_by_key(|rank| rank.quiet_ns) {
        alerts.push(some_quiet(&quiet, longest, all));
    }
    alerts.extend(unseen(moment));
    alerts
}

/// Says of which other ranks nobody knows from here whether they go on.
fn unseen(moment: &Moment) -> Option<Alert> {
    let (first, others) = moment.unseen.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    let sentence = format!("cannot be seen: {}{more}: {}", first.file, first.why);
    Some(Alert { kind: AlertKind::Unseen, sentence, ranks: Vec::new() })
}

/// Those that others may wait for: of a job that is over nobody is missed.
fn dead(state: &JobState, all: usize) -> Option<Alert> {
    use Condition::{Aborted, Killed};
    let is_dead = |rank: &&RankState| rank.condition.is_early_end();
    let dead: Vec<Rank> = state.ranks.iter().filter(is_dead).map(|rank| rank.rank).collect();
    let is_gone = |wanted| state.ranks.iter().filter(is_dead).all(|rank| rank.condition == wanted);
    let how = match () {
        () if is_gone(Killed) => "was killed, or died without a chance to say so",
        () if is_gone(Aborted) => "called MPI_Abort",
        () => "ended without MPI_Finalize",
    };
    let how = if dead.len() == 1 { how.to_owned() } else { how.replace("was", "were") };
    let sentence = format!("{} {how}", in_words_or_nobody(&dead, all));
    (!dead.is_empty()).then_some(Alert { kind: AlertKind::Dead, sentence, ranks: dead })
}

fn in_words_or_nobody(ranks: &[Rank], all: usize) -> String {
    match ranks {
        [] => "nobody".into(),
        ranks => in_words(ranks, all),
    }
}

fn ranks_that(moment: &Moment, is: impl Fn(&RankPace) -> bool) -> Vec<Rank> {
    moment.ranks.iter().filter(|rank| is(rank)).map(|rank| rank.rank).collect()
}

fn no_progress(quiet: &[&RankPace]) -> Alert {
    let since = quiet.iter().map(|rank| rank.quiet_ns).min().unwrap_or_default();
    let sentence = format!(
        "no MPI call of any rank has ended for {}: see `lapscope hang`",
        units::time(since)
    );
    let ranks = quiet.iter().map(|rank| rank.rank).collect();
    Alert { kind: AlertKind::NoProgress, sentence, ranks }
}

fn some_quiet(quiet: &[&RankPace], longest: &RankPace, all: usize) -> Alert {
    let ranks: Vec<Rank> = quiet.iter().map(|rank| rank.rank).collect();
    let time = units::time(longest.quiet_ns);
    let sentence = match (&longest.inside, ranks.as_slice()) {
        (Some(inside), [rank]) => {
            let site = inside.site.as_ref().map(FrameName::short).unwrap_or_default();
            let call = [inside.call.as_str(), &site].join(" ");
            format!("rank {rank}: no MPI call has ended for {time}; inside {}", call.trim_end())
        }
        (None, [rank]) => format!("rank {rank} has been outside of MPI for {time}"),
        (_, ranks) => {
            let (who, s) = (in_words(ranks, all), third_person(ranks));
            let rank = list_ranks(&[longest.rank]);
            format!("{who} end{s} no MPI call; rank {rank} for {time}")
        }
    };
    Alert { kind: AlertKind::Quiet, sentence, ranks }
}
