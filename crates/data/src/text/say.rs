//! The only way to standard error: `clippy.toml` forbids the others.

use std::fmt::Display;
use std::io::{self, Write};

use super::visible::{Form, VisibleWriter};

/// "lapscope: `text`" on standard error. Further lines of it are indented, so that each line of lapscope's that says who
/// speaks is one. Nobody is told when that fails.
pub fn say(text: impl Display) {
    let text = text.to_string();
    let text = text.trim_end_matches('\n').replace('\n', "\n    ");
    write_stderr(&format!("lapscope: {text}\n"));
}

/// What is a message as it is.
#[allow(clippy::disallowed_methods)] // here it is
pub fn write_stderr(text: &str) {
    let mut line = Vec::with_capacity(text.len());
    let shown =
        VisibleWriter::new(&mut line, Form::Text { color: false }).write_all(text.as_bytes());
    shown.expect("memory takes everything");
    let _ = io::stderr().lock().write_all(&line);
}

/// Says on standard error, as `format!`; see [`say`](crate::text::say::say).
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::text::say::say(format_args!($($argument)*)) };
}
