//! Programs whose pattern is known.

mod machine;

use machine::{Do, Program};

use super::*;
use Do::{Collective, Compute, Receive, Send, SendSync};

const WORK: i64 = 100_000;

/// Exchanges `arrays` messages with each neighbour in every step.
fn exchange(steps: usize, arrays: usize, neighbours: &[usize], is_synced: bool) -> Vec<Do> {
    let mut does = Vec::new();
    for _ in 0..steps {
        does.push(Compute(WORK));
        let each = || neighbours.iter().flat_map(|&to| std::iter::repeat_n(to, arrays));
        for to in each() {
            does.extend([Compute(1_500), Send(to)]);
        }
        does.extend(each().map(Receive));
        does.extend(is_synced.then_some(Collective));
    }
    does
}

/// Ranks of a grid that are neighbours of one.
fn around(rank: usize, [width, height]: [usize; 2]) -> Vec<usize> {
    let (x, y) = (rank % width, rank / width);
    let mut all = Vec::new();
    all.extend((x > 0).then(|| rank - 1));
    all.extend((x + 1 < width).then_some(rank + 1));
    all.extend((y > 0).then(|| rank - width));
    all.extend((y + 1 < height).then_some(rank + width));
    all
}

#[test]
fn a_halo_exchange_is_concurrent() {
    for grid in [[2, 1], [5, 1], [3, 3]] {
        for arrays in [1, 2, 6] {
            for is_synced in [false, true] {
                let program = Program::for_ranks(grid[0] * grid[1], |rank| {
                    exchange(20, arrays, &around(rank, grid), is_synced)
                });
                let patterns = program.patterns();
                let others: Vec<_> =
                    patterns.iter().filter(|(_, &is)| is != Pattern::Concurrent).collect();
                assert!(others.is_empty(), "{grid:?} {arrays} {is_synced}: {others:?}");
            }
        }
    }
}

/// Even ranks send first, odd ones receive first, each call until it is done: no two messages cross.
#[test]
fn an_exchange_in_turns_is_concurrent() {
    for arrays in [1, 2, 6] {
        let program = Program::for_ranks(6, |rank| {
            let mut does = Vec::new();
            for _ in 0..20 {
                does.push(Compute(WORK));
                for to in around(rank, [6, 1]) {
                    let send = std::iter::repeat_n(SendSync(to), arrays);
                    let receive = std::iter::repeat_n(Receive(to), arrays);
                    match rank % 2 {
                        0 => does.extend(send.chain(receive)),
                        _ => does.extend(receive.chain(send)),
                    }
                }
            }
            does
        });
        assert_eq!(program.pattern(), Pattern::Concurrent, "{arrays}: {:?}", program.votes());
    }
}

#[test]
fn a_ring_shift_is_concurrent() {
    for ranks in [2, 3, 8] {
        for is_synced in [false, true] {
            let program = Program::for_ranks(ranks, |rank| {
                let step = [
                    Some(Compute(WORK)),
                    Some(Send((rank + 1) % ranks)),
                    Some(Receive((rank + ranks - 1) % ranks)),
                    is_synced.then_some(Collective),
                ];
                step.into_iter()
                    .flatten()
                    .cycle()
                    .take(40 * step.iter().flatten().count())
                    .collect()
            });
            assert_eq!(program.pattern(), Pattern::Concurrent, "{ranks} {is_synced}");
        }
    }
}

#[test]
fn a_token_on_a_ring_is_dependent() {
    let program = Program::for_ranks(4, |rank| {
        let (next, last) = ((rank + 1) % 4, (rank + 3) % 4);
        let lap = match rank {
            0 => [Compute(WORK), Send(next), Receive(last)],
            _ => [Receive(last), Compute(WORK), Send(next)],
        };
        lap.into_iter().cycle().take(60).collect()
    });
    assert_eq!(program.pattern(), Pattern::Dependent);
}

/// A block of a sweep: takes what comes from two neighbours, computes, hands on.
fn block(does: &mut Vec<Do>, rank: usize, grid: [usize; 2], [x, y]: [bool; 2], is_sync: bool) {
    let (column, row) = (rank % grid[0], rank / grid[0]);
    let neighbour = |at: usize, of: usize, is_up: bool, stride: usize| match is_up {
        true => (at + 1 < of).then(|| rank + stride),
        false => (at > 0).then(|| rank - stride),
    };
    let along = |is_up: bool, is_x: bool| match is_x {
        true => neighbour(column, grid[0], is_up, 1),
        false => neighbour(row, grid[1], is_up, grid[0]),
    };
    let send = if is_sync { SendSync } else { Send };
    does.extend([along(!x, true), along(!y, false)].into_iter().flatten().map(Receive));
    does.push(Compute(WORK));
    does.extend([along(x, true), along(y, false)].into_iter().flatten().map(send));
}

