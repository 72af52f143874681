//! `lapscope run --watchdog`: watches the job that it started, and says who waits for whom when nothing goes on any more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lapscope_data::model::Nanos;
use lapscope_data::say;
use lapscope_data::state::{Beat, Condition, JobState, Pulse};
use lapscope_data::text::style::stdout_columns;
use lapscope_data::text::units::time;
use lapscope_launch::run::{outcome, Recorded};
use lapscope_show::diagnosis::describe;

/// As timeout(1) says that it has ended a program.
pub const EXIT_CODE: u8 = 124;

/// How often the job is looked at, at most: often enough to notice what goes on, rare enough to cost nothing.
const STEP: Duration = Duration::from_secs(1);
/// Longer pauses are none of the job's: this process was stopped, and the job most likely with it.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const COLUMNS: usize = 100;
/// Columns before lines behind the first that are said.
const INDENT: usize = 4;

/// Watches the runs of a launch.
pub struct Watchdog<'a> {
    recorded: &'a Recorded,
    limit: Duration,
    kills: bool,
    seen: RefCell<JobsWatched>,
}

struct JobsWatched {
    looked: Instant,
    /// When something was seen to go on.
    alive: Instant,
    /// The silence has been spoken of.
    is_reported: bool,
    runs: BTreeMap<PathBuf, (Pulse, Beat)>,
}

impl<'a> Watchdog<'a> {
    pub fn new(recorded: &'a Recorded, limit: Duration, kills: bool) -> Watchdog<'a> {
        let now = Instant::now();
        let seen =
            JobsWatched { looked: now, alive: now, is_reported: false, runs: BTreeMap::new() };
        Watchdog { recorded, limit, kills, seen: RefCell::new(seen) }
    }

    /// Looks, when it is time to. Whether the job is to be ended.
    pub fn tick(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        let pause = seen.looked.elapsed();
        if pause < STEP.min(self.limit / 4) {
            return false;
        }
        seen.looked = Instant::now();
        if pause > LONGEST_PAUSE {
            seen.alive += pause;
        }
        if self.goes_on(&mut seen) {
            (seen.alive, seen.is_reported) = (seen.looked, false);
            return false;
        }
        if seen.is_reported || seen.looked.saturating_duration_since(seen.alive) < self.limit {
            return false;
        }
        seen.is_reported = true;
        let runs: Vec<PathBuf> = seen.runs.keys().cloned().collect();
        let silence = seen.alive.elapsed();
        seen.looked = Instant::now();
        drop(seen);
        // a job of several runs is ended for none of them while another may go on
        let are_seen: Vec<bool> = runs.iter().map(|run| self.report(run, silence)).collect();
        if !self.kills || are_seen.contains(&false) {
            return false;
        }
        let goes_on = self.goes_on(&mut self.seen.borrow_mut());
        match goes_on {
            true => say!("watchdog: the job went on meanwhile, and is not ended"),
            false => say!("watchdog: ending the job (--watchdog-kill)"),
        }
        !goes_on
    }

    /// Whether anything has changed, or there is nothing to watch: no rank is there yet, or none any more.
    fn goes_on(&self, seen: &mut JobsWatched) -> bool {
        let (mut is_there, mut has_changed) = (false, false);
        for run in self.recorded.runs() {
            let new = || (Pulse::new(&run.directory), Beat::default());
            let (pulse, before) = seen.runs.entry(run.directory.clone()).or_insert_with(new);
            let now = pulse.feel();
            is_there |= now.ranks > 0;
            has_changed |= now != *before;
            *before = now;
        }
        has_changed || !is_there
    }

    /// Prints the whole diagnosis. Whether all ranks were seen: of others nobody knows whether they go on.
    fn report(&self, run: &Path, silence: Duration) -> bool {
        let silence = time(Nanos(i64::try_from(silence.as_nanos()).unwrap_or(i64::MAX)));
        let columns = stdout_columns().unwrap_or(COLUMNS).saturating_sub(INDENT).max(30);
        match describe(&outcome::relative(run), columns) {
            Ok((text, job)) => {
                let sees_all = sees_all(&job);
                let whom = if sees_all { "any rank" } else { "the ranks that are seen from here" };
                say!(
                    "watchdog: no MPI call of {whom} has ended for {silence}\n{}",
                    text.trim_end()
                );
                if self.kills && !sees_all {
                    say!("watchdog: the job is not ended: ranks that are not seen from here may go on");
                }
                sees_all
            }
            Err(error) => {
                say!("watchdog: no MPI call has ended for {silence}, and why is not known: {error:#}");
                false
            }
        }
    }
}

fn sees_all(job: &JobState) -> bool {
    let is_seen = |condition| condition != Condition::Unknown;
    let mut worlds: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for rank in &job.ranks {
        let (seen, size) = worlds.entry(rank.rank.world).or_default();
        *seen += i64::from(is_seen(rank.condition));
        *size = rank.world_size;
    }
    job.unseen.is_empty() && worlds.values().all(|(seen, size)| seen >= size)
}
