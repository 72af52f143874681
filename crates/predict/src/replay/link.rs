//! What messages share on their way: one after the other goes over a link.

use super::scenario::Contention;

/// When each link is free again.
#[derive(Debug)]
pub(super) struct Links {
    contention: Contention,
    /// By rank or node; sending and receiving apart where they are.
    free: Vec<[i64; 2]>,
    /// Node of each rank.
    nodes: Vec<u32>,
}

impl Links {
    pub fn new(contention: Contention, nodes: Vec<u32>) -> Links {
        let links = match contention {
            Contention::None => 0,
            Contention::Rank => nodes.len(),
            Contention::Node | Contention::Shared => {
                nodes.iter().max().map_or(0, |&node| node as usize + 1)
            }
        };
        Links { contention, free: vec![[i64::MIN; 2]; links], nodes }
    }

    /// Takes the way from one rank to another for `wire` nanoseconds, from `time` on or when it is free: when that begins.
    pub fn take(&mut self, time: i64, wire: i64, from: u32, to: u32) -> i64 {
        let Some([out, into]) = self.way(from, to) else { return time };
        let begin = time.max(self.free[out.0][out.1]).max(self.free[into.0][into.1]);
        for (link, way) in [out, into] {
            self.free[link][way] = begin + wire;
        }
        begin
    }

    /// As [`Links::take`], of a message that had the way until `until`, stopped, and goes on.
    pub fn take_again(&mut self, until: i64, time: i64, wire: i64, from: u32, to: u32) -> i64 {
        for (link, way) in self.way(from, to).into_iter().flatten() {
            let free = &mut self.free[link][way];
            // who came behind it keeps its turn
            *free = if *free == until { time } else { *free };
        }
        self.take(time, wire, from, to)
    }

    /// The links out of one rank and into another; `None`: they share nothing.
    fn way(&self, from: u32, to: u32) -> Option<[(usize, usize); 2]> {
        let node = |rank: u32| self.nodes[rank as usize] as usize;
        match self.contention {
            Contention::None => None,
            _ if from == to => None,
            Contention::Rank => Some([(from as usize, 0), (to as usize, 1)]),
            Contention::Node if node(from) == node(to) => None,
            Contention::Node => Some([(node(from), 0), (node(to), 1)]),
            Contention::Shared => Some([(node(from), 0), (node(to), 0)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_one_after_the_other() {
        let links = |contention| Links::new(contention, vec![0, 0, 1]);
        let mut ranks = links(Contention::Rank);
        assert_eq!([ranks.take(0, 10, 0, 1), ranks.take(0, 10, 1, 0)], [0, 0]);
        assert_eq!([ranks.take(0, 10, 0, 2), ranks.take(5, 10, 1, 2)], [10, 20]);
        let mut nodes = links(Contention::Node);
        assert_eq!([nodes.take(0, 10, 0, 1), nodes.take(0, 10, 0, 1)], [0, 0]);
        assert_eq!([nodes.take(0, 10, 0, 2), nodes.take(0, 10, 1, 2)], [0, 10]);
        assert_eq!(nodes.take(0, 10, 2, 0), 0);
        let mut shared = links(Contention::Shared);
        assert_eq!([shared.take(0, 10, 0, 1), shared.take(0, 10, 1, 0)], [0, 10]);
        assert_eq!(links(Contention::None).take(7, 10, 0, 1), 7);
        // both have stopped, and go on at 100
        assert_eq!(
            [shared.take_again(10, 100, 8, 0, 1), shared.take_again(20, 100, 9, 1, 0)],
            [100, 108]
        );
    }
}
