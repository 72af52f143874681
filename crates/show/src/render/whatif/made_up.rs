//! An answer as it could be.

use lapscope_data::model::{Nanos, Rank};
use lapscope_data::symbols::FrameName;
use lapscope_measure::overlap::sums::OverlapTimes;
use lapscope_predict::replay::scenario::{Contention, Protocol, Scenario};
use lapscope_predict::whatif::document::{
    Blocked, CriticalPath, Deadlock, LocalityModel, Model, PathKind, PathRank, PathSite,
    PeerAction, RankResult, Recorded, RootCause, ScenarioResult, SiteResult, Standstill, Sweep,
    SweepPoint, WhatIf,
};
use lapscope_predict::whatif::fit::{ContentionFrom, LimitFrom};
use lapscope_trace::Locality;

const MS: i64 = 1_000_000;

pub(crate) fn rank(number: i64) -> Rank {
    Rank { world: 1, number }
}

fn ms(ms: i64) -> Nanos {
    Nanos(ms * MS)
}

fn frame(function: &str, line: u32) -> Option<FrameName> {
    Some(FrameName {
        function: Some(function.to_owned()),
        offset: None,
        file: Some("halo.c".to_owned()),
        line: Some(line),
        column: None,
        module: Some("/build/halo".to_owned()),
        address: 0x1000,
        inlined: false,
    })
}

fn exposed(no_local_progress: i64, transfer: i64) -> OverlapTimes {
    OverlapTimes {
        exposed_no_local_progress_ns: ms(no_local_progress),
        exposed_transfer_ns: ms(transfer),
        ..OverlapTimes::default()
    }
}

/// A scenario that ends.
pub(crate) fn answer(name: &str, run_ms: i64) -> ScenarioResult {
    let transfer = 200;
    let stood = (run_ms - 1_000).max(0);
    ScenarioResult {
        name: name.to_owned(),
        scenario: Scenario::default(),
        run_ns: Some(ms(run_ms)),
        run_low_ns: None,
        run_high_ns: None,
        change: Some(run_ms as f64 / 1_990.0 - 1.0),
        identity_error: -0.005,
        identity_exposed_error: 0.002,
        exposed_ns: ms(stood + transfer),
        exposed: exposed(stood, transfer),
        sites: vec![SiteResult {
            call: "MPI_Waitall".to_owned(),
            site: frame("exchange", 84),
            recorded_ns: ms(1_100),
            identity_ns: ms(1_090),
            exposed_ns: ms(stood),
        }],
        ranks: (0..2)
            .map(|number| RankResult {
                rank: rank(number),
                run_ns: ms(run_ms),
                compute_ns: ms(800),
                overhead_ns: ms(10),
                wait_ns: ms(run_ms - 810),
            })
            .collect(),
        critical_path: Some(path(run_ms)),
        root_causes: vec![RootCause {
            rank: rank(1),
            what: stretch(PathKind::Computation, 300, run_ms),
            delayed_ns: ms(280),
            delayed_ranks: 1,
        }],
        deadlock: None,
        to_know: Vec::new(),
        notes: Vec::new(),
    }
}

fn stretch(kind: PathKind, took: i64, run_ms: i64) -> PathSite {
    PathSite {
        kind,
        call: Some("MPI_Waitall".to_owned()),
        site: frame("exchange", 84),
        next_call: (kind == PathKind::Computation).then(|| "MPI_Isend".to_owned()),
        next_site: frame("post", 70),
        ns: ms(took),
        share: took as f64 / run_ms as f64,
    }
}

fn path(run_ms: i64) -> CriticalPath {
    CriticalPath {
        length_ns: ms(run_ms),
        compute_ns: ms(700),
        overhead_ns: ms(20),
        communication_ns: ms(run_ms - 720),
        by_rank: vec![
            PathRank { rank: rank(0), ns: ms(200), share: 200.0 / run_ms as f64 },
            PathRank { rank: rank(1), ns: ms(run_ms - 200), share: 1.0 - 200.0 / run_ms as f64 },
        ],
        by_site: vec![
            stretch(PathKind::Communication, 480, run_ms),
            stretch(PathKind::Computation, 300, run_ms),
            stretch(PathKind::Overhead, 20, run_ms),
        ],
    }
}

