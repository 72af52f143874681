//! Where requests are posted, as a policy file names it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use lapscope_data::model::{innermost_own, Frame, Module};
use lapscope_data::places::{CallPathId, Places, SiteId};
use lapscope_trace::injected::arms::Arms;
use lapscope_trace::injected::FileInjection;

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

/// The addresses of each site of these files.
pub fn post_addresses(
    files: &[FileInjection],
    places: &Places,
) -> BTreeMap<SiteId, BTreeSet<PostPath>> {
    let mut addresses: BTreeMap<SiteId, BTreeSet<PostPath>> = BTreeMap::new();
    for file in files {
        let posted = file.arms.iter().flat_map(Arms::sites);
        for &(site, path) in file.rows.iter().map(|row| &row.at).chain(posted) {
            let path = path.and_then(|path| post_path(places, path));
            addresses.entry(site).or_default().extend(path);
        }
    }
    addresses
}

/// Of a wrapper's caller, and of a line of Python, the whole way there: the address of the call is that of all of them.
fn post_path(places: &Places, path: CallPathId) -> Option<PostPath> {
    let path = places.path(path);
    let is_caller = |frame: &Frame| {
        path.caller.is_some_and(|it| (it.module, it.address) == (frame.module, frame.address))
    };
    let is_line = |&at: &usize| {
        let module = path.frames[at].module.map(|module| &places.modules[module as usize]);
        module.and_then(Module::python_function).is_some()
    };
    let line = || innermost_own(path, &places.modules).filter(is_line);
    let last = path.frames.iter().position(is_caller).or_else(line).unwrap_or(0);
    let (call, callers) = path.frames.get(..=last)?.split_first()?;
    let callers = callers.iter().map(|frame| post_address(places, frame));
    Some(PostPath { call: post_address(places, call)?, callers: callers.collect::<Option<_>>()? })
}

fn post_address(places: &Places, frame: &Frame) -> Option<PostAddress> {
    let module = &places.modules[frame.module? as usize];
    let (path, build_id) = (module.path.clone(), module.build_id.clone());
    Some(PostAddress { module: path, build_id, address: frame.address })
}
