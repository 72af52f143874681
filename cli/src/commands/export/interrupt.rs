//! Signals that ask for an end, remembered, so that what was begun can be taken away first.

use std::sync::atomic::{AtomicU8, Ordering};

use libc::c_int;

/// 0: none so far.
static SIGNAL: AtomicU8 = AtomicU8::new(0);

const ENDING: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

extern "C" fn remember(signal: c_int) {
    SIGNAL.store(signal as u8, Ordering::Relaxed);
}

/// From here on the first such signal is remembered; the second ends the process at once, as ever.
pub struct Interrupts(());

impl Interrupts {
    pub fn watch() -> Interrupts {
        for signal in ENDING {
            // SAFETY: the handler stores one atomic, which is safe in any signal handler.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(signal, std::ptr::null(), &mut action) != 0
                    || action.sa_sigaction == libc::SIG_IGN
                {
                    continue; // as under nohup
                }
                action.sa_sigaction = remember as extern "C" fn(c_int) as usize;
                action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
        Interrupts(())
    }

    /// The signal that came.
    pub fn signal(&self) -> Option<u8> {
        let signal = SIGNAL.load(Ordering::Relaxed);
        (signal != 0).then_some(signal)
    }
}
