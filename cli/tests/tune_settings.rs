//! `lapscope tune` among settings of the MPI, with a launcher that runs nothing: it takes longer or shorter by what is set.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::fixture::{printed, text};
use crate::tune::{answer, command, launcher, PLAIN};
use lapscope_fixture::edit_rank;
use lapscope_fixture::tables::Cvar;
use serde_json::Value;
use tempfile::TempDir;

const THREAD: &str = "OMPI_MCA_btl_tcp_progress_thread";
const EAGER: &str = "OMPI_MCA_btl_tcp_eager_limit";

/// The launcher of a program whose messages of 1 MiB stand still, over TCP. `bare` is what it does without lapscope.
fn place(bare: &str) -> TempDir {
    let place = launcher("");
    let runs = place.path().join("runs");
    let script = format!(
        "#!/bin/sh\nruns={}
         [ -z \"$LAPSCOPE_DIR\" ] || {{ mkdir \"$LAPSCOPE_DIR\" && exec cp $runs/off/*.db \"$LAPSCOPE_DIR\"; }}
         echo \"thread=${THREAD} eager=${EAGER}\" >>$runs/bare\n{bare}\n",
        runs.display()
    );
    fs::write(place.path().join("mpirun"), script).unwrap();
    PLAIN.write(&runs.join("off"));
    let over_tcp =
        [("btl", "tcp,self"), ("btl_tcp_eager_limit", "65536"), ("btl_tcp_progress_thread", "0")];
    for rank in 0..2 {
        edit_rank(&runs.join("off"), rank, |file| {
            over_tcp.into_iter().for_each(|(name, value)| {
                file.insert(Cvar { name, value });
            });
        });
    }
    place
}

fn search(place: &TempDir, arguments: &[&str]) -> Value {
    answer(place, &[&["--no-injection"], arguments].concat())
}

/// What launches without lapscope had set, each so often.
fn launches(place: &TempDir, set: &str) -> usize {
    let text = fs::read_to_string(place.path().join("runs/bare")).unwrap_or_default();
    text.lines().filter(|line| *line == set).count()
}

fn tried<'a>(settings: &'a Value, name: &str) -> &'a Value {
    let is_one =
        |row: &&Value| row["variables"][0]["name"] == name && row["is_combination"] == false;
    settings["tried"].as_array().unwrap().iter().find(is_one).unwrap()
}

/// With the thread it takes a sixth of the time, with the limit it fails.
const THREAD_GAINS: &str =
    "[ -z \"$OMPI_MCA_btl_tcp_eager_limit\" ] || { echo no such limit >&2; exit 3; }
     if [ -n \"$OMPI_MCA_btl_tcp_progress_thread\" ]; then sleep 0.1; else sleep 0.6; fi";

#[test]
fn what_gains_is_proved_and_what_fails_is_a_row() {
    let place = place(THREAD_GAINS);
    let found = search(&place, &[]);
    assert_eq!((&found["best_of_all"], &found["found"]), (&"settings".into(), &"not_tried".into()));
    let settings = &found["settings"];
    assert_eq!(settings["found"], "gain", "{settings:#}");
    let best = &settings["best"];
    assert_eq!(best["exports"][0], format!("export {THREAD}=1"));
    assert_eq!(best["options"], "--mca btl_tcp_progress_thread 1");
    assert_eq!(best["file"]["lines"][0], "btl_tcp_progress_thread = 1");
    let pairs = best["proof"]["pairs"].as_array().unwrap().len();
    assert!((5..=12).contains(&pairs), "{best:#}");
    let low = best["proof"]["gain"]["low"].as_f64().unwrap();
    assert!(0.0 < low && low < 0.9, "{best:#}");
    assert!(best["predicted"].as_f64().unwrap() > 0.0, "messages stand still: {best:#}");
    let failed = tried(settings, EAGER);
    assert_eq!(failed["failed"], "it failed with exit code 3: no such limit");
    assert_eq!(failed["pairs"].as_array().unwrap().len(), 0);
    let limit = failed["variables"][0]["value"].as_str().unwrap();
    assert_eq!(launches(&place, &format!("thread= eager={limit}")), 1, "it is not tried again");
    assert_eq!(launches(&place, "thread=1 eager="), 2 + pairs);
    let reason = settings["not_tried"][0]["reason"].as_str().unwrap();
    assert_eq!(reason, "Open MPI 4.1.4 could not be asked whether it has pml_ucx");
}

#[test]
fn what_loses_is_tried_once_and_the_text_says_so() {
    let place = place("if [ -n \"$OMPI_MCA_btl_tcp_progress_thread$OMPI_MCA_btl_tcp_eager_limit\" ]; then sleep 0.6; else sleep 0.1; fi");
    let text = printed(&mut command(place.path(), &["--no-injection"]));
    let none = "No setting of Open MPI 4.1.4 that was tried makes the program faster.";
    assert!(text.contains(none), "{text}");
    assert!(text.contains(&format!("{THREAD}=1\n")), "{text}");
    assert_eq!(launches(&place, "thread= eager="), 2, "{text}");
}

#[test]
fn every_run_has_its_own_copy_of_the_directory() {
    let place = place("[ ! -e output ] || exit 9; cat input >output; sleep 0.1");
    fs::write(place.path().join("input"), "of the user").unwrap();
    let found = search(&place, &["--cd-copy"]);
    assert!(tried(&found["settings"], THREAD)["failed"].is_null(), "{found:#}");
    assert!(launches(&place, "thread= eager=") >= 2);
    assert!(!place.path().join("output").exists());
}

#[test]
fn an_interrupt_keeps_what_was_learned_and_from_goes_on() {
    let place = place(&format!(
        "[ ! -e hangs -o -z \"${THREAD}\" ] || {{ trap 'exit 130' INT; : >ready; sleep 100 & wait; }}; {THREAD_GAINS}"
    ));
    fs::write(place.path().join("hangs"), "").unwrap();
    let mut command =
        command(place.path(), &["--no-injection", "--dir", "kept", "--format", "json"]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    for _ in 0..3_000 {
        if place.path().join("ready").exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a signal to the group that this test has started.
    assert_eq!(unsafe { libc::kill(-(child.id() as i32), libc::SIGINT) }, 0);
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("to go on: lapscope tune --from kept"), "{said}");
    let first: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(first["is_interrupted"], true);
    assert_eq!(first["settings"]["stopped"], "interrupt");

    fs::remove_file(place.path().join("hangs")).unwrap();
    let limit = |found: &Value| tried(&found["settings"], EAGER)["failed"].clone();
    let on = search(&place, &["--from", "kept"]);
    assert_eq!(on["settings"]["found"], "gain", "{on:#}");
    assert_eq!(limit(&on), "it failed with exit code 3: no such limit");
    let text = fs::read_to_string(place.path().join("runs/bare")).unwrap();
    let of_limit = text.lines().filter(|line| !line.ends_with("eager=")).count();
    assert_eq!(of_limit, 1, "what has failed is not tried again: {text}");
}
