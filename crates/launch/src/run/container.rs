//! A launch line with a container engine in it. What the engine starts sees neither our environment nor our files, so the
//! engine is told to take both along.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What an engine's options are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineKind {
    /// `--volume A:A:ro`, `--env NAME=VALUE`
    Docker,
    /// `--bind A:A:ro`, `--env NAME=VALUE`, where commas separate
    Apptainer,
}

/// The names of an engine, and the words that start a container by it.
const ENGINES: [(&str, EngineKind, &[&str]); 5] = [
    ("podman", EngineKind::Docker, &["run"]),
    ("docker", EngineKind::Docker, &["run"]),
    ("nerdctl", EngineKind::Docker, &["run"]),
    ("apptainer", EngineKind::Apptainer, &["exec", "run"]),
    ("singularity", EngineKind::Apptainer, &["exec", "run"]),
];

/// Where in a launch line an engine starts a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerEngine {
    kind: EngineKind,
    /// Behind this word its options for the container begin.
    verb: usize,
}

/// The engine that `line` starts a container with, be it behind a launcher.
pub fn engine(line: &[OsString]) -> Option<ContainerEngine> {
    line.iter().enumerate().find_map(|(at, word)| {
        let name = Path::new(word).file_name()?;
        let (_, kind, verbs) = ENGINES.into_iter().find(|(known, ..)| name == OsStr::new(known))?;
        // its own options and `container` may stand between
        let verb = (at + 1..line.len()).find(|&i| verbs.iter().any(|verb| line[i] == *verb))?;
        Some(ContainerEngine { kind, verb })
    })
}

/// What a container needs of the host.
#[derive(Debug, Default)]
pub struct Needs {
    pub variables: Vec<(OsString, OsString)>,
    /// Directories that stay where they are; with `true` it may write there.
    pub directories: Vec<(PathBuf, bool)>,
}

impl ContainerEngine {
    /// `line` so that the container has what it needs, at the same paths as here. What the user says of the same follows
    /// behind it, and wins.
    pub fn provided(&self, line: &[OsString], needs: &Needs) -> Vec<OsString> {
        let (ours, theirs) = line.split_at(self.verb + 1);
        let mut provided = ours.to_vec();
        for (directory, writable) in &needs.directories {
            let mut volume = directory.as_os_str().to_owned();
            volume.push(":");
            volume.push(directory);
            volume.push(if *writable { "" } else { ":ro" });
            provided
                .push(if self.kind == EngineKind::Docker { "--volume" } else { "--bind" }.into());
            provided.push(volume);
        }
        for (name, value) in &needs.variables {
            // Apptainer passes its own environment on, but for LD_PRELOAD: a list of counters may stay there
            if self.kind == EngineKind::Apptainer && value.to_string_lossy().contains(',') {
                continue;
            }
            let mut assignment = name.clone();
            assignment.push("=");
            assignment.push(value);
            provided.extend(["--env".into(), assignment]);
        }
        provided.extend_from_slice(theirs);
        provided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn provided(line: &str) -> Option<String> {
        let line = words(line);
        let needs = Needs {
            variables: vec![
                ("LD_PRELOAD".into(), "/l/l.so".into()),
                ("LAPSCOPE_COUNTERS".into(), "A,B".into()),
            ],
            directories: vec![("/l".into(), false), ("/r".into(), true)],
        };
        let provided = engine(&line)?.provided(&line, &needs);
        Some(provided.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn engines_get_directories_and_variables_in_front_of_what_the_user_says() {
        let docker =
            "--volume /l:/l:ro --volume /r:/r --env LD_PRELOAD=/l/l.so --env LAPSCOPE_COUNTERS=A,B";
        for (front, behind) in [
            ("podman run", "-e LD_PRELOAD= image mpirun -n 2 ./app run"),
            ("sudo docker --debug container run", "image ./app"),
            ("mpirun -n 2 /usr/bin/podman --root /x run", "image ./app"),
        ] {
            let expected = format!("{front} {docker} {behind}");
            assert_eq!(provided(&format!("{front} {behind}")), Some(expected));
        }
        let expected =
            "srun apptainer exec --bind /l:/l:ro --bind /r:/r --env LD_PRELOAD=/l/l.so image ./app";
        assert_eq!(provided("srun apptainer exec image ./app").as_deref(), Some(expected));
    }

    #[test]
    fn what_starts_no_container_is_left_alone() {
        for line in ["mpirun -n 2 ./app run", "podman exec c ./app", "./podman-test run", "docker"]
        {
            assert_eq!(provided(line), None, "{line}");
        }
    }
}
