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
        let node = |rank: u32| self.nodes[rank as usize] as usize;
        let (out, into) = match self.contention {
            Contention::None => return time,
            _ if from == to => return time,
            Contention::Rank => ((from as usize, 0), (to as usize, 1)),
            Contention::Node if node(from) == node(to) => return time,
            Contention::Node => ((node(from), 0), (node(to), 1)),
            Contention::Shared => ((node(from), 0), (node(to), 0)),
        };
        let begin = time.max(self.free[out.0][out.1]).max(self.free[into.0][into.1]);
        for (link, way) in [out, into] {
            self.free[link][way] = begin + wire;
        }
        begin
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
    }
}
