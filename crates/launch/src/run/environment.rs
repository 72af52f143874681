//! The environment that a recorded program gets.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::container::{self, Needs};
use super::nodes;
use crate::install;
use lapscope_data::options::{self, is_valid};
use lapscope_data::slurm;
use lapscope_trace::gpu::NoGpuTime;

/// What CUDA loads into a process that uses a GPU, and nobody else looks at. Whether there is a CUPTI is seen there: where ranks run,
/// and by what their program has loaded.
const CUDA_INJECTION: &str = "CUDA_INJECTION64_PATH";

/// What another tool has CUDA load: it loads one.
pub fn other_cuda_tool() -> Option<NoGpuTime> {
    let named = std::env::var_os(CUDA_INJECTION).filter(|value| !value.is_empty())?;
    let is_ours = install::is_cuda_plugin(Path::new(&named));
    (!is_ours).then(|| NoGpuTime::OtherTool(named.to_string_lossy().into_owned()))
}

/// Variables to set, in the order in which they were asked for; a later one wins.
#[derive(Debug, Clone, Default)]
pub struct EnvironmentChanges(Vec<(OsString, OsString)>);

impl EnvironmentChanges {
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }

    /// The value that the program will see: set here, else in our environment; empty counts as not set.
    pub fn get(&self, name: &str) -> Option<OsString> {
        let own = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name)).filter(|value| !value.is_empty())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Puts the preload library in front of what is preloaded already.
    pub fn preload(&mut self, library: &Path) {
        let existing = std::env::var_os("LD_PRELOAD");
        self.set("LD_PRELOAD", preload(library, existing.as_deref()));
        if let Some(plugin) = install::cuda_plugin(library) {
            if other_cuda_tool().is_none() {
                self.set(CUDA_INJECTION, plugin);
            }
        }
    }

    /// `line` so that ranks on other nodes and in containers get the variables, too, and those in containers our files;
    /// [`Cow::Owned`] where it had to be changed for that.
    pub fn exported<'a>(&self, line: &'a [OsString]) -> Cow<'a, [OsString]> {
        let line =
            nodes::with_exported(line, &self.names()).map_or(Cow::Borrowed(line), Cow::Owned);
        match self.contained(&line) {
            Some(line) => Cow::Owned(line),
            None => line,
        }
    }

    /// `line` so that the container that it starts gets the variables and our files; `None` where it starts none.
    pub fn contained(&self, line: &[OsString]) -> Option<Vec<OsString>> {
        Some(container::engine(line)?.provided(line, &self.needs()))
    }

    /// What a container needs of the host.
    fn needs(&self) -> Needs {
        let variables = self.names().into_iter();
        let variables = variables.filter_map(|name| Some((self.get(name.to_str()?)?, name)));
        let preload = self.get("LD_PRELOAD").unwrap_or_default();
        let libraries = preload
            .as_bytes()
            .split(|byte| b": ".contains(byte))
            .filter_map(|entry| Path::new(OsStr::from_bytes(entry)).parent().map(Path::to_path_buf))
            .filter(|directory| directory.is_absolute())
            .map(|directory| (directory, false));
        let written = ["LAPSCOPE_DIR", "LAPSCOPE_SPOOL_DIR"].into_iter();
        let written = written.filter_map(|name| self.get(name)).map(|path| (path.into(), true));
        let mut directories: Vec<(PathBuf, bool)> = libraries.chain(written).collect();
        directories.sort();
        directories.dedup_by(|later, earlier| later.0 == earlier.0);
        Needs { variables: variables.map(|(value, name)| (name, value)).collect(), directories }
    }

    /// What starts `line` with them. The run directory is made before a container is started: an engine takes along only
    /// what is there.
    pub fn command(&self, line: &[OsString]) -> Command {
        let run = self.get("LAPSCOPE_DIR").filter(|_| container::engine(line).is_some());
        if let Some(run) = run {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(run);
            drop(made); // the engine says of what it cannot find
        }
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).envs(self.iter());
        command
    }

    /// LD_PRELOAD and every LAPSCOPE_ variable that the program will see.
    pub fn names(&self) -> Vec<OsString> {
        let inherited = std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name.to_string_lossy().starts_with("LAPSCOPE_"));
        let mut names: Vec<OsString> =
            self.0.iter().map(|(name, _)| name.clone()).chain(inherited).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// `NAME=VALUE` as the variable and its value.
///
/// # Errors
/// A sentence, when there is no such option or the recorder would not take the value.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("expected NAME=VALUE, as in CPU_TIME=on".into());
    };
    let Some(option) = options::find(name) else {
        let guess = options::nearest(name);
        let guess = guess.map(|known| format!("did you mean {known}? ")).unwrap_or_default();
        return Err(format!("no such option; {guess}`lapscope options` lists them all"));
    };
    if !is_valid(option, value) {
        return Err(format!("{value} is not valid, expected {}", option.unit));
    }
    Ok((option.name.to_owned(), value.to_owned()))
}

