//! Reads the ranks of a part.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::partial::{EarlierStages, Partial, Question, Stage};
use lapscope_data::db::{for_each_file, DbError, PerFile};
use lapscope_data::places::Places;
use lapscope_trace::stretch::Windows;
use lapscope_trace::sums::aggregate::FileSums;
use lapscope_trace::survey::Survey;
use lapscope_trace::{sum_and_keep, Cache, Depth, Matching, Paired, Settled, Trace};

/// A run as its parts are read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    pub survey: Arc<Survey>,
    pub places: Arc<Places>,
    /// Where what was read is kept.
    pub cache: Option<Arc<Cache>>,
}

impl Run {
    /// What the ranks at the places `focus` answer.
    pub fn answer(&self, question: &Question, focus: &[u32]) -> Partial {
        let answered = match &question.stage {
            Stage::Sums => self.sums(focus, &question.known),
            // asks what is known of clocks
            Stage::Clocks { .. } => {
                self.load(focus, None, Depth::Sums).map(|part| question.ask(part))
            }
            _ => {
                let clocks = Some(&question.known.clocks);
                self.load(focus, clocks, Depth::Sums).map(|part| question.ask(part))
            }
        };
        answered.unwrap_or_else(|failed| {
            let why = |error: DbError| {
                let path = error.path().map_or_else(PathBuf::new, |path| path.to_path_buf());
                (path, error.to_string())
            };
            Partial::Unreadable(failed.into_iter().map(why).collect())
        })
    }

    /// Ranks with those that they have to be read with, put together by what is known of the whole run.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn trace(&self, focus: &[u32], known: &EarlierStages) -> Result<Trace, DbError> {
        let part = self.load(focus, Some(&known.clocks), Depth::All);
        let part = part.map_err(|mut failed| failed.swap_remove(0))?;
        let mut trace = part.finish(&known.meetings, known.matching.clone());
        trace.stretch.clone_from(&known.stretch);
        Ok(trace)
    }

    /// Ranks with those that they have to be read with, on these clocks where they are settled; why files could not be read.
    fn load(
        &self,
        focus: &[u32],
        clocks: Option<&Settled>,
        depth: Depth,
    ) -> Result<Paired, Vec<DbError>> {
        let files = self.survey.by_file(&self.survey.with_others(focus));
        let of_run = (&self.survey.roster, &self.places);
        let read = Paired::read(&files, of_run, (focus, clocks), (depth, self.cache.as_deref()));
        read.map_err(|error| vec![error]).and_then(|(part, failed)| match failed.is_empty() {
            true => Ok(part),
            false => Err(failed),
        })
    }

    /// Sums of the files whose first rank is in the focus: each file is summed once.
    fn sums(&self, focus: &[u32], known: &EarlierStages) -> Result<Partial, Vec<DbError>> {
        let facts = focus.iter().map(|&place| &self.survey.facts[place as usize]);
        let first = facts.filter(|facts| facts.is_first);
        let files: Vec<PathBuf> =
            first.map(|facts| self.survey.files[facts.file as usize].clone()).collect();
        if files.is_empty() {
            return Ok(Partial::Sums(Vec::new()));
        }
        if let (None, Some(cache)) = (&known.stretch, &self.cache) {
            let of_run = (&*self.survey.roster, &*self.places);
            return whole(sum_and_keep(&files, of_run, cache)).map(Partial::Sums);
        }
        let windows = known.stretch.as_ref().map(|stretch| {
            let mut bare = Paired::without_rows(&self.survey.roster, &self.places);
            bare.set_clocks(&known.clocks);
            Windows::place(&bare.finish(&known.meetings, Matching::default()), stretch)
        });
        let windows = windows.as_ref();
        let read = for_each_file(&files, |database, mut definitions| {
            let of_file = self.places.of_file(&database.path);
            let sums = FileSums::read(database, of_file, &mut definitions, windows, &|_| ())?;
            Ok((definitions, sums))
        });
        whole(read).map(Partial::Sums)
    }
}

/// What was read, if all of it could be.
fn whole<T>(read: Result<PerFile<T>, DbError>) -> Result<Vec<T>, Vec<DbError>> {
    let PerFile { read, failed } = read.map_err(|error| vec![error])?;
    match failed.is_empty() {
        true => Ok(read),
        false => Err(failed),
    }
}
