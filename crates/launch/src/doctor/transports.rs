//! By what an MPI sends: what it was built with and what is chosen, as far as it is known before the ranks start.

use std::ffi::OsStr;
use std::process::Command;

use super::ask::LibraryAccount;
use super::family::{Family, Identity};
use super::Finding;
use crate::bounded;
use crate::run::line::find_executable;

const TOPIC: &str = "transports";

/// What is used is told when ranks start, by this.
fn shown_by(family: Family) -> &'static str {
    match family {
        Family::OpenMpi | Family::Bull | Family::Fujitsu | Family::Spectrum => {
            "mpirun --mca pml_base_verbose 10 … (look for \"selected\")"
        }
        Family::Intel => "I_MPI_DEBUG=5",
        Family::Cray => "MPICH_ENV_DISPLAY=1",
        Family::ParaStation => "PSP_DEBUG_CONTYPE=1",
        Family::Mpich | Family::Mvapich => "MPIR_CVAR_DEBUG_SUMMARY=1",
        Family::Mvapich2 | Family::Mpt | Family::Hmpt | Family::Wrapper | Family::Unknown => "",
    }
}

/// The finding on the MPI called `name` on the screen.
pub fn look(identity: &Identity, answer: &LibraryAccount) -> Option<Finding> {
    let says = if identity.family.is_of_open_mpi() {
        of_open_mpi(answer)?
    } else {
        of_mpich(identity, answer)?
    };
    let name = identity.family.name();
    let shown_by = shown_by(identity.family);
    let follows = format!("which one is used is settled when the ranks start: {shown_by}");
    let finding = Finding::ok(TOPIC, "built with", format!("{name}: {says}"));
    Some(if shown_by.is_empty() { finding } else { finding.follows(follows) })
}

fn of_open_mpi(answer: &LibraryAccount) -> Option<String> {
    let parts = ["pml", "btl", "mtl"].map(|framework| {
        let components = answer.components(framework);
        let chosen = answer.variable(framework).filter(|value| !value.is_empty());
        let chosen = chosen.map(|value| format!(" (set: {value})")).unwrap_or_default();
        (!components.is_empty()).then(|| format!("{framework} {}{chosen}", components.join(", ")))
    });
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn of_mpich(identity: &Identity, answer: &LibraryAccount) -> Option<String> {
    let device = identity.device.as_deref()?;
    let chosen = answer.variable("MPIR_CVAR_CH4_NETMOD").filter(|value| !value.is_empty());
    let several = device.strip_prefix("ch4:").is_some_and(|netmods| netmods.contains([' ', ',']));
    Some(match chosen {
        Some(value) => format!("device {device} (set: MPIR_CVAR_CH4_NETMOD={value})"),
        None if several => format!("device {device} (MPIR_CVAR_CH4_NETMOD chooses)"),
        None => format!("device {device}"),
    })
}

// --- the libraries below ---------------------------------------------------------------------------------------------

/// UCX and libfabric, as their own commands tell, where they are in PATH.
pub fn below() -> Vec<Finding> {
    let ucx = said("ucx_info", &["-v", "-d"]).and_then(|text| {
        let (version, transports) = of_ucx(&text)?;
        let transports = transports.join(", ");
        Some(Finding::ok(TOPIC, "UCX", format!("{version}: {transports}")))
    });
    let fabric = said("fi_info", &[]).and_then(|text| {
        let providers = of_libfabric(&text);
        (!providers.is_empty()).then(|| Finding::ok(TOPIC, "libfabric", providers.join(", ")))
    });
    ucx.into_iter().chain(fabric).collect()
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let path = find_executable(OsStr::new(program))?;
    let said = bounded::ask(Command::new(path).args(arguments), bounded::LIMIT)?;
    (said.complaint().is_none()).then_some(said.output)
}

/// Version and transports of `ucx_info -v -d`, each once.
fn of_ucx(text: &str) -> Option<(&str, Vec<&str>)> {
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    // UCX 1.13 says "Version 1.13.1", later ones "Library version: 1.16.0"
    let version = lines.clone().find_map(|line| {
        line.strip_prefix("Version ").or_else(|| line.strip_prefix("Library version: "))
    });
    let mut transports = Vec::new();
    for transport in lines.by_ref().filter_map(|line| line.strip_prefix("Transport: ")) {
        if !transports.contains(&transport) {
            transports.push(transport);
        }
    }
    Some((version?, transports))
}

/// Providers that `fi_info` finds usable, each once.
fn of_libfabric(text: &str) -> Vec<&str> {
    let mut providers = Vec::new();
    for provider in text.lines().filter_map(|line| line.trim().strip_prefix("provider: ")) {
        if !providers.contains(&provider) {
            providers.push(provider);
        }
    }
    providers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_libraries_are_read() {
        let ucx = "# Version 1.13.1\n# Git branch 'x'\n#\n# Memory domain: tcp\n#      Transport: tcp\n#         Device: lo\n\
                   #      Transport: tcp\n#         Device: eth0\n#      Transport: cma\n";
        assert_eq!(of_ucx(ucx), Some(("1.13.1", vec!["tcp", "cma"])));
        assert_eq!(of_ucx("# Library version: 1.16.0\n"), Some(("1.16.0", Vec::new())));
        assert_eq!(of_ucx("nonsense"), None);
        let fabric = "provider: tcp;ofi_rxm\n    fabric: a\nprovider: tcp;ofi_rxm\nprovider: shm\n";
        assert_eq!(of_libfabric(fabric), ["tcp;ofi_rxm", "shm"]);
    }

    #[test]
    fn what_is_built_in_and_what_is_set() {
        let named = |names: &[(&str, &str)]| LibraryAccount {
            variables: names
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            ..LibraryAccount::default()
        };
        let open =
            named(&[("pml", "ob1"), ("pml_ob1_major_version", ""), ("btl_tcp_major_version", "")]);
        assert_eq!(of_open_mpi(&open).unwrap(), "pml ob1 (set: ob1); btl tcp");
        assert_eq!(of_open_mpi(&LibraryAccount::default()), None);
        let device = |device: &str| Identity {
            family: Family::Mpich,
            version: String::new(),
            device: Some(device.into()),
        };
        assert_eq!(
            of_mpich(&device("ch4:ucx"), &LibraryAccount::default()).unwrap(),
            "device ch4:ucx"
        );
        let both = of_mpich(&device("ch4:ucx ofi"), &LibraryAccount::default()).unwrap();
        assert_eq!(both, "device ch4:ucx ofi (MPIR_CVAR_CH4_NETMOD chooses)");
        let set =
            of_mpich(&device("ch4:ucx ofi"), &named(&[("MPIR_CVAR_CH4_NETMOD", "ofi")])).unwrap();
        assert_eq!(set, "device ch4:ucx ofi (set: MPIR_CVAR_CH4_NETMOD=ofi)");
    }
}
