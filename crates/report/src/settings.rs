//! With which settings a run ran: lapscope's options, the environment and control variables of its ranks, each value once with
//! the ranks that had it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lapscope_data::db::{for_each_file, settings_of_all};
use lapscope_data::model::Rank;

/// Files that are asked: more would take longer than they tell.
const MOST_FILES: usize = 64;

/// Settings of a run. Each list is in the order of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Those that were set, and what else the recorder noted.
    pub options: Vec<Setting>,
    pub environment: Vec<Setting>,
    pub control_variables: Vec<Setting>,
    /// Ranks that were asked.
    pub ranks: usize,
    /// Files that were asked, of how many.
    pub files: (usize, usize),
}

/// A name and the values that ranks had for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub values: Vec<(String, Vec<Rank>)>,
}

type RanksByValue = BTreeMap<String, BTreeMap<String, Vec<Rank>>>;

impl Settings {
    /// Reads all files of a run, or some where there are very many. What cannot be read is left out: others have said so.
    pub fn of_run(databases: &[PathBuf]) -> Settings {
        let step = databases.len().div_ceil(MOST_FILES).max(1);
        let asked: Vec<PathBuf> = databases.iter().step_by(step).cloned().collect();
        let read = for_each_file(&asked, |database, definitions| {
            Ok((definitions.ranks.len(), settings_of_all(database)))
        });
        let mut settings =
            Settings { files: (asked.len(), databases.len()), ..Settings::default() };
        let mut found = [RanksByValue::new(), RanksByValue::new(), RanksByValue::new()];
        for (ranks, rows) in read.map(|read| read.read).unwrap_or_default() {
            settings.ranks += ranks;
            for (found, rows) in found.iter_mut().zip(rows) {
                for (name, value, rank) in rows {
                    found.entry(name).or_default().entry(value).or_default().push(rank);
                }
            }
        }
        [settings.options, settings.environment, settings.control_variables] = found.map(listed);
        settings
    }
}

fn listed(found: RanksByValue) -> Vec<Setting> {
    let setting = |(name, values): (String, BTreeMap<String, Vec<Rank>>)| {
        let mut values: Vec<(String, Vec<Rank>)> = values.into_iter().collect();
        values.iter_mut().for_each(|(_, ranks)| ranks.sort_unstable());
        values.sort_by_key(|(_, ranks)| std::cmp::Reverse(ranks.len()));
        Setting { name, values }
    };
    found.into_iter().map(setting).collect()
}
