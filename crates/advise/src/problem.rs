//! What a reader must know before believing the numbers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::copied_sends;
use crate::singletons;
use crate::starved::starved;
use lapscope_data::db::{DbError, USER_VERSION};
use lapscope_data::model::{Ended, Full, Module, Nanos, Rank, RankInfo};
use lapscope_data::symbols::ModuleTrouble;
use lapscope_data::text::ranks::in_words as ranks_in_words;
use lapscope_data::text::units::time;
use lapscope_data::text::{list_ranks, plural};
use lapscope_trace::gpu::NoGpuTime;
use lapscope_trace::problem::{Problem, ProblemKind};
use lapscope_trace::stretch::SummedUp;
use lapscope_trace::sums::combine::RankSums;
use lapscope_watch::pending::groups::{find_outside, group_places, PlaceGroup};
use lapscope_watch::pending::{PendingItem, PendingKind};

/// What a stretch leaves out, as it was only summed up. `None` where nothing was.
pub fn no_moments(untold: &SummedUp) -> Option<Problem> {
    let tests = format!("{} unsuccessful tests and probes", untold.tests);
    let calls = format!("{} calls that were only summed up", untold.calls);
    let what = match (untold.tests, untold.calls) {
        (0, 0) => return None,
        (_, 0) => tests,
        (0, _) => calls,
        _ => format!("{tests} and {calls}"),
    };
    let message = format!(
        "{what} ({} in all of the run) have no moments: they are not in these numbers, which are of a part of the run; \
         without --from, --to and --step they are",
        time(untold.time)
    );
    Some(Problem::new(ProblemKind::NoMoments, message, vec![]))
}

/// The sentences of `problems`, but of many of one kind, as of thousands of files, the first ones and how many more there are.
pub fn in_short(problems: &[Problem]) -> Vec<Cow<'_, str>> {
    const MOST: usize = 4;
    let mut told: BTreeMap<ProblemKind, usize> = BTreeMap::new();
    let mut sentences: Vec<Cow<'_, str>> = Vec::new();
    for problem in problems {
        let of_kind = told.entry(problem.kind).or_default();
        *of_kind += 1;
        if *of_kind <= MOST || problem.kind == ProblemKind::Died {
            sentences.push(Cow::Borrowed(&problem.message));
        }
    }
    let more = told.into_iter().filter(|(kind, of)| *kind != ProblemKind::Died && *of > MOST);
    sentences.extend(more.map(|(kind, of)| {
        let more = of - MOST;
        let what = match kind {
            ProblemKind::DamagedFile => "more files that could not be read, or not whole",
            ProblemKind::NotRecovered => "more spools that could not be recovered",
            _ => "more problems like these",
        };
        Cow::Owned(format!("and {more} {what}: all are in --format json"))
    }));
    sentences
}

/// What the time in completing calls is of that is at no request.
pub fn unattributed_in_words(problems: &[Problem]) -> &'static str {
    let may_lack = |problem: &Problem| {
        use ProblemKind::{DamagedFile, LostRecords, Summarized, UnknownRequests};
        matches!(problem.kind, DamagedFile | LostRecords | Summarized | UnknownRequests)
    };
    match problems.iter().any(may_lack) {
        true => "calls that had nothing to complete, or of requests whose start was not seen",
        false => "calls that had nothing to complete",
    }
}

/// Ranks that died are described one by one up to this many, the places of more up to as many places.
const DEATHS_IN_FULL: usize = 4;

/// Problems that the files and the ranks in them tell of.
pub fn find_problems(
    ranks: &[RankSums],
    failed: &[DbError],
    pending: &[PendingItem],
) -> Vec<Problem> {
    let infos: Vec<&RankInfo> = ranks.iter().map(|rank| &rank.info).collect();
    find_problems_of(&infos, failed, pending)
}

/// [`find_problems`] where nothing was summed.
pub fn find_problems_of(
    ranks: &[&RankInfo],
    failed: &[DbError],
    pending: &[PendingItem],
) -> Vec<Problem> {
    let mut problems = not_read(failed);
    problems.extend(starved(ranks).map(|said| Problem::new(ProblemKind::Starved, said, vec![])));
    problems.extend(copied_sends::find(ranks));
    problems.extend(accelerators(ranks));
    problems.extend(missing_ranks(ranks));
    problems.extend(unrecorded_children(ranks));
    problems.extend(several_jobs(ranks));
    problems.extend(singletons::find(ranks));
    problems.extend(deaths(ranks, pending));
    problems.extend(pending_after_finalize(ranks, pending));
    problems.extend(incomplete_records(ranks));
    problems
}

