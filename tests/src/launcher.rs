//! Failures that are a launcher's own, told apart from those of its ranks by what it prints, and by how far ranks came.
//! All of them are known without lapscope too.

use std::path::Path;

use crate::mpi::Mpi;

/// How often a launch that its launcher spoilt is made again.
pub(crate) const AGAIN: usize = 2;

/// What one line holds, all of it, of the launchers of a family of MPIs.
struct Words {
    of: &'static str,
    line: &'static [&'static str],
}

const fn words(of: &'static str, line: &'static [&'static str]) -> Words {
    Words { of, line }
}

/// What daemons print that did not come so far as to start ranks.
const PRINTED: &[Words] = &[
    // Hydra's own assertions, in mpiexec and in its proxies: pmodels/mpich 3520 and 7036
    words("mpich", &["[mpiexec@", "assert (", "failed"]),
    words("mpich", &["[proxy:", "assert (", "failed"]),
    words("mpich", &["mpiexec", "Assertion `", "failed"]),
    words("mpich", &["hydra_pmi_proxy: ", "Assertion `", "failed"]),
    // the libraries of ranks print the first words with files of their own
    words("mpich", &["Assertion failed in file ", "hydra"]),
    // what follows from them, and from sockets and pipes between daemons that fail
    words("mpich", &["[mpiexec@", "error waiting for event"]),
    words("mpich", &["[proxy:", "error waiting for event"]),
    words("mpich", &["[mpiexec@", "HYDU_sock_"]),
    // Intel's: daemons that cannot be started or do not call back
    words("intel", &["Unable to run bstrap_proxy"]),
    words("intel", &["unable to launch bstrap proxy"]),
    // help-errmgr-base.txt of ORTE and PRRTE: daemons that do not start, do not call back, or are lost
    words("openmpi", &["was unable to reliably start one or more daemons"]),
    words("openmpi", &["daemon has unexpectedly failed after launch"]),
    words("openmpi", &["has lost communication with a remote daemon"]),
    // directories that launchers make under one name and remove from under each other: open-mpi/ompi 3818, 7049, 8510
    words("openmpi", &["orte_session_dir failed"]),
    words("openmpi", &["opal_os_dirpath_create", "Unable to create the sub-directory"]),
    words("openmpi", &["pmix_server_init failed"]),
    words("openmpi", &["prte_init()", "failed for some reason"]),
    // the same of files that ranks share; one of them has crashed then
    words("openmpi", &["A system call failed during shared memory initialization"]),
];

/// What launchers print of ranks that fail. Then it is not the launcher that failed.
const OF_RANKS: &[&str] = &[
    "BAD TERMINATION",
    "KILLED BY SIGNAL",
    "exited on signal",
    "exiting improperly",
    "non-zero",
    "MPI_ABORT",
    "MPI_Abort",
    "MPI_INIT failed",
    "MPI_Init",
];

/// Functions in which ranks wait for their launcher alone, before MPI_Init is over. PMIx 4 loses the first answer to a
/// client now and then, more often of processes that were spawned: openpmix/openpmix 2735 and 2967. Debian's Open MPI
/// 4.1.4 with PMIx 4.2.2 hangs so in one of some tens of runs of `worlds_tree` without lapscope, and never goes on.
const STUCK: &[Words] = &[words("openmpi", &["PMIx_Init"])];

/// The line by which output or stacks are known.
fn find<'a>(table: &[Words], mpi: &Mpi, text: &'a str) -> Option<&'a str> {
    let is_known = |line: &&str| {
        let mut here = table.iter().filter(|it| mpi.words.contains(&it.of));
        here.any(|it| it.line.iter().all(|part| line.contains(part)))
    };
    text.lines().find(is_known)
}

/// The line by which it is known that a launcher failed, and no rank: of a launch that ended, from what it printed on standard
/// error. Ranks that got as far as to print or to record something say that daemons had done their part.
pub(crate) fn failure<'a>(mpi: &Mpi, stderr: &'a str, has_begun: bool) -> Option<&'a str> {
    let is_of_rank = OF_RANKS.iter().any(|part| stderr.contains(part));
    (!is_of_rank && !has_begun).then(|| find(PRINTED, mpi, stderr)).flatten()
}

