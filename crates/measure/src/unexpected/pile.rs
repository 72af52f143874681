//! A rank at which much was kept at once: from whom, of what, since when.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::levels::{slot_width, Levels, Peak};
use super::overtaken;
use super::{LateReceive, Volume, MANY_MESSAGES, MUCH_MEMORY};
use lapscope_data::model::{Bytes, Nanos, Rank};
use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_trace::{Trace, NONE};

/// Senders, tags and call sites that are named.
const MOST: usize = 8;

/// What was kept for one rank. Moments are since the first return of MPI_Init.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pile {
    pub rank: Rank,
    /// The most at once; messages and bytes each by themselves.
    pub low: Volume,
    pub high: Volume,
    /// When `low` was reached, and since and until when something was kept all the time.
    pub peak_ns: Nanos,
    pub since_ns: Nanos,
    pub until_ns: Nanos,
    // what follows is of the messages that were kept for certain at that moment
    pub smallest_bytes: Bytes,
    pub largest_bytes: Bytes,
    pub tags: Vec<i64>,
    pub senders: usize,
    /// Those that sent most.
    pub from: Vec<KeptFrom>,
    /// Where they were sent, and received.
    pub sent: Vec<KeptAtSite>,
    pub received: Vec<KeptAtSite>,
    /// Of them: received from any source, and by nobody.
    pub any_source: u64,
    pub never_received: u64,
    /// Sent by buffered sends.
    pub buffered: u64,
    /// Before their receive the receiver waited for what their sender did later.
    pub overtaken: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFrom {
    pub rank: Rank,
    #[serde(flatten)]
    pub volume: Volume,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAtSite {
    pub call: String,
    pub site: Option<FrameName>,
    pub messages: u64,
}

/// The most bytes in each slot of the run's time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptOverTime {
    pub rank: Rank,
    pub slot_ns: Nanos,
    pub low_bytes: Vec<u64>,
    pub high_bytes: Vec<u64>,
}

/// A pile, and what its sites are called once they are looked up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UnnamedPile {
    place: usize,
    pile: Pile,
    sent: Vec<(SiteId, u64)>,
    received: Vec<(SiteId, u64)>,
    pub over_time: KeptOverTime,
}

impl UnnamedPile {
    /// Those with most bytes come first.
    pub fn order(&self) -> impl Ord {
        let low = self.pile.low;
        (Reverse((low.bytes, low.messages)), self.pile.rank, self.place)
    }

    pub fn name(self, trace: &Trace, names: &mut dyn NameFrames) -> Pile {
        let sent = name(trace, self.sent, names);
        Pile { sent, received: name(trace, self.received, names), ..self.pile }
    }
}

/// `None`: it was not much.
pub fn find(
    trace: &Trace,
    place: usize,
    late: &[LateReceive],
    (begin, end): (i64, i64),
) -> Option<UnnamedPile> {
    let kept = |it: &LateReceive| it.kept.map(|kept| (kept, it.posted, it.bytes));
    let low = Levels::sweep(late.iter().filter_map(kept), (begin, end));
    let peak = worst(&low)?;
    let high = late.iter().map(|it| (it.sent, it.posted, it.most_bytes));
    let high = Levels::sweep(high, (begin, end));
    let rank = trace.ranks[place].info().rank;
    let since_begin = |moment: i64| Nanos(moment.saturating_sub(begin));
    let mut content = Content::default();
    let is_there =
        |it: &&LateReceive| it.kept.is_some_and(|it| it <= peak.at) && it.posted > peak.at;
    let overtaken = overtaken::count(trace, place, late.iter().filter(is_there), peak.since);
    late.iter().filter(is_there).for_each(|it| content.add(trace, place, it));
    let pile = Pile {
        rank,
        low: volume(&low),
        high: volume(&high),
        peak_ns: since_begin(peak.at),
        since_ns: since_begin(peak.since),
        until_ns: since_begin(peak.until),
        smallest_bytes: Bytes(content.smallest.unwrap_or(0)),
        largest_bytes: Bytes(content.largest),
        senders: content.senders.len(),
        from: most(content.senders, |volume| (volume.bytes, volume.messages))
            .into_iter()
            .map(|(place, volume)| KeptFrom { rank: trace.ranks[place].info().rank, volume })
            .collect(),
        tags: most(content.tags, |&count| count).into_iter().map(|(tag, _)| tag).collect(),
        sent: Vec::new(),
        received: Vec::new(),
        any_source: content.any_source,
        never_received: content.never_received,
        buffered: content.buffered,
        overtaken,
    };
    let slot_ns = Nanos(slot_width(begin, end));
    let (low_bytes, high_bytes) = (low.over_time, high.over_time);
    let over_time = KeptOverTime { rank, slot_ns, low_bytes, high_bytes };
    let [sent, received] = [content.sent, content.received].map(|all| most(all, |&count| count));
    Some(UnnamedPile { place, pile, sent, received, over_time })
}

/// The peak of what there is too much of.
fn worst(low: &Levels) -> Option<Peak> {
    match (low.bytes.most >= MUCH_MEMORY, low.messages.most >= MANY_MESSAGES) {
        (true, _) => Some(low.bytes),
        (false, true) => Some(low.messages),
        (false, false) => None,
    }
}

fn volume(levels: &Levels) -> Volume {
    Volume { messages: levels.messages.most as u64, bytes: Bytes(levels.bytes.most as u64) }
}

/// What was there at a moment.
#[derive(Default)]
struct Content {
    smallest: Option<u64>,
    largest: u64,
    senders: BTreeMap<usize, Volume>,
    tags: BTreeMap<i64, u64>,
    sent: BTreeMap<SiteId, u64>,
    received: BTreeMap<SiteId, u64>,
    any_source: u64,
    never_received: u64,
    buffered: u64,
}

impl Content {
    fn add(&mut self, trace: &Trace, place: usize, it: &LateReceive) {
        self.smallest = Some(self.smallest.map_or(it.bytes, |least| least.min(it.bytes)));
        self.largest = self.largest.max(it.bytes);
        self.buffered += u64::from(it.is_buffered);
        self.senders.entry(it.sender).or_default().add(it.bytes);
        let send = trace.half(it.sender, it.send as usize).operation;
        *self.sent.entry(send.site).or_default() += 1;
        if let Some(tag) = send.tag {
            *self.tags.entry(tag).or_default() += 1;
        }
        if it.receive == NONE {
            self.never_received += 1;
            return;
        }
        let receive = trace.half(place, it.receive as usize).operation;
        *self.received.entry(receive.site).or_default() += 1;
        self.any_source += u64::from(receive.is_wildcard);
    }
}

/// Those with most, first.
fn most<K: Ord + Copy, V, R: Ord>(all: BTreeMap<K, V>, rank: impl Fn(&V) -> R) -> Vec<(K, V)> {
    let mut all: Vec<(K, V)> = all.into_iter().collect();
    all.sort_by_key(|(key, value)| (Reverse(rank(value)), *key));
    all.truncate(MOST);
    all
}

fn name(trace: &Trace, sites: Vec<(SiteId, u64)>, names: &mut dyn NameFrames) -> Vec<KeptAtSite> {
    let name = |(site, messages): (SiteId, u64)| {
        let frame = trace.places.site(site).frame;
        KeptAtSite {
            call: trace.places.call(site).name.clone(),
            site: frame.and_then(|frame| names.name(frame).into_iter().next()),
            messages,
        }
    };
    sites.into_iter().map(name).collect()
}
