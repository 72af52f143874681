//! Names of users, as this machine knows them.

use std::ffi::{CStr, CString};

/// What one look-up may need at most.
const MOST_BYTES: usize = 1 << 16;

/// The name of the user with a number; `None`: not known here.
pub fn user_name(number: i64) -> Option<String> {
    let number = libc::uid_t::try_from(number).ok()?;
    look_up(|entry, buffer, result| {
        // SAFETY: all are as the function wants them, and the buffer has the length that is said.
        unsafe { libc::getpwuid_r(number, entry, buffer.as_mut_ptr().cast(), buffer.len(), result) }
    })
    .map(|(_, name)| name)
}

/// The number of the user with a name, or that is the number itself.
pub fn user_number(name: &str) -> Option<i64> {
    if let Ok(number) = name.parse::<libc::uid_t>() {
        return Some(number.into());
    }
    let name = CString::new(name).ok()?;
    look_up(|entry, buffer, result| {
        // SAFETY: likewise.
        unsafe {
            libc::getpwnam_r(name.as_ptr(), entry, buffer.as_mut_ptr().cast(), buffer.len(), result)
        }
    })
    .map(|(number, _)| number)
}

fn look_up(
    ask: impl Fn(&mut libc::passwd, &mut [u8], &mut *mut libc::passwd) -> i32,
) -> Option<(i64, String)> {
    let mut buffer = vec![0u8; MOST_BYTES];
    let mut result = std::ptr::null_mut();
    // SAFETY: numbers and pointers, for which zeros are values.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    if ask(&mut entry, &mut buffer, &mut result) != 0 || result.is_null() {
        return None;
    }
    // SAFETY: the name is in the buffer, and ends with a zero.
    let name = unsafe { CStr::from_ptr(entry.pw_name) }.to_string_lossy().into_owned();
    Some((entry.pw_uid.into(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_zero() {
        assert_eq!((user_name(0).as_deref(), user_number("root")), (Some("root"), Some(0)));
        assert_eq!((user_number("4711"), user_number("no such user")), (Some(4711), None));
        assert_eq!((user_name(-1), user_name(4_000_000_000)), (None, None));
    }
}
