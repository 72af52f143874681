//! Lines in which a program computes, by samples made by hand.

use serde_json::{json, Value};
use tempfile::TempDir;

use crate::advice::{find, receiver_computes, run};
use crate::fixture::program::Program;
use crate::fixture::{answer, json as asked};
use crate::html::page;
use lapscope_fixture::tables::{Sample, SamplePost, Sampler};
use lapscope_fixture::{call_id, edit_rank, full, Fixture, FIRST_TOUCH, SECOND_TOUCH};

/// An instruction that is none of a call.
const ELSEWHERE: i64 = 4;

/// As often as that at an instruction while requests of that post were under way; or of none.
fn sample(file: &Fixture, path: i64, count: i64, post: Option<(&str, i64)>) -> i64 {
    let sample_id = file.insert(Sample { call_path_id: path, count, ..Sample::default() });
    if let Some((call, path)) = post {
        let (call_id, call_path_id) = (call_id(call), Some(path));
        file.insert(SamplePost { sample_id, call_id, call_path_id });
    }
    sample_id
}

/// Rank 1 posts a receive and computes: three quarters of it at one instruction, a quarter at another, with a thread beside it.
/// Elsewhere it was found 40 times, and rank 0 at the first instruction 60 times while its send was under way.
fn sampled(samples: i64) -> TempDir {
    let [a, b] = receiver_computes();
    let run = run([&a, &b]);
    edit_rank(run.path(), 0, |file| {
        file.insert(Sampler { rate_hz: 199, ..Sampler::default() });
        sample(file, FIRST_TOUCH, 60, Some(("MPI_Isend", 1)));
    });
    edit_rank(run.path(), 1, |file| {
        let receive = Some(("MPI_Irecv", 5));
        file.insert(Sampler { rate_hz: 199, lost: 5, other_threads: 1, ..Sampler::default() });
        sample(file, FIRST_TOUCH, samples / 4 * 3, receive);
        sample(file, SECOND_TOUCH, samples / 4, receive);
        let other = sample(file, ELSEWHERE, samples, receive);
        file.change(&format!("UPDATE sample SET thread = 'other' WHERE id = {other}"));
        sample(file, ELSEWHERE, 40, None);
    });
    run
}

