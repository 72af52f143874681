//! What an observer sees of a run, as JSON, or how long each of several looks took: `observe RUN [LOOKS [MILLISECONDS BETWEEN]]`.

#![allow(clippy::disallowed_macros)] // what it is for

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lapscope_data::state::Observer;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = PathBuf::from(arguments.first().expect("the run directory"));
    let number =
        |at: usize| arguments.get(at).map_or(0, |text| text.parse::<u64>().expect("a number"));
    let mut observer = Observer::open(&run).expect("a run directory");
    for look in 1..=number(1).max(1) {
        let begin = Instant::now();
        let job = observer.look(&mut ()).expect("a readable run directory");
        let took = begin.elapsed().as_secs_f64();
        eprintln!(
            "look {look}: {} ranks, {} unseen, {took:.4} s",
            job.ranks.len(),
            job.unseen.len()
        );
        if number(1) == 0 {
            println!("{}", serde_json::to_string_pretty(&job).expect("plain data"));
        }
        sleep(Duration::from_millis(number(2)));
    }
}
