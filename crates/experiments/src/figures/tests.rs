//! Figures of results as they could be: well-formed, inside of their page, and none where nothing was measured.

mod made_up;

use super::*;
use lapscope_show::plot::svg;
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

#[test]
fn nothing_is_outside_of_the_page() {
    for figure in figures(&made_up::results()) {
        check_places(&figure);
    }
}

fn check_places(figure: &Figure) {
    let width = |text: &str, size: f64| svg::Font::new(size).width(text);
    lapscope_fixture::figure::check_places(&figure.name, &figure.svg, width);
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

/// For looking at: `LAPSCOPE_FIGURES=directory cargo test -p lapscope-experiments figures`.
#[test]
fn figures_can_be_looked_at() {
    if let Some(directory) = std::env::var_os("LAPSCOPE_FIGURES") {
        draw(&made_up::results(), Path::new(&directory)).unwrap();
    }
}
