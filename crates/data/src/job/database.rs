//! Records of a job as databases, so that whatever reads runs reads them. They have the tables of runs with sums alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use rusqlite::{params, Connection, Transaction};

use super::notes;
use super::shares::{divided, Budget};
use super::{is_record_name, JobFrame, JobRank, JobRecord, JobSite, NodeRecord, JOB_SUFFIX};
use crate::calendar::now_s;
use crate::calls::call_rows;
use crate::model::bounds::LONGEST_NS;
use crate::model::{Category, Nanos};
use crate::recovery::Copies;
use crate::schema::{SCHEMA_SQL, VIEWS_SQL};
use crate::text::shell;

/// `rank.summarized`: it is made of a record.
const OF_RECORD: i64 = 5;

/// The records of one job as a run.
#[derive(Debug)]
pub struct JobRun {
    /// Their databases, which go when this goes.
    pub copies: Copies,
    /// What is to be said of them, a sentence each.
    pub notes: Vec<String>,
}

/// The run that a record, or a directory with the records of one job, is; `None`: it is neither.
///
/// # Errors
/// It has records of several jobs, or none that can be read.
pub fn as_run(root: &Path) -> anyhow::Result<Option<JobRun>> {
    let own = match root.is_dir() {
        true => None,
        false if is_record(root) => Some(NodeRecord::read(root)?.record),
        false => return Ok(None),
    };
    let files = match &own {
        None => records_in(root, |_| true)?,
        Some(own) => siblings(root, &own.host)?,
    };
    if files.is_empty() {
        return Ok(None);
    }
    let is_of_job = |it: &NodeRecord| own.as_ref().map_or(true, |own| is_same_job(own, &it.record));
    let (mut records, mut notes) = (Vec::new(), Vec::new());
    for file in &files {
        match NodeRecord::read(file) {
            Ok(record) if !is_of_job(&record) => {}
            Ok(record) if record.ranks.is_empty() => {
                notes.push(format!("{}: no rank had come out of MPI_Init yet", file.display()));
            }
            Ok(record) => records.push(record),
            Err(error) => notes.push(format!("{error:#}")),
        }
    }
    if records.is_empty() {
        bail!("{}", notes.join("; "));
    }
    let jobs: BTreeSet<(&str, &Option<String>)> =
        records.iter().map(|it| (it.record.job.as_str(), &it.record.launch)).collect();
    if jobs.len() > 1 {
        let directory = shell::quote(root);
        bail!("{directory} has the records of {} jobs: name a file of one, or list them with lapscope jobs {directory}", jobs.len());
    }
    let mut copies = Copies::default();
    for (place, record) in records.iter().enumerate() {
        let database = copies.place()?.join(format!("node-{place}.db"));
        write(record, &database).with_context(|| format!("{}", database.display()))?;
        copies.databases.push(database);
        notes.extend(notes::of(record, now_s().saturating_mul(1_000_000_000)));
    }
    Ok(Some(JobRun { copies, notes }))
}

fn is_record(file: &Path) -> bool {
    file.file_name().is_some_and(|name| is_record_name(&name.to_string_lossy()))
}

fn is_same_job(own: &JobRecord, other: &JobRecord) -> bool {
    (&own.job, &own.launch) == (&other.job, &other.launch)
}

fn records_in(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.with_context(|| format!("{}", directory.display()))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let records = names.filter(|name| {
        let name = name.to_string_lossy();
        is_record_name(&name) && is_wanted(&name)
    });
    let mut files: Vec<PathBuf> = records.map(|name| directory.join(name)).collect();
    files.sort();
    Ok(files)
}

/// What may be the records of the same job on all nodes: `JOB-HASH-HOST.lapscope-job`, with `+2` and so on behind HOST of later programs of
/// that job on that node.
fn siblings(file: &Path, host: &str) -> anyhow::Result<Vec<PathBuf>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let (prefix, number) = (job_of(&name, host), number_of(&name));
    let is_sibling = |other: &str| other.starts_with(&prefix) && number_of(other) == number;
    let mut files = records_in(directory.unwrap_or(Path::new(".")), is_sibling)?;
    if files.is_empty() {
        files.push(file.into()); // it was renamed
    }
    Ok(files)
}

