//! Which calibration fits a run: of those that this machine keeps, and of the copy in the run's directory.
//!
//! The copy is `calibration.json`, so that the run gives the same numbers on any machine; a newer file of the reader's
//! replaces it. A copy that a report has made says where it is from: the run was recorded without it. A calibration whose
//! ranks lacked processors is refused, that is used only where `--reference` says so: what it calls undisturbed was not. A run
//! takes along a refused one, too, where it has no other: so no report takes an older one instead without saying so.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::circumstances::Hosts;
use super::{lacked_processors, Calibration, Circumstances, FoundBy, MeasuredProgress, MOST_BYTES};
use lapscope_data::db::{link_out, Census, RunFiles};
use lapscope_data::files::open_regular;
use lapscope_data::text::units::percent;
use lapscope_measure::reference::RefusedCalibration;
use lapscope_trace::Trace;

/// Names the directory of the files.
pub const DIRECTORY_VARIABLE: &str = "LAPSCOPE_CALIBRATION_DIR";

/// The answer of [`find`].
#[derive(Debug, Default)]
pub struct CalibrationChoice {
    pub calibration: Option<Calibration>,
    pub file: PathBuf,
    /// One that fits, too, and is newer.
    pub refused: Option<RefusedCalibration>,
    /// Sentences about what was used or could not be.
    pub notes: Vec<String>,
}

/// Who looks for a calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seeker {
    /// `lapscope run`, at the end of the run.
    Recorder,
    Report,
}

impl CalibrationChoice {
    /// Chooses the calibration that fits; it is copied into the run's directory, so that the run has it everywhere.
    pub fn fitting(trace: &Trace, files: &RunFiles, even_disturbed: bool) -> CalibrationChoice {
        match Circumstances::of_run(trace, &files.databases) {
            Ok(circumstances) => find(&circumstances, files, even_disturbed, Seeker::Report),
            Err(error) => CalibrationChoice {
                notes: vec![format!("no calibration was looked for: {error}")],
                ..CalibrationChoice::default()
            },
        }
    }
}

/// Copies the calibration that fits a run into its directory, if there is one, and what is known of progress.
pub fn keep(files: &RunFiles) {
    if directory().map_or(true, |directory| !directory.is_dir()) {
        return;
    }
    let census = Census::take(&files.databases);
    if let Ok(run) = Circumstances::new(census.infos().into_iter(), &files.databases) {
        find(&run, files, false, Seeker::Recorder);
        MeasuredProgress::fitting(&run, files);
    }
}

/// Where calibration files are.
///
/// # Errors
/// Neither of the variables that tell is set.
pub fn directory() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = variable(DIRECTORY_VARIABLE) {
        return Ok(named.into());
    }
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let data =
        data.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    let data = data.with_context(|| {
        format!("no place for calibrations: neither HOME nor {DIRECTORY_VARIABLE} is set")
    })?;
    Ok(data.join("lapscope/calibration"))
}

/// The copy in a run's directory of the calibration that fits it.
const KEPT: &str = "calibration.json";

/// The best calibration that fits a run, of this machine's and the copy that lies in the run's directory. Such of other
/// settings are named in the notes.
fn find(
    run: &Circumstances,
    files: &RunFiles,
    even_disturbed: bool,
    seeker: Seeker,
) -> CalibrationChoice {
    let mut paths = directory().map_or(Vec::new(), |directory| calibrations(&directory));
    let kept = files.root.is_dir().then(|| files.root.join(KEPT));
    let link = kept.as_deref().and_then(link_out);
    let kept = kept.filter(|_| link.is_none());
    paths.extend(kept.clone().filter(|path| path.exists()));
    let mut found = find_among(&paths, run, even_disturbed);
    found.notes.extend(link.map(|link| format!("calibration not used: {link}")));
    if let Some(kept) = kept {
        found.take_along(&kept, files, seeker);
    }
    if let Some(found_by) = found.calibration.as_ref().and_then(|it| it.found_by.as_ref()) {
        found.notes.push(found_by.sentence());
    }
    found
}

impl CalibrationChoice {
    /// Copies what was chosen into the run's directory. Where nobody may write, each reader has what is there.
    fn take_along(&mut self, kept: &Path, files: &RunFiles, seeker: Seeker) {
        let is_kept_refused = self.refused.as_ref().is_some_and(|refused| refused.file == kept);
        let Some(calibration) = &mut self.calibration else {
            if let Some(refused) = self.refused.as_mut().filter(|_| seeker == Seeker::Recorder) {
                if copy(&refused.file, kept, &files.databases).is_ok() {
                    refused.file = kept.to_path_buf();
                }
            }
            return;
        };
        if self.file == kept {
            return;
        }
        if seeker == Seeker::Report {
            let replaced = Calibration::read(kept).ok().map(|kept| kept.created);
            calibration.found_by = Some(FoundBy {
                file: self.file.clone(),
                instead_of: replaced.filter(|_| !is_kept_refused),
            });
        }
        let written = || {
            let text = serde_json::to_vec_pretty(calibration)?;
            put(&mut text.as_slice(), kept, &files.databases)
        };
        if !is_kept_refused && written().is_ok() {
            self.file = kept.to_path_buf();
        }
    }
}

