//! What was watched and what was not: how much of a run its watched buffers stand for, what watching has cost, and what to know
//! before believing what they say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use lapscope_data::db::{DbError, ValuesByName};
use lapscope_data::model::{Nanos, Rank, Watcher};
use lapscope_data::text::units::{count, percent, time};
use lapscope_data::text::{list_ranks, plural};
use lapscope_trace::problem::{Problem, ProblemKind};
use lapscope_trace::watched::ranks::{read_ranks, FileWatching, LeftOut, RankWatching};
use lapscope_trace::watched::UNSEEN_SHARE;

/// The ranks that were asked to watch buffers, together. Keys are documented in `docs/json.md`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Watching {
    /// That were asked to.
    pub ranks: u64,
    /// Words that a thread could watch at once; where ranks differ, the fewest.
    pub words_at_once: Option<i64>,
    /// What an access to a watched word costs; the mean of the ranks.
    pub hit_ns: Option<Nanos>,
    /// What watching a word costs, and letting it go; likewise.
    pub set_ns: Option<Nanos>,
    pub spent_ns: Nanos,
    /// MPI_Init to MPI_Finalize, summed over these ranks.
    pub run_ns: Nanos,
    /// Fraction of the run time that it may cost.
    pub budget: Option<f64>,
    /// Fraction of requests that are drawn.
    pub share: Option<f64>,
    /// Smaller buffers are not watched.
    pub min_bytes: Option<u64>,
    /// CPU time of threads that nothing watched.
    pub other_cpu_ns: Option<Nanos>,
    /// Buffers of which words were watched.
    pub buffers: u64,
    pub words: u64,
    /// The most first.
    pub left_out: Vec<LeftOut>,
    #[serde(skip)]
    of_ranks: Vec<RankWatching>,
}

impl Watching {
    /// Reads these ranks, or all where none is named; also why some files could not be read.
    pub fn of_run(databases: &[PathBuf], ranks: &[Rank]) -> (Watching, Vec<DbError>) {
        let (files, failed) = read_ranks(databases, ranks);
        (Watching::sum(files), failed)
    }

    fn sum(files: Vec<FileWatching>) -> Watching {
        let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
        let (mut of_ranks, mut options) = (Vec::new(), ValuesByName::new());
        for file in files {
            for LeftOut { reason, buffers } in file.left_out {
                *left_out.entry(reason).or_default() += buffers;
            }
            if options.is_empty() && file.ranks.iter().any(|rank| rank.watcher.is_some()) {
                options = file.options;
            }
            of_ranks.extend(file.ranks);
        }
        of_ranks.sort_by_key(|it| it.rank);
        let mut left_out: Vec<LeftOut> =
            left_out.into_iter().map(|(reason, buffers)| LeftOut { reason, buffers }).collect();
        left_out.sort_by(|a, b| b.buffers.cmp(&a.buffers).then_with(|| a.reason.cmp(&b.reason)));
        let number = |name: &str| options.get(name).and_then(|value| value.parse::<f64>().ok());
        let sums = Watching {
            budget: number("LAPSCOPE_REACH_BUDGET").map(|percent| percent / 100.0),
            share: number("LAPSCOPE_REACH_SHARE").map(|percent| percent / 100.0),
            min_bytes: number("LAPSCOPE_REACH_MIN_BYTES").map(|bytes| bytes as u64),
            left_out,
            ..Watching::default()
        };
        sums.add_ranks(of_ranks)
    }

    fn add_ranks(self, of_ranks: Vec<RankWatching>) -> Watching {
        let asked = || of_ranks.iter().filter_map(|it| it.watcher.as_ref());
        let mean = |of: fn(&Watcher) -> Option<Nanos>| {
            let known: Vec<Nanos> = asked().filter_map(of).collect();
            known.iter().copied().sum::<Nanos>().mean(known.len() as u64)
        };
        let others: Vec<Nanos> = asked().filter_map(|it| it.other_cpu).collect();
        let runs = of_ranks.iter().filter(|it| it.watcher.is_some()).map(|it| it.run);
        Watching {
            ranks: asked().count() as u64,
            words_at_once: asked().filter(|it| it.problem.is_none()).map(|it| it.words).min(),
            hit_ns: mean(|it| it.hit),
            set_ns: mean(|it| it.set),
            spent_ns: asked().map(|it| it.spent).sum(),
            run_ns: runs.sum(),
            other_cpu_ns: (!others.is_empty()).then(|| others.into_iter().sum()),
            buffers: of_ranks.iter().map(|it| it.buffers).sum(),
            words: of_ranks.iter().map(|it| it.words).sum(),
            of_ranks,
            ..self
        }
    }

    /// What was spent as a share of the run time.
    pub fn spent_share(&self) -> f64 {
        self.spent_ns.share_of(self.run_ns)
    }

