//! Runs lapscope's own MPI program (`lapscope-calibrate`) under the user's launcher, recorded as any other.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{bail, Context, Result};

use crate::install;
use crate::run::child::{self, ChildEnd, HeldSignals};
use crate::run::environment::{self, EnvironmentChanges};
use crate::run::{line, mpi_library, Recorded};
use lapscope_data::say;

/// What to launch.
#[derive(Debug, Clone, Copy)]
pub struct OwnProgram<'a> {
    /// As the user types it: "lapscope calibrate --".
    pub used_as: &'a str,
    /// The launch line, without a program.
    pub command: &'a [OsString],
    /// The mode of the program, see interposer/calibrate/main.c.
    pub mode: &'a str,
    pub seconds: u32,
    /// Where the run is kept; `None`: nowhere.
    pub dir: Option<&'a Path>,
    pub mpi_library: Option<&'a Path>,
}

/// A run of it.
pub struct OwnRun {
    /// The run directory.
    pub directory: PathBuf,
    /// Removed with everything in it.
    _temporary: Option<tempfile::TempDir>,
}

impl OwnProgram<'_> {
    /// Launches it and waits for its end; an exit code where the launch failed, which has been said.
    ///
    /// # Errors
    /// The launch line is none or has a program already, something of lapscope is missing, or nothing was recorded.
    pub fn run(&self) -> Result<Result<OwnRun, ExitCode>> {
        self.check()?;
        let preload = install::preload_library()?;
        let program = install::calibrator(&preload)?;
        let mut run = self.place()?;
        let recorded = Recorded::into_directory(&run.directory, self.settings(&preload)?);
        warn_of_load();
        let settings = &recorded.settings;
        let end = launch(&self.launch_line(&program, settings), settings)?;
        if !end.status.success() {
            return Ok(Err(self.failed(end)));
        }
        run.directory = recorded.recovered_run(true)?.directory;
        Ok(Ok(run))
    }

    fn check(&self) -> Result<()> {
        if let Some(rank) = environment::rank_variable() {
            bail!("{} starts the launcher itself, and this is a rank of a job already ({rank} is set)", self.used_as);
        }
        self.check_line()
    }

    fn check_line(&self) -> Result<()> {
        let example = format!("as in: {} mpirun -n 2", self.used_as);
        let Some(launcher) = self.command.first() else {
            bail!("a launch line is missing, {example}")
        };
        if line::find_executable(launcher).is_none() {
            let launcher = launcher.to_string_lossy();
            bail!("{launcher}: no such program; expected a launch line, {example}");
        }
        let last = self.command.last().filter(|_| self.command.len() > 1);
        let is_program = |word: &&OsString| {
            word.to_string_lossy().contains('/') && line::find_executable(word).is_some()
        };
        if let Some(program) = last.filter(is_program) {
            let program = program.to_string_lossy();
            bail!("leave out the program ({program}): lapscope's own is launched, {example}");
        }
        Ok(())
    }

    /// In the working directory, which ranks on other nodes see too.
    fn place(&self) -> Result<OwnRun> {
        if let Some(kept) = self.dir {
            return Ok(OwnRun { directory: std::path::absolute(kept)?, _temporary: None });
        }
        let here = std::env::current_dir()?;
        let temporary = tempfile::Builder::new()
            .prefix(".lapscope-own-run-")
            .tempdir_in(&here)
            .with_context(|| {
                format!("{}: the run needs a directory that all ranks can write to", here.display())
            })?;
        Ok(OwnRun { directory: temporary.path().join("run"), _temporary: Some(temporary) })
    }

    #[allow(clippy::disallowed_methods)] // only asked what it is
    fn settings(&self, preload: &Path) -> Result<EnvironmentChanges> {
        let mut settings = EnvironmentChanges::default();
        settings.preload(preload);
        for (name, value) in [
            ("ENABLE", "on"),
            ("QUIET", "on"),
            ("CALLPATH", "off"),
            ("CONVERT", "on"),
            ("INJECT", "off"),
            ("MAX_MB", "512"),
        ] {
            settings.set(format!("LAPSCOPE_{name}"), value);
        }
        let library = match self.mpi_library {
            Some(named) => Some(named.canonicalize().with_context(|| named.display().to_string())?),
            None => mpi_library::find(self.command),
        };
        if let Some(library) = library {
            settings.set("LAPSCOPE_MPI_LIBRARY", library);
        }
        if io::stderr().is_terminal() {
            settings.set("LAPSCOPE_CALIBRATE_PROGRESS", "on");
        }
        Ok(settings)
    }

    /// The user's line with our program behind it.
    fn launch_line(&self, program: &Path, settings: &EnvironmentChanges) -> Vec<OsString> {
        self.behind(settings.exported(self.command).into_owned(), program)
    }

    fn failed(&self, ChildEnd { status, interrupted, .. }: ChildEnd) -> ExitCode {
        let code = child::exit_code(status);
        if interrupted {
            say!("interrupted: nothing was measured");
            return ExitCode::from(code);
        }
        say!("the launch failed with exit code {code}: nothing was measured");
        say!(
            "a launch line is a launcher and its options, without a program, as in: {} mpirun -n 2",
            self.used_as
        );
        say!("when the wrong MPI was loaded, name the right one: --mpi-library /path/to/libmpi.so");
        ExitCode::from(code)
    }

    fn behind(&self, mut line: Vec<OsString>, program: &Path) -> Vec<OsString> {
        line.extend([program.into(), self.mode.into(), self.seconds.to_string().into()]);
        line
    }
}

