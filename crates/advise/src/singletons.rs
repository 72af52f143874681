//! Processes that were started together and do not know of each other: their MPI does not understand their launcher.

use std::collections::BTreeSet;

use lapscope_data::model::{Rank, RankInfo};
use lapscope_data::slurm;
use lapscope_data::text::library::library_name;
use lapscope_trace::problem::{Problem, ProblemKind};

/// What a launch of singletons is told by.
#[derive(Debug, Clone, Copy)]
pub struct Singletons<'a> {
    pub processes: usize,
    /// `rank.job`, which has the launcher's form.
    pub job: &'a str,
    /// `rank.mpi_abi`
    pub abi: &'a str,
    /// `rank.mpi_library`
    pub library: &'a str,
}

impl Singletons<'_> {
    /// What is the matter, and what mends it.
    pub fn sentence(&self) -> String {
        format!(
            "{} processes were started together, but each is a singleton, alone in its MPI_COMM_WORLD: their MPI ({}) does not \
             understand this launcher. Unless that is meant, start the program with {}",
            self.processes,
            library_name(self.library),
            self.cure()
        )
    }

    fn cure(&self) -> &'static str {
        match (slurm::job_of(self.job).is_some(), self.abi) {
            (false, "openmpi") => "Open MPI's own mpirun (Debian's is mpirun.openmpi)",
            (false, _) if self.library.contains("Intel") => "Intel MPI's own mpiexec",
            (false, "mpich") => "MPICH's own mpiexec (Debian's is mpiexec.mpich)",
            (false, _) => "the mpirun or mpiexec of the MPI that it is linked with",
            (true, "openmpi") => "srun --mpi=pmix, or with its own mpirun",
            (true, _) if self.library.contains("Intel") => {
                "srun --mpi=pmi2 and I_MPI_PMI_LIBRARY naming Slurm's libpmi2.so, or with its own mpiexec"
            }
            (true, _) => "srun --mpi=pmi2, or with its own mpiexec",
        }
    }
}

/// Worlds of one rank each, none of which another has spawned.
pub(super) fn find(ranks: &[&RankInfo]) -> Option<Problem> {
    let worlds: BTreeSet<i64> = ranks.iter().map(|rank| rank.rank.world).collect();
    let first = *ranks.first()?;
    let is_alone = |rank: &&RankInfo| rank.world_size == 1 && rank.spawned == 0;
    if worlds.len() < 2 || !ranks.iter().all(|rank| is_alone(rank) && rank.job == first.job) {
        return None;
    }
    let said = Singletons {
        processes: worlds.len(),
        job: &first.job,
        abi: &first.mpi_abi,
        library: &first.mpi_library,
    };
    let numbers: BTreeSet<Rank> = ranks.iter().map(|rank| rank.rank).collect();
    Some(Problem::new(ProblemKind::Singletons, said.sentence(), numbers.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_and_mpi_has_its_cure() {
        let said = |job, abi, library| Singletons { processes: 4, job, abi, library }.sentence();
        let text = said("slurm.pmix.19.0", "mpich", "MPICH Version: 4.0.2");
        assert!(
            text.starts_with("4 processes ") && text.contains("MPICH Version: 4.0.2"),
            "{text}"
        );
        assert!(text.contains("srun --mpi=pmi2"), "{text}");
        assert!(said("19.0", "mpich", "Intel(R) MPI").contains("I_MPI_PMI_LIBRARY"));
        assert!(said("19.0", "openmpi", "Open MPI v4.1.4").contains("--mpi=pmix"));
        assert!(said("node1:4711", "mpich", "MPICH").contains("mpiexec.mpich"));
        let openmpi = said("node1:4711", "openmpi", "Open MPI v4.1.4, package: Debian OpenMPI");
        assert!(openmpi.contains("(Open MPI v4.1.4)") && openmpi.contains("mpirun.openmpi"));
    }
}