    /// What to know before believing what watched buffers say, or why there are none, with the way out.
    pub fn problems(&self) -> Vec<Problem> {
        if self.ranks == 0 {
            let message =
                "no buffer was watched: LAPSCOPE_REACH was off when the run was recorded. Record one \
                 with your launch line: lapscope reach -- mpirun -n 4 ./app";
            return vec![Problem::new(ProblemKind::NotWatched, message, vec![])];
        }
        let mut problems = self.troubles();
        problems.extend(self.not_asked());
        problems.extend(self.nothing_left(&problems));
        problems.extend(self.unseen_threads());
        problems
    }

    /// What stopped ranks, said once for all whom it stopped.
    fn troubles(&self) -> Vec<Problem> {
        let mut ranks: BTreeMap<(&str, bool), Vec<Rank>> = BTreeMap::new();
        for it in &self.of_ranks {
            if let Some(problem) =
                it.watcher.as_ref().and_then(|watcher| watcher.problem.as_deref())
            {
                ranks.entry((problem, it.words > 0)).or_default().push(it.rank);
            }
        }
        let said = |((problem, has_watched), ranks): ((&str, bool), Vec<Rank>)| {
            let what = if has_watched { "stopped watching buffers" } else { "watched no buffer" };
            let problem = problem.trim_end_matches('.');
            let message = format!("{} {what}: {problem}", named(&ranks));
            Problem::new(ProblemKind::NotWatched, message, ranks)
        };
        ranks.into_iter().map(said).collect()
    }

    fn not_asked(&self) -> Option<Problem> {
        let others = self.of_ranks.iter().filter(|it| it.watcher.is_none());
        let ranks: Vec<Rank> = others.map(|it| it.rank).collect();
        (!ranks.is_empty()).then(|| {
            let message =
                format!("{} watched no buffer: LAPSCOPE_REACH was off there", named(&ranks));
            Problem::new(ProblemKind::NotWatched, message, ranks)
        })
    }

    /// Why ranks without trouble have not watched anything all the same.
    fn nothing_left(&self, known: &[Problem]) -> Option<Problem> {
        if self.words > 0 || !known.is_empty() {
            return None;
        }
        let Some(most) = self.left_out.first() else {
            let message =
                "no buffer was watched: the run neither sent nor received anything that could be";
            return Some(Problem::new(ProblemKind::NotWatched, message, vec![]));
        };
        let reasons: Vec<String> = self.left_out.iter().take(3).map(left_out_in_words).collect();
        let way_out = way_out(&most.reason).map(|way| format!(". {way}")).unwrap_or_default();
        let message = format!("of all buffers none was watched: {}{way_out}", reasons.join(", "));
        Some(Problem::new(ProblemKind::NotWatched, message, vec![]))
    }

    fn unseen_threads(&self) -> Option<Problem> {
        let other = self.other_cpu_ns?;
        let share = other.share_of(self.run_ns);
        (share >= UNSEEN_SHARE).then(|| {
            let message = format!(
                "threads that made no MPI call ran for {}, {} of the run time: what they wrote and read was not seen, so \
                 that a post or a wait may have less reach than is shown",
                time(other),
                percent(share)
            );
            Problem::new(ProblemKind::UnseenThreads, message, vec![])
        })
    }
}

/// "12 (not drawn: LAPSCOPE_REACH_SHARE)".
pub fn left_out_in_words(left_out: &LeftOut) -> String {
    format!("{} ({})", count(left_out.buffers), reason_in_words(&left_out.reason))
}

/// "ranks 0-3"
fn named(ranks: &[Rank]) -> String {
    format!("rank{} {}", plural(ranks.len() as u64), list_ranks(ranks))
}

/// Why buffers were not watched; a reason of a later lapscope as it is.
fn reason_in_words(reason: &str) -> &str {
    match reason {
        "share" => "not drawn: LAPSCOPE_REACH_SHARE",
        "small" => "smaller than LAPSCOPE_REACH_MIN_BYTES",
        "busy" => "all watchpoints were in use, or it was the turn of other call sites",
        "budget" => "LAPSCOPE_REACH_BUDGET was used up",
        "datatype" => "which bytes of the datatype are data is not known",
        "memory" => "not in ordinary memory, as that of a device",
        "shared" => "in memory that other processes may write",
        "thread" => "posted by one thread, completed by another",
        "partitioned" => "of partitioned requests",
        "in_place" => "MPI_IN_PLACE",
        "collective" => "of collectives whose buffers are not told by one count",
        "unsent" => "watched since they were sent, and not sent again",
        other => other,
    }
}

