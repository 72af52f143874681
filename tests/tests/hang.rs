//! `lapscope hang` of programs that hang, and of such that are only slow, while they run.
//!
//! A tool that calls a slow job hung is worse than none: so a slow program is looked at over and over from its first
//! wait to its end, and none of the verdicts that leave no hope may come at any of these times, nor may its output or
//! exit code change. A rank that is to die runs below a shell that stays, since launchers end all ranks with the first.
//! What a test starts it finds again by the run directory in its environment, so that it ends nothing else.

mod passed;
mod table;
mod unrecorded;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::watched::{diagnosis, Watched};
use lapscope_tests::{build, paths, rows, say, share, turn};

use self::table::{Hanging, Kept, Slow, Source, HANGING, SLOW};

/// What says that a job will never go on. None of these is right of a program that is only slow.
const HOPELESS: &[&str] = &["deadlock", "no_match", "collective_mismatch", "left", "dead"];

/// Jobs that are watched side by side: ranks of some MPIs poll while they wait, and the command needs a processor, too.
const SIDE_BY_SIDE: usize = 2;

/// Seconds between two looks.
const INTERVAL: f64 = 0.3;

/// Time from the last sign of life to where the program hangs, and then some.
const SETTLES: Duration = Duration::from_millis(700);

/// `None` where the MPI cannot build it; that is said.
fn binary(mpi: &Mpi, source: Source) -> Option<PathBuf> {
    let missing = match source {
        Source::C(file) => {
            let needs: &[String] =
                if file == "partitions" { &["MPI_Psend_init".to_owned()] } else { &[] };
            if build::missing(mpi, needs).is_empty() {
                return Some(build::app(mpi, &format!("hang/{file}")));
            }
            "partitioned messages".to_owned()
        }
        Source::Fortran(binding) if build::has_fortran(mpi, binding) => {
            return Some(build::fortran(mpi, "hang/fortran", binding, &[]));
        }
        Source::Fortran(binding) => format!("Fortran by {}", binding.word()),
    };
    say!("NOT TESTED: hang under {}: no {missing}", mpi.name);
    None
}

/// Runs `check` for each, some at a time, with the binary of its source.
///
/// # Panics
/// With all that was wrong.
fn side_by_side<T: Sync>(
    mpi: &Mpi,
    programs: &[&T],
    source: impl Fn(&T) -> Source,
    check: impl Fn(&T, PathBuf) -> Result<(), String> + Sync,
) {
    let built = programs.iter().filter_map(|it| Some((*it, binary(mpi, source(it))?)));
    let built: Vec<(&T, PathBuf)> = built.collect();
    let mut wrong = Vec::new();
    for group in built.chunks(SIDE_BY_SIDE) {
        let _turn = turn::of_launches();
        let results: Vec<Result<(), String>> = thread::scope(|scope| {
            let begun: Vec<_> = group
                .iter()
                .map(|(program, binary)| scope.spawn(|| check(program, binary.clone())))
                .collect();
            let end = |it: thread::ScopedJoinHandle<'_, _>| it.join();
            begun
                .into_iter()
                .map(|it| end(it).unwrap_or_else(|_| Err("it panicked".into())))
                .collect()
        });
        wrong.extend(results.into_iter().filter_map(Result::err));
    }
    assert!(wrong.is_empty(), "{} wrong under {}:\n{}", wrong.len(), mpi.name, wrong.join("\n"));
}

fn kind(verdict: &Value) -> &str {
    verdict["kind"].as_str().unwrap_or_default()
}

/// A rank that ends is a child of a shell that stays: its launcher would end the others, too.
fn job<'a>(
    mpi: &'a Mpi,
    ranks: u32,
    binary: PathBuf,
    place: &'a Path,
    (kept, form): (Kept, Form),
) -> Job<'a> {
    match kept {
        Kept::Open => Job::new(mpi, ranks, binary, form, place),
        Kept::Behind => Job::new(mpi, ranks, "sh", form, place)
            .args(["-c", "\"$@\"; exec sleep 60", "sh"])
            .args([binary]),
    }
}

