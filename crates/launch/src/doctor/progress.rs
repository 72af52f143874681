//! Asynchronous progress that an MPI offers itself, and whether it is on here. What each offers: MPICH and MVAPICH2 by their
//! sources (`MPIR_CVAR_ASYNC_PROGRESS`), Intel MPI by its Developer Reference, Cray MPICH by what MPICH_ENV_DISPLAY
//! prints, Open MPI by its variables; where a library has answered, by what it has said.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::ask::LibraryAccount;
use super::family::{identify, Family, Identity};
use super::host::Host;
use super::Finding;

const TOPIC: &str = "progress";
const NAME: &str = "async progress";

/// How an MPI's own progress is switched on.
struct Offer {
    /// Variables of the environment that mean it.
    variables: &'static [&'static str],
    /// What is to be typed.
    typed: &'static str,
    /// The control variable that has it.
    control: &'static str,
    /// What it moves.
    moves: &'static str,
}

/// As [`Offer`], for who prints it.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// What is to be typed.
    pub typed: &'static str,
    pub moves: &'static str,
    /// `NAME=value`: it was on.
    pub on_by: Option<String>,
}

/// The setting of an MPI, by what MPI_Get_library_version says.
pub fn setting_of(library: &str, environment: &BTreeMap<String, String>) -> Option<Setting> {
    let version = Some(library.to_owned());
    let answer = LibraryAccount { version, ..LibraryAccount::default() };
    let Offer { typed, moves, variables, .. } = offer(identify(&answer, Path::new("")).family)?;
    let set = variables.iter().find_map(|&name| Some((name, environment.get(name)?)));
    let on_by = set.filter(|(_, value)| means_on(value));
    Some(Setting { typed, moves, on_by: on_by.map(|(name, value)| format!("{name}={value}")) })
}

const THREAD: &str = "a thread of each rank moves messages while the rank computes";

fn offer(family: Family) -> Option<Offer> {
    let control = "MPIR_CVAR_ASYNC_PROGRESS";
    let mpich = &["MPIR_CVAR_ASYNC_PROGRESS", "MPICH_ASYNC_PROGRESS"][..];
    let of_mpich = |variables, typed| Some(Offer { variables, typed, control, moves: THREAD });
    match family {
        Family::Mpich | Family::Mvapich => of_mpich(mpich, "export MPIR_CVAR_ASYNC_PROGRESS=1"),
        Family::Mvapich2 => of_mpich(mpich, "export MPIR_CVAR_ASYNC_PROGRESS=1 MV2_ENABLE_AFFINITY=0"),
        Family::Cray => of_mpich(&["MPICH_ASYNC_PROGRESS"], "export MPICH_ASYNC_PROGRESS=1"),
        Family::Intel => {
            of_mpich(&["I_MPI_ASYNC_PROGRESS", "MPIR_CVAR_ASYNC_PROGRESS"], "export I_MPI_ASYNC_PROGRESS=1")
        }
        Family::OpenMpi | Family::Bull => Some(Offer {
            variables: &["OMPI_MCA_btl_tcp_progress_thread"],
            typed: "export OMPI_MCA_btl_tcp_progress_thread=1",
            control: "btl_tcp_progress_thread",
            moves: "a thread of each rank moves what goes by TCP, and nothing else",
        }),
        Family::Fujitsu => Some(Offer {
            variables: &["OMPI_MCA_opal_progress_thread_mode"],
            typed: "mpiexec --mca opal_progress_thread_mode MODE (its modes: Fujitsu's MPI User's Guide)",
            control: "opal_progress_thread_mode",
            moves: THREAD,
        }),
        Family::ParaStation | Family::Spectrum | Family::Mpt | Family::Hmpt | Family::Wrapper | Family::Unknown => None,
    }
}

