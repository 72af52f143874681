//! Looks at a job again and again, and reads each time only what is new.
//!
//! A look reads what is new. How much of each chunk is in use is asked of all streams before any is read, because a
//! record speaks only of what was defined before it, maybe in the stream of another thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::database::{self, DatabaseRanks};
use super::elsewhere::{self, SpoolFile};
use super::intern::Names;
use super::merge::latest_lives;
use super::rank::{self, Sight};
use super::seen::Sink;
use super::translate::Translate;
use super::watched::Watched;
use super::{system, JobState, RankState, Sequence, Unseen};
use crate::db::{self, DbError};
use crate::model::Rank;
use crate::store::Fate;

/// Collectives that a state lists of all ranks together: of many ranks fewer each.
const MOST_COLLECTIVES: usize = 4 << 20;
const LEAST_COLLECTIVES: usize = 64;
/// Descriptors that are left to others.
const DESCRIPTORS_OF_OTHERS: u64 = 128;

/// Reads what the ranks of a job do, and what they did, from the spools of running and of dead processes, and from databases.
/// Nothing is written, and no process is stopped or waited for.
#[derive(Debug)]
pub struct Observer {
    root: PathBuf,
    spools: BTreeMap<PathBuf, Watched>,
    /// What was read of them, or why it could not be.
    databases: BTreeMap<PathBuf, Result<DatabaseRanks, String>>,
    names: Names,
    /// Spools that may stay open between two looks.
    most_open: usize,
    reads_databases: bool,
    has_history: bool,
}

type Sights = Vec<(PathBuf, Result<Sight, String>)>;

impl Observer {
    /// Opens the run directory, or the database, `root`.
    ///
    /// # Errors
    /// There is none.
    pub fn open(root: &Path) -> anyhow::Result<Observer> {
        std::fs::metadata(root).with_context(|| root.display().to_string())?;
        Ok(Observer {
            root: root.into(),
            spools: BTreeMap::new(),
            databases: BTreeMap::new(),
            names: Names::default(),
            most_open: allow_open_files(),
            reads_databases: true,
            has_history: true,
        })
    }

    /// Leaves what is in databases to others.
    #[must_use]
    pub fn without_databases(self) -> Observer {
        Observer { reads_databases: false, ..self }
    }

    /// For who looks at how fast a job goes, not at what it comes to: neither requests under way nor a [`RankState::history`] are
    /// read, nor where threads sleep.
    #[must_use]
    pub fn without_history(self) -> Observer {
        Observer { has_history: false, ..self }
    }

    /// What is now, and what was since the last look. What cannot be read is named in [`JobState::unseen`]. A job of which nothing
    /// is there yet has no ranks.
    ///
    /// # Errors
    /// The run directory cannot be listed.
    pub fn look(&mut self, sink: &mut dyn Sink) -> anyhow::Result<JobState> {
        const MOST: usize = 4;
        let mut looks = 1;
        loop {
            let (job, sources) = self.look_once(sink)?;
            // of a rank that ends meanwhile there is a database now
            if looks == MOST || sources.iter().all(|source| source.path.exists()) {
                return Ok(job);
            }
            looks += 1;
        }
    }

    fn look_once(&mut self, sink: &mut dyn Sink) -> anyhow::Result<(JobState, Vec<SpoolFile>)> {
        let files = match db::list_files(&self.root) {
            Err(DbError::Empty(_)) => return Ok((self.names.job(), Vec::new())),
            files => files?,
        };
        let elsewhere::SpoolSearch { sources, mut unseen } =
            elsewhere::find(&self.root, &files.spools);
        unseen.extend(files.left_out.iter().map(Unseen::file));
        self.open_new(&sources, &mut unseen);
        let sights = self.read_spools(sink);
        let mut ranks = self.states(sights, &sources, &mut unseen);
        // whoever made a database may not have removed the spool yet
        let seen: FxHashSet<(Rank, i64)> = ranks.iter().map(|it| (it.rank, it.life)).collect();
        let databases = if self.reads_databases { files.databases } else { Vec::new() };
        for path in &databases {
            match self.database(path) {
                Ok(part) => {
                    let is_new = |it: &&RankState| !seen.contains(&(it.rank, it.life));
                    ranks.extend(part.ranks.iter().filter(is_new).cloned());
                }
                Err(why) => {
                    let (file, why) = (elsewhere::stem(path), why.clone());
                    unseen.push(Unseen { file, host: String::new(), why });
                }
            }
        }
        let mut job = self.names.job();
        job.ranks = latest_lives(ranks);
        unseen.sort_by(|a, b| (&a.file, &a.why).cmp(&(&b.file, &b.why)));
        job.unseen = unseen;
        Ok((job, sources))
    }

