//! Filters that can match nothing are errors that name the nearest, not empty answers.

use std::collections::BTreeSet;

use anyhow::{bail, Result};
use strsim::levenshtein;

use crate::requests::is_wanted_call;
use lapscope_data::calls::mpi_calls;
use lapscope_data::model::Rank;
use lapscope_data::say;
use lapscope_data::text::{list_ranks, plural};

/// Says which of the calls asked for are not in the run.
///
/// # Errors
/// There is no such call in MPI; the nearest are named.
pub fn check_calls<'a>(asked: &[String], in_run: impl IntoIterator<Item = &'a str>) -> Result<()> {
    let in_run: BTreeSet<&str> = in_run.into_iter().collect();
    for asked in asked {
        let is_it = |name: &&str| is_wanted_call(name, std::slice::from_ref(asked));
        if in_run.iter().any(is_it) {
            continue;
        }
        if mpi_calls().any(|name| is_it(&name)) {
            say!("--call {asked}: this run has no such call");
            continue;
        }
        let guess =
            nearest(asked, in_run.iter().copied().chain(mpi_calls().map(|name| -> &str { name })));
        let guess = guess.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        bail!("--call {asked}: there is no such call in MPI{guess}");
    }
    Ok(())
}

/// The name that is nearest, when it is near enough to be what was meant; the first of equal ones.
fn nearest<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let bare = |name: &str| name.to_ascii_lowercase().trim_start_matches("mpi_").to_owned();
    let asked = bare(asked);
    let (far, name) =
        names.map(|name| (levenshtein(&asked, &bare(name)), name)).min_by_key(|(far, _)| *far)?;
    (far <= 1 + asked.chars().count() / 4).then(|| name.to_owned())
}

/// # Errors
/// One of the ranks asked for (by `option`) is none of `known`.
pub fn check_ranks(
    option: &str,
    asked: impl IntoIterator<Item = Rank>,
    known: impl IntoIterator<Item = Rank>,
    run: &str,
) -> Result<()> {
    let known: Vec<Rank> = BTreeSet::from_iter(known).into_iter().collect();
    for rank in asked {
        if !known.contains(&rank) {
            let plural = plural(known.len() as u64);
            bail!("{option} {rank}: {run} has rank{plural} {}", list_ranks(&known));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_call_is_named() {
        let check = |asked: &str| check_calls(&[asked.to_owned()], ["MPI_Isend", "MPI_Wait"]);
        let error = |asked: &str| check(asked).unwrap_err().to_string();
        assert!(mpi_calls().count() > 300);
        assert!(error("MPI_Isned").ends_with("did you mean MPI_Isend?"));
        assert!(error("waital").ends_with("did you mean MPI_Waitall?"));
        assert!(error("flux_capacitor").ends_with("no such call in MPI"));
        check("isend").unwrap();
        check("MPI_Ibsend").unwrap();
    }
}
