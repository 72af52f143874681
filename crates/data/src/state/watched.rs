//! A spool that is looked at again and again, and what became of its process.
//!
//! Whether a process runs is asked before its spool is read: whoever is gone by then has written all that it ever will.
//! A process is known by its pid, its start and the boot of its host. One in another name space of processes, or on
//! another node, is unknown.

use std::path::Path;

use super::header::Header;
use super::intern::Names;
use super::rank::{now, Sight};
use super::seen::Sink;
use super::spool::Spool;
use super::tell::SinkTallies;
use super::translate::{JobIndices, Translate};
use super::{live, names};
use crate::model::Nanos;
use crate::store::Fate;

/// Times that a spool is read in which records appear meanwhile.
const TRIES: usize = 3;

#[derive(Debug)]
pub struct Watched {
    spool: Spool,
    known: JobIndices,
    told: SinkTallies,
    /// What was seen last: nothing changes any more once the process is gone.
    last: Option<Sight>,
}

impl Watched {
    /// # Errors
    /// Why it cannot be read, as a sentence's end.
    pub fn open(path: &Path, has_history: bool) -> Result<Watched, String> {
        let mut spool = Spool::open(path, names::all().len())?;
        spool.tables.has_history = has_history;
        Ok(Watched {
            spool,
            known: JobIndices::default(),
            told: SinkTallies::default(),
            last: None,
        })
    }

    pub fn header(&self) -> &Header {
        &self.spool.header
    }

    pub fn is_same(&self) -> bool {
        self.spool.is_same()
    }

    pub fn close(&mut self) {
        self.spool.close();
    }

    pub fn parts(&mut self) -> (&Spool, &mut JobIndices) {
        (&self.spool, &mut self.known)
    }

    /// Reads what is new, and tells a sink of it.
    ///
    /// # Errors
    /// Why it cannot be read, as a sentence's end.
    pub fn look(
        &mut self,
        tell: Option<(&mut dyn Sink, &mut Names)>,
        keep_open: bool,
    ) -> Result<Sight, String> {
        let is_told = tell.is_some();
        if let Some(last) = self.last.as_ref().filter(|_| !is_told || self.told.is_all()) {
            return Ok(last.clone());
        }
        // before its spool is read: whoever was gone then has written all that he ever will
        let fate = self.spool.header.owner.fate();
        self.spool.open_again()?;
        let sight = self.read(tell, fate)?;
        if fate == Fate::Ended {
            self.last = Some(sight.clone());
            self.spool.close();
        } else if !keep_open {
            self.spool.close();
        }
        Ok(sight)
    }

    fn read(
        &mut self,
        mut tell: Option<(&mut dyn Sink, &mut Names)>,
        fate: Fate,
    ) -> Result<Sight, String> {
        self.spool.tables.keep_fresh(tell.is_some());
        let (mut threads, mut entries, mut seen) = Default::default();
        let tries = if self.spool.tables.has_history { TRIES } else { 1 };
        for _ in 0..tries {
            self.spool.begin_look()?;
            self.spool.read_records()?;
            (threads, entries) =
                live::read(&self.spool).map_err(|error| format!("cannot be read ({error})"))?;
            // telling may take long, and is behind the moment of which this is
            seen = now(&self.spool, fate != Fate::Unknown);
            if tries == 1 || !self.spool.has_grown()? {
                break;
            }
        }
        self.tell(&mut tell, seen);
        Ok(Sight { fate, now: seen, threads, entries, is_whole: self.spool.is_whole() })
    }

    fn tell(&mut self, tell: &mut Option<(&mut dyn Sink, &mut Names)>, seen: Nanos) {
        let (Some((sink, names)), Some(mut fresh)) = (tell, self.spool.tables.fresh.take()) else {
            return;
        };
        let mut translate = Translate { spool: &self.spool, known: &mut self.known, names };
        self.told.sums(&mut translate, &mut fresh, *sink);
        self.told.tallies(&mut translate, *sink);
        fresh.single_until = self.spool.header.clock.ticks(seen);
        self.spool.tables.fresh = Some(fresh);
    }
}
