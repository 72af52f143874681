//! The processor's watchpoints, by which buffers are watched: whether this machine lets programs have them.

use std::sync::OnceLock;

use crate::{build, child};

/// How many a thread can have at once; 0 where they are refused.
///
/// # Panics
/// When the program that tries it cannot be built or run.
pub fn at_once() -> u32 {
    static COUNT: OnceLock<u32> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let output = child::command(build::tool("watchpoints")).output().expect("a small program");
        let printed = String::from_utf8_lossy(&output.stdout);
        let count = printed.trim().parse().unwrap_or_else(|_| panic!("no number: {printed}"));
        if count == 0 {
            crate::say!("NOT TESTED: what watched buffers show: watchpoints are refused here");
        }
        count
    })
}

/// Whether there are any. Says so, once, where not.
pub fn are_there() -> bool {
    at_once() > 0
}