    /// Takes spools that came, and forgets those that went.
    fn open_new(&mut self, sources: &[SpoolFile], unseen: &mut Vec<Unseen>) {
        let mut known = std::mem::take(&mut self.spools);
        for source in sources {
            let watched = match known.remove(&source.path) {
                Some(watched) if watched.is_same() => Ok(watched),
                _ => Watched::open(&source.path, self.has_history),
            };
            match watched.and_then(|watched| source.check(watched.header()).map(|()| watched)) {
                Ok(mut watched) => {
                    if self.spools.len() >= self.most_open {
                        watched.close();
                    }
                    self.spools.insert(source.path.clone(), watched);
                }
                Err(why) => unseen.push(source.unseen(&why)),
            }
        }
    }

    /// Side by side, unless somebody is to be told.
    fn read_spools(&mut self, sink: &mut dyn Sink) -> Sights {
        let keep_open = self.spools.len() <= self.most_open;
        let names = &mut self.names;
        if sink.is_interested() {
            let read = |(path, watched): (&PathBuf, &mut Watched)| {
                (path.clone(), watched.look(Some((sink, names)), keep_open))
            };
            return self.spools.iter_mut().map(read).collect();
        }
        let each: Vec<(&PathBuf, &mut Watched)> = self.spools.iter_mut().collect();
        let read = |(path, watched): (&PathBuf, &mut Watched)| {
            (path.clone(), watched.look(None, keep_open))
        };
        each.into_par_iter().map(read).collect()
    }

    fn states(
        &mut self,
        sights: Sights,
        sources: &[SpoolFile],
        unseen: &mut Vec<Unseen>,
    ) -> Vec<RankState> {
        let kept =
            (MOST_COLLECTIVES / sights.len().max(1)).clamp(LEAST_COLLECTIVES, Sequence::KEPT);
        let by_path: BTreeMap<&Path, &SpoolFile> =
            sources.iter().map(|source| (source.path.as_path(), source)).collect();
        let mut ranks = Vec::with_capacity(sights.len());
        for (path, sight) in sights {
            let (Some(watched), Some(source)) =
                (self.spools.get_mut(&path), by_path.get(path.as_path()))
            else {
                continue;
            };
            match sight {
                Ok(sight) => {
                    if sight.fate == Fate::Unknown {
                        unseen
                            .push(source.unseen(&elsewhere::may_run(watched.header(), &self.root)));
                    }
                    ranks.push(state(watched, sight, &mut self.names, kept));
                }
                Err(why) => unseen.push(source.unseen(&why)),
            }
        }
        ranks
    }

    /// A database is read once: it appears whole, and does not change.
    fn database(&mut self, path: &Path) -> Result<&DatabaseRanks, &String> {
        if !self.databases.contains_key(path) {
            let part = database::read(path, &mut self.names, self.has_history)
                .map_err(|error| error.to_string());
            self.databases.insert(path.into(), part);
        }
        self.databases[path].as_ref()
    }
}

fn state(watched: &mut Watched, sight: Sight, names: &mut Names, kept: usize) -> RankState {
    let runs = sight.fate == Fate::Runs;
    let (spool, known) = watched.parts();
    let has_history = spool.tables.has_history;
    let mut state = rank::state(&mut Translate { spool, known, names }, sight, kept);
    let look = if has_history { system::state_of } else { system::runs_or_not };
    for thread in state.threads.iter_mut().filter(|_| runs) {
        thread.system = look(state.pid, thread.tid);
    }
    if runs && has_history && state.is_multithreaded() {
        let known: Vec<i64> = state.threads.iter().map(|thread| thread.tid).collect();
        state.other_threads = system::others(state.pid, &known);
    }
    state
}

/// As many files as the system allows this process to have open; says how many of them may be spools.
fn allow_open_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is written and read during the calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
    }
    limit.rlim_cur.saturating_sub(DESCRIPTORS_OF_OTHERS).min(1 << 20) as usize
}
