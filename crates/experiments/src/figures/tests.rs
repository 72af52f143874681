//! Figures of results as they could be: well-formed, inside of their page, and none where nothing was measured.

mod made_up;

use super::*;
use lapscope_predict::whatif::document::WhatIf;
use roxmltree::{Document, Node};

#[test]
fn nothing_gives_no_figure() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("figures");
    assert_eq!(draw(&Results::default(), &inner).unwrap(), Vec::<PathBuf>::new());
    assert!(!inner.exists());
}

#[test]
fn all_figures_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("figures");
    let files = draw(&made_up::results(), &inner).unwrap();
    let names: Vec<_> =
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    let expected = [
        "overlap-send.svg",
        "overlap-receive.svg",
        "overlap-scenarios.svg",
        "progress-send.svg",
        "progress-receive.svg",
        "post-delay.svg",
        "timeline-openmpi-shared-memory.svg",
        "timeline-openmpi-slow-link.svg",
        "timeline-mpich-shared-memory.svg",
        "timeline-mpich-slow-link.svg",
        "collective-cpu.svg",
        "ghost-cells.svg",
        "agreement.svg",
    ];
    assert_eq!(names, expected);
    assert!(files.iter().all(|file| file.exists()));
}

#[test]
fn the_same_results_give_the_same_bytes() {
    assert_eq!(figures(&made_up::results()), figures(&made_up::results()));
}

#[test]
fn figures_are_well_formed_and_stand_alone() {
    for Figure { name, svg } in figures(&made_up::results()) {
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        for part in ["title", "desc"] {
            let has = |node: Node| node.has_tag_name(part);
            assert!(document.root_element().children().any(has), "{name} has no {part}");
        }
        assert!(
            !svg.contains("NaN") && !svg.contains("inf\""),
            "{name}: a coordinate is no number"
        );
        for word in ["<script", "href", "url(", "@import"] {
            assert!(!svg.contains(word), "{name} has {word}");
        }
    }
}

/// Figures of scenarios, and of sweeps with a value without a limit and one that deadlocks.
#[test]
fn figures_of_replays_are_well_formed_and_inside_of_the_page() {
    use crate::render::whatif::made_up::{answer, bandwidths, deadlocked, limits, whatif};
    let all = || vec![answer("perfect progress", 1_500), deadlocked("--eager-limit 0 <&>")];
    let swept = WhatIf { sweeps: vec![bandwidths(), limits()], ..whatif(all()) };
    for (name, svg) in [("bars", sweep::figure(&whatif(all()))), ("sweeps", sweep::figure(&swept))]
    {
        let figure = Figure { name: name.to_owned(), svg };
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf\""), "{name}");
        check_places(&figure);
        let document = Document::parse(&figure.svg).unwrap();
        let drawn = document.descendants().filter(|node| node.has_tag_name("path")).count();
        assert!(drawn > 3, "{name}: {drawn} lines");
        assert!(figure.svg.contains("Deadlock: --eager-limit 0"), "{name}");
    }
    let svg = sweep::figure(&swept);
    for label in ["1 GB/s", "100 GB/s", "64 KiB", "bandwidth inf", "recorded"] {
        assert!(svg.contains(label), "{label} is not in the figure");
    }
}

#[test]
fn nothing_is_outside_of_the_page() {
    for figure in figures(&made_up::results()) {
        check_places(&figure);
    }
}

fn check_places(figure: &Figure) {
    let document = Document::parse(&figure.svg).unwrap();
    let size = |name| attribute(document.root_element(), name).unwrap();
    let (width, height) = (size("width"), size("height"));
    for node in document.descendants().filter(Node::is_element) {
        for (x, y) in corners(node) {
            let is_inside = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
            assert!(is_inside, "{}: {:?} reaches {x} {y}", figure.name, node.text());
        }
    }
}

fn attribute(node: Node, name: &str) -> Option<f64> {
    node.attribute(name).map(|value| value.parse().unwrap())
}

/// Places that an element reaches; of a text about.
fn corners(node: Node) -> Vec<(f64, f64)> {
    match node.tag_name().name() {
        "path" => {
            let numbers = node.attribute("d").unwrap().split(['M', 'L', 'Z', ' ']);
            let numbers = numbers.filter(|number| !number.is_empty());
            let numbers: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
            numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
        }
        "rect" => {
            let [x, y, width, height] =
                ["x", "y", "width", "height"].map(|name| attribute(node, name).unwrap());
            assert!(width >= 0.0 && height >= 0.0);
            vec![(x, y), (x + width, y + height)]
        }
        "text" => {
            let [x, y, size] = ["x", "y", "font-size"].map(|name| attribute(node, name).unwrap());
            let wide = svg::Font::new(size).width(node.text().unwrap()) * 0.95;
            let left = match node.attribute("text-anchor") {
                Some("middle") => x - wide / 2.0,
                Some("end") => x - wide,
                _ => x,
            };
            vec![(left, y - size), (left + wide, y)]
        }
        _ => Vec::new(),
    }
}

#[test]
fn names_cannot_break_a_figure() {
    let mut results = made_up::results();
    for mpi in &mut results.mpis {
        mpi.version = "<MPI> & \"sons\" \u{1} 日本".repeat(4);
    }
    results.facts.insert("processor".to_owned(), "a&b <c> ]]>".to_owned());
    for figure in figures(&results) {
        Document::parse(&figure.svg).unwrap_or_else(|error| panic!("{}: {error}", figure.name));
    }
}

/// Numbers that no program should print are no reason to draw nonsense.
#[test]
fn odd_numbers_are_left_out() {
    let mut results = made_up::results();
    let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, f64::NEG_INFINITY];
    let mut next = odd.iter().cycle();
    for run in &mut results.runs {
        for row in run.tables.iter_mut().flat_map(|table| &mut table.rows) {
            for value in row.values.values_mut() {
                if let Some(spread) = &mut value.program {
                    spread.median = *next.next().unwrap();
                    spread.high = next.next().copied();
                }
                next.next();
            }
        }
    }
    for figure in figures(&results) {
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.name);
        check_places(&figure);
    }
}

#[test]
fn rows_without_values_are_left_out() {
    let mut results = made_up::results();
    for run in &mut results.runs {
        run.segments.clear();
        for row in run.tables.iter_mut().flat_map(|table| &mut table.rows) {
            row.values.clear();
        }
    }
    assert_eq!(figures(&results), []);
}

#[test]
fn one_run_is_enough() {
    let mut results = made_up::results();
    results.runs.retain(|run| run.program == "overlap");
    results.runs.truncate(1);
    let names: Vec<String> = figures(&results).into_iter().map(|figure| figure.name).collect();
    assert_eq!(names[..2], ["overlap-send.svg", "overlap-receive.svg"]);
    for figure in figures(&results) {
        check_places(&figure);
    }
}

/// For looking at: `LAPSCOPE_FIGURES=directory cargo test -p lapscope plot`.
#[test]
fn figures_can_be_looked_at() {
    if let Some(directory) = std::env::var_os("LAPSCOPE_FIGURES") {
        draw(&made_up::results(), Path::new(&directory)).unwrap();
    }
}
