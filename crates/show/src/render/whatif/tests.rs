use super::made_up::{answer, bandwidths, deadlocked, limits, whatif};
use super::*;
use lapscope_data::text::style::display_width;
use roxmltree::Document;

fn text(answer: &WhatIf, width: usize) -> String {
    let mut out = Vec::new();
    write(&mut out, answer, Style { color: false, width }).unwrap();
    String::from_utf8(out).unwrap()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_error_of_the_replay_comes_first() {
    let said = one_line(&text(&whatif(vec![answer("--bandwidth x2", 1_500)]), 100));
    let error = said.find("replayed as it was: 1.99 s, 0.5 % less").expect(&said);
    assert!(error < said.find("-24.6 %").expect(&said), "{said}");
    assert!(said.contains("same node 1200 1.20 µs 5.23GB/s 4.00 KiB (declared) rendezvous-write"));
    assert!(!said.contains("is within the error"), "{said}");
}

/// What a scenario changes by less than the replay is off is not told as a gain.
#[test]
fn small_changes_are_within_the_error() {
    let said = one_line(&text(&whatif(vec![answer("tiny", 1_985), answer("much", 1_000)]), 100));
    assert!(said.contains("tiny: the change is within the error of the replay, 0.5 %"), "{said}");
    assert!(!said.contains("much: the change"), "{said}");
}

#[test]
fn one_scenario_is_told_in_detail() {
    let said = one_line(&text(&whatif(vec![answer("--bandwidth x2", 1_500)]), 120));
    for part in [
        "550 ms 545 ms 250 ms MPI_Waitall exchange halo.c:84",
        "1.50 s: 46.7 % computation, 1.3 % in MPI without waiting, 52.0 % communication; rank 1 86.7 %, rank 0 13.3 %",
        "32.0 % 480 ms communication of MPI_Waitall exchange halo.c:84",
        "computation between MPI_Waitall exchange halo.c:84 and MPI_Isend post halo.c:70",
        "280 ms 1 300 ms 1 computation",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let several = text(&whatif(vec![answer("a", 1_500), answer("b", 1_400)]), 100);
    assert!(
        several.contains("of the run as it was, replayed") && !several.contains("would be "),
        "{several}"
    );
}

#[test]
fn a_deadlock_is_told_first_of_all() {
    let said = text(&whatif(vec![deadlocked("--eager-limit 0")]), 100);
    assert!(
        said.starts_with("! with an eager limit of 0 ranks 0 and 1 deadlock in MPI_Send"),
        "{said}"
    );
    let said = one_line(&said);
    assert!(
        said.contains("rank 0 in MPI_Send exchange halo.c:42 (4.00 KiB, tag 7) waits for rank 1"),
        "{said}"
    );
    assert!(!said.contains("CRITICAL PATH"), "{said}");
    let swept = WhatIf { sweeps: vec![limits()], ..whatif(Vec::new()) };
    assert!(text(&swept, 100).starts_with("! the run never ends with eager-limit 0\n"));
}

#[test]
fn sweeps_are_bars() {
    let said = text(&WhatIf { sweeps: vec![bandwidths()], ..whatif(Vec::new()) }, 80);
    let bar = |value: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(value)).expect(&said);
        line.matches('█').count()
    };
    assert_eq!((bar("1GB/s"), bar("100GB/s")), (40, 20));
    assert!(!said.contains("SCENARIOS") && !said.contains("CRITICAL PATH"), "{said}");
}

#[test]
fn no_line_is_wider_than_the_output() {
    let sweeps = vec![bandwidths(), limits()];
    let several = vec![answer("--bandwidth x2 --latency x0.5", 1_985), deadlocked("b")];
    let answers = [
        whatif(vec![answer("--bandwidth 12.5GB/s --eager-limit 65536", 1_500)]),
        WhatIf { sweeps, ..whatif(several) },
        whatif(vec![deadlocked("--eager-limit 0")]),
    ];
    for width in [40, 60, 80, 100, 160] {
        for answer in &answers {
            for line in text(answer, width).lines() {
                assert!(display_width(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn pages_are_well_formed_and_stand_alone() {
    let all = vec![answer("<fast> & \"good\"", 1_500), deadlocked("b")];
    let page = page(&WhatIf { sweeps: vec![bandwidths()], ..whatif(all) });
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let document = Document::parse(body).unwrap_or_else(|error| panic!("{error}\n{page}"));
    let with = |name: &str| {
        document
            .descendants()
            .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
            .count()
    };
    assert_eq!(with("svg"), 2);
    let mut ids: Vec<&str> =
        document.descendants().filter_map(|node| node.attribute("id")).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["desc0", "desc1", "title0", "title1"]);
    let rows = document.descendants().filter(|node| node.has_tag_name("tr")).count();
    assert_eq!(rows, 1 + 2 + 2 + 4);
    for word in ["<script", "href", "url(", "@import", "src="] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn rows_have_all_scenarios_and_values() {
    let answer = WhatIf { sweeps: vec![bandwidths()], ..whatif(vec![answer("a", 1_500)]) };
    let rows = rows::all(&answer);
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, ["recorded", "identity", "scenario", "sweep", "sweep", "sweep", "sweep"]);
    assert_eq!(rows[3].change.map(|change| format!("{change:.3}")), Some("0.508".to_owned()));
}
