//! Python programs: calls are named by lines of Python, whatever lies between these and MPI. The snapshots are what the user guide
//! shows of `examples/halo/halo.py`.

use std::fs;
use std::path::PathBuf;

use crate::fixture::{answer, json};
use lapscope_fixture::messages::{Rows, What};
use lapscope_fixture::tables::{Frame, Module, Rank, Sample, SamplePost, Sampler};
use lapscope_fixture::{call_id, edit_rank, Fixture, FIRST_TOUCH, SECOND_TOUCH};
use tempfile::TempDir;

const US: i64 = 1_000;
const MS: i64 = 1_000 * US;
const BYTES: i64 = 2 << 20;
const UNDISTURBED: i64 = 6;
const STEPS: i64 = 40;
/// Of the exchange alone, and of the computation beside it.
const TRANSFER: i64 = 21 * MS;
const COMPUTE: i64 = 34 * MS;

fn program() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../examples/halo/halo.py").canonicalize().unwrap()
}

/// The exchange a few times with nothing beside it, then in each step with computation, in which it stands still.
fn rows(rank: i64) -> (Rows, i64) {
    let (mut rows, mut now) = (Rows::default(), MS);
    let peer = 1 - rank;
    let send: What = ("MPI_Isend", "send", BYTES, peer, 1);
    let receive: What = ("MPI_Irecv", "recv", BYTES, peer, 1);
    for step in 0..UNDISTURBED + STEPS {
        let posts = [(receive, now, 4 * US, 0), (send, now + 6 * US, 9 * US, 0)];
        let compute = if step < UNDISTURBED { 0 } else { COMPUTE + step % 5 * 90 * US };
        let wait = TRANSFER + step % 7 * 30 * US;
        let begin = now + 20 * US + compute;
        rows.complete("MPI_Waitall", begin, wait, &posts);
        now = begin + wait + if compute > 0 { 2 * MS } else { 50 * US };
    }
    (rows, now)
}

/// The line of the program that has these words.
fn line(words: &str) -> i64 {
    let source = fs::read_to_string(program()).unwrap();
    let at = source.lines().position(|line| line.contains(words));
    at.unwrap_or_else(|| panic!("{words}")) as i64 + 1
}

/// Call paths as the recorder leaves them, innermost first: mpi4py's extension, then lines of Python.
fn put_lines(file: &Fixture) {
    let path = program();
    let path = path.to_str().unwrap();
    let add =
        |path: &str, build_id: &str| file.insert(Module { path, build_id, ..Module::default() });
    let layer = add("/nowhere/site-packages/mpi4py/MPI.cpython-313-x86_64-linux-gnu.so", "cc33");
    let [post, step, main] =
        ["python:post_exchange", "python:step", "python:<module>"].map(|name| add(path, name));
    let (posting, calling) = (line("= post_exchange(now)"), line("    step(now, then)"));
    let within = [(step, posting), (main, calling)];
    let paths: [(i64, &[(i64, i64)]); 3] = [
        (1, &[(post, line("comm.Isend(now[1]")), within[0], within[1]]),
        (2, &[(post, line("comm.Irecv(now[0]")), within[0], within[1]]),
        (3, &[(step, line("MPI.Request.Waitall")), within[1]]),
    ];
    for (call_path_id, lines) in paths {
        file.change(&format!("DELETE FROM frame WHERE call_path_id = {call_path_id}"));
        let frame = |depth, module_id, address| {
            file.insert(Frame { call_path_id, depth, module_id: Some(module_id), address });
        };
        frame(0, layer, 0x900);
        for (depth, &(module, line)) in (1..).zip(lines) {
            frame(depth, module, line << 12);
        }
    }
}

fn run() -> TempDir {
    let run = tempfile::tempdir().unwrap();
    for number in 0..2 {
        let (rows, end_ns) = rows(number);
        let rank = Rank { end_ns: end_ns + MS, world_size: 2, ..Rank::plain(number) };
        rank.write(run.path(), |file| {
            rows.write(file);
            put_lines(file);
        });
    }
    run
}

#[test]
fn lines_of_python_are_named_and_told_to_test() {
    let run = run();
    insta::assert_snapshot!("python_report", answer(run.path(), &["report", "."]));
    insta::assert_snapshot!("python_how", answer(run.path(), &["report", "--how", "."]));
}

/// Through a library of which no line is known, as PETSc's: the line that called it, and it itself where wrappers are not wanted.
#[test]
fn a_library_between_python_and_mpi_leaves_the_line() {
    let run = run();
    for rank in 0..2 {
        edit_rank(run.path(), rank, |file| {
            file.change("UPDATE frame SET module_id = 1, address = 4660 WHERE depth = 0 AND call_path_id = 3");
        });
    }
    let waits = |options: &[&str]| {
        let report = json(run.path(), &[&["report", "."], options].concat());
        let sites = report["completing_sites"].as_array().unwrap();
        sites
            .iter()
            .map(|site| site["site"]["file"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(waits(&[]), [Some(program().to_str().unwrap().to_owned())]);
    assert_eq!(waits(&["--wrapper", "none"]), [None]);
}

/// Machine code is no place for a test: neither that of the interpreter nor NumPy's.
#[test]
fn samples_of_python_programs_are_of_the_interpreter_and_of_libraries() {
    let run = run();
    for rank in 0..2 {
        edit_rank(run.path(), rank, |file| {
            file.change("UPDATE module SET path = '/nowhere/bin/python3.13' WHERE id = 1");
            let module_id = file.insert(Module { path: "/nowhere/umath.so", ..Module::default() });
            let of_library = format!("call_path_id = {SECOND_TOUCH}");
            file.change(&format!("UPDATE frame SET module_id = {module_id} WHERE {of_library}"));
            file.insert(Sampler { rate_hz: 199, ..Sampler::default() });
            for (call_path_id, count) in [(FIRST_TOUCH, 150), (SECOND_TOUCH, 50)] {
                let sample_id = file.insert(Sample { call_path_id, count, ..Sample::default() });
                let (call_id, call_path_id) = (call_id("MPI_Irecv"), Some(2));
                file.insert(SamplePost { sample_id, call_id, call_path_id });
            }
        });
    }
    let report = json(run.path(), &["report", "."]);
    let expected = "Samples see no line of Python: that computation is in Python's interpreter (75.0 %), umath.so+0x800 \
                    (25.0 %), of 400 samples. Test in the loop of Python between the two calls that comes there.";
    assert_eq!(report["advice"][0]["computes"]["sentence"], expected);
    let code = answer(run.path(), &["report", "--how", "."]);
    assert!(code.contains("compute(block)\n") && !code.contains("of that computation"), "{code}");
    assert!(code.contains("Samples see no line of Python: advice names the calls"), "{code}");
}