/// What accelerators compute meanwhile is not recorded: a problem for each reason.
fn accelerators(ranks: &[&RankInfo]) -> Vec<Problem> {
    let mut of_reasons: BTreeMap<NoGpuTime, Vec<&RankInfo>> = BTreeMap::new();
    for info in ranks {
        if let Some(reason) = NoGpuTime::of_rank(info) {
            of_reasons.entry(reason).or_default().push(info);
        }
    }
    let mut all: Vec<(NoGpuTime, Vec<&RankInfo>)> = of_reasons.into_iter().collect();
    all.sort_by_key(|(_, infos)| Reverse(infos.len()));
    all.into_iter().map(|(reason, infos)| accelerator(&reason, &infos, ranks.len())).collect()
}

fn accelerator(reason: &NoGpuTime, infos: &[&RankInfo], all: usize) -> Problem {
    let ranks: Vec<Rank> = infos.iter().map(|info| info.rank).collect();
    let libraries: BTreeSet<&str> =
        infos.iter().filter_map(|info| info.accelerator.as_deref()).collect();
    let is_in_part = match reason {
        NoGpuTime::Lost | NoGpuTime::NoEnd => true,
        NoGpuTime::Cupti(_) | NoGpuTime::Sums(_) => infos.iter().any(|info| info.has_device_time()),
        _ => false,
    };
    let recorded = match is_in_part {
        true => "not all that they compute is recorded",
        false => "what they compute is not recorded",
    };
    let message = format!(
        "GPUs may be used by {} ({} in the process), and {recorded}: {}. Exposed time is an upper bound, and so is what advice may gain; \
         achieved overlap is a lower bound. To have it, {}.",
        ranks_in_words(&ranks, all),
        Vec::from_iter(libraries).join(", "),
        reason.why(),
        reason.way_out()
    );
    Problem::new(ProblemKind::Accelerator, message, ranks)
}

/// Files of another format are one problem for each format, as all of them are where two lapscopes have written into one run.
fn not_read(failed: &[DbError]) -> Vec<Problem> {
    let mut of_formats: BTreeMap<i64, Vec<&DbError>> = BTreeMap::new();
    let mut messages = Vec::new();
    for error in failed {
        match error.other_format() {
            Some(format) => of_formats.entry(format).or_default().push(error),
            None => messages.push(format!("not read: {error}")),
        }
    }
    messages.extend(of_formats.into_iter().map(|(format, files)| match files.as_slice() {
        [one] => format!("not read: {one}"),
        files => of_other_format(format, files),
    }));
    let problem = |message| Problem::new(ProblemKind::DamagedFile, message, vec![]);
    messages.into_iter().map(problem).collect()
}

fn of_other_format(format: i64, files: &[&DbError]) -> String {
    const NAMED: usize = 16;
    let names = files.iter().filter_map(|error| error.path());
    let names: Vec<String> = names.take(NAMED).map(|path| path.display().to_string()).collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "not read: {} files of format {format}, where this lapscope reads format {USER_VERSION}: two versions of lapscope have \
         written into this run. Read these with the one that recorded them, or record the run again: {}{more}",
        files.len(),
        names.join(", ")
    )
}

fn missing_ranks(ranks: &[&RankInfo]) -> Option<Problem> {
    let mut worlds: BTreeMap<i64, i64> = BTreeMap::new();
    for info in ranks.iter() {
        let size = worlds.entry(info.rank.world).or_default();
        *size = info.world_size.max(*size);
    }
    let present: BTreeSet<Rank> = ranks.iter().map(|rank| rank.rank).collect();
    let all = worlds
        .iter()
        .flat_map(|(&world, &size)| (0..size).map(move |number| Rank { world, number }));
    // A damaged file may claim any world size; never list more than can be read.
    let missing: Vec<Rank> = all.filter(|rank| !present.contains(rank)).take(10_000).collect();
    if missing.is_empty() {
        return None;
    }
    let total: i64 = worlds.values().sum();
    let message = format!(
        "no data of {} of {total} ranks ({}): the numbers are of the other {}",
        total - present.len() as i64,
        list_ranks(&missing),
        present.len()
    );
    Some(Problem::new(ProblemKind::MissingRanks, message, missing))
}

