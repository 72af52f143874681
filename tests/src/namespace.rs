//! File systems of a test's own, in a private mount namespace: they vanish with the command that they were made for.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use crate::child;

/// Mounts, runs the rest of the line, copies what is left in the file system for the test to see.
const SCRIPT: &str = r#"
set -e
options=$1 at=$2 copy=$3
shift 3
mount -t tmpfs -o "$options" lapscope-test "$at"
set +e
"$@"
code=$?
LD_PRELOAD= cp -r "$at/." "$copy"
exit "$code"
"#;

/// Whether this user may make mount namespaces here; says loudly when not.
pub fn permitted(what: &str) -> bool {
    let allowed = child::command("unshare")
        .args(["-m", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !allowed {
        eprintln!("SKIPPED: {what}: `unshare -m` is not permitted here");
    }
    allowed
}

/// The front of a command line that runs with a tmpfs of these mount options at `at`. Afterwards its contents are in the
/// directory `copy`.
pub fn with_tmpfs(options: &str, at: &Path, copy: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> =
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", options].map(OsString::from).to_vec();
    line.extend([at.as_os_str().to_owned(), copy.as_os_str().to_owned()]);
    line
}
