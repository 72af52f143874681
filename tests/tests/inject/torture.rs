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

/// The MPIs that every program is run under in `make check`.
const MAIN: &[&str] = &["openmpi", "mpich"];

/// Programs that `timer` does not interrupt, and a word of what it says why.
const REFUSED: &[(&str, &str)] = &[("allocator", "malloc"), ("urgent", "signal")];

/// In `make check-all`: everything under the MPIs of Debian, by turns with the other clock; under the others each program in
/// one mode. In `make check`: under the MPIs of Debian each program in a mode, which is another under the second, a quarter of them
/// watched and a quarter with copied sends; under the others a quarter of them, and a few watched.
fn share(program: usize, mpi: usize, name: &str) -> &'static [Mode] {
    let all = share::includes("programs of tests/apps/torture in most of the modes");
    match ((program + mpi) % 4, MAIN.contains(&name)) {
        (0 | 2, true) if all => &[Mode::CpuTime, Mode::Timer, Mode::Thread, Mode::Reach],
        (_, true) if all => {
            &[Mode::Calls, Mode::Timer, Mode::Thread, Mode::ReachAndTimer, Mode::Sends]
        }
        (0, true) => &[Mode::CpuTime],
        (1, true) => &[Mode::Timer, Mode::Reach],
        (2, true) => &[Mode::Calls, Mode::SendsAndTimer],
        (_, true) => &[Mode::Thread],
        (0, _) if all || program % 8 < 4 => &[Mode::Timer],
        (1, _) if all || program % 8 == 1 => &[Mode::Reach],
        (2, _) if all || program % 8 >= 4 => &[Mode::Thread],
        (3, _) if all => &[Mode::ReachAndTimer, Mode::SendsAndTimer],
        _ => &[],
    }
}

/// What is wrong with a run that changed nothing: nothing was injected where it should have been, or the other way round.
fn wrong(run: &Run, injected: &Injected) -> Option<String> {
    let refused = REFUSED.iter().find(|(program, _)| *program == run.program);
    let fits = match (run.mode, refused) {
        (Some(Mode::Off | Mode::Reach | Mode::Sends), _) => {
            injected.problems.iter().all(|problem| problem == "none")
        }
        (
            Some(Mode::Timer | Mode::CpuTime | Mode::ReachAndTimer | Mode::SendsAndTimer),
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
    /// Runs, the tests that were injected in them and the words that were watched, by MPI and mode.
    made: BTreeMap<(&'static str, Mode), (u32, u64, u64)>,
}

impl Findings {
    fn check(&mut self, run: &Run, bare: &Outcome) {
        match run.check(bare) {
            Err(text) => self.found.push(text),
            Ok(injected) => {
                let mode = run.mode.expect("with lapscope");
                let sum = self.made.entry((run.mpi.name, mode)).or_default();
                *sum = (sum.0 + 1, sum.1 + injected.tests, sum.2 + injected.watches);
                self.found.extend(wrong(run, &injected));
            }
        }
    }

    /// Nothing was changed, and tests were injected under every MPI in every mode, and words watched where they can be.
    fn assert(&mut self) {
        for ((mpi, mode), (runs, tests, watches)) in &self.made {
            let line =
                format!("{mpi}, {mode:?}: {runs} runs, {tests} tests injected, {watches} watches");
            eprintln!("{line}");
            let watched = mode.watches() && watchpoints::are_there();
            if (*tests > 0) != mode.injects() || (*watches > 0) != watched {
                self.found.push(line);
            }
        }
        assert!(!self.made.is_empty(), "nothing was run");
        assert!(self.found.is_empty(), "{}", self.found.join("\n\n"));
    }
}

/// Runs programs in few rounds, in the modes that are chosen by their number, the number of the MPI, and its name.
fn torture(modes_of: impl Fn(usize, usize, &str) -> &'static [Mode]) {
    let mut findings = Findings::default();
    for (number, mpi) in mpi::all().iter().enumerate() {
        for (index, program) in programs().iter().enumerate() {
            let modes = modes_of(index, number, mpi.name);
            let run = |mode| Run::new(mpi, program, mode).rounds(FEW);
            let bare = if modes.is_empty() { None } else { run(None).bare() };
            for (&mode, bare) in modes.iter().zip(bare.iter().cycle()) {
                findings.check(&run(Some(mode)), bare);
            }
        }
    }
    findings.assert();
}

#[test]
fn a_share_of_all() {
    torture(share);
}

/// Rounds of a program in which ways of injecting take turns: a second or more.
const MANY: u32 = 300;

/// Programs whose signals, threads, stacks and reductions have to bear that what is injected changes while they run.
const CHANGING: [&str; 6] = ["openmp", "persistent", "reduce", "signals", "stacks", "state"];

/// One of them under each MPI; in `make check-all` all of them.
#[test]
fn ways_that_change_while_programs_run() {
    let all = share::includes("programs of tests/apps/torture with LAPSCOPE_INJECT=auto");
    let mut findings = Findings::default();
    for (number, mpi) in mpi::all().iter().enumerate() {
        for (index, program) in CHANGING.iter().enumerate() {
            let is_chosen = all || index == number % CHANGING.len();
            let run = |mode| Run::new(mpi, program, mode).rounds(MANY);
            if let Some(bare) = is_chosen.then(|| run(None).bare()).flatten() {
                findings.check(&run(Some(Mode::Auto)), &bare);
            }
        }
    }
    findings.assert();
}

/// Where nothing is injected the programs are what they are with injection, or those tests would say nothing.
#[test]
fn without_injection() {
    torture(|_, mpi, _| if mpi == 0 { &[Mode::Off] } else { &[] });
}

#[test]
#[ignore = "half an hour"]
fn all_in_full() {
    torture(|_, _, _| &[Mode::Off, Mode::Calls, Mode::Timer, Mode::CpuTime, Mode::Thread]);
}

#[test]
#[ignore = "ten minutes"]
fn watched_in_full() {
    torture(|_, _, _| &[Mode::Reach, Mode::ReachAndTimer]);
}

/// An allocator that is known by no name, which notices when it is entered from within itself.
#[test]
fn allocator_of_another_library() {
    let mut findings = Findings::default();
    for mpi in mpi::all().iter().filter(|mpi| MAIN.contains(&mpi.name)) {
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
