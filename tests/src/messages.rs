//! What was sent and what was received, put against each other over all ranks of a run.

use std::collections::BTreeMap;
use std::path::Path;

use crate::rows::{databases, open};

/// Source, destination, tag.
type Channel = (i64, i64, i64);

/// Messages and bytes.
type Volume = (i64, i64);

const SENT: &str = "
    SELECT rank, peer, tag, count(*), sum(bytes) FROM
      (SELECT rank, peer, tag, bytes FROM requests WHERE kind = 'send' AND ended NOT IN ('cancelled', 'failed')
       UNION ALL SELECT rank, peer, tag, bytes FROM calls WHERE kind = 'send' AND role <> 'INIT')
    WHERE peer IS NOT NULL GROUP BY rank, peer, tag";

const RECEIVED: &str = "
    SELECT peer, rank, tag, count(*), sum(bytes) FROM
      (SELECT rank, peer, tag, bytes FROM requests WHERE kind = 'recv' AND ended IN ('waited', 'tested')
       UNION ALL SELECT rank, peer, tag, bytes FROM calls WHERE kind = 'recv' AND role = 'BLOCK'
       UNION ALL SELECT rank, receive_peer, receive_tag, receive_bytes FROM calls WHERE receive_peer IS NOT NULL
       UNION ALL SELECT half.rank, half.peer, half.tag, half.bytes FROM request r JOIN operation o ON o.id = r.operation_id
                 JOIN operation half ON half.id = o.receive_operation_id)
    WHERE peer IS NOT NULL GROUP BY rank, peer, tag";

fn volumes(run: &Path, query: &str) -> BTreeMap<Channel, Volume> {
    let mut all = BTreeMap::new();
    for path in databases(run) {
        let database = open(&path);
        let mut statement = database.prepare(query).expect("a query");
        let rows = statement
            .query_map([], |row| {
                Ok(((row.get(0)?, row.get(1)?, row.get(2)?), (row.get(3)?, row.get(4)?)))
            })
            .expect("rows");
        all.extend(rows.map(|row| row.expect("a row")));
    }
    all
}

/// Each message that was received was sent, and the other way round, with as many bytes. For runs in which every message
/// is received and no call fails. `Err` names the channels that differ.
pub fn check(run: &Path) -> Result<(), String> {
    let (sent, received) = (volumes(run, SENT), volumes(run, RECEIVED));
    let differences: Vec<String> = sent
        .keys()
        .chain(received.keys().filter(|channel| !sent.contains_key(channel)))
        .filter(|channel| sent.get(channel) != received.get(channel))
        .map(|channel| {
            let (from, to, tag) = channel;
            let show = |volume: Option<&Volume>| {
                volume.map_or("nothing".to_owned(), |(n, bytes)| format!("{n} with {bytes} bytes"))
            };
            format!(
                "{from} to {to}, tag {tag}: sent {}, received {}",
                show(sent.get(channel)),
                show(received.get(channel))
            )
        })
        .collect();
    if differences.is_empty() {
        Ok(())
    } else {
        Err(format!("messages:\n{}", differences.join("\n")))
    }
}
