//! A copy of the working directory for each run of a program that writes files there.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A copy, removed with everything in it when this is dropped.
pub struct WorkingCopy(PathBuf);

impl WorkingCopy {
    /// Of the working directory, in `below`, which may lie in it and is not copied.
    ///
    /// # Errors
    /// It cannot be copied.
    pub fn of_here(below: &Path) -> anyhow::Result<WorkingCopy> {
        let here = std::env::current_dir()?;
        Self::of(&here, below)
            .with_context(|| format!("{} cannot be copied (--cd-copy)", here.display()))
    }

    fn of(directory: &Path, below: &Path) -> io::Result<WorkingCopy> {
        let copy = WorkingCopy(below.join("working-directory"));
        let left_out = fs::canonicalize(below)?;
        copy_all(&fs::canonicalize(directory)?, &copy.0, &left_out)?;
        Ok(copy)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkingCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // what is left is in the directory of the runs
    }
}

/// Files with their permissions, directories, and links as they are; nothing else.
fn copy_all(from: &Path, to: &Path, left_out: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_symlink() {
            symlink(fs::read_link(&path)?, &target)?;
        } else if kind.is_dir() && path != left_out {
            copy_all(&path, &target, left_out)?;
        } else if kind.is_file() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_a_copy_is_gone_with_it() {
        let here = tempfile::tempdir().unwrap();
        let path = |name: &str| here.path().join(name);
        fs::create_dir_all(path("runs/1-plain")).unwrap();
        fs::create_dir(path("input")).unwrap();
        fs::write(path("input/mesh"), "mesh").unwrap();
        symlink("input/mesh", path("link")).unwrap();
        let copy = WorkingCopy::of(here.path(), &path("runs")).unwrap();
        assert_eq!(fs::read_to_string(copy.path().join("link")).unwrap(), "mesh");
        assert!(!copy.path().join("runs").exists());
        fs::write(copy.path().join("input/mesh"), "overwritten").unwrap();
        drop(copy);
        assert_eq!(fs::read_to_string(path("input/mesh")).unwrap(), "mesh");
        assert_eq!(fs::read_dir(path("runs")).unwrap().count(), 1);
    }
}
