use std::time::Instant;

use super::*;
use crate::stacks::made::{frame, rank};
use crate::stacks::RankOfJob;
use lapscope_data::model::Rank;
use lapscope_data::say;
use lapscope_data::symbols::FrameName;

fn look(host: &str, ranks: Vec<RankStack>) -> HostLook {
    HostLook {
        host: host.to_owned(),
        observed_ns: Nanos(500_000_000),
        held_ns: Nanos(0),
        ranks,
        forbidden: 0,
        of_other_programs: Vec::new(),
        nameless: 0,
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
    assert_eq!(
        (found.ranks.len(), found.hosts.len(), found.absent.elsewhere.len()),
        (10_000, 100, 0)
    );
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
    assert_eq!(found.absent.elsewhere, [Rank::of_first_world(4)]);
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
    assert!(merge(vec![look("a", vec![only])], Vec::new()).absent.elsewhere.len() < 1 << 22);
    let none = merge(Vec::new(), Vec::new());
    assert_eq!((none.sentence.as_str(), none.hosts.len()), ("No rank was found.", 0));
}

fn absent(local: Option<u64>, change: impl Fn(&mut HostLook)) -> (usize, usize, Option<u64>) {
    let mut ranks: Vec<RankStack> =
        [0, 1].map(|number| rank(number, "a", None, Vec::new())).to_vec();
    ranks.iter_mut().for_each(|it| (it.size, it.local_size) = (Some(4), local));
    let mut look = look("a", ranks);
    change(&mut look);
    let found = merge(vec![look], Vec::new());
    let says_ended = found.sentence.starts_with("Ranks 2-3 have ended. ");
    assert_eq!(says_ended, found.absent.ended.len() == 2, "{}", found.sentence);
    (found.absent.ended.len(), found.absent.elsewhere.len(), found.absent.elsewhere_ended)
}

#[test]
fn who_has_ended_is_told_from_who_is_elsewhere() {
    assert_eq!(absent(Some(4), |_| {}), (2, 0, Some(0)));
    assert_eq!(absent(Some(2), |_| {}), (0, 2, Some(0)));
    assert_eq!(absent(Some(3), |_| {}), (0, 2, Some(1)));
    assert_eq!(absent(None, |_| {}), (0, 2, None));
    // that have written over their environment
    assert_eq!(absent(Some(4), |look| look.nameless = 1), (0, 2, None));
    let other = RankOfJob { job: None, rank: Rank::of_first_world(2) };
    assert_eq!(
        absent(Some(4), |look| look.of_other_programs = vec![other.clone()]),
        (1, 0, Some(0))
    );
}

#[test]
fn jobs_and_worlds_are_not_mixed() {
    let of = |job: &str, world: i64, number: i64, size: u64| RankStack {
        rank: Some(Rank { world, number }),
        job: Some(job.to_owned()),
        pid: 10 * world + number + i64::from(job == "x") * 1000,
        size: Some(size),
        local_size: Some(size),
        ..rank(number, "a", Some("MPI_Recv"), vec![frame("main", 7)])
    };
    let ranks = vec![of("x", 1, 0, 1), of("y", 1, 0, 2), of("y", 1, 1, 2), of("y", 2, 1, 2)];
    let found = merge(vec![look("a", ranks)], Vec::new());
    let names = |it: &StackDiagnosis| -> Vec<String> {
        it.ranks.iter().map(|it| it.rank.unwrap().to_string()).collect()
    };
    assert_eq!(
        (found.job.as_deref(), names(&found)),
        (Some("y"), vec!["0".into(), "1".into(), "2:1".into()])
    );
    assert_eq!(found.absent.ended, [Rank { world: 2, number: 0 }]);
    assert!(found.sentence.contains("Ranks 0-1, 2:1 are in MPI_Recv"), "{}", found.sentence);
    assert_eq!(found.other_jobs.len(), 1);
    assert_eq!(
        (found.other_jobs[0].job.as_deref(), names(&found.other_jobs[0])),
        (Some("x"), vec!["0".into()])
    );
    assert_eq!(found.tree[0].ranks.len(), 3);
}
