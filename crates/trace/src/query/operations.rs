//! Operations, and what stands by operation.

use rusqlite::Connection;

use super::{collect, for_each};
use crate::operation::RequestEnd;
use lapscope_data::model::{self, Bytes, Kind, RankKey};

/// A row of `operation`.
pub(crate) struct OperationRow {
    pub id: i64,
    pub rank: RankKey,
    pub call_id: i64,
    /// The call that says what kind of send it is: of persistent requests the one that made them.
    pub mode_call_id: i64,
    pub call_path_id: Option<i64>,
    pub communicator_id: Option<i64>,
    pub kind: Kind,
    pub bytes: Bytes,
    pub peer: Option<i64>,
    pub tag: Option<i64>,
    pub posted_peer: Option<i64>,
    pub ended: RequestEnd,
    pub is_tested: bool,
    pub receive: Option<i64>,
}

impl OperationRow {
    /// What sums are made of.
    pub fn summable(&self) -> model::OperationRow {
        model::OperationRow {
            id: self.id,
            rank: self.rank,
            call_id: self.call_id,
            call_path_id: self.call_path_id,
            kind: self.kind,
            bytes: self.bytes,
            receive_id: self.receive,
        }
    }
}

/// Gives every operation to `take`, in the order of ids.
pub(crate) fn operations(
    connection: &Connection,
    mut take: impl FnMut(OperationRow),
) -> rusqlite::Result<()> {
    let sql =
        "SELECT o.id, o.rank, o.call_id, coalesce(i.call_id, o.call_id), o.call_path_id, o.communicator_id, o.kind, o.bytes, o.peer,
                    o.tag, o.posted_peer, o.ended, o.receive_operation_id
             FROM operation o LEFT JOIN operation i ON i.id = o.init_operation_id ORDER BY o.id";
    for_each(connection, sql, [], |row| {
        let ended = row.get_ref(11)?.as_str_or_null()?;
        take(OperationRow {
            id: row.get(0)?,
            rank: row.get(1)?,
            call_id: row.get(2)?,
            mode_call_id: row.get(3)?,
            call_path_id: row.get(4)?,
            communicator_id: row.get(5)?,
            kind: row.get(6)?,
            bytes: row.get(7)?,
            peer: row.get(8)?,
            tag: row.get(9)?,
            posted_peer: row.get(10)?,
            ended: RequestEnd::parse(ended),
            is_tested: ended == Some("tested"),
            receive: row.get(12)?,
        });
        Ok(())
    })
}

/// Whose an operation is, and where it is called.
pub(crate) struct OperationSite {
    pub id: i64,
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
}

/// Gives those of all operations to `take`.
pub(crate) fn operation_sites(
    connection: &Connection,
    take: impl FnMut(OperationSite),
) -> rusqlite::Result<()> {
    read_sites(connection, "SELECT id, rank, call_id, call_path_id FROM operation", take)
}

/// As [`operation_sites`], of those that are requests.
pub(crate) fn request_sites(
    connection: &Connection,
    take: impl FnMut(OperationSite),
) -> rusqlite::Result<()> {
    let sql = "SELECT id, rank, call_id, call_path_id FROM operation WHERE ended IS NOT NULL";
    read_sites(connection, sql, take)
}

fn read_sites(
    connection: &Connection,
    sql: &str,
    mut take: impl FnMut(OperationSite),
) -> rusqlite::Result<()> {
    for_each(connection, sql, [], |row| {
        take(OperationSite {
            id: row.get(0)?,
            rank: row.get(1)?,
            call_id: row.get(2)?,
            call_path_id: row.get(3)?,
        });
        Ok(())
    })
}

/// A row of `left_out`: posts of an operation that stand nowhere else.
pub(crate) struct LeftOutRow {
    pub operation_id: i64,
    pub count: u64,
    pub begin: i64,
    pub end: i64,
}

pub(crate) fn left_out(connection: &Connection) -> rusqlite::Result<Vec<LeftOutRow>> {
    let sql = "SELECT operation_id, count, begin_ns, end_ns FROM left_out";
    collect(connection, sql, [], |row| {
        Ok(LeftOutRow {
            operation_id: row.get(0)?,
            count: row.get(1)?,
            begin: row.get(2)?,
            end: row.get(3)?,
        })
    })
}

