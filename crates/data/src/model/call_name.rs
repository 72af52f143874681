//! What a database says of each MPI function (`call_name`): it comes from calls.def, and nothing else tells functions apart.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use serde::{Deserialize, Serialize};

use super::{Category, Kind};

/// A row of `call_name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallName {
    pub name: String,
    pub family: String,
    pub role: String,
    /// The kind of its operations.
    pub kind: Kind,
    /// `None` where it is no point-to-point communication.
    pub transfers: Option<Transfers>,
    /// `None` where it neither sends nor is partitioned.
    pub mode: Option<Mode>,
    /// Whether the bytes of its rows went over in it. Others tell of bytes that are counted in other rows.
    pub counted: bool,
    /// Of collectives.
    pub needs: Option<Needs>,
    /// Of calls that end requests.
    pub completes: Option<Completes>,
    /// The call that does the same and returns when it is done; its own name where there is none.
    pub blocking: String,
}

impl CallName {
    /// A call of which nothing is known but that its rows count.
    pub fn unknown(name: String) -> CallName {
        CallName { blocking: name.clone(), name, counted: true, ..CallName::default() }
    }

    /// The category of this call's rows (unsuccessful tests are marked by their tally rows, not by their call).
    pub fn category(&self) -> Category {
        match (self.role.as_str(), self.family.as_str()) {
            ("POST", _) => Category::Posting,
            ("COMPLETE", _) => Category::Completing,
            ("BOUND", _) => Category::Outside,
            (_, "WINDOW") => Category::Rma,
            (_, "FILE") => Category::Io,
            ("BLOCK", "COLLECTIVE" | "NEIGHBORHOOD") => Category::Collective,
            ("BLOCK" | "PROBE", "POINT_TO_POINT") => Category::BlockingPointToPoint,
            _ => Category::Other,
        }
    }

    /// Whether it sends and receives, as MPI_Sendrecv.
    pub fn sends_and_receives(&self) -> bool {
        self.transfers == Some(Transfers::Both)
    }
}

/// How MPI names the call that does the same as a collective without blocking: `MPI_Iallreduce` of `MPI_Allreduce`.
pub fn nonblocking_name(call: &str) -> String {
    let name = call.strip_prefix("MPI_").unwrap_or(call);
    let (first, rest) = name.split_at(name.len().min(1));
    format!("MPI_I{}{rest}", first.to_ascii_lowercase())
}

/// Defines the words of a column as an enum; a word of a later lapscope is `Other`.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// What this lapscope does not know.
            Other,
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                Ok(match value.as_str()? {
                    $($word => $name::$variant,)*
                    _ => $name::Other,
                })
            }
        }
    };
}

words! {
    /// Which way data go.
    Transfers {
        Send = "send",
        Receive = "receive",
        Both = "both",
        /// Whatever the request is for that it starts.
        Started = "started",
    }
}

words! {
    /// The mode of a send (MPI-4.1 3.4).
    Mode {
        Standard = "standard",
        Synchronous = "synchronous",
        Buffered = "buffered",
        Ready = "ready",
        /// Of receives, too.
        Partitioned = "partitioned",
    }
}

words! {
    /// Whom a member of a collective has to wait for.
    Needs {
        /// Nobody leaves before everybody has entered.
        All = "all",
        /// All but the root wait for the root.
        Root = "root",
        /// The root waits for all, the others for nobody.
        AllAtRoot = "all_at_root",
        /// Those of lower rank.
        Lower = "lower",
        /// Its neighbours in a topology, whom nothing tells.
        Neighbors = "neighbors",
    }
}

words! {
    /// Which of its requests a call waits or tests for.
    Completes {
        One = "one",
        All = "all",
        Any = "any",
        Some = "some",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_later_version_are_other() {
        let needs = |word: &str| Needs::column_result(ValueRef::Text(word.as_bytes())).unwrap();
        assert_eq!((needs("all_at_root"), needs("upper")), (Needs::AllAtRoot, Needs::Other));
    }
}
