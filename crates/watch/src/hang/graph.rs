//! Who can go on: a fixpoint over ranks, threads and what many wait for together. Time and memory are linear in the number of
//! needs, as what many ranks need is a junction of its own.
//!
//! Looking for circles of waits finds too many: one with MPI_Waitany or a wildcard in it may open by itself, and a rank
//! outside of MPI may be about to send. So it is asked the other way round who can go on. Free are ranks that went on
//! between the looks, that are outside of MPI, or that are not seen. From them it goes backwards: whoever needs all
//! goes when all can come, whoever needs any when one can. Those who are left never go on; the circle is only for the
//! drawing.

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// Nothing is in its way.
    Free,
    /// Nobody will ever do it.
    Nobody,
    /// A rank, by its place in the job, has to do something in MPI.
    Rank(usize),
    /// By its place in [`Graph::junctions`].
    Junction(usize),
}

/// Something that has to happen before a thread goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need<W> {
    pub target: Target,
    /// Whether it has to happen, for all that can be seen.
    pub is_sure: bool,
    pub why: W,
}

/// What many wait for: all or any of some ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Junction {
    pub is_any: bool,
    /// Ranks by their places in the job.
    pub over: Vec<usize>,
    /// Others about whom nothing is known.
    pub others: usize,
    /// Even when all have come, it never is what is waited for.
    pub never: bool,
}

/// A thread that is inside of a call, or polls.
#[derive(Debug, Clone)]
pub struct Node<W> {
    pub rank: usize,
    /// Its place in the rank's list.
    pub thread: usize,
    pub needs: Vec<Need<W>>,
    pub is_any: bool,
    /// Where no need is sure: whether one of them has to be the reason that the call has not returned.
    pub waits_for_one: bool,
}

/// What a rank can do besides what its nodes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// It will do nothing in MPI any more.
    Never,
    /// What its nodes can.
    AsNodes,
    /// A thread of it sleeps outside of MPI, and may wake up.
    Perhaps,
    Free,
}

pub struct Graph<W> {
    pub ranks: Vec<Freedom>,
    pub junctions: Vec<Junction>,
    pub nodes: Vec<Node<W>>,
}

/// Who can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goers {
    pub ranks: Vec<bool>,
    pub junctions: Vec<bool>,
    pub nodes: Vec<bool>,
}

impl<W> Node<W> {
    /// What it needs, what is sure to be needed first.
    pub fn surest(&self) -> Vec<&Need<W>> {
        let mut needs: Vec<&Need<W>> = self.needs.iter().collect();
        needs.sort_by_key(|need| !need.is_sure);
        needs
    }
}

impl Goers {
    /// Whether what is needed can still happen.
    pub fn can(&self, target: Target) -> bool {
        match target {
            Target::Free => true,
            Target::Nobody => false,
            Target::Rank(at) => self.ranks[at],
            Target::Junction(at) => self.junctions[at],
        }
    }
}

/// How a doubt is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// What is not sure to be needed is not needed: who does not go on then never will.
    ForGoing,
    /// It is needed, and who sleeps does not wake up.
    ForStanding,
}

/// Elements of the fixpoint: ranks, then junctions, then nodes; each has to be told so many times that what it waits for comes.
struct Solver {
    outstanding: Vec<usize>,
    dependents: Vec<Vec<u32>>,
    ready: Vec<u32>,
}

const NEVER: usize = usize::MAX;

impl<W> Graph<W> {
    /// The nodes of a rank; they are in the order of ranks.
    pub fn nodes_of(&self, rank: usize) -> &[Node<W>] {
        let first = self.nodes.partition_point(|node| node.rank < rank);
        let count = self.nodes[first..].partition_point(|node| node.rank == rank);
        &self.nodes[first..first + count]
    }
}

