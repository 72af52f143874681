//! What is kept of a node's record: its ranks summed up, and the places where they were most in MPI.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{ListedNode, ListedSite};
use crate::job::{JobFrame, JobInjector, JobModule, JobRank, NodeRecord, TestsGain};
use crate::model::{site_frame, CallPath, Frame, Module, Nanos};
use crate::text::library::library_name;

/// Places of a node that are kept.
const PLACES: usize = 8;

/// The row of a node, but for what is of its file.
pub(super) fn summed(read: &NodeRecord, user: i64) -> ListedNode {
    let record = &read.record;
    let ranks = || read.ranks.iter();
    let sum = |of: fn(&JobRank) -> Nanos| ranks().map(|rank| of(rank).seconds()).sum();
    let most = |of: fn(&JobRank) -> f64| ranks().map(of).fold(0.0, f64::max);
    let count =
        |is: fn(&JobRank) -> bool| ranks().filter(|rank| is(rank)).map(|rank| rank.processes).sum();
    let waits = ranks().filter_map(|rank| rank.wait.map(Nanos::seconds));
    ListedNode {
        user,
        job: record.job.clone(),
        batch_job: record.batch_job.clone(),
        executable: record.executable.clone(),
        command: record.command.clone(),
        mpi: library_name(&record.mpi_library),
        lapscope_version: record.lapscope_version.clone(),
        nodes: 1,
        given_nodes: record.nodes,
        ranks: count(|_| true),
        world_size: record.world_size,
        unfinished_ranks: count(|rank| ["killed", "abort", "exit"].contains(&rank.ended)),
        running_ranks: read.running(),
        due_unix_ns: read.due_unix_ns(),
        is_over: record.is_last,
        began_unix_ns: record.began_unix_ns,
        written_unix_ns: record.written_unix_ns,
        longest_seconds: most(|rank| rank.run_time().seconds()),
        run_seconds: ranks().map(run_seconds).sum(),
        mpi_seconds: sum(JobRank::mpi),
        exposed_seconds: sum(JobRank::exposed),
        posting_seconds: sum(|rank| rank.posting),
        completing_seconds: sum(|rank| rank.completing),
        blocking_seconds: sum(|rank| rank.blocking),
        collective_seconds: sum(|rank| rank.collective),
        rma_seconds: sum(|rank| rank.rma),
        unsuccessful_test_seconds: sum(|rank| rank.unsuccessful_test),
        io_seconds: sum(|rank| rank.io),
        other_seconds: sum(|rank| rank.other),
        overlappable_seconds: sum(|rank| rank.overlappable),
        most_computed_seconds: ranks()
            .all(|rank| rank.processes == 1)
            .then(|| most(|rank| (rank.run_time() - rank.mpi()).seconds())),
        waiting_seconds: waits.reduce(|sum, one| sum + one),
        sent_bytes: ranks().map(|rank| rank.sent_bytes.0 as f64).sum(),
        peak_memory_bytes: ranks()
            .filter_map(|rank| rank.peak_memory_bytes)
            .map(|it| it.0 as i64)
            .max(),
        gained_seconds: read
            .injectors
            .iter()
            .filter_map(gained_seconds)
            .reduce(|sum, one| sum + one),
        gpu_ranks: if read.may_use_gpu() { count(|_| true) } else { 0 },
        injected_ranks: read.injectors.iter().map(|injector| injector.processes).sum(),
        host: record.host.clone(),
        ..ListedNode::default()
    }
}

/// What tests saved, of all processes.
fn gained_seconds(injector: &JobInjector) -> Option<f64> {
    let TestsGain { share, seconds } = injector.gain()?;
    Some(seconds * share / (1.0 - share) * injector.processes as f64)
}

/// Of all processes that a row is of.
fn run_seconds(rank: &JobRank) -> f64 {
    rank.run_time().seconds() * rank.processes as f64
}

/// Of all sites at a place.
#[derive(Clone, Copy, Default)]
struct PlaceSums {
    exposed: Nanos,
    overlappable: Nanos,
}

/// Where ranks of the node were in MPI, the most exposed time first.
pub(super) fn places(read: &NodeRecord, node: &ListedNode) -> Vec<ListedSite> {
    let module = |module: &JobModule| Module {
        path: module.path.clone(),
        build_id: module.build_id.clone().unwrap_or_default(),
    };
    let modules: Vec<Module> = read.modules.iter().map(module).collect();
    let place = |id: i64| read.modules.binary_search_by_key(&id, |module| module.id).ok();
    let mut found: HashMap<(&str, Frame), PlaceSums> = HashMap::new();
    let mut nowhere = Nanos::default();
    for site in &read.sites {
        let frame = |frame: &&JobFrame| Frame {
            module: frame.module.and_then(place).map(|place| place as u32),
            address: frame.address as u64,
            level: 0,
        };
        let frames = read.path(site.frame).iter().map(frame).collect();
        let path = CallPath { frames, ..CallPath::default() };
        let exposed = site.inside + site.exposed;
        let Some(frame) = site_frame(&path, &modules).filter(|frame| frame.module.is_some()) else {
            nowhere += exposed;
            continue;
        };
        let sums = found.entry((&site.call, frame)).or_default();
        sums.exposed += exposed;
        sums.overlappable += site.overlappable;
    }
    // what is not known to be elsewhere may all be at one place, which then is the one with most
    let mut found: Vec<_> = found.into_iter().filter(|(_, it)| it.exposed >= nowhere).collect();
    found.sort_by_key(|&((call, frame), sums)| (Reverse(sums.exposed), call, frame));
    let row = |((call, frame), sums): ((&str, Frame), PlaceSums)| {
        let module = &modules[frame.module.unwrap_or_default() as usize];
        ListedSite {
            user: node.user,
            job: node.job.clone(),
            host: node.host.clone(),
            began_unix_ns: node.began_unix_ns,
            place: 0,
            call: call.to_owned(),
            module: module.path.clone(),
            build_id: Some(module.build_id.clone()).filter(|id| !id.is_empty()),
            address: frame.address as i64,
            exposed_seconds: sums.exposed.seconds(),
            overlappable_seconds: sums.overlappable.seconds(),
        }
    };
    let rows = found.into_iter().take(PLACES).map(row);
    rows.zip(0..).map(|(row, place)| ListedSite { place, ..row }).collect()
}
