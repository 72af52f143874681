use super::*;

const RUN: i64 = 10_000_000_000;

/// A rank that computes for so many thousandths of its run, and is in collectives for the rest.
fn rank(number: i64, host: &str, computes: i64, requests: i64) -> Compared<'_> {
    let outside = RUN / 1000 * computes;
    let values = vec![outside, RUN - outside, requests];
    Compared { rank: Rank::of_first_world(number), host, run_ns: Nanos(RUN), values }
}

fn alike(ranks: Vec<Compared<'_>>) -> Alike {
    Alike::compare(&[Measure::Outside, Measure::Collective, Measure::Requests], ranks)
}

/// 500 to 507 thousandths, all of them about as often.
fn noise(number: i64) -> i64 {
    500 + number * 37 % 8
}

fn range(first: i64, last: i64) -> [Rank; 2] {
    [first, last].map(Rank::of_first_world)
}

#[test]
fn one_rank_that_computes_longer_is_named_by_that() {
    let computes = |number| if number == 64 { 655 } else { noise(number) };
    let found = alike((0..128).map(|it| rank(it, "node", computes(it), 100)).collect());
    assert_eq!((found.verdict, found.ungrouped, found.hosts), (Likeness::Groups, 0, 1));
    let [typical, other] = found.groups.as_slice() else { panic!("{found:?}") };
    assert_eq!(typical.ranges, [range(0, 63), range(65, 127)]);
    assert!(typical.differences.is_empty());
    assert_eq!((other.count, other.ranges.as_slice()), (1, [range(64, 64)].as_slice()));
    let measures: Vec<Measure> = other.differences.iter().map(|it| it.measure).collect();
    assert_eq!(
        measures,
        [Measure::Outside, Measure::Collective],
        "it is the computation that differs"
    );
    assert_eq!(other.differences[0].value, RUN / 1000 * 655);
}

#[test]
fn a_node_is_one_group_though_its_ranks_differ_in_more() {
    let hosts: Vec<String> = (0..16).map(|node| format!("n{node:02}")).collect();
    let ranks = (0..128).map(|it| {
        let node = it / 8;
        let computes = if node == 5 { 700 + it % 2 * 60 } else { noise(it) };
        let requests = if it == 41 { 400 } else { 100 };
        rank(it, &hosts[node as usize], computes, requests)
    });
    let found = alike(ranks.collect());
    let [typical, other] = found.groups.as_slice() else { panic!("{found:?}") };
    assert_eq!((other.ranges.as_slice(), other.whole_hosts), ([range(40, 47)].as_slice(), true));
    assert_eq!(other.hosts, ["n05"]);
    assert_eq!((found.hosts, typical.hosts.len()), (16, 15));
}

#[test]
fn ranks_that_are_all_alike_and_ranks_that_only_spread() {
    let same = alike((0..100).map(|it| rank(it, "node", noise(it), 100)).collect());
    assert_eq!((same.verdict, same.groups.len()), (Likeness::Alike, 1));
    let spread = alike((0..100).map(|it| rank(it, "node", 400 + 37 * it % 100, 100)).collect());
    assert_eq!(spread.verdict, Likeness::Spread);
    let few = alike((0..8).map(|it| rank(it, "node", 100 * it, 100)).collect());
    assert_eq!((few.verdict, few.groups.len(), few.distributions.len()), (Likeness::Few, 0, 3));
    assert_eq!(alike(Vec::new()).verdict, Likeness::Few);
}

#[test]
fn too_many_kinds_are_no_groups() {
    let requests = |number: i64| 100 * (1 + number % 7);
    let ranks = (0..140).map(|it| rank(it, "node", 300 + 50 * (it / 7 % 6), requests(it)));
    let found = alike(ranks.collect());
    assert_eq!((found.verdict, found.ungrouped), (Likeness::Different, 140));
    assert!(found.groups.is_empty() && found.distributions.len() == 3);
}

/// Every rank once, and nothing by the order in which files were read.
#[test]
fn groups_hold_each_rank_once_in_whatever_order_they_come() {
    for seed in 1..200_i64 {
        let of = |it: i64| {
            let chance = (it * 7919 + seed * 104_729) % 1009;
            let computes = match chance {
                0..=20 => 800,
                21..=60 => 650,
                _ => noise(it + seed),
            };
            rank(it, if it % 2 == 0 { "even" } else { "odd" }, computes, 10 * (1 + chance % 3))
        };
        let ranks: Vec<Compared<'_>> = (0..300).map(of).collect();
        let mut others = ranks.clone();
        others.rotate_left(seed as usize);
        others.reverse();
        let found = alike(ranks);
        assert_eq!(found, alike(others), "{seed}");
        let grouped: usize = found.groups.iter().map(|group| group.count).sum();
        assert_eq!(grouped + found.ungrouped, 300);
        let mut all: Vec<Rank> =
            found.groups.iter().flat_map(|group| group.ranks.clone()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), grouped, "{seed}");
        for distribution in &found.distributions {
            assert!(
                distribution.min <= distribution.quartile_1
                    && distribution.quartile_3 <= distribution.max
            );
            assert!(matches!(distribution.histogram.iter().sum::<u64>(), 0 | 300));
        }
    }
}

/// Not what a table says, but that no list of lists is walked: ten thousand ranks of ten thousand nodes.
#[test]
fn ten_thousand_ranks_on_as_many_nodes() {
    let hosts: Vec<String> = (0..10_000).map(|node| format!("n{node}")).collect();
    let ranks = (0..10_000).map(|it| rank(it, &hosts[it as usize], noise(it), 100 + it % 3 * 100));
    let found = alike(ranks.collect());
    assert_eq!((found.verdict, found.groups.len()), (Likeness::Groups, 3));
}
