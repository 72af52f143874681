//! The matcher against a model that plays MPI: every post meets the queues of its receiver as MPI-4.1 3.5 has it.
//! Receives from any source and with any tag, several communicators of the same ranks, one of them between two groups, two
//! threads a rank, blocking and other calls, cancelled receives, MPI_PROC_NULL, what is left over; completed in any order.

use std::collections::HashMap;
use std::path::PathBuf;

use lapscope_fixture::random::Random;
use lapscope_fixture::tables::{Call, Communicator, Operation, Rank, Request, Thread};
use lapscope_fixture::Fixture;
use lapscope_trace::Trace;

const RANKS: i64 = 3;
const POSTS: i64 = 400;

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Send,
    Receive,
    /// Posted and taken back before anything came.
    Cancelled,
    /// To or from nobody.
    Null,
}

/// A post. -1 for any source or tag.
#[derive(Debug, Clone)]
struct Post {
    what: What,
    rank: i64,
    peer: i64,
    tag: i64,
    communicator: i64,
    bytes: i64,
    begin: i64,
    is_blocking: bool,
    /// Place of the post that it belongs to.
    partner: Option<usize>,
}

impl Post {
    fn accepts(&self, send: &Post) -> bool {
        self.what == What::Receive
            && send.what == What::Send
            && (self.rank, self.communicator) == (send.peer, send.communicator)
            && [-1, send.rank].contains(&self.peer)
            && [-1, send.tag].contains(&self.tag)
    }
}

fn random_posts(random: &mut Random) -> Vec<Post> {
    let mut posts: Vec<Post> = Vec::new();
    for number in 0..POSTS {
        let rank = random.below(RANKS);
        let what = match random.below(20) {
            0 => What::Cancelled,
            1 => What::Null,
            2..=10 => What::Send,
            _ => What::Receive,
        };
        let is_wild = what == What::Receive && random.below(3) == 0;
        posts.push(Post {
            what,
            rank,
            peer: if is_wild { -1 } else { random.below(RANKS) },
            tag: if is_wild && random.below(2) == 0 { -1 } else { random.below(2) },
            communicator: 1 + random.below(3),
            bytes: 1 + number,
            begin: 1_000 * (number + 1) + random.below(900),
            is_blocking: random.below(4) == 0,
            partner: None,
        });
    }
    posts
}

/// Lets every post in turn find the first in its receiver's queue that it belongs to.
fn play(posts: &mut [Post]) {
    for new in 0..posts.len() {
        let (before, rest) = posts.split_at_mut(new);
        let post = &mut rest[0];
        let meets = |old: &Post| match post.what {
            What::Send => old.accepts(post),
            _ => post.accepts(old),
        };
        let first = before.iter().position(|old| old.partner.is_none() && meets(old));
        if let Some(first) = first {
            before[first].partner = Some(new);
            post.partner = Some(first);
        }
    }
}

/// When it was completed: after both ends were posted, and otherwise whenever. `None`: never.
fn end(posts: &[Post], place: usize, random: &mut Random) -> Option<i64> {
    let post = &posts[place];
    let partner = post.partner.map(|partner| posts[partner].begin);
    let since = match (post.what, partner) {
        (What::Receive, None) => return None,
        (What::Receive, Some(partner)) => post.begin.max(partner),
        _ => post.begin,
    };
    Some(since + 10 + random.below(50_000))
}

