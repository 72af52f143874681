//! When the GPUs of a rank worked, where a plugin recorded it.

use serde::{Deserialize, Serialize};

/// What a GPU does. Only kernels compute: copies are often the MPI's own, and are no reason to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceWork {
    Kernel,
    ToDevice,
    ToHost,
    Other,
}

impl DeviceWork {
    /// As `device_busy.work` has it.
    pub fn from_name(name: &str) -> DeviceWork {
        match name {
            "kernel" => DeviceWork::Kernel,
            "to_device" => DeviceWork::ToDevice,
            "to_host" => DeviceWork::ToHost,
            _ => DeviceWork::Other,
        }
    }

    /// What a lane of it is called: "GPU 0: kernels".
    pub fn of_gpu(self, device: u32) -> String {
        format!("GPU {device}: {}", self.in_words())
    }

    pub fn in_words(self) -> &'static str {
        match self {
            DeviceWork::Kernel => "kernels",
            DeviceWork::ToDevice => "copies to the GPU",
            DeviceWork::ToHost => "copies to the host",
            DeviceWork::Other => "other work",
        }
    }
}

/// An interval, and for how long in it there was work: pauses are too short to be told apart. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusySpan {
    pub begin: i64,
    pub end: i64,
    pub busy: i64,
}

impl BusySpan {
    /// How much work is before a moment of it, by the length of that part.
    fn until(&self, moment: i64) -> i64 {
        let part = i128::from(moment.clamp(self.begin, self.end) - self.begin);
        let length = i128::from((self.end - self.begin).max(1));
        (i128::from(self.busy) * part / length) as i64
    }

    /// How much work is in a part of it.
    fn within(&self, begin: i64, end: i64) -> i64 {
        (self.until(end) - self.until(begin)).max(0)
    }

    fn map(&mut self, correct: impl Fn(i64) -> i64) {
        (self.begin, self.end) = (correct(self.begin), correct(self.end));
    }

    /// Goes on with the next one, where work is as dense in it.
    fn extend(&mut self, next: &BusySpan) -> bool {
        let density = |work: &BusySpan, in_length_of: &BusySpan| {
            i128::from(work.busy) * i128::from(in_length_of.end - in_length_of.begin)
        };
        let is_alike = self.end == next.begin && density(self, next) == density(next, self);
        if is_alike {
            (self.end, self.busy) = (next.end, self.busy + next.busy);
        }
        is_alike
    }
}

/// A row of `device_busy`: which GPU, at what work, and when.
pub type DeviceRow = (u32, DeviceWork, BusySpan);

/// Disjoint, in order, from spans that may lie beside each other. They are cut where one of them begins or ends, as work may be
/// dense in one and rare in another; of what several have at the same time the busiest counts.
fn disjoint(mut spans: Vec<BusySpan>) -> Vec<BusySpan> {
    spans.retain(|span| span.begin < span.end);
    spans.iter_mut().for_each(|span| span.busy = span.busy.clamp(0, span.end - span.begin));
    spans.sort_unstable_by_key(|span| (span.begin, span.end, span.busy));
    let mut all: Vec<BusySpan> = Vec::with_capacity(spans.len());
    let mut open: Vec<BusySpan> = Vec::new();
    let mut later = spans.into_iter().peekable();
    let mut begin = i64::MIN;
    loop {
        open.retain(|span| span.end > begin);
        match later.peek() {
            Some(next) if open.is_empty() => begin = next.begin,
            None if open.is_empty() => return all,
            _ => {}
        }
        while let Some(next) = later.next_if(|next| next.begin <= begin) {
            open.push(next);
        }
        let next = later.peek().map(|next| next.begin);
        let end = open.iter().map(|span| span.end).chain(next).min().unwrap_or(begin);
        let busy = open.iter().map(|span| span.within(begin, end)).max().unwrap_or(0);
        let piece = BusySpan { begin, end, busy };
        if !all.last_mut().is_some_and(|last| last.extend(&piece)) {
            all.push(piece);
        }
        begin = end;
    }
}

/// Spans, disjoint and in order, that know how much work lies before each: what is in an interval is told without a look at all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusySums {
    spans: Vec<BusySpan>,
    /// Up to the end of each.
    sums: Vec<i64>,
}

