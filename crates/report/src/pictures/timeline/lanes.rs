//! Puts intervals into lanes, so that none covers another.

/// The lane of each interval (begin, end), which are in the order of their begins, and how many lanes there are.
pub(super) fn assign(intervals: &[(i64, i64)]) -> (Vec<u32>, u32) {
    let mut ends: Vec<i64> = Vec::new();
    let mut lane_of = |&(begin, end): &(i64, i64)| {
        let free = ends.iter().position(|&busy| busy <= begin);
        let lane = free.unwrap_or_else(|| {
            ends.push(i64::MIN);
            ends.len() - 1
        });
        ends[lane] = end.max(begin + 1);
        lane as u32
    };
    let lanes = intervals.iter().map(&mut lane_of).collect();
    (lanes, ends.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_interval_covers_another() {
        let (lanes, count) = assign(&[(0, 10), (2, 4), (3, 20), (4, 5), (10, 12), (30, 30)]);
        assert_eq!(lanes, [0, 1, 2, 1, 0, 0]);
        assert_eq!(count, 3);
    }
}
