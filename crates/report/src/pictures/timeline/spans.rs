//! Puts calls together that are too short to be seen apart.

use super::CallSpan;
use lapscope_data::model::Nanos;

/// Spans of one thread, in order, with what is shorter than `resolution` nanoseconds, and nearer than that to what is before
/// it, put together with that. A cause is that of the longest call.
pub(super) fn join(spans: &[CallSpan], resolution: i64) -> Vec<CallSpan> {
    let mut joined: Vec<CallSpan> = Vec::new();
    // the longest call in the last of them
    let mut longest = 0;
    for span in spans {
        let length = span.end_ns.0 - span.begin_ns.0;
        let is_near = |before: &&mut CallSpan| {
            let gap = span.begin_ns.0 - before.end_ns.0;
            let whole = span.end_ns.0 - before.begin_ns.0;
            gap < resolution && whole < 2 * resolution
        };
        match joined.last_mut().filter(is_near) {
            Some(before) => {
                before.end_ns = before.end_ns.max(span.end_ns);
                before.calls += span.calls;
                before.mpi_ns += span.mpi_ns;
                if length > longest {
                    (before.place, before.role, before.cause) = (span.place, span.role, span.cause);
                    longest = length;
                }
            }
            None => {
                joined.push(span.clone());
                longest = length;
            }
        }
    }
    joined
}

/// Calls within another call of the same thread, as those of MPI-IO libraries are, are left out: the outer one shows.
pub(super) fn outermost(mut spans: Vec<CallSpan>) -> Vec<CallSpan> {
    spans.sort_by_key(|span| (span.begin_ns, Nanos(-span.end_ns.0)));
    let mut until = Nanos(i64::MIN);
    spans.retain(|span| {
        let is_within = span.end_ns <= until && span.begin_ns < until;
        until = until.max(span.end_ns);
        !is_within
    });
    spans
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    fn span(begin: i64, end: i64, place: u32) -> CallSpan {
        CallSpan {
            begin_ns: Nanos(begin),
            end_ns: Nanos(end),
            place,
            calls: 1,
            mpi_ns: Nanos(end - begin),
            role: Role::Other,
            cause: None,
        }
    }

    #[test]
    fn short_neighbours_become_one() {
        let spans = [span(0, 1, 0), span(2, 5, 1), span(6, 7, 2), span(50, 90, 3), span(91, 92, 4)];
        let joined = join(&spans, 10);
        assert_eq!(joined.len(), 3);
        assert_eq!((joined[0].calls, joined[0].place, joined[0].mpi_ns), (3, 1, Nanos(5)));
        assert_eq!((joined[0].begin_ns, joined[0].end_ns), (Nanos(0), Nanos(7)));
        assert_eq!(joined[1], spans[3]);
        assert_eq!(join(&spans, 0), spans);
    }

    #[test]
    fn what_is_within_another_call_does_not_show() {
        let spans = vec![span(3, 4, 1), span(0, 10, 0), span(10, 12, 2), span(12, 12, 3)];
        assert_eq!(outermost(spans), [span(0, 10, 0), span(10, 12, 2), span(12, 12, 3)]);
    }
}