/// Whom a rank communicates with, as the rows name them, and whether it sends to them.
pub(crate) fn peers(connection: &Connection, rank: RankKey) -> rusqlite::Result<Vec<(i64, bool)>> {
    let sql = "SELECT peer, max(kind = 'send') FROM operation WHERE rank = ?1 AND peer IS NOT NULL GROUP BY peer";
    collect(connection, sql, [rank.0], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Identities and ordinals of the communicators in which a rank has collectives, or requests that are collectives.
pub(crate) fn collectives(
    connection: &Connection,
    rank: RankKey,
    are_requests: bool,
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let more = if are_requests { " AND o.ended IS NOT NULL" } else { "" };
    let sql = format!(
        "SELECT DISTINCT c.identity, c.ordinal
         FROM operation o JOIN communicator c ON c.id = o.communicator_id
         WHERE o.rank = ?1 AND o.kind = 'collective'{more}"
    );
    collect(connection, &sql, [rank.0], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Which posts are read.
#[derive(Debug, Clone, Copy)]
pub enum PostSelection {
    /// Posts of at least so many bytes, of a run without injection.
    AtLeast(u64),
    /// Posts in slots without injection.
    Off,
}

/// A post of a request.
#[derive(Debug, Clone, Copy)]
pub struct PostRow {
    pub rank: RankKey,
    pub call_id: i64,
    pub call_path_id: Option<i64>,
    /// Nanoseconds since the rank's epoch.
    pub begin: i64,
    /// Whether nothing was injected then.
    pub is_off: bool,
}

/// Gives the posts of a file to `take`.
///
/// # Errors
/// What SQLite says of a damaged file.
pub fn posts(
    connection: &Connection,
    which: PostSelection,
    mut take: impl FnMut(PostRow),
) -> rusqlite::Result<()> {
    let (wanted, is_off) = match which {
        PostSelection::AtLeast(bytes) => (format!("o.posted_bytes >= {bytes}"), "1"),
        PostSelection::Off => ("r.injection_arm IS NOT NULL".to_owned(), "r.injection_arm = 0"),
    };
    let sql = format!(
        "SELECT o.rank, o.call_id, o.call_path_id, r.post_begin_ns, {is_off}
         FROM request r JOIN operation o ON o.id = r.operation_id WHERE {wanted}"
    );
    for_each(connection, &sql, [], |row| {
        take(PostRow {
            rank: row.get(0)?,
            call_id: row.get(1)?,
            call_path_id: row.get(2)?,
            begin: row.get(3)?,
            is_off: row.get(4)?,
        });
        Ok(())
    })
}

/// Processor time of a blocking collective, nanoseconds.
#[derive(Debug, Clone)]
pub struct CollectiveTimes {
    /// Ranks of its communicator.
    pub ranks: u32,
    /// MPI_Allreduce, …
    pub call: String,
    pub bytes: u64,
    pub wall: i64,
    pub user: i64,
    pub system: i64,
}

/// Blocking collectives on communicators that MPI_Comm_split made, where processor time was recorded, in the order of their begin.
///
/// # Errors
/// What SQLite says of a damaged file.
pub fn split_collectives(connection: &Connection) -> rusqlite::Result<Vec<CollectiveTimes>> {
    let sql = "SELECT m.size, n.name, o.bytes, c.duration_ns, c.user_ns, c.system_ns
        FROM call c JOIN operation o ON o.id = c.operation_id JOIN call_name n ON n.id = o.call_id
             JOIN communicator m ON m.id = o.communicator_id
        WHERE o.kind = 'collective' AND m.name = 'MPI_Comm_split' AND c.user_ns IS NOT NULL
        ORDER BY c.begin_ns";
    collect(connection, sql, [], |row| {
        Ok(CollectiveTimes {
            ranks: row.get(0)?,
            call: row.get(1)?,
            bytes: row.get(2)?,
            wall: row.get(3)?,
            user: row.get(4)?,
            system: row.get(5)?,
        })
    })
}
