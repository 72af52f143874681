//! The page: what is in it, what it asks for, what it does not overwrite.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fixture::page::markup;
use crate::fixture::{answer, command, json, text};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::messages::Rows;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Call, CallPath, Frame, Module, Operation, Rank, Tally, Variable};
use lapscope_fixture::{call_id, full};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use rusqlite::Connection;
use serde_json::Value;

pub fn page(directory: &Path, more: &[&str]) -> String {
    let arguments = [&["html", ".", "-o", "page.html"], more].concat();
    command(directory, &arguments).assert().success();
    std::fs::read_to_string(directory.join("page.html")).unwrap()
}

/// How many numbers of a page are those of the report, at the places that they name.
pub fn check_numbers(directory: &Path, report: &Value) -> usize {
    count_numbers(&page(directory, &[]), report)
}

/// The same of a page and any document.
pub fn count_numbers(page: &str, report: &Value) -> usize {
    let page = markup(page);
    let document = roxmltree::Document::parse(&page).unwrap();
    let mut count = 0;
    for node in document.descendants().filter(|node| node.has_attribute("data-json")) {
        let pointer = node.attribute("data-json").unwrap();
        let value = report.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert_eq!(node.attribute("data-value"), Some(value.to_string().as_str()), "{pointer}");
        count += 1;
    }
    count
}

#[test]
fn every_number_is_that_of_the_json() {
    let run = small_run();
    let report = json(run.path(), &["report", ".", "--top", "0"]);
    let count = check_numbers(run.path(), &report);
    assert!(count > 100, "{count} numbers");
}

#[test]
fn links_lead_to_elements_and_names_are_used_once() {
    let run = small_run();
    let page = markup(&page(run.path(), &[]));
    let document = roxmltree::Document::parse(&page).unwrap();
    let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let names: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), names.len(), "{ids:?}");
    let links: Vec<_> = document.descendants().filter_map(|node| node.attribute("href")).collect();
    assert!(links.iter().any(|link| link.starts_with("#site-")), "advice names no site: {links:?}");
    for link in links {
        let name = link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leaves the page"));
        assert!(names.contains(name), "{link}");
    }
    let named = ["aria-labelledby", "aria-controls", "for"];
    for name in document.descendants().flat_map(|node| named.map(|it| node.attribute(it))) {
        for name in name.unwrap_or_default().split_whitespace() {
            assert!(names.contains(name), "{name}");
        }
    }
    let order: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("section"))
        .filter_map(|node| node.attribute("id"))
        .collect();
    assert_eq!(order[..5], ["summary", "advice", "heat", "timeline", "matrix"]);
    assert_eq!(order.last(), Some(&"run"));
}

/// A page that is opened tells nobody.
#[test]
fn nothing_is_asked_of_anybody() {
    let run = small_run();
    let page = page(run.path(), &[]).replace("http://www.w3.org/2000/svg", "");
    for word in
        ["http:", "https:", "src=", "url(", "@import", "<link", "fetch(", "XMLHttp", "import("]
    {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src &#39;none&#39;"), "no policy");
    assert!(page.len() < 300_000, "{} bytes", page.len());
}

#[test]
fn only_a_page_is_replaced() {
    let run = small_run();
    let own = run.path().join("notes.html");
    std::fs::write(&own, "<!DOCTYPE html>\nmine").unwrap();
    let written = || command(run.path(), &["html", ".", "-o", "notes.html"]);
    written().assert().code(1).stderr(contains("no page of lapscope").and(contains("left alone")));
    assert!(text(&std::fs::read(&own).unwrap()).ends_with("mine"));
    std::fs::remove_file(&own).unwrap();
    written().assert().success().stderr(contains("notes.html: "));
    written().assert().success();
    let directory = ["html", ".", "-o", "/dev"];
    command(run.path(), &directory).assert().code(1).stderr(contains("is there and no file"));
    let full = ["html", ".", "-o", "no/such/page.html"];
    command(run.path(), &full).assert().code(1).stderr(contains("cannot write no/such/page.html"));
    let left = std::fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(".lapscope-")));
}

#[test]
fn a_stretch_that_is_not_there_is_refused() {
    let run = small_run();
    for (asked, expected) in [
        (&["--timeline-ranks", "7-9"][..], "none of these ranks; its last one is 1"),
        (&["--from", "99"], "the run ends"),
        (&["--from", "2ms", "--to", "1ms"], "--to has to be the later one"),
        (&["--step", "3"], "--step"),
    ] {
        let arguments = [&["html", ".", "-o", "page.html"], asked].concat();
        command(run.path(), &arguments).assert().code(1).stderr(contains(expected));
        assert!(!run.path().join("page.html").exists(), "{asked:?}");
    }
}