/// Spawned processes have the environment that their launcher gives them, which need not be that of their parents.
fn unrecorded_children(ranks: &[&RankInfo]) -> Option<Problem> {
    let spawned: i64 = ranks.iter().map(|rank| rank.spawned).sum();
    let worlds: BTreeMap<i64, i64> =
        ranks.iter().map(|rank| (rank.rank.world, rank.world_size)).collect();
    let of_others = worlds.iter().filter(|(&world, _)| world != Rank::FIRST_WORLD);
    let missing = spawned - of_others.map(|(_, size)| size).sum::<i64>();
    (missing > 0).then(|| {
        let message = format!(
            "{missing} of {spawned} spawned processes are not in these numbers: their environment was without lapscope, as when \
             it was not the launcher that was started with it (lapscope run -- mpirun ...), or they have a run directory of \
             their own"
        );
        Problem::new(ProblemKind::UnrecordedChildren, message, vec![])
    })
}

fn several_jobs(ranks: &[&RankInfo]) -> Option<Problem> {
    // a spool that was cut may have lost the name of its job
    let named = ranks.iter().map(|rank| rank.job.as_str()).filter(|job| !job.is_empty());
    let jobs: BTreeSet<&str> = named.collect();
    (jobs.len() > 1).then(|| {
        let message = format!(
            "these files are of {} different jobs, added up here: name one file, or keep one job in a directory",
            jobs.len()
        );
        Problem::new(ProblemKind::SeveralJobs, message, vec![])
    })
}

fn deaths(ranks: &[&RankInfo], pending: &[PendingItem]) -> Vec<Problem> {
    let dead: Vec<&RankInfo> =
        ranks.iter().copied().filter(|rank| rank.ended != Ended::Finalize).collect();
    if dead.len() <= DEATHS_IN_FULL {
        return dead.iter().map(|rank| describe_death(rank, pending)).collect();
    }
    let keys: BTreeSet<(Rank, i64)> = dead.iter().map(|info| (info.rank, info.life)).collect();
    // not every command reads what was pending
    let is_read = !pending.is_empty();
    let is_of_record = dead.iter().all(|rank| rank.summarized == Some(Full::JobRecord));
    let of_dead = pending.iter().filter(|item| keys.contains(&(item.rank, item.life)));
    let of_dead: Vec<PendingItem> = of_dead.cloned().collect();
    let outside = find_outside(dead, &of_dead);
    let mut places = group_places(&of_dead, &outside);
    let others = places.split_off(places.len().min(DEATHS_IN_FULL));
    let mut problems: Vec<Problem> = places
        .into_iter()
        .map(|place| describe_deaths(place, ranks.len(), is_read, is_of_record))
        .collect();
    let rest: Vec<Rank> = others.into_iter().flat_map(|place| place.ranks).collect();
    let rest: Vec<Rank> = BTreeSet::from_iter(rest).into_iter().collect();
    if !rest.is_empty() {
        let said = ranks_in_words(&rest, ranks.len());
        let message = format!("{} more did not reach MPI_Finalize: {said}", rest.len());
        problems.push(Problem::new(ProblemKind::Died, message, rest));
    }
    problems
}

/// Ranks that died at the same place; where calls were not read it is not known whether they were in one.
fn describe_deaths(place: PlaceGroup, of: usize, is_read: bool, is_of_record: bool) -> Problem {
    let how = match place.ended {
        Ended::Abort => "called MPI_Abort",
        Ended::Exit => "exited without MPI_Finalize",
        Ended::Killed if is_of_record => "did not reach MPI_Finalize as far as the record knows",
        Ended::Killed | Ended::Finalize if place.count == 1 => "was killed",
        Ended::Killed | Ended::Finalize => "were killed",
    };
    let when = match (place.first_after_init_ns, place.last_after_init_ns) {
        (first, last) if first == last => format!("{:.3}", first.seconds()),
        (first, last) => format!("{:.3} to {:.3}", first.seconds(), last.seconds()),
    };
    let site = place.site.as_ref().map(|site| format!(" at {}", site.short())).unwrap_or_default();
    let outside = if is_read { " outside MPI" } else { "" };
    let at = match &place.call {
        Some(call) => format!(", inside {call}{site} (entered {when} s after MPI_Init)"),
        None => format!("{outside} (last recorded {when} s after MPI_Init)"),
    };
    let message = format!("{} {how}{at}", ranks_in_words(&place.ranks, of));
    Problem::new(ProblemKind::Died, message, place.ranks)
}

