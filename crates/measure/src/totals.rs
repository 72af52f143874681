//! Time inside MPI by category: of each rank, of all, and how it is spread.

use serde::Serialize;

use lapscope_data::model::{Category, Ended, Full, Kind, Nanos, Rank};
use lapscope_trace::sums::cell::CallCell;
use lapscope_trace::sums::combine::{Entry, RankSums, RunSums};

/// Sums over all ranks. Fractions are of `run_ns`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Totals {
    /// MPI_Init to MPI_Finalize, summed over ranks.
    pub run_ns: Nanos,
    /// Inside MPI in that time: the sum of the nine below.
    pub mpi_ns: Nanos,
    pub mpi_share: f64,
    pub posting_ns: Nanos,
    /// In calls that ended requests: exposed time of non-blocking communication.
    pub exposed_ns: Nanos,
    /// In calls that communicate, while a GPU of the rank computed: part of none of the others.
    pub overlapped_with_gpu_ns: Nanos,
    pub blocking_ns: Nanos,
    pub collective_ns: Nanos,
    /// In calls on windows that make no request.
    pub rma_ns: Nanos,
    /// In calls on files that make no request.
    pub io_ns: Nanos,
    pub unsuccessful_test_ns: Nanos,
    pub other_ns: Nanos,
    /// Requests made.
    pub requests: u64,
    /// Calls of all kinds, unsuccessful tests included.
    pub calls: u64,
    /// Calls that ended requests.
    pub completing_calls: u64,
    pub unsuccessful_tests: u64,
    /// Part of `exposed_ns` at no posting site: of requests whose start was not seen.
    pub unattributed_exposed_ns: Nanos,
    /// Completing time that computation in the overlap windows of the same requests could at most have overlapped.
    pub possible_overlap_ns: Nanos,
}

/// One rank.
#[derive(Debug, Serialize)]
pub struct RankRow {
    pub rank: Rank,
    pub life: i64,
    pub host: String,
    pub pid: i64,
    pub ended: Ended,
    pub lost_records: u64,
    pub unknown_requests: u64,
    pub summarized: bool,
    /// It is of the record of a job, which knows no more of its end than that there was no MPI_Finalize.
    #[serde(skip)]
    pub is_of_job_record: bool,
    /// Bytes of point-to-point messages, blocking ones among them.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    #[serde(flatten)]
    pub totals: Totals,
}

/// A number over ranks, with the ranks that have the extremes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct MinMeanMax {
    pub min: f64,
    pub min_rank: Rank,
    pub mean: f64,
    pub max: f64,
    pub max_rank: Rank,
}

pub fn rank_rows(run: &RunSums) -> Vec<RankRow> {
    let mut totals = vec![Totals::default(); run.ranks.len()];
    let mut shared_out = vec![Nanos(0); run.ranks.len()];
    let mut bytes = vec![[0u64; 2]; run.ranks.len()];
    for entry in &run.entries {
        let category = run.category(entry);
        totals[entry.rank].add(category, &entry.cell);
        if let Some(sum) = direction(run, entry).map(|direction| &mut bytes[entry.rank][direction])
        {
            *sum = sum.saturating_add(entry.cell.bytes.0);
        }
        if category == Category::Posting {
            shared_out[entry.rank] += entry.cell.completion;
        }
    }
    let rows = run.ranks.iter().zip(totals).zip(shared_out).zip(bytes);
    rows.map(|(((rank, totals), shared_out), bytes)| rank_row(rank, totals, shared_out, bytes))
        .collect()
}

/// 0 of what was sent, 1 of what was received; `None` of what is no message.
fn direction(run: &RunSums, entry: &Entry) -> Option<usize> {
    let transfers =
        matches!(run.category(entry), Category::Posting | Category::BlockingPointToPoint);
    if !transfers || !run.places.call(entry.site).counted {
        return None;
    }
    match entry.kind {
        Kind::Send => Some(0),
        Kind::Recv => Some(1),
        _ => None,
    }
}

