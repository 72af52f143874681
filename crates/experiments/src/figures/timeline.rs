//! [SP04]: what two processes do from T0, when they post, to T3, when they wait.

mod lanes;

use crate::results::{Inject, Link, Results, Run, Segment, Table, TableRow};
use lapscope_data::options;

use super::{panels, words, Figure};
use lapscope_show::plot::scale;
use lapscope_show::plot::sheet::Heading;

const PROGRAM: &str = "t0_t3";
/// A sender that is in MPI for a larger share of the time is blocked.
const BLOCKED: f64 = 0.1;

/// One repetition of one row.
#[derive(Debug, Clone)]
struct Case<'a> {
    inject: Inject,
    /// In the receiver's computation.
    tests: u32,
    bytes: u64,
    segments: Vec<&'a Segment>,
}

/// What is drawn below each other on the same axis.
struct LanePanel<'a> {
    title: String,
    segments: Vec<&'a Segment>,
}

pub fn figures(results: &Results) -> Vec<Figure> {
    let runs = results.runs.iter().filter(|run| !run.segments.is_empty());
    let places = panels::distinct(runs.map(|run| (run.mpi, run.link)));
    places.into_iter().filter_map(|(mpi, link)| figure(results, mpi, link)).collect()
}

fn figure(results: &Results, mpi: usize, link: Link) -> Option<Figure> {
    let runs = results.runs.iter();
    let runs = runs.filter(|run| run.mpi == mpi && run.link == link && run.program == PROGRAM);
    let cases: Vec<Case> = runs.flat_map(cases).collect();
    let lanes: Vec<LanePanel> = choose(&cases).into_iter().map(lanes_of).collect();
    if lanes.is_empty() {
        return None;
    }
    let subtitle = "Process 0 posts a send and process 1 a receive at T0; both compute, and wait at T3. Bars are what each process does, \
                    one repetition of each case.";
    let heading = Heading {
        title: format!("From T0 to T3: {}", words::place(results, mpi, link)),
        subtitle: subtitle.to_owned(),
        facts: words::facts(results, "Saif and Parashar 2004"),
    };
    let name = results.mpis.get(mpi).map_or("mpi", |facts| &facts.name);
    let name = format!("timeline-{}-{}.svg", words::file_name(name), words::file_name(link.key()));
    Some(Figure { name, svg: lanes::draw(&heading, &lanes) })
}

/// Rows that there is a timeline of.
fn cases(run: &Run) -> Vec<Case<'_>> {
    let tables = run.tables.iter().filter(|table| table.name == PROGRAM && is_single(table));
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let case = |(table, row): (&Table, &TableRow)| {
        let tag = row.tag()?;
        let of_row = |segment: &&Segment| segment.tag == tag && segment.end_ns >= segment.begin_ns;
        let segments: Vec<&Segment> = run.segments.iter().filter(of_row).collect();
        let bytes = row.bytes()?;
        let case = Case { inject: run.inject, tests: number(table, "tests"), bytes, segments };
        (!case.segments.is_empty()).then_some(case)
    };
    rows.filter_map(case).collect()
}

/// One message in one direction.
fn is_single(table: &Table) -> bool {
    number(table, "messages") <= 1 && number(table, "both") == 0
}

/// An attribute; 0 when it is none.
fn number(table: &Table, attribute: &str) -> u32 {
    table.attribute(attribute).parse().unwrap_or(0)
}

impl Case<'_> {
    /// Time of process 0 in MPI.
    fn blocked_ns(&self) -> i64 {
        let of_sender = self.segments.iter().filter(|segment| segment.rank == 0);
        let in_mpi = of_sender.filter(|segment| segment.what != lanes::COMPUTE);
        in_mpi.map(|segment| segment.end_ns - segment.begin_ns).sum()
    }

    fn is_blocked(&self) -> bool {
        let begin = self.segments.iter().map(|segment| segment.begin_ns).min().unwrap_or(0);
        let end = self.segments.iter().map(|segment| segment.end_ns).max().unwrap_or(0);
        self.blocked_ns() as f64 > BLOCKED * (end - begin) as f64
    }

    fn is_plain(&self) -> bool {
        self.inject == Inject::Off && self.tests == 0
    }
}

