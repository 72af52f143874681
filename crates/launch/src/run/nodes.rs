//! Open MPI starts ranks on other nodes without our environment, unless told which variables to take along. Other
//! launchers (Hydra of MPICH and Intel MPI, srun) take all of it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use super::launcher;

const HOST_OPTIONS: [&str; 8] = [
    "--host",
    "-host",
    "-H",
    "--hostfile",
    "-hostfile",
    "--machinefile",
    "-machinefile",
    "--default-hostfile",
];

/// `line` with `-x NAME` for every variable, when it is an Open MPI launcher that may use other nodes; else `None`.
/// Each application of a launch line with `:` in it has its own list.
pub fn with_exported(line: &[OsString], variables: &[OsString]) -> Option<Vec<OsString>> {
    let (launcher, arguments) = line.split_first()?;
    let may_use_others = names_hosts(arguments) || allocation_has_several_nodes();
    let is_openmpi = may_use_others && launcher::ask(launcher)?.abi == Some("openmpi");
    is_openmpi.then(|| export(launcher, arguments, variables))
}

fn export(launcher: &OsStr, arguments: &[OsString], variables: &[OsString]) -> Vec<OsString> {
    let exports = || variables.iter().flat_map(|name| [OsString::from("-x"), name.clone()]);
    let mut line = vec![launcher.to_owned()];
    line.extend(exports());
    for argument in arguments {
        line.push(argument.clone());
        if argument == ":" {
            line.extend(exports());
        }
    }
    line
}

fn names_hosts(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| {
        let argument = argument.to_string_lossy();
        HOST_OPTIONS.contains(&argument.split('=').next().unwrap_or_default())
    })
}

/// Whether a batch system gave this job more than one node.
fn allocation_has_several_nodes() -> bool {
    let many = |name: &str| {
        std::env::var(name).is_ok_and(|value| value.trim().parse::<u64>().is_ok_and(|n| n > 1))
    };
    if many("SLURM_JOB_NUM_NODES") || many("SLURM_NNODES") {
        return true;
    }
    let node_files = ["PBS_NODEFILE", "PE_HOSTFILE", "LSB_DJOB_HOSTFILE"];
    node_files.iter().filter_map(std::env::var_os).any(|file| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let hosts: BTreeSet<_> =
            text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        hosts.len() > 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn every_application_gets_the_variables() {
        let line = words("-H a,b -n 1 ./x : -n 2 ./y");
        let exported = export(OsStr::new("mpirun"), &line, &words("LD_PRELOAD LAPSCOPE_DIR"));
        let expected = "mpirun -x LD_PRELOAD -x LAPSCOPE_DIR -H a,b -n 1 ./x : \
                        -x LD_PRELOAD -x LAPSCOPE_DIR -n 2 ./y";
        assert_eq!(exported, words(expected));
    }

    #[test]
    fn host_options_in_both_spellings() {
        assert!(names_hosts(&words("--host a")) && names_hosts(&words("--hostfile=h")));
        assert!(!names_hosts(&words("-n 4 ./app")));
    }

    /// A program that is started in place of a launcher runs once, with its own arguments.
    #[test]
    fn no_program_is_asked_for_its_version() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let (program, ran) = (place.path().join("app"), place.path().join("ran"));
        std::fs::write(&program, format!("#!/bin/sh\n: >'{}'\n", ran.display())).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let line = [program.into_os_string(), "--host".into(), "a".into()];
        assert_eq!(with_exported(&line, &words("LD_PRELOAD")), None);
        assert!(!ran.exists());
    }
}
