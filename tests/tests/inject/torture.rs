//! The programs of `tests/apps/torture`.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use lapscope_tests::build;
use lapscope_tests::launch::Outcome;
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::share;
use lapscope_tests::torture::{programs, Injected, Mode, Run};
use lapscope_tests::watchpoints;

/// Rounds of a program in `make check`: some hundredths of a second without lapscope.
const FEW: u32 = 12;

/// Programs that `timer` does not interrupt, and a word of what it says why.
const REFUSED: &[(&str, &str)] =
    &[("allocator", "malloc"), ("clock", "clock_gettime"), ("urgent", "signal")];

/// Everything under the MPIs of Debian, by turns with the other clock; under the others each program in one mode or two.
fn modes(program: usize, mpi: usize, is_of_debian: bool) -> &'static [Mode] {
    match ((program + mpi) % 4, is_of_debian) {
        (0, true) => &[Mode::CpuTime, Mode::Timer, Mode::Thread, Mode::Reach, Mode::Sample],
        (2, true) => &[Mode::CpuTime, Mode::Timer, Mode::Thread, Mode::SampleBySignal],
        (1, true) => &[Mode::Calls, Mode::Timer, Mode::ReachAndTimer, Mode::SampleAndTimer],
        (_, true) => &[Mode::Calls, Mode::Timer, Mode::Thread, Mode::ReachAndTimer, Mode::Sends],
        (0, _) => &[Mode::Timer],
        (1, _) => &[Mode::Reach],
        (2, _) => &[Mode::Thread],
        (_, _) => &[Mode::ReachAndTimer, Mode::SendsAndTimer],
    }
}

/// What is wrong with a run that changed nothing: nothing was injected where it should have been, or the other way round.
fn wrong(run: &Run, injected: &Injected) -> Option<String> {
    // Intel's reads the processor's counter itself
    let calls_no_clock = run.program == "clock" && run.mpi.name == "intel";
    let refused = REFUSED.iter().find(|(program, _)| *program == run.program && !calls_no_clock);
    let fits = match (run.mode, refused) {
        (Some(mode), _) if !mode.injects() => {
            injected.problems.iter().all(|problem| problem == "none")
        }
        (
            Some(
                Mode::Timer
                | Mode::CpuTime
                | Mode::ReachAndTimer
                | Mode::SendsAndTimer
                | Mode::SampleAndTimer,
            ),
            Some((_, word)),
        ) => {
            injected.problems.len() == 2
                && injected.problems.iter().all(|problem| problem.contains(word))
        }
        // where the data are, and under auto what was decided
        _ => {
            let lines = 1 + usize::from(run.mode == Some(Mode::Auto));
            injected.problems.is_empty() && injected.said.len() == lines
        }
    };
    (!fits).then(|| format!("{run}: {injected:#?}"))
}

/// What was found out by several runs.
#[derive(Default)]
struct Findings {
    found: Vec<String>,
    /// Runs, the tests that were injected in them, the words that were watched and the samples, by MPI and mode.
    made: BTreeMap<(&'static str, Mode), (u32, u64, u64, u64)>,
}

impl Findings {
    fn check(&mut self, run: &Run, bare: &Outcome) {
        match run.check(bare) {
            Err(text) => self.found.push(text),
            Ok(injected) => {
                let mode = run.mode.expect("with lapscope");
                // of a share a mode may have one short run under an MPI, in which no test falls
                let mpi = if share::is_all() { run.mpi.name } else { "all MPIs" };
                let sum = self.made.entry((mpi, mode)).or_default();
                let (watches, samples) = (sum.2 + injected.watches, sum.3 + injected.samples);
                *sum = (sum.0 + 1, sum.1 + injected.tests, watches, samples);
                self.found.extend(wrong(run, &injected));
            }
        }
    }