impl<W: Copy> Graph<W> {
    /// The least fixpoint: nobody goes on but for a reason.
    pub fn solve(&self, doubt: Doubt) -> Goers {
        self.solve_as(&self.ranks, doubt)
    }

    /// The same as if ranks had this freedom.
    pub fn solve_as(&self, freedoms: &[Freedom], doubt: Doubt) -> Goers {
        let (ranks, junctions) = (self.ranks.len(), self.junctions.len());
        let total = ranks + junctions + self.nodes.len();
        let mut solver = Solver {
            outstanding: vec![NEVER; total],
            dependents: vec![Vec::new(); total],
            ready: Vec::new(),
        };
        for (at, freedom) in freedoms.iter().enumerate() {
            match freedom {
                Freedom::Free => solver.set(at, 0),
                Freedom::Perhaps if doubt == Doubt::ForGoing => solver.set(at, 0),
                Freedom::Never => {}
                _ => solver.set(at, 1),
            }
        }
        for (at, junction) in self.junctions.iter().enumerate() {
            solver.add_junction(ranks + at, junction);
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let element = ranks + junctions + at;
            solver.dependents[element].push(node.rank as u32);
            solver.add_node(element, node, doubt, |at| ranks + at);
        }
        let gone = solver.run();
        let (of_ranks, rest) = gone.split_at(ranks);
        let (of_junctions, of_nodes) = rest.split_at(junctions);
        Goers { ranks: of_ranks.into(), junctions: of_junctions.into(), nodes: of_nodes.into() }
    }
}

impl Solver {
    fn set(&mut self, element: usize, outstanding: usize) {
        self.outstanding[element] = outstanding;
        if outstanding == 0 {
            self.ready.push(element as u32);
        }
    }

    fn add_junction(&mut self, element: usize, junction: &Junction) {
        let Junction { is_any, over, others, never } = junction;
        for &rank in over {
            self.dependents[rank].push(element as u32);
        }
        let outstanding = match (never, is_any) {
            (true, _) => NEVER,
            (_, true) if *others > 0 => 0,
            (_, true) if over.is_empty() => NEVER,
            (_, true) => 1,
            (_, false) => over.len(),
        };
        self.set(element, outstanding);
    }

    fn add_node<W: Copy>(
        &mut self,
        element: usize,
        node: &Node<W>,
        doubt: Doubt,
        junction: impl Fn(usize) -> usize,
    ) {
        let counts = |need: &&Need<W>| need.is_sure || doubt == Doubt::ForStanding;
        let mut needs: Vec<&Need<W>> = node.needs.iter().filter(counts).collect();
        let mut is_any = node.is_any;
        if is_any && needs.len() < node.needs.len() {
            needs.clear(); // one of these may come without anybody
        }
        if needs.is_empty() && !node.is_any && node.waits_for_one {
            (needs, is_any) = (node.needs.iter().collect(), true);
        }
        let mut outstanding = if is_any { usize::from(!needs.is_empty()) } else { needs.len() };
        for need in needs {
            let on = match need.target {
                Target::Free => {
                    outstanding = outstanding.saturating_sub(1);
                    continue;
                }
                Target::Nobody => continue,
                Target::Rank(at) => at,
                Target::Junction(at) => junction(at),
            };
            self.dependents[on].push(element as u32);
        }
        self.set(element, outstanding);
    }

    fn run(mut self) -> Vec<bool> {
        let mut gone = vec![false; self.outstanding.len()];
        while let Some(element) = self.ready.pop() {
            let element = element as usize;
            if std::mem::replace(&mut gone[element], true) {
                continue;
            }
            for dependent in std::mem::take(&mut self.dependents[element]) {
                let outstanding = &mut self.outstanding[dependent as usize];
                if *outstanding == NEVER || *outstanding == 0 {
                    continue;
                }
                *outstanding -= 1;
                if *outstanding == 0 {
                    self.ready.push(dependent);
                }
            }
        }
        gone
    }
}

