//! Call sites of collectives, by what the user calls them: a function, a line, a call, or several of these.

use std::collections::{BTreeMap, HashMap};

use anyhow::{bail, Result};
use rustc_hash::FxHashSet;
use strsim::levenshtein;

use lapscope_data::places::SiteId;
use lapscope_data::symbols::{FrameName, NameFrames};
use lapscope_predict::replay::scenario::Scenario;
use lapscope_predict::replay::thinned::is_blocking_collective;
use lapscope_trace::Trace;

/// Names in an error.
const MOST: usize = 3;

/// The sites that scenarios name.
///
/// # Errors
/// One of them names no collective of the run; the nearest are named.
pub fn find_collective_sites<'a>(
    trace: &Trace,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    names: &mut dyn NameFrames,
) -> Result<HashMap<String, FxHashSet<SiteId>>> {
    let mut asked: BTreeMap<&str, &str> = BTreeMap::new();
    for scenario in scenarios {
        asked.extend(scenario.without.0.iter().map(|site| (site.as_str(), "--without")));
        asked.extend(scenario.every.as_ref().map(|every| (every.site.as_str(), "--every")));
    }
    if asked.is_empty() {
        return Ok(HashMap::new());
    }
    let mut collectives: FxHashSet<SiteId> = FxHashSet::default();
    for rank in &trace.ranks {
        let blocking = rank.operations.iter().filter(|it| is_blocking_collective(it));
        collectives.extend(blocking.map(|operation| operation.site));
    }
    let mut all: Vec<NamedCall> =
        trace.places.site_ids().map(|id| NamedCall::new(trace, id, names)).collect();
    all.sort_by(|a, b| a.label.cmp(&b.label));
    let mut found = HashMap::new();
    for (site, option) in asked {
        let named = all.iter().filter(|call| call.is(site));
        let meant: FxHashSet<SiteId> =
            named.clone().map(|call| call.id).filter(|id| collectives.contains(id)).collect();
        if meant.is_empty() {
            let what = match named.clone().next() {
                Some(other) => format!("{} is no blocking collective", other.label),
                None => "this run has no such call site".to_owned(),
            };
            let known = all.iter().filter(|call| collectives.contains(&call.id));
            bail!("{option} {site}: {what}{}", nearest(site, known));
        }
        found.insert(site.to_owned(), meant);
    }
    Ok(found)
}

/// "; the nearest are MPI_Barrier main x.c:7, MPI_Allreduce main x.c:9"
fn nearest<'a>(site: &str, known: impl Iterator<Item = &'a NamedCall>) -> String {
    let far = |call: &NamedCall| call.words.iter().map(|word| levenshtein(site, word)).min();
    let mut known: Vec<&NamedCall> = known.collect();
    known.sort_by_key(|call| far(call));
    let labels: Vec<&str> = known.iter().take(MOST).map(|call| call.label.as_str()).collect();
    match labels.as_slice() {
        [] => "; it has no blocking collective".to_owned(),
        [one] => format!("; the only one is {one}"),
        several => format!("; the nearest are {}", several.join(", ")),
    }
}

/// A call site with its name.
struct NamedCall {
    id: SiteId,
    label: String,
    /// By each of which it may be called.
    words: Vec<String>,
}

impl NamedCall {
    fn new(trace: &Trace, id: SiteId, names: &mut dyn NameFrames) -> NamedCall {
        let call = trace.places.call(id).name.clone();
        let frame = trace.places.site(id).frame;
        let frame = frame.and_then(|frame| names.name(frame).into_iter().next());
        let label = match &frame {
            Some(frame) => format!("{call} {}", frame.short()),
            None => call.clone(),
        };
        let mut words: Vec<String> = label.split_whitespace().map(str::to_owned).collect();
        words.extend(frame.as_ref().and_then(file_and_line));
        NamedCall { id, label, words }
    }

    /// Whether all that is said holds of it.
    fn is(&self, said: &str) -> bool {
        let mut said = said.split_whitespace().peekable();
        said.peek().is_some() && said.all(|word| self.words.iter().any(|own| own == word))
    }
}

/// The line with the whole path of its file.
fn file_and_line(frame: &FrameName) -> Option<String> {
    Some(format!("{}:{}", frame.file.as_ref()?, frame.line?))
}