/// What stands in front of the host.
fn job_of(name: &str, host: &str) -> String {
    let host = name.find(&format!("-{host}")).unwrap_or(name.len());
    name[..host].to_owned()
}

fn number_of(name: &str) -> &str {
    name.strip_suffix(JOB_SUFFIX).and_then(|stem| stem.rsplit_once('+')).map_or("1", |(_, it)| it)
}

/// Makes the database of a record.
fn write(record: &NodeRecord, path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    connection.execute_batch(SCHEMA_SQL)?;
    connection.execute_batch(VIEWS_SQL)?;
    let transaction = connection.transaction()?;
    let file = File { record, ranks: spread(&record.ranks), transaction };
    file.write_calls()?;
    file.write_ranks()?;
    file.write_places()?;
    file.write_sites()?;
    file.transaction.commit()
}

/// A rank of each process: where a row is of several, each has its part of the sums.
fn spread(rows: &[JobRank]) -> Vec<JobRank> {
    let mut ranks = Vec::new();
    for row in rows {
        for place in 0..row.processes.min(1 << 20) {
            ranks.push(part_of(row, place));
        }
    }
    ranks
}

fn part_of(row: &JobRank, place: i64) -> JobRank {
    let count = row.processes;
    let time = |all: Nanos| Nanos(all.0 / count);
    JobRank {
        world_rank: row.world_rank + place,
        processes: 1,
        requests: row.requests / count as u64,
        calls: row.calls / count as u64,
        unsuccessful_tests: row.unsuccessful_tests / count as u64,
        posting: time(row.posting),
        completing: time(row.completing),
        blocking: time(row.blocking),
        collective: time(row.collective),
        rma: time(row.rma),
        io: time(row.io),
        unsuccessful_test: time(row.unsuccessful_test),
        other: time(row.other),
        run: row.run.map(time),
        wait: row.wait.map(time),
        ..row.clone()
    }
}

struct File<'r> {
    record: &'r NodeRecord,
    ranks: Vec<JobRank>,
    transaction: Transaction<'r>,
}

