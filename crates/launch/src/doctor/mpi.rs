//! The MPIs of the launchers in PATH, and of the program: which they are, whether there is a recorder for each, what they
//! send by, and whether anything moves while ranks compute.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::ask::{self, LibraryAccount};
use super::family::{identify as identify_library, make_recorder, recorder_abi, Identity};
use super::host::Host;
use super::subject::{Linked, Subject};
use super::{progress, transports, Finding};
use crate::install;
use crate::run::launcher::{self, Launcher};
use crate::run::line::find_executable;
use crate::run::mpi_library::beside_launcher;

const TOPIC: &str = "MPI";

const LAUNCHERS: [&str; 8] = [
    "mpirun",
    "mpiexec",
    "mpirun.openmpi",
    "mpirun.mpich",
    "mpiexec.hydra",
    "prterun",
    "orterun",
    "srun",
];

/// A program in PATH that starts ranks.
struct InstalledMpi {
    /// All the names that mean it.
    names: Vec<&'static str>,
    launcher: Launcher,
    library: Option<(PathBuf, Result<LibraryAccount, String>)>,
}

pub fn look(host: &Host, subject: Option<&Subject>) -> Vec<Finding> {
    let linked = subject.and_then(|subject| subject.mpi.as_ref());
    let launchers = launchers();
    let preload = install::preload_library().ok();
    let mut findings: Vec<Finding> =
        launchers.iter().map(|it| launcher(it, linked, preload.as_deref())).collect();
    findings.extend(mismatch(&launchers, linked));
    if launchers.is_empty() {
        findings.push(none_in_path(subject.is_some()));
    }
    // Of a program that has none, or cannot run, the MPIs of others say nothing.
    let known = match subject {
        Some(subject) if linked.is_none() && !subject.is_open => Vec::new(),
        _ => mpis(&launchers, linked),
    };
    for (identity, answer) in &known {
        findings.extend(transports::look(identity, answer));
    }
    findings.extend(
        known.iter().map(|(identity, answer)| progress::look(identity, Some(answer), host)),
    );
    findings.extend(transports::below());
    findings
}

/// What can be said of an MPI: the program's where it is known, else those of the launchers, each once.
fn mpis<'a>(
    launchers: &'a [InstalledMpi],
    linked: Option<&'a Linked>,
) -> Vec<(Identity, &'a LibraryAccount)> {
    if let Some(linked) = linked {
        return vec![(linked.identity.clone(), &linked.answer)];
    }
    let mut known: Vec<(Identity, &LibraryAccount)> = Vec::new();
    for (path, answer) in launchers.iter().filter_map(|it| it.library.as_ref()) {
        let Ok(answer) = answer else { continue };
        let identity = identify_library(answer, path);
        if !known.iter().any(|(other, _)| *other == identity) {
            known.push((identity, answer));
        }
    }
    known
}

/// Programs in PATH, each once. They are asked at the same time.
fn launchers() -> Vec<InstalledMpi> {
    let mut found: Vec<(Vec<&str>, PathBuf)> = Vec::new();
    for name in LAUNCHERS {
        let Some(path) = find_executable(OsStr::new(name)) else { continue };
        let path = path.canonicalize().unwrap_or(path);
        match found.iter_mut().find(|(_, known)| *known == path) {
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], path)),
        }
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            found.into_iter().map(|(names, _)| scope.spawn(|| ask_launcher(names))).collect();
        joined(asked.into_iter().filter_map(|it| it.join().ok().flatten()))
    })
}

/// Several launchers of one installation are one.
fn joined(all: impl Iterator<Item = InstalledMpi>) -> Vec<InstalledMpi> {
    let mut found: Vec<InstalledMpi> = Vec::new();
    for mut another in all {
        let library = another.library.as_ref().map(|(path, _)| path);
        let same = found.iter_mut().find(|known| {
            library.is_some() && known.library.as_ref().map(|(path, _)| path) == library
        });
        match same.filter(|known| known.launcher.complaint == another.launcher.complaint) {
            Some(known) => known.names.append(&mut another.names),
            None => found.push(another),
        }
    }
    found
}

fn ask_launcher(names: Vec<&'static str>) -> Option<InstalledMpi> {
    let launcher = launcher::ask(OsStr::new(names.first()?))?;
    let library = launcher.abi.and_then(|abi| beside_launcher(&launcher.path, abi));
    let library = library.map(|library| {
        let answer = ask::ask(&library, &[]);
        (library, answer)
    });
    Some(InstalledMpi { names, launcher, library })
}

