//! Writes a run of any size, to measure the readers: `cargo run --release --example synthetic -- DIR RANKS REQUESTS`.
//!
//! REQUESTS is for each rank. Every rank sends to the next and receives from the one before, in turn. Optional after it:
//! requests a completing call (default 4), distinct operations (default 64; as many as requests is what a program makes that
//! never uses a tag twice).

use std::path::Path;

use anyhow::{Context, Result};
use lapscope_fixture::tables::{
    Call, CallPath, Communicator, Frame, Module, Operation, Rank, Request, Thread,
};
use lapscope_fixture::Fixture;

const MODULE: &str = "/nowhere/synthetic";
const LAST_PATH: i64 = 9;

struct Shape {
    ranks: i64,
    requests: i64,
    together: i64,
    operations: i64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory =
        arguments.next().context("usage: synthetic DIR RANKS REQUESTS [TOGETHER] [OPERATIONS]")?;
    let mut number = |default: Option<i64>| -> Result<i64> {
        match arguments.next() {
            Some(text) => text.parse().with_context(|| format!("{text}: not a number")),
            None => default.context("usage: synthetic DIR RANKS REQUESTS [TOGETHER] [OPERATIONS]"),
        }
    };
    let shape = Shape {
        ranks: number(None)?,
        requests: number(None)?,
        together: number(Some(4))?.max(1),
        operations: number(Some(64))?.max(2) / 2 * 2,
    };
    std::fs::create_dir_all(&directory)?;
    for rank in 0..shape.ranks {
        write_rank(&Path::new(&directory).join(format!("rank-{rank}.db")), rank, &shape);
    }
    Ok(())
}

fn write_rank(path: &Path, rank: i64, shape: &Shape) {
    let whole = Rank {
        world_size: shape.ranks,
        host: "host",
        command: "synthetic",
        executable: MODULE,
        mpi_library: "Synthetic MPI",
        clock: "monotonic",
        end_ns: (shape.requests + 50_000) * 2_000,
        ..Rank::plain(rank)
    };
    whole.write_alone(path, |file| {
        define(file, rank, shape);
        let operations = write_operations(file, rank, shape);
        write_rows(file, rank, shape, &operations);
        write_plain_messages(file, rank, shape);
    });
}

fn define(file: &Fixture, rank: i64, shape: &Shape) {
    file.insert(Thread::default());
    let (size, comm_rank) = (shape.ranks, rank);
    file.insert(Communicator { size, comm_rank, ..Communicator::default() });
    file.insert(Module { path: MODULE, ..Module::default() });
    for call_path_id in 1..=LAST_PATH {
        file.insert(CallPath { id: Some(call_path_id), ..CallPath::default() });
        file.insert(Frame { call_path_id, address: call_path_id * 64, ..Frame::default() });
    }
}

/// Returns their ids.
fn write_operations(file: &Fixture, rank: i64, shape: &Shape) -> Vec<i64> {
    let add = |number: i64| {
        // the two ends of a message have the same tag and size
        let (tag, path) = (number / 2, 1 + number % 8);
        let bytes = 1i64 << (tag % 20);
        let (before, after) = ((rank + shape.ranks - 1) % shape.ranks, (rank + 1) % shape.ranks);
        let operation = match number % 2 {
            0 => Operation::send("MPI_Isend", path, (bytes, after, tag)),
            _ => Operation::receive("MPI_Irecv", path, (bytes, before, tag)),
        };
        file.insert(operation.waited())
    };
    (0..shape.operations).map(add).collect()
}

fn write_rows(file: &Fixture, rank: i64, shape: &Shape, operations: &[i64]) {
    let waitall = file.insert(Operation::of("MPI_Waitall", LAST_PATH));
    for first in (0..shape.requests).step_by(shape.together as usize) {
        let together = shape.together.min(shape.requests - first);
        // ranks are a little early or late, and waits long enough to be asked what they waited for
        let begin_ns = first * 2_000 + (rank * 7 + (first / shape.together + 1) * 13) % 600;
        let call = file.insert(Call {
            operation_id: waitall,
            begin_ns: begin_ns + 1_500 * together,
            duration_ns: Some(800 + first % 1_000),
            completed: together,
            ..Call::default()
        });
        for number in first..first + together {
            file.insert(Request {
                operation_id: operations[(number % shape.operations) as usize],
                completion_id: Some(call),
                post_begin_ns: begin_ns + (number - first) * 200,
                post_ns: 100 + number % 50,
                mpi_ns: Some(100),
                ..Request::default()
            });
        }
    }
}

/// Messages with nothing in between, from every other rank to the next, behind the others: for reference times.
fn write_plain_messages(file: &Fixture, rank: i64, shape: &Shape) {
    const MESSAGES: i64 = 400;
    const SIZES: i64 = 20;
    let is_sender = rank % 2 == 0;
    let tag = shape.operations;
    let add = |size: i64| {
        let bytes = 1i64 << size;
        file.insert(if is_sender {
            Operation::send("MPI_Send", LAST_PATH, (bytes, (rank + 1) % shape.ranks, tag))
        } else {
            Operation::receive("MPI_Recv", LAST_PATH, (bytes, rank - 1, tag))
        })
    };
    let operations: Vec<i64> = (0..SIZES).map(add).collect();
    for number in 0..MESSAGES {
        let (size, begin_ns) = (number % SIZES, (shape.requests + 100 * number) * 2_000);
        let early_ns = if is_sender { 0 } else { 2_000 };
        file.insert(Call {
            operation_id: operations[size as usize],
            begin_ns: begin_ns - early_ns,
            duration_ns: Some(early_ns + 1_000 + (1i64 << size) / 10),
            ..Call::default()
        });
    }
}
