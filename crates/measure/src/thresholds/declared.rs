//! What MPI itself says of its limits, set beside what was found.

use serde::Serialize;

use super::{LimitVerdict, LocalityThresholds, Threshold, WaitsFor};
use lapscope_trace::Locality;

/// MPIs count their own headers as part of a message: up to so many bytes.
const HEADERS: u64 = 128;

/// Where a value was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredBy {
    /// A control variable of MPI's tools interface.
    ControlVariable,
    Environment,
}

/// A variable that concerns protocols or which transport is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Declared {
    pub name: String,
    pub value: String,
    pub by: DeclaredBy,
}

impl Declared {
    /// Whether it sets a limit or chooses a transport.
    pub fn concerns_sends(&self) -> bool {
        const LIMITS: [&str; 6] =
            ["eager", "rndv", "rendezvous", "sndbuf", "max_send_size", "inline_send"];
        const TRANSPORTS: [&str; 9] = [
            "btl",
            "pml",
            "mtl",
            "UCX_TLS",
            "FI_PROVIDER",
            "NETMOD",
            "FABRICS",
            "DEVICE",
            "UCX_NET_DEVICES",
        ];
        let name = self.name.trim_start_matches("OMPI_MCA_");
        let lower = name.to_ascii_lowercase();
        LIMITS.iter().any(|limit| lower.contains(limit))
            || TRANSPORTS
                .iter()
                .any(|transport| name == *transport || name.ends_with(&format!("_{transport}")))
    }
}

/// The variable that sets the limit of a locality.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Governing {
    pub name: String,
    pub value: String,
    pub by: DeclaredBy,
    /// `None`: no number.
    pub bytes: Option<u64>,
    /// Whether the limit that was found is that one, its headers of up to 128 bytes included; `None`: cannot be told.
    pub agrees: Option<bool>,
}

/// The name of the variable that sets the limit between ranks of that locality, if it is among those declared.
pub fn limit_variable(
    locality: Locality,
    library: &str,
    declared: &[Declared],
) -> Option<&'static str> {
    let names = candidates(locality, library, declared);
    names.into_iter().find(|name| lookup(declared, name).is_some())
}

/// The variable for `found`, if there is one among those declared.
pub(super) fn governing(
    found: &LocalityThresholds,
    library: &str,
    declared: &[Declared],
) -> Option<Governing> {
    let candidates = candidates(found.locality, library, declared);
    let variable = candidates.iter().find_map(|name| lookup(declared, name))?;
    let bytes = parse_bytes(&variable.value);
    Some(Governing {
        name: variable.name.trim_start_matches("OMPI_MCA_").to_owned(),
        value: variable.value.clone(),
        by: variable.by,
        bytes,
        agrees: bytes.and_then(|bytes| agrees(&found.rendezvous, found.waits_for, bytes)),
    })
}

fn lookup<'a>(declared: &'a [Declared], name: &str) -> Option<&'a Declared> {
    let is_it = |variable: &&Declared| variable.name.trim_start_matches("OMPI_MCA_") == name;
    let by_mpi = |variable: &&Declared| variable.by == DeclaredBy::ControlVariable;
    declared.iter().find(|it| is_it(it) && by_mpi(it)).or_else(|| declared.iter().find(is_it))
}

/// Names of variables, the most special first.
fn candidates(locality: Locality, library: &str, declared: &[Declared]) -> Vec<&'static str> {
    let value = |name: &str| lookup(declared, name).map_or("", |variable| variable.value.as_str());
    if library.starts_with("Open MPI") {
        if names(value("pml"), &["ucx"]) == Some(true) {
            return vec!["UCX_RNDV_THRESH"];
        }
        return match locality {
            Locality::SelfRank => vec!["btl_self_eager_limit"],
            Locality::Network => vec!["btl_tcp_eager_limit"],
            Locality::Node if is_shared_memory_off(value("btl")) => vec!["btl_tcp_eager_limit"],
            Locality::Node if is_open_mpi_5(library) => vec!["btl_sm_eager_limit"],
            Locality::Node => vec!["btl_vader_eager_limit"],
        };
    }
    match locality {
        Locality::Node => vec![
            "I_MPI_SHM_EAGER_THRESHOLD",
            "I_MPI_EAGER_THRESHOLD",
            "UCX_RNDV_THRESH",
            "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD",
        ],
        Locality::Network => {
            vec!["I_MPI_EAGER_THRESHOLD", "UCX_RNDV_THRESH", "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE"]
        }
        Locality::SelfRank => vec![],
    }
}

