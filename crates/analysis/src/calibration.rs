//! Calibration files: reference times that `lapscope calibrate` has measured, found again by later reports of runs on the
//! same hosts, with the same MPI and the same settings of its transports.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::loggps::LogGps;
use crate::reference::{ends, Disagreement, Reference, Source, TakenLocality, Which};
use crate::trace::Trace;
use lapscope_data::files::read_short_text;
use lapscope_data::model::Nanos;
use lapscope_data::text::units::{bytes, percent, time};

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
pub struct Found {
    pub reference: Option<Reference>,
    /// Of the same file.
    pub loggps: Vec<LogGps>,
    /// Sentences about what was used or could not be.
    pub notes: Vec<String>,
}

/// The reference times for a run: of a calibration where one fits, completed by the run's own transfers for what it does not
/// cover, size by size, and corrected by those that were quicker; else of the run alone. With sentences for the report.
pub fn reference_for(trace: &Trace, databases: &[PathBuf]) -> (Reference, Vec<String>) {
    reference_with(trace, databases, Reference::of_run(trace))
}

/// As [`reference_for`], where the times of the run's own transfers are known.
pub fn reference_with(
    trace: &Trace,
    databases: &[PathBuf],
    own: Reference,
) -> (Reference, Vec<String>) {
    let Found { reference, mut notes, .. } = match Circumstances::of_run(trace, databases) {
        Ok(circumstances) => find(&circumstances),
        Err(error) => Found {
            notes: vec![format!("no calibration was looked for: {error}")],
            ..Found::default()
        },
    };
    if let Some(reference) = reference {
        return completed((reference, notes), own);
    }
    notes.extend(disturbed_note(&own));
    (own, notes)
}

/// The LogGPS parameters, by locality, of the calibration whose reference times [`reference_for`] takes; `None` where none
/// fits, or the one that fits has no parameters.
pub fn loggps_for(trace: &Trace, databases: &[PathBuf]) -> Option<Vec<LogGps>> {
    let circumstances = Circumstances::of_run(trace, databases).ok()?;
    Some(find(&circumstances).loggps).filter(|all| !all.is_empty())
}

/// The run's own transfers alone.
pub fn reference_of_run(own: Reference) -> (Reference, Vec<String>) {
    let notes = disturbed_note(&own).into_iter().collect();
    (own, notes)
}

/// A calibration corrected and completed by a run. With the sentences that say what changed.
pub fn completed(
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

/// The best calibration that fits a run: undisturbed, the newest. Such of other settings are named in the notes.
pub fn find(run: &Circumstances) -> Found {
    match directory() {
        Ok(directory) => find_in(&directory, run),
        Err(_) => Found::default(),
    }
}

fn find_in(directory: &Path, run: &Circumstances) -> Found {
    let mut found = Found::default();
    let (mut best, mut other): (Option<Candidate>, Option<Candidate>) = (None, None);
    for path in files(directory) {
        let calibration = match Calibration::read(&path) {
            Ok(calibration) => calibration,
            Err(error) => {
                found.notes.push(format!("calibration not used: {error:#}"));
                continue;
            }
        };
        let own = &calibration.circumstances;
        let Some(hosts) = own.covers(run).filter(|_| own.mpi_library == run.mpi_library) else {
            continue;
        };
        let fits = own.environment == run.environment;
        let place = if fits { &mut best } else { &mut other };
        let candidate = Candidate { hosts, calibration, path };
        if place.as_ref().map_or(true, |known| known.order() < candidate.order()) {
            *place = Some(candidate);
        }
    }
    match (best, other) {
        (Some(best), _) => best.take(&mut found),
        (None, Some(other)) => found.notes.push(format!(
            "calibration {} not used: it was made with {}, this run with {}",
            other.path.display(),
            other.calibration.circumstances.differing(run),
            run.differing(&other.calibration.circumstances),
        )),
        (None, None) => {}
    }
    found
}

struct Candidate {
    hosts: Hosts,
    calibration: Calibration,
    path: PathBuf,
}

impl Candidate {
    /// Undisturbed ones before others, then the newest.
    fn order(&self) -> (Hosts, bool, &str) {
        let is_undisturbed = self.calibration.times.processor_share.is_none();
        (self.hosts, is_undisturbed, &self.calibration.created)
    }

    fn take(self, found: &mut Found) {
        let Calibration { created, circumstances, mut times, loggps, .. } = self.calibration;
        if self.hosts == Hosts::Alike {
            let hosts: Vec<&str> = circumstances.hosts.iter().map(String::as_str).take(4).collect();
            let hosts = hosts.join(", ");
            found
                .notes
                .push(format!("the calibration was made on other nodes of this kind: {hosts}"));
        }
        times.source = Source::Calibration { file: self.path, created };
        found.reference = Some(times);
        found.loggps = loggps;
    }
}

/// In the order of their names.
fn files(directory: &Path) -> Vec<PathBuf> {
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
        let estimate = found.reference.as_ref()?.transfer(Locality::Node, 1024);
        estimate.map(|estimate| estimate.ns)
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
        let Source::Calibration { created, .. } = &found.reference.unwrap().source else {
            panic!("from a file")
        };
        assert_eq!(created, "2026-03-01T00:00:00Z");
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
    fn a_directory_that_is_not_there_holds_nothing() {
        let found = find_in(Path::new("/nowhere/at/all"), &circumstances(&["a"], None));
        assert!(found.reference.is_none() && found.notes.is_empty());
    }
}