impl File<'_> {
    fn write_calls(&self) -> rusqlite::Result<()> {
        let sql = "INSERT INTO call_name VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, ''), nullif(?7, ''), ?8, nullif(?9, ''), nullif(?10, ''), ?11)";
        let mut insert = self.transaction.prepare(sql)?;
        for (id, row) in call_rows().enumerate() {
            let [name, family, role, kind, transfers, mode, counted, needs, completes, blocking] =
                row;
            insert.execute(params![
                id as i64,
                name,
                family,
                role,
                kind,
                transfers,
                mode,
                i64::from(counted != "0"),
                needs,
                completes,
                blocking
            ])?;
        }
        Ok(())
    }

    fn write_ranks(&self) -> rusqlite::Result<()> {
        let own = &self.record.record;
        let sql = "INSERT INTO rank (rank, world, world_rank, life, world_size, host, pid, command, executable, mpi_abi, mpi_library,
            mpi_standard, thread_level, lapscope_version, job, epoch_ns, epoch_unix_ns, clock, init_end_ns, end_ns, ended,
            lost_records, unknown_requests, summarized, spool_bytes)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?16, 'monotonic', ?17, ?18, ?19, ?20, ?21, ?22, 0)";
        let mut insert = self.transaction.prepare(sql)?;
        let mut processor = self.transaction.prepare(
            "INSERT INTO processor (rank, run_ns, wait_ns, switches, preemptions, allowed, online, peak_memory_bytes)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, ?5, ?6)",
        )?;
        let mut thread =
            self.transaction.prepare("INSERT INTO thread VALUES (?1, ?2, 0, 0, ?3, ?4)")?;
        let mut option =
            self.transaction.prepare("INSERT INTO option VALUES (?1, ?2, ?3, 'environment')")?;
        let mut found =
            self.transaction.prepare("INSERT INTO option VALUES (?1, ?2, ?3, 'recorded')")?;
        let mut environment =
            self.transaction.prepare("INSERT INTO environment VALUES (?1, ?2, ?3)")?;
        let mut cvar = self.transaction.prepare("INSERT INTO cvar VALUES (?1, ?2, ?3)")?;
        for (key, rank) in (0i64..).zip(&self.ranks) {
            let ended = if rank.ended == "running" { "killed" } else { rank.ended };
            let end = rank.end.0.max(rank.init_end.0);
            insert.execute(params![
                key,
                rank.world,
                rank.world_rank,
                rank.life,
                own.world_size.max(rank.world_rank + 1),
                own.host,
                rank.pid,
                own.command.as_deref().unwrap_or(&own.executable),
                own.executable,
                own.mpi_abi,
                own.mpi_library,
                own.mpi_standard,
                own.thread_level,
                own.lapscope_version,
                own.job,
                own.began_unix_ns,
                rank.init_end.0,
                end,
                ended,
                rank.lost_records as i64,
                rank.unknown_requests as i64,
                OF_RECORD
            ])?;
            if let (Some(run), Some(wait)) = (rank.run, rank.wait) {
                let (run, wait) = (run.0.min(LONGEST_NS), wait.0.min(LONGEST_NS));
                let peak = rank.peak_memory_bytes.map(|bytes| bytes.0 as i64);
                processor.execute(params![
                    key,
                    run,
                    wait,
                    rank.preemptions.unwrap_or(0) as i64,
                    rank.allowed.unwrap_or(0),
                    peak
                ])?;
            }
            thread.execute(params![
                key + 1,
                key,
                rank.mpi().0.min(LONGEST_NS),
                rank.calls as i64
            ])?;
            for setting in &self.record.settings {
                let insert = match setting.kind {
                    "option" if setting.name.starts_with("LAPSCOPE_") => &mut option,
                    // it is the first rank's, and another may have used it
                    "option" if setting.name == "cuda" => continue,
                    "option" => &mut found,
                    "environment" => &mut environment,
                    _ => &mut cvar,
                };
                insert.execute(params![key, setting.name, setting.value])?;
            }
        }
        Ok(())
    }

    /// Each rank has its own modules and paths.
    fn write_places(&self) -> rusqlite::Result<()> {
        let mut module =
            self.transaction.prepare("INSERT INTO module VALUES (?1, ?2, ?3, ?4, 0, 0)")?;
        let mut path = self.transaction.prepare("INSERT INTO call_path VALUES (?1, ?2, 1)")?;
        let mut frame = self.transaction.prepare("INSERT INTO frame VALUES (?1, ?2, ?3, ?4)")?;
        let of_sites: Vec<i64> = self.innermost();
        for (key, _) in (0i64..).zip(&self.ranks) {
            for own in &self.record.modules {
                let build_id = own.build_id.as_deref().unwrap_or_default();
                module.execute(params![self.id(key, own.id), key, own.path, build_id])?;
            }
            for innermost in &of_sites {
                let id = self.id(key, *innermost);
                path.execute(params![id, key])?;
                for (depth, JobFrame { module, address, .. }) in
                    self.record.path(Some(*innermost)).into_iter().enumerate()
                {
                    let module = module.map(|module| self.id(key, module));
                    frame.execute(params![id, depth as i64, module, address])?;
                }
            }
        }
        Ok(())
    }

    /// The frames at which paths of sites begin, in ascending order.
    fn innermost(&self) -> Vec<i64> {
        let mut frames: Vec<i64> = self.record.sites.iter().filter_map(|site| site.frame).collect();
        frames.sort_unstable();
        frames.dedup();
        frames
    }

    /// Of a module or a path of a rank.
    fn id(&self, rank: i64, own: i64) -> i64 {
        let most = self
            .record
            .frames
            .last()
            .map_or(0, |it| it.id)
            .max(self.record.modules.last().map_or(0, |it| it.id));
        rank * (most + 1) + own
    }

    fn write_sites(&self) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare(
            "INSERT INTO tally (rank, thread_id, call_id, call_path_id, reason, size_class, count, bytes, inside_ns, exposed_ns, mpi_ns, overlap_window_ns)
             SELECT ?1, ?2, id, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 FROM call_name WHERE name = ?3",
        )?;
        let mut budgets = Budgets::new(&self.ranks);
        for site in &self.record.sites {
            let parts = budgets.parts(site, &self.ranks);
            for (key, part) in (0i64..).zip(&parts) {
                if part.count == 0 && part.inside == 0 && part.exposed == 0 {
                    continue;
                }
                let path = site.frame.map(|frame| self.id(key, frame));
                insert.execute(params![
                    key,
                    key + 1,
                    site.call,
                    path,
                    site.reason,
                    site.size_class,
                    part.count,
                    part.bytes,
                    part.inside.min(LONGEST_NS),
                    part.exposed.min(LONGEST_NS),
                    part.mpi.min(LONGEST_NS),
                    part.window.min(LONGEST_NS)
                ])?;
            }
        }
        Ok(())
    }
}

