//! The table of settings: `settings.toml`.

use serde::Deserialize;

use lapscope_advise::advice::AdviceCause;

/// What a replay can take the place of a setting by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replayable {
    /// Messages move as soon as they can.
    Progress,
    /// The largest message that needs no receive.
    #[serde(rename = "eager")]
    EagerLimit,
    #[default]
    #[serde(skip)]
    Nothing,
}

/// A line of the table; what its members mean is said there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingLine {
    pub mpi: String,
    pub versions: [u32; 2],
    pub control: String,
    pub set: Vec<String>,
    cures: Vec<AdviceCause>,
    #[serde(default)]
    pub replay: Replayable,
    #[serde(default)]
    pub over: String,
    #[serde(default)]
    pub device: String,
    /// Variables by which the launch has chosen already.
    #[serde(default)]
    pub unless: Vec<String>,
    #[serde(default)]
    pub polls: bool,
    #[serde(default)]
    pub by: String,
    pub costs: String,
    pub source: String,
}

impl SettingLine {
    pub fn cures(&self, cause: AdviceCause) -> bool {
        self.cures.contains(&cause)
    }

    /// Of every assignment: variables and values, with `{above}` filled in.
    pub fn assignments(&self, above: u64) -> Vec<Vec<(String, String)>> {
        let filled = self.set.iter().map(|text| text.replace("{above}", &above.to_string()));
        filled.map(|text| parse(&text)).collect()
    }
}

fn parse(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(' ').filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    setting: Vec<SettingLine>,
}

/// All lines.
///
/// # Panics
/// Where the file, which is part of the program, is none; a test reads it.
pub fn lines() -> Vec<SettingLine> {
    let file: SettingsFile = toml::from_str(include_str!("settings.toml")).expect("settings.toml");
    file.setting
}

/// Control variables that a library is to be asked for.
pub fn controls() -> impl Iterator<Item = String> {
    lines().into_iter().map(|line| line.control).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSES: [AdviceCause; 6] = [
        AdviceCause::LatePartner,
        AdviceCause::NoRemoteProgress,
        AdviceCause::NoLocalProgress,
        AdviceCause::Transfer,
        AdviceCause::NoProcessor,
        AdviceCause::Posting,
    ];

    #[test]
    fn every_line_can_be_tried_for_a_cause_and_says_its_cost_and_source() {
        for line in lines() {
            let causes = CAUSES.into_iter().filter(|cause| line.cures(*cause)).count();
            assert!(causes > 0 && causes == line.cures.len(), "{line:?}");
            assert!(line.versions[0] <= line.versions[1], "{line:?}");
            assert!(!line.costs.is_empty() && !line.source.is_empty(), "{line:?}");
            for assignment in line.assignments(5_000_000) {
                assert!(!assignment.is_empty(), "{line:?}");
                let is_filled = |(_, value): &(String, String)| !value.contains('{');
                assert!(assignment.iter().all(is_filled), "{line:?}");
            }
        }
    }
}
