//! A program that the user asks about: can it be profiled, and with which MPI does it run?

use std::path::{Path, PathBuf};

use super::ask::{self, LibraryAccount};
use super::family::{identify, make_recorder, recorder_abi, Family, Identity};
use super::{Finding, Status};
use crate::install;
use lapscope_data::program::{self, MpiLibrary, ProgramFile, ProgramKind};

const TOPIC: &str = "program";

/// What was found out of it.
pub struct Subject {
    pub findings: Vec<Finding>,
    /// The MPI that it links, as far as that is known.
    pub mpi: Option<Linked>,
    /// It may load an MPI that its file does not name.
    pub is_open: bool,
}

pub struct Linked {
    pub identity: Identity,
    pub path: PathBuf,
    pub answer: LibraryAccount,
    /// The ABI of the recorder that it takes.
    pub abi: &'static str,
}

/// # Errors
/// The file cannot be read.
pub fn look(path: &Path) -> std::io::Result<Subject> {
    let program = program::inspect(path)?;
    let mut findings = vec![kind(&program)];
    let mut mpi = None;
    if program.kind == ProgramKind::Dynamic && program.obstacle().is_none() {
        if !program.missing.is_empty() {
            let says = format!("not found: {}", program.missing.join(", "));
            let advice = "load the modules that it was built with, or set LD_LIBRARY_PATH";
            let missing = Finding::missing(TOPIC, "libraries", says, advice);
            findings.push(missing.follows("the program does not start"));
        }
        let (finding, linked) = linked(&program);
        findings.push(finding);
        findings.push(debug_info(&program));
        mpi = linked;
    }
    let is_open = findings[0].status == Status::Ok && program.mpi.is_empty();
    Ok(Subject { findings, mpi, is_open })
}

fn kind(program: &ProgramFile) -> Finding {
    let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(obstacle) = program.obstacle() {
        let finding = Finding::missing(TOPIC, name, obstacle.what(), obstacle.cure());
        return finding.follows("nothing of it can be recorded");
    }
    match program.kind {
        ProgramKind::Dynamic | ProgramKind::Static => {
            Finding::ok(TOPIC, name, "dynamically linked")
        }
        ProgramKind::Script => script(name, program.interpreter.as_deref()),
        ProgramKind::Other => Finding::missing(
            TOPIC,
            name,
            "neither an ELF program nor a script that names its interpreter",
            "name the program that it runs: lapscope doctor PROGRAM",
        ),
    }
}

/// What is recorded of a script is what its interpreter runs, and that may be as unfit as any program.
fn script(name: String, interpreter: Option<&Path>) -> Finding {
    let Some(interpreter) = interpreter else {
        return Finding::ok(TOPIC, name, "a script");
    };
    let place = interpreter.display();
    match program::inspect(interpreter).map(|program| program.obstacle()) {
        Err(_) => {
            let says = format!("a script for {place}, which is not there");
            Finding::missing(
                TOPIC,
                name,
                says,
                "put the interpreter that is there into its first line",
            )
        }
        Ok(Some(obstacle)) => {
            let says = format!("a script for {place}, which {}", obstacle.what());
            Finding::missing(TOPIC, name, says, obstacle.cure())
        }
        Ok(None) => Finding::ok(
            TOPIC,
            name,
            format!("a script for {place}: what it runs is recorded, whichever MPI that loads"),
        ),
    }
}

fn linked(program: &ProgramFile) -> (Finding, Option<Linked>) {
    let Some(library) = program.mpi.first() else {
        let finding = Finding::note(
            TOPIC,
            "MPI",
            "links no MPI library",
            "where it should have one: link it with the MPI's compiler wrapper, as mpicc",
        );
        let follows =
            "nothing is recorded, unless it loads its MPI while it runs, as Python, Julia and R do";
        return (finding.follows(follows), None);
    };
    let Some(path) = &library.path else {
        let says = format!("{}, which is not found", library.name);
        let advice = "load the module of the MPI that it was built with, or set LD_LIBRARY_PATH";
        return (Finding::missing(TOPIC, "MPI", says, advice), None);
    };
    match ask::ask(path, &program.places) {
        Err(reason) => (unanswered(library, path, &reason), None),
        Ok(answer) => answered(path, answer),
    }
}

fn unanswered(library: &MpiLibrary, path: &Path, reason: &str) -> Finding {
    let says =
        format!("{} ({}) cannot be asked which MPI it is: {reason}", library.name, path.display());
    let advice = "LD_DEBUG=libs PROGRAM shows what it loads; load its modules, and try again";
    let follows = format!("by its name its ABI is {}; ranks may fail in MPI_Init", library.abi);
    Finding::warn(TOPIC, "MPI", says, advice).follows(follows)
}

fn answered(path: &Path, answer: LibraryAccount) -> (Finding, Option<Linked>) {
    let identity = identify(&answer, path);
    let says = format!("{} ({})", identity.title(), path.display());
    let Some(abi) = recorder_abi(&answer, path) else {
        let finding = Finding::missing(TOPIC, "MPI", says, no_abi(identity.family));
        return (
            finding.follows("its ABI is none that a recorder is made for: nothing is recorded"),
            None,
        );
    };
    let preload = install::preload_library().ok();
    let finding = match preload.and_then(|preload| install::recorder(&preload, abi)) {
        None => Finding::missing(
            TOPIC,
            "MPI",
            format!("{says}, for which there is no recorder (ABI {abi})"),
            make_recorder(abi),
        ),
        Some(_) if !identity.family.is_tested() => untested(&says, &identity, abi),
        Some(_) => Finding::ok(TOPIC, "MPI", format!("{says}: recorder {abi}")),
    };
    (finding, Some(Linked { identity, path: path.into(), answer, abi }))
}

fn no_abi(family: Family) -> &'static str {
    match family {
        Family::Mpt => {
            "build it with an MPI of the ABI of MPICH or Open MPI (HPE's MPT has its own)"
        }
        Family::Wrapper => "ask about the MPI behind it: MPITRAMPOLINE_LIB names that",
        _ => "build it with Open MPI, or with MPICH or one of its relatives",
    }
}

fn untested(says: &str, identity: &Identity, abi: &str) -> Finding {
    let name = identity.family.name();
    let advice =
        "hold a short run with `lapscope run` against one without: output, exit code, time";
    let says = format!("{says}: recorder {abi}, untested with {name}");
    Finding::note(TOPIC, "MPI", says, advice).follows(format!(
        "{name} has the ABI that the recorder is made for; no test of lapscope runs under it"
    ))
}

fn debug_info(program: &ProgramFile) -> Finding {
    if program.debug_info {
        return Finding::ok(TOPIC, "line numbers", "debug information is there");
    }
    Finding::note(
        TOPIC,
        "line numbers",
        "no debug information",
        "compile with -g; it costs no run time",
    )
    .follows("call sites are shown as functions without lines")
}
