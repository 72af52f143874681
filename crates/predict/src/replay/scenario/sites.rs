//! Call sites that scenarios name.

use std::fmt;
use std::str::FromStr;

use lapscope_data::text::shell::quote;
use serde::{Deserialize, Deserializer, Serialize};

/// Of an option that may be given more than once; in a file one text, or a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct SiteList(pub Vec<String>);

impl SiteList {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, or the others where there are none.
    pub fn or(&self, others: &SiteList) -> SiteList {
        if self.is_empty() { others } else { self }.clone()
    }

    /// As the values of an option, with its name between them.
    pub fn options(&self, name: &str) -> Option<String> {
        let quoted: Vec<String> = self.0.iter().map(quote).collect();
        (!quoted.is_empty()).then(|| quoted.join(&format!(" --{name} ")))
    }
}

impl<'de> Deserialize<'de> for SiteList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text or a list of texts")]
        enum Either {
            One(String),
            Several(Vec<String>),
        }
        Ok(SiteList(match Either::deserialize(deserializer)? {
            Either::One(site) => vec![site],
            Either::Several(sites) => sites,
        }))
    }
}

/// A call site, and each which time it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EveryTime {
    pub every: u64,
    pub site: String,
}

impl FromStr for EveryTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.trim().split_once(char::is_whitespace);
        let parsed =
            words.and_then(|(every, site)| Some((every.parse::<u64>().ok()?, site.trim())));
        match parsed.filter(|(every, site)| *every > 0 && !site.is_empty()) {
            Some((every, site)) => Ok(EveryTime { every, site: site.to_owned() }),
            None => Err("expected a number from 1 on and a call site, as 10 halo.c:139".to_owned()),
        }
    }
}

impl fmt::Display for EveryTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.every, quote(&self.site))
    }
}
