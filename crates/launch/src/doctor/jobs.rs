//! What starts ranks here: inside which job this is, and what Slurm offers.

use std::ffi::OsStr;
use std::process::Command;

use super::family::Family;
use super::host::Host;
use super::subject::Subject;
use super::Finding;
use crate::bounded;
use crate::run::environment::rank_variable;
use crate::run::line::find_executable;

const TOPIC: &str = "jobs";

/// Resource managers, the variable that says that this is a job of theirs, and their commands that start one.
const MANAGERS: [(&str, &[&str], &[&str], &str); 8] = [
    ("Slurm", &["SLURM_JOB_ID", "SLURM_JOBID"], &["sbatch", "srun"], "salloc -N 2"),
    ("PBS", &["PBS_JOBID"], &["qsub", "pbsnodes"], "qsub -I"),
    ("LSF", &["LSB_JOBID"], &["bsub"], "bsub -Is bash"),
    ("Flux", &["FLUX_JOB_ID", "FLUX_URI"], &["flux"], "flux alloc -N 2"),
    ("Grid Engine", &["SGE_TASK_ID"], &["qconf"], "qrsh"),
    ("Cobalt", &["COBALT_JOBID"], &["cobalt-mpirun"], "qsub -I"),
    ("PJM (Fujitsu)", &["PJM_JOBID"], &["pjsub"], "pjsub --interact"),
    ("OAR", &["OAR_JOB_ID"], &["oarsub"], "oarsub -I"),
];

pub fn look(host: &Host, subject: Option<&Subject>) -> Vec<Finding> {
    let there = |command: &str| find_executable(OsStr::new(command)).is_some();
    let mut findings = vec![job(host, &there)];
    if rank_variable().is_some() {
        findings.push(inside_rank());
    }
    if there("srun") {
        let said = bounded::ask(Command::new("srun").arg("--mpi=list"), bounded::LIMIT);
        let types = said.as_ref().map(|said| mpi_types(&said.all())).unwrap_or_default();
        let family = subject.and_then(|it| it.mpi.as_ref()).map(|linked| linked.identity.family);
        findings.extend(plugins(&types, family, host));
    }
    findings
}

fn job(host: &Host, there: &dyn Fn(&str) -> bool) -> Finding {
    let name = "job";
    for (manager, variables, _, _) in MANAGERS {
        let Some((_, id)) = host.first_variable(variables) else { continue };
        let size = if manager == "Slurm" { slurm_size(host) } else { String::new() };
        return Finding::ok(TOPIC, name, format!("inside job {id} of {manager}{size}"));
    }
    let manager =
        MANAGERS.iter().find(|(_, _, commands, _)| commands.iter().all(|command| there(command)));
    let Some((manager, _, _, start)) = manager else {
        return Finding::ok(TOPIC, name, "no resource manager here: ranks start on this machine");
    };
    Finding::note(
        TOPIC,
        name,
        format!("the commands of {manager} are here, and this is no job of it"),
        format!("{start}, then lapscope doctor there"),
    )
    .follows("what is said here is of this node, perhaps a login node; compute nodes may differ")
}

fn slurm_size(host: &Host) -> String {
    let count = |names: &[&str], unit: &str| {
        let (_, value) = host.first_variable(names)?;
        Some(format!("{value} {unit}{}", if value == "1" { "" } else { "s" }))
    };
    let step = host.variable("SLURM_STEP_ID").map(|id| format!("step {id}"));
    let nodes = count(&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"], "node");
    let tasks = count(&["SLURM_NTASKS", "SLURM_NPROCS"], "task");
    let parts: Vec<String> = [step, nodes, tasks].into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!(" ({})", parts.join(", "))
}

fn inside_rank() -> Finding {
    Finding::note(
        TOPIC,
        "rank",
        "this is a rank that a launcher has started",
        "run lapscope doctor in the job script, once",
    )
    .follows("each rank answers")
}

/// The types that `srun --mpi=list` names: a line each, behind a title. Slurm 20 and older put their own name in front of
/// every line.
fn mpi_types(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("srun: ").trim());
    let is_title = |line: &str| line.starts_with("MPI") && line.ends_with("types are...");
    let types = lines.skip_while(|line| !is_title(line)).skip(1);
    let types = types.take_while(|line| !line.contains(':')).filter(|line| !line.is_empty());
    types.map(str::to_owned).collect()
}

