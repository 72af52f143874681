//! Which MPI it is, by what MPI_Get_library_version says. Where the texts come from: the MPIs themselves (Open MPI, MPICH,
//! Intel MPI), the sources of ParaStation MPI (`MPID_DEV_VERSION_STRING`) and MVAPICH2, and what MPI.jl has collected of
//! the others (`identify_implementation_version_abi`).

use std::path::Path;

use super::ask::LibraryAccount;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    Mpich,
    Intel,
    Cray,
    Mvapich2,
    Mvapich,
    ParaStation,
    Fujitsu,
    Spectrum,
    Bull,
    Mpt,
    Hmpt,
    Wrapper,
    Unknown,
}

/// A library that has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub family: Family,
    /// `4.1.4`; empty where it is not known.
    pub version: String,
    /// `ch4:ucx`, of MPICH and relatives that say it.
    pub device: Option<String>,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
            Family::Intel => "Intel MPI",
            Family::Cray => "Cray MPICH",
            Family::Mvapich2 => "MVAPICH2",
            Family::Mvapich => "MVAPICH",
            Family::ParaStation => "ParaStation MPI",
            Family::Fujitsu => "Fujitsu MPI",
            Family::Spectrum => "IBM Spectrum MPI",
            Family::Bull => "Bull's Open MPI",
            Family::Mpt => "HPE MPT",
            Family::Hmpt => "HPE HMPT",
            Family::Wrapper => "MPIwrapper",
            Family::Unknown => "an MPI that lapscope does not know",
        }
    }

    /// lapscope's own tests run under it.
    pub fn is_tested(self) -> bool {
        matches!(self, Family::OpenMpi | Family::Mpich | Family::Intel)
    }

    pub fn is_of_open_mpi(self) -> bool {
        matches!(self, Family::OpenMpi | Family::Fujitsu | Family::Spectrum | Family::Bull)
    }
}

impl Identity {
    pub fn title(&self) -> String {
        format!("{} {}", self.family.name(), self.version).trim_end().to_owned()
    }
}

/// What a library is that lies at `path`.
pub fn identify(answer: &LibraryAccount, path: &Path) -> Identity {
    let text = answer.version.as_deref().unwrap_or_default();
    let (family, before_version) = family(text, path);
    let version = text.split_once(before_version).map_or("", |(_, rest)| rest);
    let version = version.trim_start().split([' ', ',', '\t', '\n']).next().unwrap_or_default();
    let device = text.lines().find_map(|line| line.trim().strip_prefix("MPICH Device:"));
    let device = device.map(|device| device.trim().to_owned()).filter(|device| !device.is_empty());
    Identity { family, version: version.to_owned(), device }
}

/// It, and what stands in front of its version.
fn family(text: &str, path: &Path) -> (Family, &'static str) {
    // Its texts are Open MPI's; its directory has its name.
    let is_bull = path.to_string_lossy().contains("bullxmpi");
    let begins = |word: &str| text.starts_with(word);
    match text {
        _ if begins("Open MPI") && text.contains("IBM Spectrum MPI") => {
            (Family::Spectrum, "ident: ")
        }
        _ if begins("Open MPI") && is_bull => (Family::Bull, "Open MPI v"),
        _ if begins("Open MPI") => (Family::OpenMpi, "Open MPI v"),
        _ if begins("FUJITSU MPI") => (Family::Fujitsu, "FUJITSU MPI Library "),
        _ if text.contains("CRAY MPICH") => (Family::Cray, "CRAY MPICH version "),
        _ if text.contains("ParaStation MPI") => (Family::ParaStation, "ParaStation MPI "),
        _ if begins("MVAPICH2") => (Family::Mvapich2, ":"),
        _ if begins("MVAPICH") => (Family::Mvapich, ":"),
        _ if begins("MPICH") => (Family::Mpich, ":"),
        _ if begins("Intel(R) MPI") => (Family::Intel, "Library "),
        _ if begins("HPE MPT") => (Family::Mpt, "HPE MPT "),
        _ if begins("HPE HMPT") => (Family::Hmpt, "HPE HMPT "),
        _ if begins("MPIwrapper") => (Family::Wrapper, "Version:"),
        _ => (Family::Unknown, "\0"),
    }
}

/// The ABI of the recorder that the preload library takes for it: as `abi_of` of interposer/preload/abi.c decides.
pub fn recorder_abi(answer: &LibraryAccount, path: &Path) -> Option<&'static str> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if answer.is_open_mpi {
        return Some("openmpi");
    }
    if name.starts_with("libmpi_abi") {
        return Some("mpiabi");
    }
    let text = answer.version.as_deref().unwrap_or_default();
    let is_mpich = ["MPICH", "Intel(R) MPI", "MVAPICH"].iter().any(|word| text.starts_with(word))
        || ["CRAY MPICH", "ParaStation MPI"].iter().any(|word| text.contains(word));
    is_mpich.then_some("mpich")
}

