//! Ranks that stand at the same place: of many ranks who is where, the odd ones out among them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{gone_after_init, PendingItem, PendingKind};
use lapscope_data::model::{Ended, Nanos, Rank, RankInfo};
use lapscope_data::symbols::FrameName;

/// A rank that did not reach MPI_Finalize, and was in no call when its recording ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankOutside {
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub ended: Ended,
    /// Since MPI_Init returned; what came then was not recorded.
    pub last_after_init_ns: Nanos,
    /// As [`PendingItem::gone_after_init_ns`].
    pub gone_after_init_ns: Option<Nanos>,
}

/// Ranks whose recording ended in the same way at the same place.
#[derive(Debug, Clone, Serialize)]
pub struct PlaceGroup {
    pub ended: Ended,
    /// That they were inside of; `None`: outside MPI.
    pub call: Option<String>,
    pub site: Option<FrameName>,
    pub count: usize,
    /// When they entered the call; of ranks outside MPI the last that was recorded; since MPI_Init returned.
    pub first_after_init_ns: Nanos,
    pub last_after_init_ns: Nanos,
    /// That had not ended.
    pub requests: usize,
    pub ranks: Vec<Rank>,
    /// Their nodes, each once.
    pub hosts: Vec<String>,
    /// Call path of the first of them.
    #[serde(skip)]
    pub frames: Vec<FrameName>,
}

/// Which of these ranks were outside MPI, in order. `items` are in the order of ranks.
pub fn find_outside<'a>(
    infos: impl IntoIterator<Item = &'a RankInfo>,
    items: &[PendingItem],
) -> Vec<RankOutside> {
    let is_inside = |rank: Rank, life: i64| {
        let first = items.partition_point(|item| (item.rank, item.life) < (rank, life));
        let mine = items[first..].iter().take_while(|item| (item.rank, item.life) == (rank, life));
        mine.into_iter().any(|item| item.what == PendingKind::Call)
    };
    let mut outside: Vec<RankOutside> = infos
        .into_iter()
        .filter(|info| info.ended != Ended::Finalize && !is_inside(info.rank, info.life))
        .map(|info| RankOutside {
            rank: info.rank,
            life: info.life,
            host: info.host.clone(),
            ended: info.ended,
            last_after_init_ns: info.run_time(),
            gone_after_init_ns: gone_after_init(info),
        })
        .collect();
    outside.sort_by_key(|it| (it.rank, it.life));
    outside
}

/// The largest group first. `items` and `outside` are in the order of ranks.
pub fn group_places(items: &[PendingItem], outside: &[RankOutside]) -> Vec<PlaceGroup> {
    let mut groups: BTreeMap<(String, String, Ended), PlaceGroup> = BTreeMap::new();
    let mut add = |member: PendingMember<'_>| {
        let PendingMember { rank, host, ended, call, after_init, requests } = member;
        let site = call.and_then(|call| call.frames.first());
        let names = (call.map_or("", |call| &call.call), site.map(FrameName::short));
        let key = (names.0.to_owned(), names.1.unwrap_or_default(), ended);
        let group = groups.entry(key).or_insert_with(|| PlaceGroup {
            ended,
            call: call.map(|call| call.call.clone()),
            site: site.cloned(),
            count: 0,
            first_after_init_ns: after_init,
            last_after_init_ns: after_init,
            requests: 0,
            ranks: Vec::new(),
            hosts: Vec::new(),
            frames: call.map_or_else(Vec::new, |call| call.frames.clone()),
        });
        group.count += 1;
        group.requests += requests;
        group.first_after_init_ns = group.first_after_init_ns.min(after_init);
        group.last_after_init_ns = group.last_after_init_ns.max(after_init);
        group.ranks.push(rank);
        group.hosts.push(host.to_owned());
    };
    for of_rank in items.chunk_by(|a, b| (a.rank, a.life) == (b.rank, b.life)) {
        let first = &of_rank[0];
        let requests = of_rank.iter().filter(|item| item.what == PendingKind::Request).count();
        let call = (first.what == PendingKind::Call).then_some(first);
        let is_outside =
            outside.binary_search_by_key(&(first.rank, first.life), |it| (it.rank, it.life));
        let after_init = match is_outside {
            Ok(place) => outside[place].last_after_init_ns,
            Err(_) => first.begin_after_init_ns,
        };
        let (rank, host, ended) = (first.rank, &first.host, first.ended);
        add(PendingMember { rank, host, ended, call, after_init, requests });
    }
    let has_items = |it: &RankOutside| {
        items.binary_search_by_key(&(it.rank, it.life), |item| (item.rank, item.life)).is_ok()
    };
    for it in outside.iter().filter(|it| !has_items(it)) {
        let RankOutside { rank, host, ended, last_after_init_ns: after_init, .. } = it;
        let (rank, ended, after_init) = (*rank, *ended, *after_init);
        add(PendingMember { rank, host, ended, call: None, after_init, requests: 0 });
    }
    let mut groups: Vec<PlaceGroup> = groups.into_values().collect();
    for group in &mut groups {
        group.ranks.sort_unstable();
        group.hosts.sort_unstable();
        group.hosts.dedup();
    }
    groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.ranks.cmp(&b.ranks)));
    groups
}

/// A rank that joins a group.
struct PendingMember<'a> {
    rank: Rank,
    host: &'a str,
    ended: Ended,
    call: Option<&'a PendingItem>,
    after_init: Nanos,
    requests: usize,
}
