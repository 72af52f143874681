//! The same of ranks whose spools have become databases.

use std::path::Path;

use super::intern::Names;
use super::{Condition, History, RankState};
use crate::db::{Database, DbError, Definitions};
use crate::model::{Ended, RankInfo};

/// What a database holds.
#[derive(Debug)]
pub struct Part {
    pub ranks: Vec<RankState>,
}

/// # Errors
/// [`DbError`] naming the file.
pub fn read(path: &Path, _names: &mut Names) -> Result<Part, DbError> {
    let database = Database::open(path)?;
    let ranks = Definitions::read_ranks(&database)?;
    Ok(Part { ranks: ranks.iter().map(rank).collect() })
}

fn rank(info: &RankInfo) -> RankState {
    RankState {
        rank: info.rank,
        life: info.life,
        world_size: info.world_size,
        host: info.host.clone(),
        pid: info.pid,
        thread_level: info.thread_level,
        condition: match info.ended {
            Ended::Finalize => Condition::Finalized,
            Ended::Abort => Condition::Aborted,
            Ended::Exit => Condition::Exited,
            Ended::Killed => Condition::Killed,
        },
        epoch_unix_ns: info.epoch_unix_ns,
        init_end: info.init_end,
        now: info.end,
        last_record: info.end,
        threads: Vec::new(),
        other_threads: Vec::new(),
        requests: Vec::new(),
        history: History::default(),
    }
}
