//! Where runs are written: the directory here, and where spools would lie on the node. A file that is gone at once is mapped
//! and locked there, as the recorder and SQLite do.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::filesystem::{of_magic, room, FileSystem, FileSystemKind, FreeSpace};
use super::host::Host;
use super::Finding;

const TOPIC: &str = "files";
const SPARE_MB: u64 = 1024;
/// A page that takes longer than that to be written is on a file system to stay away from while the program runs.
const SLOW: Duration = Duration::from_millis(50);

pub fn look(host: &Host) -> Vec<Finding> {
    let spool_mb = host.spool_mb();
    let mut findings = vec![run_directory(&DirectoryCheck::look(Path::new(".")), spool_mb)];
    let node =
        host.first_variable(&["LAPSCOPE_SPOOL_DIR", "TMPDIR"]).map_or("/tmp", |(_, value)| value);
    findings.push(node_storage(node, &DirectoryCheck::look(Path::new(node)), spool_mb));
    findings
}

/// What was found out of a directory.
struct DirectoryCheck {
    file_system: FileSystem,
    room: FreeSpace,
    trial: Result<FileTrial, String>,
}

struct FileTrial {
    /// Time that a page in a mapped file takes until it is written.
    took: Duration,
    /// Why SQLite would not get its locks.
    no_locks: Option<String>,
    /// Why a file cannot be mapped.
    no_mapping: Option<String>,
}

impl DirectoryCheck {
    fn look(directory: &Path) -> DirectoryCheck {
        let path = CString::new(directory.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: plain data that the call fills in; the path has an end.
        let kind = unsafe {
            let mut kind: libc::statfs = std::mem::zeroed();
            libc::statfs(path.as_ptr(), &mut kind);
            kind
        };
        #[allow(clippy::unnecessary_cast)] // its type differs between C libraries
        let file_system = of_magic(kind.f_type as i64);
        let room = room(&path).unwrap_or(FreeSpace { free_mb: 0, free_files: None });
        DirectoryCheck { file_system, room, trial: trial(directory) }
    }
}

/// # Errors
/// No file can be made there.
fn trial(directory: &Path) -> Result<FileTrial, String> {
    const BYTES: usize = 4096;
    let file = tempfile::tempfile_in(directory).map_err(|error| error.to_string())?;
    file.set_len(BYTES as u64).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let no_mapping = map_and_write(&file, BYTES).err().map(|error| error.to_string());
    let took = begin.elapsed();
    Ok(FileTrial { took, no_locks: lock(&file).err().map(|error| error.to_string()), no_mapping })
}

fn map_and_write(file: &File, bytes: usize) -> std::io::Result<()> {
    // SAFETY: a mapping of our own file, as long as it is; written within, and given back.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        at.cast::<u8>().write_volatile(1);
        let written = libc::msync(at, bytes, libc::MS_SYNC);
        let error = std::io::Error::last_os_error();
        libc::munmap(at, bytes);
        if written == 0 {
            Ok(())
        } else {
            Err(error)
        }
    }
}

