//! The date and time of day, taken apart.

/// Now, in UTC.
pub fn utc() -> libc::tm {
    now(libc::gmtime_r)
}

/// Now, in the time zone of the user.
pub fn local() -> libc::tm {
    now(libc::localtime_r)
}

type TakeApart = unsafe extern "C" fn(*const libc::time_t, *mut libc::tm) -> *mut libc::tm;

fn now(take_apart: TakeApart) -> libc::tm {
    // SAFETY: time() and its companions write only to what they are given; tm is plain numbers.
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut tm: libc::tm = std::mem::zeroed();
        take_apart(&now, &mut tm);
        tm
    }
}
