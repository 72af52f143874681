//! The page of a job that was looked at from outside: where its ranks are, their call paths as a tree that can be folded, and what its
//! records say where it has any.

use super::hang::{row, write_verdicts, SCRIPT};
use super::markup::Html;
use super::page::{framed, navigation, sections};
use crate::render::stacks::{looked, next, notes, other_threads, stretch, title, who};
use lapscope_data::symbols::FrameName;
use lapscope_watch::stacks::{Branch, RankStack, StackDiagnosis};

/// Ranks that have a row, and places that stand in the tree; the others are counted.
const MOST_RANKS: usize = 500;
const MOST_PLACES: usize = 2000;

type Section = (&'static str, &'static str);
const VERDICT: Section = ("verdict", "Verdict");
const SECTIONS: [Section; 4] =
    [("where", "Where"), ("paths", "Call paths"), ("ranks", "Ranks"), ("next", "Next")];

/// The whole file.
pub fn page(found: &StackDiagnosis) -> String {
    let about = found.ranks.first().map_or("", |rank| rank.command.as_str());
    let with_verdict = found.jobs().any(|job| !job.recorded.is_empty());
    let names: Vec<Section> =
        std::iter::once(VERDICT).filter(|_| with_verdict).chain(SECTIONS).collect();
    let mut html = Html::default();
    html.within("header", &[], |html| {
        html.element("a", &[("class", "skip"), ("href", "#where")], "To the contents");
        html.within("h1", &[], |html| {
            html.text("Where everybody is ");
            html.element("span", &[("class", "run")], about);
        });
        html.paragraph(&looked(found));
        let notes: Vec<String> = found.jobs().flat_map(notes).collect();
        if !notes.is_empty() {
            html.within("ul", &[("class", "problems")], |html| {
                notes.iter().for_each(|note| html.element("li", &[], note));
            });
        }
    });
    navigation(&mut html, &names);
    sections(&mut html, &names, |html, at| match names[at].0 {
        "next" => next(found).iter().for_each(|text| html.paragraph(text)),
        section => found.jobs().for_each(|job| {
            if !found.other_jobs.is_empty() {
                html.paragraph(&title(job));
            }
            write_section(html, section, job);
        }),
    });
    framed(about, SCRIPT, "{}", &html.finish())
}

fn write_section(html: &mut Html, section: &str, job: &StackDiagnosis) {
    match section {
        "verdict" => job.recorded.iter().for_each(|it| write_verdicts(html, &it.diagnosis)),
        "where" => {
            html.within("p", &[("class", "problem")], |html| html.whole_text(&job.sentence));
        }
        "paths" => {
            write_paths(html, &job.tree);
            let others = other_threads(&job.ranks);
            if !others.is_empty() {
                html.paragraph("Other threads of these ranks:");
                html.within("ul", &[], |html| {
                    others.iter().for_each(|place| html.element("li", &[], place));
                });
            }
        }
        _ => write_ranks(html, &job.ranks),
    }
}

fn write_paths(html: &mut Html, tree: &[Branch]) {
    html.paragraph("From main inwards, with the ranks that are below; fewest first.");
    let mut left = MOST_PLACES;
    html.within("ul", &[], |html| {
        tree.iter().for_each(|branch| write_branch(html, branch, &mut left));
    });
    if left == 0 {
        html.missing("More places are in the JSON.");
    }
}

/// What has branches can be folded.
fn write_branch(html: &mut Html, branch: &Branch, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let (places, last) = stretch(branch);
    let line = |html: &mut Html| {
        html.element("code", &[], &places);
        html.text(&format!(" {}", who(branch)));
    };
    html.within("li", &[], |html| match last.branches.as_slice() {
        [] => line(html),
        branches => html.within("details", &[("open", "")], |html| {
            html.within("summary", &[], line);
            html.within("ul", &[], |html| {
                branches.iter().for_each(|branch| write_branch(html, branch, left));
            });
        }),
    });
}

fn write_ranks(html: &mut Html, ranks: &[RankStack]) {
    html.within("div", &[("class", "scroll"), ("tabindex", "0")], |html| {
        html.within("table", &[], |html| {
            let heads = ["Rank", "Host", "Process", "Where", "Call path"];
            html.within("thead", &[], |html| row(html, "th", &heads));
            html.within("tbody", &[], |html| {
                for rank in ranks.iter().take(MOST_RANKS) {
                    let number = rank.rank.map_or_else(String::new, |rank| rank.to_string());
                    let frames = rank.at.places(FrameName::short);
                    let (pid, place) = (rank.pid.to_string(), rank.place());
                    row(html, "td", &[&number, &rank.host, &pid, &place, &frames.join(" ← ")]);
                }
            });
        });
    });
    if ranks.len() > MOST_RANKS {
        html.missing(&format!("{} more ranks are in the JSON.", ranks.len() - MOST_RANKS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(place: &str, count: usize, branches: Vec<Branch>) -> Branch {
        Branch { place: place.to_owned(), count, ranks: Vec::new(), branches }
    }

    #[test]
    fn a_tree_is_as_long_as_its_forks_and_no_longer_than_can_be_read() {
        let tree = branch(
            "main x.c:1",
            3,
            vec![branch(
                "<work>",
                3,
                vec![branch("MPI_Recv", 1, Vec::new()), branch("computes", 2, Vec::new())],
            )],
        );
        let mut html = Html::default();
        write_paths(&mut html, &[tree]);
        let text = html.finish();
        assert!(text.contains("<code>main x.c:1 &gt; &lt;work&gt;</code> 3 processes"), "{text}");
        assert_eq!((text.matches("<li>").count(), text.matches("<details").count()), (3, 1));
        assert!(!text.contains("JSON"));

        let many = (0..3 * MOST_PLACES).map(|at| branch(&at.to_string(), 1, Vec::new())).collect();
        let mut html = Html::default();
        write_paths(&mut html, &[branch("main", 3 * MOST_PLACES, many)]);
        let text = html.finish();
        assert_eq!(text.matches("<li>").count(), MOST_PLACES);
        assert!(text.contains("More places are in the JSON."));
    }
}
