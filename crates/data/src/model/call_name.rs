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
    /// Whether the bytes of its rows went over in it. Others have bytes that are counted in other rows.
    pub counted: bool,
    /// What collectives need.
    pub needs: Option<Needs>,
    /// What calls end that end requests.
    pub completes: Option<Completes>,
    /// The call that does the same and returns when it is done; its own name where there is none.
    pub blocking: String,
}

impl CallName {
    /// A call of which nothing is known but that its rows count.
    pub fn unknown(name: String) -> CallName {
        CallName { blocking: name.clone(), name, counted: true, ..CallName::default() }
    }

    /// Whether it sends what MPI may keep until the receiver comes, and nothing else: then lapscope may, too (LAPSCOPE_BUFFER_SENDS).
    pub fn is_standard_send(&self) -> bool {
        self.mode == Some(Mode::Standard)
            && self.transfers == Some(Transfers::Send)
            && matches!(self.role.as_str(), "BLOCK" | "POST")
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
            _ if self.makes_together() => Category::Collective,
            _ => Category::Other,
        }
    }

    /// Whom a member of the communicator, window or file has to wait for in a call that all members make in the same order;
    /// `None` of other calls. Besides what is called a collective: what makes communicators, windows and files of a
    /// communicator, fences, and collective I/O (MPI-4.1 7.4.2, 12.2.1, 12.5.1, 14.2.1, 14.4.1).
    pub fn gathers(&self) -> Option<Needs> {
        let name = self.blocking.strip_prefix("MPI_").unwrap_or(&self.blocking);
        let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
        let all = |is_meant: bool| is_meant.then_some(Needs::All);
        match self.family.as_str() {
            "COLLECTIVE" | "NEIGHBORHOOD" => self.needs,
            "COMMUNICATOR" => all(begins(&[
                "Comm_dup",
                "Comm_idup",
                "Comm_split",
                "Cart_",
                "Graph_create",
                "Dist_graph_create",
            ]) || ["Comm_create", "Intercomm_merge"].contains(&name)),
            "DYNAMIC" => all(begins(&["Comm_spawn"])),
            "WINDOW" => all(begins(&["Win_create", "Win_allocate", "Win_fence"])),
            "FILE" if name.contains("_ordered") => {
                (!name.ends_with("_end")).then_some(Needs::Lower)
            }
            "FILE" => {
                all(begins(&["File_open", "File_set_size", "File_set_view", "File_preallocate"])
                    || (name.contains("_all")
                        && !name.ends_with("_end")
                        && !name.contains("_preallocate")))
            }
            _ => None,
        }
    }

    /// Whom a member of it waits for: as the call says, or as all of its kind do.
    pub fn waits_for(&self) -> Option<Needs> {
        self.needs.or_else(|| self.gathers())
    }

    /// Whether it synchronises all members of a window.
    pub fn is_fence(&self) -> bool {
        self.role == "BLOCK" && self.family == "WINDOW" && self.gathers().is_some()
    }

    /// Whether it makes a communicator, which all members do together: none has it before all have come.
    pub fn makes_together(&self) -> bool {
        self.role == "MANAGE" && self.family == "COMMUNICATOR" && self.gathers().is_some()
    }

    /// Whether it waits until buffered sends have been taken, as MPI_Buffer_detach: it names no message (MPI-4.1 3.6).
    pub fn drains_buffers(&self) -> bool {
        self.role == "BLOCK" && self.family == "POINT_TO_POINT" && self.transfers.is_none()
    }

    /// What it waits for at ranks that it does not name, as part of a window's epoch.
    pub fn epoch(&self) -> Option<Epoch> {
        match self.blocking.strip_prefix("MPI_Win_").filter(|_| self.role == "BLOCK")? {
            "start" | "complete" | "wait" => Some(Epoch::Calls),
            "lock_all" | "flush_all" | "unlock_all" => Some(Epoch::Progress),
            _ => None,
        }
    }

    /// Whether a call's rows of this kind, which name a communicator or do not, are of calls that returned an error: of those nothing
    /// but the time is recorded.
    pub fn has_failed(&self, kind: Kind, has_communicator: bool) -> bool {
        let communicates = matches!(self.kind, Kind::Send | Kind::Recv | Kind::Collective);
        self.role == "BLOCK" && communicates && kind == Kind::Other && !has_communicator
    }

    /// Whether it sends and receives, as MPI_Sendrecv.
    pub fn sends_and_receives(&self) -> bool {
        self.transfers == Some(Transfers::Both)
    }
}

/// What a call of a window may wait for (MPI-4.1 12.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// That others make the calls which belong to it: MPI_Win_post, MPI_Win_complete.
    Calls,
    /// That targets are inside MPI, where the MPI moves no data without them.
    Progress,
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
        /// Receives have it, too.
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
    fn what_all_members_call_is_told_by_family_and_name() {
        let needs = |family: &str, name: &str| {
            CallName { family: family.into(), ..CallName::unknown(name.into()) }.gathers()
        };
        for (family, name) in [
            ("COMMUNICATOR", "MPI_Comm_dup"),
            ("COMMUNICATOR", "MPI_Comm_create"),
            ("WINDOW", "MPI_Win_fence"),
            ("FILE", "MPI_File_open"),
            ("FILE", "MPI_File_write_at_all"),
        ] {
            assert_eq!(needs(family, name), Some(Needs::All), "{name}");
        }
        for (family, name) in [
            ("COMMUNICATOR", "MPI_Comm_create_group"),
            ("COMMUNICATOR", "MPI_Comm_free"),
            ("WINDOW", "MPI_Win_lock_all"),
            ("FILE", "MPI_File_write_all_end"),
            ("FILE", "MPI_File_write_at"),
        ] {
            assert_eq!(needs(family, name), None, "{name}");
        }
    }

    #[test]
    fn words_of_a_later_version_are_other() {
        let needs = |word: &str| Needs::column_result(ValueRef::Text(word.as_bytes())).unwrap();
        assert_eq!((needs("all_at_root"), needs("upper")), (Needs::AllAtRoot, Needs::Other));
    }
}
