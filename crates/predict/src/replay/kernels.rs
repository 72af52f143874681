//! When GPUs would work in a replay. What they do keeps its length, and begins as long after a call of its rank as it did: after the
//! return of the last one, or, where it began within a call, after the entry of that.

use lapscope_trace::{BusySpan, DeviceTime, DeviceWork, RankTrace};

/// The last moment of a rank before something that a replay gives another time.
#[derive(Debug, Clone, Copy)]
enum Since {
    Start,
    /// Of a call or a post, by its place.
    CallBegin(usize),
    CallEnd(usize),
    PostEnd(usize),
}

impl Since {
    fn moment(self, rank: &RankTrace) -> i64 {
        match self {
            Since::Start => rank.init_end,
            Since::CallBegin(at) => rank.calls[at].begin,
            Since::CallEnd(at) => rank.calls[at].begin + rank.calls[at].duration,
            Since::PostEnd(at) => rank.endpoints[at].begin + rank.endpoints[at].post.or_zero(),
        }
    }
}

/// What the GPUs of a rank did, by what came before it: intervals since then.
#[derive(Debug, Clone)]
pub struct AnchoredWork(Vec<(u32, DeviceWork, Since, BusySpan)>);

impl AnchoredWork {
    /// As it was recorded.
    pub fn of_rank(rank: &RankTrace) -> AnchoredWork {
        if rank.devices.lanes.is_empty() {
            return AnchoredWork(Vec::new());
        }
        let of_call = |at| [Since::CallBegin(at), Since::CallEnd(at)];
        let calls = (0..rank.calls.len()).flat_map(of_call);
        let is_post =
            |&at: &usize| rank.operations[rank.endpoints[at].operation as usize].is_request;
        let posts = (0..rank.endpoints.len()).filter(is_post).map(Since::PostEnd);
        let with_moment = |anchor: Since| (anchor.moment(rank), anchor);
        let mut anchors: Vec<(i64, Since)> = calls.chain(posts).map(with_moment).collect();
        anchors.sort_by_key(|&(moment, _)| moment);
        let anchored = |span: &BusySpan| {
            let before = anchors.partition_point(|&(moment, _)| moment <= span.begin);
            let (moment, anchor) = match before.checked_sub(1) {
                Some(last) => anchors[last],
                None => with_moment(Since::Start),
            };
            let (begin, end) = (span.begin - moment, span.end - moment);
            (anchor, BusySpan { begin, end, busy: span.busy })
        };
        let of_lane = rank.devices.lanes.iter().flat_map(|lane| {
            let spans = lane.spans.iter().map(anchored);
            spans.map(|(anchor, span)| (lane.device, lane.work, anchor, span))
        });
        AnchoredWork(of_lane.collect())
    }

    /// As it would be in a rank whose calls have the times of a replay.
    pub fn of_replayed(&self, rank: &RankTrace) -> DeviceTime {
        let moved = |&(device, work, anchor, span): &(u32, DeviceWork, Since, BusySpan)| {
            let since = anchor.moment(rank);
            let (begin, end) = (since + span.begin, since + span.end);
            (device, work, BusySpan { begin, end, busy: span.busy })
        };
        DeviceTime::new(self.0.iter().map(moved).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapscope_trace::made_up::MadeUp;

    /// One begins in the computation behind a call that takes longer, one before all calls.
    #[test]
    fn kernels_follow_the_call_before_them() {
        let mut run = MadeUp::new(2);
        run.receive(1, 1, 0, 8);
        run.compute(1, 1_000_000);
        let mut trace = run.finish();
        let rank = &mut trace.ranks[1];
        let call = rank.calls[0];
        let end = call.begin + call.duration;
        let kernel =
            |begin, end| (0, DeviceWork::Kernel, BusySpan { begin, end, busy: end - begin });
        rank.devices = DeviceTime::new(vec![kernel(end + 100, end + 400)]);
        let work = AnchoredWork::of_rank(rank);
        assert_eq!(work.of_replayed(rank), rank.devices);
        rank.calls[0].duration += 5_000;
        let moved = work.of_replayed(rank);
        assert_eq!(moved.computing().collect::<Vec<_>>(), [(end + 5_100, end + 5_400)]);
        rank.devices = DeviceTime::new(vec![kernel(-10, 20)]);
        assert_eq!(AnchoredWork::of_rank(rank).of_replayed(rank), rank.devices);
    }
}
