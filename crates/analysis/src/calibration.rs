//! Calibration files: reference times that `lapscope calibrate` has measured, found again by later reports of runs on the
//! same hosts, with the same MPI and the same settings of its transports.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use serde::{Deserialize, Serialize};

use crate::loggps::LogGps;
use crate::reference::{ends, Disagreement, Reference, Source, TakenLocality, Which};
use crate::trace::Trace;
use lapscope_data::db::{link_out, Census, RunFiles};
use lapscope_data::files::{open_regular, read_short_text};
use lapscope_data::model::Nanos;
use lapscope_data::text::units::{bytes, percent, time};
use lapscope_data::text::visible::visible;

mod circumstances;

pub use circumstances::{recorded_environment, Circumstances};

use circumstances::Hosts;

/// Format of the files; raised when an older lapscope would misread them.
const FORMAT: u32 = 3;

/// A file is not longer.
const MOST_BYTES: u64 = 64 << 20;

/// Names the directory of the files.
pub const DIRECTORY_VARIABLE: &str = "LAPSCOPE_CALIBRATION_DIR";

/// One file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Calibration {
    pub format: u32,
    /// UTC, as `2026-05-04T12:30:00Z`.
    pub created: String,
    pub lapscope_version: String,
    /// As it was typed, without the program.
    pub launch: Vec<String>,
    pub ranks: u64,
    #[serde(flatten)]
    pub circumstances: Circumstances,
    pub times: Reference,
    /// By locality; files of before there was such a thing have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loggps: Vec<LogGps>,
}

/// The answer of [`find`].
#[derive(Debug, Default)]
struct Found {
    calibration: Option<Calibration>,
    file: PathBuf,
    /// Sentences about what was used or could not be.
    notes: Vec<String>,
}

impl Found {
    /// Of the calibration that fits; it is copied into the run's directory, so that the run has it everywhere.
    fn fitting(trace: &Trace, files: &RunFiles, even_disturbed: bool) -> Found {
        match Circumstances::of_run(trace, &files.databases) {
            Ok(circumstances) => find(&circumstances, files, even_disturbed),
            Err(error) => Found {
                notes: vec![format!("no calibration was looked for: {error}")],
                ..Found::default()
            },
        }
    }
}

/// The reference times for a run, and sentences about them for the report. `wanted` is what `--reference` says: `run`, the
/// run's own transfers alone; `calibration`, or a file; without it a calibration where one fits. A calibration is corrected by
/// those of the run's own transfers that were quicker, and completed by them, size by size, for what it does not cover.
///
/// # Errors
/// The calibration that is wanted is not there, or cannot be read.
pub fn reference(
    wanted: Option<&str>,
    trace: &Trace,
    files: &RunFiles,
    own: Reference,
) -> anyhow::Result<(Reference, Vec<String>)> {
    let found = match wanted {
        None => Found::fitting(trace, files, false),
        Some("run") => Found::default(),
        Some("calibration") => Found::fitting(trace, files, true),
        Some(file) => {
            let read = Calibration::read(Path::new(file)).with_context(|| {
                format!(
                    "--reference {file}: neither `run` nor `calibration`, nor a calibration file"
                )
            })?;
            Found { calibration: Some(read), file: file.into(), notes: Vec::new() }
        }
    };
    let Found { calibration, file, mut notes } = found;
    let Some(Calibration { created, mut times, .. }) = calibration else {
        if wanted == Some("calibration") {
            let why: String = notes.iter().map(|note| format!("; {note}")).collect();
            bail!("no calibration fits this run; make one with: lapscope calibrate -- <launch line>{why}");
        }
        notes.extend(disturbed_note(&own));
        return Ok((own, notes));
    };
    times.source = Source::Calibration { file, created };
    Ok(completed((times, notes), own))
}

/// The LogGPS parameters, by locality, of the calibration that fits; `None` where none does, or the one that fits has no
/// parameters.
pub fn loggps_for(trace: &Trace, files: &RunFiles) -> Option<Vec<LogGps>> {
    let Found { calibration, .. } = Found::fitting(trace, files, false);
    calibration.map(|calibration| calibration.loggps).filter(|all| !all.is_empty())
}

/// Copies the calibration that fits a run into its directory, if there is one.
pub fn keep(files: &RunFiles) {
    if directory().map_or(true, |directory| calibrations(&directory).is_empty()) {
        return;
    }
    let census = Census::take(&files.databases);
    if let Ok(run) = Circumstances::new(census.infos().into_iter(), &files.databases) {
        find(&run, files, false);
    }
}

