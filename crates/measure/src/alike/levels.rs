//! Where one number of many ranks falls apart into levels. No distribution is assumed: levels are parted by gaps that are as wide
//! as the ranks of a level lie apart.
//!
//! Not by multiples of a deviation: of ten thousand ranks whose times have a long tail, a hundred lie beyond any of
//! these; that is noise, and naming it sends people after nothing. In return a rank that computes 31 % longer is not
//! named among ranks that lie 40 % apart.

/// Fewer ranks have no spread to compare a gap with. Simulated, how often noise that has no levels is given some: of 24 values
/// normal ones in 0.05 % of all cases, of 33 and more in none of 2,000; exponential ones, which have a long tail, in 12 % of 24
/// values, 8 % of 33, 2 % of 128, 0.3 % of 1,000.
pub const FEWEST: usize = 24;
/// A level with fewer ranks is one of outliers, which need not be near each other.
const FEWEST_OF_LEVEL: usize = 8;
/// More of all ranks are no outliers.
const MOST_OUTLIERS: f64 = 0.25;
/// A number with more levels tells of no groups.
const MOST_LEVELS: usize = 8;

/// The first place of each level but the lowest, in values that rise: as many of the widest gaps as leave every level of some
/// ranks narrower than each of these gaps. Gaps below `least` part nothing.
pub fn cuts(sorted: &[f64], least: f64) -> Vec<usize> {
    if sorted.len() < FEWEST {
        return Vec::new();
    }
    let gap = |at: usize| sorted[at] - sorted[at - 1];
    let wide = |&at: &usize| gap(at) > 0.0 && gap(at) >= least;
    let mut gaps: Vec<usize> = (1..sorted.len()).filter(wide).collect();
    gaps.sort_by(|&a, &b| gap(b).total_cmp(&gap(a)).then(a.cmp(&b)));
    let most = gaps.len().min(MOST_LEVELS - 1);
    let cuts = (1..=most).rev().map(|count| {
        let mut cuts = gaps[..count].to_vec();
        cuts.sort_unstable();
        (gap(gaps[count - 1]), cuts)
    });
    cuts.into_iter()
        .find_map(|(narrowest, cuts)| are_levels(sorted, &cuts, narrowest).then_some(cuts))
        .unwrap_or_default()
}

fn are_levels(sorted: &[f64], cuts: &[usize], gap: f64) -> bool {
    let begins = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([sorted.len()]);
    let mut outliers = 0;
    for (begin, end) in begins.zip(ends) {
        if end - begin < FEWEST_OF_LEVEL {
            outliers += end - begin;
        } else if sorted[end - 1] - sorted[begin] > gap {
            return false;
        }
    }
    outliers as f64 <= MOST_OUTLIERS * sorted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, between 0 and 1.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        })
    }

    fn rising(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    /// Sums of twelve are as good as normal.
    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut noise = noise(seed);
        let mut one = || (0..12).map(|_| noise.next().unwrap()).sum::<f64>() - 6.0;
        (0..count).map(|_| 100.0 + one()).collect()
    }

    #[test]
    fn noise_is_one_level() {
        let mut apart = 0;
        for seed in 1..=300 {
            for count in [33, 128, 1_000] {
                assert!(cuts(&rising(normal(seed, count)), 0.0).is_empty(), "{seed} {count}");
                let even: Vec<f64> = noise(seed).take(count).collect();
                assert!(cuts(&rising(even), 0.0).is_empty(), "{seed} {count}");
                let long_tail = noise(seed).take(count).map(|it| -(1.0 - it).ln()).collect();
                apart += usize::from(!cuts(&rising(long_tail), 0.0).is_empty());
            }
        }
        assert!(apart < 60, "{apart} of 900 long tails");
    }

    #[test]
    fn one_that_stands_apart_is_found_whatever_the_others_do() {
        for seed in 1..=100 {
            for count in [33, 128, 1_000] {
                let mut values = normal(seed, count);
                values.extend([140.0, 70.0]);
                let sorted = rising(values);
                assert_eq!(cuts(&sorted, 0.0), [1, count + 1], "{seed} {count}");
            }
        }
    }

    #[test]
    fn two_and_three_levels_of_equal_weight() {
        for seed in 1..=50 {
            let of = |level: f64, count| {
                normal(seed + level as u64, count).into_iter().map(move |it| it + level)
            };
            let two: Vec<f64> = of(0.0, 64).chain(of(50.0, 64)).collect();
            assert_eq!(cuts(&rising(two), 0.0), [64], "{seed}");
            let three: Vec<f64> = of(0.0, 64).chain(of(50.0, 64)).chain(of(100.0, 64)).collect();
            assert_eq!(cuts(&rising(three), 0.0), [64, 128], "{seed}");
        }
    }

    #[test]
    fn gaps_that_nobody_cares_for_part_nothing() {
        let sorted = [vec![1_000.0; 40], vec![1_004.0]].concat();
        assert_eq!(cuts(&sorted, 0.0), [40]);
        assert!(cuts(&sorted, 5.0).is_empty());
    }

    #[test]
    fn many_levels_are_none() {
        let stairs: Vec<f64> = (0..20).flat_map(|step| [f64::from(step); 10]).collect();
        assert!(cuts(&stairs, 0.0).is_empty());
        assert!(cuts(&[], 0.0).is_empty() && cuts(&[1.0, 2.0], 0.0).is_empty());
    }
}
