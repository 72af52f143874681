//! Writes a run of any size, to measure the readers: `cargo run --release --example synthetic -- DIR RANKS REQUESTS`.
//!
//! The files hold what a recorder would write of a program that goes in steps: every rank posts, computes, waits for what
//! it posted in one call, and now and then all of them meet in an MPI_Allreduce. `--help` has what can be asked for.

mod rank;
mod shape;

use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use clap::{Parser, ValueEnum};
use lapscope_fixture::write_file;
use rayon::prelude::*;

use shape::{Marks, Shape};

/// As `LAPSCOPE_FILES` has them.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Files {
    Rank,
    Node,
}

#[derive(Parser)]
struct Arguments {
    /// Where the files go
    directory: PathBuf,
    ranks: i64,
    /// Of each rank
    requests: i64,
    /// Requests a completing call [default: 4; with --stencil a send and a receive for each neighbour]
    together: Option<i64>,
    /// Distinct operations; as many as requests is what a program makes that never uses a tag twice [default: about 64]
    operations: Option<i64>,
    /// A file for each rank, or one for each node
    #[arg(long, value_enum, default_value = "rank")]
    files: Files,
    /// Ranks on each node, in their order [default: all on one]
    #[arg(long)]
    ranks_per_node: Option<i64>,
    /// Neighbours in a periodic grid of so many dimensions, instead of a ring in which each sends to the next
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=3))]
    stencil: Option<u8>,
    /// An MPI_Allreduce over MPI_COMM_WORLD behind so many requests of each rank, in whole steps
    #[arg(long)]
    collective_every: Option<i64>,
    /// A rank that computes longer in each step, while the others wait; may be given several times
    #[arg(long)]
    slow_rank: Vec<i64>,
    /// By how much
    #[arg(long, default_value_t = 31)]
    slow_percent: i64,
    /// What the program marks by MPI_Pcontrol [default: nothing]
    #[arg(long, value_enum)]
    marks: Option<Marks>,
}

impl Arguments {
    fn shape(&self) -> Result<Shape> {
        let ranks_per_node = self.ranks_per_node.unwrap_or(self.ranks);
        if self.ranks < 1 || self.requests < 0 || ranks_per_node < 1 {
            bail!("a run has at least one rank, and a node has one");
        }
        let directions = shape::directions(self.ranks, self.stencil);
        // of a step whose requests go once round, every neighbour has a send and a receive
        let round = 2 * directions.len() as i64;
        let operations = self.operations.unwrap_or((64 + round - 1) / round * round);
        let together = self.together.unwrap_or(if self.stencil.is_some() { round } else { 4 });
        let together = together.max(1);
        Ok(Shape {
            ranks: self.ranks,
            requests: self.requests,
            together,
            operations: operations.max(2) / 2 * 2,
            directions,
            ranks_per_node,
            steps_a_collective: self.collective_every.map(|every| (every / together).max(1)),
            slow_ranks: self.slow_rank.clone(),
            slow_percent: self.slow_percent.max(0),
            marks: self.marks,
        })
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let shape = arguments.shape()?;
    let directory = &arguments.directory;
    std::fs::create_dir_all(directory)?;
    let files: Vec<(PathBuf, Vec<i64>)> = match arguments.files {
        Files::Rank => {
            (0..shape.ranks).map(|rank| (rank_file(directory, rank), vec![rank])).collect()
        }
        Files::Node => (0..shape.nodes()).map(|node| node_file(directory, node, &shape)).collect(),
    };
    files.par_iter().with_max_len(1).for_each(|(path, ranks)| {
        write_file(path, |file| {
            for (place, &rank) in ranks.iter().enumerate() {
                rank::write(file, rank, place as i64, &shape);
            }
        });
    });
    Ok(())
}

fn rank_file(directory: &Path, rank: i64) -> PathBuf {
    directory.join(format!("rank-{rank}.db"))
}

fn node_file(directory: &Path, node: i64, shape: &Shape) -> (PathBuf, Vec<i64>) {
    let first = node * shape.ranks_per_node;
    let last = (first + shape.ranks_per_node).min(shape.ranks);
    let host = shape.host(first);
    (directory.join(format!("node-{host}.db")), (first..last).collect())
}