fn rank_row(
    rank: &RankSums,
    mut totals: Totals,
    shared_out: Nanos,
    [sent_bytes, received_bytes]: [u64; 2],
) -> RankRow {
    let info = &rank.info;
    totals.run_ns = info.run_time();
    totals.mpi_share = totals.mpi_ns.share_of(totals.run_ns);
    totals.unattributed_exposed_ns = Nanos((totals.exposed_ns - shared_out).0.max(0));
    // Windows of different completing calls may overlap too, but a rank cannot overlap more than it computed.
    let computed = Nanos((totals.run_ns - totals.mpi_ns).0.max(0));
    totals.possible_overlap_ns = rank.possible_overlap.min(computed).min(totals.exposed_ns);
    RankRow {
        rank: info.rank,
        life: info.life,
        host: info.host.clone(),
        pid: info.pid,
        ended: info.ended,
        lost_records: info.lost_records,
        unknown_requests: info.unknown_requests,
        summarized: info.summarized.is_some(),
        is_of_job_record: info.summarized == Some(Full::JobRecord),
        sent_bytes,
        received_bytes,
        totals,
    }
}

impl Totals {
    fn add(&mut self, category: Category, cell: &CallCell) {
        let sum = match category {
            Category::Posting => &mut self.posting_ns,
            Category::Completing => &mut self.exposed_ns,
            Category::BlockingPointToPoint => &mut self.blocking_ns,
            Category::Collective => &mut self.collective_ns,
            Category::Rma => &mut self.rma_ns,
            Category::Io => &mut self.io_ns,
            Category::UnsuccessfulTest => &mut self.unsuccessful_test_ns,
            Category::Other => &mut self.other_ns,
            Category::Outside => return,
        };
        *sum += cell.inside;
        self.overlapped_with_gpu_ns += cell.beside_gpu;
        self.mpi_ns += cell.inside + cell.beside_gpu;
        self.calls += cell.count;
        match category {
            Category::Posting => self.requests += cell.count,
            Category::Completing => self.completing_calls += cell.count,
            Category::UnsuccessfulTest => self.unsuccessful_tests += cell.count,
            _ => {}
        }
    }
}

pub fn sum_totals(ranks: &[RankRow]) -> Totals {
    let mut sum = Totals::default();
    for Totals {
        run_ns,
        mpi_ns,
        mpi_share: _,
        posting_ns,
        exposed_ns,
        overlapped_with_gpu_ns,
        blocking_ns,
        collective_ns,
        rma_ns,
        io_ns,
        unsuccessful_test_ns,
        other_ns,
        requests,
        calls,
        completing_calls,
        unsuccessful_tests,
        unattributed_exposed_ns,
        possible_overlap_ns,
    } in ranks.iter().map(|rank| rank.totals)
    {
        sum.run_ns += run_ns;
        sum.mpi_ns += mpi_ns;
        sum.posting_ns += posting_ns;
        sum.exposed_ns += exposed_ns;
        sum.overlapped_with_gpu_ns += overlapped_with_gpu_ns;
        sum.blocking_ns += blocking_ns;
        sum.collective_ns += collective_ns;
        sum.rma_ns += rma_ns;
        sum.io_ns += io_ns;
        sum.unsuccessful_test_ns += unsuccessful_test_ns;
        sum.other_ns += other_ns;
        sum.requests += requests;
        sum.calls += calls;
        sum.completing_calls += completing_calls;
        sum.unsuccessful_tests += unsuccessful_tests;
        sum.unattributed_exposed_ns += unattributed_exposed_ns;
        sum.possible_overlap_ns += possible_overlap_ns;
    }
    sum.mpi_share = sum.mpi_ns.share_of(sum.run_ns);
    sum
}

pub fn min_mean_max(ranks: &[RankRow], value: impl Fn(&RankRow) -> f64) -> MinMeanMax {
    let mut values = ranks.iter().map(|row| (value(row), row.rank));
    let (first, rank) = values.next().unwrap_or((0.0, Rank::of_first_world(0)));
    let start = MinMeanMax { min: first, min_rank: rank, mean: first, max: first, max_rank: rank };
    let mut found = values.fold(start, |mut found, (value, rank)| {
        if value < found.min {
            (found.min, found.min_rank) = (value, rank);
        }
        if value > found.max {
            (found.max, found.max_rank) = (value, rank);
        }
        found.mean += value;
        found
    });
    found.mean /= ranks.len().max(1) as f64;
    found
}
