//! The experiments: their sources are part of this command, so that an MPI and its compiler are all that is needed.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::PossibleValue;
use clap::ValueEnum;

use super::mpi::Mpi;

/// A program of `examples`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExampleProgram {
    /// Its directory, and its name.
    pub name: &'static str,
    /// As it may be typed, too.
    alias: Option<&'static str>,
    source: &'static str,
}

macro_rules! program {
    ($name:literal) => {
        program!($name, None)
    };
    ($name:literal, $alias:expr) => {
        ExampleProgram {
            name: $name,
            alias: $alias,
            source: include_str!(concat!("../../../examples/", $name, "/", $name, ".c")),
        }
    };
}

pub const OVERLAP: ExampleProgram = program!("overlap");
pub const PROGRESS: ExampleProgram = program!("progress");
pub const T0_T3: ExampleProgram = program!("t0_t3", Some("t0-t3"));
pub const COLLECTIVE_CPU: ExampleProgram = program!("collective_cpu", Some("collective-cpu"));
pub const GHOST_CELLS: ExampleProgram = program!("ghost_cells", Some("ghost-cells"));
pub const WAVEFRONT: ExampleProgram = program!("wavefront");

/// lapscope's own, which is installed with it and compiled for no MPI: what messages cost.
pub const CALIBRATE: ExampleProgram = ExampleProgram { name: "calibrate", alias: None, source: "" };

pub const ALL: [ExampleProgram; 6] =
    [OVERLAP, PROGRESS, T0_T3, COLLECTIVE_CPU, GHOST_CELLS, WAVEFRONT];

impl ValueEnum for ExampleProgram {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name);
        Some(match self.alias {
            Some(alias) => value.alias(alias),
            None => value,
        })
    }
}

/// What they include.
const COMMON: [(&str, &str); 3] = [
    ("common/measure.h", include_str!("../../../examples/common/measure.h")),
    ("common/experiment.h", include_str!("../../../examples/common/experiment.h")),
    ("common/pair.h", include_str!("../../../examples/common/pair.h")),
];

/// Writes the sources below `directory`, as they lie in `examples`.
///
/// # Errors
/// It cannot be written to.
pub fn write_sources(directory: &Path) -> anyhow::Result<()> {
    let write = |path: PathBuf, text: &str| {
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| path.display().to_string())
    };
    COMMON.iter().try_for_each(|(name, text)| write(directory.join(name), text))?;
    ALL.iter().try_for_each(|program| write(program.source_in(directory), program.source))
}

impl ExampleProgram {
    fn source_in(&self, directory: &Path) -> PathBuf {
        directory.join(self.name).join(format!("{}.c", self.name))
    }

    /// Where it stands when it was compiled for that MPI.
    pub fn executable(&self, directory: &Path, mpi: &Mpi) -> PathBuf {
        directory.join(&mpi.name).join(self.name)
    }

    /// Compiles what [`write_sources`] has written.
    ///
    /// # Errors
    /// The compiler fails.
    pub fn compile(&self, directory: &Path, mpi: &Mpi) -> anyhow::Result<()> {
        let executable = self.executable(directory, mpi);
        if let Some(parent) = executable.parent() {
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        mpi.compile(&self.source_in(directory), &executable)
    }
}