    /// Nothing was changed, and tests were injected under every MPI in every mode, and words watched where they can be.
    fn assert(&mut self) {
        for ((mpi, mode), (runs, tests, watches, samples)) in &self.made {
            let line = format!(
                "{mpi}, {mode:?}: {runs} runs, {tests} tests injected, {watches} watches, {samples} samples"
            );
            eprintln!("{line}");
            let watched = mode.watches() && watchpoints::are_there();
            let is_as_asked = (*tests > 0) == mode.injects() && (*samples > 0) == mode.samples();
            if !is_as_asked || (*watches > 0) != watched {
                self.found.push(line);
            }
        }
        assert!(!self.made.is_empty(), "nothing was run");
        assert!(self.found.is_empty(), "{}", self.found.join("\n\n"));
    }
}

/// A program in a mode under an MPI.
type Case<'a> = (&'static Mpi, &'a str, Mode);

/// Every program under every MPI in the modes for the numbers of both.
fn cases<'a>(
    programs: &'a [String],
    modes_of: impl Fn(usize, usize, &Mpi) -> &'static [Mode],
) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        for (number, &mpi) in mpi::all().iter().enumerate() {
            let modes = modes_of(index, number, mpi).iter();
            cases.extend(modes.map(|&mode| (mpi, program.as_str(), mode)));
        }
    }
    cases
}

/// Runs programs in few rounds.
fn torture(cases: Vec<Case>) {
    let mut findings = Findings::default();
    let mut outcomes = BTreeMap::new();
    for (mpi, program, mode) in cases {
        let run = |mode| Run::new(mpi, program, mode).rounds(FEW);
        let bare = outcomes.entry((program, mpi.name)).or_insert_with(|| run(None).bare());
        if let Some(bare) = bare {
            findings.check(&run(Some(mode)), bare);
        }
    }
    findings.assert();
}

#[test]
fn a_share_of_all() {
    let debian: Vec<&str> = mpi::debian().iter().map(|mpi| mpi.name).collect();
    let programs = programs();
    let all =
        cases(&programs, |program, number, mpi| modes(program, number, debian.contains(&mpi.name)));
    torture(share!(0, all));
}

/// Rounds of a program in which ways of injecting take turns: a second or more.
const MANY: u32 = 200;

/// Programs whose signals, threads, stacks and reductions have to bear that what is injected changes while they run.
const CHANGING: [&str; 6] = ["openmp", "persistent", "reduce", "signals", "stacks", "state"];

#[test]
fn ways_that_change_while_programs_run() {
    let mut findings = Findings::default();
    let pairs = |&mpi| CHANGING.map(|program| (mpi, program));
    let all: Vec<(&Mpi, &str)> = mpi::all().iter().flat_map(pairs).collect();
    for (mpi, program) in share!(0, all) {
        let run = |mode| Run::new(mpi, program, mode).rounds(MANY);
        if let Some(bare) = run(None).bare() {
            findings.check(&run(Some(Mode::Auto)), &bare);
        }
    }
    findings.assert();
}

/// Where nothing is injected the programs are what they are with injection, or those tests would say nothing.
#[test]
fn without_injection() {
    let programs = programs();
    torture(share!(0, cases(&programs, |_, mpi, _| if mpi == 0 { &[Mode::Off] } else { &[] })));
}

#[test]
#[ignore = "half an hour"]
fn all_in_full() {
    const MODES: &[Mode] = &[Mode::Off, Mode::Calls, Mode::Timer, Mode::CpuTime, Mode::Thread];
    torture(cases(&programs(), |_, _, _| MODES));
}

#[test]
#[ignore = "ten minutes"]
fn watched_in_full() {
    torture(cases(&programs(), |_, _, _| &[Mode::Reach, Mode::ReachAndTimer]));
}

#[test]
#[ignore = "ten minutes"]
fn sampled_in_full() {
    const MODES: &[Mode] = &[Mode::Sample, Mode::SampleBySignal, Mode::SampleAndTimer];
    torture(cases(&programs(), |_, _, _| MODES));
}

