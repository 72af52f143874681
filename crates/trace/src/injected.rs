//! Reads what a file says of injection: what ranks were asked for, what was injected where, and of A/B runs the eligible
//! requests, in one pass.

pub mod arms;
pub mod distances;
pub mod page;
mod windows;

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::Serialize;

use self::arms::{Arms, Posted};
use self::page::Page;
use crate::query::{injection_budget, injection_sums, injectors, request_sites, OperationSite};
use lapscope_data::db::{for_each_file, scan_rows, Database, DbError, FileDefinitions};
use lapscope_data::model::{CallRow, Nanos, Rank, RankInfo, RankKey};
use lapscope_data::places::{CallPathId, Places, PlacesOfFile, SiteId};
use lapscope_data::request_row;

pub use crate::test_counts::Tests;

/// Where requests are posted, and by which call path.
pub type PostedAt = (SiteId, Option<CallPathId>);

/// A rank that was asked to inject.
#[derive(Debug, Clone, Serialize)]
pub struct RankInjection {
    pub rank: Rank,
    pub life: i64,
    /// calls, timer, thread, auto
    pub mode: String,
    /// Why it injected nothing, or stopped.
    pub problem: Option<String>,
    /// What interrupts under timer: perf, cputime.
    pub clock: Option<String>,
    pub ab_slot_ns: Option<Nanos>,
    /// A test that finds nothing, an interrupt without its test, finding out whether MPI may be entered.
    pub test_ns: Option<Nanos>,
    pub interrupt_ns: Option<Nanos>,
    pub check_ns: Option<Nanos>,
    /// Cost that bought nothing, which the budget limits.
    pub spent_ns: Nanos,
    pub run_ns: Nanos,
    /// The part of the run time able to run and without a processor: that does not count for the budget.
    pub waited_ns: Nanos,
    /// Fraction of the run time that it may cost.
    pub budget: Option<f64>,
    /// What it tried and decided; only under auto.
    #[serde(skip)]
    pub page: Option<Page>,
}

/// What a file says of injection.
#[derive(Debug)]
pub struct FileInjection {
    pub ranks: Vec<RankInjection>,
    pub rows: Vec<InjectionRow>,
    /// For each rank with slots: where its eligible requests are.
    pub arms: Vec<Arms<PostedAt>>,
}

/// Rows of `injection` of one rank and site, its threads together.
#[derive(Debug)]
pub struct InjectionRow {
    pub rank: Rank,
    pub at: PostedAt,
    pub is_on: bool,
    pub tests: Tests,
}

/// Reads files in which a rank was asked to inject; also why some could not be read.
pub fn read_files(
    databases: &[PathBuf],
    places: &Places,
    ranks: &[Rank],
) -> (Vec<FileInjection>, Vec<DbError>) {
    let read = for_each_file(databases, |database, definitions| {
        let of_file = places.of_file(&database.path);
        read_file(database, of_file, &definitions, ranks).map_err(DbError::reading(&database.path))
    });
    read.map_or_else(|error| (Vec::new(), vec![error]), |read| (read.read, read.failed))
}

fn read_file(
    database: &Database,
    of_file: PlacesOfFile<'_>,
    definitions: &FileDefinitions,
    wanted: &[Rank],
) -> rusqlite::Result<FileInjection> {
    let connection = &database.connection;
    let infos: HashMap<RankKey, RankInfo> = definitions
        .ranks
        .iter()
        .filter(|info| wanted.is_empty() || wanted.contains(&info.rank))
        .map(|info| (info.key, info.clone()))
        .collect();
    let ranks = read_ranks(connection, &infos)?;
    let rows = read_sites(connection, of_file, &infos)?;
    let slots: HashMap<RankKey, i64> = ranks
        .iter()
        .filter_map(|(key, rank)| Some((*key, rank.ab_slot_ns?.0)))
        .filter(|(_, slot)| *slot > 0)
        .collect();
    let arms = match slots.is_empty() {
        true => Vec::new(),
        false => read_arms(connection, of_file, &infos, &slots)?,
    };
    let ranks = ranks.into_iter().map(|(_, rank)| rank).collect();
    Ok(FileInjection { ranks, rows, arms })
}

