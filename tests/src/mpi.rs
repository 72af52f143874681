//! The MPIs that programs are tested under.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::paths;

/// How to build and launch with one MPI.
pub struct Mpi {
    /// Name of its directory under `build/tests` and of its Python environment.
    pub name: &'static str,
    /// What a line of an `.expect` file may call it: family, family with version, its own name.
    pub words: &'static [&'static str],
    /// The recorder that serves it: `liblapscope-<abi>.so`.
    pub abi: &'static str,
    pub compiler: &'static str,
    /// Compiles Fortran: a program and what follows the source on its command line; empty where the MPI has none.
    pub fortran: &'static [&'static str],
    pub launcher: &'static str,
    /// Launcher options to run more ranks than there are cores.
    pub oversubscribe: &'static [&'static str],
    /// Variables that the launcher needs here, also as root and with more ranks than cores.
    pub environment: &'static [(&'static str, &'static str)],
    /// What makes the launcher itself end a job that takes too long: a variable in seconds.
    pub timeout_variable: Option<&'static str>,
    /// Its ranks are emulated: of another processor than this machine's. Tested where `LAPSCOPE_TEST_MPIS` names it, by
    /// `tests/aarch64.sh`, which makes the launcher.
    pub is_emulated: bool,
}

/// What `tests/mpis.sh` installs into `build/mpi`.
macro_rules! installed {
    ($path:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../build/mpi/", $path)
    };
}

/// What `tests/aarch64/wrappers.sh` makes.
macro_rules! emulated {
    ($program:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../build/aarch64/bin/", $program)
    };
}

/// Ranks keep their processors while they wait, as those of a user do who has as many processors as ranks: where other programs
/// want a processor, a rank that yields it with each poll is late for all that is measured.
pub const POLLS_KEEP_PROCESSORS: (&str, &str) = (POLLS_YIELD.0, "0");

const POLLS_YIELD: (&str, &str) = ("OMPI_MCA_mpi_yield_when_idle", "1");

const OPENMPI: Mpi = Mpi {
    name: "openmpi",
    words: &["openmpi", "openmpi4"],
    abi: "openmpi",
    compiler: "mpicc.openmpi",
    fortran: &["mpifort.openmpi"],
    launcher: "mpirun.openmpi",
    oversubscribe: &["--oversubscribe"],
    environment: &[
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        POLLS_YIELD,
    ],
    timeout_variable: None,
    is_emulated: false,
};

const MPICH: Mpi = Mpi {
    name: "mpich",
    words: &["mpich", "mpich4"],
    abi: "mpich",
    compiler: "mpicc.mpich",
    fortran: &["mpifort.mpich"],
    launcher: "mpirun.mpich",
    oversubscribe: &[],
    // where mpi4py's wheel finds this MPI
    environment: &[("LD_LIBRARY_PATH", installed!("mpich/lib"))],
    timeout_variable: Some("MPIEXEC_TIMEOUT"),
    is_emulated: false,
};

const MPICH5: Mpi = Mpi {
    name: "mpich5",
    words: &["mpich", "mpich5"],
    compiler: installed!("mpich5/bin/mpicc"),
    fortran: &[],
    launcher: installed!("mpich5/bin/mpiexec.hydra"),
    environment: &[],
    ..MPICH
};

const KNOWN: &[Mpi] = &[
    OPENMPI,
    MPICH,
    Mpi {
        name: "openmpi5",
        words: &["openmpi", "openmpi5"],
        compiler: installed!("openmpi5/bin/mpicc"),
        fortran: &[],
        launcher: installed!("openmpi5/bin/mpirun"),
        environment: &[
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            POLLS_YIELD,
            ("OMPI_MCA_osc", "^ucx"), // complains on machines without its network
            ("OMPI_MCA_btl", "^ofi"), // sleeps a second in each rank, looking for networks
        ],
        ..OPENMPI
    },
    MPICH5,
    // the same library behind the ABI of MPI-5
    Mpi {
        name: "mpiabi",
        words: &["mpich", "mpich5", "mpiabi"],
        abi: "mpiabi",
        compiler: installed!("mpich5/bin/mpicc_abi"),
        ..MPICH5
    },
    Mpi {
        name: "intel",
        words: &["mpich", "intel"],
        compiler: installed!("intel/bin/mpigcc"),
        // its mpif90 looks for the modules in a directory that the package does not have
        fortran: &[
            "gfortran",
            concat!("-I", installed!("intel/include/mpi/gfortran/12.4.0")),
            concat!("-I", installed!("intel/include")),
            concat!("-L", installed!("intel/lib")),
            concat!("-Wl,--disable-new-dtags,-rpath,", installed!("intel/lib")),
            "-lmpifort",
            "-lmpi",
        ],
        launcher: installed!("intel/bin/mpiexec.hydra"),
        environment: &[("I_MPI_ROOT", installed!("intel"))],
        ..MPICH
    },
    Mpi {
        name: "openmpi-aarch64",
        words: &["openmpi", "openmpi4", "emulated", "openmpi-aarch64"],
        compiler: emulated!("mpicc.openmpi"),
        fortran: &[emulated!("mpifort.openmpi")],
        launcher: emulated!("mpirun.openmpi"),
        environment: &[
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            POLLS_YIELD,
            ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"), // the emulator has no process_vm_readv
        ],
        is_emulated: true,
        ..OPENMPI
    },
    Mpi {
        name: "mpich-aarch64",
        words: &["mpich", "mpich4", "emulated", "mpich-aarch64"],
        compiler: emulated!("mpicc.mpich"),
        fortran: &[emulated!("mpifort.mpich")],
        launcher: emulated!("mpirun.mpich"),
        environment: &[],
        is_emulated: true,
        ..MPICH
    },
];

