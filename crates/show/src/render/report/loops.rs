//! Ranks that waited in loops of tests.

use lapscope_data::model::Nanos;
use lapscope_data::text::plural;
use lapscope_data::text::units::{count, percent, time, time_range};
use lapscope_measure::overlap::loops::TestLoop;
use lapscope_report::report::Report;

/// Loops of a rank that last a smaller part of the run are left out.
const WORTH_SAYING: f64 = 0.01;
const MOST: usize = 3;

pub(crate) fn sentences(report: &Report) -> Vec<String> {
    let run_ns = report.head.longest_run_ns;
    let is_worth = |it: &&TestLoop| it.span_ns.share_of(run_ns) >= WORTH_SAYING;
    let worth: Vec<&TestLoop> = report.overlap.test_loops.iter().filter(is_worth).collect();
    let mut sentences: Vec<String> =
        worth.iter().take(MOST).map(|it| sentence(it, run_ns)).collect();
    if let more @ 1.. = worth.len().saturating_sub(MOST) as u64 {
        let more = format!(
            "{more} more rank{} wait{} so.",
            plural(more),
            if more == 1 { "s" } else { "" }
        );
        sentences.push(more);
    }
    sentences
}

fn sentence(it: &TestLoop, run_ns: Nanos) -> String {
    let site = it.site.as_ref().map(|site| format!(" {}", site.short())).unwrap_or_default();
    let evidence = match it.asleep_low_ns {
        Some(asleep) => format!("the rank slept for at least {} in such loops", time(asleep)),
        None => "nothing fits in between".to_owned(),
    };
    let apart = match it.asleep_low_ns {
        Some(_) => time_range(it.apart_low_ns, it.apart_high_ns),
        None => format!("at most {}", time(it.apart_high_ns)),
    };
    format!(
        "Rank {} waits in a loop of tests for at most {} ({} of the run time), in {}{site}: {} loop{} of {} tests with no other \
         call between, {apart} apart; {evidence}. For {} of that the other side had not posted (late partner).",
        it.rank,
        time(it.span_ns),
        percent(it.span_ns.share_of(run_ns)),
        it.call,
        count(it.loops),
        plural(it.loops),
        count(it.unsuccessful_tests / it.loops.max(1)),
        percent(it.late_partner_ns.share_of(it.span_ns)),
    )
}
