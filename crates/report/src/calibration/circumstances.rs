//! Where and with which settings a run communicated: reference times hold for no other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use lapscope_data::db::{environment_of_first, Database, DbError};
use lapscope_data::model::RankInfo;
use lapscope_trace::Trace;

/// What reference times depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    pub hosts: BTreeSet<String>,
    /// First line of MPI_Get_library_version.
    pub mpi_library: String,
    /// Variables that choose or tune transports.
    pub environment: BTreeMap<String, String>,
}

impl Circumstances {
    /// # Errors
    /// The first file cannot be read.
    pub fn of_run(trace: &Trace, databases: &[PathBuf]) -> Result<Circumstances, DbError> {
        Circumstances::new(trace.ranks.iter().map(|rank| rank.info()), databases)
    }

    /// The circumstances of a run of these ranks.
    ///
    /// # Errors
    /// The first file cannot be read.
    pub(super) fn new<'r>(
        ranks: impl Iterator<Item = &'r RankInfo>,
        databases: &[PathBuf],
    ) -> Result<Circumstances, DbError> {
        let mut ranks = ranks.peekable();
        let mpi_library = ranks.peek().map(|info| info.mpi_library.clone());
        let hosts = ranks.map(|info| info.host.clone()).collect();
        let mut environment = BTreeMap::new();
        if let Some(path) = databases.first() {
            environment = environment_of_first(&Database::open(path)?)?;
        }
        environment.retain(|name, _| is_about_transport(name));
        for (name, value) in &mut environment {
            *value = normalized(name, value);
        }
        Ok(Circumstances { hosts, mpi_library: mpi_library.unwrap_or_default(), environment })
    }

    /// `NAME=value` of what is only here or otherwise in `other`.
    pub(super) fn differing(&self, other: &Circumstances) -> String {
        let names: BTreeSet<&String> =
            self.environment.keys().chain(other.environment.keys()).collect();
        let differs =
            |name: &&&String| self.environment.get(**name) != other.environment.get(**name);
        let say = |name: &String| match self.environment.get(name) {
            Some(value) => format!("{name}={value}"),
            None => format!("{name} not set"),
        };
        names.iter().filter(differs).map(|name| say(name)).collect::<Vec<_>>().join(", ")
    }

    /// Whether these hosts are of the kind that `run` ran on: all of its hosts, or such that differ in numbers alone, as
    /// nodes of a cluster do.
    pub(super) fn covers(&self, run: &Circumstances) -> Option<Hosts> {
        let kind = |host: &String| host.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let kinds: BTreeSet<String> = self.hosts.iter().map(kind).collect();
        if run.hosts.is_subset(&self.hosts) {
            Some(Hosts::Same)
        } else {
            run.hosts.iter().map(kind).all(|kind| kinds.contains(&kind)).then_some(Hosts::Alike)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hosts {
    Alike,
    Same,
}

/// Whether a variable chooses or tunes a transport; not those that a launcher sets anew for every job.
fn is_about_transport(name: &str) -> bool {
    const PREFIXES: [&str; 22] = [
        "OMPI_MCA_btl",
        "OMPI_MCA_pml",
        "OMPI_MCA_mtl",
        "OMPI_MCA_coll",
        "OMPI_MCA_smsc",
        "UCX_",
        "FI_",
        "MPIR_CVAR_",
        "MPICH_OFI_",
        "MPICH_UCX_",
        "MPICH_SMP_",
        "MPICH_GNI_",
        "I_MPI_FABRICS",
        "I_MPI_OFI",
        "I_MPI_SHM",
        "I_MPI_EAGER",
        "I_MPI_INTRANODE",
        "PSM",
        "MV2_",
        "I_MPI_ADJUST",
        "MPICH_ASYNC_PROGRESS",
        "I_MPI_ASYNC_PROGRESS",
    ];
    const OTHERS: [&str; 7] = [
        "_verbose",
        "_LOG_LEVEL",
        "MV2_COMM_WORLD",
        "_warn_",
        "INTERFACE_HOSTNAME",
        "PSM2_DEVICES",
        "_UUID", // Intel's launcher gives each job one
    ];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !OTHERS.iter().any(|other| name.contains(other))
}

/// The order of the transports in a list does not matter.
pub(super) fn normalized(name: &str, value: &str) -> String {
    const LISTS: [&str; 5] =
        ["OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_mtl", "OMPI_MCA_coll", "UCX_TLS"];
    let value = value.trim();
    if !LISTS.contains(&name) {
        return value.to_owned();
    }
    let (not, list) = value.strip_prefix('^').map_or(("", value), |list| ("^", list));
    let mut words: Vec<&str> = list.split(',').map(str::trim).collect();
    words.sort_unstable();
    format!("{not}{}", words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_transports() {
        for name in [
            "OMPI_MCA_btl",
            "OMPI_MCA_btl_tcp_eager_limit",
            "UCX_TLS",
            "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE",
        ] {
            assert!(is_about_transport(name), "{name}");
        }
        for name in [
            "OMPI_MCA_ess",
            "PMIX_RANK",
            "OMPI_MCA_btl_base_verbose",
            "MV2_COMM_WORLD_RANK",
            "SLURM_JOBID",
            "FI_PSM3_UUID",
        ] {
            assert!(!is_about_transport(name), "{name}");
        }
        assert_eq!(normalized("OMPI_MCA_btl", "^vader, tcp"), "^tcp,vader");
        assert_eq!(normalized("UCX_NET_DEVICES", "b,a "), "b,a");
    }
}
