//! Results as they could be: eager sizes overlap, rendezvous sizes do not, injection mends it, everything with noise.

use std::collections::BTreeMap;

use crate::results::*;

const EAGER: f64 = 16384.0;

/// The same numbers every time (a linear congruential generator).
struct Noise(u64);

impl Noise {
    /// 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    fn around(&mut self, value: f64, share: f64) -> Spread {
        let median = value * (1.0 + share * (self.next() - 0.5));
        let (low, high) = (1.0 - share * self.next(), 1.0 + share * self.next());
        Spread { median, low: Some(median * low), high: Some(median * high) }
    }
}

pub fn results() -> Results {
    let mut noise = Noise(7);
    let mut runs = Vec::new();
    for mpi in 0..2 {
        for link in Link::ALL {
            for inject in Inject::ALL {
                for (program, tables) in programs(link, inject, &mut noise) {
                    let segments = match program {
                        "t0_t3" => segments(inject, link),
                        _ => Vec::new(),
                    };
                    runs.push(run(mpi, link, inject, (program, tables, segments)));
                }
            }
        }
    }
    let facts = [
        ("created", "2026-11-21 20:15 UTC"),
        ("processors", "2"),
        ("processor", "A Processor of Some Kind 7000 @ 2.45 GHz"),
        ("kernel", "Linux 6.1.0"),
        ("lapscope", "0.1.0"),
    ];
    Results {
        facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        mpis: vec![
            mpi("openmpi", "Open MPI v4.1.4, package: Debian, ident: 4.1.4"),
            mpi("mpich", "MPICH 4.0.2"),
        ],
        runs,
    }
}

fn mpi(name: &str, version: &str) -> MpiFacts {
    let [compiler, launcher] = ["mpicc", "mpirun"].map(str::to_owned);
    MpiFacts { name: name.to_owned(), version: version.to_owned(), compiler, launcher }
}

fn run(
    mpi: usize,
    link: Link,
    inject: Inject,
    (program, tables, segments): (&str, Vec<Table>, Vec<Segment>),
) -> Run {
    Run {
        mpi,
        link,
        inject,
        program: program.to_owned(),
        arguments: String::new(),
        settings: String::new(),
        ranks: 2,
        seconds: 10.0,
        problem: None,
        tables,
        thresholds: Vec::new(),
        segments,
        advice: Vec::new(),
    }
}

fn programs(link: Link, inject: Inject, noise: &mut Noise) -> Vec<(&'static str, Vec<Table>)> {
    let mut overlaps = Vec::new();
    let mut progresses = Vec::new();
    for side in ["send", "receive"] {
        for first in ["none", "sender", "receiver"] {
            if first == "none" || inject == Inject::Off {
                overlaps.push(overlap(side, first, inject, noise));
            }
        }
        progresses.push(progress(side, link, inject, noise));
    }
    let mut programs = vec![("overlap", overlaps), ("progress", progresses)];
    programs.push(("t0_t3", vec![t0_t3(false), t0_t3(true)]));
    programs.push(("ghost_cells", ghost_cells(link, inject, noise)));
    if inject == Inject::Off {
        programs.push(("collective_cpu", collectives(link, noise)));
    }
    programs
}

fn table(name: &str, attributes: &[(&str, &str)], rows: Vec<TableRow>) -> Table {
    let attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Table { name: name.to_owned(), attributes: attributes.collect(), rows }
}

fn row(values: &[(&str, Spread)]) -> TableRow {
    let value = |spread: Spread| Value { program: Some(spread), outside: None };
    let values: BTreeMap<_, _> =
        values.iter().map(|(name, spread)| ((*name).to_owned(), value(*spread))).collect();
    TableRow { values }
}

/// lapscope says nearly the same of it.
fn compared(mut row: TableRow, quantity: &str, noise: &mut Noise) -> TableRow {
    if let Some(value) = row.values.get_mut(quantity) {
        let program = value.program.expect("a program printed it").median;
        value.outside = Some(noise.around(program * 1.01, 0.08));
    }
    row
}

fn exactly(median: f64) -> Spread {
    Spread { median, low: None, high: None }
}

fn sizes() -> impl Iterator<Item = f64> {
    (0..=22).step_by(2).map(|exponent| f64::from(1 << exponent))
}

/// Microseconds of a transfer.
fn transfer(bytes: f64, link: Link) -> f64 {
    match link {
        Link::SharedMemory => 1.5 + bytes / 6000.0,
        Link::SlowLink => 30.0 + bytes / 200.0,
    }
}

fn overlap(side: &str, first: &str, inject: Inject, noise: &mut Noise) -> Table {
    let rows = sizes().map(|bytes| {
        let is_hidden =
            bytes <= EAGER || inject != Inject::Off || (side, first) == ("send", "receiver");
        let percent = if is_hidden { 88.0 } else { 3.0 };
        let overlap_percent = noise.around(percent, 0.15);
        let l0 = noise.around(transfer(bytes, Link::SlowLink), 0.1);
        let row =
            row(&[("bytes", exactly(bytes)), ("l0_us", l0), ("overlap_percent", overlap_percent)]);
        compared(row, "l0_us", noise)
    });
    let rows = rows.collect();
    table("overlap", &[("side", side), ("first", first)], rows)
}

