//! Single requests: which of them are wanted, and the costliest first.

mod read;
mod row;
mod top;

use std::collections::{BTreeMap, HashSet};

use rustc_hash::FxHashMap;
use serde::Serialize;

use lapscope_data::model::{Kind, MemoryKind, Nanos, Rank, RequestEnded};
use lapscope_data::places::{CallPathId, Places};
use lapscope_data::symbols::{FrameName, NameFrames};

pub use read::Requests;
pub use top::merge_top;

/// Which requests are wanted; empty and `None` mean all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub ranks: Vec<Rank>,
    /// Function names as the user typed them: "MPI_Isend" or "isend".
    pub calls: Vec<String>,
    pub kind: Option<Kind>,
    pub peer: Option<Rank>,
    pub tag: Option<i64>,
    pub min_bytes: Option<u64>,
    pub max_bytes: Option<u64>,
    pub ended: Option<RequestEnded>,
}

/// Whether a call's name is one of those that the user typed; any, when none was.
pub fn is_wanted_call(name: &str, wanted: &[String]) -> bool {
    let bare = |name: &str| name.to_ascii_lowercase().trim_start_matches("mpi_").to_owned();
    wanted.is_empty() || wanted.iter().any(|wanted| bare(wanted) == bare(name))
}

/// Order of requests, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRanking {
    /// Time in the completing call
    Completion,
    /// Time in the posting call
    Post,
    /// Overlap window: from post to completing call
    OverlapWindow,
    /// Bytes transferred
    Bytes,
    /// Unsuccessful tests
    UnsuccessfulTests,
    /// In the order of their posts, the earliest first
    Begin,
    /// As the files have them, rank by rank: needs no memory, however many they are
    Stored,
}

/// Everything about one request; keys are documented in `docs/json.md`. Moments are since the rank's epoch, as in the
/// database, but those that say after what.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    pub rank: Rank,
    pub id: i64,
    pub thread: i64,
    pub call: String,
    /// The call that made a persistent request; `None` for others.
    pub init_call: Option<String>,
    pub kind: Kind,
    pub bytes: u64,
    pub peer: Option<Rank>,
    pub tag: Option<i64>,
    /// What a request that sends (MPI_Isendrecv) also receives.
    pub receive_bytes: Option<u64>,
    pub receive_peer: Option<Rank>,
    pub receive_tag: Option<i64>,
    pub communicator: Option<String>,
    pub ended: Option<String>,
    pub post_begin_ns: Nanos,
    /// From the return of MPI_Init, as in `lapscope hang --pending`.
    pub post_begin_after_init_ns: Nanos,
    pub post_ns: Nanos,
    pub overlap_window_ns: Option<Nanos>,
    pub mpi_ns: Option<Nanos>,
    pub compute_ns: Option<Nanos>,
    pub completion_call: Option<String>,
    pub completion_begin_ns: Option<Nanos>,
    pub completion_begin_after_init_ns: Option<Nanos>,
    pub completion_ns: Option<Nanos>,
    pub completed_together: Option<u64>,
    pub outstanding_bytes: u64,
    pub unsuccessful_tests: u64,
    pub first_unsuccessful_test_ns: Option<Nanos>,
    pub last_unsuccessful_test_ns: Option<Nanos>,
    pub last_incomplete_ns: Option<Nanos>,
    pub first_complete_ns: Option<Nanos>,
    pub posted_peer: Option<i64>,
    pub posted_tag: Option<i64>,
    pub posted_bytes: u64,
    pub injection_arm: Option<i64>,
    /// Where its data lay; `None`: no accelerator's driver was asked.
    pub memory: Option<MemoryKind>,
    /// What was counted outside of MPI while it was under way, by counter; `None`: nothing was counted.
    pub counters: Option<BTreeMap<String, i64>>,
    /// "function file:line" of the post and of the completing call; filled in by [`PlaceNames`].
    pub site: Option<String>,
    pub completion_site: Option<String>,
    #[serde(skip)]
    pub path: Option<CallPathId>,
    #[serde(skip)]
    pub completion_path: Option<CallPathId>,
}

/// Names places, each once.
pub struct PlaceNames<'a> {
    places: &'a Places,
    known: FxHashMap<CallPathId, Option<String>>,
}

impl<'a> PlaceNames<'a> {
    pub fn new(places: &'a Places) -> Self {
        PlaceNames { places, known: FxHashMap::default() }
    }

    /// Fills in where a request was posted and where it ended.
    pub fn fill_in(&mut self, request: &mut Request, names: &mut dyn NameFrames) {
        request.site = self.place(request.path, names);
        request.completion_site = self.place(request.completion_path, names);
    }

    fn place(&mut self, path: Option<CallPathId>, names: &mut dyn NameFrames) -> Option<String> {
        let path = path?;
        if let Some(place) = self.known.get(&path) {
            return place.clone();
        }
        let named = self.places.frame_of(path).map(|frame| names.name(frame));
        let place = named.and_then(|names| names.first().map(FrameName::short));
        self.known.insert(path, place.clone());
        place
    }
}

/// The paths that have `text` in a function or file name.
pub fn paths_mentioning(
    places: &Places,
    text: &str,
    names: &mut dyn NameFrames,
) -> HashSet<CallPathId> {
    let mut mentions = |frame| names.name(frame).iter().any(|name| name.mentions(text));
    let mut is_wanted =
        |path: &CallPathId| places.path(*path).frames.iter().any(|&frame| mentions(frame));
    places.path_ids().filter(|path| is_wanted(path)).collect()
}
