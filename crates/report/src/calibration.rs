//! Calibration files: reference times that `lapscope calibrate` has measured, found again by later reports of runs on the
//! same hosts, with the same MPI and the same settings of its transports.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context};
use serde::{Deserialize, Serialize};

use lapscope_data::db::RunFiles;
use lapscope_data::files::{cannot_write, read_short_text};
use lapscope_data::text::units::{bytes, percent, time};
use lapscope_data::text::visible::visible;
use lapscope_measure::loggps::LogGps;
use lapscope_measure::reference::{
    ends, Disagreement, Reference, ReferenceSource, TakenLocality, Which,
};
use lapscope_trace::Trace;

mod choice;
mod circumstances;
mod progress;

pub use choice::{directory, keep, DIRECTORY_VARIABLE};
pub use circumstances::Circumstances;
pub use progress::MeasuredProgress;

use choice::CalibrationChoice;

/// Format of the files; raised when an older lapscope would misread them.
const FORMAT: u32 = 3;

/// A file is not longer.
const MOST_BYTES: u64 = 64 << 20;

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
    /// Of a copy in a run's directory that a report has made: the run was recorded without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<FoundBy>,
}

/// Where a report has found a calibration for a run that had none, or an older one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundBy {
    pub file: PathBuf,
    /// When the one that the run had was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

impl FoundBy {
    fn sentence(&self) -> String {
        let replaced = self.instead_of.as_ref();
        let replaced = replaced
            .map_or(String::new(), |created| format!(", in place of that of {}", visible(created)));
        let file = self.file.display().to_string();
        format!(
            "this calibration did not come with the run: a report took {}{replaced}",
            visible(&file)
        )
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
    mut own: Reference,
) -> anyhow::Result<(Reference, Vec<String>)> {
    let found = match wanted {
        None => CalibrationChoice::fitting(trace, files, false),
        Some("run") => CalibrationChoice::default(),
        Some("calibration") => CalibrationChoice::fitting(trace, files, true),
        Some(file) => {
            let read = Calibration::read(Path::new(file)).with_context(|| {
                format!(
                    "--reference {file}: neither `run` nor `calibration`, nor a calibration file"
                )
            })?;
            let file = file.into();
            CalibrationChoice { calibration: Some(read), file, ..CalibrationChoice::default() }
        }
    };
    let CalibrationChoice { calibration, file, refused, mut notes } = found;
    let Some(Calibration { created, mut times, .. }) = calibration else {
        if wanted == Some("calibration") {
            let why: String = notes.iter().map(|note| format!("; {note}")).collect();
            bail!("no calibration fits this run; make one with: lapscope calibrate -- <launch line>{why}");
        }
        notes.extend(disturbed_note(&own));
        own.refused = refused;
        return Ok((own, notes));
    };
    times.refused = refused;
    times.source = ReferenceSource::Calibration { file, created };
    Ok(completed((times, notes), own))
}

/// The LogGPS parameters, by locality, of the calibration that fits; `None` where none does, or the one that fits has no
/// parameters.
pub fn loggps_for(trace: &Trace, files: &RunFiles) -> Option<Vec<LogGps>> {
    let CalibrationChoice { calibration, .. } = CalibrationChoice::fitting(trace, files, false);
    calibration.map(|calibration| calibration.loggps).filter(|all| !all.is_empty())
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
        ReferenceSource::None => return None,
        ReferenceSource::Run => (
            "this run",
            "measure with a processor for each rank: lapscope calibrate -- <launch line>",
        ),
        ReferenceSource::Calibration { .. } => {
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
    let (run, calibrated) = (time(found.run_ns), time(found.calibrated_ns));
    let which = match found.sizes {
        1 => bytes(found.bytes),
        sizes => format!("{} (and {} more sizes)", bytes(found.bytes), sizes - 1),
    };
    let so = if found.is_quicker {
        "no transfer is quicker than undisturbed, so these times are from the run itself"
    } else {
        "the calibration is believed; what slows them down, such as contention, counts as exposed"
    };
    format!(
        "{what}: of {which}, {} undisturbed ones of this run take {run}, and calibrated ones {calibrated}: {so}",
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

/// The share of the time in which ranks could have run and had a processor, where that is so little that they measured
/// something else than transfers.
pub fn lacked_processors(processor_share: Option<f64>) -> Option<f64> {
    const ENOUGH: f64 = 0.9;
    processor_share.filter(|share| *share < ENOUGH)
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
            found_by: None,
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
        write_whole(self, path)
    }

    /// `node-Open_MPI_v4.1.4-20260504T123000Z.json`
    pub fn file_name(&self) -> String {
        file_name(&self.circumstances, &self.created)
    }
}

fn file_name(circumstances: &Circumstances, created: &str) -> String {
    let host = circumstances.hosts.first().map_or("", String::as_str);
    let mpi = circumstances.mpi_library.split(',').next().unwrap_or_default();
    let created: String = created.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
    let name: String = format!("{host}-{mpi}").chars().map(plain).take(80).collect();
    format!("{name}-{created}.json")
}

fn write_whole(document: &impl Serialize, path: &Path) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    put_whole(&text, path).map_err(|error| cannot_write(path, error))
}

fn put_whole(text: &[u8], path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    // a file in the place of a device, as /dev/null, would be in the way of everybody
    if path.exists() && !path.is_file() {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(text);
    }
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text)?;
    file.persist(path)?;
    Ok(())
}
