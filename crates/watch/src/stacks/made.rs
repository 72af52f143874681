//! Ranks for tests.

use super::place::{Doing, RankStack, ThreadStack};
use lapscope_data::model::Rank;
use lapscope_data::symbols::FrameName;

pub fn frame(function: &str, line: u32) -> FrameName {
    FrameName {
        function: Some(function.to_owned()),
        offset: None,
        file: Some("/src/solver/x.c".to_owned()),
        line: Some(line),
        column: None,
        module: Some("/opt/app/bin/app".to_owned()),
        address: u64::from(line),
        inlined: false,
    }
}

pub fn rank(number: i64, host: &str, call: Option<&str>, frames: Vec<FrameName>) -> RankStack {
    let at = ThreadStack {
        tid: 1000 + number,
        doing: if call.is_some() { Doing::InMpi } else { Doing::Computes },
        call: call.map(str::to_owned),
        called_as: None,
        arguments: None,
        within: None,
        by_signal: false,
        runs: Some(call.is_none()),
        sleeps_in: None,
        stands: true,
        depth: frames.len(),
        frames,
        wrapper_frames: 0,
    };
    RankStack {
        rank: Some(Rank::of_first_world(number)),
        job: None,
        host: host.to_owned(),
        pid: 1000 + number,
        command: "./app".to_owned(),
        size: Some(10_000),
        local_size: None,
        at,
        threads: 1,
        other_threads: Vec::new(),
        is_recorded: false,
        run: None,
        problem: None,
    }
}
