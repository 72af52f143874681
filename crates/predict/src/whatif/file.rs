//! Scenario files: TOML, a table `[[scenario]]` for each scenario, with the names of the options of `lapscope whatif`.

use serde::Deserialize;

use crate::replay::scenario::Scenario;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    scenario: Vec<Scenario>,
}

const WAY_OUT: &str = "a scenario begins with the line [[scenario]]; its keys are the options of `lapscope whatif`, as \
                       bandwidth = \"x2\"";

/// Reads the scenarios of `text`. `name`: of the file, for what is said of it.
///
/// # Errors
/// Says the file, the line, the key and what is expected there.
pub fn parse(name: &str, text: &str) -> Result<Vec<Scenario>, String> {
    let told = |error: toml::de::Error| format!("{name}{}", said(text, &error));
    let table: toml::Table = text.parse().map_err(told)?;
    let is_array = |value: &toml::Value| value.is_array();
    if !table.is_empty() && !table.get("scenario").map_or(true, is_array) {
        return Err(format!("{name}: scenario: {WAY_OUT}"));
    }
    let File { scenario } = toml::from_str(text).map_err(told)?;
    match scenario.is_empty() {
        true => Err(format!("{name}: no scenario in it; {WAY_OUT}")),
        false => Ok(scenario),
    }
}

/// ":7: latency: `fast`: expected a time, as 2us"
fn said(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', "; ");
    let is_unknown = message.starts_with("unknown field");
    let way_out = if is_unknown { format!("; {WAY_OUT}") } else { String::new() };
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return format!(": {message}{way_out}");
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| key.trim());
    let key = key.filter(|key| !key.is_empty() && !is_unknown);
    let key = key.map(|key| format!(" {key}:")).unwrap_or_default();
    format!(":{}:{key} {message}{way_out}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::scenario::{Bandwidth, Progress, Protocol, Size};

    #[test]
    fn every_knob_has_a_key() {
        let text = r#"
            [[scenario]]
            name = "new network"
            bandwidth = "100Gbit/s"
            eager-limit = 0
            protocol = "rendezvous-read"
            progress = "every=1ms"
            cpu = 2
            balance = true
            [[scenario]]
            latency = "x0.5"
            contention = "node"
            on = "all"
            wait = "at-first-touch"
            post = "at-last-write"
            nonblocking-collectives = true
        "#;
        let scenarios = parse("f", text).unwrap();
        let first = Scenario {
            name: Some("new network".to_owned()),
            bandwidth: Some(Bandwidth::BytesPerSecond(12.5e9)),
            eager_limit: Some(Size(0)),
            protocol: Some(Protocol::RendezvousRead),
            progress: Some(Progress::Every(1e6)),
            cpu: Some(2.0),
            balance: true,
            ..Scenario::default()
        };
        assert_eq!(scenarios[0], first);
        let second =
            "--latency x0.5 --contention node --on all --wait at-first-touch --post at-last-write \
                      --nonblocking-collectives";
        assert_eq!((scenarios.len(), scenarios[1].options().as_str()), (2, second));
    }

    #[test]
    fn one_call_site_is_left_out_or_several() {
        let options = |text: &str| parse("f", text).unwrap()[0].options();
        assert_eq!(options("[[scenario]]\nwithout = 'turn'\n"), "--without turn");
        let both = "--without turn --without 'MPI_Barrier a.c:7'";
        assert_eq!(options("[[scenario]]\nwithout = ['turn', 'MPI_Barrier a.c:7']\n"), both);
    }

    #[test]
    fn errors_have_a_line_a_key_and_a_way_out() {
        let error = |text: &str| parse("a.toml", text).unwrap_err();
        let fast = error("[[scenario]]\nname = \"x\"\nlatency = \"fast\"\n");
        assert!(fast.starts_with("a.toml:3: latency: `fast`: expected a time, as 2us"), "{fast}");
        let unknown = error("[[scenario]]\nlatncy = \"2us\"\n");
        assert!(unknown.starts_with("a.toml:2: unknown field `latncy`"), "{unknown}");
        assert!(unknown.contains("`latency`") && unknown.contains("options"), "{unknown}");
        let other = error("[[scenario]]\nlatency = true\n");
        assert_eq!(other, "a.toml:2: latency: expected text or a number");
        let speed = error("[[scenario]]\ncpu = -1.0\n");
        assert!(speed.starts_with("a.toml:2: cpu: `-1`: expected a speed above 0"), "{speed}");
        let word = error("[[scenario]]\nbalance = \"yes\"\n");
        assert!(word.starts_with("a.toml:2: balance: ") && word.contains("boolean"), "{word}");
        for text in ["[scenario]\ncpu = 2\n", "", "scenario = 3\n", "# nothing\n"] {
            assert!(error(text).contains("begins with the line [[scenario]]"), "{text}");
        }
        assert!(error("cpu = 2\n").starts_with("a.toml:1: unknown field `cpu`"));
        assert!(error("[[scenario]]\ncpu 2\n").starts_with("a.toml:2:"));
    }
}
