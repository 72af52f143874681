//! Random programs. All ranks come to communications in one order, so that each blocks only for what those before it bring.

use lapscope_data::model::{Mode, Needs};
use lapscope_trace::script::{Act, Message, Script};

/// Numbers from a seed: splitmix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self) -> u64 {
        [0, 8, 1_000, 3_000, 5_000, 20_000, 100_000][self.below(7)]
    }

    fn mode(&mut self) -> Mode {
        [Mode::Standard, Mode::Standard, Mode::Standard, Mode::Synchronous, Mode::Buffered]
            [self.below(5)]
    }
}

/// A script under way, with the requests of each thread that are not waited for yet.
struct Maker {
    random: Random,
    script: Script,
    made: Vec<Vec<usize>>,
    open: Vec<Vec<Vec<usize>>>,
}

/// A program of 2 to 5 ranks of 1 or 2 threads on 1 or 2 nodes.
pub fn script(seed: u64) -> Script {
    let mut random = Random(seed);
    let (ranks, threads) = (2 + random.below(4), 1 + random.below(2));
    let nodes = 1 + random.below(2);
    let script = Script {
        acts: vec![vec![Vec::new(); threads]; ranks],
        nodes: (0..ranks).map(|rank| (rank % nodes) as u32).collect(),
        ..Script::new(ranks)
    };
    let (made, open) = (vec![vec![0; threads]; ranks], vec![vec![Vec::new(); threads]; ranks]);
    let mut maker = Maker { random, script, made, open };
    for _ in 0..20 + maker.random.below(60) {
        maker.communicate();
    }
    for rank in 0..ranks {
        (0..threads).for_each(|thread| maker.wait(rank, thread));
    }
    maker.script
}

impl Maker {
    fn communicate(&mut self) {
        let ranks = self.script.acts.len();
        match self.random.below(10) {
            0 => self.collective(),
            1 => self.ring(),
            2 => {
                let (rank, thread) = (self.random.below(ranks), self.thread());
                self.wait(rank, thread);
            }
            _ => self.message(),
        }
    }

    fn thread(&mut self) -> usize {
        self.random.below(self.script.acts[0].len())
    }

    fn push(&mut self, rank: usize, thread: usize, act: Act) {
        if self.random.below(2) == 0 {
            let ns = 10 * self.random.below(3_000) as i64;
            self.script.acts[rank][thread].push(Act::Compute(ns));
        }
        if self.random.below(20) == 0 {
            self.script.acts[rank][thread].push(Act::Other(700));
        }
        if matches!(act, Act::Isend(_) | Act::Irecv(_) | Act::Icollective(..)) {
            self.open[rank][thread].push(self.made[rank][thread]);
            self.made[rank][thread] += 1;
        }
        self.script.acts[rank][thread].push(act);
    }

    fn message(&mut self) {
        let ranks = self.script.acts.len();
        let (from, to) = (self.random.below(ranks), self.random.below(ranks));
        let (sends, receives) = (self.thread(), self.thread());
        let tag = (10 * sends + receives) as i64;
        let mode = self.random.mode();
        let sent = Message { mode, ..Message::new(to, tag, self.random.bytes()) };
        let is_wildcard = self.random.below(4) == 0;
        let received = Message { is_wildcard, ..Message::new(from, tag, sent.bytes) };
        // of two blocking calls on one thread, or on threads that wait for each other's ranks, none would come first
        let (is_send, is_receive) = match (from, sends) == (to, receives) {
            true => (true, true),
            false => (self.random.below(2) == 0, self.random.below(2) == 0),
        };
        let send = if is_send { Act::Isend(sent) } else { Act::Send(sent) };
        let receive = if is_receive { Act::Irecv(received) } else { Act::Recv(received) };
        let is_receive_first = is_receive && self.random.below(2) == 0;
        let both = [(from, sends, send), (to, receives, receive)];
        let [first, second] = if is_receive_first { [1, 0] } else { [0, 1] };
        for place in [first, second] {
            let (rank, thread, act) = both[place].clone();
            self.push(rank, thread, act);
        }
    }

    /// Everybody sends to the next and receives from the one before.
    fn ring(&mut self) {
        let ranks = self.script.acts.len();
        let (tag, bytes) = (1_000, self.random.bytes());
        for rank in 0..ranks {
            let sent = Message::new((rank + 1) % ranks, tag, bytes);
            let received = Message::new((rank + ranks - 1) % ranks, tag, bytes);
            self.push(rank, 0, Act::Sendrecv(sent, received));
        }
    }

    fn collective(&mut self) {
        let needs = [Needs::All, Needs::Root, Needs::AllAtRoot][self.random.below(3)];
        let ranks = self.script.acts.len();
        let (root, is_request) = (self.random.below(ranks), self.random.below(2) == 0);
        for rank in 0..ranks {
            let act = match is_request {
                true => Act::Icollective(needs, root),
                false => Act::Collective(needs, root),
            };
            self.push(rank, 0, act);
        }
    }

    /// For some of the requests that are open.
    fn wait(&mut self, rank: usize, thread: usize) {
        let requests = std::mem::take(&mut self.open[rank][thread]);
        if requests.is_empty() {
            return;
        }
        let act = match self.random.below(3) {
            0 => Act::TestLoop(requests),
            _ => Act::Wait(requests),
        };
        self.push(rank, thread, act);
    }
}
