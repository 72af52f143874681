//! What has to be known of all ranks before parts are made: who they are, where their rows lie, and whom they talk to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::collective::nearest;
use super::query;
use super::roster::{CommKey, Member};
use super::{Roster, Starvation, Starved};
use lapscope_data::db::{for_each_file, rows_to_scan, DbError, FileDefinitions, PerFile};
use lapscope_data::model::{RankInfo, RankKey};

/// All ranks of a run. Places are those of the [`Roster`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Survey {
    pub files: Vec<PathBuf>,
    pub roster: Arc<Roster>,
    /// By place.
    pub facts: Vec<RankFacts>,
}

/// What is known of one rank.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RankFacts {
    /// Index into [`Survey::files`], and whether it is the first rank of that file.
    pub file: u32,
    pub is_first: bool,
    /// Rows of `call` and `request`; of a file of several ranks an equal part each.
    pub rows: u64,
    /// Places of those that it sends to or receives from, or that send to it, and of roots.
    pub peers: Vec<u32>,
    /// Communicators in which it makes requests of collectives.
    asked_together: Vec<CommKey>,
}

/// As a file tells it.
struct FileMember {
    member: Member,
    is_first: bool,
    rows: u64,
    /// World ranks, and whether it sends to them.
    peers: Vec<(i64, bool)>,
    asked_together: Vec<CommKey>,
}

impl Survey {
    /// Reads the definitions and operations of all files; also why some could not be read.
    ///
    /// # Errors
    /// No file could be read.
    pub fn read(databases: &[PathBuf]) -> Result<(Survey, Vec<DbError>), DbError> {
        let PerFile { read, failed } = for_each_file(databases, |database, definitions| {
            let told = members_of(&database.connection, &definitions);
            Ok((database.path.clone(), told.map_err(DbError::reading(&database.path))?))
        })?;
        let (files, by_file): (Vec<PathBuf>, Vec<Vec<FileMember>>) = read.into_iter().unzip();
        let mut all: Vec<(u32, FileMember)> = (0..)
            .zip(by_file)
            .flat_map(|(file, told)| told.into_iter().map(move |told| (file, told)))
            .collect();
        all.sort_by_key(|(_, told)| (told.member.info.rank, told.member.info.life));
        let roster = Roster::new(all.iter().map(|(_, told)| told.member.clone()).collect());
        let mut sends: Vec<(u32, u32)> = Vec::new();
        let facts = (0..).zip(all).map(|(own, (file, told))| {
            let RankInfo { rank, life, .. } = *told.member.info;
            let place = |&(peer, sends): &(i64, bool)| {
                Some((roster.place(rank.neighbor(peer), life)?, sends))
            };
            let peers: BTreeMap<u32, bool> = told.peers.iter().filter_map(place).collect();
            sends.extend(peers.iter().filter(|(_, sends)| **sends).map(|(&peer, _)| (own, peer)));
            let peers = peers.into_keys().collect();
            let FileMember { rows, is_first, asked_together, .. } = told;
            RankFacts { file, is_first, rows, peers, asked_together }
        });
        let mut facts: Vec<RankFacts> = facts.collect();
        add_senders(&mut facts, &sends);
        Ok((Survey { files, roster: Arc::new(roster), facts }, failed))
    }

    /// Places of the ranks that have to be read to look at these: they themselves, whom they talk to, the next in each of their
    /// communicators, and the members that are looked at where a collective does not block.
    pub fn with_others(&self, focus: &[u32]) -> BTreeSet<u32> {
        let mut wanted: BTreeSet<u32> = focus.iter().copied().collect();
        for &place in focus {
            let facts = &self.facts[place as usize];
            wanted.extend(&facts.peers);
            for key in &self.roster.ranks()[place as usize].communicators {
                wanted.extend(self.roster.next_member(*key, place));
            }
            for key in &facts.asked_together {
                let members = self.roster.communicators.get(key).map_or(&[][..], |all| all);
                wanted.extend(nearest(members, place));
            }
        }
        wanted
    }

    /// Files with the places of those of their ranks that are to be read.
    pub fn by_file(&self, places: &BTreeSet<u32>) -> Vec<(PathBuf, Vec<u32>)> {
        let mut files: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &place in places {
            files.entry(self.facts[place as usize].file).or_default().push(place);
        }
        files.into_iter().map(|(file, of)| (self.files[file as usize].clone(), of)).collect()
    }

    /// Finds places quickly; after it was read from bytes.
    pub fn number(&mut self) {
        Arc::make_mut(&mut self.roster).number();
    }

    /// All places.
    pub fn places(&self) -> std::ops::Range<u32> {
        0..self.facts.len() as u32
    }
}

/// Has those that send to a rank among its peers: what it never received is a matter of their rows.
fn add_senders(facts: &mut [RankFacts], sends: &[(u32, u32)]) {
    for &(from, to) in sends {
        let peers = &mut facts[to as usize].peers;
        if let Err(at) = peers.binary_search(&from) {
            peers.insert(at, from);
        }
    }
}

fn members_of(
    connection: &Connection,
    definitions: &FileDefinitions,
) -> rusqlite::Result<Vec<FileMember>> {
    let rows = rows_to_scan(connection)?;
    let each = rows / definitions.ranks.len().max(1) as u64;
    let epochs = query::epochs(connection)?;
    let mut starved: HashMap<RankKey, Vec<Starved>> = HashMap::new();
    for (rank, interval) in query::starved(connection)? {
        starved.entry(rank).or_default().push(interval);
    }
    let mut members = Vec::new();
    for (slot, info) in definitions.ranks.iter().enumerate() {
        let collectives = |are_requests| -> rusqlite::Result<Vec<CommKey>> {
            let all = query::collectives(connection, info.key, are_requests)?.into_iter();
            Ok(all.map(|(identity, ordinal)| (info.rank.world, identity, ordinal)).collect())
        };
        let starved = starved.remove(&info.key).unwrap_or_default();
        let member = Member {
            info: Arc::new(info.clone()),
            epoch: epochs.get(&info.key).copied().unwrap_or(0),
            is_starved: !Starvation::new(starved).is_empty(),
            rows: if slot == 0 { rows } else { 0 },
            communicators: collectives(false)?,
        };
        members.push(FileMember {
            member,
            is_first: slot == 0,
            rows: each,
            peers: query::peers(connection, info.key)?,
            asked_together: collectives(true)?,
        });
    }
    Ok(members)
}
