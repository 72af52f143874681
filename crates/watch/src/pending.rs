//! What had not ended when the recording did: requests, and calls that a process was inside of when it was killed.

pub mod groups;

use serde::Serialize;

use lapscope_data::db::FileDefinitions;
use lapscope_data::model::{CallPath, Ended, Nanos, Rank, RankInfo};
pub use lapscope_data::pending::PendingKind;
use lapscope_data::pending::PendingRow;
use lapscope_data::places::Places;
use lapscope_data::symbols::{name_path, FrameName, NameFrames};

/// A row that did not end, named.
#[derive(Debug, Clone, Serialize)]
pub struct PendingItem {
    pub what: PendingKind,
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    /// How the rank's recording ended.
    pub ended: Ended,
    pub thread: i64,
    pub call: String,
    pub bytes: u64,
    /// `None` when not known, as of a receive from any source.
    pub peer: Option<Rank>,
    /// As the program gave it, in the communicator; -1 MPI_ANY_SOURCE, -2 MPI_PROC_NULL.
    pub posted_peer: Option<i64>,
    pub tag: Option<i64>,
    pub communicator: Option<String>,
    /// Since the rank's epoch.
    pub begin_ns: Nanos,
    /// Since MPI_Init returned.
    pub begin_after_init_ns: Nanos,
    /// The last that was recorded of the rank, since MPI_Init returned: it had not ended before.
    pub last_after_init_ns: Nanos,
    /// When ranks that were killed had ended at the latest, since MPI_Init returned, where it is known.
    pub gone_after_init_ns: Option<Nanos>,
    pub frames: Vec<FrameName>,
}

/// Rows of one file with what is needed to name them.
#[derive(Debug)]
pub struct FilePending {
    pub definitions: FileDefinitions,
    pub rows: Vec<PendingRow>,
}

/// All files' rows in the order of rank; open calls before requests, the oldest first.
pub fn collect_pending(
    files: &[FilePending],
    places: &Places,
    names: &mut dyn NameFrames,
) -> Vec<PendingItem> {
    let mut items = Vec::new();
    for file in files {
        let ranks = file.definitions.ranks_by_key();
        for row in &file.rows {
            let path = row.path.map(|path| places.path(path));
            items.extend(ranks.get(&row.rank).map(|info| name_item(info, row, path, names)));
        }
    }
    items.sort_by_key(|item: &PendingItem| (item.rank, item.life, item.what, item.begin_ns));
    items
}

fn gone_after_init(info: &RankInfo) -> Option<Nanos> {
    info.gone.filter(|_| info.ended == Ended::Killed).map(|gone| gone - info.init_end)
}

fn name_item(
    info: &RankInfo,
    row: &PendingRow,
    path: Option<&CallPath>,
    names: &mut dyn NameFrames,
) -> PendingItem {
    PendingItem {
        what: row.what,
        rank: info.rank,
        life: info.life,
        host: info.host.clone(),
        ended: info.ended,
        thread: row.thread,
        call: row.call.clone(),
        bytes: row.bytes,
        peer: row.peer.map(|peer| info.rank.neighbor(peer)),
        posted_peer: row.posted_peer,
        tag: row.tag,
        communicator: row.communicator.clone(),
        begin_ns: row.begin,
        begin_after_init_ns: row.begin - info.init_end,
        last_after_init_ns: info.run_time(),
        gone_after_init_ns: gone_after_init(info),
        frames: path.map_or_else(Vec::new, |path| name_path(&path.frames, names)),
    }
}

impl PendingItem {
    /// "MPI_Irecv from rank 3, tag 7, 1024 bytes at exchange halo.c:42".
    pub fn describe(&self) -> String {
        let mut text = self.describe_without_place();
        if let Some(frame) = self.frames.first() {
            text += &format!(" at {}", frame.short());
        }
        text
    }

    /// "MPI_Irecv from rank 3, tag 7, 1024 bytes".
    pub fn describe_without_place(&self) -> String {
        self.posted().describe()
    }

    /// "to rank 3", "from any source"; `None` where there is no partner.
    pub fn peer_text(&self) -> Option<String> {
        self.posted().peer_text()
    }

    fn posted(&self) -> Posted<'_> {
        let PendingItem { call, peer, posted_peer, tag, bytes, .. } = self;
        Posted { call, peer: *peer, posted_peer: *posted_peer, tag: *tag, bytes: *bytes }
    }
}

/// What is said of a call or request that has not ended: see [`PendingItem`].
#[derive(Debug, Clone, Copy)]
pub struct Posted<'a> {
    pub call: &'a str,
    pub peer: Option<Rank>,
    pub posted_peer: Option<i64>,
    pub tag: Option<i64>,
    pub bytes: u64,
}

impl Posted<'_> {
    /// "MPI_Irecv from rank 3, tag 7, 1024 bytes".
    pub fn describe(&self) -> String {
        let mut text = self.call.to_owned();
        if let Some(peer) = self.peer_text() {
            text += &format!(" {peer}");
        }
        let is_point_to_point = self.peer.is_some() || self.posted_peer.is_some();
        if let Some(tag) = self.tag.filter(|_| is_point_to_point) {
            text += &if tag < 0 { ", any tag".to_owned() } else { format!(", tag {tag}") };
        }
        if self.bytes > 0 {
            text += &format!(", {} bytes", self.bytes);
        }
        text
    }

    /// "to rank 3", "from any source"; `None` where there is no partner.
    pub fn peer_text(&self) -> Option<String> {
        let direction =
            if self.call.contains("ecv") || self.call.contains("robe") { "from" } else { "to" };
        match (self.peer, self.posted_peer) {
            (_, Some(-1)) => Some(format!("{direction} any source")),
            (_, Some(-2)) => Some(format!("{direction} MPI_PROC_NULL")),
            (Some(peer), _) => Some(format!("{direction} rank {peer}")),
            (None, Some(peer)) => Some(format!("{direction} rank {peer} of its communicator")),
            (None, None) => None,
        }
    }
}