/// Into a file that appears whole, and that those may read who may read the `databases` beside it.
fn put(text: &mut dyn Read, to: &Path, databases: &[PathBuf]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(to.parent().unwrap_or(Path::new(".")))?;
    std::io::copy(text, &mut file)?;
    if let Some(database) = databases.first() {
        file.as_file().set_permissions(database.metadata()?.permissions())?;
    }
    file.persist(to)?;
    Ok(())
}

/// As [`put`], what is in another file.
pub(super) fn copy(from: &Path, to: &Path, databases: &[PathBuf]) -> std::io::Result<()> {
    put(&mut open_regular(from)?.take(MOST_BYTES), to, databases)
}

/// The hosts themselves before others of their kind, undisturbed ones before others, then the newest; of the same one the last.
fn find_among(paths: &[PathBuf], run: &Circumstances, even_disturbed: bool) -> CalibrationChoice {
    let mut notes = Vec::new();
    let (mut best, mut other, mut disturbed) = (None, None, None);
    for path in paths {
        let calibration = match Calibration::read(path) {
            Ok(calibration) => calibration,
            Err(error) => {
                notes.push(format!("calibration not used: {error:#}"));
                continue;
            }
        };
        let own = &calibration.circumstances;
        let Some(hosts) = own.covers(run).filter(|_| own.mpi_library == run.mpi_library) else {
            continue;
        };
        let share = calibration.times.processor_share;
        let (is_undisturbed, had_enough) = (share.is_none(), lacked_processors(share).is_none());
        let place = if own.environment != run.environment {
            &mut other
        } else if had_enough || even_disturbed {
            &mut best
        } else {
            &mut disturbed
        };
        let order = (hosts, is_undisturbed, calibration.created.clone());
        if place.as_ref().map_or(true, |(known, _, _)| *known <= order) {
            *place = Some((order, path, calibration));
        }
    }
    let refused = disturbed.map(|((.., created), file, calibration)| RefusedCalibration {
        file: file.clone(),
        created,
        processor_share: calibration.times.processor_share.unwrap_or_default(),
    });
    let is_newer = |refused: &RefusedCalibration| match &best {
        Some(((.., created), ..)) => refused.created > *created,
        None => true,
    };
    let refused = refused.filter(is_newer);
    notes.extend(refused.as_ref().map(refused_note));
    if let Some(((hosts, ..), file, calibration)) = best {
        if hosts == Hosts::Alike {
            let hosts = calibration.circumstances.hosts.iter().map(String::as_str).take(4);
            let hosts: Vec<&str> = hosts.collect();
            notes.push(format!(
                "the calibration was made on other nodes of this kind: {}",
                hosts.join(", ")
            ));
        }
        let calibration = Some(calibration);
        return CalibrationChoice { calibration, file: file.clone(), refused, notes };
    }
    if let Some((_, path, calibration)) = other.filter(|_| refused.is_none()) {
        notes.push(format!(
            "calibration {} not used: it was made with {}, this run with {}",
            path.display(),
            calibration.circumstances.differing(run),
            run.differing(&calibration.circumstances),
        ));
    }
    CalibrationChoice { refused, notes, ..CalibrationChoice::default() }
}

fn refused_note(refused: &RefusedCalibration) -> String {
    let (file, share) = (refused.file.display(), percent(refused.processor_share));
    format!(
        "the calibration of {} is not used ({file}): its ranks had a processor for only {share} of the time in which they could \
         have run. Calibrate again with a processor for each rank and nothing else running there, or use it all the same: \
         --reference FILE",
        refused.created
    )
}

