//! How long a program's steps take: from one post of a large request to the next at the same place. Compared between runs, where
//! nothing is injected, it shows what injection costs even then.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rustc_hash::FxHashMap;

use lapscope_data::db::{for_each_file, list_files, DbError, FileDefinitions};
use lapscope_data::model::RankKey;
use lapscope_data::places::{Places, PlacesOfFile};
use lapscope_trace::injected::distances::Distances;
use lapscope_trace::query::{self, PostSelection};

/// Between parts of the program, not between its steps: so many times as long as is usual at that place.
const OTHER_PART: i64 = 10;

/// Rank, MPI function, module, address.
type PostSite = (i64, String, String, u64);

/// Steps within slots, by place: how many, and the time that they took.
#[derive(Debug, Default)]
pub struct Pace(FxHashMap<PostSite, (u64, i64)>);

/// A post as it matters here: its timestamp on CLOCK_REALTIME, and whether injection was off.
type TimedPost = (i64, bool);

impl Pace {
    /// The pace of posts in the same slot of `slot_ns`: those of another are not known to have had nothing injected in between.
    ///
    /// # Errors
    /// No file can be read.
    pub fn of_run(directory: &Path, posts: PostSelection, slot_ns: i64) -> Result<Pace, DbError> {
        let files: Vec<PathBuf> = list_files(directory)?.databases;
        let (places, _) = Places::read(&files)?;
        let per_file = for_each_file(&files, |database, definitions| {
            let of_file = places.of_file(&database.path);
            let read = read_posts(&database.connection, of_file, &definitions, posts);
            read.map_err(DbError::reading(&database.path))
        })?;
        let mut pace = Pace::default();
        for (place, posts) in per_file.read.into_iter().flatten() {
            let sum = steps(posts, slot_ns);
            let of_place = pace.0.entry(place).or_default();
            *of_place = (of_place.0 + sum.0, of_place.1 + sum.1);
        }
        Ok(pace)
    }

    /// How much longer the same steps take here than there, as a fraction. `None`: there are none that both have.
    pub fn slowdown_against(&self, other: &Pace) -> Option<f64> {
        let (mut here, mut there) = (0.0, 0.0);
        for (place, &(steps, time)) in &self.0 {
            if let Some(&(other_steps, other_time)) = other.0.get(place) {
                if steps > 0 && other_steps > 0 {
                    here += time as f64;
                    there += other_time as f64 / other_steps as f64 * steps as f64;
                }
            }
        }
        (there > 0.0).then(|| here / there - 1.0)
    }
}

fn read_posts(
    connection: &Connection,
    of_file: PlacesOfFile<'_>,
    definitions: &FileDefinitions,
    posts: PostSelection,
) -> rusqlite::Result<FxHashMap<PostSite, Vec<TimedPost>>> {
    let ranks = definitions.ranks_by_key();
    let mut found: FxHashMap<(RankKey, i64, Option<i64>), Vec<TimedPost>> = FxHashMap::default();
    query::posts(connection, posts, |row| {
        let Some(info) = ranks.get(&row.rank) else { return };
        let post = (info.epoch_unix_ns + row.begin, row.is_off);
        found.entry((row.rank, row.call_id, row.call_path_id)).or_default().push(post);
    })?;
    let named = found.into_iter().filter_map(|((rank, call, path), posts)| {
        let places = of_file.places();
        let frame = places.path(of_file.path(path?)?).frames.first()?;
        let module = &places.modules[frame.module? as usize];
        let (rank, call) = (ranks.get(&rank)?.rank.number, &of_file.call(call)?.name);
        let place = (rank, call.clone(), module.base_name().to_owned(), frame.address);
        Some((place, posts))
    });
    let mut places: FxHashMap<PostSite, Vec<TimedPost>> = FxHashMap::default();
    named.for_each(|(place, posts)| places.entry(place).or_default().extend(posts));
    Ok(places)
}

/// Steps with nothing injected, and the time that they took.
fn steps(mut posts: Vec<TimedPost>, slot_ns: i64) -> (u64, i64) {
    posts.sort_unstable();
    let usual = Distances::between(posts.iter().map(|&(at, _)| at).collect()).usual();
    let usual = usual.unwrap_or_default().0;
    let mut sum = (0, 0);
    for pair in posts.windows(2) {
        let ((from, was_off), (to, is_off)) = (pair[0], pair[1]);
        let same_slot = from.div_euclid(slot_ns) == to.div_euclid(slot_ns);
        if same_slot && was_off && is_off && to - from <= usual.saturating_mul(OTHER_PART) {
            sum = (sum.0 + 1, sum.1 + to - from);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_within_slots_without_injection_count() {
        let off = |timestamps: &[i64]| timestamps.iter().map(|&at| (at, true)).collect();
        assert_eq!(steps(off(&[0, 10, 20, 30, 90, 100, 110]), 100), (5, 100));
        let mut parts: Vec<i64> = (0..101).map(|step| 10 * step).collect();
        parts.extend([1_500, 1_510]);
        assert_eq!(steps(off(&parts), 10_000), (101, 1_010), "what lies between parts is no step");
        assert_eq!(steps(vec![(0, true), (10, false), (20, true), (35, true)], 100), (1, 15));
        assert_eq!(steps(Vec::new(), 100), (0, 0));
    }

    #[test]
    fn other_shares_of_places_are_no_slowdown() {
        let place = |address| (0, "MPI_Isend".to_owned(), "app".to_owned(), address);
        let pace = |places: &[(u64, u64, i64)]| {
            let entry = |&(address, steps, time)| (place(address), (steps, time));
            Pace(places.iter().map(entry).collect())
        };
        let plain = pace(&[(1, 100, 1_000), (2, 10, 10_000), (3, 5, 5)]);
        let same = pace(&[(1, 10, 100), (2, 5, 5_000), (4, 7, 70)]);
        assert_eq!(same.slowdown_against(&plain), Some(0.0));
        let slower = pace(&[(1, 10, 110), (2, 5, 5_500)]);
        assert!((slower.slowdown_against(&plain).unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(pace(&[(9, 1, 1)]).slowdown_against(&plain), None);
    }
}