#[test]
fn where_there_is_no_screen_the_way_out_is_said() {
    let run = small_run();
    let mut command = command(run.path(), &["html", ".", "-o", "page.html", "--open"]);
    let opened = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").assert().success();
    opened.stderr(contains("no browser is opened").and(contains("scp ")));
}

/// Would run, load or forge something if it were more than text.
const HOSTILE: &str = "</script><script>window.owned=1</script>\"'><img src=x onerror=window.owned=1>\u{202e}\x1b[2J<!--&lt;";

/// A run in every text of which that is.
fn hostile_run(directory: &Path) {
    full::write(directory);
    for rank in 0..2 {
        let database = Connection::open(directory.join(format!("rank-{rank}.db"))).unwrap();
        database.pragma_update(None, "ignore_check_constraints", true).unwrap();
        for (table, column) in [
            ("rank", "host"),
            ("rank", "command"),
            ("rank", "executable"),
            ("rank", "mpi_library"),
            ("rank", "job"),
            ("module", "path"),
            ("communicator", "name"),
            ("call_name", "name"),
            ("environment", "value"),
            ("environment", "name"),
            ("cvar", "value"),
            ("mark", "name"),
            ("injector", "problem"),
            ("file", "name"),
        ] {
            let sql = format!("UPDATE {table} SET {column} = coalesce({column}, '') || ?1");
            // not every format has each of them
            let _ = database.execute(&sql, [HOSTILE]);
        }
    }
}

#[test]
fn whatever_a_run_holds_is_text() {
    let run = tempfile::tempdir().unwrap();
    hostile_run(run.path());
    let page = page(run.path(), &[]);
    for markup in ["<img", "<script>window", "\u{202e}", "\x1b", "<!--"] {
        assert!(!page.contains(markup), "{markup:?}");
    }
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.matches("window.owned=1").count() > 10, "the names are not in the page");
    roxmltree::Document::parse(&markup(&page)).unwrap();
}

/// Sends whose receiver left no file.
fn unmatched(directory: &Path) {
    Rank { world_size: 2, summarized: 0, ..Rank::new(0) }.write(directory, |file| {
        let operation_id = file.insert(Operation::send("MPI_Send", 4, (4_096, 1, 8)));
        file.insert(Call {
            operation_id,
            begin_ns: 40_000,
            duration_ns: Some(5_000),
            ..Call::default()
        });
    });
}

fn one_rank(directory: &Path) {
    Rank { world_size: 1, summarized: 0, ..Rank::new(0) }.write(directory, |_| ());
}

fn killed(directory: &Path) {
    full::write(directory);
}

fn only_sums(directory: &Path) {
    Rank { world_size: 1, ..Rank::new(0) }.write(directory, |file| {
        let send =
            Tally { call_id: call_id("MPI_Send"), call_path_id: Some(4), ..Tally::default() };
        file.insert(Tally {
            reason: "summary",
            count: 30,
            inside_ns: 12_000,
            bytes: 4_096,
            ..send
        });
    });
}

fn dead(directory: &Path) {
    let rank =
        Rank { world_size: 1, ended: "killed", end_ns: 1_000, summarized: 0, ..Rank::new(0) };
    rank.write(directory, |_| ());
}

/// Its records end before it does: that it was killed is known all the same.
fn killed_in_sums(directory: &Path) {
    let rank = Rank { world_size: 1, ended: "killed", summarized: 1, ..Rank::new(0) };
    rank.write(directory, |_| ());
}

type Make = fn(&Path);

/// Runs of which something is missing, and what their pages say of it.
const LACKING: [(&str, Make, &[&str]); 6] = [
    ("unmatched", unmatched, &["no data of 1 of 2 ranks", "Nothing shows from which size on"]),
    ("one-rank", one_rank, &["One rank was recorded", "No MPI communication was recorded"]),
    ("killed", killed, &["rank 1", "No source line is known"]),
    ("only-sums", only_sums, &["Only sums were recorded", "no MPI call was recorded in detail"]),
    ("killed-in-sums", killed_in_sums, &["<td>killed</td>"]),
    ("dead", dead, &["nothing recorded behind MPI_Init", "No MPI communication was recorded"]),
];

#[test]
fn what_is_missing_is_said_with_the_reason() {
    for (name, make, sentences) in LACKING {
        let run = tempfile::tempdir().unwrap();
        make(run.path());
        let page = page(run.path(), &[]);
        for sentence in sentences {
            assert!(page.contains(sentence), "{name}: no \"{sentence}\" in {}", markup(&page));
        }
    }
}

