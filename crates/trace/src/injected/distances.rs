//! How long the steps of a program are.

use lapscope_data::model::Nanos;

/// A distance that comes as often may be a step; one that comes less often may be a pause between parts of the program, or of
/// the machine, however long it is.
const OFTEN: i64 = 16;

/// Times from one post of a place to its next, by octave: how many, and their sum.
#[derive(Debug, Clone)]
pub struct Distances([(i64, i64); 64]);

impl Default for Distances {
    fn default() -> Self {
        Distances([(0, 0); 64])
    }
}

impl Distances {
    /// Distances between all posts of a place.
    pub fn between(mut posts: Vec<i64>) -> Distances {
        let mut distances = Distances::default();
        posts.sort_unstable();
        posts.windows(2).for_each(|pair| distances.add(pair[1] - pair[0]));
        distances
    }

    pub fn add(&mut self, distance: i64) {
        if distance > 0 {
            let (count, time) = &mut self.0[distance.ilog2() as usize];
            *count += 1;
            *time = time.saturating_add(distance);
        }
    }

    /// Adds those of another rank.
    pub fn merge(&mut self, other: &Distances) {
        for ((count, time), (other_count, other_time)) in self.0.iter_mut().zip(&other.0) {
            *count += other_count;
            *time = time.saturating_add(*other_time);
        }
    }

    /// The mean of those within an octave that make up most of the time, where they come often enough. Posts in a burst are
    /// many and short, and a step is what lies between bursts.
    pub fn usual(&self) -> Option<Nanos> {
        let weight = |&(count, time): &(i64, i64)| time as f64 * count.min(OFTEN) as f64;
        let most = self.0.iter().max_by(|a, b| weight(a).total_cmp(&weight(b)));
        most.filter(|(count, _)| *count > 0).map(|(count, time)| Nanos(time / count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_neither_a_burst_nor_a_pause() {
        let bursts =
            (0..10).flat_map(|step| (0..60).map(move |post| step * 1_000_000 + post * 100));
        assert_eq!(Distances::between(bursts.collect()).usual(), Some(Nanos(1_000_000 - 5_900)));
        let paused = (0..30).map(|step| step * 100 + i64::from(step > 20) * 20_000);
        assert_eq!(Distances::between(paused.collect()).usual(), Some(Nanos(100)));
        assert_eq!(Distances::between(vec![5]).usual(), None);
        assert_eq!(Distances::default().usual(), None);
    }

    #[test]
    fn ranks_are_added_up() {
        let mut both = Distances::between(vec![0, 100, 200]);
        both.merge(&Distances::between(vec![0, 120, 5_000, 5_120]));
        assert_eq!(
            both.usual(),
            Some(Nanos(4_880)),
            "it comes once, but so does nothing else often"
        );
        both.merge(&Distances::between((0..40).map(|step| step * 110).collect()));
        assert_eq!(both.usual(), Some(Nanos((200 + 240 + 39 * 110) / 43)));
    }
}
