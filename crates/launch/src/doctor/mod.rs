//! What `lapscope doctor` looks at. Each look gives findings, and leaves everything as it was.
//!
//! A user at a new site does not know which of a hundred facts matters. So a finding is three sentences: what is there,
//! what follows for overlap or for lapscope, and what to type. What an MPI offers is said only where its own sources,
//! documents or output say so.

pub(crate) mod ask;
pub(crate) mod family;
mod files;
mod filesystem;
pub mod gpu;
mod host;
mod jobs;
mod libraries;
mod limits;
mod machine;
mod mpi;
mod network;
mod permissions;
pub mod progress;
mod shared_memory;
mod subject;
#[cfg(test)]
mod tests;
mod transports;
mod watchpoints;

use std::path::Path;

use serde::Serialize;

pub use ask::{answer as answer_for_mpi, COMMAND as ASK_COMMAND};
use host::Host;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// Works; something of it is worth knowing, and can be changed.
    Note,
    /// Works, with a restriction that may matter.
    Warn,
    /// Something does not work without it.
    Missing,
}

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub topic: &'static str,
    pub name: String,
    pub status: Status,
    pub says: String,
    /// What that means for overlap, or for lapscope.
    pub follows: Option<String>,
    /// What to do about it; each but those that are fine has something.
    pub advice: Option<String>,
}

impl Finding {
    pub fn ok(topic: &'static str, name: impl Into<String>, says: impl Into<String>) -> Finding {
        let (status, name, says) = (Status::Ok, name.into(), says.into());
        Finding { topic, name, status, says, follows: None, advice: None }
    }

    pub fn note(
        topic: &'static str,
        name: impl Into<String>,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        let advice = Some(advice.into());
        Finding { status: Status::Note, advice, ..Finding::ok(topic, name, says) }
    }

    pub fn warn(
        topic: &'static str,
        name: impl Into<String>,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { status: Status::Warn, ..Finding::note(topic, name, says, advice) }
    }

    pub fn missing(
        topic: &'static str,
        name: impl Into<String>,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { status: Status::Missing, ..Finding::note(topic, name, says, advice) }
    }

    /// With what it means.
    #[must_use]
    pub fn follows(mut self, text: impl Into<String>) -> Finding {
        self.follows = Some(text.into());
        self
    }
}

/// In place of what a look has found that broke: the others are as good as ever.
fn broken_look() -> Finding {
    Finding::warn(
        "lapscope",
        "doctor",
        "one of the looks at this machine broke, above; what it would have said is missing here",
        "report it as a mistake of lapscope, with these lines",
    )
}

/// All of it: the program first where there is one, then lapscope, the MPIs, what they communicate by, what starts them,
/// files, and the machine.
///
/// # Errors
/// The program cannot be read.
pub fn look(program: Option<&Path>) -> std::io::Result<Vec<Finding>> {
    let host = Host::here();
    let subject = program.map(subject::look).transpose()?;
    let mut findings = libraries::look();
    // They take their time each: ask the MPIs, start `fi_info`, ask Slurm.
    let rest = std::thread::scope(|scope| {
        let communication = scope.spawn(|| mpi::look(&host, subject.as_ref()));
        let network = scope.spawn(|| network::look(&host));
        let rest = vec![
            scope.spawn(|| jobs::look(&host, subject.as_ref())),
            scope.spawn(|| files::look(&host)),
            scope.spawn(|| limits::look(&host)),
            scope.spawn(|| permissions::look(&host)),
            scope.spawn(|| machine::look(&host)),
        ];
        let first = [communication, network].into_iter();
        first
            .chain(rest)
            .flat_map(|look| look.join().unwrap_or_else(|_| vec![broken_look()]))
            .collect::<Vec<_>>()
    });
    findings.extend(rest);
    let program = subject.map(|subject| subject.findings).unwrap_or_default();
    Ok(program.into_iter().chain(findings).collect())
}