/// Circles of a graph in which each element has at most one successor, each once, from its smallest element on.
pub fn circles(next: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut seen = vec![usize::MAX; next.len()];
    let mut circles = Vec::new();
    for start in 0..next.len() {
        let mut at = start;
        while seen[at] == usize::MAX {
            seen[at] = start;
            let Some(following) = next[at] else { break };
            at = following;
        }
        if seen[at] == start && next[at].is_some() {
            circles.push(circle_from(next, at));
        }
    }
    circles
}

fn circle_from(next: &[Option<usize>], at: usize) -> Vec<usize> {
    let mut circle = vec![at];
    while let Some(following) = next[*circle.last().expect("it has one")].filter(|it| *it != at) {
        circle.push(following);
    }
    let least = circle.iter().enumerate().min_by_key(|(_, it)| **it).map_or(0, |(at, _)| at);
    circle.rotate_left(least);
    circle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(target: Target, is_sure: bool) -> Need<()> {
        Need { target, is_sure, why: () }
    }

    fn node(rank: usize, needs: Vec<Need<()>>) -> Node<()> {
        Node { rank, thread: 0, needs, is_any: false, waits_for_one: false }
    }

    fn graph(ranks: usize, nodes: Vec<Node<()>>) -> Graph<()> {
        let mut freedoms = vec![Freedom::Free; ranks];
        for node in &nodes {
            freedoms[node.rank] = Freedom::AsNodes;
        }
        Graph { ranks: freedoms, junctions: Vec::new(), nodes }
    }

    #[test]
    fn a_circle_stands_and_a_chain_to_a_free_rank_goes() {
        let on = |at| vec![need(Target::Rank(at), true)];
        let all = graph(5, vec![node(0, on(1)), node(1, on(0)), node(2, on(3)), node(3, on(4))]);
        let goers = all.solve(Doubt::ForGoing);
        assert_eq!(goers.ranks, [false, false, true, true, true]);
    }

    #[test]
    fn any_needs_one_and_all_needs_all() {
        let both = || vec![need(Target::Rank(0), true), need(Target::Rank(2), true)];
        let own = node(0, vec![need(Target::Rank(1), true)]);
        let mut all = graph(3, vec![own.clone(), node(1, both())]);
        assert_eq!(all.solve(Doubt::ForGoing).nodes, [false, false]);
        all.nodes[1].is_any = true;
        assert_eq!(all.solve(Doubt::ForGoing).nodes, [true, true]);
    }

    #[test]
    fn what_is_not_sure_stands_only_in_doubt() {
        let on = |at| vec![need(Target::Rank(at), false)];
        let mut all = graph(2, vec![node(0, on(1)), node(1, on(0))]);
        assert_eq!(all.solve(Doubt::ForGoing).ranks, [true, true]);
        assert_eq!(all.solve(Doubt::ForStanding).ranks, [false, false]);
        all.nodes.iter_mut().for_each(|node| node.waits_for_one = true);
        assert_eq!(all.solve(Doubt::ForGoing).ranks, [false, false]);
    }

    #[test]
    fn junctions_join() {
        let mut all = graph(3, vec![node(0, vec![need(Target::Junction(0), true)])]);
        all.junctions.push(Junction { is_any: false, over: vec![1, 2], others: 0, never: false });
        assert_eq!(all.solve(Doubt::ForGoing).ranks, [true, true, true]);
        all.ranks[1] = Freedom::Never;
        assert_eq!(all.solve(Doubt::ForGoing).ranks, [false, false, true]);
        all.junctions[0].is_any = true;
        assert_eq!(all.solve(Doubt::ForGoing).ranks, [true, false, true]);
    }

    #[test]
    fn circles_are_found_once() {
        let next = [Some(1), Some(2), Some(1), Some(3), None, Some(4), Some(0)];
        assert_eq!(circles(&next), [vec![1, 2], vec![3]]);
    }
}