fn lines(lines: &Value) -> Vec<(i64, i64, f64)> {
    let line = |it: &Value| {
        let share = it["share"].as_f64().unwrap();
        (it["place"]["address"].as_i64().unwrap(), it["samples"].as_i64().unwrap(), share)
    };
    lines["lines"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn advice_to_test_names_where_its_window_computes() {
    let run = sampled(200);
    let report = asked(run.path(), &["report", "."]);
    let computes = &find(&report, "test")["computes"];
    assert_eq!(lines(computes), [(0x700, 150, 0.75), (0x800, 50, 0.25)]);
    assert_eq!((&computes["samples"], &computes["other_threads"]), (&json!(200), &json!(1.0)));
    let expected = "While requests of these calls are under way the program computes in app+0x700 (75.0 %), app+0x800 (25.0 %), of 200 \
                    samples: test in a loop around these. Meanwhile other threads of these ranks compute, too.";
    assert_eq!(computes["sentence"], expected);
    let code = answer(run.path(), &["report", "--how", "."]);
    assert_eq!(
        code.matches("compute(block); /* app+0x700: 75.0 % of that computation */").count(),
        2
    );
}

/// All of the run: 60 + 150 at the first instruction, 50 at the second, 40 elsewhere.
#[test]
fn outside_of_mpi_has_its_lines() {
    let run = sampled(200);
    let report = asked(run.path(), &["report", "."]);
    let profile = &report["profile"];
    let outside = &profile["outside"];
    assert_eq!(
        lines(outside),
        [(0x700, 210, 0.7), (0x800, 50, 50.0 / 300.0), (0x400, 40, 40.0 / 300.0)]
    );
    let of_sampling =
        [&profile["ranks"], &profile["rate_hz"], &profile["lost"], &profile["left_out"]];
    assert_eq!(of_sampling, [2, 199, 5, 0].map(|number| json!(number)).each_ref());
    let text = answer(run.path(), &["report", "."]);
    for line in [
        "COMPUTATION  the lines with most of 300 samples outside of MPI, of 2 ranks",
        "   70.0 %  app+0x700\n   16.7 %  app+0x800\n   13.3 %  app+0x400\n",
        "Threads that make no MPI call compute meanwhile: 0.7 of a rank in the mean.",
        "5 further samples found no room",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let page = page(run.path(), &[]);
    assert!(page.contains("data-json=\"/profile/outside/lines/0/share\" data-value=\"0.7\""));
    let of_rank = asked(run.path(), &["report", "--ranks", "0", "."]);
    assert_eq!(lines(&of_rank["profile"]["outside"]), [(0x700, 60, 1.0)]);
    let of_stretch = asked(run.path(), &["report", "--to", "950us", "."]);
    assert_eq!(of_stretch["profile"], Value::Null, "samples have no moments");
}

/// A tenth of a hundred samples may be a fifth, or nothing.
#[test]
fn few_samples_name_no_lines() {
    let report = asked(sampled(96).path(), &["report", "."]);
    assert_eq!(find(&report, "test")["computes"], Value::Null);
    let report = asked(sampled(100).path(), &["report", "."]);
    assert_eq!(find(&report, "test")["computes"]["samples"], 100);
}

#[test]
fn instructions_of_one_line_are_one_and_inlined_ones_say_where() {
    const SOURCE: &str = "static inline __attribute__((always_inline)) void relax(double *x)\n{\n    *x = *x * 0.5 + 1;\n}\n\
                          void step(double *x)\n{\n    relax(x);\n    *x = *x + 2;\n}\n";
    let run = sampled(200);
    let program = Program::new(SOURCE);
    for rank in [0, 1] {
        edit_rank(run.path(), rank, |file| {
            program.put_frames(file, &[(FIRST_TOUCH, 3), (ELSEWHERE, 8)]);
            program.put_frame(file, SECOND_TOUCH, 3, 15);
        });
    }
    let report = asked(run.path(), &["report", "."]);
    let sentence = find(&report, "test")["computes"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("the program computes in relax x.c:3 (inlined into step x.c:7) (100.0 %), of 200 samples"), "{sentence}");
    let outside = &report["profile"]["outside"]["lines"];
    let named = |at: usize| {
        (outside[at]["place"]["function"].clone(), outside[at]["place"]["line"].clone())
    };
    assert_eq!([named(0), named(1)], [(json!("relax"), json!(3)), (json!("step"), json!(8))]);
    assert_eq!(outside[0]["inlined_into"][0]["line"], 7);
}

#[test]
fn a_run_without_samples_says_once_how_they_are_taken() {
    let [a, b] = receiver_computes();
    let run = run([&a, &b]);
    let text =
        answer(run.path(), &["report", "."]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        text.matches("lapscope run --sample names the lines of that computation").count(),
        1
    );
    assert!(!text.contains("COMPUTATION"));
    assert_eq!(asked(run.path(), &["report", "."])["profile"], Value::Null);
    assert!(!answer(sampled(200).path(), &["report", "."]).contains("--sample"));
}

#[test]
fn ranks_that_took_none_say_why() {
    let run = sampled(200);
    edit_rank(run.path(), 0, |file| {
        file.change("UPDATE sampler SET problem = 'it is forbidden'; DELETE FROM sample_post; DELETE FROM sample")
    });
    let report = asked(run.path(), &["report", "."]);
    let problem = json!([{ "problem": "it is forbidden", "ranks": [0] }]);
    assert_eq!(
        (&report["profile"]["ranks"], &report["profile"]["problems"]),
        (&json!(1), &problem)
    );
    assert!(answer(run.path(), &["report", "."]).contains("No samples on rank 0: it is forbidden."));
}

/// Files from before there were samples.
#[test]
fn files_without_the_tables_are_read_as_if_these_were_empty() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for directory in [&old, &new] {
        full::write(directory.path());
    }
    let tables = ["sample_post", "sample", "sampler"];
    for rank in [0, 1] {
        edit_rank(old.path(), rank, |file| {
            tables.iter().for_each(|table| file.change(&format!("DROP TABLE {table}")))
        });
        edit_rank(new.path(), rank, |file| {
            tables.iter().for_each(|table| file.change(&format!("DELETE FROM {table}")))
        });
    }
    for line in [
        &["report", ".", "--format", "json"][..],
        &["sql", ".", "SELECT * FROM sample JOIN sample_post ON sample_id = id"],
        &["sql", "rank-0.db", "SELECT count(*) FROM sampler"],
    ] {
        assert_eq!(answer(old.path(), line), answer(new.path(), line), "{line:?}");
    }
    // one of each kind, side by side and together
    std::fs::copy(new.path().join("rank-1.db"), old.path().join("rank-1.db")).unwrap();
    let count = ["sql", ".", "SELECT count(*) AS samples FROM sample"];
    assert_eq!(answer(old.path(), &count), answer(new.path(), &count));
    answer(old.path(), &["export", "sqlite", ".", "-o", "all.db"]);
    assert_eq!(answer(old.path(), &["sql", "all.db", count[2]]), answer(new.path(), &count));
}
