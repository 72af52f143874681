//! The page of two runs: its numbers, its links, what it says where something is missing, and that nothing in it is markup of theirs.

use std::collections::BTreeSet;

use crate::fixture::page::markup;
use crate::fixture::{command, json};
use assert_cmd::assert::OutputAssertExt;
use lapscope_fixture::edit_rank;
use lapscope_fixture::small::{self, run as small_run};
use lapscope_fixture::tables::{Mark, Rank, Setting, Variable};
use predicates::str::contains;
use roxmltree::{Document, Node};
use tempfile::TempDir;

const HOSTILE: &str = "</script><img src=x onerror='owned()'>\u{202e}\"";

fn change(run: &TempDir, rank: i64, sql: &str) {
    edit_rank(run.path(), rank, |file| file.change(sql));
}

fn page(a: &TempDir, b: &TempDir) -> String {
    let other = b.path().to_str().unwrap();
    command(a.path(), &["html", ".", other, "-o", "page.html"]).assert().success();
    std::fs::read_to_string(a.path().join("page.html")).unwrap()
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|it| it.text()).collect()
}

fn section<'a>(document: &'a Document<'a>, id: &str) -> Node<'a, 'a> {
    let mut all = document.descendants();
    all.find(|node| node.attribute("id") == Some(id)).unwrap_or_else(|| panic!("no {id}"))
}

/// The send takes less, the barrier more; a setting is another, and one site is gone.
fn changed() -> (TempDir, TempDir) {
    let (a, b) = (small_run(), small_run());
    change(
        &b,
        0,
        "UPDATE call SET duration_ns = 2000 WHERE id = 3; UPDATE rank SET end_ns = end_ns + 7000",
    );
    change(&b, 1, "UPDATE call SET duration_ns = 8500 WHERE id = 1");
    edit_rank(b.path(), 0, |file| {
        file.insert(Variable { name: "OMPI_MCA_btl", value: HOSTILE });
        file.insert(Setting { name: "LAPSCOPE_INJECT", value: "timer", ..Setting::default() });
    });
    (a, b)
}

#[test]
fn every_number_is_that_of_the_diff() {
    let (a, b) = changed();
    let page = markup(&page(&a, &b));
    let document = Document::parse(&page).unwrap();
    let diff = json(a.path(), &["diff", ".", b.path().to_str().unwrap(), "--top", "0"]);
    let mut count = 0;
    for node in document.descendants().filter(|node| node.has_attribute("data-json")) {
        let pointer = node.attribute("data-json").unwrap();
        let value = diff.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert_eq!(node.attribute("data-value"), Some(value.to_string().as_str()), "{pointer}");
        count += 1;
    }
    assert!(count > 50, "{count} numbers");
    let summary = text(section(&document, "summary"));
    assert!(summary.contains("B takes 7.00 µs longer than A (+7.0 %)"), "{summary}");
    assert!(summary.contains("blocking point-to-point −1.50 µs"), "{summary}");
    let sites = section(&document, "site-table");
    let first = sites.descendants().find(|node| node.has_tag_name("tbody")).unwrap();
    assert!(
        text(first).contains("MPI_Send") && text(first).contains("−1.50 µs"),
        "{}",
        text(first)
    );
}

#[test]
fn what_is_not_the_same_is_listed_and_is_text() {
    let (a, b) = changed();
    let whole = page(&a, &b);
    assert!(!whole.contains("<img") && !whole.contains('\u{202e}'), "markup of the run");
    let page = markup(&whole);
    let document = Document::parse(&page).unwrap();
    let settings = text(section(&document, "settings"));
    for word in ["OMPI_MCA_btl", "onerror='owned()'", "\\u{202e}", "LAPSCOPE_INJECT", "not set"] {
        assert!(settings.contains(word), "{word}: {settings}");
    }
    let names: BTreeSet<&str> =
        document.descendants().filter_map(|it| it.attribute("id")).collect();
    let ids = document.descendants().filter(|node| node.has_attribute("id")).count();
    assert_eq!(ids, names.len());
    for attribute in ["href", "for", "aria-controls", "aria-labelledby"] {
        for name in document.descendants().filter_map(|node| node.attribute(attribute)) {
            assert!(names.contains(name.trim_start_matches('#')), "{attribute} {name}");
        }
    }
    let policy = "script-src &#39;sha256-";
    assert!(whole.contains(policy) && whole.contains("default-src &#39;none&#39;"));
    let asking = whole.replace("http://www.w3.org/2000/svg", "");
    assert!(!["http:", "https:", "url(", "@import", "<link"].iter().any(|it| asking.contains(it)));
}

#[test]
fn a_run_and_itself_are_the_same() {
    let run = small_run();
    let page = markup(&page(&run, &run));
    let document = Document::parse(&page).unwrap();
    assert!(text(section(&document, "summary")).contains("B takes as long as A."));
    assert!(text(section(&document, "settings")).contains("Nothing that was recorded"));
    // nobody knows how long these transfers take
    assert!(text(section(&document, "sizes")).contains("lapscope calibrate"));
}

/// A region in A only has nothing in B.
#[test]
fn marked_regions_are_compared_by_name() {
    let (a, b) = (small_run(), small_run());
    let region = |run: &TempDir, name, begin_ns, end_ns| {
        edit_rank(run.path(), 0, |file| {
            for (begin_ns, level) in [(begin_ns, 1), (end_ns, -1)] {
                file.insert(Mark { begin_ns, level, name: Some(name), ..Mark::default() });
            }
        });
    };
    region(&a, "solve", 10_000, 30_000);
    region(&b, "solve", 10_000, 45_000);
    region(&a, HOSTILE, 50_000, 51_000);
    let whole = page(&a, &b);
    let page = markup(&whole);
    let document = Document::parse(&page).unwrap();
    let steps = section(&document, "steps");
    let rows: Vec<String> = steps
        .descendants()
        .filter(|node| node.has_tag_name("tr"))
        .map(|row| text(row).replace('\n', " "))
        .collect();
    assert!(
        rows.iter().any(|row| row.contains("solve 10.0 µs 17.5 µs +7.50 µs +75.0 %")),
        "{rows:?}"
    );
    assert!(rows.iter().any(|row| row.contains("500 ns 0 ns −500 ns")), "{rows:?}");
    assert!(!whole.contains("<img"));
}

/// Sums of two ranks and of one are no comparison.
#[test]
fn runs_of_other_numbers_of_ranks_are_compared_by_means() {
    let (a, b) = (small_run(), tempfile::tempdir().unwrap());
    Rank { world_size: 1, ..Rank::new(0) }.write(b.path(), small::rank_0);
    let page = markup(&page(&a, &b));
    let document = Document::parse(&page).unwrap();
    let summary = text(section(&document, "summary"));
    assert!(summary.contains("mean over ranks"), "{summary}");
    assert!(text(section(&document, "sites")).contains("mean over ranks"));
}

#[test]
fn what_cannot_be_is_refused() {
    let run = small_run();
    let missing = command(run.path(), &["html", ".", "nowhere"]).assert().code(1);
    missing.stderr(contains("nowhere"));
    command(run.path(), &["html", ".", ".", "--rank", "0"]).assert().code(2);
    let written = std::fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().path());
    assert!(!written.into_iter().any(|path| path.extension().is_some_and(|end| end == "html")));
}