/// Other programs on this machine make every time too long and ranks late, which no statistics can mend.
pub fn warn_of_load() {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if load > 0.5 * processors as f64 {
        say!(
            "other programs run here (load {load} on {processors} processors): times will be too long, \
             better measure again when they have ended"
        );
    }
}

/// Standard output is for our own data.
#[allow(clippy::disallowed_methods)] // what the launcher says is not ours
fn launch(line: &[OsString], settings: &EnvironmentChanges) -> Result<ChildEnd> {
    let stderr = io::stderr().lock();
    let to_stderr = std::os::fd::AsFd::as_fd(&stderr).try_clone_to_owned().map(Stdio::from);
    drop(stderr);
    let mut command = settings.command(line);
    command.stdout(to_stderr.unwrap_or_else(|_| Stdio::null()));
    HeldSignals::hold()
        .run(&mut command, None)
        .with_context(|| line[0].to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn program<'a>(command: &'a [OsString]) -> OwnProgram<'a> {
        OwnProgram {
            used_as: "lapscope calibrate --",
            command,
            mode: "transfers",
            seconds: 10,
            dir: None,
            mpi_library: None,
        }
    }

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_program_in_the_launch_line_is_an_error() {
        let check = |line: &[&str]| program(&words(line)).check_line();
        let error = check(&["/bin/sh", "-n", "2", "/bin/ls"]).unwrap_err().to_string();
        assert!(error.contains("leave out the program (/bin/ls)"), "{error}");
        let error = check(&["no-such-launcher", "-n", "2"]).unwrap_err().to_string();
        assert!(error.contains("expected a launch line"), "{error}");
        assert!(check(&[]).unwrap_err().to_string().contains("lapscope calibrate -- mpirun -n 2"));
        check(&["/bin/sh", "-n", "2", "--map-by", "ls"]).unwrap();
    }

    #[test]
    fn the_program_stands_behind_the_line() {
        let command = words(&["mpirun", "-n", "2", "--mca", "btl", "tcp,self"]);
        let own = Path::new("/lib/lapscope-calibrate");
        let line = program(&command).behind(command.clone(), own);
        let expected = "mpirun -n 2 --mca btl tcp,self /lib/lapscope-calibrate transfers 10";
        assert_eq!(line.join(OsStr::new(" ")), expected);
    }
}