fn read_ranks(
    connection: &Connection,
    infos: &HashMap<RankKey, RankInfo>,
) -> rusqlite::Result<Vec<(RankKey, RankInjection)>> {
    let mut ranks = Vec::new();
    for row in injectors(connection)? {
        let Some(info) = infos.get(&row.rank) else { continue };
        let run_ns = info.run_time();
        let waited_ns = info.processor.map_or(Nanos(0), |processor| processor.wait.min(run_ns));
        let had = 1.0 - waited_ns.share_of(run_ns);
        let rank = RankInjection {
            rank: info.rank,
            life: info.life,
            mode: row.mode,
            problem: row.problem,
            clock: row.clock,
            ab_slot_ns: row.ab_slot_ns,
            test_ns: row.test_ns,
            interrupt_ns: row.interrupt_ns,
            check_ns: row.check_ns,
            spent_ns: row.spent_ns,
            run_ns,
            waited_ns,
            budget: injection_budget(connection, row.rank)?.map(|budget| budget * had),
            page: row.page.and_then(|text| Page::parse(&text)),
        };
        ranks.push((row.rank, rank));
    }
    Ok(ranks)
}

fn read_sites(
    connection: &Connection,
    of_file: PlacesOfFile<'_>,
    infos: &HashMap<RankKey, RankInfo>,
) -> rusqlite::Result<Vec<InjectionRow>> {
    let mut sites = Vec::new();
    injection_sums(connection, |row| {
        let at = posted_at(of_file, row.call_id, row.call_path_id);
        if let Some((info, at)) = infos.get(&row.rank).zip(at) {
            sites.push(InjectionRow { rank: info.rank, at, is_on: row.is_on, tests: row.tests });
        }
    })?;
    Ok(sites)
}

request_row! {
    /// A request as far as arms are concerned.
    struct ArmRow { operation_id, completion_id, post_begin, post, injection_arm }
}

/// Eligible requests that one call completed, which share its time: what it waited for were these, not the small messages
/// that it completed too.
#[derive(Default)]
struct Completed {
    call: Option<CallRow>,
    requests: Vec<(RankKey, Posted<PostedAt>)>,
}

impl Completed {
    fn hand_out(&mut self, arms: &mut FxHashMap<RankKey, Arms<PostedAt>>) {
        let duration = self.call.take().and_then(|call| call.duration).unwrap_or_default();
        let share = duration.0 as f64 / self.requests.len().max(1) as f64;
        for (rank, request) in self.requests.drain(..) {
            let exposed = request.exposed.map(|post| post + share);
            if let Some(arms) = arms.get_mut(&rank) {
                arms.add(Posted { exposed, ..request });
            }
        }
    }
}

fn read_arms(
    connection: &Connection,
    of_file: PlacesOfFile<'_>,
    infos: &HashMap<RankKey, RankInfo>,
    slots: &HashMap<RankKey, i64>,
) -> rusqlite::Result<Vec<Arms<PostedAt>>> {
    let sites = read_operations(connection, of_file)?;
    let arms = slots.iter().map(|(&rank, &slot)| (rank, Arms::new(Nanos(slot)))).collect();
    let mut state: (Completed, FxHashMap<RankKey, Arms<PostedAt>>) = (Completed::default(), arms);
    scan_rows::<ArmRow, _>(
        connection,
        &mut state,
        |_, _| {},
        |(completed, arms), row, completion| {
            let Some(arm) = row.injection_arm else { return true };
            let Some(&(rank, site)) = sites.get(&row.operation_id) else { return true };
            let Some(info) = infos.get(&rank) else { return true };
            if completed.call.map(|call| call.id) != completion.map(|call| call.id) {
                completed.hand_out(arms);
                completed.call = completion.copied();
            }
            let request = Posted {
                site,
                is_on: arm != 0,
                moment: info.epoch_unix_ns + row.post_begin.0,
                until: completion.map(|call| info.epoch_unix_ns + call.begin.0),
                exposed: completion.and_then(|call| call.duration).map(|_| row.post.0 as f64),
            };
            completed.requests.push((rank, request));
            true
        },
    )?;
    let (mut completed, mut arms) = state;
    completed.hand_out(&mut arms);
    Ok(arms.into_values().map(Arms::finish).collect())
}

fn read_operations(
    connection: &Connection,
    of_file: PlacesOfFile<'_>,
) -> rusqlite::Result<FxHashMap<i64, (RankKey, PostedAt)>> {
    let mut operations = FxHashMap::default();
    request_sites(connection, |OperationSite { id, rank, call_id, call_path_id }| {
        if let Some(at) = posted_at(of_file, call_id, call_path_id) {
            operations.insert(id, (rank, at));
        }
    })?;
    Ok(operations)
}

fn posted_at(of_file: PlacesOfFile<'_>, call: i64, path: Option<i64>) -> Option<PostedAt> {
    let site = of_file.site(call, path)?;
    Some((site, path.and_then(|path| of_file.path(path))))
}
