//! What would help the jobs of a site, as far as their records know: bounds for each cure, sums over jobs. What two cures are
//! said to gain at most may be the same time, so they are never added up.

use serde::Serialize;

use crate::advice::Cure;
use lapscope_data::jobs::JobGroup;

/// Shares of the run time below which a cure is not worth a word; of processors as in a report.
const LEAST_SHARE: f64 = 0.01;
const LEAST_WAITING_SHARE: f64 = 0.02;

/// What a cure may gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobCure {
    pub cure: Cure,
    /// Of the time of all ranks.
    pub at_most_seconds: f64,
    /// Of their run time, as a fraction.
    pub share: f64,
    /// Where most of it is, as `MPI_Irecv exchange halo.c:42`; `None`: records do not tell.
    pub place: Option<String>,
}

impl JobCure {
    /// What it is, and what to do, in words.
    pub fn says(&self) -> (&'static str, String) {
        let (why, what) = match self.cure {
            Cure::GiveProcessors => (
                "ranks had no processor",
                "ask for a processor a rank, or start fewer ranks on a node, or see what else runs there",
            ),
            Cure::Test => (
                "messages could move while ranks compute",
                "try LAPSCOPE_INJECT=auto, which changes no program; or call MPI_Test in the computation",
            ),
            Cure::PartnerLate => ("some ranks compute longer than others", "share out the work evenly"),
            Cure::MakeNonblocking => (
                "point-to-point calls block",
                "post them as MPI_Isend and MPI_Irecv before the computation, and wait after it",
            ),
            _ => ("communication is exposed", "see a report of one of the jobs"),
        };
        let place = self.place.as_deref().map(|place| format!("; most at {place}"));
        (why, format!("{what}{}", place.unwrap_or_default()))
    }
}

/// What would help these jobs: processors first, since without them all else is measured wrong; then what may gain most.
pub fn job_cures(group: &JobGroup) -> Vec<JobCure> {
    let cure = |cure, at_most: f64, least: f64| {
        let at_most_seconds = at_most.min(group.run);
        let share = if group.run > 0.0 { at_most_seconds / group.run } else { 0.0 };
        (share >= least).then_some(JobCure { cure, at_most_seconds, share, place: None })
    };
    let mut cures: Vec<JobCure> = [
        cure(Cure::Test, group.overlappable, LEAST_SHARE),
        cure(Cure::PartnerLate, group.uneven, LEAST_SHARE),
        cure(Cure::MakeNonblocking, group.blocking, LEAST_SHARE),
    ]
    .into_iter()
    .flatten()
    .collect();
    cures.sort_by(|a, b| b.at_most_seconds.total_cmp(&a.at_most_seconds));
    let first = cure(Cure::GiveProcessors, group.waiting, LEAST_WAITING_SHARE);
    first.into_iter().chain(cures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cures_are_bounds_by_what_they_may_gain() {
        let group = JobGroup {
            run: 1000.0,
            overlappable: 300.0,
            uneven: 5000.0,
            blocking: 9.0,
            waiting: 20.0,
            ..JobGroup::default()
        };
        let cures = job_cures(&group);
        let found: Vec<(Cure, f64)> = cures.iter().map(|it| (it.cure, it.share)).collect();
        let expected = [(Cure::GiveProcessors, 0.02), (Cure::PartnerLate, 1.0), (Cure::Test, 0.3)];
        assert_eq!(found, expected);
        assert_eq!(job_cures(&JobGroup { waiting: 19.0, run: 1000.0, ..JobGroup::default() }), []);
        assert_eq!(job_cures(&JobGroup::default()), []);
    }
}
