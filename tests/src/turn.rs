//! Whose turn it is: how many launches, and compilers, run at once, over all test programs of this tree.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::paths;

/// How many launches may run at once: one, since the machine may have no more cores than one job has ranks, and tests that
/// measure must be alone. `tests/check.sh` allows more where nothing is measured: launchers mostly wait.
const LAUNCHES: &str = "LAPSCOPE_TEST_LAUNCHES";

/// A turn, until it goes out of scope. Locks of files, so that test programs that run at the same time take turns too.
#[must_use]
pub struct Turn(#[allow(dead_code)] Option<File>);

fn lock_file(name: &str) -> (PathBuf, File) {
    let directory = paths::root().join("build/tests");
    fs::create_dir_all(&directory).expect("a directory for tests");
    let path = directory.join(name);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (path, file)
}

/// Whether the lock was free.
fn lock(file: &File, wait: bool) -> bool {
    let how = if wait { libc::LOCK_EX } else { libc::LOCK_EX | libc::LOCK_NB };
    // SAFETY: a descriptor that is open as long as `file` is borrowed
    unsafe { libc::flock(file.as_raw_fd(), how) == 0 }
}

/// The places that launches take turns on.
fn places() -> Vec<File> {
    let count = std::env::var(LAUNCHES).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    (0..count.max(1)).map(|place: u32| lock_file(&format!("launch-{place}.lock")).1).collect()
}

thread_local! {
    /// Whether this thread holds all places.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Waits until one more launch may run; a thread that is [`alone`] has its turn.
///
/// # Panics
/// When the locks cannot be made.
pub fn of_launches() -> Turn {
    if IS_ALONE.get() {
        return Turn(None);
    }
    let mut places = places();
    if places.len() == 1 {
        assert!(lock(&places[0], true), "a lock that can be waited for");
        return Turn(Some(places.remove(0)));
    }
    loop {
        if let Some(free) = places.iter().position(|place| lock(place, false)) {
            return Turn(Some(places.swap_remove(free)));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// All places, until it goes out of scope.
#[must_use]
pub struct Alone(#[allow(dead_code)] Vec<File>);

impl Drop for Alone {
    fn drop(&mut self) {
        IS_ALONE.set(false);
    }
}

/// Waits until no test launches anything but those that this thread runs from now on. Places are taken in their order, so that
/// two that want to be alone do not wait for each other. Not to be asked by who holds a turn.
///
/// # Panics
/// When the locks cannot be made, or the thread is alone already.
pub fn alone() -> Alone {
    assert!(!IS_ALONE.replace(true), "this thread is alone already");
    let places = places();
    for place in &places {
        assert!(lock(place, true), "a lock that can be waited for");
    }
    Alone(places)
}

/// Waits until nobody else builds the programs of one MPI: tests that need the same program must not build it twice at once.
///
/// # Panics
/// As [`of_launches`].
pub fn of_compilers(mpi: &str) -> Turn {
    let (_, file) = lock_file(&format!("compile-{mpi}.lock"));
    assert!(lock(&file, true), "a lock that can be waited for");
    Turn(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a launch of another test program would get a turn now.
    fn is_free() -> bool {
        places().iter().any(|place| lock(place, false))
    }

    #[test]
    fn who_is_alone_has_every_turn() {
        let alone = alone();
        assert!(!is_free());
        drop(of_launches()); // or it would wait for itself
        assert!(!is_free(), "what it launches does not give the places away");
        drop(alone);
        let _turn = of_launches(); // once more as everybody
        assert!(!IS_ALONE.get());
    }
}
