//! Which lines of the table are worth a try in a run, and in which order.

use serde::{Deserialize, Serialize};

use super::first::{above, MpiOfRun};
use super::table::SettingLine;
use crate::tune::variable::Variable;

/// Less than this share of the run time at stake is nothing to gain.
const WORTH_TRYING: f64 = 0.005;
/// More are not tried.
const MOST: usize = 5;

/// A setting to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateSetting {
    pub variables: Vec<Variable>,
    /// What the causes that it can cure cost, as a share of the run time, mean over ranks.
    pub at_stake: f64,
    /// What a replay says that it gains, and the error of that; `None`: nothing replays it, or not near enough to the run.
    pub predicted: Option<f64>,
    pub prediction_error: Option<f64>,
    pub costs: Vec<String>,
    pub source: Vec<String>,
    /// Two that were tried by themselves.
    pub is_combination: bool,
}

/// A setting that is none here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotTried {
    pub variables: Vec<Variable>,
    pub reason: String,
}

impl CandidateSetting {
    /// What candidates are in the order of: the prediction, without one what is at stake.
    fn rank(&self) -> f64 {
        self.predicted.unwrap_or(self.at_stake)
    }

    pub fn combined(&self, other: &CandidateSetting) -> CandidateSetting {
        let both = |ours: &[String], theirs: &[String]| {
            let mut all = ours.to_vec();
            all.extend(theirs.iter().filter(|it| !ours.contains(it)).cloned());
            all
        };
        CandidateSetting {
            variables: [self.variables.as_slice(), &other.variables].concat(),
            at_stake: self.at_stake.max(other.at_stake),
            predicted: None,
            prediction_error: None,
            costs: both(&self.costs, &other.costs),
            source: both(&self.source, &other.source),
            is_combination: true,
        }
    }

    /// Its names, without values: candidates that have the same set the same thing.
    pub fn names(&self) -> Vec<&str> {
        self.variables.iter().map(|variable| variable.name.as_str()).collect()
    }
}

/// What to try of these lines, the best first, and what not to. `own`: whether the user's own environment has a variable.
pub fn candidates(
    lines: &[SettingLine],
    run: &MpiOfRun,
    own: impl Fn(&str) -> bool,
) -> (Vec<CandidateSetting>, Vec<NotTried>) {
    let (mut found, mut not_tried) = (Vec::new(), Vec::new());
    for line in lines.iter().filter(|line| is_for(line, run)) {
        let share = run.share(|cause| line.cures(cause));
        if share < WORTH_TRYING {
            continue;
        }
        let limit = above(run.largest(|cause| line.cures(cause)));
        for assignment in line.assignments(limit) {
            let variables: Vec<Variable> =
                assignment.into_iter().map(|(name, value)| Variable { name, value }).collect();
            match obstacle(line, &variables, run, &own) {
                Some(reason) => not_tried.push(NotTried { variables, reason }),
                None => found.push(candidate(line, variables, run, share)),
            }
        }
    }
    found.sort_by(|a: &CandidateSetting, b| b.rank().total_cmp(&a.rank()));
    for left in found.split_off(found.len().min(MOST)) {
        let reason = format!("{MOST} others promise more");
        not_tried.push(NotTried { variables: left.variables, reason });
    }
    (found, not_tried)
}

/// What the user has asked to try, in that order.
pub fn asked_for(variables: &[Variable], run: &MpiOfRun) -> Vec<CandidateSetting> {
    let one = |variable: &Variable| CandidateSetting {
        variables: vec![variable.clone()],
        at_stake: run.share(|_| true),
        predicted: None,
        prediction_error: None,
        costs: Vec::new(),
        source: vec!["--setting".to_owned()],
        is_combination: false,
    };
    variables.iter().map(one).collect()
}

fn candidate(
    line: &SettingLine,
    variables: Vec<Variable>,
    run: &MpiOfRun,
    at_stake: f64,
) -> CandidateSetting {
    let predicted = run.replayed.of(line.replay, line.polls);
    CandidateSetting {
        variables,
        at_stake,
        predicted,
        prediction_error: predicted.map(|_| run.replayed.error),
        costs: vec![line.costs.clone()],
        source: vec![line.source.clone()],
        is_combination: false,
    }
}

