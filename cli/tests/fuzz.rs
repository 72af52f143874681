//! Damaged and hostile run directories: whatever they hold, commands end, soon, in little memory, and say what is missing.
//!
//! A variant is a copy of a sound run with something changed at random; each is given to every command that reads. A short
//! part with a fixed seed belongs to the ordinary tests; `make fuzz SECONDS=...` goes on with a seed that it prints.

#![allow(clippy::disallowed_macros)] // a test's own output

mod base;
mod spoil;
mod watch;

use std::time::{Duration, Instant};

use self::base::Base;
use self::watch::{check, commands};
use lapscope_fixture::random::Random;
use lapscope_fixture::share;

/// What a number in the environment says.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// What goes wrong with one of [`spoil::KNOWN`].
fn of_known_kind(base: &Base, (sql, readers): &(&str, &[&str])) -> Vec<String> {
    let (place, run) = base.copy();
    spoil::change(&run, sql);
    let commands = commands().into_iter().filter(|command| readers.contains(&command[0]));
    let wrong = check(base, place.path(), commands, true);
    wrong.into_iter().map(|text| format!("{sql}: {text}")).collect()
}

/// Returns what went wrong, one text for each variant and command.
fn variant(base: &Base, seed: u64) -> (String, Vec<String>) {
    let (place, run) = base.copy();
    let mut random = Random(seed);
    let what = spoil::one(&run, &mut random);
    let wrong = check(base, place.path(), commands(), what.rows_can_be_counted);
    (
        what.name.clone(),
        wrong.into_iter().map(|text| format!("seed {seed}, {}: {text}", what.name)).collect(),
    )
}

/// And all damage of kinds that are known.
#[test]
fn a_share_of_variants() {
    let base = Base::new();
    let seeds = share!(0, (1..=64).collect()).into_iter();
    let known = spoil::KNOWN.iter().flat_map(|damage| of_known_kind(&base, damage));
    let wrong: Vec<String> = seeds.flat_map(|seed| variant(&base, seed).1).chain(known).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `LAPSCOPE_FUZZ_SEED` repeats; `LAPSCOPE_FUZZ_VARIANTS` and `LAPSCOPE_FUZZ_SECONDS` bound it, whichever comes first.
#[test]
#[ignore = "make fuzz"]
fn over_and_over() {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("LAPSCOPE_FUZZ_SEED", clock.as_secs() * 1_000_000);
    let seconds = Duration::from_secs(number("LAPSCOPE_FUZZ_SECONDS", 600));
    let most = number("LAPSCOPE_FUZZ_VARIANTS", u64::MAX);
    println!("fuzz: seed {seed}; again with LAPSCOPE_FUZZ_SEED={seed}");
    let (base, begin) = (Base::new(), Instant::now());
    let (mut done, mut wrong) = (0, Vec::new());
    let mut kinds = std::collections::BTreeMap::<String, u64>::new();
    while done < most && begin.elapsed() < seconds {
        let (name, found) = variant(&base, seed.wrapping_add(done));
        *kinds.entry(name.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        for text in &found {
            println!("fuzz: {text}");
        }
        wrong.extend(found);
        done += 1;
        if done % 100 == 0 {
            println!(
                "fuzz: {done} variants, {} s, {} wrong",
                begin.elapsed().as_secs(),
                wrong.len()
            );
        }
    }
    println!("fuzz: {done} variants from seed {seed}: {} wrong; {kinds:?}", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
