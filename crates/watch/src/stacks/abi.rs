//! What each ABI of MPI has as its constants, from its `mpi.h`.

use lapscope_data::program::abi_of;

/// Values that mean no rank and no tag.
pub struct Abi {
    any_source: i32,
    any_tag: i32,
    proc_null: i32,
    root: i32,
    pub communicators: [KnownCommunicator; 2],
}

/// One that all programs have.
pub struct KnownCommunicator {
    pub name: &'static str,
    handle: Handle,
}

enum Handle {
    Integer(u32),
    Pointer(u64),
    /// The address of an object.
    Symbol(&'static str),
}

impl KnownCommunicator {
    const fn new(name: &'static str, handle: Handle) -> KnownCommunicator {
        KnownCommunicator { name, handle }
    }

    /// `is_at` says whether a handle is the address of a symbol.
    pub fn is(&self, handle: u64, is_at: impl Fn(&str) -> bool) -> bool {
        match self.handle {
            Handle::Integer(number) => handle as u32 == number, // of a register the lower half
            Handle::Pointer(number) => handle == number,
            Handle::Symbol(symbol) => is_at(symbol),
        }
    }
}

impl Abi {
    /// What stands for no rank, each with its name.
    pub fn peers(&self) -> Vec<(i32, &'static str)> {
        vec![
            (self.any_source, "MPI_ANY_SOURCE"),
            (self.proc_null, "MPI_PROC_NULL"),
            (self.root, "MPI_ROOT"),
        ]
    }

    pub fn tags(&self) -> Vec<(i32, &'static str)> {
        vec![(self.any_tag, "MPI_ANY_TAG")]
    }
}

const WORLD: &str = "MPI_COMM_WORLD";
const SELF: &str = "MPI_COMM_SELF";

const OPEN_MPI: Abi = Abi {
    any_source: -1,
    any_tag: -1,
    proc_null: -2,
    root: -4,
    communicators: [
        KnownCommunicator::new(WORLD, Handle::Symbol("ompi_mpi_comm_world")),
        KnownCommunicator::new(SELF, Handle::Symbol("ompi_mpi_comm_self")),
    ],
};

const MPICH: Abi = Abi {
    any_source: -2,
    any_tag: -1,
    proc_null: -1,
    root: -3,
    communicators: [
        KnownCommunicator::new(WORLD, Handle::Integer(0x4400_0000)),
        KnownCommunicator::new(SELF, Handle::Integer(0x4400_0001)),
    ],
};

/// That of MPI-5.
const STANDARD: Abi = Abi {
    any_source: -1,
    any_tag: -2,
    proc_null: -3,
    root: -4,
    communicators: [
        KnownCommunicator::new(WORLD, Handle::Pointer(0x101)),
        KnownCommunicator::new(SELF, Handle::Pointer(0x102)),
    ],
};

/// That of a library, by its file's name: `libmpi.so.40.30.4`.
pub fn of(library: &str) -> Option<&'static Abi> {
    let (stem, version) = library.split_once(".so.").unwrap_or((library, ""));
    let major = version.split('.').next().unwrap_or_default();
    match abi_of(&format!("{stem}.so.{major}"))? {
        "openmpi" => Some(&OPEN_MPI),
        "mpich" => Some(&MPICH),
        _ => Some(&STANDARD),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn libraries_have_the_abi_of_their_names() {
        let any_source = |library| of(library).map(|it| it.any_source);
        assert_eq!(any_source("libmpi.so.40.30.4"), Some(-1));
        assert_eq!(any_source("libmpich.so.12.2.1"), Some(-2));
        assert_eq!(any_source("libmpi.so.12.0.0"), Some(-2));
        assert_eq!(of("libmpi_abi.so.1.0").map(|it| it.any_tag), Some(-2));
        assert!(of("libmpi_mpifh.so.40").is_none() && of("libc.so.6").is_none());
    }

    /// Against the headers that are here.
    #[test]
    fn constants_are_those_of_the_headers() {
        let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/mpi");
        let headers = [
            ("/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h".to_owned(), &OPEN_MPI),
            (format!("{build}/openmpi5/include/mpi.h"), &OPEN_MPI),
            ("/usr/include/x86_64-linux-gnu/mpich/mpi.h".to_owned(), &MPICH),
            (format!("{build}/mpich5/include/mpi.h"), &MPICH),
            (format!("{build}/mpich5/include/mpi_abi.h"), &STANDARD),
            (format!("{build}/intel/include/mpi.h"), &MPICH),
        ];
        for (path, abi) in headers {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let value = |name: &str| {
                text.lines().find_map(|line| {
                    let mut words =
                        line.split(|it: char| it.is_whitespace() || "=(),".contains(it));
                    words.find(|word| *word == name)?;
                    words.find_map(|word| word.parse::<i32>().ok())
                })
            };
            let found = ["MPI_ANY_SOURCE", "MPI_ANY_TAG", "MPI_PROC_NULL", "MPI_ROOT"].map(value);
            let known = [abi.any_source, abi.any_tag, abi.proc_null, abi.root].map(Some);
            assert_eq!(found, known, "{path}");
        }
    }
}