impl BusySums {
    fn new(spans: Vec<BusySpan>) -> BusySums {
        let add = |sum: &mut i64, span: &BusySpan| {
            *sum += span.busy;
            Some(*sum)
        };
        let sums = spans.iter().scan(0, add).collect();
        BusySums { spans, sums }
    }

    fn until(&self, moment: i64) -> i64 {
        let place = self.spans.partition_point(|span| span.end <= moment);
        let before = place.checked_sub(1).map_or(0, |last| self.sums[last]);
        before + self.spans.get(place).map_or(0, |span| span.until(moment))
    }

    /// How much work is in `begin..end`, nanoseconds.
    #[inline]
    pub fn within(&self, begin: i64, end: i64) -> i64 {
        match self.spans.is_empty() || end <= begin {
            true => 0,
            false => self.until(end) - self.until(begin),
        }
    }

    fn map(&mut self, correct: impl Fn(i64) -> i64) {
        self.spans.iter_mut().for_each(|span| span.map(&correct));
    }
}

/// One kind of work of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLane {
    pub device: u32,
    pub work: DeviceWork,
    /// Disjoint, in order.
    pub spans: Vec<BusySpan>,
}

impl DeviceLane {
    fn is_kernels(&self) -> bool {
        self.work == DeviceWork::Kernel
    }
}

/// What the GPUs of one rank did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTime {
    /// By GPU and kind of work.
    pub lanes: Vec<DeviceLane>,
    /// When any of them ran kernels.
    computing: BusySums,
    /// When each of them, in their order, ran kernels, and when it ran kernels or copied.
    each: Vec<[BusySums; 2]>,
}

impl DeviceTime {
    /// From rows in any order.
    pub fn new(mut rows: Vec<DeviceRow>) -> DeviceTime {
        rows.sort_by_key(|&(device, work, _)| (device, work));
        let lane = |rows: &[DeviceRow]| DeviceLane {
            device: rows[0].0,
            work: rows[0].1,
            spans: disjoint(rows.iter().map(|row| row.2).collect()),
        };
        let lanes: Vec<DeviceLane> =
            rows.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(lane).collect();
        let all = |lanes: &[DeviceLane]| DeviceTime::union(lanes, |_| true);
        let kernels = |lanes: &[DeviceLane]| DeviceTime::union(lanes, DeviceLane::is_kernels);
        let computing = kernels(&lanes);
        let of_gpu = lanes.chunk_by(|a, b| a.device == b.device);
        let each = of_gpu.map(|lanes| [kernels(lanes), all(lanes)]).collect();
        DeviceTime { lanes, computing, each }
    }

    fn union(lanes: &[DeviceLane], is_one: impl Fn(&DeviceLane) -> bool) -> BusySums {
        let spans = lanes.iter().filter(|lane| is_one(lane)).flat_map(|lane| &lane.spans);
        BusySums::new(disjoint(spans.copied().collect()))
    }

    /// For how long of `begin..end` a GPU of the rank ran kernels. This decides what time in MPI is beside computation of GPUs.
    #[inline]
    pub fn computed_within(&self, begin: i64, end: i64) -> i64 {
        self.computing.within(begin, end)
    }

    /// When that was within intervals, which are disjoint and in order.
    pub(super) fn computed_in(&self, intervals: &[(i64, i64)]) -> BusySums {
        let mut spans = Vec::new();
        let mut later = &self.computing.spans[..];
        for &(begin, end) in intervals {
            later = &later[later.partition_point(|span| span.end <= begin)..];
            for span in later.iter().take_while(|span| span.begin < end) {
                let (begin, end) = (span.begin.max(begin), span.end.min(end));
                spans.push(BusySpan { begin, end, busy: span.within(begin, end) });
            }
        }
        BusySums::new(spans)
    }

    /// When that was: begin and end, disjoint, in order.
    pub fn computing(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.computing.spans.iter().map(|span| (span.begin, span.end))
    }

    /// Of each GPU for how long it ran kernels in `begin..end`, and for how long it did anything.
    pub fn each_within(&self, begin: i64, end: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.each.iter().map(move |sums| {
            let [computing, working] = sums;
            (computing.within(begin, end), working.within(begin, end))
        })
    }

