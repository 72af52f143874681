//! Which of several processes that have a rank's variables is the rank: what has started it, and what it starts, has them, too.

use std::collections::{HashMap, HashSet};

use super::process::Process;

/// A process that has the variables of a rank, and is another's child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    pub process: Process,
    /// The process that is the rank.
    pub of: i64,
}

/// Those that are ranks, and those that belong to one of these. `read` reads a process that is not among them.
pub fn ranks(
    found: Vec<Process>,
    read: impl Fn(i64) -> Option<Process>,
) -> (Vec<Process>, Vec<Relative>) {
    let mut known: HashMap<i64, Process> =
        found.iter().map(|process| (process.pid, process.clone())).collect();
    let lineages: Vec<Vec<Process>> =
        found.iter().map(|process| lineage(process, &mut known, &read)).collect();
    let chosen: Vec<i64> = lineages.iter().map(|lineage| rank_of(lineage)).collect();
    // what a rank was started by
    let starts: HashMap<i64, i64> = lineages
        .iter()
        .zip(&chosen)
        .flat_map(|(lineage, &rank)| {
            let further = lineage.iter().skip_while(move |it| it.pid != rank).skip(1);
            further.map(move |it| (it.pid, rank))
        })
        .collect();
    let (mut ranks, mut relatives) = (Vec::new(), Vec::new());
    for (mut process, (lineage, rank)) in found.into_iter().zip(lineages.iter().zip(chosen)) {
        process.started_by = lineage.last().map_or(process.parent, |outermost| outermost.parent);
        match starts.get(&process.pid).copied().or((rank != process.pid).then_some(rank)) {
            Some(of) => relatives.push(Relative { process, of }),
            None => ranks.push(process),
        }
    }
    tell_apart(&mut ranks);
    (ranks, relatives)
}

/// A process and those of its ancestors that have the same rank's variables.
fn lineage(
    process: &Process,
    known: &mut HashMap<i64, Process>,
    read: &impl Fn(i64) -> Option<Process>,
) -> Vec<Process> {
    let mut lineage = vec![process.clone()];
    if process.rank.is_none() {
        return lineage;
    }
    while let Some(parent) = lineage.last().map(|it| it.parent).filter(|&pid| pid > 1) {
        let next = known.get(&parent).cloned().or_else(|| read(parent));
        let Some(next) = next.filter(|it| (it.rank, &it.job) == (process.rank, &process.job))
        else {
            break;
        };
        known.insert(parent, next.clone());
        lineage.push(next);
    }
    lineage
}

/// The outermost that has MPI: what it starts may have that, too. Where none has, as with MPI inside of the program, the innermost, or
/// what that was forked from.
fn rank_of(lineage: &[Process]) -> i64 {
    let innermost = &lineage[0];
    let is_copy = |it: &&Process| it.executable == innermost.executable;
    let with_mpi = lineage.iter().rev().find(|it| it.has_mpi);
    let original = || lineage.iter().take_while(is_copy).last();
    with_mpi.or_else(original).unwrap_or(innermost).pid
}

/// Launchers whose names for jobs come round again: the same rank twice on a host is of two jobs, which somebody else has started each.
fn tell_apart(ranks: &mut [Process]) {
    let mut seen = HashSet::new();
    let twice: HashSet<Option<String>> = ranks
        .iter()
        .filter(|it| it.rank.is_some() && !seen.insert((it.rank, it.job.clone())))
        .map(|it| it.job.clone())
        .collect();
    for rank in ranks.iter_mut().filter(|it| it.rank.is_some() && twice.contains(&it.job)) {
        let job = rank.job.as_deref().unwrap_or("started by process");
        rank.job = Some(format!("{job} {}", rank.started_by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_data::model::Rank;

    fn process(pid: i64, parent: i64, program: &str, has_mpi: bool) -> Process {
        Process {
            pid,
            parent,
            rank: Some(Rank::of_first_world(0)),
            executable: Some(program.into()),
            has_mpi,
            ..Process::default()
        }
    }

    fn chosen(found: &[Process], all: &[Process]) -> (Vec<i64>, Vec<(i64, i64)>) {
        let read = |pid| all.iter().find(|it| it.pid == pid).cloned();
        let (ranks, relatives) = ranks(found.to_vec(), read);
        let pairs = relatives.iter().map(|it| (it.process.pid, it.of)).collect();
        (ranks.iter().map(|it| it.pid).collect(), pairs)
    }

    #[test]
    fn neither_what_starts_a_rank_nor_what_it_starts_is_it() {
        let shell = process(10, 2, "/bin/sh", false);
        let rank = process(11, 10, "/a/heat", true);
        let copy = process(12, 11, "/a/heat", true);
        let helper = process(13, 12, "/a/helper", true);
        let all = [shell, rank, copy, helper];
        assert_eq!(chosen(&all, &all), (vec![11], vec![(10, 11), (12, 11), (13, 11)]));
        // asked for alone
        assert_eq!(chosen(&all[2..3], &all), (vec![], vec![(12, 11)]));
        assert_eq!(chosen(&all[..1], &all), (vec![10], vec![]));
    }

    #[test]
    fn without_a_library_of_mpi_the_innermost_program_counts() {
        let all = [
            process(10, 2, "/bin/sh", false),
            process(11, 10, "/a/heat", false),
            process(12, 11, "/a/heat", false),
        ];
        assert_eq!(chosen(&all, &all), (vec![11], vec![(10, 11), (12, 11)]));
    }

    #[test]
    fn the_same_rank_twice_is_of_two_jobs() {
        let (first, second) = (process(10, 2, "/a/heat", true), process(20, 3, "/a/heat", true));
        let (ranks, _) = ranks(vec![first, second], |_| None);
        let jobs: Vec<&str> = ranks.iter().filter_map(|it| it.job.as_deref()).collect();
        assert_eq!(jobs, ["started by process 2", "started by process 3"]);
    }
}