/// As SQLite locks (fcntl): on Lustre mounted without `flock`, and NFS without its lock daemon, refused.
fn lock(file: &File) -> std::io::Result<()> {
    // SAFETY: plain data; a lock of our own file, gone with it.
    unsafe {
        let mut whole: libc::flock = std::mem::zeroed();
        whole.l_type = libc::F_WRLCK as _;
        whole.l_whence = libc::SEEK_SET as _;
        match libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &whole) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// The cure for all that a shared file system does.
const NODE: &str = "export LAPSCOPE_FILES=node (or lapscope run --files node): spools on the node, one database a node";

fn run_directory(place: &DirectoryCheck, spool_mb: u64) -> Finding {
    let name = "run directory";
    let trial = match &place.trial {
        Ok(trial) => trial,
        Err(reason) => {
            return Finding::warn(
                TOPIC,
                name,
                format!("no file can be made here: {reason}"),
                "lapscope run --dir PLACE",
            )
            .follows("runs are written into the directory where they are started");
        }
    };
    let says = format!("{}, {} MB free", place.file_system.name, place.room.free_mb);
    if let Some(reason) = &trial.no_mapping {
        return Finding::warn(
            TOPIC,
            name,
            format!("{says}; files cannot be mapped: {reason}"),
            NODE,
        )
        .follows("spools are mapped files: nothing is recorded into them here");
    }
    if let Some(reason) = &trial.no_locks {
        let advice = "lapscope run --dir on a file system with locks (Lustre: mounted with -o flock or localflock)";
        return Finding::warn(
            TOPIC,
            name,
            format!("{says}; files cannot be locked: {reason}"),
            advice,
        )
        .follows("databases are written by SQLite, which locks them");
    }
    if let Some(finding) = little_room(name, place, spool_mb, &says) {
        return finding;
    }
    if place.file_system.kind == FileSystemKind::Shared || trial.took > SLOW {
        let took = format!("{says}; a mapped page took {:.1} ms", trial.took.as_secs_f64() * 1e3);
        return Finding::warn(TOPIC, name, took, NODE)
            .follows("spools are mapped files, and pages of them travel while the program runs; two files a rank are many");
    }
    Finding::ok(TOPIC, name, says)
}

fn little_room(name: &str, place: &DirectoryCheck, spool_mb: u64, says: &str) -> Option<Finding> {
    if place.room.free_files.is_some_and(|free| free < 1000) {
        let says = format!("{says}; {} more files fit", place.room.free_files.unwrap_or_default());
        let finding =
            Finding::warn(TOPIC, name, says, "remove files here, or lapscope run --dir PLACE");
        return Some(finding.follows("a run has two files a rank"));
    }
    (place.room.free_mb < SPARE_MB).then(|| {
        let ranks = place.room.free_mb / spool_mb;
        Finding::warn(
            TOPIC,
            name,
            says,
            "lapscope run --dir PLACE, or --max-mb 8 for less of each rank",
        )
        .follows(format!("spools take up to {spool_mb} MB a rank: room for {ranks}"))
    })
}

fn node_storage(path: &str, place: &DirectoryCheck, spool_mb: u64) -> Finding {
    let name = "node storage";
    let says = format!("{path}: {}, {} MB free", place.file_system.name, place.room.free_mb);
    let advice = "export LAPSCOPE_SPOOL_DIR=PLACE, a directory on the node's own disk";
    match &place.trial {
        Err(reason) => Finding::note(TOPIC, name, format!("{path}: no file can be made there: {reason}"), advice)
            .follows("LAPSCOPE_FILES=node keeps spools there"),
        Ok(_) if place.file_system.kind == FileSystemKind::Shared => Finding::note(TOPIC, name, says, advice)
            .follows("it is not on the node: LAPSCOPE_FILES=node wins nothing there"),
        Ok(_) if place.file_system.kind == FileSystemKind::Memory => Finding::note(TOPIC, name, says, advice)
            .follows(format!("it is memory: with LAPSCOPE_FILES=node spools take up to {spool_mb} MB a rank from the job's")),
        Ok(_) => little_room(name, place, spool_mb, &says).unwrap_or_else(|| Finding::ok(TOPIC, name, says)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    const QUICK: FileTrial = FileTrial { took: Duration::ZERO, no_locks: None, no_mapping: None };

    fn run_directory(place: &DirectoryCheck) -> Finding {
        super::run_directory(place, 50)
    }

    fn place(magic: i64, free_mb: u64, trial: Result<FileTrial, String>) -> DirectoryCheck {
        let room = FreeSpace { free_mb, free_files: Some(1 << 20) };
        DirectoryCheck { file_system: of_magic(magic), room, trial }
    }

    #[test]
    fn shared_file_systems_have_a_cure() {
        let lustre = run_directory(&place(0x0bd0_0bd0, 1 << 20, Ok(QUICK)));
        assert_eq!(lustre.status, Status::Warn);
        assert!(lustre.advice.unwrap().contains("LAPSCOPE_FILES=node"));
        assert_eq!(run_directory(&place(0xef53, 1 << 20, Ok(QUICK))).status, Status::Ok);
        let slow = FileTrial { took: Duration::from_secs(1), ..QUICK };
        assert!(run_directory(&place(0xef53, 1 << 20, Ok(slow))).says.contains("1000.0 ms"));
        let locks = FileTrial { no_locks: Some("Function not implemented".into()), ..QUICK };
        assert!(run_directory(&place(0x0bd0_0bd0, 1 << 20, Ok(locks)))
            .advice
            .unwrap()
            .contains("flock"));
        let mapping = FileTrial { no_mapping: Some("No such device".into()), ..QUICK };
        assert!(run_directory(&place(0x0102_1997, 1 << 20, Ok(mapping)))
            .says
            .contains("cannot be mapped"));
        assert!(run_directory(&place(0xef53, 1 << 20, Err("read-only".into())))
            .says
            .contains("read-only"));
    }

    #[test]
    fn little_room_is_counted_in_ranks() {
        let little = run_directory(&place(0xef53, 120, Ok(QUICK)));
        assert!(little.follows.unwrap().ends_with("room for 2"));
        let mut full = place(0xef53, 1 << 20, Ok(QUICK));
        full.room.free_files = Some(3);
        assert!(run_directory(&full).says.ends_with("3 more files fit"));
    }

    #[test]
    fn storage_of_the_node_may_be_none() {
        let kind = |magic| node_storage("/scratch", &place(magic, 1 << 20, Ok(QUICK)), 50).status;
        assert_eq!(
            (kind(0xef53), kind(0x6969), kind(0x0102_1994)),
            (Status::Ok, Status::Note, Status::Note)
        );
    }

    /// Locks and mappings work where tests run, and leave nothing.
    #[test]
    fn the_trial_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let trial = trial(directory.path()).unwrap();
        assert_eq!((trial.no_locks, trial.no_mapping), (None, None));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        assert!(super::trial(Path::new("/proc/self")).is_err());
    }
}
