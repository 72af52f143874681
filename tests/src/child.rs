//! The environment of every child that a test starts: nothing of the user who runs the tests but where programs and
//! libraries are. Tests of the command line include this file, `cli/tests/fixture/child.rs`.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs, libraries and temporary files are on this machine: all that is the user's.
const KEPT: &[&str] = &["PATH", "LD_LIBRARY_PATH", "TMPDIR"];

/// The home directory of children: nothing of a user's, above all no calibration. `XDG_DATA_HOME` and its like are not
/// set, so what they name lies in it too.
pub fn home() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies in the tree");
    root.join("build/tests/home")
}

/// A command in an environment of its own: none of the user's settings of lapscope, MPI, its transports, threads or the
/// terminal. A test that wants a variable sets it; one that runs with a calibration names the directory in
/// `LAPSCOPE_CALIBRATION_DIR`.
///
/// # Panics
/// When the home directory cannot be made, or a test has left a calibration in it for all others.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let home = home();
    std::fs::create_dir_all(&home).unwrap_or_else(|error| panic!("{}: {error}", home.display()));
    let left = home.join(".local/share/lapscope");
    assert!(
        !left.exists(),
        "a test wrote {}: it has to name a directory of its own",
        left.display()
    );
    #[allow(clippy::disallowed_methods)] // the one place
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8");
    command.envs(KEPT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}