fn is_open_mpi_5(library: &str) -> bool {
    library.trim_start_matches("Open MPI v").starts_with('5')
}

/// Whether this list leaves shared memory out.
fn is_shared_memory_off(transports: &str) -> bool {
    names(transports, &["vader", "sm"]) == Some(false)
}

/// Whether a list of components, "tcp,self" or "^ucx", has any of these among those that may be used; `None`: an empty list or
/// one of others that may not be used says nothing.
fn names(list: &str, components: &[&str]) -> Option<bool> {
    let any = |list: &str| list.split(',').any(|name| components.contains(&name));
    match list.strip_prefix('^') {
        Some(excluded) => any(excluded).then_some(false),
        None => (!list.is_empty()).then(|| any(list)),
    }
}

/// "4096", "64k", "1M", "2KB".
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim().to_ascii_lowercase();
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

fn agrees(found: &Threshold, waits_for: WaitsFor, declared: u64) -> Option<bool> {
    let is_above_low = found.largest_eager_bytes.map_or(true, |low| low <= declared);
    let is_below_high =
        found.smallest_waiting_bytes.map_or(true, |high| high > declared.saturating_sub(HEADERS));
    match found.verdict {
        LimitVerdict::NoEvidence | LimitVerdict::Unclear => None,
        // then only the receiver's presence was waited for, perhaps
        _ if !is_below_high && waits_for == WaitsFor::Receiver => None,
        _ => Some(is_above_low && is_below_high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> Declared {
        Declared { name: name.into(), value: value.into(), by: DeclaredBy::Environment }
    }

    #[test]
    fn sizes_with_units() {
        let sizes = ["4096", " 8k", "1M", "2KB", "3KiB", "inf", "auto", ""].map(parse_bytes);
        let expected =
            [Some(4096), Some(8192), Some(1 << 20), Some(2048), Some(3072), None, None, None];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn variables_of_open_mpi() {
        let of =
            |locality, library, declared: &[Declared]| candidates(locality, library, declared)[0];
        let (v4, v5) = ("Open MPI v4.1.4, package: x", "Open MPI v5.0.8, package: x");
        assert_eq!(of(Locality::Node, v4, &[]), "btl_vader_eager_limit");
        assert_eq!(of(Locality::Node, v5, &[]), "btl_sm_eager_limit");
        let tcp = [variable("OMPI_MCA_btl", "tcp,self")];
        assert_eq!(of(Locality::Node, v4, &tcp), "btl_tcp_eager_limit");
        let shared = [variable("OMPI_MCA_btl", "vader,self")];
        assert_eq!(of(Locality::Node, v4, &shared), "btl_vader_eager_limit");
        let without = [variable("OMPI_MCA_btl", "^vader")];
        assert_eq!(of(Locality::Node, v4, &without), "btl_tcp_eager_limit");
        let ucx = [variable("OMPI_MCA_pml", "ucx")];
        assert_eq!(of(Locality::Network, v5, &ucx), "UCX_RNDV_THRESH");
        let not_ucx = [variable("pml", "^ucx")];
        assert_eq!(of(Locality::Network, v4, &not_ucx), "btl_tcp_eager_limit");
    }

    #[test]
    fn what_agrees() {
        let bracket = |low, high| Threshold {
            verdict: LimitVerdict::Bracket,
            largest_eager_bytes: Some(low),
            smallest_waiting_bytes: Some(high),
            eager: 1,
            waiting: 1,
            contradictions: 0,
            unsettled: 0,
            sentence: String::new(),
            next: None,
        };
        let check = |low, high| agrees(&bracket(low, high), WaitsFor::Receive, 4096);
        assert_eq!(check(3_000, 5_000), Some(true));
        // 4096 less a header
        assert_eq!(check(3_900, 4_040), Some(true));
        assert_eq!(check(3_000, 3_900), Some(false));
        assert_eq!(check(5_000, 6_000), Some(false));
        assert_eq!(agrees(&bracket(200, 300), WaitsFor::Receiver, 4096), None);
    }
}
