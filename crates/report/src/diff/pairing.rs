//! Which call site of one run is which of another: the same call in the same function at the same line. Of those that are
//! left over, where a function has as many of a call in both runs, their order decides: lines move when a file is edited.

use std::collections::BTreeMap;

use lapscope_data::symbols::base_name;
use lapscope_measure::sites::{Site, SiteKind};

type SitesOfBoth<'a> = (Option<&'a Site>, Option<&'a Site>);

/// Every site of both once.
pub(super) fn pair<'a>(a: &'a [Site], b: &'a [Site]) -> Vec<SitesOfBoth<'a>> {
    let mut pairs = Vec::new();
    let (a, b) = join(group(a, exact_key), group(b, exact_key), false, &mut pairs);
    let (a, b) = join(group(a, rough_key), group(b, rough_key), true, &mut pairs);
    pairs.extend(a.into_iter().map(|site| (Some(site), None)));
    pairs.extend(b.into_iter().map(|site| (None, Some(site))));
    pairs
}

type SiteIdentity = (String, SiteKind, String, String, u64);
type Groups<'a> = BTreeMap<SiteIdentity, Vec<&'a Site>>;

fn group<'a>(
    sites: impl IntoIterator<Item = &'a Site>,
    key: impl Fn(&Site) -> SiteIdentity,
) -> Groups<'a> {
    let mut groups = Groups::new();
    for site in sites {
        groups.entry(key(site)).or_default().push(site);
    }
    groups
}

/// Call, function, file and line; without lines the distance from the begin of the function, or the address.
fn exact_key(site: &Site) -> SiteIdentity {
    let frame = site.site.as_ref();
    let at = frame.map_or(0, |frame| {
        let line = frame.line.map(u64::from);
        line.or(frame.offset).unwrap_or(frame.address)
    });
    let (call, kind, function, file, _) = rough_key(site);
    (call, kind, function, file, at)
}

/// Call, function and file; of files and modules only the name, as a tree may have been built elsewhere.
fn rough_key(site: &Site) -> SiteIdentity {
    let frame = site.site.as_ref();
    let function = frame.and_then(|frame| frame.function.clone()).unwrap_or_default();
    let file = frame.and_then(|frame| frame.file.as_deref().or(frame.module.as_deref()));
    (site.call.clone(), site.kind, function, base_name(file.unwrap_or("")).to_owned(), 0)
}

/// Pairs what groups of one key have in both runs; `whole`: only where they have as many. Returns what is left of each.
fn join<'a>(
    a: Groups<'a>,
    mut b: Groups<'a>,
    whole: bool,
    pairs: &mut Vec<SitesOfBoth<'a>>,
) -> (Vec<&'a Site>, Vec<&'a Site>) {
    let mut left = Vec::new();
    for (key, mut old) in a {
        let fits = |new: &Vec<&Site>| !whole || new.len() == old.len();
        if !b.get(&key).is_some_and(fits) {
            left.extend(old);
            continue;
        }
        let mut new = b.remove(&key).unwrap_or_default();
        let line = |site: &&Site| site.site.as_ref().map(|frame| (frame.line, frame.address));
        old.sort_by_key(line);
        new.sort_by_key(line);
        let both = old.len().min(new.len());
        left.extend(old.split_off(both));
        let more = new.split_off(both);
        pairs.extend(old.into_iter().zip(new).map(|(old, new)| (Some(old), Some(new))));
        if !more.is_empty() {
            b.insert(key, more);
        }
    }
    (left, b.into_values().flatten().collect())
}
