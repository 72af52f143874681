//! The date and time of day, as text.

use std::ffi::{CStr, CString};
use std::time::{SystemTime, UNIX_EPOCH};

/// Now in UTC, as "2026-01-31T23:59:59Z".
pub fn utc_text() -> String {
    now(libc::gmtime_r, c"%Y-%m-%dT%H:%M:%SZ")
}

/// A moment in UTC, seconds since 1970, as "2026-01-31 23:59:59".
pub fn utc_of(unix_s: i64) -> String {
    at(unix_s as libc::time_t, libc::gmtime_r, c"%Y-%m-%d %H:%M:%S")
}

/// Now in the time zone of the user to the millisecond, as "20260131-235959.123": for names of files.
pub fn local_stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = at(now.as_secs() as libc::time_t, libc::localtime_r, c"%Y%m%d-%H%M%S");
    format!("{seconds}.{:03}", now.subsec_millis())
}

/// Seconds since 1970.
pub fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}

/// A date, or a date and a time as "2026-01-31T12:00", in the time zone of the user; `None`: it is neither.
pub fn local_moment(text: &str) -> Option<i64> {
    let text = CString::new(text).ok()?;
    [c"%Y-%m-%dT%H:%M", c"%Y-%m-%d"].into_iter().find_map(|pattern| {
        // SAFETY: tm is plain numbers, and of the text only what is before its end is read.
        unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            let end = libc::strptime(text.as_ptr(), pattern.as_ptr(), &mut tm);
            let is_whole = !end.is_null() && *end == 0;
            tm.tm_isdst = -1; // not known
            is_whole.then(|| libc::mktime(&mut tm))
        }
    })
}

type TakeApart = unsafe extern "C" fn(*const libc::time_t, *mut libc::tm) -> *mut libc::tm;

fn now(take_apart: TakeApart, pattern: &CStr) -> String {
    // SAFETY: nothing is written.
    at(unsafe { libc::time(std::ptr::null_mut()) }, take_apart, pattern)
}

fn at(moment: libc::time_t, take_apart: TakeApart, pattern: &CStr) -> String {
    let mut text = [0u8; 32];
    // SAFETY: all write only to what they are given, strftime at most as much as fits; tm is plain numbers.
    let length = unsafe {
        let mut tm: libc::tm = std::mem::zeroed();
        take_apart(&moment, &mut tm);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), pattern.as_ptr(), &tm)
    };
    String::from_utf8_lossy(&text[..length]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with every digit as 9.
    fn shape(text: &str) -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect()
    }

    #[test]
    fn moments_are_read_as_they_are_written() {
        let begin = local_moment("2026-01-31").expect("a date");
        assert_eq!(local_moment("2026-01-31T12:30"), Some(begin + 12 * 3600 + 1800));
        assert_eq!((local_moment("2026-01-31x"), local_moment("yesterday")), (None, None));
    }

    #[test]
    fn moments_as_text() {
        assert_eq!(shape(&utc_text()), "9999-99-99T99:99:99Z");
        assert_eq!(shape(&local_stamp()), "99999999-999999.999");
    }
}
