//! One cure, one sentence: what is found at several lines of a function, one for each direction of an exchange, say, is one
//! piece of advice.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::sums::Sums;
use super::Cure;
use lapscope_data::model::Frame;
use lapscope_data::places::{Places, SiteId, UnnamedSite};
use lapscope_data::symbols::NameFrames;

/// Findings that one sentence says.
#[derive(Debug)]
pub(super) struct Piece {
    pub cure: Cure,
    /// That with the most time.
    pub finding: Finding,
    pub sums: Sums,
    /// The first and the second sites of the findings, by their time.
    pub sites: [BTreeMap<SiteId, i64>; 2],
    most: i64,
}

/// The same call in the same function; without a name for that, at the same address.
type Region = (u32, Option<(Option<String>, String)>, Option<Frame>);

/// Puts together what has the same cure in the same functions.
pub(super) fn merge(
    judged: BTreeMap<(Cure, Finding), Sums>,
    places: &Places,
    names: &mut dyn NameFrames,
) -> Vec<Piece> {
    let mut pieces: BTreeMap<(Cure, [Option<Region>; 2]), Piece> = BTreeMap::new();
    for ((cure, finding), sums) in judged {
        let time = sums.time();
        let sites = finding.sites();
        let mut region = |site| match cure {
            // what is said of a line holds for that line
            Cure::WaitLater | Cure::PostEarlier => address(places.site(site)),
            _ => region(places.site(site), names),
        };
        let key = (cure, sites.map(|site| site.map(&mut region)));
        let piece = pieces.entry(key).or_insert_with(|| Piece {
            cure,
            finding,
            sums: Sums::default(),
            sites: Default::default(),
            most: i64::MIN,
        });
        if time > piece.most {
            (piece.finding, piece.most) = (finding, time);
        }
        for (all, site) in piece.sites.iter_mut().zip(sites) {
            if let Some(site) = site {
                *all.entry(site).or_default() += time;
            }
        }
        piece.sums.merge(sums);
    }
    pieces.into_values().collect()
}

fn address(&UnnamedSite { call, frame, .. }: &UnnamedSite) -> Region {
    (call, None, frame)
}

fn region(&UnnamedSite { call, frame, .. }: &UnnamedSite, names: &mut dyn NameFrames) -> Region {
    let name = frame.map(|frame| names.name(frame).swap_remove(0));
    let function = name
        .filter(|name| name.line.is_some())
        .and_then(|name| Some((name.module, name.function?)));
    let alone = frame.filter(|_| function.is_none());
    (call, function, alone)
}
