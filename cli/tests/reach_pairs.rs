//! `lapscope reach` of a halo exchange whose words were watched: pairs of sites, and networks.

use std::path::Path;

use serde_json::Value;

use crate::fixture::{command, json, printed};
use lapscope_data::text::style::display_width;
use lapscope_fixture::messages::{Rows, What};
use lapscope_fixture::tables::{Rank, Watch, Watcher};

const STEPS: i64 = 20;
const STEP: i64 = 1_000_000;
const BYTES: i64 = 8_000;
const LAST: i64 = BYTES / 8 - 1;
const OFFSETS: [i64; 4] = [0, 1_600, 4_800, 7_992];
/// The completing call is operation 1 of each rank.
const RECEIVE: i64 = 2;
const SEND: i64 = 3;
/// T_AP, T_AC and T_P = T_C of [SA06], nanoseconds.
const BEFORE: i64 = 50_000;
const AFTER: i64 = 20_000;
const WORD: i64 = 100;
const HIT: i64 = 1_000;

/// Both ranks post at the same time, and are in MPI_Waitall for 12 us. Words are written and read from first to last. What
/// hits cost has been taken off by the recorder.
fn write(directory: &Path) {
    for rank in 0..2 {
        let receive: What = ("MPI_Irecv", "recv", BYTES, 1 - rank, 7);
        let send: What = ("MPI_Isend", "send", BYTES, 1 - rank, 7);
        let end_ns = (STEPS + 2) * STEP;
        Rank { end_ns, ..Rank::plain(rank) }.write(directory, |file| {
            let mut rows = Rows::default();
            file.insert(Watcher { hit_ns: Some(HIT), ..Watcher::default() });
            for begin in (1..=STEPS).map(|step| step * STEP) {
                let posted = [(receive, begin, 500, 500), (send, begin + 500, 500, 0)];
                rows.complete("MPI_Waitall", begin + 1_000, 12_000, &posted);
                for offset in OFFSETS {
                    let (word, place) = ((offset, BYTES), offset / 8);
                    let away = BEFORE + WORD * (LAST - place);
                    file.insert(Watch::send(SEND, begin + 500, word, away));
                    let away = AFTER + WORD * place;
                    file.insert(Watch::receive(RECEIVE, (begin, begin + 13_000), word, away));
                }
            }
            rows.write(file);
        });
    }
}

fn holds(bounds: &Value, truth: i64) {
    let bound = |key: &str| bounds[key].as_f64().unwrap_or_else(|| panic!("{bounds}"));
    let truth = truth as f64;
    assert!(bound("low") <= truth && truth <= bound("high"), "{truth} is not in {bounds}");
    // to the cost of hits
    assert!(bound("high") - bound("low") <= 10.0 * HIT as f64, "{bounds}");
}

#[test]
fn a_halo_exchange_has_what_was_written_down() {
    let run = tempfile::tempdir().unwrap();
    write(run.path());
    let found = json(run.path(), &["reach", "."]);
    let pairs = &found["reach"]["pairs"];
    let row = &pairs["rows"][0];
    assert_eq!(pairs["pair_count"], 1);
    assert_eq!(
        (&row["send"]["call"], &row["receive"]["call"]),
        (&"MPI_Isend".into(), &"MPI_Irecv".into())
    );
    assert_eq!((&row["messages"], &row["pattern"]), (&(2 * STEPS).into(), &"concurrent".into()));
    assert_eq!(row["votes"]["concurrent"], 2 * STEPS);
    let available = &row["available_ns"];
    holds(&available["sent_when_produced"]["worst"], BEFORE + AFTER);
    holds(&available["received_while_consumed"]["worst"], BEFORE + AFTER);
    holds(&available["sent_while_produced"]["worst"], BEFORE + AFTER + LAST * WORD);

    let networks = &pairs["networks"];
    let table = &networks["tables"]["sent_when_produced"];
    // 4 us and 8 us at 1 GB/s are less than there is; 8 ms at 1 MB/s are not
    let execution = table[2]["execution"].as_array().unwrap();
    assert_eq!(
        (table[2]["latency_ns"].as_f64(), execution[6].as_f64()),
        (Some(4_000.0), Some(1.0))
    );
    let computation = networks["computation_ns"].as_f64().unwrap();
    let exposed = (execution[0].as_f64().unwrap() - 1.0) * computation / (2 * STEPS) as f64;
    let expected = 4_000.0 + BYTES as f64 * 1e3 - (BEFORE + AFTER) as f64;
    assert!((exposed - expected).abs() <= 10.0 * HIT as f64, "{exposed} {expected}");
}

#[test]
fn networks_are_asked() {
    let run = tempfile::tempdir().unwrap();
    write(run.path());
    let asked = ["reach", "--network", "4us,1GB/s", "--network", "8us,1MB/s", "."];
    let document = json(run.path(), &asked);
    let networks = &document["reach"]["pairs"]["networks"];
    let [fast, slow] = &networks["asked"].as_array().unwrap()[..] else { panic!("{networks}") };
    let number = |value: &Value| value.as_f64().unwrap();
    let over = |ns: f64| 1.0 + (2 * STEPS) as f64 * ns / number(&networks["computation_ns"]);
    let near = |value: &Value, ns: f64| {
        let (told, truth) = (number(value), over(ns));
        assert!((told - truth).abs() <= over(10.0 * HIT as f64) - 1.0, "{told} {truth}");
    };
    // 12 us, all of which 70 us hide; 8.008 ms, of which 70 us or, with finer messages, 169.9 us are hidden
    near(&fast["without_overlap"], 12_000.0);
    near(&fast["with_overlap"]["sent_when_produced"], 0.0);
    near(&slow["without_overlap"], 8_008_000.0);
    near(&slow["with_overlap"]["sent_when_produced"], 7_938_000.0);
    near(&slow["with_overlap"]["sent_while_produced"], 7_838_100.0);
    assert_eq!(number(&slow["unwatched_messages"]), 0.0);
    let text = printed(&mut command(run.path(), &asked));
    assert!(text.contains("NETWORKS ASKED FOR") && text.contains("8.00 µs, 1 MB/s"), "{text}");
    let mut wrong = command(run.path(), &["reach", "--network", "4us", "."]);
    let error = String::from_utf8(wrong.output().unwrap().stderr).unwrap();
    assert!(error.contains("as 4us,950MB/s"), "{error}");
}

#[test]
fn its_tables_fit() {
    let run = tempfile::tempdir().unwrap();
    write(run.path());
    for columns in [60, 80, 100, 200] {
        let mut asked = command(run.path(), &["reach", "--network", "4us,950MB/s", "."]);
        let text = printed(asked.env("COLUMNS", columns.to_string()));
        for head in ["SENDERS AND RECEIVERS", "SIZES", "NETWORKS"] {
            assert!(text.contains(head), "{head} in\n{text}");
        }
        let wide = text.lines().find(|line| display_width(line) > columns);
        assert_eq!(wide, None, "of {columns}:\n{text}");
    }
}