fn describe_death(info: &RankInfo, pending: &[PendingItem]) -> Problem {
    let how = match info.ended {
        Ended::Abort => "called MPI_Abort",
        Ended::Exit => "exited without MPI_Finalize",
        Ended::Killed if info.summarized == Some(Full::JobRecord) => {
            "did not reach MPI_Finalize as far as its record knows"
        }
        Ended::Killed | Ended::Finalize => "was killed",
    };
    let mut message = format!("rank {} on {} {how}", info.rank, info.host);
    let mine: Vec<&PendingItem> =
        pending.iter().filter(|item| (item.rank, item.life) == (info.rank, info.life)).collect();
    // When it died is not recorded: a killed process writes nothing more.
    let calls: Vec<&&PendingItem> =
        mine.iter().filter(|item| item.what == PendingKind::Call).collect();
    if calls.is_empty() {
        message += &match info.run_time() {
            Nanos(0) => "; nothing recorded behind MPI_Init".to_owned(),
            time => format!("; last recorded {:.3} s after MPI_Init", time.seconds()),
        };
    }
    for call in calls {
        let entered = call.begin_after_init_ns.seconds();
        message += &format!(", inside {} (entered {entered:.3} s after MPI_Init)", call.describe());
    }
    let requests: Vec<&&PendingItem> =
        mine.iter().filter(|item| item.what == PendingKind::Request).collect();
    match requests.as_slice() {
        [] => {}
        [one] => message += &format!("; pending: {}", one.describe()),
        [first, rest @ ..] => {
            message += &format!("; pending: {} and {} more", first.describe(), rest.len());
        }
    }
    Problem::new(ProblemKind::Died, message, vec![info.rank])
}

