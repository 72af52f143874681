//! The calls of MPI, as call paths name them.

/// A call: its name, its parameters of which something is said, each with its place among all, and whether it only asks and returns
/// at once: a program calls it again and again.
pub struct CallForStacks {
    pub name: &'static str,
    pub parameters: &'static [(usize, &'static str)],
    asks: bool,
}

// CALLS: of calls.def, by build.rs
include!(concat!(env!("OUT_DIR"), "/calls.rs"));

pub fn find(call: &str) -> Option<&'static CallForStacks> {
    CALLS.iter().find(|it| it.name.eq_ignore_ascii_case(call))
}

/// "MPI_Recv", of `MPI_Recv`, `PMPI_Recv`, `mpi_recv_`, `mpi_recv_f08_` and the like.
pub fn name_of(function: &str) -> Option<String> {
    let plain = function.strip_prefix('P').or(function.strip_prefix('p')).unwrap_or(function);
    let rest = plain.strip_prefix("MPI_").or_else(|| plain.strip_prefix("mpi_"))?;
    let rest = rest
        .trim_end_matches('_')
        .trim_end_matches("_f08ts")
        .trim_end_matches("_f08")
        .trim_end_matches("_f");
    let mut letters = rest.chars();
    let first = letters.next().filter(char::is_ascii_alphabetic)?;
    let is_word = rest.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let is_internal = rest.starts_with("T_") || rest.contains("__");
    (is_word && !is_internal)
        .then(|| format!("MPI_{}{}", first.to_ascii_uppercase(), letters.as_str().to_lowercase()))
}

/// Whether a call only asks: whoever is in it asks again and again.
pub fn asks(call: &str) -> bool {
    find(call).is_some_and(|it| it.asks)
}

/// Whether a call ends at once where nothing is left to do, so that programs call it in a loop to make MPI go on: being inside of it
/// does not tell whether it waits.
pub fn may_be_repeated(call: &str) -> bool {
    call.starts_with("MPI_Win_flush") || call == "MPI_Win_sync"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_only_ask_are_told_from_those_that_wait() {
        for call in [
            "MPI_Test",
            "MPI_Testall",
            "MPI_Testsome",
            "MPI_Iprobe",
            "MPI_Improbe",
            "MPI_Request_get_status",
            "MPI_Win_test",
            "MPI_Parrived",
        ] {
            assert!(asks(call), "{call}");
        }
        for call in ["MPI_Wait", "MPI_Probe", "MPI_Waitsome", "MPI_Recv", "MPI_Win_flush_local"] {
            assert!(!asks(call), "{call}");
        }
        assert!(may_be_repeated("MPI_Win_flush_local_all") && !may_be_repeated("MPI_Win_wait"));
    }

    #[test]
    fn names_in_all_bindings_are_one() {
        for function in
            ["MPI_Recv", "PMPI_Recv", "mpi_recv", "pmpi_recv_", "mpi_recv__", "mpi_recv_f08_"]
        {
            assert_eq!(name_of(function).as_deref(), Some("MPI_Recv"));
        }
        for other in ["MPIR_Wait", "MPI_T_init_thread", "mpi_", "MPI_Op::run", "exchange"] {
            assert_eq!(name_of(other), None, "{other}");
        }
        assert!(find("MPI_Recv").is_some() && find("MPI_Exchange_halo").is_none());
    }
}
