//! Cures as code: how a piece of advice looks in the program, before and after, in the language of the file that it names. The
//! templates lie beside this file; the tests compile and run them.

mod fixed_form;

use crate::advice::{line_in_words, Advice, CallSite, Cure};
use lapscope_data::model::Nanos;
use lapscope_data::symbols::FrameName;
use lapscope_data::text::units::percent;
use lapscope_predict::whatif::buffering::ReliesOnBuffering;

/// In what a program is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    C,
    /// In which C is written.
    Cxx,
    Fortran,
    FixedFortran,
    Python,
}

/// A cure in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    pub language: Language,
    pub before: String,
    pub after: String,
}

/// A cure that is code.
#[derive(Debug, Clone, Copy)]
pub struct CodedCure {
    /// `None`: it is no advice, but of calls that rely on buffering.
    cure: Option<Cure>,
    /// In the templates.
    pub key: &'static str,
    pub does: &'static str,
}

/// All of them.
pub const CURES: [CodedCure; 10] = [
    coded(Cure::Test, "test", "Test now and then while computing, so that messages move"),
    coded(
        Cure::WaitTogether,
        "wait_together",
        "Complete sends together with receives, not one by one",
    ),
    coded(
        Cure::WaitBehind,
        "wait_behind",
        "Complete sends after the receives, and after other work",
    ),
    coded(Cure::PostReceiveEarlier, "post_receive_earlier", "Post receives before computing"),
    coded(Cure::MakeNonblocking, "make_nonblocking", "Send without waiting for the receiver"),
    coded(
        Cure::ProgressTarget,
        "progress_target",
        "Enter MPI now and then where others wait for it",
    ),
    coded(Cure::CallEarlier, "call_earlier", "End an epoch before computing"),
    COLLECTIVE,
    SENDRECV,
    RECEIVE_FIRST,
];
/// [`Cure::Test`] of a collective.
const COLLECTIVE: CodedCure = CodedCure {
    cure: None,
    key: "test_collective",
    does: "Test a collective now and then in the computation",
};
const SENDRECV: CodedCure = CodedCure {
    cure: None,
    key: "sendrecv",
    does: "Send and receive in one call, which relies on no buffering",
};
const RECEIVE_FIRST: CodedCure = CodedCure {
    cure: None,
    key: "receive_first",
    does: "Post the receive before what waits for the other, which relies on no buffering",
};

const fn coded(cure: Cure, key: &'static str, does: &'static str) -> CodedCure {
    CodedCure { cure: Some(cure), key, does }
}

impl Language {
    /// Those of which the code differs.
    pub const ALL: [Language; 4] =
        [Language::C, Language::Fortran, Language::FixedFortran, Language::Python];

    /// By the suffix of a source file; C where that says nothing.
    pub fn of_file(file: &str) -> Language {
        let suffix = file.rsplit_once('.').map_or("", |(_, suffix)| suffix);
        if suffix == "C" {
            return Language::Cxx;
        }
        match suffix.to_ascii_lowercase().as_str() {
            "cpp" | "cc" | "cxx" | "c++" | "hpp" | "hh" | "hxx" | "cu" => Language::Cxx,
            "f" | "for" | "ftn" | "f77" | "fpp" => Language::FixedFortran,
            "f90" | "f95" | "f03" | "f08" | "f18" => Language::Fortran,
            "py" | "pyx" => Language::Python,
            _ => Language::C,
        }
    }

    /// Behind a line of code.
    fn comment(self, text: &str) -> String {
        match self {
            Language::C | Language::Cxx => format!(" /* {text} */"),
            Language::Fortran | Language::FixedFortran => format!(" ! {text}"),
            Language::Python => format!("  # {text}"),
        }
    }

