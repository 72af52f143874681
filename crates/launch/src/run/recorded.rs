//! A launch that is recorded: what its ranks are told, what starts them, and the run that they leave.

use std::path::Path;

use anyhow::Context;
use lapscope_data::options::LAUNCH_VARIABLE;

use super::environment::EnvironmentChanges;
use super::runs::{Launch, RunDirectory};

/// A launch, from before its start to behind its end.
#[derive(Debug)]
pub struct Recorded {
    /// What its ranks get.
    pub settings: EnvironmentChanges,
    launch: Launch,
}

impl Recorded {
    /// One whose ranks get `settings`, the preload library among them, and write into `directory`. To be made before it
    /// starts.
    pub fn into_directory(directory: &Path, mut settings: EnvironmentChanges) -> Recorded {
        settings.set("LAPSCOPE_DIR", directory);
        let launch = Launch::into_directory(directory);
        settings.set(LAUNCH_VARIABLE, launch.token());
        Recorded { settings, launch }
    }

    /// What it has left, once it has ended: a run for each of its jobs.
    pub fn runs(&self) -> Vec<RunDirectory> {
        self.launch.runs()
    }

    /// The run of its one job, as it was left.
    ///
    /// # Errors
    /// There is none.
    pub fn run(&self) -> anyhow::Result<RunDirectory> {
        self.runs().into_iter().next().context(
            "nothing was recorded: the program did not reach MPI_Init, or uses an MPI for which there is no recorder, or its \
             launcher did not pass LD_PRELOAD on; to find out: lapscope doctor",
        )
    }

    /// As [`Recorded::run`], with what killed ranks left turned into databases; with `progress`, a bar on standard error
    /// where that is a terminal.
    ///
    /// # Errors
    /// There is none, or its directory cannot be listed.
    pub fn recovered_run(&self, progress: bool) -> anyhow::Result<RunDirectory> {
        let run = self.run()?;
        run.recover(progress)?;
        Ok(run)
    }
}
