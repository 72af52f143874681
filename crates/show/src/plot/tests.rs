//! Figures of replays: well-formed, and inside of their page.

use super::{svg, sweep};
use crate::render::whatif::made_up::{answer, bandwidths, deadlocked, limits, whatif};
use lapscope_predict::whatif::document::WhatIf;
use roxmltree::Document;

/// Figures of scenarios, and of sweeps with a value without a limit and one that deadlocks.
#[test]
fn figures_of_replays_are_well_formed_and_inside_of_the_page() {
    let all = || vec![answer("perfect progress", 1_500), deadlocked("--eager-limit 0 <&>")];
    let swept = WhatIf { sweeps: vec![bandwidths(), limits()], ..whatif(all()) };
    for (name, svg) in [("bars", sweep::figure(&whatif(all()))), ("sweeps", sweep::figure(&swept))]
    {
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
        let width = |text: &str, size: f64| svg::Font::new(size).width(text);
        lapscope_fixture::figure::check_places(name, &svg, width);
        let document = Document::parse(&svg).unwrap();
        let drawn = document.descendants().filter(|node| node.has_tag_name("path")).count();
        assert!(drawn > 3, "{name}: {drawn} lines");
        assert!(svg.contains("Deadlock: --eager-limit 0"), "{name}");
    }
    let svg = sweep::figure(&swept);
    for label in ["1 GB/s", "100 GB/s", "64 KiB", "bandwidth inf", "recorded"] {
        assert!(svg.contains(label), "{label} is not in the figure");
    }
}