/// What one rank has of a site.
#[derive(Debug, Clone, Copy)]
struct Part {
    count: i64,
    bytes: i64,
    inside: i64,
    exposed: i64,
    mpi: i64,
    window: i64,
}

/// By the times of ranks: for time inside calls those of their kind, for what was exposed that of completing calls.
struct Budgets {
    inside: [Budget; 8],
    exposed: Budget,
}

impl Budgets {
    fn new(ranks: &[JobRank]) -> Budgets {
        let of = |time: fn(&JobRank) -> i64| Budget::new(ranks.iter().map(time).collect());
        Budgets {
            inside: [
                of(|rank| rank.posting.0),
                of(|rank| rank.completing.0),
                of(|rank| rank.blocking.0),
                of(|rank| rank.collective.0),
                of(|rank| rank.rma.0),
                of(|rank| rank.io.0),
                of(|rank| rank.unsuccessful_test.0),
                of(|rank| rank.other.0),
            ],
            exposed: of(|rank| rank.completing.0),
        }
    }

    fn parts(&mut self, site: &JobSite, ranks: &[JobRank]) -> Vec<Part> {
        let call = crate::state::names::all().iter().find(|call| call.name == site.call);
        let kind = match call.map_or(Category::Other, |call| call.category()) {
            _ if site.reason == "unsuccessful_test" => 6,
            Category::Posting => 0,
            Category::Completing => 1,
            Category::BlockingPointToPoint => 2,
            Category::Collective => 3,
            Category::Rma => 4,
            Category::Io => 5,
            _ => 7,
        };
        let most = ranks.iter().position(|rank| rank.world_rank == site.most_world_rank);
        let alone = site.processes == 1;
        // the most of a request's site is of its posts and of what was exposed together
        let own = |part: i64| most.map(|rank| (rank, part.max(0)));
        let of_inside = if site.exposed.0 == 0 { own(site.most.0) } else { None };
        let of_inside = if alone { own(site.inside.0) } else { of_inside };
        let inside = self.inside[kind].share(site.inside.0, of_inside, alone);
        let posted = most.map_or(0, |rank| inside[rank]);
        let exposed = match site.exposed.0 {
            0 => vec![0; ranks.len()],
            exposed => self.exposed.share(exposed, own(site.most.0 - posted), alone),
        };
        let like_time = |all: i64| divided(all, &inside);
        let (count, bytes) = (like_time(site.count as i64), like_time(site.bytes.0 as i64));
        let (mpi, window) = (like_time(site.mpi.0), like_time(site.overlap_window.0));
        (0..ranks.len())
            .map(|rank| Part {
                count: count[rank],
                bytes: bytes[rank],
                inside: inside[rank],
                exposed: exposed[rank],
                mpi: mpi[rank],
                window: window[rank],
            })
            .collect()
    }
}
