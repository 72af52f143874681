//! Questions that other programs on a busy machine can spoil.

use std::panic::{self, AssertUnwindSafe};

use crate::turn;

const TRIALS: usize = 3;

/// Measures and asserts, again when it fails, up to three times: what is wrong with lapscope is wrong every time, and who
/// has the processors for a while is not. It asks again alone: no test launches anything meanwhile. Says when it does so.
///
/// # Panics
/// As the last trial does.
pub fn up_to_three(what: &str, ask: impl Fn()) {
    let mut alone = None;
    for trial in 1..TRIALS {
        let Err(cause) = panic::catch_unwind(AssertUnwindSafe(&ask)) else { return };
        let words = cause.downcast_ref::<String>().map(String::as_str);
        let words = words.or(cause.downcast_ref::<&str>().copied()).unwrap_or_default();
        let first = words.lines().next().unwrap_or_default();
        crate::say!("ASKED AGAIN ({trial} of {}): {what}, alone: {first}", TRIALS - 1);
        alone.get_or_insert_with(turn::alone);
    }
    ask();
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_fails_every_time_fails() {
        let count = Cell::new(0);
        let failed = panic::catch_unwind(AssertUnwindSafe(|| {
            up_to_three("a test", || {
                count.set(count.get() + 1);
                drop(turn::of_launches()); // a launch: it does not wait for the test that is alone
                panic!("wrong");
            });
        }));
        assert!(failed.is_err());
        assert_eq!(count.get(), TRIALS);
    }

    #[test]
    fn what_holds_is_asked_once() {
        let count = Cell::new(0);
        up_to_three("a test", || count.set(count.get() + 1));
        assert_eq!(count.get(), 1);
    }
}
