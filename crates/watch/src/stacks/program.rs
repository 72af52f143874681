//! What a process runs, and by which names people call that.

use std::fs;
use std::path::{Path, PathBuf};

use super::stop;
use lapscope_data::symbols::base_name;

/// The program of a process.
pub struct Program<'a> {
    executable: Option<PathBuf>,
    /// In which its words are looked up.
    directory: PathBuf,
    command: &'a [String],
}

impl<'a> Program<'a> {
    pub fn of(pid: i64, command: &'a [String]) -> Program<'a> {
        let living = stop::living(pid);
        Program {
            executable: Program::executable(living),
            directory: fs::read_link(format!("/proc/{living}/cwd")).unwrap_or_default(),
            command,
        }
    }

    /// Its file, also if that has been built anew since.
    pub fn executable(pid: i64) -> Option<PathBuf> {
        let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let text =
            file.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
        Some(text.unwrap_or(file))
    }

    /// Whether it is called so: by its file, by the name that it was started by, or by any word of its command line, as the script
    /// that an interpreter runs, or the program of a wrapper. What has a slash is a path.
    pub fn is(&self, name: &str) -> bool {
        if name.contains('/') {
            return self.is_file(name);
        }
        let file = self.executable.as_deref().and_then(Path::file_name);
        file.is_some_and(|file| file == name)
            || self.command.iter().any(|word| base_name(word) == name)
    }

    fn is_file(&self, path: &str) -> bool {
        let Ok(wanted) = fs::canonicalize(path) else {
            return self.command.iter().any(|word| word == path); // it may be known on other hosts alone
        };
        let is_it = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path == wanted);
        self.executable.as_ref().is_some_and(|it| *it == wanted)
            || self.command.iter().any(|word| is_it(&self.directory.join(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_all_their_names() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for file in ["heat-2.1", "app.py", "other"] {
            fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink(at("heat-2.1"), at("heat")).unwrap();
        let started = |line: &str, executable: PathBuf, name: &str| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (directory, executable) = (at(""), Some(executable));
            Program { executable, directory, command: &command }.is(name)
        };
        let path = |name: &str| at(name).to_str().unwrap().to_owned();
        for name in ["heat", "heat-2.1", &path("heat"), &path("heat-2.1")] {
            assert!(started("./heat -n 2", at("heat-2.1"), name), "{name}");
            assert!(started("heat -n 2", at("heat-2.1"), name), "{name}");
        }
        for name in ["app.py", "python3", &path("app.py")] {
            assert!(started("python3 -u app.py", "/usr/bin/python3".into(), name), "{name}");
        }
        for name in ["other", &path("other"), "eat", "./elsewhere"] {
            assert!(!started("./heat -n 2", at("heat-2.1"), name), "{name}");
        }
    }
}
