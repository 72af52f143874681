//! The same programs without the recorder: where each rank is, by its stack, and no more.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::share;
use lapscope_tests::watched::Watched;

use super::table::{Hanging, Slow, HANGING, SLOW};
use super::{ended_well, job, side_by_side, SETTLES};

const INTERVAL: &str = "0.3";

/// Its ranks can be found again by what tests look for.
fn found_again(job: Job<'_>) -> Job<'_> {
    let run = job.run_directory();
    job.env("LAPSCOPE_DIR", run)
}

/// Without records nobody knows that nothing will come.
fn claims(answer: &Value) -> bool {
    ["deadlock", "it hangs", "will never"]
        .iter()
        .any(|word| answer["sentence"].to_string().contains(word))
}

/// What is not right of a rank that should be at a place, one of several.
fn difference(program: &Hanging, rank: Option<&Value>, places: &str) -> Option<String> {
    let Some(rank) = rank.filter(|rank| rank["doing"] != "unknown") else {
        return (places != "gone").then(|| "is not seen".to_owned());
    };
    let at = rank["call"].as_str().or(rank["doing"].as_str()).unwrap_or_default();
    let mut wrong = Vec::new();
    if !places.split('|').any(|place| place == at) {
        wrong.push(format!("is at {at} and not {places}"));
    }
    if at != "MPI_Finalize" && !rank["frames"].to_string().contains(program.name) {
        wrong.push(format!("has no call path through {}", program.name));
    }
    if !places.contains('|') && rank["stands"] != true {
        wrong.push("does not stand".to_owned());
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

fn check_hanging(mpi: &Mpi, program: &Hanging, binary: PathBuf) -> Result<(), String> {
    let (place, file) = (place(), binary.to_string_lossy().into_owned());
    let job = job(mpi, program.ranks, binary, place.path(), (program.kept, Form::Bare));
    let mut watched = Watched::start(&found_again(job.args([program.name])));
    let named = |text: String| format!("{}: {text}", program.name);
    watched.until_here(program.ranks).map_err(named)?;
    thread::sleep(SETTLES);
    let answer = watched.stacks(INTERVAL, &[]).map_err(named)?;
    let found = answer["ranks"].as_array().into_iter().flatten();
    let own: Vec<&Value> =
        found.filter(|it| it["command"].as_str().is_some_and(|it| it.starts_with(&file))).collect();
    let wrong = (0u64..).zip(program.at).filter_map(|(number, places)| {
        let rank = own.iter().copied().find(|rank| rank["rank"] == number);
        Some(format!("rank {number} {}", difference(program, rank, places)?))
    });
    let mut wrong: Vec<String> = wrong.collect();
    if program.at.len() != program.ranks as usize {
        wrong.push("the table has not a place for each rank".to_owned());
    }
    if claims(&answer) {
        wrong.push("claims what only records know".to_owned());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(named(format!("{}\n{answer:#}", wrong.join("; ")))),
    }
}

fn check_slow(mpi: &Mpi, program: &Slow, binary: PathBuf, seconds: f64) -> Result<(), String> {
    let place = place();
    let job = Job::new(mpi, program.ranks, binary, Form::Bare, place.path());
    let job = found_again(job.args([program.name, &seconds.to_string()]));
    let mut watched = Watched::start(&job);
    let named = |text: String| format!("{}: {text}", program.name);
    watched.until_here(program.ranks).map_err(named)?;
    let mut looks = 0;
    while !watched.is_over() {
        match watched.stacks(INTERVAL, &[]) {
            Ok(answer) if claims(&answer) => {
                return Err(named(format!("is only slow\n{answer:#}")));
            }
            Ok(_) => looks += 1,
            Err(_) => thread::sleep(Duration::from_millis(50)), // they are ending
        }
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

#[test]
fn hanging_under_openmpi() {
    hanging(2, "openmpi");
}

#[test]
fn hanging_under_mpich() {
    hanging(9, "mpich");
}

#[test]
fn slow_under_openmpi() {
    slow(3, "openmpi");
}

#[test]
fn slow_under_mpich() {
    slow(10, "mpich");
}