/// What is not as the table says, with the whole answer.
fn differences(program: &Hanging, answer: &Value) -> Result<(), String> {
    let verdict = &answer["verdict"];
    let mut wrong = Vec::new();
    if !program.kinds.contains(&kind(verdict)) {
        wrong.push(format!("kind {} and not {:?}", verdict["kind"], program.kinds));
    }
    let ranks: Vec<u64> =
        verdict["ranks"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    if !program.named.iter().all(|rank| ranks.contains(rank)) {
        wrong.push(format!("ranks {ranks:?} without all of {:?}", program.named));
    }
    let words = format!("{} {}", verdict["sentence"], verdict["candidates"]);
    for word in program.says.iter().filter(|word| !words.contains(**word)) {
        wrong.push(format!("no word of {word:?}"));
    }
    if !answer.to_string().contains(program.name) {
        wrong.push(format!("no call path through {}", program.name));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}: {}\n{answer:#}", program.name, wrong.join("; ")))
}

fn check_hanging(mpi: &Mpi, program: &Hanging, binary: PathBuf) -> Result<(), String> {
    let place = place();
    let kept = (program.kept, Form::Preload);
    let job = job(mpi, program.ranks, binary, place.path(), kept).args([program.name]);
    let mut watched = Watched::start(&job);
    watched.until_here(program.ranks).map_err(|text| format!("{}: {text}", program.name))?;
    thread::sleep(SETTLES);
    let answer = diagnosis(&job.run_directory(), INTERVAL)
        .map_err(|text| format!("{}: {text}", program.name))?;
    if watched.is_over() {
        return Err(format!("{} does not hang: {}", program.name, watched.stderr()));
    }
    differences(program, &answer)?;
    let with_arguments = passed::check(&watched, &job.run_directory())
        .map_err(|text| format!("{}: {text}", program.name))?;
    println!("{}, {}: {with_arguments} ranks with arguments", mpi.name, program.name);
    let is_sure = answer["verdict"]["certain"] == true;
    if is_sure && HOPELESS.contains(&kind(&answer["verdict"])) && program.kept == Kept::Open {
        watched.end();
        return same_when_dead(program, &job, &answer);
    }
    Ok(())
}

/// What was hopeless when it ran is the same from what the killed ranks left.
fn same_when_dead(program: &Hanging, job: &Job<'_>, before: &Value) -> Result<(), String> {
    let after = diagnosis(&job.run_directory(), INTERVAL)
        .map_err(|text| format!("{}, dead: {text}", program.name))?;
    if kind(&after["verdict"]) == kind(&before["verdict"]) {
        return Ok(());
    }
    Err(format!("{}: {} became, when killed,\n{after:#}", program.name, before["verdict"]))
}

fn check_slow(mpi: &Mpi, program: &Slow, binary: PathBuf, seconds: f64) -> Result<(), String> {
    let place = place();
    let job = Job::new(mpi, program.ranks, binary, Form::Preload, place.path())
        .args([program.name, &seconds.to_string()]);
    let mut watched = Watched::start(&job);
    watched.until_here(program.ranks).map_err(|text| format!("{}: {text}", program.name))?;
    let mut looks = 0;
    while !watched.is_over() {
        let answer = diagnosis(&job.run_directory(), INTERVAL)
            .map_err(|text| format!("{}: {text}", program.name))?;
        let further = answer["further"].as_array().into_iter().flatten();
        let verdicts = std::iter::once(&answer["verdict"]).chain(further);
        let counts = |it: &&Value| it["certain"] == true || !program.may_be_doubted;
        let hopeless: Vec<&str> =
            verdicts.filter(counts).map(kind).filter(|it| HOPELESS.contains(it)).collect();
        if !hopeless.is_empty() {
            return Err(format!("{} is only slow, not {hopeless:?}\n{answer:#}", program.name));
        }
        looks += 1;
    }
    ended_well(watched, program, looks)
}

fn hanging(turn: usize, name: &str) {
    let Some(mpi) = mpi::named(name) else { return };
    let programs: Vec<&Hanging> = share!(turn, HANGING.iter().collect());
    side_by_side(mpi, &programs, |it| it.source, |it, binary| check_hanging(mpi, it, binary));
}

fn slow(turn: usize, name: &str) {
    let Some(mpi) = mpi::named(name) else { return };
    let programs: Vec<&Slow> = share!(turn, SLOW.iter().collect());
    let seconds = if share::is_all() { 4.0 } else { 1.5 };
    side_by_side(mpi, &programs, |it| it.source, |it, binary| check_slow(mpi, it, binary, seconds));
}

/// That a program that was looked at so often has done what it does without.
fn ended_well(watched: Watched, program: &Slow, looks: usize) -> Result<(), String> {
    let outcome = watched.outcome(Duration::from_secs(60))?;
    if outcome.code != 0 || outcome.stdout != format!("{}\n", program.name) {
        return Err(format!("{} was disturbed: {outcome:?}", program.name));
    }
    match looks {
        0 => Err(format!("{} was over before a look", program.name)),
        _ => Ok(()),
    }
}

#[test]
fn hanging_under_openmpi() {
    hanging(0, "openmpi");
}

#[test]
fn hanging_under_mpich() {
    hanging(3, "mpich");
}

#[test]
fn slow_under_openmpi() {
    slow(0, "openmpi");
}

#[test]
fn slow_under_mpich() {
    slow(5, "mpich");
}

/// Ranks whose launcher is killed are killed, or end by themselves: what they hung in stays a deadlock.
#[test]
fn the_launcher_is_killed() {
    for mpi in share!(0, ["openmpi", "mpich"].into_iter().filter_map(mpi::named).collect()) {
        let place = place();
        let binary = build::app(mpi, "hang/messages");
        let job = Job::new(mpi, 2, binary, Form::Preload, place.path()).args(["both_receive"]);
        let _turn = turn::of_launches();
        let mut watched = Watched::start(&job);
        watched.until_here(2).unwrap_or_else(|text| panic!("{text}"));
        thread::sleep(SETTLES);
        assert!(watched.lose_launcher(), "{}: its ranks stay", mpi.name);
        let answer = diagnosis(&job.run_directory(), INTERVAL).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(kind(&answer["verdict"]), "deadlock", "{}: {answer:#}", mpi.name);
        assert_eq!(answer["verdict"]["certain"], true, "{}: {answer:#}", mpi.name);
        let places = answer["places"].as_array().into_iter().flatten();
        let lasted = places.filter_map(|it| it["since_most_ns"].as_i64());
        assert!(lasted.clone().count() > 0, "{answer:#}");
        assert!(lasted.into_iter().all(|it| it > SETTLES.as_nanos() as i64), "{answer:#}");
    }
}

/// There is no run yet: what is asked for is named, and which processes have not come that far.
#[test]
fn before_mpi_init() {
    let mpi = mpi::named("mpich").or_else(|| mpi::named("openmpi")).expect("an MPI");
    let place = place();
    let binary = build::app(mpi, "hang/outside");
    let job = Job::new(mpi, 2, binary, Form::Preload, place.path()).args(["before_init"]);
    let mut watched = Watched::start(&job);
    watched.until_here(2).unwrap_or_else(|text| panic!("{text}"));
    let said = diagnosis(&job.run_directory(), INTERVAL).expect_err("no run");
    assert!(said.contains("no such file or directory"), "{said}");
    assert!(
        said.contains("when it comes out of MPI_Init") && said.contains("lapscope hang --pid"),
        "{said}"
    );
}

/// The verdict comes soon at 64 ranks, too, which share the processors of this machine with the command.
#[test]
fn in_time_at_64_ranks() {
    if is_left_out!() {
        return;
    }
    let Some(mpi) = mpi::named("openmpi") else { return };
    let place = place();
    let binary = build::app(mpi, "hang/messages");
    let job = Job::new(mpi, 64, binary, Form::Preload, place.path()).args(["rendezvous_cycle"]);
    let _turn = turn::of_launches();
    let mut watched = Watched::start(&job);
    watched.until_here(64).unwrap_or_else(|text| panic!("{text}"));
    thread::sleep(SETTLES);
    let begin = Instant::now();
    let answer = diagnosis(&job.run_directory(), 0.5).unwrap_or_else(|text| panic!("{text}"));
    let took = begin.elapsed();
    say!("64 ranks: verdict {} after {:.2} s", answer["verdict"]["kind"], took.as_secs_f64());
    assert_eq!(kind(&answer["verdict"]), "deadlock", "{answer:#}");
    assert_eq!(answer["verdict"]["ranks"].as_array().map(Vec::len), Some(64), "{answer:#}");
}

/// A program that nobody runs would look tested.
#[test]
fn every_program_is_in_the_table() {
    let of = |source: Source, name: &str| match source {
        Source::C(file) => format!("{file}.c {name}"),
        Source::Fortran(_) => format!("fortran.f90 {name}"),
    };
    let hanging: BTreeSet<String> = HANGING.iter().map(|it| of(it.source, it.name)).collect();
    let slow: BTreeSet<String> = SLOW.iter().map(|it| of(it.source, it.name)).collect();
    assert!(hanging.len() >= 25 && slow.len() >= 25, "{} and {}", hanging.len(), slow.len());
    assert_eq!(hanging.len() + slow.len(), HANGING.len() + SLOW.len(), "each once");
    let mut written = BTreeSet::new();
    for path in rows::files(&paths::apps().join("hang")) {
        let file = path.file_name().expect("a name").to_string_lossy();
        let text = fs::read_to_string(&path).expect("a source").replace('{', " ");
        let (before, behind) =
            if file.ends_with(".c") { (" PROGRAM(", ')') } else { ("case ('", '\'') };
        let names = text.split(before).skip(1).filter_map(|rest| rest.split_once(behind));
        written.extend(names.map(|(name, _)| format!("{file} {name}")));
    }
    assert!(written.remove("within.c each_elsewhere"), "stacks.rs runs it");
    assert_eq!(hanging.union(&slow).cloned().collect::<BTreeSet<_>>(), written);
}