    pub(super) fn map(&mut self, correct: impl Fn(i64) -> i64) {
        let lanes = self.lanes.iter_mut().flat_map(|lane| &mut lane.spans);
        lanes.for_each(|span| span.map(&correct));
        let sums = self.each.iter_mut().flatten().chain([&mut self.computing]);
        sums.for_each(|sums| sums.map(&correct));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: i64, end: i64, busy: i64) -> BusySpan {
        BusySpan { begin, end, busy }
    }

    #[test]
    fn kernels_of_all_gpus_count_once_and_copies_do_not() {
        let kernel =
            |device, begin, end| (device, DeviceWork::Kernel, span(begin, end, end - begin));
        let rows = vec![
            kernel(0, 300, 400),
            kernel(1, 50, 150),
            kernel(0, 0, 100),
            (0, DeviceWork::ToHost, span(500, 600, 100)),
        ];
        let time = DeviceTime::new(rows);
        let lanes: Vec<_> = time.lanes.iter().map(|lane| (lane.device, lane.work)).collect();
        let kernels = DeviceWork::Kernel;
        assert_eq!(lanes, [(0, kernels), (0, DeviceWork::ToHost), (1, kernels)]);
        assert_eq!(time.computed_within(0, 1_000), 250);
        assert_eq!(time.each_within(0, 1_000).collect::<Vec<_>>(), [(200, 300), (100, 100)]);
        assert_eq!(time.computed_within(140, 310), 20);
        assert_eq!(time.computed_within(150, 300), 0);
    }

    #[test]
    fn what_lies_in_intervals_is_told_by_sums() {
        let kernel = |begin, end, busy| (0, DeviceWork::Kernel, span(begin, end, busy));
        let time = DeviceTime::new(vec![kernel(0, 100, 50), kernel(150, 250, 100)]);
        let calls = [(-10, 20), (90, 160), (200, 300), (400, 500)];
        let sums = time.computed_in(&calls);
        for begin in -20..310 {
            for end in [begin - 1, begin + 7, begin + 60, begin + 400] {
                let cut = calls.map(|call| (call.0.max(begin), call.1.min(end)));
                let one_by_one: i64 = cut.map(|(a, b)| time.computed_within(a, b)).iter().sum();
                assert!((sums.within(begin, end) - one_by_one).abs() <= 3, "{begin} {end}");
            }
        }
        assert_eq!(sums.within(-10, 500), 10 + 5 + 10 + 50);
        assert_eq!(DeviceTime::default().computed_in(&calls).within(0, 100), 0);
    }

    /// One kernel now and then until 1,000, and one behind the other from 900 on.
    #[test]
    fn dense_work_makes_rare_work_beside_it_no_denser() {
        let kernels = |begin, end, busy| (0, DeviceWork::Kernel, span(begin, end, busy));
        let time = DeviceTime::new(vec![kernels(0, 1_000, 10), kernels(900, 2_000, 1_100)]);
        assert_eq!((time.computed_within(0, 500), time.computed_within(500, 900)), (5, 4));
        assert_eq!(
            (time.computed_within(900, 2_000), time.computed_within(0, 2_000)),
            (1_100, 1_109)
        );
        let within = DeviceTime::new(vec![kernels(0, 1_000, 500), kernels(400, 500, 100)]);
        assert_eq!(
            (within.computed_within(400, 500), within.computed_within(0, 1_000)),
            (100, 550)
        );
    }

    #[test]
    fn pauses_within_a_row_are_shared_out() {
        let half = (0, DeviceWork::Kernel, span(0, 100, 50));
        let time = DeviceTime::new(vec![half, (0, DeviceWork::Kernel, span(80, 180, 100))]);
        // in the 20 that they share there was work all the time: 10 of the first were at once with it
        assert_eq!(time.lanes[0].spans, [span(0, 80, 40), span(80, 180, 100)]);
        assert_eq!(DeviceTime::new(vec![half]).computed_within(50, 60), 5);
        assert_eq!(
            DeviceTime::new(vec![(0, DeviceWork::Kernel, span(7, 7, 0))]).lanes[0].spans,
            []
        );
    }
}