/// Whether srun can start ranks of the program's MPI together.
fn plugins(types: &[String], family: Option<Family>, host: &Host) -> Option<Finding> {
    let name = "srun --mpi";
    if types.is_empty() {
        return None;
    }
    let list = types.join(", ");
    let Some(family) = family else {
        return Some(Finding::ok(TOPIC, name, list));
    };
    let wanted: &[&str] = match family {
        family if family.is_of_open_mpi() => &["pmix"],
        Family::Cray => &["cray_shasta", "pmi2"],
        // Under pmix each of its processes is alone, without a word.
        Family::Mpich | Family::Intel | Family::Mvapich | Family::Mvapich2 => &["pmi2"],
        _ => return Some(Finding::ok(TOPIC, name, list)),
    };
    let title = family.name();
    let fitting = wanted.iter().find(|wanted| types.iter().any(|it| it == *wanted));
    let Some(fitting) = fitting else {
        let says = format!("{list}; {title} wants {}", wanted.join(" or "));
        let advice =
            "start with the MPI's own mpirun inside of salloc or sbatch, or ask for that plugin";
        return Some(Finding::warn(TOPIC, name, says, advice).follows(ALONE));
    };
    let chosen = host.variable("SLURM_MPI_TYPE");
    if chosen.is_some_and(|chosen| wanted.iter().any(|wanted| chosen.starts_with(wanted))) {
        return Some(Finding::ok(
            TOPIC,
            name,
            format!("{list}; SLURM_MPI_TYPE={}", chosen.unwrap_or_default()),
        ));
    }
    let library = match family {
        Family::Intel => ", and I_MPI_PMI_LIBRARY=/path/to/libpmi2.so of Slurm",
        _ => "",
    };
    let advice =
        format!("srun --mpi={fitting} … for {title}, or export SLURM_MPI_TYPE={fitting}{library}");
    Some(
        Finding::note(TOPIC, name, list, advice)
            .follows(format!("with a plugin that {title} does not speak, {ALONE}")),
    )
}

const ALONE: &str = "every rank thinks that it is alone";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;
    use std::path::Path;

    fn within(variables: &[(&str, &str)]) -> Host {
        Host::made(Path::new("/nonexistent"), variables)
    }

    #[test]
    fn jobs_by_their_variables() {
        let nothing = |_: &str| false;
        let all = |_: &str| true;
        let slurm = [
            ("SLURM_JOB_ID", "17"),
            ("SLURM_NNODES", "2"),
            ("SLURM_NTASKS", "1"),
            ("SLURM_STEP_ID", "0"),
        ];
        assert_eq!(
            job(&within(&slurm), &all).says,
            "inside job 17 of Slurm (step 0, 2 nodes, 1 task)"
        );
        assert_eq!(
            job(&within(&[("PBS_JOBID", "3.host")]), &nothing).says,
            "inside job 3.host of PBS"
        );
        let outside = job(&within(&[]), &all);
        assert_eq!(outside.status, Status::Note);
        assert!(outside.advice.unwrap().starts_with("salloc"));
        assert_eq!(job(&within(&[]), &nothing).status, Status::Ok);
    }

    #[test]
    fn plugins_of_srun() {
        let text = "MPI plugin types are...\n\tcray_shasta\n\tpmi2\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n";
        let types = mpi_types(text);
        assert_eq!(types, ["cray_shasta", "pmi2", "pmix"]);
        let older = "srun: MPI types are...\nsrun: none\nsrun: pmi2\n";
        assert_eq!(mpi_types(older), ["none", "pmi2"]);
        assert!(mpi_types("srun: fatal: Could not establish a configuration source\n").is_empty());
        let of = |types: &[String], family| plugins(types, Some(family), &within(&[])).unwrap();
        assert!(of(&types, Family::OpenMpi).advice.unwrap().contains("--mpi=pmix"));
        assert!(of(&types, Family::Mpich).advice.unwrap().contains("--mpi=pmi2"));
        assert_eq!(of(&types[..2], Family::OpenMpi).status, Status::Warn);
        assert_eq!(of(&types[2..], Family::Mpich).status, Status::Warn);
        assert!(of(&types, Family::Intel).advice.unwrap().contains("I_MPI_PMI_LIBRARY"));
        assert_eq!(of(&types, Family::ParaStation).status, Status::Ok);
        let set = plugins(&types, Some(Family::OpenMpi), &within(&[("SLURM_MPI_TYPE", "pmix_v4")]));
        assert_eq!(set.unwrap().status, Status::Ok);
        assert_eq!(plugins(&[], Some(Family::Mpich), &within(&[])), None);
        assert_eq!(plugins(&types, None, &within(&[])).unwrap().status, Status::Ok);
    }
}
