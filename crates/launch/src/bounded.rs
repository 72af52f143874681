//! Programs of others that are asked something: none may take longer than it is given, nor write to our output.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What most of them may take: an MPI on a loaded parallel file system loads for seconds.
pub const LIMIT: Duration = Duration::from_secs(10);
const LOOKS: Duration = Duration::from_millis(5);
/// What a late one may take to end by itself: srun ends its step.
const LAST_BREATH: Duration = Duration::from_millis(300);
/// Bytes of what most of them say.
const MOST_SAID: u64 = 1 << 20;

pub struct ProgramOutput {
    pub output: String,
    pub error: String,
    pub status: ExitStatus,
    /// It did not end, and was ended.
    pub was_late: bool,
}

impl ProgramOutput {
    /// Both, as programs differ in where they say it.
    pub fn all(&self) -> String {
        format!("{}\n{}", self.output, self.error)
    }

    /// Why it did not do what it should.
    pub fn complaint(&self) -> Option<String> {
        if self.was_late {
            return Some("it did not answer in time and was ended".into());
        }
        if let Some(signal) = self.status.signal() {
            return Some(format!("it was killed by signal {signal}"));
        }
        let code = self.status.code().filter(|code| *code != 0)?;
        let line =
            self.all().lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        Some(line.unwrap_or_else(|| format!("exit code {code}")))
    }
}

/// What `command` says within `limit`; it and what it has started are then killed. `None`: it cannot be started.
pub fn ask(command: &mut Command, limit: Duration) -> Option<ProgramOutput> {
    ask_for(command, limit, MOST_SAID).ok()
}

/// As [`ask`], up to so many bytes of each.
///
/// # Errors
/// It cannot be started.
pub fn ask_for(command: &mut Command, limit: Duration, most: u64) -> io::Result<ProgramOutput> {
    // Files in memory, not pipes: nobody waits for a process that holds its end of one.
    let (mut output, mut error) = (room()?, room()?);
    command.stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(error.try_clone()?);
    command.env_remove("LD_PRELOAD"); // a preloaded recorder would record what is asked
    let mut child = command.process_group(0).spawn()?;
    let group = i32::try_from(child.id()).map_err(io::Error::other)?;
    let begin = Instant::now();
    let mut was_late = false;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begin.elapsed() < limit => std::thread::sleep(LOOKS),
            None if !was_late => {
                was_late = true;
                // SAFETY: the group of a child that has not been waited for.
                unsafe { libc::kill(-group, libc::SIGTERM) };
            }
            None if begin.elapsed() < limit + LAST_BREATH => std::thread::sleep(LOOKS),
            None => {
                let _ = child.kill();
                break child.wait()?;
            }
        }
    };
    // SAFETY: the group that was made for it. A zombie held the number until now, its group does as long as it has members.
    unsafe { libc::kill(-group, libc::SIGKILL) };
    let (output, error) = (text(&mut output, most), text(&mut error, MOST_SAID));
    Ok(ProgramOutput { output, error, status, was_late })
}

/// Where what they say goes: memory, as disks may be full; a file where the kernel is older than 3.17.
fn room() -> io::Result<File> {
    // SAFETY: a name with an end; what it returns is ours. By its number: glibc has a function for it since 2.27 only.
    let descriptor = unsafe {
        let (name, flags) = (c"lapscope-asked".as_ptr(), libc::MFD_CLOEXEC);
        libc::syscall(libc::SYS_memfd_create, name, flags)
    };
    match c_int::try_from(descriptor) {
        // SAFETY: it is open, and nobody else's.
        Ok(descriptor) if descriptor >= 0 => {
            Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
        }
        _ => tempfile::tempfile(),
    }
}

fn text(file: &mut File, most: u64) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> ProgramOutput {
        ask(Command::new("/bin/sh").args(["-c", script]), limit).expect("a shell")
    }

    #[test]
    fn what_is_said_is_heard() {
        let said = shell("echo one; echo two >&2", LIMIT);
        assert_eq!((said.output.as_str(), said.error.as_str()), ("one\n", "two\n"));
        assert_eq!(said.complaint(), None);
        assert_eq!(shell("echo no >&2; exit 3", LIMIT).complaint().as_deref(), Some("no"));
        assert_eq!(shell("exit 3", LIMIT).complaint().as_deref(), Some("exit code 3"));
        let crashed = shell("kill -SEGV $$", LIMIT).complaint().unwrap();
        assert!(crashed.contains("signal 11"), "{crashed}");
    }

    /// Neither one that does not end, nor what it leaves behind.
    #[test]
    fn nobody_is_waited_for() {
        let begin = Instant::now();
        let late = shell("echo first; sleep 60 & sleep 60", Duration::from_millis(200));
        assert!(late.was_late && late.output == "first\n");
        let left = shell("sleep 60 & echo $!", LIMIT);
        assert!(begin.elapsed() < Duration::from_secs(30));
        let child: i32 = left.output.trim().parse().unwrap();
        let is_gone = |child: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        assert!((0..200).any(|_| {
            std::thread::sleep(LOOKS);
            is_gone(child)
        }));
    }
}