/// What may be done where this reason left out most.
fn way_out(reason: &str) -> Option<&'static str> {
    match reason {
        "share" => Some("`lapscope reach --share 100` draws all"),
        "small" => Some("`lapscope reach --min-bytes 0` takes smaller ones, too"),
        "budget" => Some("`lapscope reach --budget 20` may cost more"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use lapscope_fixture::tables::{
        Rank as RankRow, Setting, Watch, WatchLeftOut, Watcher as WatcherRow,
    };
    use lapscope_fixture::{full, small, Fixture};

    use super::*;

    /// A run of ranks with these rows each.
    fn watching(ranks: &[&dyn Fn(&Fixture)]) -> Watching {
        let directory = tempfile::tempdir().unwrap();
        let write = |(rank, rows): (usize, &&dyn Fn(&Fixture))| {
            RankRow { world_size: ranks.len() as i64, ..RankRow::new(rank as i64) }
                .write(directory.path(), *rows)
        };
        let files: Vec<PathBuf> = ranks.iter().enumerate().map(write).collect();
        let (watching, failed) = Watching::of_run(&files, &[]);
        assert!(failed.is_empty(), "{failed:?}");
        watching
    }

    fn messages(watching: &Watching) -> Vec<String> {
        watching.problems().into_iter().map(|problem| problem.message).collect()
    }

    fn watcher(problem: Option<&'static str>) -> WatcherRow<'static> {
        WatcherRow { problem, spent_ns: 1_000, ..WatcherRow::default() }
    }

    #[test]
    fn sums_are_of_all_ranks() {
        let directory = tempfile::tempdir().unwrap();
        full::write(directory.path());
        let files = [0, 1].map(|rank| directory.path().join(format!("rank-{rank}.db")));
        let (watching, _) = Watching::of_run(&files, &[]);
        assert_eq!((watching.ranks, watching.words_at_once), (2, Some(4)));
        assert_eq!((watching.buffers, watching.words), (4, 12), "a send and a receive of each");
        assert_eq!((watching.spent_ns, watching.run_ns), (Nanos(84_000), Nanos(150_000)));
        assert_eq!(watching.left_out, [LeftOut { reason: "share".to_owned(), buffers: 18 }]);
        assert_eq!((watching.hit_ns, watching.other_cpu_ns), (Some(Nanos(8_000)), Some(Nanos(0))));
        assert_eq!(messages(&watching), [""; 0]);
        let (first, _) = Watching::of_run(&files, &[Rank::of_first_world(0)]);
        assert_eq!((first.ranks, first.words, first.spent_ns), (1, 6, Nanos(42_000)));
    }

    #[test]
    fn a_run_that_did_not_watch_says_how_to_get_one() {
        let none = messages(&watching(&[&|_| ()]));
        assert!(none[0].contains("lapscope reach -- mpirun"), "{none:?}");
        let asked = |file: &Fixture| {
            file.insert(watcher(None));
        };
        let some = watching(&[&asked, &|_| ()]);
        assert!(messages(&some)[0].starts_with("rank 1 watched no buffer: LAPSCOPE_REACH was off"));
    }

    #[test]
    fn what_stopped_ranks_is_said_once_for_all_of_them() {
        let forbidden = |file: &Fixture| {
            file.insert(watcher(Some("not allowed here.")));
        };
        let said = messages(&watching(&[&forbidden, &forbidden, &full_with]));
        let expected = [
            "ranks 0-1 watched no buffer: not allowed here",
            "rank 2 stopped watching buffers: ring lost",
        ];
        assert_eq!(said, expected);
    }

    fn full_with(file: &Fixture) {
        small::rank_0(file);
        file.insert(watcher(Some("ring lost")));
        file.insert(Watch::send(1, 2_500, (0, 1_000), 5));
    }

    #[test]
    fn where_nothing_was_left_to_watch_the_way_out_is_of_what_left_out_most() {
        let said = watching(&[&|file| {
            file.insert(watcher(None));
            file.insert(Setting { name: "LAPSCOPE_REACH_SHARE", value: "20", source: "default" });
            file.insert(WatchLeftOut { reason: "share", buffers: 5 });
            file.insert(WatchLeftOut { reason: "small", buffers: 700 });
        }]);
        assert_eq!(said.share, Some(0.2));
        let expected = "of all buffers none was watched: 700 (smaller than LAPSCOPE_REACH_MIN_BYTES), 5 (not drawn: \
                        LAPSCOPE_REACH_SHARE). `lapscope reach --min-bytes 0` takes smaller ones, too";
        assert_eq!(messages(&said), [expected]);
    }

    #[test]
    fn threads_that_were_not_seen_are_said_where_they_computed() {
        let others = |other_cpu_ns| {
            watching(&[&|file| {
                full_with(file);
                file.change(&format!(
                    "UPDATE watcher SET problem = NULL, other_cpu_ns = {other_cpu_ns}"
                ));
            }])
        };
        assert_eq!(messages(&others("999")), [""; 0], "of 100 us");
        assert_eq!(messages(&others("NULL")), [""; 0]);
        let said = messages(&others("1500"));
        assert!(said[0].contains("ran for 1.50 µs, 1.5 % of the run time"), "{said:?}");
    }
}
