//! Files of code in a process.

use std::ops::Range;
use std::sync::Arc;

use super::code::CodeFile;

/// A file where it is mapped.
pub struct Loaded {
    pub(super) addresses: Range<u64>,
    pub(super) bias: u64,
    pub file: Arc<CodeFile>,
    pub path: String,
}
