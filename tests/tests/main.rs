//! Programs under real launchers, with and without lapscope: a module is a suite. `tests/check.sh` runs each in a process of its own.

// share!, mpis! and is_left_out! say of every suite what `make check` takes
#[macro_use]
extern crate lapscope_fixture;
#[macro_use]
extern crate lapscope_tests;

mod applications;
mod apps;
mod auto;
mod bench;
mod buffering;
mod calibrate;
mod check;
mod counters;
mod cures;
mod deaths;
mod directories;
mod doctor;
mod edges;
mod faults;
mod field;
mod files;
mod fortran;
mod gain;
mod gpu;
mod gpu_time;
mod hang;
mod hermetic;
mod inject;
mod install;
mod job_record;
mod layers;
mod left_over;
mod limits;
mod live;
mod mpi4py;
mod nodes;
mod observe;
mod overlap;
mod probe;
mod profile;
mod progress;
mod reach;

mod reach_pairs;
mod reach_unharmed;
mod record;
mod sends;
mod slurm;
mod speculative;
mod stacks;
mod steps;
mod stored;
mod thresholds;
mod truth;
mod tune;
mod uneven;
mod unexpected;
mod verdicts;
mod watchdog;
mod whatif;
mod worlds;
