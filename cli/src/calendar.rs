//! The date and time of day, taken apart.

/// Now, in UTC.
pub fn utc() -> libc::tm {
    now(libc::gmtime_r)
}

/// Now, in the time zone of the user.
pub fn local() -> libc::tm {
    now(libc::localtime_r)
}

/// Now, as "2026-01-31T23:59:59Z".
pub fn utc_text() -> String {
    let tm = utc();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec
    )
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
