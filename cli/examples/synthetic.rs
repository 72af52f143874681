//! Writes a run of any size, to measure the readers: `cargo run --release --example synthetic -- DIR RANKS REQUESTS`.
//!
//! REQUESTS is for each rank. Every rank sends to the next and receives from the one before, in turn. Optional after it:
//! requests a completing call (default 4), distinct operations (default 64; as many as requests is what a program makes that
//! never uses a tag twice).

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{params, Connection};

const SCHEMA: &str = include_str!("../../schema/schema.sql");
const VIEWS: &str = include_str!("../../schema/views.sql");

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
        write_rank(&Path::new(&directory).join(format!("rank-{rank}.db")), rank, &shape)?;
    }
    Ok(())
}

fn write_rank(path: &Path, rank: i64, shape: &Shape) -> Result<()> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch(VIEWS)?;
    let transaction = connection.transaction()?;
    write_definitions(&transaction, rank, shape)?;
    write_rows(&transaction, rank, shape)?;
    write_plain_messages(&transaction, rank, shape)?;
    Ok(transaction.commit()?)
}

fn write_definitions(connection: &Connection, rank: i64, shape: &Shape) -> Result<()> {
    let end_ns = (shape.requests + 50_000) * 2_000;
    connection.execute(
        "INSERT INTO rank VALUES (?1, 1, ?1, 1, ?2, 'host', 1, 'synthetic', '/nowhere/synthetic', 'openmpi', 'Synthetic MPI',
         '3.1', 0, '0.1.0', 'job', 0, 0, 'monotonic', 0, ?3, 'finalize', 0, 0, 0, 0)",
        params![rank, shape.ranks, end_ns],
    )?;
    connection.execute("INSERT INTO thread VALUES (1, ?1, 0, 1, 0, 1)", [rank])?;
    connection.execute_batch(
        "INSERT INTO call_name VALUES (1, 'MPI_Isend', 'POINT_TO_POINT', 'POST'), (3, 'MPI_Irecv', 'POINT_TO_POINT', 'POST'),
                                      (2, 'MPI_Waitall', 'POINT_TO_POINT', 'COMPLETE')",
    )?;
    connection.execute(
        "INSERT INTO communicator VALUES (1, ?1, 42, 0, 'intra', ?2, 0, ?1, 'MPI_COMM_WORLD')",
        params![rank, shape.ranks],
    )?;
    connection
        .execute("INSERT INTO module VALUES (1, ?1, '/nowhere/synthetic', '', 0, 65536)", [rank])?;
    for path in 1..=9 {
        connection.execute("INSERT INTO call_path VALUES (?1, ?2, 0)", [path, rank])?;
        connection.execute("INSERT INTO frame VALUES (?1, 0, 1, ?2)", [path, path * 64])?;
    }
    let mut operation = connection.prepare(
        "INSERT INTO operation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8, ?9, ?7, ?10, NULL, NULL)",
    )?;
    operation.execute(params![
        1,
        rank,
        2,
        9,
        None::<i64>,
        "other",
        0,
        None::<i64>,
        None::<i64>,
        None::<&str>
    ])?;
    for number in 0..shape.operations {
        // the two ends of a message have the same tag and size
        let (tag, path) = (number / 2, 1 + number % 8);
        let (call, kind, peer) = match number % 2 {
            0 => (1, "send", (rank + 1) % shape.ranks),
            _ => (3, "recv", (rank + shape.ranks - 1) % shape.ranks),
        };
        let bytes = 1i64 << (tag % 20);
        operation.execute(params![
            2 + number,
            rank,
            call,
            path,
            1,
            kind,
            bytes,
            peer,
            tag,
            "waited"
        ])?;
    }
    Ok(())
}

fn write_rows(connection: &Connection, rank: i64, shape: &Shape) -> Result<()> {
    let mut call =
        connection.prepare("INSERT INTO call VALUES (?1, 1, 1, ?2, ?3, NULL, NULL, ?4, NULL)")?;
    let mut request = connection.prepare(
        "INSERT INTO request VALUES (?1, ?2, ?3, 1, ?4, ?5, 100, 0, 0, NULL, NULL, NULL, NULL, NULL)",
    )?;
    for first in (0..shape.requests).step_by(shape.together as usize) {
        let together = shape.together.min(shape.requests - first);
        let call_id = first / shape.together + 1;
        // ranks are a little early or late, and waits long enough to be asked what they waited for
        let begin_ns = first * 2_000 + (rank * 7 + call_id * 13) % 600;
        call.execute([call_id, begin_ns + 1_500 * together, 800 + first % 1_000, together])?;
        for id in first..first + together {
            let operation = 2 + id % shape.operations;
            request.execute([
                id + 1,
                operation,
                call_id,
                begin_ns + (id - first) * 200,
                100 + id % 50,
            ])?;
        }
    }
    Ok(())
}

/// Messages with nothing in between, from every other rank to the next, behind the others: for reference times.
fn write_plain_messages(connection: &Connection, rank: i64, shape: &Shape) -> Result<()> {
    const MESSAGES: i64 = 400;
    const SIZES: i64 = 20;
    connection.execute_batch(
        "INSERT INTO call_name VALUES (4, 'MPI_Send', 'POINT_TO_POINT', 'BLOCK'), (5, 'MPI_Recv', 'POINT_TO_POINT', 'BLOCK')",
    )?;
    let is_sender = rank % 2 == 0;
    let peer = if is_sender { (rank + 1) % shape.ranks } else { rank - 1 };
    let (call, kind) = if is_sender { (4, "send") } else { (5, "recv") };
    let first = 2 + shape.operations;
    for size in 0..SIZES {
        connection.execute(
            "INSERT INTO operation VALUES (?1, ?2, ?3, 9, 1, ?4, ?5, ?6, ?7, ?6, ?7, ?5, NULL, NULL, NULL)",
            params![first + size, rank, call, kind, 1i64 << size, peer, shape.operations],
        )?;
    }
    let mut row =
        connection.prepare("INSERT INTO call VALUES (?1, ?2, 1, ?3, ?4, NULL, NULL, 0, NULL)")?;
    for number in 0..MESSAGES {
        let (size, begin_ns) = (number % SIZES, (shape.requests + 100 * number) * 2_000);
        let early_ns = if is_sender { 0 } else { 2_000 };
        let duration_ns = early_ns + 1_000 + (1i64 << size) / 10;
        // behind those of the requests, without a gap: readers take one for missing rows
        let id = (shape.requests + shape.together - 1) / shape.together + 1 + number;
        row.execute([id, first + size, begin_ns - early_ns, duration_ns])?;
    }
    Ok(())
}
