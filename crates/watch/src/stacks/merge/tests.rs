use std::time::Instant;

use super::*;
use crate::stacks::made::{frame, rank};
use lapscope_data::say;
use lapscope_data::symbols::FrameName;

fn look(host: &str, ranks: Vec<RankStack>) -> HostLook {
    HostLook {
        host: host.to_owned(),
        observed_ns: Nanos(500_000_000),
        held_ns: Nanos(0),
        ranks,
        forbidden: 0,
        notes: Vec::new(),
    }
}

/// What a hundred hosts print of a hundred ranks each, whose stacks have twelve frames below `main`; `line` of the innermost.
fn printed(call: impl Fn(i64) -> Option<&'static str>, line: impl Fn(i64) -> u32) -> Vec<String> {
    let of = |host: i64, number: i64| {
        let mut frames: Vec<FrameName> =
            (0..12).map(|depth| frame(&format!("level_{depth}"), depth)).collect();
        frames[0] = frame("innermost", line(number));
        frames.push(frame("main", 7));
        rank(number, &format!("node{host}"), call(number), frames)
    };
    let hosts = (0..100).map(|host| {
        let ranks = (0..100).map(|at| of(host, host * 100 + at)).collect();
        look(&format!("node{host}"), ranks)
    });
    hosts.map(|look| serde_json::to_string(&look).unwrap()).collect()
}

/// Says how long it takes from what hosts print to what is printed: `cargo test --release -p lapscope-watch --lib ten_thousand --
/// --nocapture`.
fn merged(what: &str, printed: &[String]) -> StackDiagnosis {
    let begin = Instant::now();
    let looks = printed.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let found = merge(looks, Vec::new());
    let merging = begin.elapsed();
    let bytes = serde_json::to_string(&found).unwrap().len();
    say!("{what}: merged in {merging:?}, {bytes} bytes of JSON after {:?}", begin.elapsed());
    found
}

#[test]
fn ten_thousand_stacks_become_a_tree() {
    let call = |number| (number != 4711).then_some("MPI_Allreduce");
    let found = merged("two places", &printed(call, |number| 20 + u32::from(number == 4711)));
    assert_eq!((found.ranks.len(), found.hosts.len(), found.elsewhere.len()), (10_000, 100, 0));
    assert!(
        found.sentence.starts_with("Rank 4711 is outside of MPI, computing in innermost x.c:21"),
        "{}",
        found.sentence
    );
    assert!(
        found.sentence.contains("All ranks but 4711 are in MPI_Allreduce"),
        "{}",
        found.sentence
    );
    let mut branch = &found.tree[0];
    assert_eq!((found.tree.len(), branch.count, branch.place.as_str()), (1, 10_000, "main x.c:7"));
    while let [only] = branch.branches.as_slice() {
        branch = only;
    }
    let ends: Vec<(&str, usize)> =
        branch.branches.iter().map(|it| (it.place.as_str(), it.count)).collect();
    assert_eq!(ends, [("innermost x.c:21", 1), ("innermost x.c:20", 9999)]);
    assert_eq!(branch.branches[0].branches[0].place, "computes");
    assert_eq!(branch.branches[1].branches[0].ranks.len(), 9999);
}

/// The worst case: nobody is where another is.
#[test]
fn ten_thousand_stacks_at_as_many_places() {
    let found =
        merged("10,000 places", &printed(|_| Some("MPI_Recv"), |number| 100 + number as u32));
    let mut branch = &found.tree[0];
    while let [only] = branch.branches.as_slice() {
        branch = only;
    }
    assert_eq!(branch.branches.len(), 10_000);
    assert!(branch.branches.iter().all(|it| it.count == 1 && it.branches.len() == 1));
    assert!(found.sentence.contains("9997 further places"), "{}", found.sentence);
}

#[test]
fn what_hosts_have_seen_is_one_answer() {
    let of = |number, host| rank(number, host, Some("MPI_Recv"), vec![frame("main", 7)]);
    let mut second = look("b", vec![of(3, "b"), of(1, "b")]);
    second.notes.push("2 processes of other users were not looked at".to_owned());
    (second.observed_ns, second.held_ns) = (Nanos(400_000_000), Nanos(1000));
    second.ranks[0].size = Some(5);
    let mut first = look("a", vec![of(0, "a"), of(2, "a")]);
    first.ranks[0].run = Some("/runs/x".into());
    first.ranks[1].run = Some("/runs/x".into());
    [&mut first, &mut second].into_iter().for_each(|look| {
        look.ranks.iter_mut().for_each(|rank| rank.size = Some(5));
    });
    let gone = UnseenHost { host: "c".to_owned(), why: "it did not answer".to_owned() };
    let found = merge(vec![second.clone(), first, second], vec![gone]);
    let numbers: Vec<i64> = found.ranks.iter().map(|it| it.rank.unwrap().number).collect();
    assert_eq!((numbers, found.hosts.join(" ")), (vec![0, 1, 2, 3], "a b".to_owned()));
    assert_eq!(found.elsewhere, [Rank::of_first_world(4)]);
    assert_eq!((found.observed_ns, found.held_ns), (Nanos(400_000_000), Nanos(1000)));
    assert_eq!(found.notes, ["b: 2 processes of other users were not looked at"]);
    assert_eq!(found.runs(), [PathBuf::from("/runs/x")]);
    assert_eq!(found.unseen.len(), 1);
}

/// Rubbish that says that a job is larger than any.
#[test]
fn a_size_that_cannot_be_costs_nothing() {
    let mut only = rank(0, "a", None, Vec::new());
    only.size = Some(u64::MAX);
    assert!(merge(vec![look("a", vec![only])], Vec::new()).elsewhere.len() < 1 << 22);
    let none = merge(Vec::new(), Vec::new());
    assert_eq!((none.sentence.as_str(), none.hosts.len()), ("No rank was found.", 0));
}
