//! The MPIs of the launchers in PATH, and of the program: which they are, whether there is a recorder for each, what they
//! send by, and whether anything moves while ranks compute.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ask::{self, Answer};
use super::family::{identify as identify_library, recorder_abi, Identity};
use super::host::Host;
use super::subject::{Linked, Subject};
use super::{bounded, progress, transports, Finding};
use crate::install;
use crate::launch::line::find_executable;
use crate::launch::mpi_library::{beside_launcher, identify};

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
struct Launcher {
    /// All the names that mean it.
    names: Vec<&'static str>,
    version: String,
    /// Of its MPI; `None`: it starts programs of any.
    abi: Option<&'static str>,
    /// Why it could not tell.
    complaint: Option<String>,
    library: Option<(PathBuf, Result<Answer, String>)>,
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
fn mpis<'a>(launchers: &'a [Launcher], linked: Option<&'a Linked>) -> Vec<(Identity, &'a Answer)> {
    if let Some(linked) = linked {
        return vec![(linked.identity.clone(), &linked.answer)];
    }
    let mut known: Vec<(Identity, &Answer)> = Vec::new();
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
fn launchers() -> Vec<Launcher> {
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
        let asked: Vec<_> = found
            .into_iter()
            .map(|(names, path)| scope.spawn(|| ask_launcher(names, path)))
            .collect();
        joined(asked.into_iter().filter_map(|it| it.join().ok()))
    })
}

/// Several launchers of one installation are one.
fn joined(all: impl Iterator<Item = Launcher>) -> Vec<Launcher> {
    let mut found: Vec<Launcher> = Vec::new();
    for mut launcher in all {
        let library = launcher.library.as_ref().map(|(path, _)| path);
        let same = found.iter_mut().find(|known| {
            library.is_some() && known.library.as_ref().map(|(path, _)| path) == library
        });
        match same.filter(|known| known.complaint == launcher.complaint) {
            Some(known) => known.names.append(&mut launcher.names),
            None => found.push(launcher),
        }
    }
    found
}

fn ask_launcher(names: Vec<&'static str>, path: PathBuf) -> Launcher {
    let mut command = Command::new(&path);
    command.arg("--version");
    // Those of Open MPI refuse even to tell their version to root.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    let said = bounded::ask(&mut command, bounded::LIMIT);
    let complaint =
        said.as_ref().map_or(Some("it cannot be started".into()), bounded::Said::complaint);
    let text = said.map(|said| said.all()).unwrap_or_default();
    let (version, abi) = identify(&text);
    // srun says "slurm 23.02.6"
    let is_version = abi.is_some() || version.contains(|c: char| c.is_ascii_digit());
    let complaint =
        complaint.or_else(|| (!is_version).then(|| format!("it tells no version, but: {version}")));
    let library = abi.and_then(|abi| beside_launcher(&path, abi));
    let library = library.map(|library| {
        let answer = ask::ask(&library, &[]);
        (library, answer)
    });
    Launcher { names, version, abi, complaint, library }
}

fn launcher(launcher: &Launcher, linked: Option<&Linked>, preload: Option<&Path>) -> Finding {
    let names = launcher.names.join(", ");
    if let Some(complaint) = &launcher.complaint {
        let name = launcher.names[0];
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
        launcher.library.as_ref().and_then(|(path, answer)| Some((path, answer.as_ref().ok()?)));
    let identity = asked.map(|(path, answer)| identify_library(answer, path));
    let abi = asked.and_then(|(path, answer)| recorder_abi(answer, path)).unwrap_or(named);
    let title = match &identity {
        Some(identity) if !identity.family.is_tested() => {
            format!("{}, untested with lapscope", identity.title())
        }
        Some(identity) => identity.title(),
        None => launcher.version.clone(),
    };
    if let Some(linked) = linked.filter(|linked| !fits(launcher, linked)) {
        return Finding::ok(
            TOPIC,
            names,
            format!("{title}: not for this program, which has {}", linked.identity.title()),
        );
    }
    if let Some((path, Err(reason))) = &launcher.library {
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

/// How a recorder that is missing is had.
pub fn make_recorder(abi: &str) -> String {
    let package = match abi {
        "openmpi" => "Debian: libopenmpi-dev",
        "mpich" => "Debian: libmpich-dev",
        _ => "pip install mpich",
    };
    format!(
        "install lapscope anew; where it is built from source: make the MPI's compiler wrapper known ({package}; elsewhere: \
         mpicc in PATH, or cmake -DLAPSCOPE_MPICC=/path/to/mpicc), then `make build`"
    )
}

/// Whether it starts ranks of the program's MPI.
fn fits(launcher: &Launcher, linked: &Linked) -> bool {
    let asked = launcher.library.as_ref();
    let asked = asked.and_then(|(path, answer)| recorder_abi(answer.as_ref().ok()?, path));
    let is_shared = linked.abi == "mpiabi"; // it says nothing of who starts it
    let is_same = launcher.abi.map_or(true, |named| asked.unwrap_or(named) == linked.abi);
    launcher.complaint.is_none() && (is_shared || is_same)
}

/// Launchers that are there, and none of the program's MPI; or the one that everybody types is another's.
fn mismatch(launchers: &[Launcher], linked: Option<&Linked>) -> Option<Finding> {
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
