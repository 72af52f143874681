//! The page: what is in it, what it asks for, what it does not overwrite.

mod fixture;

use std::collections::BTreeSet;
use std::path::Path;

use assert_cmd::assert::OutputAssertExt;
use fixture::{command, json, text};
use lapscope_fixture::small::run as small_run;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

fn page(directory: &Path, more: &[&str]) -> String {
    let arguments = [&["html", ".", "-o", "page.html"], more].concat();
    command(directory, &arguments).assert().success();
    std::fs::read_to_string(directory.join("page.html")).unwrap()
}

/// Without script and style, which are no XML; what is left is well-formed.
fn markup(page: &str) -> String {
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut kept = String::new();
    for tag in ["style", "script", "script"] {
        let begin = rest.find(&format!("<{tag}")).unwrap();
        let end = begin + rest[begin..].find(&format!("</{tag}>")).unwrap() + tag.len() + 3;
        kept.push_str(&rest[..begin]);
        rest = &rest[end..];
    }
    kept + rest
}

#[test]
fn every_number_is_that_of_the_json() {
    let run = small_run();
    let page = markup(&page(run.path(), &[]));
    let document = roxmltree::Document::parse(&page).unwrap();
    let report = json(run.path(), &["report", ".", "--top", "0"]);
    let mut count = 0;
    for node in document.descendants().filter(|node| node.has_attribute("data-json")) {
        let pointer = node.attribute("data-json").unwrap();
        let value = report.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        assert_eq!(node.attribute("data-value"), Some(value.to_string().as_str()), "{pointer}");
        count += 1;
    }
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
fn where_there_is_no_screen_the_way_out_is_said() {
    let run = small_run();
    let mut command = command(run.path(), &["html", ".", "-o", "page.html", "--open"]);
    let opened = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").assert().success();
    opened.stderr(contains("no browser is opened").and(contains("scp ")));
}
