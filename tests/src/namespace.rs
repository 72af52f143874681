//! File systems and nodes of a test's own, in private name spaces: they vanish with the command that they were made for.

use std::ffi::OsString;
use std::fs;
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
        crate::say!("SKIPPED: {what}: `unshare -m` is not permitted here");
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

/// Takes a name and another boot, keeps shared memory for itself, and runs the rest of the line.
const NODE: &str = r#"
set -e
name=$1 files=$2
shift 2
hostname "$name"
mount --bind "$files/$name.boot_id" /proc/sys/kernel/random/boot_id
mount --bind "$files/hosts" /etc/hosts
mount -t tmpfs -o mode=1777 lapscope-test /dev/shm
exec "$@"
"#;

/// Nodes on this machine that share its file systems, but not their names, boots and shared memory.
pub struct Nodes<'a> {
    files: &'a Path,
}

impl<'a> Nodes<'a> {
    /// With these names. What describes them is written into `files`. `None`, said loudly, where that is not permitted.
    ///
    /// # Panics
    /// When `files` cannot be written into.
    pub fn new(files: &'a Path, names: &[&str]) -> Option<Nodes<'a>> {
        for (number, name) in names.iter().enumerate() {
            let boot = format!("{:08x}-0000-4000-8000-000000000000\n", number + 1);
            fs::write(files.join(format!("{name}.boot_id")), boot).expect("a boot id");
        }
        let hosts = format!("127.0.0.1 localhost {}\n", names.join(" "));
        fs::write(files.join("hosts"), hosts).expect("a table of hosts");
        let nodes = Nodes { files };
        let line = nodes.with_own_processes(names[0]);
        let tried =
            child::command(&line[0]).args(&line[1..]).arg("true").stderr(Stdio::null()).status();
        let is_permitted = tried.is_ok_and(|status| status.success());
        if !is_permitted {
            crate::say!("SKIPPED: nodes of our own: name spaces are not permitted here");
        }
        is_permitted.then_some(nodes)
    }

    /// The front of a command line that runs on the node, whose process ids mean nothing elsewhere.
    pub fn with_own_processes(&self, name: &str) -> Vec<OsString> {
        self.line(&["unshare", "-m", "-u", "-p", "-f", "--mount-proc"], name)
    }

    /// As [`Nodes::with_own_processes`], where processes can be seen from elsewhere: so that what runs at several times on one
    /// node finds its own.
    pub fn with_common_processes(&self, name: &str) -> Vec<OsString> {
        self.line(&["unshare", "-m", "-u"], name)
    }

    fn line(&self, unshare: &[&str], name: &str) -> Vec<OsString> {
        let mut line: Vec<OsString> = unshare.iter().map(OsString::from).collect();
        line.extend(["sh", "-c", NODE, "sh", name].map(OsString::from));
        line.push(self.files.into());
        line
    }
}
