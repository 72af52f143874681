//! The MPIs that experiments can be compiled and launched with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context};

use super::results::{Link, MpiFacts};
use lapscope_launch::run::line::find_executable;

/// What settings depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    Intel,
    /// MPICH that speaks to networks by libfabric.
    MpichOfi,
    /// MPICH that speaks to networks by UCX.
    MpichUcx,
    Other,
}

/// A compiler wrapper and the launcher that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mpi {
    /// As `--mpi` takes it, or the last part of the directory that it named.
    pub name: String,
    pub compiler: PathBuf,
    pub launcher: PathBuf,
    /// What stands above `bin`, for MPIs that want to be told.
    prefix: Option<PathBuf>,
    /// What the library says of itself; empty until [`Mpi::ask`].
    pub version: String,
}

const COMPILERS: [&str; 2] = ["mpigcc", "mpicc"];
const LAUNCHERS: [&str; 3] = ["mpiexec.hydra", "mpirun", "mpiexec"];
/// Debian keeps several MPIs side by side, told apart by what is behind the dot.
const SIDE_BY_SIDE: [&str; 2] = ["openmpi", "mpich"];

/// All that are in PATH, each once.
pub fn in_path() -> Vec<Mpi> {
    let named = SIDE_BY_SIDE.into_iter().filter_map(side_by_side);
    let mut found: Vec<Mpi> = named.collect();
    let is_new = |mpi: &Mpi| {
        let same = |known: &Mpi| target(&known.launcher) == target(&mpi.launcher);
        !found.iter().any(same)
    };
    let plain =
        find_executable("mpicc".as_ref()).and_then(|compiler| Mpi::of_compiler("mpi", &compiler));
    found.extend(plain.filter(is_new));
    found
}

/// `openmpi` or `mpich` as Debian has them, a directory in which an MPI was installed, or the path of its `mpicc`.
///
/// # Errors
/// There is no compiler or no launcher; says what was looked for.
pub fn named(text: &str) -> anyhow::Result<Mpi> {
    if let Some(found) = side_by_side(text) {
        return Ok(found);
    }
    let path = Path::new(text);
    let compiler = if path.is_dir() {
        let bin = path.join("bin");
        COMPILERS.iter().map(|name| bin.join(name)).find(|file| file.is_file())
    } else {
        path.is_file().then(|| path.to_owned())
    };
    let Some(compiler) = compiler else {
        let here: Vec<String> = in_path().into_iter().map(|mpi| mpi.name).collect();
        let here = if here.is_empty() { "none".into() } else { here.join(", ") };
        bail!("{text}: no MPI of that name in PATH (there: {here}), no directory with bin/mpicc in it, and no mpicc");
    };
    let compiler = std::path::absolute(&compiler)?;
    let prefix = compiler.parent().and_then(Path::parent);
    let name = prefix.and_then(Path::file_name).map_or("mpi".into(), |name| name.to_string_lossy());
    let found = Mpi::of_compiler(&name, &compiler);
    found.with_context(|| {
        format!("{}: none of {} is beside it", compiler.display(), LAUNCHERS.join(", "))
    })
}

fn side_by_side(name: &str) -> Option<Mpi> {
    let compiler = find_executable(format!("mpicc.{name}").as_ref())?;
    let launcher = find_executable(format!("mpirun.{name}").as_ref())?;
    Some(Mpi { name: name.into(), compiler, launcher, prefix: None, version: String::new() })
}

fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl Mpi {
    fn of_compiler(name: &str, compiler: &Path) -> Option<Mpi> {
        let bin = compiler.parent()?;
        let launcher = LAUNCHERS.iter().map(|name| bin.join(name)).find(|file| file.is_file())?;
        let compiler = compiler.to_owned();
        let prefix = bin.parent().map(Path::to_owned);
        Some(Mpi { name: name.into(), compiler, launcher, prefix, version: String::new() })
    }

    /// Compiles and runs a program that asks the library who it is: so it is known that both work.
    ///
    /// # Errors
    /// Either fails; with what it printed.
    pub fn ask(&mut self, directory: &Path) -> anyhow::Result<()> {
        const SOURCE: &str = include_str!("version.c");
        let source = directory.join("version.c");
        let program = directory.join(format!("version.{}", self.name));
        std::fs::write(&source, SOURCE).with_context(|| source.display().to_string())?;
        self.compile(&source, &program)?;
        let mut command = Command::new(&self.launcher);
        command.args(["-n", "1"]).arg(&program).envs(self.environment(Link::SharedMemory));
        let output = command.stdin(std::process::Stdio::null()).output();
        let output = output.with_context(|| self.launcher.display().to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || text.trim().is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "{}: {} cannot launch a program: {}",
                self.name,
                self.launcher.display(),
                said.trim()
            );
        }
        self.version = text.trim().to_owned();
        Ok(())
    }

    /// # Errors
    /// The compiler fails; with what it printed.
    pub fn compile(&self, source: &Path, program: &Path) -> anyhow::Result<()> {
        let mut command = Command::new(&self.compiler);
        command.args(["-std=gnu11", "-O2", "-g", "-o"]).arg(program).arg(source);
        let output = command.envs(self.environment(Link::SharedMemory)).output();
        let output = output.with_context(|| self.compiler.display().to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "{}: {} cannot compile {}: {}",
                self.name,
                self.compiler.display(),
                source.display(),
                said.trim()
            );
        }
        Ok(())
    }

    pub fn family(&self) -> Family {
        let device = |name: &str| {
            let line = self.version.lines().find(|line| line.starts_with("MPICH Device"));
            line.is_some_and(|line| line.contains(name))
        };
        if self.version.starts_with("Open MPI") {
            Family::OpenMpi
        } else if self.version.starts_with("Intel") {
            Family::Intel
        } else if device("ofi") {
            Family::MpichOfi
        } else if device("ucx") {
            Family::MpichUcx
        } else {
            Family::Other
        }
    }

    /// The first line, without the addresses and dates behind it.
    pub fn short_version(&self) -> String {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = self.version.lines();
        let first = words(lines.next().unwrap_or_default()).replace("MPICH Version:", "MPICH");
        let first = first.split(',').next().unwrap_or_default();
        first.split(" for Linux").next().unwrap_or_default().to_owned()
    }

    pub fn facts(&self) -> MpiFacts {
        MpiFacts {
            name: self.name.clone(),
            version: self.short_version(),
            compiler: self.compiler.display().to_string(),
            launcher: self.launcher.display().to_string(),
        }
    }

    /// The launch line of so many ranks, without the program; a rank a core where there are enough.
    pub fn launch_line(&self, ranks: u32, processors: u32) -> Vec<OsString> {
        let mut line = vec![self.launcher.clone().into_os_string()];
        let more: &[&str] = match (self.family(), ranks > processors) {
            (Family::OpenMpi, true) => &["--oversubscribe"],
            (Family::MpichOfi | Family::MpichUcx, false) => &["-bind-to", "core"],
            _ => &[],
        };
        line.extend(more.iter().map(OsString::from));
        line.extend(["-n".into(), ranks.to_string().into()]);
        line
    }

    /// Variables without which it does not work here, or not over this link.
    pub fn environment(&self, link: Link) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        // root, also root of a user namespace; harmless to others
        variables.push(("OMPI_ALLOW_RUN_AS_ROOT", "1".to_owned()));
        variables.push(("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".to_owned()));
        if let Some(prefix) = &self.prefix {
            variables.push(("I_MPI_ROOT", prefix.display().to_string()));
        }
        let over_tcp = (link == Link::SlowLink).then(|| self.over_tcp()).flatten().unwrap_or(&[]);
        variables.extend(over_tcp.iter().map(|&(name, value)| (name, value.to_owned())));
        variables
    }

    /// What makes ranks of one machine talk by TCP over loopback; `None`: not known.
    pub fn over_tcp(&self) -> Option<&'static [(&'static str, &'static str)]> {
        match self.family() {
            Family::OpenMpi => Some(&[
                ("OMPI_MCA_pml", "ob1"),
                ("OMPI_MCA_btl", "tcp,self"),
                ("OMPI_MCA_btl_tcp_if_include", "lo"),
            ]),
            Family::Intel => {
                Some(&[("I_MPI_FABRICS", "ofi"), ("FI_PROVIDER", "tcp"), ("FI_TCP_IFACE", "lo")])
            }
            Family::MpichOfi => Some(&[
                ("MPIR_CVAR_NOLOCAL", "1"),
                ("MPIR_CVAR_CH4_NETMOD", "ofi"),
                ("FI_PROVIDER", "tcp"),
                ("FI_TCP_IFACE", "lo"),
            ]),
            Family::MpichUcx => Some(&[
                ("MPIR_CVAR_NOLOCAL", "1"),
                ("UCX_TLS", "tcp,self"),
                ("UCX_NET_DEVICES", "lo"),
            ]),
            Family::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_version(version: &str) -> Mpi {
        Mpi {
            name: "x".into(),
            compiler: "/x/bin/mpicc".into(),
            launcher: "/x/bin/mpirun".into(),
            prefix: None,
            version: version.into(),
        }
    }

    #[test]
    fn who_a_library_is() {
        let known = [
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4",
                Family::OpenMpi,
                "Open MPI v4.1.4",
            ),
            (
                "Intel(R) MPI Library 2021.18 for Linux* OS",
                Family::Intel,
                "Intel(R) MPI Library 2021.18",
            ),
            (
                "MPICH Version:      4.0.2\nMPICH Device:       ch4:ucx",
                Family::MpichUcx,
                "MPICH 4.0.2",
            ),
            ("MPICH Version:\t5.0.2\nMPICH Device:\tch4:ucx ofi", Family::MpichOfi, "MPICH 5.0.2"),
            ("MVAPICH 3.0", Family::Other, "MVAPICH 3.0"),
        ];
        for (version, family, short) in known {
            let mpi = of_version(version);
            assert_eq!((mpi.family(), mpi.short_version().as_str()), (family, short));
        }
        assert!(of_version("MVAPICH 3.0").over_tcp().is_none());
    }

    #[test]
    fn what_is_no_mpi_is_named() {
        let error = named("/nowhere/mpi").unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/mpi: no MPI of that name"), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let compiler = directory.path().join("mpicc");
        std::fs::write(&compiler, "").unwrap();
        let error = named(&compiler.to_string_lossy()).unwrap_err().to_string();
        assert!(error.contains("none of mpiexec.hydra, mpirun, mpiexec is beside it"), "{error}");
    }
}