/// The finding on an MPI that was asked, or of which only the name is known.
pub fn look(identity: &Identity, answer: Option<&LibraryAccount>, host: &Host) -> Finding {
    let name = identity.family.name();
    // Relatives of MPICH that have its variable have its thread.
    let offer = offer(identity.family).or_else(|| {
        answer?.variable("MPIR_CVAR_ASYNC_PROGRESS")?;
        offer(Family::Mpich)
    });
    let tune = "lapscope tune -- <launch line>";
    let Some(offer) = offer else {
        let says = format!("lapscope knows of none in {name}");
        return Finding::note(TOPIC, NAME, says, format!("lapscope can test in its place: {tune}"))
            .follows(NO_THREAD);
    };
    let told = answer.and_then(|answer| answer.variable(offer.control));
    if answer.is_some_and(|answer| !answer.variables.is_empty()) && told.is_none() {
        let says =
            format!("this build of {name} has none ({} is no variable of it)", offer.control);
        let advice = format!("lapscope can test in its place: {tune}");
        return Finding::note(TOPIC, NAME, says, advice).follows(NO_THREAD);
    }
    let set = host.first_variable(offer.variables);
    let is_on = told.map_or_else(|| set.is_some_and(|(_, value)| means_on(value)), means_on);
    if is_on {
        let by = set.map_or("by its own defaults or files".to_owned(), |(it, value)| {
            format!("{it}={value}")
        });
        let follows = format!("{}: leave each rank a core for it", offer.moves);
        return Finding::ok(TOPIC, NAME, format!("{name}: on, {by}")).follows(follows);
    }
    let advice = format!("{} ({}: leave it a core); or {tune}", offer.typed, offer.moves);
    Finding::note(TOPIC, NAME, format!("{name}: off"), advice).follows(NO_THREAD)
}

const NO_THREAD: &str =
    "messages move while ranks are inside MPI, or as far as the network moves them alone";

fn means_on(value: &str) -> bool {
    !["0", "no", "off", "disable", "false"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    fn identity(family: Family) -> Identity {
        Identity { family, version: "1".into(), device: None }
    }

    fn told(name: &str, value: &str) -> LibraryAccount {
        let variables = vec![(name.to_owned(), value.to_owned())];
        LibraryAccount { variables, ..LibraryAccount::default() }
    }

    fn nowhere(variables: &[(&str, &str)]) -> Host {
        Host::made(Path::new("/nonexistent"), variables)
    }

    #[test]
    fn each_mpi_by_its_own_variable() {
        for (family, set) in [
            (Family::Mpich, "export MPIR_CVAR_ASYNC_PROGRESS=1 "),
            (Family::Intel, "export I_MPI_ASYNC_PROGRESS=1 "),
            (Family::Cray, "export MPICH_ASYNC_PROGRESS=1 "),
            (Family::Mvapich2, "export MPIR_CVAR_ASYNC_PROGRESS=1 MV2_ENABLE_AFFINITY=0 "),
            (Family::OpenMpi, "export OMPI_MCA_btl_tcp_progress_thread=1 "),
        ] {
            let off = look(&identity(family), None, &nowhere(&[]));
            assert_eq!(off.status, Status::Note);
            assert!(off.advice.unwrap().starts_with(set), "{family:?}");
            let name = set.trim_start_matches("export ").split('=').next().unwrap();
            assert_eq!(look(&identity(family), None, &nowhere(&[(name, "1")])).status, Status::Ok);
            assert_eq!(
                look(&identity(family), None, &nowhere(&[(name, "0")])).status,
                Status::Note
            );
        }
    }

    /// A file of settings may have it on without a variable; a variable may be one that this MPI does not read.
    #[test]
    fn what_the_library_says_comes_before_the_environment() {
        let set = nowhere(&[("MPICH_ASYNC_PROGRESS", "1")]);
        let off =
            look(&identity(Family::Mpich), Some(&told("MPIR_CVAR_ASYNC_PROGRESS", "0")), &set);
        assert_eq!(off.status, Status::Note);
        let on = look(
            &identity(Family::Mpich),
            Some(&told("MPIR_CVAR_ASYNC_PROGRESS", "1")),
            &nowhere(&[]),
        );
        assert_eq!(on.status, Status::Ok);
        let without = look(&identity(Family::Fujitsu), Some(&told("pml", "")), &nowhere(&[]));
        assert!(without.says.contains("this build of Fujitsu MPI has none"), "{}", without.says);
    }

    #[test]
    fn what_is_not_known_is_not_promised() {
        let unknown = look(&identity(Family::Spectrum), None, &nowhere(&[]));
        assert!(unknown.says.contains("knows of none") && unknown.advice.unwrap().contains("tune"));
        let like_mpich = look(
            &identity(Family::ParaStation),
            Some(&told("MPIR_CVAR_ASYNC_PROGRESS", "0")),
            &nowhere(&[]),
        );
        assert!(like_mpich.says.contains("off"), "{}", like_mpich.says);
    }
}