fn launcher(found: &InstalledMpi, linked: Option<&Linked>, preload: Option<&Path>) -> Finding {
    let (names, launcher) = (found.names.join(", "), &found.launcher);
    if let Some(complaint) = &launcher.complaint {
        let name = found.names[0];
        let says = format!("{name} --version: {complaint}");
        return Finding::note(
            TOPIC,
            names,
            says,
            format!("where {name} is to start ranks: run {name} --version, and mend that"),
        );
    }
    let Some(named) = launcher.abi else {
        // srun and unknown ones start programs of any MPI
        return Finding::ok(TOPIC, names, launcher.version.clone());
    };
    let asked =
        found.library.as_ref().and_then(|(path, answer)| Some((path, answer.as_ref().ok()?)));
    let identity = asked.map(|(path, answer)| identify_library(answer, path));
    let abi = asked.and_then(|(path, answer)| recorder_abi(answer, path)).unwrap_or(named);
    let title = match &identity {
        Some(identity) if !identity.family.is_tested() => {
            format!("{}, untested with lapscope", identity.title())
        }
        Some(identity) => identity.title(),
        None => launcher.version.clone(),
    };
    if let Some(linked) = linked.filter(|linked| !fits(found, linked)) {
        return Finding::ok(
            TOPIC,
            names,
            format!("{title}: not for this program, which has {}", linked.identity.title()),
        );
    }
    if let Some((path, Err(reason))) = &found.library {
        let says = format!("{title}; its library {} cannot be asked: {reason}", path.display());
        return Finding::warn(
            TOPIC,
            names,
            says,
            "load the modules that this MPI needs, and look again",
        );
    }
    if preload.is_some_and(|preload| install::recorder(preload, abi).is_some()) {
        return Finding::ok(TOPIC, names, format!("{title}: recorder {abi}"));
    }
    Finding::missing(TOPIC, names, format!("{title}: no recorder {abi}"), make_recorder(abi))
        .follows("programs of this MPI run, and nothing of them is recorded")
}

/// Whether it starts ranks of the program's MPI.
fn fits(found: &InstalledMpi, linked: &Linked) -> bool {
    let asked = found.library.as_ref();
    let asked = asked.and_then(|(path, answer)| recorder_abi(answer.as_ref().ok()?, path));
    let is_shared = linked.abi == "mpiabi"; // it says nothing of who starts it
    let is_same = found.launcher.abi.map_or(true, |named| asked.unwrap_or(named) == linked.abi);
    found.launcher.complaint.is_none() && (is_shared || is_same)
}

/// Launchers that are there, and none of the program's MPI; or the one that everybody types is another's.
fn mismatch(launchers: &[InstalledMpi], linked: Option<&Linked>) -> Option<Finding> {
    let linked = linked?;
    let title = linked.identity.title();
    let usual =
        launchers.iter().find(|it| it.names.iter().any(|it| ["mpirun", "mpiexec"].contains(it)));
    let fitting = launchers.iter().find(|it| fits(it, linked));
    let (says, advice) = match (usual, fitting) {
        (None, None) if launchers.is_empty() => return None,
        (None, Some(_)) => return None,
        (Some(usual), _) if fits(usual, linked) => return None,
        (Some(usual), Some(fitting)) => (
            format!("{} in PATH is not of {title}, which the program has", usual.names[0]),
            format!("start it with {}", fitting.names[0]),
        ),
        (_, None) => {
            let mut bins = linked.path.ancestors().map(|place| place.join("bin"));
            let bin = bins.find(|bin| bin.join("mpiexec").exists());
            let place =
                bin.map_or("/the/directory/of/its/mpirun".into(), |bin| bin.display().to_string());
            (
                format!("no launcher in PATH is of {title}, which the program has"),
                format!("load the module of that MPI, or: export PATH={place}:$PATH"),
            )
        }
    };
    Some(
        Finding::warn(TOPIC, "launcher", says, advice)
            .follows("started by another MPI's launcher, every rank thinks that it is alone"),
    )
}

fn none_in_path(has_program: bool) -> Finding {
    let says = "no mpirun, mpiexec or srun in PATH";
    let advice = "load the module of your MPI, or install one (Debian: openmpi-bin or mpich)";
    if has_program {
        return Finding::warn(TOPIC, "launcher", says, advice)
            .follows("the program can be started as one rank only");
    }
    Finding::missing(TOPIC, "launcher", says, advice)
        .follows("no job can be started here; reading runs works")
}
