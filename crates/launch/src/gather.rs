//! Two looks at a job whose spools are on several nodes: `lapscope hang --launch`, and what it starts there, `--gather`; what
//! [`crate::nodes`] starts for the stacks of a job puts its looks there, too.
//!
//! Each node's process writes what it sees, whole or not at all, into a directory of the run directory, which all nodes share. Whoever
//! has started them puts the parts together.
//!
//! Nothing listens on a port, and nothing but the run directory has to be shared. A launcher that fails, or does not
//! end, is named with what it said, and the diagnosis is made of the rest.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use lapscope_data::files::read_short;
use lapscope_data::say;
use lapscope_data::state::{Condition, JobState, Observer, RankState};
use lapscope_data::store::host_name;
use lapscope_data::text::shell;

/// What launchers have besides the time between the looks: to reach all nodes, and to start a process on each.
const LONGEST: Duration = Duration::from_secs(60);
/// What is written in front of a part: another lapscope may write something else.
const FIRST_LINE: &str = concat!("lapscope hang ", env!("CARGO_PKG_VERSION"), "\n");
const PART: &str = "part";
/// A node with thousands of ranks that have thousands of lanes each.
const LARGEST_PART: u64 = 4 << 30;
/// Launchers that hand what they are given to a shell on the other side.
const BY_SHELL: [&str; 5] = ["ssh", "rsh", "pdsh", "clush", "dsh"];

/// Two looks at a job.
pub type Looks = (JobState, JobState);

/// Looks from here, and by each of the launchers from the nodes that it reaches. What went wrong there is said on standard error; of
/// whom nothing is known then stands in [`JobState::unseen`].
///
/// # Errors
/// Nothing can be written into the run directory, or nothing of the run could be read from anywhere.
pub fn look_from_nodes(root: &Path, interval: Duration, launchers: &[String]) -> Result<Looks> {
    let root = fs::canonicalize(root).with_context(|| root.display().to_string())?;
    let place = tempfile::Builder::new().prefix("hang-").tempdir_in(&root).with_context(|| {
        format!(
            "{}: nothing can be written there, where each node is to put what it sees; use what its owner can write",
            root.display()
        )
    })?;
    let started: Vec<Launched> = launchers
        .iter()
        .filter_map(|launcher| match Launched::start(launcher, &root, interval, place.path()) {
            Ok(started) => Some(started),
            Err(error) => {
                say!("{error:#}");
                None
            }
        })
        .collect();
    let own = looks(Observer::open(&root)?, interval);
    let by = Instant::now() + LONGEST;
    for launched in started {
        if let Err(error) = launched.wait(by) {
            say!("{error:#}");
        }
    }
    merge(&root, own?, place.path())
}

/// Looks from here, and what others have put into `place`, a directory of the run directory that is then removed. `None`: nobody
/// was asked to.
///
/// # Errors
/// As [`look_from_nodes`].
pub fn look_with_parts(root: &Path, interval: Duration, place: Option<&str>) -> Result<Looks> {
    let place = place.map(|name| root.join(name)).filter(|place| place.is_dir());
    let Some(place) = place else { return look_twice(root, interval) };
    let merged = looks(Observer::open(root)?, interval).and_then(|own| merge(root, own, &place));
    let _ = fs::remove_dir_all(&place);
    merged
}

fn merge(root: &Path, own: Looks, place: &Path) -> Result<Looks> {
    let (mut before, mut after): (Vec<_>, Vec<_>) = read_parts(place)?.into_iter().unzip();
    before.push(own.0);
    after.push(own.1);
    let (before, after) = (JobState::merge(before), JobState::merge(after));
    check(root, &after)?;
    Ok((before, after))
}

/// Looks from here alone.
///
/// # Errors
/// Nothing of it can be read.
pub fn look_twice(root: &Path, interval: Duration) -> Result<Looks> {
    let looks = looks(Observer::open(root)?, interval)?;
    check(root, &looks.1)?;
    Ok(looks)
}

/// What has ended as a whole is looked at once.
///
/// # Errors
/// The run directory cannot be listed.
fn looks(mut observer: Observer, interval: Duration) -> Result<Looks> {
    let before = observer.look(&mut ())?;
    if before.ranks.iter().all(RankState::is_over) {
        return Ok((before.clone(), before));
    }
    thread::sleep(interval);
    Ok((before, observer.look(&mut ())?))
}

/// A launcher, and what it says.
struct Launched {
    line: String,
    child: Child,
    said: PathBuf,
}

