//! What a rank did, as steps are looked for in it: posts, completing and blocking calls in the order in which they began, each
//! below the functions that called it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use lapscope_data::model::Frame;
use lapscope_trace::{Operation, Trace};

/// A node of the tree of callers: a function that calls from one place, or an MPI function called from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Caller {
    Frame(Frame),
    /// Index into [`Places::calls`](lapscope_data::places::Places::calls).
    Call(u32),
}

/// Callers from the outermost to an MPI call, or to a function on the way there.
pub type Path = Vec<Caller>;

/// Something that began.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepEvent {
    /// Nanoseconds on the run's clock.
    pub begin: i64,
    pub end: i64,
    /// Its MPI call: a node of the tree.
    pub leaf: u32,
    /// Place of the rank at the other end; [`NOBODY`] where there is no single one.
    pub peer: u32,
}

pub(super) const NOBODY: u32 = u32::MAX;

/// Callers of a rank; the first node is nobody's.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<(u32, Caller)>,
    depth: Vec<u32>,
    numbers: HashMap<(u32, Caller), u32>,
}

impl Tree {
    pub const ROOT: u32 = 0;

    pub fn new() -> Tree {
        Tree {
            nodes: vec![(Tree::ROOT, Caller::Call(u32::MAX))],
            depth: vec![0],
            numbers: HashMap::new(),
        }
    }

    pub fn add(&mut self, path: impl IntoIterator<Item = Caller>) -> u32 {
        path.into_iter().fold(Tree::ROOT, |parent, caller| {
            let (nodes, depth) = (&mut self.nodes, &mut self.depth);
            *self.numbers.entry((parent, caller)).or_insert_with(|| {
                nodes.push((parent, caller));
                depth.push(depth[parent as usize] + 1);
                nodes.len() as u32 - 1
            })
        })
    }

    pub fn find(&self, path: &[Caller]) -> Option<u32> {
        path.iter()
            .try_fold(Tree::ROOT, |parent, &caller| self.numbers.get(&(parent, caller)).copied())
    }

    pub fn path(&self, node: u32) -> Path {
        let mut path: Path = self.upwards(node).map(|node| self.nodes[node as usize].1).collect();
        path.reverse();
        path
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_call(&self, node: u32) -> bool {
        matches!(self.nodes[node as usize].1, Caller::Call(_))
    }

    pub fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].0
    }

    pub fn depth(&self, node: u32) -> u32 {
        self.depth[node as usize]
    }

    /// The node and all that it is below of, but not the first node of all.
    pub fn upwards(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let this = at;
            at = self.parent(at);
            (this != Tree::ROOT).then_some(this)
        })
    }

    pub fn is_below(&self, node: u32, above: u32) -> bool {
        self.upwards(node).any(|it| it == above)
    }
}

/// What a rank did.
#[derive(Debug)]
pub(super) struct Events {
    pub list: Vec<StepEvent>,
    pub tree: Tree,
    /// Time outside all events before each, nanoseconds: unlike time inside, it does not depend on others.
    outside: Vec<i64>,
}

impl Events {
    /// `list`: in the order of begins.
    pub fn new(list: Vec<StepEvent>, tree: Tree) -> Events {
        let (mut outside, mut end) = (0, list.first().map_or(0, |event| event.begin));
        let before = list.iter().map(|event| {
            outside += (event.begin - end).max(0);
            end = end.max(event.end);
            outside
        });
        let outside = before.collect();
        Events { list, tree, outside }
    }

    pub fn collect(trace: &Trace, place: usize) -> Events {
        let rank = &trace.ranks[place];
        let mut tree = Tree::new();
        let mut known: HashMap<_, u32> = HashMap::new();
        let mut leaf = |operation: &Operation| {
            let site = trace.places.site(operation.site);
            *known.entry((operation.path, site.frame, site.call)).or_insert_with(|| {
                let frames = match operation.path {
                    Some(path) => trace.places.path(path).frames.as_slice(),
                    None => site.frame.as_slice(),
                };
                let callers = frames.iter().rev().map(|&frame| Caller::Frame(frame));
                tree.add(callers.chain([Caller::Call(site.call)]))
            })
        };
        let of_operation: Vec<(u32, u32)> = rank
            .operations
            .iter()
            .map(|operation| (leaf(operation), operation.peer.unwrap_or(NOBODY)))
            .collect();
        let posts = rank.endpoints.iter().filter_map(|endpoint| {
            let operation = &rank.operations[endpoint.operation as usize];
            let (leaf, peer) = of_operation[endpoint.operation as usize];
            let end = endpoint.begin + endpoint.post.or_zero();
            let event = StepEvent { begin: endpoint.begin, end, leaf, peer };
            (operation.is_request && !operation.is_second_half).then_some(event)
        });
        let calls = rank.calls.iter().map(|call| {
            let (leaf, peer) = of_operation[call.operation as usize];
            StepEvent { begin: call.begin, end: call.begin + call.duration, leaf, peer }
        });
        let mut list: Vec<StepEvent> = posts.chain(calls).collect();
        list.sort_by_key(|event| event.begin); // both are nearly in order, which this sort makes use of
        Events::new(list, tree)
    }

    /// Where visits of a node begin, as places in the list: each call of an MPI function, and each run of events below another,
    /// nothing else between them.
    pub fn visits(&self, node: u32) -> Vec<u32> {
        let is_below: Vec<bool> =
            (0..self.tree.len() as u32).map(|it| self.tree.is_below(it, node)).collect();
        let is_call = self.tree.is_call(node);
        let mut was_below = false;
        let mut visits = Vec::new();
        for (at, event) in (0..).zip(&self.list) {
            let is_below = is_below[event.leaf as usize];
            if is_below && (is_call || !was_below) {
                visits.push(at);
            }
            was_below = is_below;
        }
        visits
    }

    pub fn begin(&self, at: u32) -> i64 {
        self.list[at as usize].begin
    }

    /// Time outside of MPI between the begins of two events.
    pub fn outside(&self, from: u32, to: u32) -> i64 {
        self.outside[to as usize] - self.outside[from as usize]
    }
}
