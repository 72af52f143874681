//! A program that the user asks about: can it be profiled?

use std::path::Path;

use super::Finding;
use crate::install;
use lapscope_data::program::{self, Kind, Program};

const TOPIC: &str = "program";

/// # Errors
/// The file cannot be read.
pub fn look(path: &Path) -> std::io::Result<Vec<Finding>> {
    let program = program::inspect(path)?;
    let mut findings = vec![kind(&program)];
    if program.kind != Kind::Dynamic {
        return Ok(findings);
    }
    if program.privileged {
        findings.push(Finding::missing(
            TOPIC,
            "privileges",
            "set-uid, set-gid or capabilities: the loader ignores LD_PRELOAD",
            "run a copy without them",
        ));
    }
    if !program.missing.is_empty() {
        findings.push(Finding::missing(
            TOPIC,
            "libraries",
            format!("not found: {}", program.missing.join(", ")),
            "load the modules that it was built with, or set LD_LIBRARY_PATH",
        ));
    }
    findings.push(mpi(&program));
    findings.push(debug_info(&program));
    Ok(findings)
}

fn kind(program: &Program) -> Finding {
    let name = program.path.display().to_string();
    match program.kind {
        Kind::Dynamic => Finding::ok(TOPIC, name, "dynamically linked"),
        Kind::Static => Finding::missing(
            TOPIC,
            name,
            "statically linked: LD_PRELOAD has no effect on it",
            "link it dynamically (on Cray: -dynamic, or CRAYPE_LINK_TYPE=dynamic)",
        ),
        Kind::Script => {
            Finding::ok(TOPIC, name, "a script: what it runs is recorded, whichever MPI that loads")
        }
        Kind::Other => Finding::warn(
            TOPIC,
            name,
            "neither an ELF program nor a script that names its interpreter",
            "name the program that it runs",
        ),
    }
}

fn mpi(program: &Program) -> Finding {
    let preload = install::preload_library().ok();
    let Some(library) = program.mpi.first() else {
        return Finding::warn(
            TOPIC,
            "MPI",
            "links no MPI library",
            "fine when it loads its MPI later, as Python, Julia and R do; else link the MPI dynamically",
        );
    };
    let place = library.path.as_ref().map(|path| format!(" ({})", path.display()));
    let says = format!("{}{}: {}", library.name, place.unwrap_or_default(), library.abi);
    if preload.is_some_and(|preload| install::recorder(&preload, library.abi).is_some()) {
        return Finding::ok(TOPIC, "MPI", says);
    }
    Finding::missing(
        TOPIC,
        "MPI",
        format!("{says}, for which there is no recorder"),
        "put the compiler wrapper of that MPI into PATH, then `make build`",
    )
}

fn debug_info(program: &Program) -> Finding {
    if program.debug_info {
        return Finding::ok(TOPIC, "line numbers", "debug information is there");
    }
    Finding::warn(
        TOPIC,
        "line numbers",
        "no debug information: call sites are shown as functions without lines",
        "compile with -g; it costs no run time",
    )
}
