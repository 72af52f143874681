//! What `lapscope doctor` looks at. Each look gives findings; none changes anything.

pub mod libraries;
pub mod machine;
pub mod mpi;
pub mod subject;
mod watchpoints;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
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
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    pub fn ok(topic: &'static str, name: impl Into<String>, says: impl Into<String>) -> Finding {
        Finding { topic, name: name.into(), status: Status::Ok, says: says.into(), advice: None }
    }

    pub fn warn(
        topic: &'static str,
        name: impl Into<String>,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        let advice = Some(advice.into());
        Finding { status: Status::Warn, advice, ..Finding::ok(topic, name, says) }
    }

    pub fn missing(
        topic: &'static str,
        name: impl Into<String>,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { status: Status::Missing, ..Finding::warn(topic, name, says, advice) }
    }
}
