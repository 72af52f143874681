//! The code of `lapscope help cures`, as people would paste it: all of it compiles, runs, and brings the data where they belong.

use std::fs;
use std::path::{Path, PathBuf};

use lapscope_tests::launch::{lapscope, place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::{child, paths};

/// A piece of code: what it does, and its lines.
struct Piece {
    does: String,
    code: Vec<String>,
}

impl Piece {
    fn has_epoch(&self) -> bool {
        self.does.starts_with("End an epoch")
    }

    /// A computation that others wait for receives nothing itself, and a collective something else.
    fn receives(&self) -> bool {
        !["Enter MPI", "Test a collective"].iter().any(|does| self.does.starts_with(does))
    }

    fn indented(&self, by: usize) -> String {
        self.code.iter().map(|line| format!("{}{line}\n", " ".repeat(by))).collect()
    }
}

/// All pieces in a language, before and after.
fn pieces(language: &str) -> Vec<Piece> {
    let (mut does, mut spoken, mut pieces) = (String::new(), String::new(), Vec::<Piece>::new());
    for line in lapscope(["help", "cures"]).lines() {
        if let Some(code) = line.strip_prefix("      ") {
            if spoken == language {
                pieces.last_mut().expect("a heading").code.push(code.to_owned());
            }
        } else if let Some(name) = line.strip_prefix("  in ") {
            name.clone_into(&mut spoken);
        } else if line == "  before" || line == "  after" {
            if spoken == language {
                pieces.push(Piece { does: does.clone(), code: Vec::new() });
            }
        } else if !line.is_empty() {
            line.clone_into(&mut does);
        }
    }
    assert_eq!(pieces.len(), 20, "{language}");
    pieces
}

/// A frame with something in place of each marked line, in a directory.
fn fill(frame: &str, parts: &[(&str, String)], place: &Path) -> PathBuf {
    let text = fs::read_to_string(paths::apps().join("cures").join(frame)).expect("a frame");
    let text = parts.iter().fold(text, |text, (mark, part)| {
        assert!(text.contains(mark), "{mark}");
        text.replace(mark, part)
    });
    let check = paths::apps().join("check.h");
    let text = text.replace("../check.h", &check.display().to_string());
    let path = place.join(frame);
    fs::write(&path, text).expect("a source");
    path
}

fn compile(compiler: &str, source: &Path, options: &[&str]) -> PathBuf {
    let program = source.with_extension("program");
    let made = child::command(compiler).args(options).arg(source).arg("-o").arg(&program).output();
    let made = made.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn check(job: &Job<'_>, what: &str) {
    let outcome = job.run();
    assert_eq!((outcome.code, outcome.stdout.trim()), (0, "20 cures"), "{what}: {outcome:?}");
}

#[test]
fn in_c() {
    for mpi in share!(mpi::debian()) {
        let place = place();
        let pieces = pieces("C");
        let functions = pieces.iter().enumerate().map(|(number, piece)| {
            format!("static void cure_{number}(void)\n{{\n{}}}\n\n", piece.indented(4))
        });
        let rows = pieces.iter().enumerate().map(|(number, piece)| {
            let (epoch, receives) = (i32::from(piece.has_epoch()), i32::from(piece.receives()));
            format!("{{cure_{number}, {epoch}, {receives}}}, ")
        });
        let table =
            "static const struct { void (*function)(void); int has_epoch, receives; } cures[] = {";
        let all = functions.collect::<String>() + table + &rows.collect::<String>() + "};\n";
        let source = fill("frame.c", &[("/* CURES */", all)], place.path());
        let program = compile(mpi.compiler, &source, &["-std=gnu11", "-Wall"]);
        check(&Job::new(mpi, 2, program, Form::Bare, place.path()), mpi.name);
    }
}

#[test]
fn in_fortran() {
    share!(mpi::debian()).into_iter().for_each(|mpi| run_fortran(mpi, "Fortran", "-ffree-form"));
}

#[test]
fn in_fixed_form_fortran() {
    let run = |mpi| run_fortran(mpi, "fixed-form Fortran", "-ffixed-form");
    share!(mpi::debian()).into_iter().for_each(run);
}

fn run_fortran(mpi: &Mpi, language: &str, form: &str) {
    let place = place();
    let pieces = pieces(language);
    let columns = |piece: &Piece| piece.code.iter().map(|line| line.len()).max();
    assert!(form != "-ffixed-form" || pieces.iter().all(|it| columns(it) <= Some(72)));
    let logical = |is: bool| if is { ".true." } else { ".false." };
    let calls = pieces.iter().enumerate().map(|(number, piece)| {
            let (epoch, receives) = (logical(piece.has_epoch()), logical(piece.receives()));
            format!("      call begin({epoch})\n      call cure_{number}()\n      call finish({epoch}, {receives})\n")
        });
    let subroutines = pieces.iter().enumerate().map(|(number, piece)| {
        format!("      subroutine cure_{number}()\n{}      end subroutine\n\n", piece.indented(0))
    });
    let parts = [("! CALLS", calls.collect()), ("! CURES", subroutines.collect())];
    let source = fill("frame.f90", &parts, place.path());
    let options = [form, "-ffree-line-length-none", "-fallow-argument-mismatch"];
    let program = compile(mpi.fortran[0], &source, &options);
    check(&Job::new(mpi, 2, program, Form::Bare, place.path()), mpi.name);
}

#[test]
fn in_python() {
    for mpi in share!(mpi::with_python()) {
        let place = place();
        let pieces = pieces("Python");
        let functions = pieces
            .iter()
            .enumerate()
            .map(|(number, piece)| format!("def cure_{number}():\n{}\n\n", piece.indented(4)));
        let python = |is: bool| if is { "True" } else { "False" };
        let rows = pieces.iter().enumerate().map(|(number, piece)| {
            format!(
                "(cure_{number}, {}, {}), ",
                python(piece.has_epoch()),
                python(piece.receives())
            )
        });
        let all = functions.collect::<String>() + "CURES = [" + &rows.collect::<String>() + "]\n";
        let source = fill("frame.py", &[("# CURES", all)], place.path());
        let job =
            Job::new(mpi, 2, paths::python(mpi.name), Form::Bare, place.path()).args([source]);
        check(&job, mpi.name);
    }
}
