//! Call sites of a run, from what each file calls them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::arms::Arms;
use super::read::{FileInjection, FileSite};
use crate::combine::same_places;
use crate::combine::Grouping;
use lapscope_data::model::{site_frame, CallPath, Frame, Module};
use lapscope_data::places::{unknown_call, Paths};
use lapscope_data::symbols::{FrameName, NameFrames};

/// A return address in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PostAddress {
    /// Path of the executable or library.
    pub module: String,
    /// Hexadecimal; empty when the file had none.
    pub build_id: String,
    /// Return address of the call in the module's own numbering.
    pub address: u64,
}

/// Where requests are posted, as a rule of a policy file names it: the call's own address and, where only functions lie
/// there that pass on to MPI, those that follow in the call path up to the caller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PostPath {
    #[serde(flatten)]
    pub call: PostAddress,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<PostAddress>,
}

/// Index of a file, and a site by the file's own ids.
pub type FilePlace = (usize, FileSite);

/// Where posts are, in numbers of the run.
pub struct Places {
    posts: HashMap<FilePlace, Post>,
    pub modules: Vec<Module>,
    pub paths: Vec<CallPath>,
}

struct Post {
    call: String,
    path: Option<usize>,
}

/// Call sites, and which of them a place in a file is.
pub struct Sites {
    pub named: Vec<NamedSite>,
    pub of_file: HashMap<FilePlace, usize>,
}

#[derive(Debug, Clone)]
pub struct NamedSite {
    pub call: String,
    pub site: Option<FrameName>,
    pub addresses: Vec<PostPath>,
}

impl Places {
    pub fn new(files: &[FileInjection]) -> Places {
        let mut posts = HashMap::new();
        let mut paths = Paths::default();
        for (at, file) in files.iter().enumerate() {
            let posted = file.arms.iter().flat_map(Arms::sites);
            for &(call, path) in file.rows.iter().map(|row| &row.site).chain(posted) {
                posts.entry((at, (call, path))).or_insert_with(|| {
                    let known = file.definitions.calls.get(&call).cloned();
                    let call = known.unwrap_or_else(|| unknown_call(call)).name;
                    let path = path.and_then(|path| paths.intern(&file.definitions, path));
                    Post { call, path }
                });
            }
        }
        let (modules, paths) = paths.into_parts();
        Places { posts, modules, paths }
    }

    fn frame(&self, post: &Post) -> Option<Frame> {
        site_frame(&self.paths[post.path?], &self.modules)
    }

    /// Of a wrapper's caller the whole way there: the wrapper's own address is that of all its callers.
    fn path(&self, post: &Post) -> Option<PostPath> {
        let path = &self.paths[post.path?];
        let is_caller = |frame: &Frame| {
            path.caller.is_some_and(|it| (it.module, it.address) == (frame.module, frame.address))
        };
        let last = path.frames.iter().position(is_caller).unwrap_or(0);
        let (call, callers) = path.frames.get(..=last)?.split_first()?;
        let callers = callers.iter().map(|frame| self.address(frame));
        Some(PostPath { call: self.address(call)?, callers: callers.collect::<Option<_>>()? })
    }

    fn address(&self, frame: &Frame) -> Option<PostAddress> {
        let module = &self.modules[frame.module? as usize];
        let (path, build_id) = (module.path.clone(), module.build_id.clone());
        Some(PostAddress { module: path, build_id, address: frame.address })
    }

    /// Addresses of one line are one site.
    pub fn sites(&self, names: &mut dyn NameFrames) -> Sites {
        let frames: BTreeSet<Frame> =
            self.posts.values().filter_map(|post| self.frame(post)).collect();
        let same = same_places(frames, Grouping::Frame, names);
        let mut grouped: BTreeMap<(&str, Option<Frame>), Vec<FilePlace>> = BTreeMap::new();
        for (&place, post) in &self.posts {
            let frame = self.frame(post).map(|frame| same[&frame]);
            grouped.entry((&post.call, frame)).or_default().push(place);
        }
        let mut sites = Sites { named: Vec::new(), of_file: HashMap::new() };
        for ((call, frame), places) in grouped {
            let site = frame.and_then(|frame| names.name(frame).into_iter().next());
            let addresses: BTreeSet<PostPath> =
                places.iter().filter_map(|place| self.path(&self.posts[place])).collect();
            sites.of_file.extend(places.into_iter().map(|place| (place, sites.named.len())));
            let addresses = addresses.into_iter().collect();
            sites.named.push(NamedSite { call: call.to_owned(), site, addresses });
        }
        sites
    }
}