/// Where the tests in a browser want them: LAPSCOPE_TEST_PAGES.
#[test]
#[ignore = "makes pages for tests/browser.sh"]
fn pages_for_the_browser() {
    let directory = PathBuf::from(std::env::var_os("LAPSCOPE_TEST_PAGES").unwrap());
    let runs = [("small", small::write as Make), ("hostile", hostile_run)];
    let lacking = LACKING.iter().map(|(name, make, _)| (*name, *make));
    for (name, make) in runs.into_iter().chain(lacking) {
        let run = directory.join(name);
        std::fs::create_dir_all(&run).unwrap();
        make(&run);
        page(&run, &[]);
        let report = answer(&run, &["report", ".", "--top", "0", "--format", "json"]);
        std::fs::rename(run.join("page.html"), directory.join(format!("{name}.html"))).unwrap();
        std::fs::write(directory.join(format!("{name}.json")), report).unwrap();
    }
}

/// Many call sites, whose names are as long as names can be: what does not fit is summed up and cut.
#[test]
fn a_page_is_bounded_whatever_the_run() {
    const SITES: i64 = 600;
    let long = "n".repeat(4_000);
    let run = tempfile::tempdir().unwrap();
    Rank { world_size: 1, summarized: 0, end_ns: 10_000_000, command: &long, ..Rank::new(0) }
        .write(run.path(), |file| {
            let path = format!("/nowhere/{long}");
            let module_id = Some(file.insert(Module {
                path: &path,
                build_id: "cc33",
                base: 1 << 30,
                ..Module::default()
            }));
            for site in 0..SITES {
                let call_path_id = file.insert(CallPath::default());
                for depth in 0..30 {
                    let address = 0x10_000 + 64 * site + 100_000 * depth;
                    file.insert(Frame { call_path_id, depth, module_id, address });
                }
                let send = Operation::send("MPI_Send", call_path_id, (4_096, 0, 8));
                let operation_id = file.insert(send);
                let (begin_ns, duration_ns) = (10_000 * (site + 1), Some(1_000 + site));
                file.insert(Call { operation_id, begin_ns, duration_ns, ..Call::default() });
                let name = format!("OMPI_MCA_{site}");
                file.insert(Variable { name: &name, value: &long });
            }
        });
    let page = page(run.path(), &[]);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("400 more call sites, all together"), "others are not summed up");
    let all = self::page(run.path(), &["--top", "600"]);
    assert!(all.len() < 2_000_000, "{} bytes", all.len());
}

/// Rank 1 waits long for a rank that computes, and a little for messages that stand still: what is to be done first is no change of
/// communication.
#[test]
fn the_page_has_advice_in_the_order_of_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let (mut sender, mut receiver) = (Rows::default(), Rows::default());
    let what = |call, kind, peer| (call, kind, 1 << 20, peer, 7);
    for round in 0..10 {
        let begin = round * 4_000_000;
        receiver.blocking(what("MPI_Recv", "recv", 0), begin, 2_100_000);
        sender.blocking(what("MPI_Send", "send", 1), begin + 2_000_000, 100_000);
        let post = begin + 2_200_000;
        let sent = (what("MPI_Isend", "send", 1), post, 1_000, 0);
        let received = (what("MPI_Irecv", "recv", 0), post, 1_000, 0);
        sender.complete("MPI_Waitall", post + 200_000, 100_000, &[sent]);
        receiver.complete("MPI_Waitall", post + 200_000, 100_000, &[received]);
    }
    for (rank, rows) in (0..).zip([sender, receiver]) {
        let rank = Rank { end_ns: 40_000_000, world_size: 2, ..Rank::plain(rank) };
        rank.write(directory.path(), |file| rows.write(file));
    }
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = one_line(&answer(directory.path(), &["report", "."]));
    let page = markup(&page(directory.path(), &[]));
    let document = roxmltree::Document::parse(&page).unwrap();
    let page: String =
        document.descendants().filter(|node| node.is_text()).filter_map(|it| it.text()).collect();
    let page = one_line(&page);
    let report = json(directory.path(), &["report", "."]);
    let said = report["advice"].as_array().unwrap().iter();
    let said: Vec<&str> = said.map(|advice| advice["sentence"].as_str().unwrap()).collect();
    let order = |whole: &str| {
        let mut found: Vec<(usize, &str)> =
            said.iter().filter_map(|&sentence| Some((whole.find(sentence)?, sentence))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, sentence)| sentence).collect::<Vec<_>>()
    };
    let [at, of_others] =
        ["ADVICE what may gain most", "NOT FIXABLE"].map(|heading| text.find(heading).unwrap());
    assert!(of_others < at, "{text}");
    assert_eq!(order(&page), order(&text));
    assert!(order(&page).len() > 1, "{text}");
}