/// Whether a line is of this MPI and of the way that its messages go.
fn is_for(line: &SettingLine, run: &MpiOfRun) -> bool {
    let major = run.identity.version.split('.').next().and_then(|major| major.parse().ok());
    let [first, last] = line.versions;
    let is_version = major.is_some_and(|major: u32| (first..=last).contains(&major));
    let is_part = |name: &String| name.to_ascii_lowercase().split('_').any(|it| it == line.over);
    let is_over = line.over.is_empty() || run.governing.iter().any(is_part);
    let is_device = device(run).any(|part| part == line.device);
    line.mpi == run.identity.family.name()
        && is_version
        && is_over
        && (line.device.is_empty() || is_device)
}

/// Of an MPICH: its device, and the module for networks that is in use of those that it has.
fn device(run: &MpiOfRun) -> impl Iterator<Item = &str> {
    const CHOICE: &str = "MPIR_CVAR_CH4_NETMOD";
    let all = run.identity.device.as_deref().unwrap_or_default();
    let (device, modules) = all.split_once(':').unwrap_or((all, ""));
    let chosen = run.set(CHOICE).or(run.known(CHOICE)).filter(|chosen| !chosen.is_empty());
    let module = chosen.or_else(|| modules.split([' ', ',']).next());
    [device].into_iter().chain(module)
}

/// Why it is not tried; `None`: it is.
fn obstacle(
    line: &SettingLine,
    variables: &[Variable],
    run: &MpiOfRun,
    own: &impl Fn(&str) -> bool,
) -> Option<String> {
    let now = |variable: &&Variable| {
        let set = run.set(&variable.name);
        // what the first variable sets is the control variable, which the library tells
        let is_first = variable.name == variables[0].name;
        let known = run.known(&line.control).filter(|_| is_first && set.is_none());
        set.or(known) == Some(&variable.value)
    };
    if !line.by.is_empty() {
        return Some(format!("only {} may", line.by));
    }
    if !line.control.is_empty() && run.known(&line.control).is_none() {
        let name = run.identity.title();
        let control = line.control.trim_end_matches("_major_version"); // of a component
        return Some(match run.was_asked {
            true => format!("this build of {name} has no {control}"),
            false => format!("{name} could not be asked whether it has {control}"),
        });
    }
    if variables.iter().filter(now).count() == variables.len() {
        return Some("so it is already".to_owned());
    }
    let chosen = line.unless.iter().find_map(|name| Some((name, run.set(name)?)));
    if let Some((name, value)) = chosen {
        return Some(format!("the launch has chosen already: {name}={value}"));
    }
    let by_launch = variables.iter().find(|it| run.set(&it.name).is_some() && !own(&it.name));
    by_launch.map(|variable| format!("the launch line sets {} itself", variable.name))
}

#[cfg(test)]
mod tests {
    use super::super::first::{ReplayedSettings, Stake};
    use super::super::table;
    use super::*;
    use crate::doctor::ask::LibraryAccount;
    use crate::doctor::family::identify;
    use lapscope_advise::advice::AdviceCause;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// A run over TCP in which messages of 4 MiB stand still.
    fn run(version: &str, known: &[(&str, &str)], environment: &[(&str, &str)]) -> MpiOfRun {
        let version = Some(version.to_owned());
        let account = LibraryAccount { version, ..LibraryAccount::default() };
        let pairs = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        MpiOfRun {
            identity: identify(&account, Path::new("")),
            known: pairs(known),
            was_asked: true,
            environment: pairs(environment),
            governing: vec!["btl_tcp_eager_limit".to_owned()],
            stakes: vec![Stake {
                cause: AdviceCause::NoLocalProgress,
                share: 0.3,
                largest_bytes: 4 << 20,
            }],
            replayed: ReplayedSettings {
                progress: Some(0.2),
                polled: Some(-0.4),
                eager: Some(0.25),
                error: 0.01,
            },
        }
    }