fn pending_after_finalize(ranks: &[&RankInfo], pending: &[PendingItem]) -> Option<Problem> {
    // of a damaged spool the ends of requests may be missing
    let finalized: BTreeSet<(Rank, i64)> = ranks
        .iter()
        .filter(|rank| rank.ended == Ended::Finalize && rank.damaged_pieces == 0)
        .map(|rank| (rank.rank, rank.life))
        .collect();
    let mut counts: BTreeMap<Rank, u64> = BTreeMap::new();
    for item in pending.iter().filter(|item| finalized.contains(&(item.rank, item.life))) {
        *counts.entry(item.rank).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    let ranks: Vec<Rank> = counts.into_keys().collect();
    (total > 0).then(|| {
        let message = format!(
            "{total} request{} never completed before MPI_Finalize (rank{} {}): an error in the program",
            plural(total),
            plural(ranks.len() as u64),
            list_ranks(&ranks)
        );
        Problem::new(ProblemKind::Pending, message, ranks)
    })
}

fn incomplete_records(ranks: &[&RankInfo]) -> Vec<Problem> {
    let lost = sum_where(ranks, |rank| rank.lost_records.saturating_sub(rank.damaged_pieces));
    let damaged = sum_where(ranks, |rank| rank.damaged_pieces);
    let unknown = sum_where(ranks, |rank| rank.unknown_requests);
    let mut problems = Vec::new();
    let mut summarized: BTreeMap<Full, Vec<Rank>> = BTreeMap::new();
    for (full, rank) in ranks.iter().filter_map(|rank| Some((rank.summarized?, rank.rank))) {
        summarized.entry(full).or_default().push(rank);
    }
    for (full, summarized) in summarized {
        let what = match full {
            Full::MaxMb => {
                "sums by call site and size are exact, of all of the run. Single requests, overlap and causes are of what has \
                 records: all up to there, and slots of time drawn at random after it"
            }
            Full::Disk | Full::FileSize => {
                "after that only sums per call site and size were kept. Totals are complete; `requests` lists the part in \
                 detail"
            }
            Full::Asked => {
                "there are totals by call site and size, of the whole run; no single requests, no overlap, no causes"
            }
            Full::JobRecord => {
                "there are totals by call site and size, of the whole run; no single requests, no overlap, no causes. Of sites that \
                 more than two ranks of a node share, the record knows the rank with the most time and the sum of the others: their \
                 single times are estimates"
            }
        };
        let message = format!(
            "{} on rank{} {}: {what}",
            full.sentence(),
            plural(summarized.len() as u64),
            list_ranks(&summarized)
        );
        problems.push(Problem::new(ProblemKind::Summarized, message, summarized));
    }
    if lost.0 > 0 {
        let message = format!(
            "{} record{} could not be kept (rank{} {}): was the disk full? All sums are too small",
            lost.0,
            plural(lost.0),
            plural(lost.1.len() as u64),
            list_ranks(&lost.1)
        );
        problems.push(Problem::new(ProblemKind::LostRecords, message, lost.1));
    }
    if damaged.0 > 0 {
        let message = format!(
            "{} piece{} of the spool{} of rank{} {} could not be read when it became a database: it was damaged or cut off. \
             What stood there is missing, and all sums are too small",
            damaged.0,
            plural(damaged.0),
            plural(damaged.1.len() as u64),
            plural(damaged.1.len() as u64),
            list_ranks(&damaged.1)
        );
        problems.push(Problem::new(ProblemKind::LostRecords, message, damaged.1));
    }
    let marks = sum_where(ranks, |rank| rank.lost_marks);
    if marks.0 > 0 {
        let message = format!(
            "{} mark{} of regions and steps {} left out (rank{} {}), as there were more than are kept: a higher LAPSCOPE_MAX_MB keeps \
             more of them",
            marks.0,
            plural(marks.0),
            if marks.0 == 1 { "was" } else { "were" },
            plural(marks.1.len() as u64),
            list_ranks(&marks.1)
        );
        problems.push(Problem::new(ProblemKind::LostMarks, message, marks.1));
    }
    let paths = sum_where(ranks, |rank| rank.cut_paths);
    if paths.0 > 0 {
        let message = format!(
            "the call path of {} call{} is its innermost frame alone (rank{} {}), as paths vary without end there: a higher \
             LAPSCOPE_CALLPATH_MB keeps more of them",
            paths.0,
            plural(paths.0),
            plural(paths.1.len() as u64),
            list_ranks(&paths.1)
        );
        problems.push(Problem::new(ProblemKind::CutPaths, message, paths.1));
    }
    if unknown.0 > 0 {
        let message = format!(
            "{} request{} completed whose start lapscope did not see (rank{} {}): made by functions that it does not wrap, or by a library that calls MPI past it (RTLD_DEEPBIND)",
            unknown.0,
            plural(unknown.0),
            plural(unknown.1.len() as u64),
            list_ranks(&unknown.1)
        );
        problems.push(Problem::new(ProblemKind::UnknownRequests, message, unknown.1));
    }
    problems
}

fn sum_where(ranks: &[&RankInfo], count: impl Fn(&RankInfo) -> u64) -> (u64, Vec<Rank>) {
    let with = ranks.iter().filter(|rank| count(rank) > 0);
    (ranks.iter().map(|rank| count(rank)).sum(), with.map(|rank| rank.rank).collect())
}

/// One problem for all modules that were rebuilt, one for all whose files are not here.
pub fn module_problems<'a>(
    troubles: impl Iterator<Item = (&'a Module, ModuleTrouble)>,
) -> Vec<Problem> {
    let (mut rebuilt, mut unavailable) = (BTreeSet::new(), BTreeSet::new());
    for (module, trouble) in troubles {
        // The kernel's own object has no file; nobody can do anything about that.
        if module.path.starts_with('/') {
            match trouble {
                ModuleTrouble::Rebuilt => rebuilt.insert(module.path.as_str()),
                ModuleTrouble::Unavailable => unavailable.insert(module.path.as_str()),
            };
        }
    }
    let mut problems = Vec::new();
    let join = |paths: BTreeSet<&str>| paths.into_iter().collect::<Vec<_>>().join(", ");
    if !rebuilt.is_empty() {
        let message = format!(
            "rebuilt since the run, so addresses are shown in place of names: {}. Put the build that ran back there, or \
             record again",
            join(rebuilt)
        );
        problems.push(Problem::new(ProblemKind::Rebuilt, message, vec![]));
    }
    if !unavailable.is_empty() {
        let message = format!(
            "not on this machine, so addresses are shown in place of names: {}. Run the report where the program ran",
            join(unavailable)
        );
        problems.push(Problem::new(ProblemKind::NoSymbols, message, vec![]));
    }
    problems
}
