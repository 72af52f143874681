//! The directory that an export makes: it appears whole, under its name, or not at all.

use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use lapscope_data::files::cannot_write;
use tempfile::TempDir;

/// A directory beside the one that is wanted, gone again unless [`Unfinished::publish`] gives it its name.
#[derive(Debug)]
pub struct Unfinished {
    directory: TempDir,
    wanted: PathBuf,
}

impl Unfinished {
    /// # Errors
    /// There is something of that name already, or nothing can be made beside it.
    pub fn beside(wanted: &Path) -> Result<Unfinished> {
        refuse_existing(wanted)?;
        let parent = match wanted.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let Some(name) = wanted.file_name() else {
            bail!("{}: name a directory that can be made", wanted.display());
        };
        let name: String = name.to_string_lossy().chars().take(LONGEST_NAME).collect();
        let prefix = format!(".{name}.unfinished-");
        let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
        let directory = directory.map_err(|error| cannot_write(wanted, error))?;
        Ok(Unfinished { directory, wanted: wanted.to_owned() })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// # Errors
    /// Something of the name has come up meanwhile, or it cannot be renamed.
    pub fn publish(self) -> Result<()> {
        refuse_existing(&self.wanted)?;
        let Unfinished { directory, wanted } = self;
        std::fs::rename(directory.path(), &wanted).with_context(|| wanted.display().to_string())?;
        let _ = directory.keep(); // nothing to be removed is left under its old name
        Ok(())
    }
}

/// Most systems take file names of 255 bytes; what is put before and behind needs some of them.
const LONGEST_NAME: usize = 50;

/// # Errors
/// There is something of that name.
pub fn refuse_existing(wanted: &Path) -> Result<()> {
    if wanted.symlink_metadata().is_ok() {
        bail!("{} exists already; name another directory, or remove it first", wanted.display());
    }
    Ok(())
}

/// Longer names of hosts are cut: with `node=` in front they have to fit into a file name.
const LONGEST_HOST: usize = 200;

/// The directory of a node's rows, as Hive names partitions: everything but letters, digits, `.`, `-` and `_` becomes `%XX`,
/// which readers turn back. `number` keeps hosts apart whose names had to be cut.
pub fn partition(host: &str, number: usize) -> String {
    if host.is_empty() {
        return "node=__HIVE_DEFAULT_PARTITION__".to_owned();
    }
    let mut escaped = String::new();
    for byte in host.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        match is_plain {
            true => escaped.push(byte.into()),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
        if escaped.len() >= LONGEST_HOST {
            escaped.push_str(&format!("~{number}"));
            break;
        }
    }
    format!("node={escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_names_of_directories() {
        assert_eq!(partition("node-17.cluster_a", 0), "node=node-17.cluster_a");
        assert_eq!(partition("../a b=c%", 0), "node=..%2Fa%20b%3Dc%25");
        assert_eq!(partition("é", 0), "node=%C3%A9");
        assert_eq!(partition("", 0), "node=__HIVE_DEFAULT_PARTITION__");
        let long = |number| partition(&"x".repeat(5_000), number);
        assert!(long(1).len() < 255 && long(1) != long(2), "{}", long(1));
    }

    #[test]
    fn what_is_not_published_is_gone() {
        let parent = tempfile::tempdir().unwrap();
        let wanted = parent.path().join("out");
        let entries = || std::fs::read_dir(parent.path()).unwrap().count();
        drop(Unfinished::beside(&wanted).unwrap());
        assert_eq!(entries(), 0);
        let unfinished = Unfinished::beside(&wanted).unwrap();
        std::fs::write(unfinished.path().join("file"), "x").unwrap();
        unfinished.publish().unwrap();
        assert_eq!((entries(), wanted.join("file").exists()), (1, true));
        let error = Unfinished::beside(&wanted).unwrap_err().to_string();
        assert!(error.contains("exists already"), "{error}");
    }
}