/// A calibration corrected and completed by a run. With the sentences that say what changed.
fn completed(
    (mut calibration, mut notes): (Reference, Vec<String>),
    own: Reference,
) -> (Reference, Vec<String>) {
    notes.extend(disturbed_note(&calibration));
    notes.extend(calibration.correct_by(&own).iter().map(disagreement_note));
    notes.extend(complete(&mut calibration, own));
    (calibration, notes)
}

/// Times of ranks that lacked processors are no undisturbed ones.
fn disturbed_note(reference: &Reference) -> Option<String> {
    let share = percent(reference.processor_share?);
    let (of, cure) = match reference.source {
        Source::None => return None,
        Source::Run => (
            "this run",
            "measure with a processor for each rank: lapscope calibrate -- <launch line>",
        ),
        Source::Calibration { .. } => {
            ("a calibration", "calibrate again with a processor for each rank")
        }
    };
    Some(format!(
        "reference times are from {of} whose ranks had a processor for only {share} of the time in which they could have run: \
         undisturbed, transfers may take less; {cure}"
    ))
}

fn disagreement_note(found: &Disagreement) -> String {
    let what = match &found.which {
        Which::Locality(locality) => format!("transfers between {}", ends(*locality)),
        Which::Collective(call, ranks) => format!("{call} of {ranks} ranks"),
    };
    let (run, calibrated) = (time(Nanos(found.run_ns)), time(Nanos(found.calibrated_ns)));
    let which = match found.sizes {
        1 => bytes(found.bytes),
        sizes => format!("{} (and {} more sizes)", bytes(found.bytes), sizes - 1),
    };
    let so = if found.is_quicker {
        "they cannot be quicker than undisturbed, so these times are from the run itself"
    } else {
        "the calibration is believed; what slows them down, such as contention, counts as exposed"
    };
    format!(
        "{what}: of {which} this run's own {} with nothing in between take {run}, calibrated were {calibrated}: {so}",
        found.samples
    )
}

/// Lets a calibration take from the run what it does not cover. Sentences that say what.
fn complete(calibration: &mut Reference, run: Reference) -> Vec<String> {
    let taken = calibration.complete_with(run);
    let mut notes: Vec<String> = taken.localities.iter().map(locality_note).collect();
    if !taken.collectives.is_empty() {
        let calls = taken.collectives.join(", ");
        notes.push(format!(
            "the calibration does not cover all sizes and numbers of ranks of {calls}: those times are from the run itself"
        ));
    }
    notes
}

fn locality_note(taken: &TakenLocality) -> String {
    let between = ends(taken.locality);
    if taken.whole {
        return format!("the calibration has no transfers between {between}: these times are from the run itself");
    }
    let [least, most] = taken.bytes.map(bytes);
    let lacking =
        if least == most { format!(", {least},") } else { format!(" of {least} to {most}") };
    format!("the calibration does not cover all sizes between {between}: what it lacks{lacking} is from the run itself")
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
fn find(run: &Circumstances, files: &RunFiles, even_disturbed: bool) -> Found {
    let mut paths = directory().map_or(Vec::new(), |directory| calibrations(&directory));
    let kept = files.root.is_dir().then(|| files.root.join(KEPT));
    let link = kept.as_deref().and_then(link_out);
    let kept = kept.filter(|_| link.is_none());
    paths.extend(kept.clone().filter(|path| path.exists()));
    let mut found = find_among(&paths, run, even_disturbed);
    found.notes.extend(link.map(|link| format!("calibration not used: {link}")));
    if let (Some(kept), Some(_)) = (kept, &found.calibration) {
        // where nobody may write, each reader has what is there
        if found.file != kept && copy(&found.file, &kept, &files.databases).is_ok() {
            found.file = kept;
        }
    }
    found
}

/// Into a file that appears whole, and that those may read who may read the `databases` beside it.
fn copy(from: &Path, to: &Path, databases: &[PathBuf]) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(to.parent().unwrap_or(Path::new(".")))?;
    std::io::copy(&mut open_regular(from)?.take(MOST_BYTES), &mut file)?;
    if let Some(database) = databases.first() {
        file.as_file().set_permissions(database.metadata()?.permissions())?;
    }
    file.persist(to)?;
    Ok(())
}