/// LD_PRELOAD with `library` in front; other entries are kept, and an earlier lapscope is replaced: two would record
/// everything twice.
fn preload(library: &Path, existing: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    let existing = existing.unwrap_or_default().as_bytes();
    for entry in existing.split(|byte| b": ".contains(byte)).filter(|entry| !entry.is_empty()) {
        let entry = OsStr::from_bytes(entry);
        if Path::new(entry).file_name() != library.file_name() {
            value.push(":");
            value.push(entry);
        }
    }
    value
}

/// The run directory for a launch now: `lapscope-<YYYYmmdd-HHMMSS.mmm>-<program>` here.
///
/// # Errors
/// The working directory is gone.
pub fn default_directory(program: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_dir()?.join(format!("lapscope-{}", job_name(program))))
}

fn job_name(program: &str) -> String {
    format!("{}-{program}", lapscope_data::calendar::local_stamp())
}

/// A value of `LAPSCOPE_DIR` as the ranks of a run of `program` are to have it, with a name for the job in the place of `%j`.
///
/// # Errors
/// The working directory is gone.
pub fn named_directory(value: &OsStr, program: &str) -> std::io::Result<PathBuf> {
    let value = match value.to_str() {
        Some(text) if text.contains("%j") => text.replace("%j", &job_name(program)).into(),
        _ => value.to_owned(),
    };
    std::path::absolute(value)
}

/// The variable that says that this process is itself a rank which a launcher has started; `None` when it is not.
pub fn rank_variable() -> Option<&'static str> {
    const VARIABLES: [&str; 10] = [
        "OMPI_COMM_WORLD_RANK",
        "PMIX_RANK",
        "PMI_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_RANK",
        "PALS_RANKID",
        "FLUX_TASK_RANK",
        "JSM_NAMESPACE_RANK",
        "ALPS_APP_PE",
        "MPIRUN_RANK",
    ];
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    // A batch script has SLURM_PROCID too; only what srun starts has a step.
    let is_task = is_set(&"SLURM_PROCID")
        && std::env::var("SLURM_STEP_ID").is_ok_and(|number| slurm::is_step(&number));
    let in_step = is_task.then_some("SLURM_PROCID");
    VARIABLES.into_iter().find(|name| is_set(name)).or(in_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_gets_libraries_and_run_directory() {
        let mut settings = EnvironmentChanges::default();
        settings.set("LD_PRELOAD", "/opt/lib/liblapscope.so:/opt/lib/other.so");
        settings.set("LAPSCOPE_DIR", "/data/run");
        let line: Vec<OsString> = ["podman", "run", "image"].map(OsString::from).into();
        let words = settings.exported(&line);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let text = words.join(" ");
        assert!(
            text.starts_with(
                "podman run --volume /data/run:/data/run --volume /opt/lib:/opt/lib:ro --env"
            ),
            "{text}"
        );
        // whoever tests may have set more of them
        for assignment in
            ["LAPSCOPE_DIR=/data/run ", "LD_PRELOAD=/opt/lib/liblapscope.so:/opt/lib/other.so "]
        {
            assert!(text.contains(&format!("--env {assignment}")), "{text}");
        }
    }

    #[test]
    fn other_preloads_are_kept_and_ours_is_there_once() {
        let library = Path::new("/opt/lib/liblapscope.so");
        let value = |existing: &str| preload(library, Some(OsStr::new(existing)));
        assert_eq!(preload(library, None), "/opt/lib/liblapscope.so");
        assert_eq!(value("/a.so /b.so"), "/opt/lib/liblapscope.so:/a.so:/b.so");
        assert_eq!(value("/a.so:/old/liblapscope.so:"), "/opt/lib/liblapscope.so:/a.so");
    }

    #[test]
    fn assignments_are_checked() {
        assert_eq!(assignment("max_mb=16").unwrap(), ("LAPSCOPE_MAX_MB".into(), "16".into()));
        let error = |text| assignment(text).unwrap_err();
        assert!(error("max_mb").contains("NAME=VALUE"));
        assert!(error("max_md=1").contains("did you mean LAPSCOPE_MAX_MB?"));
        assert!(error("max_mb=lots").contains("1..1048576 MB"));
    }

    #[test]
    fn later_settings_win() {
        let mut settings = EnvironmentChanges::default();
        settings.set("LAPSCOPE_DIR", "/a");
        settings.set("LAPSCOPE_DIR", "/b");
        assert_eq!(settings.get("LAPSCOPE_DIR"), Some("/b".into()));
        assert_eq!(settings.iter().count(), 1);
    }
}
