//! What `lapscope doctor --progress` measured, kept beside the calibrations and found again as these are, by hosts, MPI and
//! settings of its transports. A run takes it along as `progress.json`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::choice::{calibrations, copy, directory};
use super::{file_name, lacked_processors, write_whole, Circumstances, MOST_BYTES};
use lapscope_data::db::{link_out, RunFiles};
use lapscope_data::files::read_short_text;
use lapscope_data::text::visible::visible;
use lapscope_measure::progress::{moved_shares, MovedShare};
use lapscope_trace::processors::processor_share;
use lapscope_trace::Trace;

/// Format of the files; raised when an older lapscope would misread them.
const FORMAT: u32 = 1;

/// In a run's directory.
const KEPT: &str = "progress.json";

/// One file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasuredProgress {
    pub progress_format: u32,
    /// UTC, as `2026-05-04T12:30:00Z`.
    pub created: String,
    pub lapscope_version: String,
    /// As it was typed, without the program.
    pub launch: Vec<String>,
    pub ranks: u64,
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// As [`lapscope_measure::reference::Reference::processor_share`].
    pub processor_share: Option<f64>,
    pub moved: Vec<MovedShare>,
}

impl MeasuredProgress {
    /// What the recorded run shows of lapscope's own program.
    ///
    /// # Errors
    /// The first file cannot be read.
    pub fn of_run(
        trace: &Trace,
        databases: &[PathBuf],
        launch: Vec<String>,
    ) -> anyhow::Result<MeasuredProgress> {
        let infos: Vec<_> = trace.ranks.iter().map(|rank| rank.info()).collect();
        Ok(MeasuredProgress {
            progress_format: FORMAT,
            created: lapscope_data::calendar::utc_text(),
            lapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            launch,
            ranks: trace.ranks.len() as u64,
            circumstances: Circumstances::of_run(trace, databases)?,
            processor_share: processor_share(&infos),
            moved: moved_shares(trace),
        })
    }

    /// # Errors
    /// Names the file and says what is wrong with it.
    pub fn read(path: &Path) -> anyhow::Result<MeasuredProgress> {
        let name = || path.display().to_string();
        let text = read_short_text(path, MOST_BYTES).with_context(name)?;
        let mut found: MeasuredProgress = serde_json::from_str(&text).with_context(name)?;
        anyhow::ensure!(found.progress_format == FORMAT, "{}: another format", path.display());
        found.created = visible(&found.created).into_owned();
        found.moved.retain(MovedShare::is_sound);
        Ok(found)
    }

    /// Into the file that is named, else where reports look. Returns where that is.
    ///
    /// # Errors
    /// Names what cannot be written.
    pub fn write(&self, path: Option<&Path>) -> anyhow::Result<PathBuf> {
        let path = match path {
            Some(path) => path.to_path_buf(),
            None => kept_here()?.join(file_name(&self.circumstances, &self.created)),
        };
        write_whole(self, &path)?;
        Ok(path)
    }

    pub fn for_run(trace: &Trace, files: &RunFiles) -> Option<MeasuredProgress> {
        let run = Circumstances::of_run(trace, &files.databases).ok()?;
        MeasuredProgress::fitting(&run, files)
    }

    /// The newest that fits a run, of this machine's and the run's own copy, which it replaces there. Files that cannot be
    /// read are none: what they say is an improvement on assumptions that reports do without.
    pub fn fitting(run: &Circumstances, files: &RunFiles) -> Option<MeasuredProgress> {
        let kept = files.root.is_dir().then(|| files.root.join(KEPT));
        let kept = kept.filter(|path| link_out(path).is_none());
        let mut paths = kept_here().map_or(Vec::new(), |directory| calibrations(&directory));
        paths.extend(kept.clone().filter(|path| path.exists()));
        let (path, found) = newest(&paths, run)?;
        if let Some(kept) = kept.filter(|kept| *kept != path) {
            // where nobody may write, each reader has what is there
            copy(&path, &kept, &files.databases).ok();
        }
        Some(found)
    }
}

/// Not among the calibrations, which an older lapscope reads all.
fn kept_here() -> anyhow::Result<PathBuf> {
    Ok(directory()?.join("progress"))
}

/// Those whose ranks lacked processors say nothing. The run's own hosts come before others of their kind.
fn newest(paths: &[PathBuf], run: &Circumstances) -> Option<(PathBuf, MeasuredProgress)> {
    let read = paths.iter().filter_map(|path| Some((path, MeasuredProgress::read(path).ok()?)));
    let fitting = read.filter_map(|(path, found)| {
        let own = &found.circumstances;
        let is_same = own.mpi_library == run.mpi_library && own.environment == run.environment;
        let hosts = own.covers(run)?;
        (is_same && lacked_processors(found.processor_share).is_none())
            .then(|| ((hosts, found.created.clone()), path, found))
    });
    let (_, path, found) = fitting.max_by(|a, b| a.0.cmp(&b.0))?;
    Some((path.clone(), found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_measure::progress::{Computing, MovedBetween, MovedKind};

    fn made(created: &str, processor_share: Option<f64>) -> MeasuredProgress {
        let moved = MovedShare {
            posted: MovedKind::Put,
            computing: Computing::Second,
            between: MovedBetween::Node,
            bytes: 4096,
            moved: 0.5,
            moved_low: 0.4,
            moved_high: 0.6,
            alone_ns: 1000.0,
            rounds: 3,
        };
        let broken = MovedShare { moved_high: 7.0, ..moved.clone() };
        MeasuredProgress {
            progress_format: FORMAT,
            created: created.into(),
            lapscope_version: String::new(),
            launch: Vec::new(),
            ranks: 2,
            circumstances: Circumstances {
                hosts: ["a1".to_owned()].into(),
                ..Circumstances::default()
            },
            processor_share,
            moved: vec![moved, broken],
        }
    }

    #[test]
    fn the_newest_whose_ranks_had_processors() {
        let directory = tempfile::tempdir().unwrap();
        for (name, made) in [
            ("old.json", made("2026-01-01", None)),
            ("new.json", made("2026-02-01", None)),
            ("starved.json", made("2026-03-01", Some(0.5))),
        ] {
            made.write(Some(&directory.path().join(name))).unwrap();
        }
        std::fs::write(directory.path().join("torn.json"), "{").unwrap();
        let paths = calibrations(directory.path());
        let run = made("", None).circumstances;
        let (path, found) = newest(&paths, &run).unwrap();
        assert!(path.ends_with("new.json"));
        assert_eq!(found.moved.len(), 1, "shares beyond 1 are none");
        let other = Circumstances { mpi_library: "another".into(), ..run };
        assert!(newest(&paths, &other).is_none());
    }
}
