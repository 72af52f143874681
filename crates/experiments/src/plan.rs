//! Which experiments are run, with what.

use super::mpi::{Family, Mpi};
use super::program::{self, ExampleProgram};
use super::results::{Inject, Link};

/// A launch to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Place among the MPIs.
    pub mpi: usize,
    pub link: Link,
    pub inject: Inject,
    pub program: ExampleProgram,
    pub arguments: Vec<String>,
    /// Variables that only this run has.
    pub settings: Vec<(String, String)>,
    pub ranks: u32,
    pub asks: Asks,
}

/// What lapscope is asked of a run besides its times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asks {
    pub thresholds: bool,
    pub timeline: bool,
    pub advice: bool,
}

/// What the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub links: Vec<Link>,
    pub programs: Vec<ExampleProgram>,
    /// Few sizes, few repetitions, no scenarios.
    pub is_quick: bool,
    /// Processors of this machine.
    pub processors: u32,
}

/// All launches, those of an MPI and link together.
pub fn jobs(mpis: &[Mpi], scope: &Scope) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (place, mpi) in mpis.iter().enumerate() {
        for &link in &scope.links {
            if link == Link::SlowLink && mpi.over_tcp().is_none() {
                continue;
            }
            let place = Setup { mpi: place, link, family: mpi.family(), scope };
            for &program in &scope.programs {
                jobs.extend(place.jobs_of(program));
            }
        }
    }
    jobs
}

#[derive(Clone, Copy)]
struct Setup<'a> {
    mpi: usize,
    link: Link,
    family: Family,
    scope: &'a Scope,
}

impl Setup<'_> {
    fn job(&self, program: ExampleProgram, inject: Inject, arguments: &str) -> Job {
        Job {
            mpi: self.mpi,
            link: self.link,
            inject,
            program,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            settings: Vec::new(),
            ranks: 2,
            asks: Asks::default(),
        }
    }

    fn jobs_of(&self, program: ExampleProgram) -> Vec<Job> {
        match program.name {
            "overlap" | "progress" => self.in_scenarios(program),
            "t0_t3" => self.t0_t3(),
            "collective_cpu" => self.collectives(),
            "ghost_cells" => self.ghost_cells(),
            _ => self.wavefront(),
        }
    }

    /// [RA07], and with the one or the other side first [RA08].
    fn in_scenarios(&self, program: ExampleProgram) -> Vec<Job> {
        // over the slow link messages up to its burst of 256 KB are as quick as its processors
        let (options, large) = match (self.scope.is_quick, self.link) {
            (true, Link::SharedMemory) => ("-r 5 -b 1K,16K,256K", ""),
            (true, Link::SlowLink) => ("-r 5 -b 1K,64K,4M", ""),
            (false, Link::SharedMemory) => ("-r 11 -b 1K,4K,16K,64K,256K,1M", ",4M"),
            (false, Link::SlowLink) => ("-r 7 -b 1K,4K,16K,64K,256K,1M", ",4M"),
        };
        let injected = Inject::ALL.into_iter().filter(|&inject| self.is_wanted(inject));
        let mut jobs: Vec<Job> = injected
            .map(|inject| self.job(program, inject, &format!("{options}{large} -a none")))
            .collect();
        let job = |inject, first: &str| self.job(program, inject, &format!("{options} -a {first}"));
        if !self.scope.is_quick {
            jobs.extend(["sender", "receiver"].map(|first| job(Inject::Off, first)));
        }
        jobs
    }

    fn is_wanted(&self, inject: Inject) -> bool {
        !self.scope.is_quick || inject != Inject::Thread
    }

    /// [SP04]: sizes, a test in the computation, several messages, both directions, small buffers.
    fn t0_t3(&self) -> Vec<Job> {
        let options = match self.scope.is_quick {
            true => "-r 5 -b 1K,4K,8K,64K,256K",
            false => "-r 7",
        };
        let job =
            |inject, more: &str| self.job(program::T0_T3, inject, &format!("{options} {more}"));
        let timeline = Asks { timeline: true, ..Asks::default() };
        let thresholds = Asks { thresholds: true, ..timeline };
        let mut jobs = vec![
            Job { asks: thresholds, ..job(Inject::Off, "") },
            Job { asks: timeline, ..job(Inject::Off, "-t 8") },
            Job { asks: timeline, ..job(Inject::Timer, "") },
        ];
        if !self.scope.is_quick {
            let asks = Asks { thresholds: true, ..Asks::default() };
            let several = Job { asks, ..job(Inject::Off, "-k 8") };
            jobs.push(several.clone());
            if self.link == Link::SlowLink && self.family == Family::OpenMpi {
                let set = |name: &str, value: &str| {
                    (format!("OMPI_MCA_btl_tcp_{name}"), value.to_owned())
                };
                let small = vec![set("sndbuf", "16384"), set("rcvbuf", "16384")];
                jobs.push(Job { settings: small, ..several });
                let limit = vec![set("eager_limit", "16384")];
                jobs.push(Job { asks, settings: limit, ..job(Inject::Off, "") });
            }
            jobs.push(job(Inject::Off, "-2"));
        }
        jobs
    }

    /// [HO07]: what messages cost, then as many ranks as there are processors, and twice as many.
    fn collectives(&self) -> Vec<Job> {
        let seconds = if self.scope.is_quick { 3 } else { 10 };
        let messages = format!("transfers {seconds}");
        let options = if self.scope.is_quick { "-b 8,64K -r 5 -m 25" } else { "-b 8,1K,16K,256K" };
        let job = |ranks, options: &str| Job {
            ranks,
            ..self.job(program::COLLECTIVE_CPU, Inject::Off, options)
        };
        let enough = self.scope.processors.clamp(2, 8);
        // reading a thread's CPU time takes as long as a short call, so that is a run of its own, of long ones
        let watched = Job {
            settings: vec![("LAPSCOPE_CPU_TIME".to_owned(), "on".to_owned())],
            ..job(enough, "-c allreduce,bcast -b 256K")
        };
        let messages = self.job(program::CALIBRATE, Inject::Off, &messages);
        let mut jobs = vec![messages, job(enough, options), watched];
        if !self.scope.is_quick {
            jobs.push(job(2 * enough, options));
        }
        jobs
    }

    fn ghost_cells(&self) -> Vec<Job> {
        let steps = if self.scope.is_quick { "-i 30" } else { "-i 100" };
        let job = |inject, form: &str| {
            self.job(program::GHOST_CELLS, inject, &format!("{steps} -f {form}"))
        };
        let advised = Asks { advice: true, ..Asks::default() };
        let mut jobs = vec![
            job(Inject::Off, "all"),
            Job { asks: advised, ..job(Inject::Off, "plain") },
            job(Inject::Timer, "plain"),
        ];
        if self.is_wanted(Inject::Thread) {
            jobs.push(job(Inject::Thread, "plain"));
        }
        jobs
    }

    fn wavefront(&self) -> Vec<Job> {
        let advised = Asks { advice: true, ..Asks::default() };
        let job = |form: &str| self.job(program::WAVEFRONT, Inject::Off, &format!("-f {form}"));
        vec![job("all"), Job { asks: advised, ..job("blocking") }]
    }
}
