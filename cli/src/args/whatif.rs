//! Arguments of the command that replays a run.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::Args;
use lapscope_predict::replay::scenario::{
    speed, Bandwidth, Contention, EveryTime, Latency, PostAt, Progress, Protocol, Scenario, Scope,
    SiteList, Size, WaitAt,
};
use lapscope_predict::whatif::sweep::Sweeps;

use super::{ReadArgs, ReferenceArgs, WrapperArgs};

/// How long a recorded run would take with another network, protocol, processor, or order of calls.
#[derive(Debug, Args)]
#[command(after_help = "\
The run is replayed event by event: computation takes as long as it was recorded to take, and messages move only when MPI
would move them. It is replayed as it was, too: how far that is off is the error to reckon with, and is printed first.

Options that change something make one scenario together. Each [[scenario]] of a --scenario file is a further one, with
the names of the options as keys. Without any there are three: perfect progress (--progress async), an ideal network
(--latency 0s --bandwidth inf --on all) and balanced load (--balance): the most that each kind of cure can bring.

A sweep gives a knob several values, one after the other: KNOB is bandwidth, latency, eager-limit, cpu or progress. Values
are listed (bandwidth=1GB/s,2GB/s,inf), or FROM..TO/N is N values that differ by the same factor (8 without
/N). What stands behind a comma is another value, unless it begins with KNOB=. All else is as in the first scenario, or as
recorded where there is none.

A scenario that never ends, as ranks wait for each other in a circle, is reported first, and the exit code is 3:
`lapscope whatif --eager-limit 0` finds programs that rely on messages being buffered.

Examples:
  lapscope whatif                                          what could be gained at most
  lapscope whatif --bandwidth x2 --latency x0.5            a network that is twice as good
  lapscope whatif --bandwidth 100Gbit/s --on network       between nodes only
  lapscope whatif --eager-limit 256k runs/a                larger messages without rendezvous
  lapscope whatif --progress every=1ms                     tests in the computation
  lapscope whatif --eager-limit 0                          is the program safe? 3: it deadlocks
  lapscope whatif --without halo.c:139                     without the barrier there
  lapscope whatif --every 10 \"MPI_Allreduce converged\"    with that reduction each tenth time
  lapscope whatif --sweep bandwidth=1GB/s..100GB/s --figure bandwidth.svg
  lapscope whatif --sweep latency=1us,2us,5us,eager-limit=4k..1M/9 --figure sweeps.html
  lapscope whatif --scenario networks.toml --format csv    several at once

A scenario file:
  [[scenario]]
  name = \"new network\"
  bandwidth = \"100Gbit/s\"
  latency = \"x0.5\"
  eager-limit = \"64k\"")]
pub struct WhatIfArgs {
    #[command(flatten)]
    pub read: ReadArgs,

    /// TOML file of scenarios; may be given several times
    #[arg(long = "scenario", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Values that a knob has one after the other, as bandwidth=1GB/s..100GB/s or latency=1us,2us; several knobs behind commas,
    /// or by several of these options
    #[arg(long = "sweep", value_name = "KNOB=VALUES")]
    pub sweeps: Vec<Sweeps>,

    /// Call sites, parts of the critical path and root causes shown; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub top: usize,

    /// Draw run times into this file: .svg, or .html with tables
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,

    #[command(flatten)]
    pub times: ReferenceArgs,

    #[command(flatten)]
    pub wrappers: WrapperArgs,

    // the last, as its heading would stand above all that follows
    #[command(flatten)]
    pub knobs: KnobArgs,
}

/// What a scenario changes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Knobs")]
pub struct KnobArgs {
    /// Time on the way, from rank to rank: 2us, or a multiple of the recorded one, x0.5
    #[arg(long, value_name = "TIME")]
    pub latency: Option<Latency>,

    /// Rate of a transfer that has the network to itself: 12GB/s, 100Gbit/s, a multiple of the recorded one, x2, or inf
    #[arg(long, value_name = "RATE")]
    pub bandwidth: Option<Bandwidth>,

    /// The largest message that is sent without waiting for its receive: 65536, 64k, or inf; 0 sends none so, which finds
    /// deadlocks
    #[arg(long, value_name = "BYTES")]
    pub eager_limit: Option<Size>,

    /// How messages above the eager limit go
    #[arg(long, value_name = "WORD", value_parser = words::<Protocol>(&PROTOCOLS))]
    pub protocol: Option<Protocol>,

    /// When MPI handles what arrives: `inside` its calls only, `async` at once, `every=TIME` as if the computation made a
    /// test so often, as every=1ms
    #[arg(long, value_name = "WHEN")]
    pub progress: Option<Progress>,

    /// What messages share on their way
    #[arg(long, value_name = "WORD", value_parser = words::<Contention>(&CONTENTIONS))]
    pub contention: Option<Contention>,