/// The files in a directory of calibrations, in the order of their names.
pub(super) fn calibrations(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter(|path| !path.exists() || path.is_file()) // a FIFO would be waited for
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::super::circumstances::normalized;
    use super::*;
    use lapscope_measure::reference::{CollectiveSample, Reference, ReferenceSource, Sample};
    use lapscope_trace::Locality;

    fn circumstances(hosts: &[&str], btl: Option<&str>) -> Circumstances {
        let environment =
            btl.map(|btl| ("OMPI_MCA_btl".to_owned(), normalized("OMPI_MCA_btl", btl)));
        Circumstances {
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            mpi_library: "Open MPI v4.1.4, package: x".into(),
            environment: environment.into_iter().collect(),
        }
    }

    fn calibration(circumstances: Circumstances, created: &str, ns: i64) -> Calibration {
        let sample = Sample {
            locality: Locality::Node,
            bytes: 1024,
            ns,
            is_upwards: true,
            is_disturbed: false,
        };
        let collective = CollectiveSample {
            call: "MPI_Bcast",
            is_request: false,
            is_disturbed: false,
            ranks: 2,
            bytes: 8,
            ns,
        };
        let reference = Reference::fit([sample; 3], [collective; 3], ReferenceSource::None);
        let calibration = Calibration::new(vec![], 2, circumstances, reference);
        Calibration { created: created.into(), ..calibration }
    }

    fn kept(files: &[Calibration]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            file.write(&directory.path().join(file.file_name())).unwrap();
        }
        directory
    }

    fn time(found: &CalibrationChoice) -> Option<i64> {
        let estimate = found.calibration.as_ref()?.times.transfer(Locality::Node, 1024);
        estimate.map(|estimate| estimate.ns)
    }

    fn find_in(directory: &Path, run: &Circumstances) -> CalibrationChoice {
        find_among(&calibrations(directory), run, false)
    }

    #[test]
    fn the_newest_that_fits() {
        let here = || circumstances(&["a1"], Some("tcp,self"));
        let directory = kept(&[
            calibration(here(), "2026-01-01T00:00:00Z", 100),
            calibration(here(), "2026-03-01T00:00:00Z", 300),
            calibration(circumstances(&["a1"], None), "2026-04-01T00:00:00Z", 400),
            calibration(circumstances(&["b1"], Some("self,tcp")), "2026-05-01T00:00:00Z", 500),
            calibration(circumstances(&["a7"], Some("self,tcp")), "2026-06-01T00:00:00Z", 600),
        ]);
        let found = find_in(directory.path(), &circumstances(&["a1"], Some("self,tcp")));
        assert_eq!((time(&found), found.notes.len()), (Some(300), 0), "{:?}", found.notes);
        assert_eq!(found.calibration.unwrap().created, "2026-03-01T00:00:00Z");
        let alike = find_in(directory.path(), &circumstances(&["a3", "a4"], Some("self,tcp")));
        assert_eq!(time(&alike), Some(600));
        assert!(alike.notes[0].contains("other nodes of this kind: a7"), "{:?}", alike.notes);
        assert_eq!(time(&find_in(directory.path(), &circumstances(&["c1"], None))), None);
    }

    #[test]
    fn other_settings_are_named() {
        let made = calibration(circumstances(&["a1"], Some("tcp,self")), "2026-01-01T00:00:00Z", 1);
        let directory = kept(&[made]);
        std::fs::write(directory.path().join("x.json"), "{\"format\": 99}").unwrap();
        let found = find_in(directory.path(), &circumstances(&["a1"], None));
        assert_eq!(time(&found), None);
        assert!(found.notes[0].contains("x.json: format 99"), "{:?}", found.notes);
        assert!(
            found.notes[1]
                .contains("made with OMPI_MCA_btl=self,tcp, this run with OMPI_MCA_btl not set"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn times_of_ranks_without_processors_are_used_where_they_are_asked_for() {
        let here = || circumstances(&["a1"], None);
        let mut made = calibration(here(), "2026-01-01T00:00:00Z", 100);
        made.times.processor_share = Some(0.5);
        let directory = kept(&[made]);
        let found = find_in(directory.path(), &here());
        assert_eq!((time(&found), found.notes.len()), (None, 1));
        assert!(found.notes[0].contains("a processor for only 50.0 % of"), "{:?}", found.notes);
        let asked = find_among(&calibrations(directory.path()), &here(), true);
        assert_eq!(time(&asked), Some(100));
        let refused = found.refused.unwrap();
        assert_eq!(
            (refused.created.as_str(), refused.processor_share),
            ("2026-01-01T00:00:00Z", 0.5)
        );

        // an older one is used, and that a newer one is not is said; beside a newer one nothing need be said
        let add = |created, ns| {
            let made = calibration(here(), created, ns);
            made.write(&directory.path().join(made.file_name())).unwrap();
            find_in(directory.path(), &here())
        };
        let older = add("2025-12-01T00:00:00Z", 200);
        assert_eq!(
            (time(&older), older.refused.is_some(), older.notes.len()),
            (Some(200), true, 1)
        );
        let newer = add("2026-02-01T00:00:00Z", 300);
        assert_eq!((time(&newer), newer.refused, newer.notes.len()), (Some(300), None, 0));
    }

    /// A report takes no refused one along: that of the reader's is no fact of the run.
    #[test]
    fn a_run_takes_a_refused_one_along() {
        let run = tempfile::tempdir().unwrap();
        let mut made = calibration(circumstances(&["a1"], None), "2026-01-01T00:00:00Z", 100);
        made.times.processor_share = Some(0.5);
        let directory = kept(&[made]);
        let place = run.path().join(KEPT);
        let files = RunFiles { root: run.path().into(), ..RunFiles::default() };
        for (seeker, is_kept) in [(Seeker::Report, false), (Seeker::Recorder, true)] {
            let mut found = find_in(directory.path(), &circumstances(&["a1"], None));
            found.take_along(&place, &files, seeker);
            assert_eq!((place.exists(), found.refused.unwrap().file == place), (is_kept, is_kept));
        }
        assert!(Calibration::read(&place).unwrap().found_by.is_none());
    }

    #[test]
    fn a_directory_that_is_not_there_holds_nothing() {
        let found = find_in(Path::new("/nowhere/at/all"), &circumstances(&["a"], None));
        assert!(found.calibration.is_none() && found.notes.is_empty());
    }
}
