//! What stands where, in the words of MPI: calls with their peers, tags, communicators and source lines.

use rustc_hash::FxHashMap;

use super::collectives::{Collectives, Meeting};
use super::graph::{Need, Target};
use super::job::Job;
use super::job::Open;
use super::messages::{Flow, LaneKey, ANY, NO_TAG};
use super::needs::{only_asks, Reason, WaitNode, Why};
use super::HangEvidence;
use lapscope_data::model::{site_frame, Rank};
use lapscope_data::state::{LastCall, OpenCall, OpenOperation};
use lapscope_data::symbols::{name_path, FrameName, NameFrames};
use lapscope_data::text::ranks;

pub struct Words<'a> {
    pub job: &'a Job<'a>,
    names: &'a mut dyn NameFrames,
    sites: FxHashMap<u32, Option<FrameName>>,
    /// Who is missing in each meeting.
    missing: FxHashMap<usize, String>,
}

impl<'a> Words<'a> {
    pub fn new(job: &'a Job<'a>, names: &'a mut dyn NameFrames) -> Words<'a> {
        Words { job, names, sites: FxHashMap::default(), missing: FxHashMap::default() }
    }

    /// The line of the program that called MPI.
    pub fn site(&mut self, path: Option<u32>) -> Option<FrameName> {
        let (state, names) = (self.job.state, &mut self.names);
        let name = |path: &u32| {
            let path = state.paths.get(*path as usize)?;
            site_frame(path, &state.modules).and_then(|frame| names.name(frame).into_iter().next())
        };
        self.sites.entry(path?).or_insert_with_key(name).clone()
    }

    /// The whole call path.
    pub fn frames(&mut self, path: Option<u32>) -> Vec<FrameName> {
        let path = path.and_then(|path| self.job.state.paths.get(path as usize));
        path.map_or_else(Vec::new, |path| name_path(&path.frames, self.names))
    }

    /// "MPI_Recv (exchange halo.c:42)".
    pub fn call_at(&mut self, call: u32, path: Option<u32>) -> String {
        let name = &self.job.call(call).name;
        match self.site(path) {
            Some(site) => format!("{name} ({})", site.brief()),
            None => name.clone(),
        }
    }

    pub fn operation(&mut self, operation: &OpenOperation) -> String {
        self.call_at(operation.made_by.unwrap_or(operation.call), operation.path)
    }

    /// "last in MPI_Send (main x.c:7)".
    pub fn last(&mut self, last: Option<LastCall>) -> String {
        match last {
            Some(last) => format!("last in {}", self.call_at(last.call, last.path)),
            None => "in no MPI call since MPI_Init that is known".to_owned(),
        }
    }

    /// " in the communicator row"; nothing of MPI_COMM_WORLD.
    pub fn communicator(&self, communicator: Option<u32>) -> String {
        let of = communicator.map(|it| &self.job.state.communicators[it as usize]);
        match of {
            Some(it) if it.name == "MPI_COMM_WORLD" => String::new(),
            Some(it) if it.name.starts_with("MPI_Win_") => format!(" in a window of {}", it.name),
            Some(it) if it.name.starts_with("MPI_File_") => format!(" in a file of {}", it.name),
            // Named by the call that made it.
            Some(it) if it.name.starts_with("MPI_") && !it.name.starts_with("MPI_COMM_") => {
                format!(" in a communicator of {}", it.name)
            }
            Some(it) if !it.name.is_empty() => format!(" in {}", it.name),
            Some(_) => {
                let size = communicator.and_then(|it| self.job.members(it)).map(<[i64]>::len);
                match size {
                    Some(size) => format!(" in an unnamed communicator of {size}"),
                    None => " in an unnamed communicator".to_owned(),
                }
            }
            None => String::new(),
        }
    }

    /// A list of ranks by their places in the job.
    pub fn ranks(&self, places: &[usize]) -> String {
        let mut ranks: Vec<Rank> = places.iter().map(|&at| self.job.rank(at).rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks::in_words(&ranks, self.job.ranks().len())
    }

    /// What a need is about: the request, or the call itself, and of what receives, too, the half that is meant.
    fn about(&self, why: Why) -> Option<&'a OpenOperation> {
        let whole = self.job.operation(why.place)?;
        match why.reason {
            Reason::Receive => Some(whole.receive.as_deref().unwrap_or(whole)),
            _ => Some(whole),
        }
    }

    /// "waits in MPI_Recv (main x.c:7) for a message from rank 1 with tag 7".
    pub fn wait(&mut self, node: &WaitNode, need: &Need<Why>, found: &HangEvidence<'_>) -> String {
        if need.why.reason == Reason::Finalize {
            return "waits in MPI_Finalize for the others to get there".to_owned();
        }
        let job = self.job;
        let thread = &job.rank(node.rank).threads[node.thread];
        let asks = |open: &&OpenCall| only_asks(&job.call(open.operation.call).name);
        let call = match (thread.open.as_ref().filter(|open| !asks(open)), &thread.unsuccessful) {
            (Some(open), _) => format!("waits in {}", self.operation(&open.operation)),
            (None, Some(test)) => format!("tests in vain in {}", self.operation(test)),
            (None, None) => "tests in vain".to_owned(),
        };
        let Some(about) = self.about(need.why) else { return call };
        let posted = match need.why.place.1 {
            Open::Request(_) => format!(" of its {}", self.operation(about)),
            Open::Call(_) | Open::Probe(_) => String::new(),
        };
        let peer = match (about.peer, about.peer_world) {
            (ANY, _) => "any source".to_owned(),
            (_, Some(number)) => format!("rank {}", job.rank(node.rank).rank.neighbor(number)),
            _ => "its peer".to_owned(),
        };
        let tag = match about.tag {
            ANY => "any tag".to_owned(),
            NO_TAG => "a tag that MPI does not take".to_owned(),
            tag => format!("tag {tag}"),
        };
        let within = self.communicator(about.communicator);
        match need.why.reason {
            Reason::Receive => format!("{call} for a message{posted} from {peer}, {tag}{within}"),
            Reason::Send => {
                format!("{call} for {peer} to receive the message{posted}, {tag}{within}")
            }
            Reason::Taken => format!("{call} for {}", self.taken(node, need, found)),
            Reason::Ready => format!("{call} for itself to make all partitions{posted} ready"),
            Reason::Meeting(meeting) => {
                let missing = self.missing(meeting, &found.collectives);
                let Meeting { missing: absent, elsewhere, has_roots, .. } =
                    &found.collectives.meetings[meeting];
                let too = match (absent.is_empty() && !elsewhere.is_empty(), has_roots) {
                    (false, _) => "too",
                    (true, true) => "with the same root",
                    (true, false) => "where they called something else",
                };
                let started = if posted.is_empty() {
                    "it".to_owned()
                } else {
                    posted.replacen(" of its ", "", 1)
                };
                let within = match within.as_str() {
                    "" => " in MPI_COMM_WORLD",
                    within => within,
                };
                format!("{call}{within} for {missing} to call {started}, {too}")
            }
            Reason::Group => format!("{call} for others of its group{within}"),
            Reason::Lock => {
                let over = match need.target {
                    Target::Junction(at) => found.graph.junctions[at].over.clone(),
                    _ => Vec::new(),
                };
                let s = if over.len() == 1 { "has" } else { "have" };
                let whose = about.peer_world.map_or(String::new(), |_| format!(" at {peer}"));
                format!(
                    "{call}{within} for {} to unlock it{whose}, which {s} locked it before",
                    self.ranks(&over)
                )
            }
            Reason::Progress => {
                format!("{call} for {peer} to enter MPI, where the message goes on{posted}")
            }
            Reason::Finalize | Reason::Nothing => call,
        }
    }

    /// "rank 1 to receive the message with tag 5", "rank 1 to receive 3 messages, tags 5 and 7".
    fn taken(&self, node: &WaitNode, need: &Need<Why>, found: &HangEvidence<'_>) -> String {
        const MOST: usize = 4;
        let Target::Rank(receiver) = need.target else {
            return "what it sent to be received".to_owned();
        };
        let (own, receiver) = (self.job.rank(node.rank).rank, self.job.rank(receiver).rank);
        let to = |(key, _): &&(LaneKey, Flow)| key.receiver == receiver.number;
        let lanes: Vec<_> = found.messages.unmatched_from(own).filter(to).collect();
        let messages: u64 = lanes.iter().map(|(_, flow)| flow.unmatched()).sum();
        let mut tags: Vec<i64> = lanes.iter().map(|(key, _)| key.tag).collect();
        tags.sort_unstable();
        tags.dedup();
        let shown: Vec<String> = tags.iter().take(MOST).map(i64::to_string).collect();
        let tags = match (&shown[..], tags.len() > MOST) {
            ([tag], _) => format!("tag {tag}"),
            (_, true) => format!("tags {} and others", shown.join(", ")),
            (_, false) => format!("tags {}", shown.join(", ")),
        };
        format!(
            "rank {receiver} to receive {}, {tags}",
            match messages {
                1 => "a message".to_owned(),
                more => format!("{more} messages"),
            }
        )
    }

    fn missing(&mut self, number: usize, collectives: &Collectives<'_>) -> String {
        if let Some(known) = self.missing.get(&number) {
            return known.clone();
        }
        let meeting = &collectives.meetings[number];
        let missing = match (&meeting.missing[..], &meeting.elsewhere[..]) {
            ([], []) => "the others".to_owned(),
            ([], elsewhere) => self.ranks(elsewhere),
            (missing, _) => self.ranks(missing),
        };
        self.missing.insert(number, missing.clone());
        missing
    }
}
