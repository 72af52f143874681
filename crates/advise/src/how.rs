//! Cures as code: how a piece of advice looks in the program, before and after, in the language of the file that it names. The
//! templates lie beside this file; the tests compile and run them.

use crate::advice::{line_in_words, Advice, CallSite, Cure};
use lapscope_data::model::Nanos;
use lapscope_data::text::units::percent;

/// In what a program is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    Fortran,
    Python,
}

/// A cure in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub language: Language,
    pub before: String,
    pub after: String,
}

const TEMPLATES: [(Language, &str); 3] = [
    (Language::C, include_str!("how/cures.c")),
    (Language::Fortran, include_str!("how/cures.f90")),
    (Language::Python, include_str!("how/cures.py")),
];

/// Cures that are code, and what each of them does.
pub const CURES: [(Cure, &str, &str); 7] = [
    (Cure::Test, "test", "Test now and then while computing, so that messages move"),
    (Cure::WaitTogether, "wait_together", "Complete sends together with receives, not one by one"),
    (Cure::WaitBehind, "wait_behind", "Complete sends after the receives, and after other work"),
    (Cure::PostReceiveEarlier, "post_receive_earlier", "Post receives before computing"),
    (Cure::MakeNonblocking, "make_nonblocking", "Send without waiting for the receiver"),
    (Cure::ProgressTarget, "progress_target", "Enter MPI now and then where others wait for it"),
    (Cure::CallEarlier, "call_earlier", "End an epoch before computing"),
];

impl Language {
    pub const ALL: [Language; 3] = [Language::C, Language::Fortran, Language::Python];

    /// By the suffix of a source file; C where that says nothing.
    pub fn of_file(file: &str) -> Language {
        let suffix = file.rsplit_once('.').map_or("", |(_, suffix)| suffix).to_ascii_lowercase();
        match suffix.as_str() {
            "f" | "for" | "ftn" | "f77" | "f90" | "f95" | "f03" | "f08" => Language::Fortran,
            "py" | "pyx" => Language::Python,
            _ => Language::C,
        }
    }

    /// Behind a line of code.
    fn comment(self, text: &str) -> String {
        match self {
            Language::C => format!(" /* {text} */"),
            Language::Fortran => format!(" ! {text}"),
            Language::Python => format!("  # {text}"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Fortran => "Fortran",
            Language::Python => "Python",
        }
    }
}

/// How the advice looks in the program; `None`: it is no change of code.
pub fn snippet(advice: &Advice) -> Option<Snippet> {
    let (_, key, _) = CURES.into_iter().find(|(cure, ..)| *cure == advice.cure)?;
    let first = advice.change.first().unwrap_or(&advice.waiting);
    let file = first.site.as_ref().and_then(|site| site.file.as_deref()).unwrap_or_default();
    let last = advice.change.last().unwrap_or(&advice.waiting);
    let interval = interval(advice.evidence.mean_reference_ns);
    let line = advice.computes.as_ref().and_then(|computes| computes.found.lines.first());
    let line = line.map(|line| {
        format!("{}: {} of that computation", line_in_words(line), percent(line.share))
    });
    let language = Language::of_file(file);
    Some(fill(key, language, [&place(first), &place(last)], line.as_deref(), interval))
}

/// The cure by its key in the templates, with nothing of a program in it.
pub fn template(key: &str, language: Language) -> Snippet {
    fill(key, language, ["the post", "the wait"], None, interval(None))
}

/// Seconds between two tests: some ten in a transfer, and no more often than costs nothing.
fn interval(transfer: Option<Nanos>) -> f64 {
    const IN_A_TRANSFER: f64 = 10.0;
    let (least, usual, most) = (50e-6, 500e-6, 5e-3);
    transfer.map_or(usual, |ns| (ns.0 as f64 / 1e9 / IN_A_TRANSFER).clamp(least, most))
}

/// "MPI_Irecv exchange halo.c:76"
fn place(site: &CallSite) -> String {
    let place = site.site.as_ref().map(|site| format!(" {}", site.short()));
    format!("{}{}", site.call, place.unwrap_or_default())
}

/// `line`: where the program computes, as far as that is known.
fn fill(
    key: &str,
    language: Language,
    [post, wait]: [&str; 2],
    line: Option<&str>,
    interval: f64,
) -> Snippet {
    let (_, text) = TEMPLATES.iter().find(|(known, _)| *known == language).expect("one of three");
    let part = |which: &str| {
        let heading = format!("== {key}: {which}");
        let lines = text.lines().skip_while(|line| !line.contains(&heading)).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| !line.contains("== ")).collect();
        let text = lines.join("\n");
        let seconds = format!("{interval:.1e}");
        let line = line.map(|line| language.comment(line)).unwrap_or_default();
        let text = text.replace(" @line", &line).replace("@interval", &seconds);
        text.replace("@post", post).replace("@wait", wait)
    };
    Snippet { language, before: part("before"), after: part("after") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cure_has_code_in_every_language() {
        for (_, key, _) in CURES {
            for language in Language::ALL {
                let Snippet { before, after, .. } = template(key, language);
                assert!(
                    !before.is_empty() && !after.is_empty() && before != after,
                    "{key} {language:?}"
                );
                assert!(!(before + &after).contains('@'), "{key} {language:?}");
            }
        }
    }

    #[test]
    fn languages_are_known_by_suffixes() {
        let of = Language::of_file;
        assert_eq!(
            [of("a.F90"), of("b/halo.py"), of("c.cpp"), of("")],
            [Language::Fortran, Language::Python, Language::C, Language::C]
        );
    }

    #[test]
    fn some_ten_tests_are_made_in_a_transfer() {
        assert_eq!(interval(Some(Nanos(20_000_000))), 2e-3);
        assert_eq!([interval(Some(Nanos(1_000))), interval(None)], [50e-6, 500e-6]);
    }
}