/// How a recorder that is missing is had.
pub fn make_recorder(abi: &str) -> String {
    let package = match abi {
        "openmpi" => "Debian: libopenmpi-dev",
        "mpich" => "Debian: libmpich-dev",
        _ => "pip install mpich",
    };
    format!(
        "install lapscope anew; where it is built from source: make the MPI's compiler wrapper known ({package}; elsewhere: \
         mpicc in PATH, or cmake -DLAPSCOPE_MPICC=/path/to/mpicc), then `make build`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, path: &str) -> (Family, String, Option<&'static str>) {
        let is_open_mpi = text.starts_with("Open MPI") || text.starts_with("FUJITSU");
        let answer =
            LibraryAccount { version: Some(text.into()), is_open_mpi, variables: Vec::new() };
        let identity = identify(&answer, Path::new(path));
        (identity.family, identity.version, recorder_abi(&answer, Path::new(path)))
    }

    #[test]
    fn every_mpi_by_its_own_words() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022";
        let spectrum =
            "Open MPI v3.1.0, package: IBM Spectrum MPI, ident: 10.03.01.00rtm0, repo rev: IBM_";
        let cray =
            "MPI VERSION    : CRAY MPICH version 8.1.21 (ANL base 3.4a2)\nMPI BUILD INFO : Mon\n";
        let parastation =
            "=== ParaStation MPI 5.7.1-1 ===\npsmpi\nMPICH Version:\t4.1.1\nMPICH Device:\tpsp\n";
        for (text, path, family, version, abi) in [
            (open, "libmpi.so.40", Family::OpenMpi, "4.1.4", Some("openmpi")),
            (open, "/opt/mpi/bullxmpi/lib/libmpi.so.1", Family::Bull, "4.1.4", Some("openmpi")),
            (spectrum, "libmpi_ibm.so.3", Family::Spectrum, "10.03.01.00rtm0", Some("openmpi")),
            (
                "FUJITSU MPI Library 4.0.0 (4.0.1fj4.0.0)",
                "libmpi.so.0",
                Family::Fujitsu,
                "4.0.0",
                Some("openmpi"),
            ),
            ("MPICH Version:\t4.0.2\n", "libmpich.so.12", Family::Mpich, "4.0.2", Some("mpich")),
            (
                "MPICH Version:      5.0.2\n",
                "libmpi_abi.so.0",
                Family::Mpich,
                "5.0.2",
                Some("mpiabi"),
            ),
            (
                "Intel(R) MPI Library 2021.18.1 for Linux* OS\n",
                "libmpi.so.12",
                Family::Intel,
                "2021.18.1",
                Some("mpich"),
            ),
            (cray, "libmpi_gnu_123.so.12", Family::Cray, "8.1.21", Some("mpich")),
            (parastation, "libmpi.so.12", Family::ParaStation, "5.7.1-1", Some("mpich")),
            (
                "MVAPICH2 Version      :\t2.3.6\n",
                "libmpi.so.12",
                Family::Mvapich2,
                "2.3.6",
                Some("mpich"),
            ),
            ("MVAPICH Version:  3.0\n", "libmpi.so.12", Family::Mvapich, "3.0", Some("mpich")),
            ("HPE MPT 2.23  08/26/20 02:54:49-root", "libmpi.so", Family::Mpt, "2.23", None),
            ("HPE HMPT 2.23  08/26/20 02:59:48-root", "libmpi.so.12", Family::Hmpt, "2.23", None),
            ("MPIwrapper Version:\t2.2.2\n", "libmpiwrapper.so", Family::Wrapper, "2.2.2", None),
            ("Some MPI 1.0", "libmpi.so", Family::Unknown, "", None),
        ] {
            assert_eq!(said(text, path), (family, version.into(), abi), "{text}");
        }
    }

    #[test]
    fn devices_are_named_where_they_are_told() {
        let text = "MPICH Version:\t5.0.2\nMPICH Device:       ch4:ucx ofi\n";
        let answer = LibraryAccount { version: Some(text.into()), ..LibraryAccount::default() };
        let identity = identify(&answer, Path::new("libmpi.so.12"));
        assert_eq!(identity.device.as_deref(), Some("ch4:ucx ofi"));
        assert_eq!(identity.title(), "MPICH 5.0.2");
    }
}
