//! Looks at a job again and again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use lapscope_data::db::{find_run, list_files, DbError};
use lapscope_data::model::Nanos;
use lapscope_data::state::Observer;
use lapscope_data::symbols::Symbols;
use lapscope_watch::live::{Gatherer, Live, Moment};

/// What there is to see.
#[derive(Debug)]
pub enum Sight {
    /// Nothing yet; what is waited for.
    Waiting(String),
    Job(Box<JobMoment>),
    /// Nothing any more; why.
    Gone(String),
}

/// A job that was seen.
#[derive(Debug, Clone)]
pub struct JobMoment {
    pub run: PathBuf,
    pub moment: Moment,
}

pub struct Looker {
    named: Option<PathBuf>,
    found: Option<AttachedRun>,
    live: Live,
}

struct AttachedRun {
    run: PathBuf,
    observer: Observer,
    gatherer: Gatherer,
    symbols: Symbols,
    /// That `symbols` knows.
    modules: usize,
}

impl Looker {
    pub fn new(named: Option<&Path>, window: Duration, alert: Duration) -> Looker {
        let live = Live::new(nanos(window), nanos(alert));
        Looker { named: named.map(Path::to_path_buf), found: None, live }
    }

    /// The run, once it was found.
    pub fn run(&self) -> Option<&Path> {
        self.found.as_ref().map(|found| found.run.as_path())
    }

    /// # Errors
    /// What is there is no run.
    pub fn look(&mut self) -> Result<Sight> {
        if self.found.is_none() {
            match self.find() {
                Ok(found) => self.found = Some(found),
                Err(Missing::Yet(text)) => return Ok(Sight::Waiting(text)),
                Err(Missing::Other(error)) => return Err(error),
            }
        }
        let found = self.found.as_mut().expect("it was found");
        let state = match found.observer.look(&mut found.gatherer) {
            Ok(state) => state,
            Err(error) => return Ok(Sight::Gone(format!("{}: {error:#}", found.run.display()))),
        };
        if state.ranks.is_empty() && state.unseen.is_empty() {
            let run = found.run.display();
            return Ok(Sight::Waiting(format!("no rank has written into {run} yet")));
        }
        if state.modules.len() != found.modules {
            found.modules = state.modules.len();
            found.symbols = Symbols::new(state.modules.clone());
        }
        let moment = self.live.look(&state, &mut found.gatherer, &mut found.symbols);
        Ok(Sight::Job(Box::new(JobMoment { run: found.run.clone(), moment })))
    }

    fn find(&self) -> Result<AttachedRun, Missing> {
        let run = find_run(self.named.as_deref())?;
        list_files(&run)?;
        let observer = Observer::open(&run).map_err(Missing::Other)?.without_history();
        let (gatherer, symbols) = (Gatherer::default(), Symbols::new(Vec::new()));
        Ok(AttachedRun { run, observer, gatherer, symbols, modules: 0 })
    }
}

/// Why there is nothing to look at.
enum Missing {
    /// It may still come.
    Yet(String),
    Other(anyhow::Error),
}

impl From<DbError> for Missing {
    fn from(error: DbError) -> Missing {
        match &error {
            DbError::NotFound(path) => Missing::Yet(format!("{} is not there yet", path.display())),
            DbError::Empty(path) => {
                Missing::Yet(format!("no rank has written into {} yet", path.display()))
            }
            DbError::NoRun => Missing::Yet("there is no lapscope-* directory here yet".into()),
            _ => Missing::Other(error.into()),
        }
    }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}
