//! What the experiments gave: everything that `lapscope bench` prints, keeps and draws.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::Serialize;

/// All runs of all experiments. Keys are documented in `docs/json.md`, tables in `schema/bench.sql`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Results {
    /// Facts of the whole: created, host, processors, …
    pub facts: BTreeMap<String, String>,
    pub mpis: Vec<MpiFacts>,
    /// In the order in which they were started.
    pub runs: Vec<Run>,
}

/// An MPI that was found here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MpiFacts {
    /// As `--mpi` takes it.
    pub name: String,
    /// What the library says of itself.
    pub version: String,
    pub compiler: String,
    pub launcher: String,
}

/// How the ranks reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Within one machine: moving data is a processor's work.
    #[value(name = "shared", help = "Ranks of one machine")]
    SharedMemory,
    /// TCP over a loopback of our own, held to [`Link::BYTES_PER_US`]: transfers take time while processors are free.
    #[value(name = "slow", help = "TCP over a loopback of its own that carries 1600 Mbit/s")]
    SlowLink,
}

impl Link {
    pub const ALL: [Link; 2] = [Link::SharedMemory, Link::SlowLink];
    /// What the slow link carries, for both directions together.
    pub const BYTES_PER_US: u32 = 200;

    /// As the database and JSON have it.
    pub fn key(self) -> &'static str {
        match self {
            Link::SharedMemory => "shared_memory",
            Link::SlowLink => "slow_link",
        }
    }

    /// For reading.
    pub fn words(self) -> &'static str {
        match self {
            Link::SharedMemory => "shared memory",
            Link::SlowLink => "slow link",
        }
    }
}

/// Whether lapscope made tests in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Inject {
    Off,
    Timer,
    Thread,
}

impl Inject {
    pub const ALL: [Inject; 3] = [Inject::Off, Inject::Timer, Inject::Thread];

    /// As `LAPSCOPE_INJECT`, the database and JSON have it.
    pub fn key(self) -> &'static str {
        match self {
            Inject::Off => "off",
            Inject::Timer => "timer",
            Inject::Thread => "thread",
        }
    }
}

/// A launch of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Place in [`Results::mpis`].
    pub mpi: usize,
    pub link: Link,
    pub inject: Inject,
    /// Directory under `examples`.
    pub program: String,
    pub arguments: String,
    /// Variables that only this run had.
    pub settings: String,
    pub ranks: u32,
    pub seconds: f64,
    /// Why there are no tables.
    pub problem: Option<String>,
    pub tables: Vec<Table>,
    /// What `lapscope thresholds` says, where that was asked.
    pub thresholds: Vec<Threshold>,
    /// One repetition of some rows, where timelines were asked for.
    pub segments: Vec<Segment>,
    /// The first pieces of advice of `lapscope report`, where that was asked.
    pub advice: Vec<AdviceGiven>,
}

/// A table that the program printed, and what lapscope says of the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// overlap, steps, progress, …
    pub name: String,
    /// What it was measured with: side, first, op, …
    pub attributes: BTreeMap<String, String>,
    pub rows: Vec<TableRow>,
}

/// Quantities by the name of their column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TableRow {
    pub values: BTreeMap<String, Value>,
}

/// One quantity of one row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Value {
    /// As the program has it; `None`: it printed `-`.
    pub program: Option<Spread>,
    /// As lapscope has it of the same run; `None`: not compared.
    pub outside: Option<Spread>,
}

/// Median, first and third quartile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    /// `None`: one value, without spread.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// From which size sends wait, as lapscope sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Threshold {
    /// post: MPI_Isend itself blocks; needs_receiver_progress: it waits for its receiver to be inside MPI; rendezvous: for its receive;
    /// cumulative: for others on their way.
    pub what: String,
    pub largest_eager_bytes: Option<u64>,
    pub smallest_waiting_bytes: Option<u64>,
    pub verdict: String,
    pub sentence: String,
}

/// What a rank did from one timestamp to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// The row whose messages these are.
    pub tag: i64,
    pub rank: u32,
    /// Since the first post of that repetition.
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Name of the MPI call; `compute`.
    pub what: String,
}

/// A piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviceGiven {
    pub cure: String,
    /// At stake, of the run time of all ranks.
    pub share: f64,
    pub sentence: String,
}

impl Results {
    /// All tables of that name, with the runs that printed them.
    pub fn tables<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Run, &'a Table)> {
        let of_run = move |run: &'a Run| {
            let named = run.tables.iter().filter(move |table| table.name == name);
            named.map(move |table| (run, table))
        };
        self.runs.iter().flat_map(of_run)
    }

    pub fn mpi(&self, run: &Run) -> &MpiFacts {
        &self.mpis[run.mpi]
    }
}

impl Table {
    /// An attribute; empty when it has none of that name.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

impl TableRow {
    /// What the program measured.
    pub fn program(&self, quantity: &str) -> Option<Spread> {
        self.values.get(quantity)?.program
    }

    /// What lapscope measured of the same.
    pub fn outside(&self, quantity: &str) -> Option<Spread> {
        self.values.get(quantity)?.outside
    }

    /// The median of what the program measured or was told.
    pub fn number(&self, quantity: &str) -> Option<f64> {
        self.program(quantity).map(|spread| spread.median)
    }

    /// The tag of its messages.
    pub fn tag(&self) -> Option<i64> {
        self.number("tag").map(|tag| tag as i64)
    }

    /// The size of its messages.
    pub fn bytes(&self) -> Option<u64> {
        self.number("bytes").map(|bytes| bytes as u64)
    }
}