/// The full path of a program in `PATH`.
pub fn find_program(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name.as_ref()))
        .find(|file| file.is_file())
}

impl Mpi {
    fn is_there(&self) -> bool {
        find_program(self.compiler).is_some() && find_program(self.launcher).is_some()
    }

    /// The variable that names the library to preload. Programs of this machine could not load one for another processor: the launcher's
    /// script sets `LD_PRELOAD` behind them.
    pub fn preload_variable(&self) -> &'static str {
        if self.is_emulated {
            "LAPSCOPE_TEST_PRELOAD"
        } else {
            "LD_PRELOAD"
        }
    }

    /// The launch line of `ranks` ranks of `program`.
    pub fn launch_line(&self, ranks: u32, program: &[OsString]) -> Vec<OsString> {
        let mut line = vec![OsString::from(self.launcher)];
        line.extend(self.oversubscribe.iter().map(OsString::from));
        line.extend(["-n".into(), ranks.to_string().into()]);
        line.extend_from_slice(program);
        line
    }
}

/// Whether the tester wants it: `LAPSCOPE_TEST_MPIS=openmpi,intel` leaves out the others.
fn is_wanted(mpi: &Mpi) -> bool {
    env::var("LAPSCOPE_TEST_MPIS")
        .map_or(!mpi.is_emulated, |names| names.split(',').any(|wanted| wanted == mpi.name))
}

/// The MPIs of this machine. Says which they are, once.
///
/// # Panics
/// When there is none.
pub fn all() -> &'static [&'static Mpi] {
    static FOUND: OnceLock<Vec<&Mpi>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (found, missing): (Vec<&Mpi>, Vec<&Mpi>) =
            KNOWN.iter().filter(|mpi| is_wanted(mpi)).partition(|mpi| mpi.is_there());
        for mpi in &missing {
            crate::say!(
                "NOT TESTED under {}: {} or {} is not there",
                mpi.name,
                mpi.compiler,
                mpi.launcher
            );
        }
        let names: Vec<_> = found.iter().map(|mpi| mpi.name).collect();
        eprintln!("tested under: {}", names.join(", "));
        assert!(
            !found.is_empty(),
            "no MPI to test under: install Open MPI or MPICH with its compiler wrapper"
        );
        found
    })
}

/// Those that `tests/mpis.sh` has made a Python environment with mpi4py for.
///
/// # Panics
/// When there is none.
pub fn with_python() -> Vec<&'static Mpi> {
    let (found, missing): (Vec<&Mpi>, Vec<&Mpi>) =
        all().iter().partition(|mpi| paths::python(mpi.name).is_file());
    for mpi in &missing {
        crate::say!("NOT TESTED under {}: no mpi4py in build/mpi", mpi.name);
    }
    assert!(!found.is_empty(), "no Python with mpi4py: `tests/mpis.sh` makes it");
    found
}

/// Environments of every Python that is here, `build/mpi/python3.8` and the like, with each MPI that their mpi4py knows.
///
/// # Panics
/// When there is none.
pub fn of_each_python() -> Vec<(String, &'static Mpi)> {
    let names = (8..15).map(|minor| format!("python3.{minor}")).chain(["python-system".into()]);
    let found: Vec<String> = names.filter(|name| paths::python(name).is_file()).collect();
    assert!(!found.is_empty(), "no Python with mpi4py: `tests/mpis.sh` makes it");
    found.iter().flat_map(|name| debian().into_iter().map(|mpi| (name.clone(), mpi))).collect()
}

/// The MPIs of Debian: those of two families whose behaviour the tests know best.
pub fn debian() -> Vec<&'static Mpi> {
    ["openmpi", "mpich"].into_iter().filter_map(named).collect()
}

/// One MPI of this machine by its name, where it is there.
pub fn named(name: &str) -> Option<&'static Mpi> {
    all().iter().copied().find(|mpi| mpi.name == name)
}
