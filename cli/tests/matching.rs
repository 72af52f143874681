//! The matcher against a model that plays MPI: every post meets the queues of its receiver as MPI-4.1 3.5 has it.
//! Receives from any source and with any tag, several communicators of the same ranks, one of them between two groups, two
//! threads a rank, blocking and other calls, cancelled receives, MPI_PROC_NULL, what is left over; completed in any order.

mod fixture;
#[path = "fixture/random.rs"]
mod random;

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use fixture::Rank;
use lapscope::trace::Trace;
use random::Random;

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

fn operation(id: usize, post: &Post, posts: &[Post], ended: &str) -> String {
    // a receive stands where its message came from, and is as long as that
    let message = match (post.what, post.partner) {
        (What::Receive, Some(send)) => &posts[send],
        _ => post,
    };
    let peer =
        if post.what == What::Receive && post.partner.is_some() { message.rank } else { post.peer };
    let (call, kind) = match (post.what == What::Send, post.is_blocking) {
        (true, false) => (1, "send"),
        (false, false) => (2, "recv"),
        (true, true) => (4, "send"),
        (false, true) => (9, "recv"),
    };
    let (peer, posted) = match post.what {
        What::Null => ("NULL".to_owned(), -2),
        _ if peer < 0 => ("NULL".to_owned(), -1),
        _ => (peer.to_string(), post.peer),
    };
    format!(
        "INSERT INTO operation VALUES ({id}, {}, {call}, 1, {}, '{kind}', {}, {peer}, {}, {posted}, {}, {}, {ended}, NULL, NULL);\n",
        post.rank, post.communicator, message.bytes, message.tag, post.tag, message.bytes
    )
}

/// Rows of one rank, each post an operation of its own, completed one by one.
fn rows(rank: i64, posts: &[Post], random: &mut Random) -> String {
    let mut sql = String::from(
        "BEGIN; DELETE FROM operation; INSERT INTO call_name VALUES (9, 'MPI_Recv', 'POINT_TO_POINT', 'BLOCK');\n",
    );
    let (thread, one, two) = (2, 2, 3);
    writeln!(sql, "INSERT INTO thread VALUES ({thread}, {rank}, 1, 101, 0, 1);").unwrap();
    writeln!(sql, "INSERT INTO communicator VALUES ({one}, {rank}, 42, 1, 'intra', 3, 0, {rank}, 'MPI_Comm_dup');").unwrap();
    writeln!(sql, "INSERT INTO communicator VALUES ({two}, {rank}, 77, 0, 'inter', 2, 1, {rank}, 'MPI_Intercomm_create');").unwrap();
    let mut ended: Vec<(i64, usize)> = Vec::new();
    let mut pending: Vec<usize> = Vec::new();
    let own = || posts.iter().enumerate().filter(|(_, post)| post.rank == rank);
    for (place, _) in own() {
        match end(posts, place, random) {
            Some(end) => ended.push((end, place)),
            None => pending.push(place),
        }
    }
    ended.sort_unstable();
    writeln!(sql, "INSERT INTO operation VALUES (1000, {rank}, 3, 1, NULL, 'other', 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL);").unwrap();
    for (id, &(end, place)) in (1..).zip(&ended) {
        let post = &posts[place];
        let state = match (post.is_blocking, post.what) {
            (true, _) => "NULL",
            (false, What::Cancelled) => "'cancelled'",
            _ => "'waited'",
        };
        sql += &operation(place + 1, post, posts, state);
        let of = 1 + random.below(2);
        if post.is_blocking && post.what != What::Cancelled {
            let duration = end - post.begin;
            writeln!(
                sql,
                "INSERT INTO call VALUES ({id}, {}, {of}, {}, {duration}, NULL, NULL, 0, NULL);",
                place + 1,
                post.begin
            )
            .unwrap();
            continue;
        }
        writeln!(
            sql,
            "INSERT INTO call VALUES ({id}, 1000, {of}, {}, 5, NULL, NULL, 1, NULL);",
            end - 5
        )
        .unwrap();
        writeln!(sql, "INSERT INTO request VALUES ({id}, {}, {id}, {of}, {}, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL);", place + 1, post.begin).unwrap();
    }
    for &place in &pending {
        sql += &operation(place + 1, &posts[place], posts, "'pending'");
        let id = 100_000 + place;
        writeln!(sql, "INSERT INTO request VALUES ({id}, {}, NULL, 1, {}, 1, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL);", place + 1, posts[place].begin).unwrap();
    }
    sql + "COMMIT;"
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
                let rank = Rank {
                    rank: number,
                    epoch_ns: 0,
                    world_size: RANKS,
                    end_ns: 9_000_000,
                    ..Rank::new(1)
                };
                rank.write(directory.path(), &rows(number, &posts, &mut random))
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