/// For smaller messages nothing is injected.
fn injected_from() -> u64 {
    let option = options::find("LAPSCOPE_INJECT_MIN_BYTES");
    option.and_then(|option| option.default.parse().ok()).unwrap_or(0)
}

/// The largest size whose sender goes on at once; a size whose sender is blocked, plain, with tests, and with injection.
fn choose<'a, 'b>(cases: &'b [Case<'a>]) -> Vec<&'b Case<'a>> {
    let plain = || cases.iter().filter(|case| case.is_plain());
    let eager = plain().filter(|case| !case.is_blocked()).max_by_key(|case| case.bytes);
    let cured =
        |bytes: u64| cases.iter().filter(|case| !case.is_plain() && case.bytes == bytes).count();
    let blocked = plain().filter(|case| case.is_blocked());
    let least = injected_from();
    let worth =
        |case: &&Case<'_>| (cured(case.bytes), case.bytes >= least, std::cmp::Reverse(case.bytes));
    let blocked = blocked.max_by_key(worth);
    let largest = plain().max_by_key(|case| case.bytes);
    let waiting =
        blocked.or(largest.filter(|largest| eager.is_some_and(|e| e.bytes < largest.bytes)));
    let Some(subject) = waiting.or(eager) else {
        return Vec::new();
    };
    let of_subject = |inject: Inject, has_tests: bool| {
        cases.iter().find(move |case| {
            case.inject == inject && (case.tests > 0) == has_tests && case.bytes == subject.bytes
        })
    };
    let cures = [
        of_subject(Inject::Off, true),
        of_subject(Inject::Timer, false),
        of_subject(Inject::Thread, false),
    ];
    [eager, waiting].into_iter().chain(cures).flatten().collect()
}

fn lanes_of<'a>(case: &Case<'a>) -> LanePanel<'a> {
    let how = match (case.inject, case.tests) {
        (Inject::Off, 0) => "no test".to_owned(),
        (Inject::Off, 1) => "a test in the receiver's computation".to_owned(),
        (Inject::Off, tests) => format!("{tests} tests in the receiver's computation"),
        (inject, _) => words::inject(inject).to_owned(),
    };
    let blocked = scale::time(case.blocked_ns() as f64 / 1e3);
    let title =
        format!("{}, {how}: process 0 is in MPI for {blocked}", words::size(case.bytes as f64));
    LanePanel { title, segments: case.segments.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(begin_ns: i64, end_ns: i64, what: &str) -> Segment {
        Segment { tag: 1, rank: 0, begin_ns, end_ns, what: what.to_owned() }
    }

    #[test]
    fn one_size_that_blocks_and_what_cures_it() {
        let free = [segment(0, 1, "MPI_Isend"), segment(1, 100, lanes::COMPUTE)];
        let held = [segment(0, 50, lanes::COMPUTE), segment(50, 100, "MPI_Wait")];
        let case = |inject, tests, bytes, segments| Case { inject, tests, bytes, segments };
        let (free, held): (Vec<_>, Vec<_>) = (free.iter().collect(), held.iter().collect());
        let cases = [
            case(Inject::Off, 0, 64, free.clone()),
            case(Inject::Off, 0, 1024, free.clone()),
            case(Inject::Off, 0, 65536, held.clone()),
            case(Inject::Off, 0, 131072, held),
            case(Inject::Timer, 0, 131072, free.clone()),
            case(Inject::Off, 8, 131072, free),
        ];
        let chosen = choose(&cases);
        let sizes: Vec<u64> = chosen.iter().map(|case| case.bytes).collect();
        assert_eq!(sizes, [1024, 131072, 131072, 131072]);
        assert_eq!(chosen[2].tests, 8);
        assert_eq!(chosen[3].inject, Inject::Timer);
    }
}