    /// A non-blocking collective up to its request: that of the program by its name alone, else one as an example.
    fn collective(self, post: &str) -> String {
        let (begin, example) = match self {
            Language::Python => ("comm.I", "allreduce(out, into"),
            Language::Fortran | Language::FixedFortran => {
                ("call MPI_I", "allreduce(out, in, count, MPI_DOUBLE_PRECISION, MPI_SUM, comm")
            }
            Language::C | Language::Cxx => {
                ("MPI_I", "allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm")
            }
        };
        let call = post.split(' ').next().and_then(|word| word.strip_prefix("MPI_I"));
        match call {
            // mpi4py has one name for calls of small and of large counts
            Some(call) if self == Language::Python => {
                format!("{begin}{}(...", call.trim_end_matches("_c"))
            }
            Some(call) => format!("{begin}{call}(..."),
            None => format!("{begin}{example}"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cxx => "C++",
            Language::Fortran => "Fortran",
            Language::FixedFortran => "fixed-form Fortran",
            Language::Python => "Python",
        }
    }

    fn templates(self) -> &'static str {
        match self {
            Language::C | Language::Cxx => include_str!("how/cures.c"),
            Language::Fortran | Language::FixedFortran => include_str!("how/cures.f90"),
            Language::Python => include_str!("how/cures.py"),
        }
    }
}

/// How the advice looks in the program; `None`: it is no change of code.
pub fn snippet(advice: &Advice) -> Option<Snippet> {
    let first = advice.change.first().unwrap_or(&advice.waiting);
    let CodedCure { key, .. } = match advice.cure {
        Cure::Test if is_collective(&first.call) => COLLECTIVE,
        cure => CURES.into_iter().find(|it| it.cure == Some(cure))?,
    };
    let last = advice.change.last().unwrap_or(&advice.waiting);
    let interval = interval(advice.evidence.mean_reference_ns);
    let place = |it: &CallSite| place(&it.call, it.site.as_ref());
    let lines = advice.computes.as_ref().filter(|_| !advice.is_in_python());
    let line = lines.and_then(|computes| computes.found.lines.first());
    let line = line.map(|line| {
        format!("{}: {} of that computation", line_in_words(line), percent(line.share))
    });
    let language = language_of(first.site.as_ref());
    Some(fill(key, language, [&place(first), &place(last)], line.as_deref(), interval))
}

/// How calls that rely on buffering look without, and what each of these does.
pub fn without_buffering(relies: &ReliesOnBuffering) -> Vec<(&'static str, Snippet)> {
    let mut senders = relies.cycle.iter().zip(&relies.sends).filter(|(_, sends)| **sends);
    let Some((first, _)) = senders.next() else { return Vec::new() };
    let in_one = relies.sends.iter().all(|sends| *sends).then_some(SENDRECV);
    let place = place(&first.call, first.site.as_ref());
    let language = language_of(first.site.as_ref());
    let code =
        |it: CodedCure| (it.does, fill(it.key, language, [&place, &place], None, interval(None)));
    in_one.into_iter().chain([RECEIVE_FIRST]).map(code).collect()
}

/// Whether a post is of a collective: all others send or receive.
fn is_collective(call: &str) -> bool {
    call.starts_with("MPI_I") && !["send", "recv"].iter().any(|word| call.contains(word))
}

fn language_of(site: Option<&FrameName>) -> Language {
    Language::of_file(site.and_then(|site| site.file.as_deref()).unwrap_or_default())
}

/// The cure by its key in the templates, with nothing of a program in it.
pub fn template(key: &str, language: Language) -> Snippet {
    fill(key, language, ["post", "wait"], None, interval(None))
}

/// Seconds between two tests: some ten in a transfer, and no more often than costs nothing.
fn interval(transfer: Option<Nanos>) -> f64 {
    const IN_A_TRANSFER: f64 = 10.0;
    let (least, usual, most) = (50e-6, 500e-6, 5e-3);
    transfer.map_or(usual, |ns| (ns.0 as f64 / 1e9 / IN_A_TRANSFER).clamp(least, most))
}

