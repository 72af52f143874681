//! The machine as files and variables say it is: this one, or one that a test has made.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapscope_data::options;

pub struct Host {
    root: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Host {
    pub fn here() -> Host {
        let variables = std::env::vars_os().map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        });
        Host { root: "/".into(), variables: variables.collect() }
    }

    #[cfg(test)]
    pub fn made(root: &std::path::Path, variables: &[(&str, &str)]) -> Host {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Host { root: root.into(), variables: variables.iter().map(own).collect() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text without blanks around it; `None` where it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Whether this process may read and write it.
    pub fn is_open_to_us(&self, path: &str) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let path = std::ffi::CString::new(self.path(path).as_os_str().as_bytes());
        // SAFETY: a path with an end.
        path.is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) } == 0)
    }

    /// Names in a directory, sorted; none where it is not there.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A variable of the environment; empty counts as not set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What Yama keeps processes of a user from in each other; 0: nothing, or there is none.
    /// Linux: Documentation/admin-guide/LSM/Yama.rst
    pub fn ptrace_scope(&self) -> i64 {
        self.number("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0)
    }

    /// The most that a rank's spool takes.
    pub fn spool_mb(&self) -> u64 {
        let option = options::find("LAPSCOPE_MAX_MB").expect("options.def has it");
        let set = self.variable(option.name).and_then(|value| options::number(option, value));
        let most = set.or_else(|| options::number(option, option.default));
        most.and_then(|mb| u64::try_from(mb).ok()).unwrap_or_default()
    }

    /// The first of them that is set, with its value.
    pub fn first_variable<'a>(&'a self, names: &[&'a str]) -> Option<(&'a str, &'a str)> {
        names.iter().find_map(|name| Some((*name, self.variable(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spools_are_as_large_as_the_recorder_makes_them() {
        let root = tempfile::tempdir().unwrap();
        let of = |variables: &[(&str, &str)]| Host::made(root.path(), variables).spool_mb();
        let default = options::find("LAPSCOPE_MAX_MB").unwrap().default;
        assert_eq!(of(&[]).to_string(), default);
        assert_eq!(of(&[("LAPSCOPE_MAX_MB", "8")]), 8);
        assert_eq!(of(&[("LAPSCOPE_MAX_MB", "1GB")]), 1024);
        assert_eq!(of(&[("LAPSCOPE_MAX_MB", "much")]).to_string(), default);
    }
}
