//! What may be a secret is not shown: `interposer/recorder/base/secrets.c`, by which the recorder withholds it already. A file
//! that somebody changed, or made by other means, may still have it.

use std::ffi::{c_char, CString};

extern "C" {
    fn secrets_hide(
        words: *const c_char,
        bytes: usize,
        separator: c_char,
        out: *mut c_char,
        out_bytes: usize,
    ) -> usize;
    fn secrets_hide_value(
        name: *const c_char,
        value: *const c_char,
        out: *mut c_char,
        out_bytes: usize,
    ) -> usize;
}

/// Room for what is withheld, which stands where shorter things may have stood: less than so many times the length.
const GROWTH: usize = 12;

/// A command line, words separated by blanks, without what looks like a secret in it.
pub fn hide_in_command(command: &str) -> String {
    let mut out = vec![0u8; command.len() * GROWTH + 64];
    // SAFETY: `out` is as large as the callee is told, and so is the text.
    let length = unsafe {
        secrets_hide(
            command.as_ptr().cast(),
            command.len(),
            b' ' as c_char,
            out.as_mut_ptr().cast(),
            out.len(),
        )
    };
    out.truncate(length);
    String::from_utf8_lossy(&out).into_owned()
}

/// The value of an environment variable, unless it looks like a secret.
pub fn hide_in_value(name: &str, value: &str) -> String {
    let c_text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let (name, text) = (c_text(name), c_text(value));
    let mut out = vec![0u8; value.len() * GROWTH + 64];
    // SAFETY: both texts end with a zero; `out` is as large as the callee is told.
    let length = unsafe {
        secrets_hide_value(name.as_ptr(), text.as_ptr(), out.as_mut_ptr().cast(), out.len())
    };
    out.truncate(length);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_withheld_and_nothing_else() {
        assert_eq!(hide_in_command("./app --token abc x=1"), "./app --token (withheld) x=1");
        assert_eq!(hide_in_command(""), "");
        assert_eq!(hide_in_value("FI_AUTH_KEY", "abc"), "(withheld)");
        assert_eq!(hide_in_value("UCX_TLS", "tcp,ä\0x"), "tcp,ä x");
        let many = "://@".repeat(1000);
        assert_eq!(hide_in_value("X", &many).matches("(withheld)").count(), 1000);
    }
}
