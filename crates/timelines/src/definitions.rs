//! What events refer to: nodes, ranks, call sites, communicators.

use lapscope_data::model::{CallName, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::NameFrames;
use lapscope_trace::{CommKey, Half, Trace};
use rustc_hash::FxHashMap;

/// What a run defines.
#[derive(Debug, Default)]
pub struct Definitions {
    /// Hosts, by [`lapscope_trace::RankTrace::node`].
    pub nodes: Vec<String>,
    /// By place.
    pub ranks: Vec<RankName>,
    /// By [`SiteId::number`].
    pub sites: Vec<SiteDefinition>,
    /// The first moment that any rank recorded: moments are written from there on.
    pub origin: i64,
    /// That moment in nanoseconds since 1970.
    pub unix_ns: i64,
    /// From the origin to the last end of any rank, nanoseconds.
    pub length: i64,
    pub command: String,
    /// Places of their members, of those that collectives were called on.
    pub communicators: Vec<(CommKey, Vec<u32>)>,
    numbers: FxHashMap<CommKey, u32>,
}

/// What a rank is called.
#[derive(Debug, Clone)]
pub struct RankName {
    pub node: u32,
    /// In its MPI_COMM_WORLD.
    pub number: i64,
    /// "rank 3", and more where there are several worlds or lives.
    pub name: String,
}

/// Where something is called.
#[derive(Debug, Clone, Default)]
pub struct SiteDefinition {
    pub call: CallName,
    /// As functions and files are named to people: "exchange halo.c:42".
    pub name: Option<String>,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl Definitions {
    /// `trace` knows all ranks of the run, with or without their rows.
    pub fn collect(trace: &Trace, names: &mut dyn NameFrames) -> Definitions {
        let begin = |place: usize| {
            let rank = &trace.ranks[place];
            rank.init_end - rank.info().init_end.0
        };
        let first = (0..trace.ranks.len()).min_by_key(|&place| begin(place));
        let origin = first.map_or(0, begin);
        let end = trace.ranks.iter().map(|rank| rank.end).max().unwrap_or(origin);
        let all = trace.roster.communicators.iter();
        let communicators: Vec<_> = all.map(|(key, members)| (*key, members.clone())).collect();
        let places = &trace.places;
        Definitions {
            nodes: nodes(trace),
            ranks: trace.ranks.iter().map(rank_name).collect(),
            sites: places.site_ids().map(|site| SiteDefinition::name(trace, site, names)).collect(),
            origin,
            unix_ns: first.map_or(0, |place| trace.ranks[place].info().epoch_unix_ns),
            length: end - origin,
            command: trace
                .ranks
                .first()
                .map_or_else(String::new, |rank| rank.info().command.clone()),
            numbers: (0..).zip(&communicators).map(|(number, (key, _))| (*key, number)).collect(),
            communicators,
        }
    }

    pub fn site(&self, site: SiteId) -> &SiteDefinition {
        &self.sites[site.number() as usize]
    }

    /// A moment on the run's clock, as it is written: nanoseconds since the origin.
    #[inline]
    pub fn moment(&self, moment: i64) -> u64 {
        (moment - self.origin).max(0) as u64
    }

    /// Index into `communicators`.
    pub fn communicator(&self, key: CommKey) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    /// The communicator of a collective, and which of those called on it it is: the same for all its members.
    pub fn meeting(&self, trace: &Trace, half: &Half<'_>) -> Option<(u32, u32)> {
        let (key, number, _) = trace.meeting_of(half)?;
        Some((self.communicator(key)?, number))
    }
}

fn nodes(trace: &Trace) -> Vec<String> {
    let count = trace.ranks.iter().map(|rank| rank.node + 1).max().unwrap_or(0);
    let mut nodes = vec![String::new(); count as usize];
    for rank in &trace.ranks {
        nodes[rank.node as usize].clone_from(&rank.info().host);
    }
    nodes
}

fn rank_name(rank: &lapscope_trace::RankTrace) -> RankName {
    let info = rank.info();
    let Rank { number, .. } = info.rank;
    let life = if info.life > 1 { format!(", life {}", info.life) } else { String::new() };
    RankName { node: rank.node, number, name: format!("rank {}{life}", info.rank) }
}

impl SiteDefinition {
    fn name(trace: &Trace, site: SiteId, names: &mut dyn NameFrames) -> SiteDefinition {
        let places = &trace.places;
        let frame = places.site(site).frame.map(|frame| names.name(frame).swap_remove(0));
        let call = places.call(site).clone();
        let Some(frame) = frame else {
            return SiteDefinition { call, ..SiteDefinition::default() };
        };
        let name = Some(frame.short());
        SiteDefinition { call, name, function: frame.function, file: frame.file, line: frame.line }
    }
}