/// "MPI_Irecv exchange halo.c:76"
fn place(call: &str, site: Option<&FrameName>) -> String {
    let place = site.map(|site| format!(" {}", site.short()));
    format!("{call}{}", place.unwrap_or_default())
}

/// `line`: where the program computes, as far as that is known.
fn fill(
    key: &str,
    language: Language,
    [post, wait]: [&str; 2],
    line: Option<&str>,
    interval: f64,
) -> Snippet {
    let text = language.templates();
    let part = |which: &str| {
        let heading = format!("== {key}: {which}");
        let lines = text.lines().skip_while(|line| !line.contains(&heading)).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| !line.contains("== ")).collect();
        let text = lines.join("\n");
        let seconds = format!("{interval:.1e}");
        let line = line.map(|line| language.comment(line)).unwrap_or_default();
        let text = text.replace(" @line", &line).replace("@interval", &seconds);
        let text = text.replace("@collective", &language.collective(post));
        // a synchronous send stays one
        let text = match post.starts_with("MPI_Ssend") || post.starts_with("MPI_Issend") {
            true => text.replace("Isend(", "Issend(").replace("Send(", "Ssend("),
            false => text,
        };
        let yours = format!("your {post}");
        let (receive, send) = match post.to_ascii_lowercase().contains("send") {
            true => (String::new(), language.comment(&yours)),
            false => (language.comment(&yours), String::new()),
        };
        let text = text.replace(" @receive", &receive).replace(" @send", &send);
        let text = text.replace("@post", &yours).replace("@wait", &format!("your {wait}"));
        if language == Language::FixedFortran {
            fixed_form::rewrite(&text)
        } else {
            text
        }
    };
    Snippet { language, before: part("before"), after: part("after") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cure_has_code_in_every_language() {
        for CodedCure { key, .. } in CURES {
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
    fn a_place_stands_beside_a_call_of_its_kind() {
        for (post, call) in
            [("MPI_Isend f a.c:3", "MPI_Isend("), ("MPI_Irecv f a.c:3", "MPI_Irecv(")]
        {
            let code =
                fill("test", Language::C, [post, "MPI_Waitall f a.c:9"], None, interval(None));
            let line = code.after.lines().find(|line| line.contains(post)).unwrap();
            assert!(
                line.starts_with(call) && line.ends_with(&format!("/* your {post} */")),
                "{line}"
            );
        }
    }

    #[test]
    fn a_synchronous_send_stays_one() {
        for language in Language::ALL {
            let place = "MPI_Ssend_c f a:3";
            let code = fill("make_nonblocking", language, [place, place], None, interval(None));
            let calls = ["Ssend(out", "Issend(out"]
                .map(|call| (code.before.contains(call), code.after.contains(call)));
            assert_eq!(calls, [(true, false), (false, true)], "{language:?}: {code:?}");
        }
    }

    #[test]
    fn large_calls_have_the_names_of_their_language() {
        let code = |language: Language| language.collective("MPI_Iallreduce_c f a:3");
        let names = [Language::C, Language::Python].map(code);
        assert_eq!(names, ["MPI_Iallreduce_c(...", "comm.Iallreduce(..."]);
    }

    #[test]
    fn languages_are_known_by_suffixes() {
        let of = Language::of_file;
        assert_eq!(
            [of("a.F90"), of("b/halo.py"), of("c.c"), of("")],
            [Language::Fortran, Language::Python, Language::C, Language::C]
        );
        for file in ["a.cpp", "a.cc", "a.cxx", "a.C"] {
            assert_eq!(of(file), Language::Cxx, "{file}");
        }
        for file in ["a.f", "a.F", "a.for", "a.FOR"] {
            assert_eq!(of(file), Language::FixedFortran, "{file}");
        }
    }

    #[test]
    fn some_ten_tests_are_made_in_a_transfer() {
        assert_eq!(interval(Some(Nanos(20_000_000))), 2e-3);
        assert_eq!([interval(Some(Nanos(1_000))), interval(None)], [50e-6, 500e-6]);
    }
}
