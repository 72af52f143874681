//! `lapscope doctor --gpu`: runs lapscope's own kernels of known length under the user's launcher, recorded as any other program, and
//! compares.

use anyhow::{bail, Result};

use crate::args::DoctorArgs;
use lapscope_data::model::Nanos;
use lapscope_data::text::progress::Progress;
use lapscope_launch::doctor::gpu::{self, GpuRecorded};
use lapscope_launch::doctor::Finding;
use lapscope_launch::own_program::{OwnProgram, OwnRun};
use lapscope_measure::gpu_efficiency::GpuUse;
use lapscope_measure::gpu_known::GpuKnown;
use lapscope_report::pipeline::report::build;
use lapscope_report::pipeline::{follow, OpenRun};
use lapscope_report::report::ReportOptions;
use lapscope_trace::{RankTrace, Trace};

/// What it found; the exit code of a launch that failed, which has been said.
///
/// # Errors
/// The launch line is none or has a program already, something of lapscope is missing, or nothing was recorded.
pub fn compare(args: &DoctorArgs) -> Result<Result<Vec<Finding>, std::process::ExitCode>> {
    let program = OwnProgram {
        used_as: "lapscope doctor --gpu --",
        command: &args.command,
        mode: "gpu",
        seconds: 0, // as long as it takes
        dir: None,
        mpi_library: args.mpi_library.as_deref(),
    };
    match program.run()? {
        Ok(own_run) => Ok(Ok(compare_run(&own_run, program.used_as)?)),
        Err(code) => Ok(Err(code)),
    }
}

fn compare_run(own_run: &OwnRun, used_as: &str) -> Result<Vec<Finding>> {
    let mut open = OpenRun::open(Some(&own_run.directory))?;
    let progress = Progress::default();
    let (trace, _) = Trace::read(&open.files.databases, &|rows| follow(&progress, rows))?;
    drop(progress);
    let Some(known) = GpuKnown::of_run(&trace).filter(|_| trace.ranks.len() > 1) else {
        bail!("nothing was measured: it takes two ranks of one job, as in: {used_as} mpirun -n 2");
    };
    let options = ReportOptions { without_advice: true, ..ReportOptions::default() };
    let report = build(&mut open, &[], options)?;
    let used_it = trace.ranks[0].info(); // the other ranks of that program use no GPU
    let recorder = used_it.device_recorder.as_ref();
    let missing = gpu::missing(used_it);
    let of_rank = |(place, rank): (usize, &RankTrace)| {
        GpuUse::of_rank(rank.info(), &rank.devices, trace.own_span(place)).computing
    };
    let computed = Nanos(trace.ranks.iter().enumerate().map(of_rank).sum());
    let waited = report.summary.overlapped_with_gpu_ns.unwrap_or_default();
    Ok(gpu::compare(&known, GpuRecorded { recorder, missing, computed, waited }))
}