/// A scenario in which two ranks send to each other and wait for ever.
pub(crate) fn deadlocked(name: &str) -> ScenarioResult {
    let blocked = |number: i64| Blocked {
        rank: rank(number),
        call: "MPI_Send".to_owned(),
        site: frame("exchange", 42),
        waits_for: vec![rank(1 - number)],
        bytes: Some(4096),
        tag: Some(7),
        awaits: PeerAction::Receive,
    };
    let says = "with an eager limit of 0 ranks 0 and 1 deadlock in MPI_Send at exchange halo.c:42";
    let deadlock = Deadlock {
        cycle: vec![blocked(0), blocked(1)],
        blocked: 2,
        at_ns: ms(3),
        standstill: Standstill::Circle { gaps: None, is_wildcard: false },
        says: says.to_owned(),
    };
    ScenarioResult {
        run_ns: None,
        change: None,
        critical_path: None,
        root_causes: Vec::new(),
        deadlock: Some(deadlock),
        ..answer(name, 1_000)
    }
}

/// Two ranks for two seconds, replayed half a percent too fast.
pub(crate) fn whatif(scenarios: Vec<ScenarioResult>) -> WhatIf {
    let localities = vec![LocalityModel {
        locality: Locality::Node,
        messages: 1_200,
        latency_ns: Nanos(1_200),
        bandwidth_bytes_per_second: Some(5_234_567_890.0),
        eager_limit_bytes: Some(4_096),
        eager_limit_from: LimitFrom::Declared,
        protocol: Protocol::RendezvousWrite,
        is_protocol_certain: false,
    }];
    WhatIf {
        json_version: 3,
        run: "runs/a".to_owned(),
        problems: Vec::new(),
        recorded: Recorded {
            command: "./halo -s <19>".to_owned(),
            mpi_library: "Open MPI v4.1.4, package: Debian".to_owned(),
            ranks: 2,
            run_ns: ms(2_000),
            exposed_ns: ms(1_195),
            exposed: exposed(995, 200),
        },
        model: Model {
            localities,
            contention: Contention::None,
            contention_from: ContentionFrom::Fitted,
            held_out_error: Some(0.001),
            events: 123_456,
            replay_ns: ms(20),
            messages: 1_200,
            as_recorded: 1,
            to_know: Vec::new(),
            notes: vec!["few sizes: the bandwidth is that of the largest message".to_owned()],
        },
        identity: ScenarioResult { change: Some(0.0), ..answer("", 1_990) },
        scenarios,
        sweeps: Vec::new(),
    }
}

/// From 1 to 100 GB/s and without a limit.
pub(crate) fn bandwidths() -> Sweep {
    let values = [("1GB/s", 1e9, 3_000), ("10GB/s", 1e10, 1_900), ("100GB/s", 1e11, 1_500)];
    let values = values.into_iter().chain([("inf", f64::INFINITY, 1_450)]);
    let point = |(value, number, run): (&str, f64, i64)| SweepPoint {
        value: value.to_owned(),
        number,
        run_ns: Some(ms(run)),
        exposed_ns: Some(ms(run - 800)),
    };
    Sweep { knob: "bandwidth".to_owned(), points: values.map(point).collect() }
}

/// The smallest limit deadlocks.
pub(crate) fn limits() -> Sweep {
    let values = [(0, None), (4_096, Some(ms(2_000))), (65_536, Some(ms(1_600)))];
    let point = |(bytes, run_ns): (u64, Option<Nanos>)| SweepPoint {
        value: bytes.to_string(),
        number: bytes as f64,
        run_ns,
        exposed_ns: run_ns,
    };
    Sweep { knob: "eager-limit".to_owned(), points: values.map(point).into() }
}
