//! What says in a run directory where spools lie: `rank-N.spool-at`, `node-HOST.spool-at`.

use std::path::{Path, PathBuf};

use crate::files::read_short_text;

/// Bytes of a pointer: a host and a path.
const LONGEST: u64 = 8192;

/// Where spools lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    pub host: String,
    /// The spool of a rank, or the directory of those of a node.
    pub place: PathBuf,
}

impl Pointer {
    /// `None`: it cannot be read, or is no pointer.
    pub fn read(path: &Path) -> Option<Pointer> {
        let text = read_short_text(path, LONGEST).ok()?;
        let (host, place) = text.trim_end_matches('\n').split_once('\t')?;
        Some(Pointer { host: host.to_owned(), place: place.into() })
    }
}