fn progress(side: &str, link: Link, inject: Inject, noise: &mut Noise) -> Table {
    let mut rows = Vec::new();
    for bytes in [0.0, 1024.0, 8192.0, 65536.0, 262144.0, 1048576.0, 4194304.0] {
        let alone = transfer(bytes, link);
        let moves = bytes <= EAGER || inject != Inject::Off;
        for delay in [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0].map(|share| share * alone) {
            let latency = if moves { alone } else { delay + alone * 0.95 };
            let latency = if delay == 0.0 { alone } else { latency };
            let left = if moves { 4.0 } else { 93.0 };
            let row = row(&[
                ("bytes", exactly(bytes)),
                ("delay_us", exactly(delay)),
                ("latency_us", noise.around(latency, 0.08)),
                ("post_delay_percent", noise.around(left, 0.2)),
            ]);
            rows.push(compared(row, "latency_us", noise));
        }
    }
    table("progress", &[("side", side), ("first", "none")], rows)
}

fn t0_t3(has_tests: bool) -> Table {
    let tag = |place: usize| (if has_tests { 200 } else { 100 } + place) as f64;
    let sizes = [1024.0, 65536.0, 1048576.0].into_iter().enumerate();
    let rows =
        sizes.map(|(place, bytes)| row(&[("tag", exactly(tag(place))), ("bytes", exactly(bytes))]));
    let rows = rows.collect();
    table("t0_t3", &[("tests", if has_tests { "1" } else { "0" })], rows)
}

fn segments(inject: Inject, link: Link) -> Vec<Segment> {
    const MS: i64 = 1_000_000;
    let mut segments = Vec::new();
    for (tag, is_large, has_tests) in
        [(100, false, false), (101, true, false), (102, true, false), (201, true, true)]
    {
        let transfer = if link == Link::SlowLink { 3 * MS } else { MS / 5 };
        let freed = match (is_large, has_tests || inject != Inject::Off) {
            (false, _) => 5 * MS + 2_000,
            (true, true) => 6 * MS + transfer,
            (true, false) => 12 * MS + transfer,
        };
        let mut add = |rank, begin_ns, end_ns, what: &str| {
            segments.push(Segment { tag, rank, begin_ns, end_ns, what: what.to_owned() });
        };
        add(0, 0, 9_000, "MPI_Isend");
        add(0, 9_000, 5 * MS, "compute");
        add(0, 5 * MS, freed, "MPI_Wait");
        add(1, 40_000, 45_000, "MPI_Irecv");
        if has_tests {
            add(1, 45_000, 6 * MS, "compute");
            add(1, 6 * MS, 6 * MS + 20_000, "MPI_Testall");
            add(1, 6 * MS + 20_000, 12 * MS, "compute");
        } else {
            add(1, 45_000, 12 * MS, "compute");
        }
        add(1, 12 * MS, (freed + 9_000).max(12 * MS + 4_000), "MPI_Wait");
    }
    segments
}

fn ghost_cells(link: Link, inject: Inject, noise: &mut Noise) -> Vec<Table> {
    let forms: &[(&str, f64)] = match inject {
        Inject::Off => &[("plain", 1.0), ("test", 0.73), ("waitall", 0.56), ("both", 0.5)],
        Inject::Timer => &[("plain", 0.6)],
        Inject::Thread => &[("plain", 0.7)],
    };
    let whole = if link == Link::SlowLink { 6000.0 } else { 900.0 };
    let form = |(form, share): &(&str, f64)| {
        let row = row(&[
            ("tag", exactly(7.0)),
            ("bytes", exactly(262144.0)),
            ("step_us", noise.around(9000.0 + whole * share, 0.04)),
            ("communication_us", noise.around(whole * share, 0.2)),
        ]);
        let row = compared(row, "communication_us", noise);
        table("steps", &[("form", form)], vec![row])
    };
    forms.iter().map(form).collect()
}

fn collectives(link: Link, noise: &mut Noise) -> Vec<Table> {
    let mut tables = Vec::new();
    for op in ["allreduce", "bcast", "barrier"] {
        for ranks in ["2", "4"] {
            let sizes: Vec<f64> = if op == "barrier" { vec![0.0] } else { sizes().collect() };
            let rows = sizes.into_iter().map(|bytes| share(bytes, ranks, link, noise));
            tables.push(table("collective_cpu", &[("op", op), ("ranks", ranks)], rows.collect()));
        }
    }
    tables
}

fn share(bytes: f64, ranks: &str, link: Link, noise: &mut Noise) -> TableRow {
    let system = if link == Link::SlowLink { 38.0 } else { 5.0 };
    let idle = if ranks == "4" { 50.0 } else { 1.0 };
    row(&[
        ("bytes", exactly(bytes)),
        ("user_percent", noise.around(100.0 - system - idle, 0.06)),
        ("system_percent", noise.around(system, 0.2)),
        ("idle_percent", noise.around(idle, 0.1)),
    ])
}