/// The hosts themselves before others of their kind, undisturbed ones before others, then the newest; of the same one the last.
fn find_among(paths: &[PathBuf], run: &Circumstances, even_disturbed: bool) -> Found {
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
    if let Some(((hosts, ..), file, calibration)) = best {
        if hosts == Hosts::Alike {
            let hosts = calibration.circumstances.hosts.iter().map(String::as_str).take(4);
            let hosts: Vec<&str> = hosts.collect();
            notes.push(format!(
                "the calibration was made on other nodes of this kind: {}",
                hosts.join(", ")
            ));
        }
        return Found { calibration: Some(calibration), file: file.clone(), notes };
    }
    if let Some((_, path, calibration)) = disturbed {
        let share = percent(calibration.times.processor_share.unwrap_or_default());
        notes.push(format!(
            "calibration {} not used: its ranks had a processor for only {share} of the time in which they could have run; \
             calibrate again with a processor for each rank, or say --reference calibration",
            path.display()
        ));
    } else if let Some((_, path, calibration)) = other {
        notes.push(format!(
            "calibration {} not used: it was made with {}, this run with {}",
            path.display(),
            calibration.circumstances.differing(run),
            run.differing(&calibration.circumstances),
        ));
    }
    Found { notes, ..Found::default() }
}

/// The share of the time in which ranks could have run and had a processor, where that is so little that they measured
/// something else than transfers.
pub fn lacked_processors(processor_share: Option<f64>) -> Option<f64> {
    const ENOUGH: f64 = 0.9;
    processor_share.filter(|share| *share < ENOUGH)
}

/// The files in a directory of calibrations, in the order of their names.
fn calibrations(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter(|path| !path.exists() || path.is_file()) // a FIFO would be waited for
        .collect();
    files.sort();
    files
}

impl Calibration {
    pub fn new(
        launch: Vec<String>,
        ranks: u64,
        circumstances: Circumstances,
        times: Reference,
    ) -> Self {
        Calibration {
            format: FORMAT,
            created: lapscope_data::calendar::utc_text(),
            lapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            launch,
            ranks,
            circumstances,
            times,
            loggps: Vec::new(),
        }
    }

    /// # Errors
    /// Names the file and says what is wrong with it.
    pub fn read(path: &Path) -> anyhow::Result<Calibration> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let name = || path.display().to_string();
        let text = read_short_text(path, MOST_BYTES).with_context(name)?;
        let Head { format } = serde_json::from_str(&text).with_context(name)?;
        anyhow::ensure!(
            format == FORMAT,
            "{}: format {format}, this lapscope reads format {FORMAT}; calibrate again: lapscope calibrate -- <launch line>",
            path.display()
        );
        let mut calibration: Calibration = serde_json::from_str(&text).with_context(name)?;
        calibration.created = visible(&calibration.created).into_owned();
        calibration.loggps.retain(LogGps::is_sound);
        Ok(calibration)
    }

    /// Into a file that appears whole, under a name that says what it is of.
    ///
    /// # Errors
    /// Names what cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let name = || format!("{} cannot be written", path.display());
        std::fs::create_dir_all(directory).with_context(name)?;
        let mut file = tempfile::NamedTempFile::new_in(directory).with_context(name)?;
        serde_json::to_writer_pretty(&mut file, self).with_context(name)?;
        writeln!(file).with_context(name)?;
        file.persist(path).with_context(name)?;
        Ok(())
    }

    /// `node-Open_MPI_v4.1.4-20260504T123000Z.json`
    pub fn file_name(&self) -> String {
        let host = self.circumstances.hosts.first().map_or("", String::as_str);
        let mpi = self.circumstances.mpi_library.split(',').next().unwrap_or_default();
        let created: String = self.created.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let name: String = format!("{host}-{mpi}").chars().map(plain).take(80).collect();
        format!("{name}-{created}.json")
    }
}

#[cfg(test)]
mod tests {
    use super::circumstances::normalized;
    use super::*;
    use crate::reference::{CollectiveSample, Sample};
    use crate::trace::Locality;

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
        let reference = Reference::fit([sample; 3], [collective; 3], Source::None);
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

    fn time(found: &Found) -> Option<i64> {
        let estimate = found.calibration.as_ref()?.times.transfer(Locality::Node, 1024);
        estimate.map(|estimate| estimate.ns)
    }

    fn find_in(directory: &Path, run: &Circumstances) -> Found {
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
    }

    #[test]
    fn a_directory_that_is_not_there_holds_nothing() {
        let found = find_in(Path::new("/nowhere/at/all"), &circumstances(&["a"], None));
        assert!(found.calibration.is_none() && found.notes.is_empty());
    }
}