    /// Between whom latency, bandwidth, eager limit and protocol change [default: between nodes where the run has several, else
    /// between the ranks of its node]
    #[arg(long, value_name = "WORD", value_parser = words::<Scope>(&SCOPES))]
    pub on: Option<Scope>,

    /// Speed of computation: 1.2 is a fifth faster than recorded
    #[arg(long, value_name = "TIMES", value_parser = speed)]
    pub cpu: Option<f64>,

    /// Every rank computes as long as the mean of all
    #[arg(long)]
    pub balance: bool,

    /// Waits for receives where their data are first touched, as `lapscope reach` measured in this run
    #[arg(long, value_name = "WORD", value_parser = words::<WaitAt>(&WAITS))]
    pub wait: Option<WaitAt>,

    /// Sends where their data were last written, as `lapscope reach` measured in this run
    #[arg(long, value_name = "WORD", value_parser = words::<PostAt>(&POSTS))]
    pub post: Option<PostAt>,

    /// Blocking collectives become non-blocking ones that are waited for at the next MPI call of their thread
    #[arg(long)]
    pub nonblocking_collectives: bool,

    /// Blocking collectives of this call site are never made: a function, a line, or both, as halo.c:139, with the call where
    /// there are others, as "MPI_Barrier main"; may be given more than once
    #[arg(long, value_name = "SITE")]
    pub without: Vec<String>,

    /// Blocking collectives of this call site are made each K-th time
    #[arg(long, num_args = 2, value_names = ["K", "SITE"])]
    pub every: Option<Vec<String>>,
}

type Word = (&'static str, &'static str);

const PROTOCOLS: [Word; 5] = [
    ("eager", "At once, whoever is there"),
    ("rendezvous-write", "Announced, answered, then written by the network"),
    ("rendezvous-read", "Announced, then read by the network"),
    ("pipeline", "Announced, answered, then moved in pieces while both ends are inside MPI"),
    ("speculative", "As rendezvous-read; a receiver that is first announces its buffer"),
];
const CONTENTIONS: [Word; 4] = [
    ("none", "Nothing"),
    ("rank", "The link of their rank"),
    ("node", "The link of their node, apart for each direction"),
    ("shared", "One medium of their node for both directions"),
];
const SCOPES: [Word; 3] = [
    ("node", "Ranks of one node"),
    ("network", "Ranks of different nodes"),
    ("all", "All of them, and a rank and itself"),
];
const WAITS: [Word; 1] = [("at-first-touch", "Where received data are first touched")];
const POSTS: [Word; 1] = [("at-last-write", "Where sent data were last written")];

/// Parses types whose words these are.
fn words<T>(words: &'static [Word]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    let values = words.iter().map(|&(word, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).try_map(|word| word.parse::<T>())
}

impl KnobArgs {
    /// The scenario that these make; it changes nothing where none is turned.
    ///
    /// # Errors
    /// The words of `--every` are none.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let every = self.every.as_ref().map(|words| words.join(" ").parse::<EveryTime>());
        Ok(Scenario {
            name: None,
            latency: self.latency,
            bandwidth: self.bandwidth,
            eager_limit: self.eager_limit,
            protocol: self.protocol,
            progress: self.progress,
            contention: self.contention,
            on: self.on,
            cpu: self.cpu,
            balance: self.balance,
            wait: self.wait,
            post: self.post,
            nonblocking_collectives: self.nonblocking_collectives,
            without: SiteList(self.without.clone()),
            every: every.transpose().map_err(|why| format!("--every: {why}"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn knobs(line: &str) -> KnobArgs {
        let words = ["lapscope", "whatif"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Whatif(args) => args.knobs,
            other => panic!("{other:?}"),
        }
    }

    /// What a scenario says of itself can be typed again.
    #[test]
    fn options_make_the_scenario_that_shows_them() {
        let line = "--latency 2us --bandwidth x2 --eager-limit 65536 --protocol speculative --progress every=1ms --contention \
                    node --on network --cpu 1.2 --balance --wait at-first-touch --post at-last-write \
                    --nonblocking-collectives --without halo.c:139 --every 10 halo.c:150";
        assert_eq!(knobs(line).scenario().unwrap().options(), line);
        assert!(knobs("").scenario().unwrap().is_identity());
        assert!(knobs("--every often main").scenario().unwrap_err().contains("from 1 on"));
    }

    #[test]
    fn every_word_is_explained() {
        let listed = |words: &[Word]| words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
        fn known<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
            words.iter().map(|(word, _)| *word).collect()
        }
        assert_eq!(listed(&PROTOCOLS), known(Protocol::WORDS));
        assert_eq!(listed(&CONTENTIONS), known(Contention::WORDS));
        assert_eq!(listed(&SCOPES), known(Scope::WORDS));
        assert_eq!(listed(&WAITS), known(WaitAt::WORDS));
        assert_eq!(listed(&POSTS), known(PostAt::WORDS));
    }
}
