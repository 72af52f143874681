//! What a launch line is: a launcher or the program itself, and which program a launcher will start.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

const LAUNCHERS: [&str; 14] = [
    "mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "ibrun",
    "palsrun", "mpprun", "flux", "poe", "shmemrun",
];

/// Programs that run the file named by their first argument that is no option.
const INTERPRETERS: [&str; 8] =
    ["python", "perl", "ruby", "bash", "sh", "Rscript", "julia", "node"];

/// Whether `command` starts other programs as the ranks of an MPI job: `mpirun`, also `mpirun.mpich`, `mpiexec.hydra`
/// and `/opt/mpi/bin/mpiexec`.
pub fn is_launcher(command: &OsStr) -> bool {
    let name = base_name(command);
    LAUNCHERS.contains(&name.split(['.', '-', '_']).next().unwrap_or(&name))
}

fn base_name(command: &OsStr) -> String {
    Path::new(command).file_name().unwrap_or(command).to_string_lossy().into_owned()
}

/// The program that `line` runs: itself, or behind a launcher's own arguments the first one that is an executable file
/// (launchers have hundreds of options, so which of them take a value cannot be known). `None` when there is none.
pub fn program(line: &[OsString]) -> Option<PathBuf> {
    let (first, arguments) = line.split_first()?;
    if !is_launcher(first) {
        return find_executable(first);
    }
    let own = std::env::current_exe().ok();
    arguments
        .iter()
        .filter(|argument| !argument.to_string_lossy().starts_with('-'))
        .filter_map(|argument| find_executable(argument))
        .find(|path| path.canonicalize().ok() != own)
}

/// A short name for what `line` runs, fit for a file name: the program's, the script's where an interpreter runs one,
/// or the launcher's.
pub fn display_name(line: &[OsString]) -> String {
    let Some(program) = program(line) else {
        return file_name_of(line.first().map_or_else(String::new, |first| base_name(first)));
    };
    let name = base_name(program.as_os_str());
    let is_interpreter =
        INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    let script = is_interpreter.then(|| script(line, &name)).flatten();
    file_name_of(script.unwrap_or(name))
}

/// The first argument behind the interpreter that is a file.
fn script(line: &[OsString], interpreter: &str) -> Option<String> {
    let at = line.iter().position(|word| base_name(word) == interpreter)?;
    let file = line[at + 1..].iter().find(|word| Path::new(word).is_file())?;
    Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

fn file_name_of(name: String) -> String {
    let kept = |c: char| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(kept).take(40).collect();
    if name.is_empty() {
        "run".into()
    } else {
        name
    }
}

/// What a shell would execute for `command`: the path itself where it has a slash, else the first hit in PATH.
pub fn find_executable(command: &OsStr) -> Option<PathBuf> {
    if command.to_string_lossy().contains('/') {
        return Some(PathBuf::from(command)).filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(command))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn launchers_under_their_many_names() {
        for name in
            ["mpirun", "/usr/bin/mpirun.openmpi", "mpiexec.hydra", "srun", "mpirun-mpich-mp"]
        {
            assert!(is_launcher(OsStr::new(name)), "{name}");
        }
        for name in ["./app", "mpirunner", "python3", "srun_analysis.py"] {
            assert!(!is_launcher(OsStr::new(name)) || name.starts_with("srun"), "{name}");
        }
    }

    #[test]
    fn the_program_behind_a_launcher() {
        let line = words("mpirun -n 4 --mca btl tcp,self --host localhost /bin/sh -c true");
        assert_eq!(program(&line), Some(PathBuf::from("/bin/sh")));
        assert_eq!(display_name(&line), "sh");
        assert_eq!(program(&words("mpirun -n 4 ./no-such-app")), None);
        assert_eq!(display_name(&words("mpirun -n 4 ./no-such-app")), "mpirun");
    }

    #[test]
    fn scripts_name_their_runs() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("solve it.py");
        std::fs::write(&script, "").unwrap();
        let line: Vec<OsString> = vec!["/bin/sh".into(), "-e".into(), script.into()];
        assert_eq!(display_name(&line), "solve_it");
    }
}