impl Launched {
    fn start(launcher: &str, root: &Path, interval: Duration, place: &Path) -> Result<Launched> {
        let own = std::env::current_exe().context("where this lapscope is cannot be found out")?;
        let interval = interval.as_secs_f64().to_string();
        let further = [
            own.as_path(),
            Path::new("hang"),
            Path::new("--gather"),
            place,
            Path::new("--interval"),
        ]
        .map(|word| word.as_os_str().to_owned());
        let further = further.into_iter().chain([interval.into(), root.as_os_str().to_owned()]);
        let mut command = command_by(launcher, further)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let number = fs::read_dir(place).map_or(0, Iterator::count);
        let said = place.join(format!("said-{number}"));
        let output = fs::File::create(&said).with_context(|| said.display().to_string())?;
        // in a group of its own, that all of it can be ended
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("--launch '{launcher}': {program} cannot be started"))?;
        Ok(Launched { line: launcher.to_owned(), child, said })
    }

    /// # Errors
    /// It failed, or took too long: then it is ended.
    fn wait(mut self, by: Instant) -> Result<()> {
        let status = loop {
            match self.child.try_wait().with_context(|| format!("--launch '{}'", self.line))? {
                Some(status) => break Some(status),
                None if Instant::now() >= by => break None,
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        let said = self.last_words();
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("--launch '{}' ended with {status}{said}", self.line),
            None => {
                self.end();
                bail!(
                    "--launch '{}' had not ended after {} s, and was ended: does it wait for a password, or for free nodes \
                     (srun --overlap)?{said}",
                    self.line,
                    LONGEST.as_secs()
                )
            }
        }
    }

    fn end(&mut self) {
        if let Ok(group) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: signals only the group that this child leads, which has not been waited for
            unsafe { libc::kill(-group, libc::SIGTERM) };
            thread::sleep(Duration::from_millis(200));
            // SAFETY: as above
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }

    /// The last lines that it, or what it has started, has said.
    fn last_words(&self) -> String {
        const LINES: usize = 5;
        let text = read_short(&self.said, 1 << 20).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(": {}", lines[lines.len().saturating_sub(LINES)..].join("; ")),
        }
    }
}

/// The command that a launcher starts elsewhere.
///
/// # Errors
/// The launcher is no command.
pub(crate) fn command_by(
    launcher: &str,
    further: impl IntoIterator<Item = OsString>,
) -> Result<Command> {
    let words = shlex::split(launcher).filter(|words| !words.is_empty());
    let Some(words) = words else {
        bail!("--launch '{launcher}': no command, or a quote that does not end; as: --launch 'ssh node7'")
    };
    let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy();
    let by_shell = BY_SHELL.contains(&&*name);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    for word in further {
        match by_shell {
            true => command.arg(shell::quote(word)),
            false => command.arg(word),
        };
    }
    Ok(command)
}

fn read_parts(place: &Path) -> Result<Vec<Looks>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let path = entry.with_context(|| place.display().to_string())?.path();
        if path.extension().is_some_and(|extension| extension == PART) {
            match read_part(&path) {
                Ok(part) => parts.push(part),
                Err(error) => say!("{error:#}"),
            }
        }
    }
    Ok(parts)
}

fn read_part(path: &Path) -> Result<Looks> {
    let host = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read_short(path, LARGEST_PART).with_context(|| format!("what {host} has seen"))?;
    let end = bytes.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let (first, rest) = bytes.split_at(end);
    if first != FIRST_LINE.as_bytes() {
        let other = String::from_utf8_lossy(first);
        bail!(
            "{host} has another lapscope ({}; here: {}): use the same on all nodes, by its path in a directory that they share",
            other.trim().trim_start_matches("lapscope hang "),
            env!("CARGO_PKG_VERSION")
        );
    }
    cbor4ii::serde::from_slice(rest).with_context(|| format!("what {host} has seen cannot be read"))
}

/// As [`gather`], into the directory of this name in the run directory; the first makes it.
///
/// # Errors
/// As [`gather`].
pub fn gather_beside(name: &str, root: &Path, interval: Duration) -> Result<()> {
    let place = root.join(name);
    match fs::create_dir(&place) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("nothing can be written into {}", root.display()))
        }
        _ => gather(&place, root, interval),
    }
}

/// What `--launch` starts on a node: writes what is seen from here into the directory `place`.
///
/// # Errors
/// Nothing of the run can be read from here, or the part cannot be written.
pub fn gather(place: &Path, root: &Path, interval: Duration) -> Result<()> {
    let (mut before, mut after) = looks(Observer::open(root)?.without_databases(), interval)?;
    for job in [&mut before, &mut after] {
        job.ranks.retain(|rank: &RankState| rank.condition != Condition::Unknown);
        job.unseen.clear(); // others may see it
    }
    let name = format!("{}-{}.{PART}", host_name(), std::process::id());
    let mut file = tempfile::NamedTempFile::new_in(place).with_context(|| {
        format!("{}: on {} nothing can be written there", place.display(), host_name())
    })?;
    let why = || format!("{}: what {} sees cannot be written", place.display(), host_name());
    let bytes = FIRST_LINE.as_bytes().to_vec();
    let bytes = cbor4ii::serde::to_vec(bytes, &(before, after)).with_context(why)?;
    file.write_all(&bytes).with_context(why)?;
    file.persist(place.join(name)).with_context(why)?;
    Ok(())
}

/// # Errors
/// Nothing was read.
fn check(root: &Path, state: &JobState) -> Result<()> {
    if !state.ranks.is_empty() {
        return Ok(());
    }
    let whys: Vec<String> =
        state.unseen.iter().map(|it| format!("{} {}", it.file, it.why)).collect();
    match whys.is_empty() {
        true => bail!("{}: no data yet: no rank has come out of MPI_Init", root.display()),
        false => bail!("{}: nothing of it can be read: {}", root.display(), whys.join("; ")),
    }
}
