//! Questions that other programs on a busy machine can spoil.

use std::panic::{self, AssertUnwindSafe};

use crate::others::Others;
use crate::turn;

const TRIALS: usize = 3;

/// Measures and asserts, again when it fails, up to three times: what is wrong with lapscope is wrong every time, and who
/// has the processors for a while is not. It asks again alone: no test launches anything meanwhile. Says when it does so. Where
/// programs that are no tests had processors then, nothing was measured: it says that, too, and does not ask once more.
///
/// # Panics
/// As the last trial does.
pub fn up_to_three(what: &str, ask: impl Fn()) {
    trials(what, ask, Others::processors);
}

/// `had`: the processors that other programs had.
fn trials(what: &str, ask: impl Fn(), had: impl Fn(&Others) -> f64) {
    /// Processors that others have on a machine on which nothing is measured.
    const BUSY: f64 = 0.3;
    let mut alone = None;
    let mut others = Others::begin();
    for trial in 1..=TRIALS {
        let Err(cause) = panic::catch_unwind(AssertUnwindSafe(&ask)) else { return };
        let had = alone.as_ref().map_or(0.0, |_| had(&others));
        if had >= BUSY {
            crate::say!("NOT TESTED: {what}: other programs had {had:.1} processors meanwhile");
            return;
        }
        if trial == TRIALS {
            panic::resume_unwind(cause);
        }
        let words = cause.downcast_ref::<String>().map(String::as_str);
        let words = words.or(cause.downcast_ref::<&str>().copied()).unwrap_or_default();
        let first = words.lines().next().unwrap_or_default();
        crate::say!("ASKED AGAIN ({trial} of {}): {what}, alone: {first}", TRIALS - 1);
        alone = alone.or_else(|| Some(turn::alone()));
        others = Others::begin();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Whether it fails, and how often it was asked, where other programs have so many processors.
    fn asked_in_vain(others: f64) -> (bool, usize) {
        let count = Cell::new(0);
        let ask = || {
            count.set(count.get() + 1);
            drop(turn::of_launches()); // a launch: it does not wait for the test that is alone
            panic!("wrong");
        };
        let failed =
            panic::catch_unwind(AssertUnwindSafe(|| trials("a made-up question", ask, |_| others)));
        (failed.is_err(), count.get())
    }

    #[test]
    fn what_fails_every_time_fails_unless_others_have_the_processors() {
        assert_eq!(asked_in_vain(0.0), (true, TRIALS));
        assert_eq!(asked_in_vain(1.0), (false, 2));
    }

    #[test]
    fn what_holds_is_asked_once() {
        let count = Cell::new(0);
        up_to_three("a test", || count.set(count.get() + 1));
        assert_eq!(count.get(), 1);
    }
}