    const OPEN_MPI: &str = "Open MPI v4.1.4, package: Debian OpenMPI";
    const TCP: [(&str, &str); 2] =
        [("btl_tcp_progress_thread", "0"), ("btl_tcp_eager_limit", "65536")];

    fn named(found: &[CandidateSetting]) -> Vec<String> {
        found
            .iter()
            .map(|it| format!("{}={}", it.variables[0].name, it.variables[0].value))
            .collect()
    }

    fn of(run: &MpiOfRun) -> (Vec<String>, Vec<String>) {
        let (found, not_tried) = candidates(&table::lines(), run, |_| false);
        (named(&found), not_tried.into_iter().map(|it| it.reason).collect())
    }

    #[test]
    fn what_a_replay_promises_most_comes_first_and_other_transports_do_not_come() {
        let (found, not_tried) = of(&run(OPEN_MPI, &TCP, &[]));
        let limit = above(4 << 20);
        assert_eq!(
            found,
            [
                format!("OMPI_MCA_btl_tcp_eager_limit={limit}"),
                "OMPI_MCA_btl_tcp_progress_thread=1".to_owned()
            ]
        );
        assert_eq!(not_tried, ["this build of Open MPI 4.1.4 has no pml_ucx"]);
    }

    #[test]
    fn what_the_library_does_not_know_or_is_set_so_is_not_tried() {
        let set = [("btl_tcp_progress_thread", "1"), ("pml_ucx_major_version", "")];
        let chosen = [("OMPI_MCA_btl", "tcp,self")];
        let (found, not_tried) = of(&run(OPEN_MPI, &set, &chosen));
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(
            not_tried,
            [
                "so it is already",
                "this build of Open MPI 4.1.4 has no btl_tcp_eager_limit",
                "the launch has chosen already: OMPI_MCA_btl=tcp,self"
            ]
        );
        let by_line = [("OMPI_MCA_btl_tcp_progress_thread", "0")];
        let (_, not_tried) = of(&run(OPEN_MPI, &TCP, &by_line));
        assert!(not_tried.iter().any(|it| it.contains("the launch line sets")), "{not_tried:?}");
    }

    #[test]
    fn versions_and_devices_are_told_apart() {
        let known = [
            ("MPIR_CVAR_ASYNC_PROGRESS", "0"),
            ("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "131072"),
            ("MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD", "-1"),
        ];
        let of_version = |version: &str, device: &str| {
            of(&run(&format!("MPICH Version: {version}\nMPICH Device: {device}"), &known, &[])).0
        };
        let limit = above(4 << 20);
        let ofi = format!("MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD={limit}");
        let ch3 = format!("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE={limit}");
        let thread = "MPIR_CVAR_ASYNC_PROGRESS=1".to_owned();
        assert_eq!(of_version("5.0.2", "ch4:ofi"), [ofi, thread.clone()]);
        assert_eq!(of_version("3.4.3", "ch3:nemesis"), [ch3, thread.clone()]);
        let ucx = of_version("4.0.2", "ch4:ucx");
        assert!(ucx.iter().filter(|it| it.starts_with("UCX_")).count() == 3, "{ucx:?}");
        let first_of_two = of_version("5.0.2", "ch4:ucx ofi");
        assert!(first_of_two.iter().all(|it| !it.contains("OFI")), "{first_of_two:?}");
        assert_eq!(ucx.last(), Some(&thread), "threads that poll are predicted to lose: {ucx:?}");
    }

    #[test]
    fn without_a_prediction_the_time_at_stake_ranks() {
        let mut run = run(OPEN_MPI, &TCP, &[]);
        run.replayed = ReplayedSettings { eager: Some(0.1), ..ReplayedSettings::default() };
        assert_eq!(of(&run).0[0], "OMPI_MCA_btl_tcp_progress_thread=1");
        run.stakes[0].share = 0.001;
        assert_eq!(of(&run), (Vec::new(), Vec::new()));
    }
}
