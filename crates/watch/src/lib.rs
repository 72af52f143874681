//! A job as it stands: what a running one did since it was looked at last, who waits for whom in one that hangs, and what had
//! not ended when the recording did.

pub mod hang;
pub mod live;
pub mod pending;
pub mod stacks;