fn operation(post: &Post, posts: &[Post], ended: Option<&'static str>) -> Operation<'static> {
    // a receive stands where its message came from, and is as long as that
    let (message, came_from) = match (post.what, post.partner) {
        (What::Receive, Some(send)) => (&posts[send], posts[send].rank),
        _ => (post, post.peer),
    };
    let (call, kind) = match (post.what == What::Send, post.is_blocking) {
        (true, false) => ("MPI_Isend", "send"),
        (false, false) => ("MPI_Irecv", "recv"),
        (true, true) => ("MPI_Send", "send"),
        (false, true) => ("MPI_Recv", "recv"),
    };
    let is_nobody = post.what == What::Null;
    Operation {
        communicator_id: Some(post.communicator),
        kind,
        bytes: message.bytes,
        peer: (!is_nobody && came_from >= 0).then_some(came_from),
        tag: Some(message.tag),
        posted_peer: Some(if is_nobody { -2 } else { post.peer }),
        posted_tag: Some(post.tag),
        posted_bytes: message.bytes,
        ended,
        ..Operation::other_call(call, 1)
    }
}

fn define(file: &Fixture, rank: i64) {
    file.insert(Thread { number: 1, tid: 101, ..Thread::default() });
    let name = "MPI_Comm_dup";
    file.insert(Communicator {
        ordinal: 1,
        size: 3,
        comm_rank: rank,
        name,
        ..Communicator::default()
    });
    let (kind, name) = ("inter", "MPI_Intercomm_create");
    let groups = Communicator { kind, name, identity: 77, ..Communicator::default() };
    file.insert(Communicator { remote_size: 1, comm_rank: rank, ..groups });
}

/// Places of the posts of a rank in the order in which they were completed, with when; and of those that never were.
fn by_end(rank: i64, posts: &[Post], random: &mut Random) -> (Vec<(i64, usize)>, Vec<usize>) {
    let (mut ended, mut pending) = (Vec::new(), Vec::new());
    for (place, _) in posts.iter().enumerate().filter(|(_, post)| post.rank == rank) {
        match end(posts, place, random) {
            Some(end) => ended.push((end, place)),
            None => pending.push(place),
        }
    }
    ended.sort_unstable();
    (ended, pending)
}

/// Rows of one rank, each post an operation of its own, completed one by one.
fn write(file: &Fixture, rank: i64, posts: &[Post], random: &mut Random) {
    define(file, rank);
    let (ended, pending) = by_end(rank, posts, random);
    let wait = file.insert(Operation::other_call("MPI_Waitall", 1));
    for (end, place) in ended {
        let post = &posts[place];
        let state = match (post.is_blocking, post.what) {
            (true, _) => None,
            (false, What::Cancelled) => Some("cancelled"),
            _ => Some("waited"),
        };
        let operation_id = file.insert(operation(post, posts, state));
        let thread_id = 1 + random.below(2);
        let call = |operation_id, begin_ns| {
            let duration_ns = Some(end - begin_ns);
            Call { operation_id, thread_id, begin_ns, duration_ns, ..Call::default() }
        };
        if post.is_blocking && post.what != What::Cancelled {
            file.insert(call(operation_id, post.begin));
            continue;
        }
        let completion_id = Some(file.insert(Call { completed: 1, ..call(wait, end - 5) }));
        let request = Request { operation_id, completion_id, thread_id, ..Request::default() };
        let mpi_ns = Some(0);
        file.insert(Request { post_begin_ns: post.begin, post_ns: 1, mpi_ns, ..request });
    }
    for place in pending {
        let operation_id = file.insert(operation(&posts[place], posts, Some("pending")));
        let request =
            Request { operation_id, post_begin_ns: posts[place].begin, ..Request::default() };
        file.insert(Request { post_ns: 1, ..request });
    }
}

#[test]
fn messages_are_matched_as_mpi_matches_them() {
    for seed in 1..=12 {
        let mut random = Random(seed);
        let mut posts = random_posts(&mut random);
        // what is cancelled has a request; what never completes too
        posts
            .iter_mut()
            .filter(|post| post.what == What::Cancelled)
            .for_each(|post| post.is_blocking = false);
        play(&mut posts);
        for post in &mut posts {
            post.is_blocking &= post.what != What::Receive || post.partner.is_some();
        }
        let directory = tempfile::tempdir().unwrap();
        let files: Vec<PathBuf> = (0..RANKS)
            .map(|number| {
                let rank = Rank { world_size: RANKS, end_ns: 9_000_000, ..Rank::plain(number) };
                rank.write(directory.path(), |file| write(file, number, &posts, &mut random))
            })
            .collect();
        let (trace, failed) = Trace::read(&files, &|_| ()).unwrap();
        assert!(failed.is_empty());
        check(&trace, &posts, seed);
    }
}

fn check(trace: &Trace, posts: &[Post], seed: u64) {
    let by_begin: HashMap<i64, &Post> = posts.iter().map(|post| (post.begin, post)).collect();
    let mut seen = 0;
    for half in (0..trace.ranks.len()).flat_map(|rank| trace.halves(rank)) {
        let post = by_begin[&half.post_begin];
        let expected = post.partner.map(|partner| posts[partner].begin);
        let found = trace.partner(&half).map(|partner| partner.post_begin);
        assert_eq!(found, expected, "seed {seed}: {post:?}");
        seen += 1;
    }
    assert_eq!(seen, posts.len());
    let sends = |is_matched: bool| {
        let of = |post: &&Post| post.what == What::Send && post.partner.is_some() == is_matched;
        posts.iter().filter(of).count() as u64
    };
    let matching = &trace.matching;
    assert_eq!((matching.messages, matching.unmatched_sends), (sends(true), sends(false)));
    assert_eq!((matching.unmatched_receives, matching.doubtful, matching.not_followed), (0, 0, 0));
    assert!(matching.messages > 50, "{matching:?}");
}
