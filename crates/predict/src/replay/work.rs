//! The computation of a rank between two of its calls, as visits: of a region, which is where it begins and ends in the program. Tests
//! that are called in a computation are no ends of it.

use std::ops::Range;

use super::program::{Action, Program, RankProgram, Step};
use lapscope_data::model::CallName;
use lapscope_data::places::SiteId;
use lapscope_trace::stats::in_proportion;
use lapscope_trace::{Call, RankTrace, Span, Trace};

/// The calls before and behind computation; `None`: MPI_Init and MPI_Finalize.
pub type WorkRegion = (Option<SiteId>, Option<SiteId>);

/// A region once. Moments are on the run's clock.
#[derive(Debug, Clone)]
pub struct WorkVisit {
    pub region: WorkRegion,
    /// Of the first thread; the computation is before them, the one behind the last is that at the end.
    steps: Range<usize>,
    pub begin: i64,
    pub end: i64,
    /// Outside MPI, and what of it the rank had a processor for, about; nanoseconds.
    pub outside: i64,
    pub worked: i64,
}

impl WorkVisit {
    fn start(from: Option<SiteId>, step: usize, begin: i64) -> WorkVisit {
        let steps = step..step;
        WorkVisit { region: (from, None), steps, begin, end: begin, outside: 0, worked: 0 }
    }

    fn add(&mut self, rank: &RankTrace, begin: i64, gap: i64) {
        self.end = begin + gap;
        self.outside += gap;
        let starved = rank.starvation.within(begin, self.end);
        self.worked += (gap - starved).max(0);
    }
}

/// Calls `look` with each visit of the rank's first thread, in the order of time.
pub fn for_each_visit(
    trace: &Trace,
    place: usize,
    program: &RankProgram,
    mut look: impl FnMut(WorkVisit),
) {
    let rank = &trace.ranks[place];
    let Some(thread) = program.threads.first() else { return };
    let mut cursor = rank.init_end;
    let mut visit = WorkVisit::start(None, 0, cursor);
    for (at, step) in thread.steps.iter().enumerate() {
        visit.add(rank, cursor, step.gap.or_zero());
        visit.steps.end = at + 1;
        let (site, end) = call_of(rank, program, step);
        cursor = cursor.max(end);
        let is_loop = matches!(step.action(), Action::Loop(_));
        if !is_loop && is_test(trace.places.call(site)) {
            continue;
        }
        visit.region.1 = Some(site);
        look(std::mem::replace(&mut visit, WorkVisit::start(Some(site), at + 1, cursor)));
    }
    visit.add(rank, cursor, thread.rest);
    visit.steps.end = thread.steps.len() + 1;
    look(visit);
}

/// Whether it returns whatever is there: the blocking call that does the same does not.
fn is_test(call: &CallName) -> bool {
    matches!(call.role.as_str(), "COMPLETE" | "PROBE") && call.blocking != call.name
}

/// Where the call of a step is, and when it ends.
fn call_of(rank: &RankTrace, program: &RankProgram, step: &Step) -> (SiteId, i64) {
    let site = |operation: u32| rank.operations[operation as usize].site;
    let of_call = |call: &Call| (site(call.operation), call.begin + call.duration);
    match step.action() {
        Action::Post(endpoint) => {
            let row = &rank.endpoints[endpoint as usize];
            (site(row.operation), row.begin + row.post.or_zero())
        }
        Action::Other(index) => match rank.calls.get(index as usize) {
            Some(call) => of_call(call),
            None => {
                let call = &rank.other_calls[index as usize - rank.calls.len()];
                (site(call.operation), call.begin + call.duration)
            }
        },
        Action::Call(place)
        | Action::Loop(place)
        | Action::Start(place)
        | Action::Finish(place)
        | Action::Never(place) => of_call(&rank.calls[program.call_of(rank, place) as usize]),
    }
}

/// The program with each visit of a region as long as the mean of all ranks that make it; `None`: their visits do not line up.
pub fn even(trace: &Trace, program: &Program, region: WorkRegion) -> Option<Program> {
    let mut visits: Vec<(usize, Vec<WorkVisit>)> = Vec::new();
    for (place, rank) in program.ranks.iter().enumerate() {
        let mut own = Vec::new();
        for_each_visit(trace, place, rank, |visit| {
            if visit.region == region {
                own.push(visit);
            }
        });
        if !own.is_empty() {
            visits.push((place, own));
        }
    }
    let count = visits.first()?.1.len();
    if visits.iter().any(|(_, own)| own.len() != count) {
        return None;
    }
    let mut ranks = program.ranks.clone();
    for at in 0..count {
        let all: i64 = visits.iter().map(|(_, own)| own[at].outside).sum();
        let mean = all / visits.len() as i64;
        for (place, own) in &visits {
            ranks[*place].stretch(&own[at], mean);
        }
    }
    Some(Program { ranks, overhead: program.overhead, is_whole: program.is_whole })
}

impl RankProgram {
    /// Has the computation of a visit take so long, nanoseconds.
    fn stretch(&mut self, visit: &WorkVisit, ns: i64) {
        let thread = &mut self.threads[0];
        let (first, last) = (visit.steps.start, visit.steps.end - 1);
        let set = |thread: &mut super::program::ThreadProgram, at: usize, ns: i64| match thread
            .steps
            .get_mut(at)
        {
            Some(step) => step.gap = Span::new(ns),
            None => thread.rest = ns,
        };
        if visit.outside == 0 {
            return set(thread, last, ns);
        }
        for at in first..=last {
            let own = thread.steps.get(at).map_or(thread.rest, |step| step.gap.or_zero());
            set(thread, at, in_proportion(own, ns, visit.outside));
        }
    }
}
