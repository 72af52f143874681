//! The file that an export makes: it appears whole, under its name, or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lapscope_data::files::cannot_write;
use tempfile::{NamedTempFile, TempDir};

/// A file, or a directory, beside the one that is wanted: gone again unless it is published.
#[derive(Debug)]
pub struct Unfinished<T> {
    made: T,
    wanted: PathBuf,
}

fn parent(wanted: &Path) -> &Path {
    match wanted.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

impl Unfinished<NamedTempFile> {
    /// # Errors
    /// Nothing can be made beside it.
    pub fn file(wanted: &Path) -> Result<Unfinished<NamedTempFile>> {
        let parent = parent(wanted);
        let made = tempfile::Builder::new().prefix(".lapscope-unfinished-").tempfile_in(parent);
        let made = made.map_err(|error| cannot_write(wanted, error))?;
        Ok(Unfinished { made, wanted: wanted.to_owned() })
    }

    /// To write into.
    ///
    /// # Errors
    /// The system has no more handles.
    pub fn writer(&self) -> Result<File> {
        Ok(self.made.as_file().try_clone()?)
    }

    /// Gives it its name, in place of a file that has it; readable for whom other new files are.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn publish(self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let name = || self.wanted.display().to_string();
        let mode = std::fs::Permissions::from_mode(0o666 & !umask());
        self.made.as_file().set_permissions(mode).with_context(name)?;
        self.made.persist(&self.wanted).map_err(|error| error.error).with_context(name)?;
        Ok(())
    }
}

impl Unfinished<TempDir> {
    /// # Errors
    /// Nothing can be made beside it.
    pub fn directory(wanted: &Path) -> Result<Unfinished<TempDir>> {
        let parent = parent(wanted);
        let made = tempfile::Builder::new().prefix(".lapscope-unfinished-").tempdir_in(parent);
        let made = made.map_err(|error| cannot_write(wanted, error))?;
        Ok(Unfinished { made, wanted: wanted.to_owned() })
    }

    /// The place of something in it.
    pub fn inside(&self, name: &str) -> PathBuf {
        self.made.path().join(name)
    }

    /// Gives what is `inside` of it the wanted name.
    ///
    /// # Errors
    /// Something of the name has come up meanwhile, or it cannot be renamed.
    pub fn publish(self, inside: &str) -> Result<()> {
        let name = || self.wanted.display().to_string();
        std::fs::rename(self.inside(inside), &self.wanted).with_context(name)
    }
}

/// What new files are not readable for.
fn umask() -> u32 {
    // SAFETY: it takes and gives numbers; it is set back at once, and nothing else makes files meanwhile.
    unsafe {
        let mask = libc::umask(0o077);
        libc::umask(mask);
        mask
    }
}