const CORNERS: [[bool; 2]; 4] = [[true, true], [false, true], [false, false], [true, false]];

fn sweeps(
    grid: [usize; 2],
    blocks: usize,
    corners: &[[bool; 2]],
    is_sync: bool,
    is_synced: bool,
) -> Program {
    Program::for_ranks(grid[0] * grid[1], |rank| {
        let mut does = Vec::new();
        for _ in 0..6 {
            for &corner in corners {
                (0..blocks).for_each(|_| block(&mut does, rank, grid, corner, is_sync));
            }
            does.extend(is_synced.then_some(Collective));
        }
        does
    })
}

#[test]
fn a_wavefront_is_pipelined() {
    for is_sync in [false, true] {
        for is_synced in [false, true] {
            let in_one_dimension = sweeps([4, 1], 16, &CORNERS[..1], is_sync, is_synced);
            assert_eq!(in_one_dimension.pattern(), Pattern::Pipelined, "{is_sync} {is_synced}");
            let there_and_back = sweeps([4, 1], 16, &CORNERS[..2], is_sync, is_synced);
            assert_eq!(there_and_back.pattern(), Pattern::Pipelined, "{is_sync} {is_synced}");
            for grid in [[2, 2], [3, 4]] {
                for blocks in [8, 20] {
                    let program = sweeps(grid, blocks, &CORNERS, is_sync, is_synced);
                    let patterns = program.patterns();
                    let others: Vec<_> =
                        patterns.iter().filter(|(_, &is)| is != Pattern::Pipelined).collect();
                    assert!(
                        others.is_empty(),
                        "{grid:?} {blocks} {is_sync} {is_synced}: {others:?}"
                    );
                }
            }
        }
    }
}

/// With one block a sweep there is no row of messages, but nothing runs at the same time either.
#[test]
fn a_wavefront_of_single_blocks_is_not_concurrent() {
    let pattern = sweeps([4, 1], 1, &CORNERS[..2], false, false).pattern();
    assert!(matches!(pattern, Pattern::Dependent | Pattern::Pipelined), "{pattern:?}");
    let pattern = sweeps([3, 3], 1, &CORNERS, false, false).pattern();
    assert!(matches!(pattern, Pattern::Dependent | Pattern::Pipelined), "{pattern:?}");
}

fn ping_pong(work: i64, answer: i64) -> Pattern {
    let program = Program::for_ranks(2, |rank| {
        let turn = match rank {
            0 => [Compute(work), Send(1), Receive(1), Compute(0)],
            _ => [Receive(0), Compute(answer), Send(0), Compute(0)],
        };
        turn.into_iter().cycle().take(80).collect()
    });
    program.pattern()
}

#[test]
fn a_ping_pong_is_dependent() {
    for (work, answer) in [(WORK, 0), (0, WORK), (WORK, WORK)] {
        assert_eq!(ping_pong(work, answer), Pattern::Dependent, "{work} {answer}");
    }
    assert_eq!(ping_pong(0, 0), Pattern::Unknown, "nothing is computed with what comes");
}

#[test]
fn a_master_and_its_workers_are_dependent() {
    let workers = 3;
    let program = Program::for_ranks(workers + 1, |rank| {
        let mut does = Vec::new();
        for _ in 0..20 {
            match rank {
                0 => {
                    does.extend((1..=workers).flat_map(|worker| [Compute(2_000), Send(worker)]));
                    does.extend((1..=workers).flat_map(|worker| [Receive(worker), Compute(2_000)]));
                }
                _ => does.extend([Receive(0), Compute(WORK), Send(0)]),
            }
        }
        does
    });
    assert_eq!(program.pattern(), Pattern::Dependent);
}

#[test]
fn two_phases_are_mixed_and_few_messages_tell_nothing() {
    let both = Program::for_ranks(4, |rank| {
        let mut does = exchange(20, 1, &around(rank, [4, 1]), false);
        does.push(Collective);
        (0..40).for_each(|_| block(&mut does, rank, [4, 1], [true, true], false));
        does
    });
    assert_eq!(both.pattern(), Pattern::Mixed, "{:?}", both.votes());
    let few = Program::for_ranks(2, |rank| exchange(3, 1, &[1 - rank], false));
    assert_eq!(few.pattern(), Pattern::Unknown);
}

#[test]
fn a_rank_and_itself_tell_nothing() {
    let program = Program::for_ranks(1, |_| exchange(20, 1, &[0], false));
    assert_eq!(program.votes(), Votes::default());
}
