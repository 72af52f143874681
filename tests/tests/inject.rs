//! Programs with tests injected, and words of their buffers watched, as often as can be: nothing of what they do changes.
//!
//! `make check` runs a share of all programs, MPIs and modes, which takes minutes; what is ignored there runs all of them,
//! and `make torture` those of `tests/apps/torture` over and over.

mod known;
mod torture;