/// Programs with signals, timers and stacks of their own, and system calls that are not to be cut short, while a signal takes samples.
#[test]
fn sampled_by_signal() {
    let mut findings = Findings::default();
    for (turn, program) in ["signals", "eintr", "sigwait", "stacks"].into_iter().enumerate() {
        for mpi in share!(turn, mpi::debian()) {
            let run = |mode| Run::new(mpi, program, mode).rounds(FEW);
            let bare = run(None).bare().expect("no program in Fortran");
            findings.check(&run(Some(Mode::SampleBySignal)), &bare);
        }
    }
    findings.assert();
}

/// An allocator that is known by no name, which notices when it is entered from within itself.
#[test]
fn allocator_of_another_library() {
    let mut findings = Findings::default();
    for mpi in share!(mpi::debian()) {
        let library = build::library(mpi, "torture/tripwire");
        for program in ["heap", "stdio", "exceptions"] {
            let run = |mode| Run::new(mpi, program, mode).rounds(FEW).beside(&library);
            let bare = run(None).bare().expect("no program in Fortran");
            findings.check(&run(Some(Mode::Timer)), &bare);
            findings.check(&run(Some(Mode::Thread)), &bare);
        }
    }
    findings.assert();
}

/// Allocators that programs are linked with, or have preloaded: their files, which Debian packages bring.
const ALLOCATORS: [&str; 4] =
    ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2", "libtbbmalloc_proxy.so.2"];

/// Computation beside them is interrupted; they themselves, and what they need, are not.
#[test]
fn allocators_that_programs_bring() {
    let mut findings = Findings::default();
    for (turn, name) in ALLOCATORS.into_iter().enumerate() {
        let Some(library) = build::installed_library(name) else {
            lapscope_tests::say!("NOT TESTED: {name} is not installed");
            continue;
        };
        for mpi in share!(turn, mpi::debian()) {
            let plain = |mode| Run::new(mpi, "heap", mode).rounds(FEW);
            let preloaded = |mode| plain(mode).beside(&library);
            let linked = |mode| plain(mode).linked_with(name);
            let bare = plain(None).bare().expect("no program in Fortran");
            findings.check(&preloaded(Some(Mode::Timer)), &bare);
            findings.check(&linked(Some(Mode::Timer)), &bare);
        }
    }
    findings.assert();
}

/// What `make torture` does: all programs under all MPIs, as long as they like, until `LAPSCOPE_TEST_MINUTES` are over or
/// something changes.
#[test]
#[ignore = "ten minutes: make torture"]
fn over_and_over() {
    let minutes =
        env::var("LAPSCOPE_TEST_MINUTES").map_or(10, |text| text.parse().expect("minutes"));
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let (mut findings, mut outcomes, all) = (Findings::default(), BTreeMap::new(), programs());
    for (mode, program, mpi) in in_turn(&all).cycle().take_while(|_| Instant::now() < end) {
        let run = Run::new(mpi, program, Some(mode));
        if let Some(bare) = outcomes.entry((program, mpi.name)).or_insert_with(|| run.bare()) {
            findings.check(&run, bare);
        }
        if !findings.found.is_empty() {
            break;
        }
    }
    findings.assert();
}

/// All that can be run, so that what was run until any moment is a bit of everything.
fn in_turn(programs: &[String]) -> impl Iterator<Item = (Mode, &str, &'static Mpi)> + Clone + '_ {
    let (mpis, modes) = (mpi::all(), Mode::MOST);
    let steps = programs.len() * mpis.len() * modes.len();
    (0..steps).map(move |step| {
        let (program, rest) = (step % programs.len(), step / programs.len());
        let mpi = mpis[(rest + program) % mpis.len()];
        let mode = modes[(rest / mpis.len() + program) % modes.len()];
        (mode, programs[program].as_str(), mpi)
    })
}