/// The same of a launch that does not end, from the stacks of its processes.
pub(crate) fn standstill<'a>(mpi: &Mpi, stacks: &'a str) -> Option<&'a str> {
    find(STUCK, mpi, stacks)
}

/// Whether there is anything that [`standstill`] knows.
pub(crate) fn can_stand_still(mpi: &Mpi) -> bool {
    STUCK.iter().any(|it| mpi.words.contains(&it.of))
}

/// As `LAUNCHED AGAIN` names it.
pub(crate) fn name(mpi: &Mpi) -> String {
    let path = Path::new(mpi.launcher);
    format!("{} of {}", path.file_name().unwrap_or_default().to_string_lossy(), mpi.name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::launch::{place, Form, Job};

    fn with_words(words: &'static [&'static str]) -> Mpi {
        Mpi { words, ..*crate::mpi::all()[0] }
    }

    #[test]
    fn launchers_are_told_from_their_ranks() {
        let (mpich, openmpi) = (with_words(&["mpich"]), with_words(&["openmpi"]));
        let hydra = "hydra_pmi_proxy: src/pmi_wire.c:683: f: Assertion `!PMIU(c)' failed.\n\
                     [mpiexec@node] control_cb (pmiserv_cb.c:280): assert (!closed) failed\n";
        assert_eq!(failure(&mpich, hydra, false), hydra.lines().next());
        assert_eq!(failure(&mpich, hydra, true), None);
        assert_eq!(failure(&openmpi, hydra, false), None);
        let crash = format!("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n{hydra}");
        assert_eq!(failure(&mpich, &crash, false), None);
        let rank = "Assertion failed in file ../src/mpid/ch4/shm.c at line 7: 0\n";
        assert_eq!(failure(&mpich, rank, false), None);
        let daemon = "---\nAn ORTE daemon has unexpectedly failed after launch and before\n";
        assert_eq!(failure(&openmpi, daemon, false), daemon.lines().nth(1));
    }

    #[test]
    fn ranks_that_wait_for_their_launcher_are_told_from_others() {
        let openmpi = with_words(&["openmpi"]);
        let stacks = "#4 0x1 in pthread_cond_wait ()\n#5 0x2 in PMIx_Init () from libpmix.so.2\n";
        assert_eq!(standstill(&openmpi, stacks), stacks.lines().nth(1));
        assert_eq!(standstill(&openmpi, "#5 0x2 in PMIx_Lookup () from libpmix.so.2\n"), None);
    }

    /// A launcher that fails so many times before it starts anything.
    fn launch(times: usize, words: &str) -> (i32, usize) {
        let place = place();
        let launcher = place.path().join("launcher");
        let script = format!(
            "#!/bin/sh\necho x >> {0}/tries\nif [ $(wc -l < {0}/tries) -le {times} ]; then\n\
             echo '{words}' >&2; exit 9\nfi\n",
            place.path().display()
        );
        fs::write(&launcher, script).expect("a launcher");
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("to run it");
        let launcher = launcher.into_os_string().into_string().expect("a path");
        let mpi = Mpi { name: "a test", launcher: launcher.leak(), ..with_words(&["mpich"]) };
        let outcome = Job::new(&mpi, 1, "true", Form::Bare, place.path()).run();
        let tries = fs::read_to_string(place.path().join("tries")).expect("tries");
        (outcome.code, tries.lines().count())
    }

    #[test]
    fn a_launcher_that_fails_is_asked_twice_more() {
        let words = "[mpiexec@node] main (mpiexec.c:260): error waiting for event";
        assert_eq!(launch(0, words), (0, 1));
        assert_eq!(launch(2, words), (0, 3));
        assert_eq!(launch(3, words), (9, 3), "the last try counts");
        assert_eq!(launch(1, "Segmentation fault"), (9, 1), "a rank's failure is not asked again");
    }
}
