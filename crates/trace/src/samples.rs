//! Reads what files say of samples: at which instructions threads were found computing, and which sites had requests under
//! way meanwhile.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

use lapscope_data::db::{
    for_each_file, read_sample_posts, read_samplers, read_samples, Database, DbError,
    FileDefinitions,
};
use lapscope_data::model::{Rank, RankInfo, RankKey, SampledThread, Sampler};
use lapscope_data::places::{InstructionId, Places, PlacesOfFile, SiteId};

/// How often a thread was found at an instruction while the same was under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    pub rank: Rank,
    pub thread: SampledThread,
    pub instruction: InstructionId,
    /// Sites whose requests were under way, sorted.
    pub posts: Vec<SiteId>,
    pub count: u64,
}

/// What the files of a run say.
#[derive(Debug, Clone, Default)]
pub struct RunSamples {
    /// Ranks that were asked to take samples.
    pub samplers: Vec<(Rank, Sampler)>,
    pub samples: Vec<Sampled>,
}

impl RunSamples {
    fn with(mut self, file: RunSamples) -> RunSamples {
        self.samplers.extend(file.samplers);
        self.samples.extend(file.samples);
        self
    }
}

/// Reads the files in which one of these ranks, or of all, was asked to take samples; also why some could not be read.
pub fn read_files(
    databases: &[PathBuf],
    places: &Places,
    ranks: &[Rank],
) -> (RunSamples, Vec<DbError>) {
    let read = for_each_file(databases, |database, definitions| {
        let of_file = places.of_file(&database.path);
        read_file(database, of_file, &definitions, ranks).map_err(DbError::reading(&database.path))
    });
    let (files, failed) = match read {
        Ok(read) => (read.read, read.failed),
        Err(error) => (Vec::new(), vec![error]),
    };
    (files.into_iter().fold(RunSamples::default(), RunSamples::with), failed)
}

fn read_file(
    database: &Database,
    of_file: PlacesOfFile<'_>,
    definitions: &FileDefinitions,
    wanted: &[Rank],
) -> rusqlite::Result<RunSamples> {
    let is_wanted = |info: &&RankInfo| wanted.is_empty() || wanted.contains(&info.rank);
    let ranks: FxHashMap<RankKey, Rank> =
        definitions.ranks.iter().filter(is_wanted).map(|info| (info.key, info.rank)).collect();
    let mut posts: FxHashMap<i64, Vec<SiteId>> = FxHashMap::default();
    for post in read_sample_posts(database)? {
        posts
            .entry(post.sample_id)
            .or_default()
            .extend(of_file.site(post.call_id, post.call_path_id));
    }
    posts.values_mut().for_each(|sites| {
        sites.sort_unstable();
        sites.dedup();
    });
    let samplers = read_samplers(database)?.into_iter();
    let samplers = samplers.filter_map(|it| Some((*ranks.get(&it.rank)?, it))).collect();
    let sampled = |sample: &lapscope_data::model::SampleRow| {
        Some(Sampled {
            rank: *ranks.get(&sample.rank)?,
            thread: sample.thread,
            instruction: of_file.instruction(sample.instruction_id)?,
            posts: posts.get(&sample.id).cloned().unwrap_or_default(),
            count: sample.count,
        })
    };
    let samples = read_samples(database)?.iter().filter_map(sampled).collect();
    Ok(RunSamples { samplers, samples })
}
