//! By which ways the program came to its call sites.

use std::collections::HashSet;

use lapscope_data::places::{Places, SiteId};
use lapscope_data::symbols::{name_path, FrameName, NameFrames};

/// Call paths to a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPaths {
    pub shown: Vec<CallPath>,
    /// Addresses of more of them.
    pub others: usize,
}

/// From the caller of MPI outwards, inlined functions included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPath {
    pub frames: Vec<FrameName>,
    /// It is longer than was recorded.
    pub truncated: bool,
}

/// The paths of each of `sites`, at most `most` of one; those with the same names are one.
pub fn call_paths(
    places: &Places,
    sites: &[SiteId],
    most: usize,
    names: &mut dyn NameFrames,
) -> Vec<CallPaths> {
    let all = places.paths_of_sites();
    let mut of_site = |site: &SiteId| {
        let begin = all.partition_point(|(other, _)| other < site);
        let end = all.partition_point(|(other, _)| other <= site);
        let mut known: HashSet<Vec<String>> = HashSet::new();
        let mut paths = CallPaths::default();
        for (place, (_, path)) in all[begin..end].iter().enumerate() {
            if paths.shown.len() == most {
                paths.others = end - begin - place;
                break;
            }
            let path = places.path(*path);
            let frames = name_path(&path.frames, names);
            if known.insert(frames.iter().map(FrameName::brief).collect()) {
                paths.shown.push(CallPath { frames, truncated: path.truncated });
            }
        }
        paths
    };
    sites.iter().map(&mut of_site).collect()
}
