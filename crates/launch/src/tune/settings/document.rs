//! What was found of the MPI's own settings, for people and for programs. Keys are documented in `docs/json.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::candidate::{CandidateSetting, NotTried};
use super::proof::Proof;
use crate::tune::trial::nanos;
use lapscope_data::model::Nanos;
use lapscope_data::text::shell;
use lapscope_trace::stats::{median, Interval};

/// Two whole runs of the program without lapscope, one right behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SettingPair {
    pub without_ns: Nanos,
    pub with_ns: Nanos,
    /// As a fraction of the run without the setting.
    pub gain: f64,
}

impl SettingPair {
    pub fn new(without: Duration, with: Duration) -> SettingPair {
        let gain = 1.0 - with.as_secs_f64() / without.as_secs_f64().max(1e-9);
        SettingPair { without_ns: nanos(without), with_ns: nanos(with), gain }
    }

    /// The logarithm of the run time without the setting over that with it.
    pub fn log(&self) -> f64 {
        (self.without_ns.0.max(1) as f64 / self.with_ns.0.max(1) as f64).ln()
    }
}

/// A setting that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedSetting {
    #[serde(flatten)]
    pub candidate: CandidateSetting,
    /// Those that screened it.
    pub pairs: Vec<SettingPair>,
    /// Their median; `None`: there is none.
    pub gain: Option<f64>,
    /// Why a launch with it failed; `None`: none did.
    pub failed: Option<String>,
}

impl TriedSetting {
    pub fn new(candidate: CandidateSetting) -> TriedSetting {
        TriedSetting { candidate, pairs: Vec::new(), gain: None, failed: None }
    }

    pub fn add(&mut self, pair: SettingPair) {
        self.pairs.push(pair);
        self.gain = median(self.pairs.iter().map(|pair| pair.gain).collect());
    }
}

/// Pairs that were made for the best setting alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingProof {
    pub pairs: Vec<SettingPair>,
    /// Their median.
    pub estimate: f64,
    /// Each end is wrong with a probability of at most [`super::proof::ERROR`]; `None`: there are too few pairs for any.
    pub gain: Option<Interval>,
    pub is_certain: bool,
}

impl SettingProof {
    /// `None` without a pair.
    pub fn from_pairs(pairs: Vec<SettingPair>, proof: &Proof) -> Option<SettingProof> {
        let (estimate, gain) = (proof.estimate()?, proof.gain());
        Some(SettingProof { pairs, estimate, gain, is_certain: proof.is_certain() })
    }
}

/// The setting that gained most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestSetting {
    #[serde(flatten)]
    pub candidate: CandidateSetting,
    pub proof: Option<SettingProof>,
    /// To paste into a shell.
    pub exports: Vec<String>,
    /// The same as options of the launcher.
    pub options: String,
    /// The same for a file that every run reads; `None`: this MPI has none.
    pub file: Option<SettingsFileLines>,
}

/// Lines of a file of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingsFileLines {
    pub path: String,
    pub lines: Vec<String>,
}

impl BestSetting {
    pub fn new(candidate: CandidateSetting, proof: Option<SettingProof>, mpi: &str) -> BestSetting {
        let variables = &candidate.variables;
        let quoted = |value: &str| shell::quote(value);
        let exports =
            variables.iter().map(|it| format!("export {}={}", it.name, quoted(&it.value)));
        let exports = exports.collect();
        let options: Vec<String> = variables
            .iter()
            .map(|it| match (mpi, it.name.strip_prefix(MCA)) {
                ("Open MPI", Some(name)) => format!("--mca {name} {}", quoted(&it.value)),
                ("Open MPI", None) => format!("-x {}={}", it.name, quoted(&it.value)),
                _ => format!("-genv {} {}", it.name, quoted(&it.value)),
            })
            .collect();
        let of_file = variables.iter().map(|it| {
            let name = it.name.strip_prefix(MCA).filter(|_| mpi == "Open MPI")?;
            Some(format!("{name} = {}", it.value))
        });
        let file = of_file.collect::<Option<Vec<String>>>().map(|lines| SettingsFileLines {
            path: "$HOME/.openmpi/mca-params.conf".to_owned(),
            lines,
        });
        BestSetting { candidate, proof, exports, options: options.join(" "), file }
    }
}

const MCA: &str = "OMPI_MCA_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsResult {
    /// `best` gains.
    Gain,
    /// Something gained while it was screened, and it is not certain that it does.
    Unproved,
    /// Nothing that was tried gained.
    NoGain,
    /// There was nothing to try.
    NothingToTry,
}

/// Why not everything was tried or proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    Budget,
    Interrupt,
}

/// All that was found of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingsAnswer {
    /// Name and version.
    pub mpi: String,
    pub found: SettingsResult,
    pub best: Option<BestSetting>,
    pub tried: Vec<TriedSetting>,
    pub not_tried: Vec<NotTried>,
    pub stopped: Option<StoppedBy>,
    /// Sentences on what to know of all this.
    pub notes: Vec<String>,
}

impl SettingsAnswer {
    /// What the best one certainly gains; `None`: none does.
    pub fn certain_gain(&self) -> Option<Interval> {
        let proof = self.best.as_ref()?.proof.as_ref()?;
        proof.gain.filter(|_| self.found == SettingsResult::Gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::variable::Variable;

    fn best(mpi: &str, variables: &[(&str, &str)]) -> BestSetting {
        let variables = variables.iter().map(|(name, value)| Variable::new(name, (*value).into()));
        let candidate = CandidateSetting {
            variables: variables.collect(),
            at_stake: 0.3,
            predicted: None,
            prediction_error: None,
            costs: Vec::new(),
            source: Vec::new(),
            is_combination: false,
        };
        BestSetting::new(candidate, None, mpi)
    }

    #[test]
    fn lines_to_paste_are_those_of_the_mpi() {
        let tcp = best("Open MPI", &[("OMPI_MCA_btl_tcp_progress_thread", "1")]);
        assert_eq!(tcp.exports, ["export OMPI_MCA_btl_tcp_progress_thread=1"]);
        assert_eq!(tcp.options, "--mca btl_tcp_progress_thread 1");
        assert_eq!(tcp.file.unwrap().lines, ["btl_tcp_progress_thread = 1"]);
        let ucx = best("Open MPI", &[("OMPI_MCA_pml", "^ob1"), ("UCX_RNDV_THRESH", "4096")]);
        assert_eq!(
            (ucx.options.as_str(), ucx.file),
            ("--mca pml '^ob1' -x UCX_RNDV_THRESH=4096", None)
        );
        let mpich = best("MPICH", &[("MPIR_CVAR_ASYNC_PROGRESS", "1")]);
        assert_eq!(mpich.options, "-genv MPIR_CVAR_ASYNC_PROGRESS 1");
        assert_eq!(mpich.file, None);
    }

    #[test]
    fn a_pair_has_its_gain_and_its_logarithm() {
        let pair = SettingPair::new(Duration::from_secs(4), Duration::from_secs(3));
        assert!((pair.gain - 0.25).abs() < 1e-9);
        assert!((pair.log() - (4.0_f64 / 3.0).ln()).abs() < 1e-9);
    }
}
