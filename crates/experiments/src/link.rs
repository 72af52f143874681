//! What the ranks of an experiment reach each other by.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::results::Link;

/// The front of a command line that runs in a network of its own, in which loopback is slow: nothing outside changes.
///
/// # Errors
/// Why that is not to be had here.
pub fn slow_link() -> Result<Vec<OsString>, String> {
    let forms: [&[&str]; 2] = [&["unshare", "-n"], &["unshare", "-rn"]];
    let mut said = String::new();
    for form in forms {
        let tried = Command::new(form[0])
            .args(&form[1..])
            .args(["sh", "-c", &setup()])
            .stdin(Stdio::null())
            .output();
        match tried {
            Ok(output) if output.status.success() => {
                let script = format!("{} && exec \"$@\"", setup());
                let words = form.iter().copied().chain(["sh", "-c", &script, "sh"]);
                return Ok(words.map(OsString::from).collect());
            }
            Ok(output) => said = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => said = format!("unshare: {error}"),
        }
    }
    Err(format!(
        "needs network namespaces and tc (Debian: iproute2), which are not to be had here: {said}"
    ))
}

/// Loopback held to [`Link::BYTES_PER_US`].
fn setup() -> String {
    format!(
        "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up && \
         tc qdisc add dev lo root tbf rate {}mbit burst 256kb latency 20ms",
        8 * Link::BYTES_PER_US
    )
}
