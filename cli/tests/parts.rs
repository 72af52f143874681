//! A run looked at in parts says the same as one looked at as a whole, to the last digit.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fixture::bare;
use crate::html::page;
use lapscope_fixture::random::Random;
use lapscope_fixture::tables::{
    Call, DeviceBusy, DeviceRecorder, Operation, Rank, Request, Setting, Starvation, Thread,
};
use lapscope_fixture::{edit_rank, share, Fixture};
use lapscope_report::pipeline::pictures::{self, TimelineChoice};
use lapscope_report::pipeline::resources::Resources;
use lapscope_report::pipeline::OpenRun;
use lapscope_report::report::ReportOptions;
use serde_json::Value;

const RANKS: usize = 9;
const RANKS_PER_HOST: usize = 3;
const STEPS: usize = 120;
const PLAIN: usize = 60;
const EPOCH_UNIX_NS: i64 = 1_700_000_000_000_000_000;
/// By how much the clocks of hosts are ahead.
const LEADS_NS: [i64; 3] = [0, 3_000_000, -20_000_000];

/// What each rank writes, in the order in which it happens.
struct Writer<'a> {
    file: &'a Fixture,
    rank: usize,
}

impl Writer<'_> {
    fn call(&self, operation_id: i64, (begin_ns, end_ns): (i64, i64), completed: i64) -> i64 {
        let duration_ns = Some(end_ns - begin_ns);
        let thread_id = if self.is_threaded() { 1 + begin_ns % 2 } else { 1 };
        let call =
            Call { thread_id, operation_id, begin_ns, duration_ns, completed, ..Call::default() };
        self.file.insert(call)
    }

    /// Whether two threads make its calls.
    fn is_threaded(&self) -> bool {
        self.rank % 4 == 1
    }

    fn request(&self, operation: Operation<'static>, completion: i64, begin_ns: i64) {
        let operation_id = self.file.insert(operation.waited());
        self.file.insert(Request {
            operation_id,
            completion_id: Some(completion),
            post_begin_ns: begin_ns,
            post_ns: 300,
            mpi_ns: Some(400),
            ..Request::default()
        });
    }

    /// Two of three ranks use a GPU, all but one of these on record. Kernels begin in computation and run on beside waits.
    fn gpus(&self, steps: &[Step]) {
        if self.rank % 3 == 2 {
            return;
        }
        self.file.insert(Setting { name: "accelerator", value: "libcuda", source: "recorded" });
        if self.rank == 4 {
            return;
        }
        self.file.insert(DeviceRecorder { source: "libcupti.so.12", ..DeviceRecorder::default() });
        for step in steps.iter().skip(self.rank).step_by(2) {
            let (begin_ns, end_ns) = (step.waits[self.rank] - 1_500, step.done[self.rank] - 400);
            let (device, work) = (step.number as i64 % 2, "kernel");
            let busy_ns = (end_ns - begin_ns) * 2 / 3;
            let busy = DeviceBusy { device, work, begin_ns, end_ns, busy_ns };
            self.file.insert(busy);
        }
    }

    /// A message to one neighbour and one from another, computation, and a wait for both.
    fn step(&self, step: &Step) {
        let wait = self.file.insert(Operation::other_call("MPI_Waitall", 3));
        let call = self.call(wait, (step.waits[self.rank], step.done[self.rank]), 2);
        let (to, from) = step.neighbors(self.rank);
        let begin = step.begins[self.rank];
        let tag = (step.number % 3) as i64;
        let receive = Operation::receive("MPI_Irecv", 1, (step.bytes, from as i64, tag));
        self.request(receive, call, begin);
        let send = Operation::send("MPI_Isend", 2, (step.bytes, to as i64, tag));
        self.request(send, call, begin + 400);
    }

    /// Messages that were waited for, and barriers at once, behind all steps: for reference times.
    fn plain_messages(&self, from: i64) {
        let (to, source) = ((self.rank + 1) % RANKS, (self.rank + RANKS - 1) % RANKS);
        for number in 0..PLAIN as i64 {
            let begin = from + number * 1_000_000;
            let message = |peer: usize| (1i64 << (number % 22), peer as i64, 7);
            let takes = 4_000 + (1i64 << (number % 22)) / 10;
            let receive = Operation::receive("MPI_Recv", 5, message(source));
            let send = Operation::send("MPI_Send", 6, message(to));
            let barrier = Operation::collective("MPI_Barrier", 4);
            // odd ranks and the last receive first
            let (first, second) = (begin, begin + 400_000);
            let receives_first = self.rank % 2 == 1;
            let at = |is_first: bool| if is_first { first } else { second };
            let received = at(receives_first);
            self.call(self.file.insert(receive), (received - 3_000, received + takes), 0);
            let sent = at(!receives_first);
            self.call(self.file.insert(send), (sent, sent + takes), 0);
            let all = begin + 900_000;
            let call = (all + self.rank as i64 * 20, all + 9_000);
            self.call(self.file.insert(barrier), call, 0);
        }
    }

    /// Messages that come long before their receives, behind all others: three between ranks of one node, and one that nobody
    /// receives. A receive that nothing is sent for, and a persistent request that is not freed.
    fn left_over(&self, from: i64) {
        let early = |number: i64| from + number * 2_000;
        match self.rank {
            3 => {
                for number in 0..3 {
                    let send = Operation::send("MPI_Send", 2, (2 << 20, 4, 55));
                    self.call(self.file.insert(send), (early(number), early(number) + 900), 0);
                }
                let lost = Operation::send("MPI_Send", 2, (8, 7, 66));
                self.call(self.file.insert(lost), (early(3), early(3) + 900), 0);
            }
            4 => {
                for number in 0..3 {
                    let late = from + 500_000 + number * 20_000;
                    let receive = Operation::receive("MPI_Recv", 1, (2 << 20, 3, 55));
                    self.call(self.file.insert(receive), (late, late + 9_000), 0);
                }
            }
            5 => {
                let made = Operation::other_call("MPI_Send_init", 1);
                self.call(self.file.insert(made), (early(0), early(0) + 100), 0);
            }
            8 => {
                let receive = Operation::receive("MPI_Irecv", 1, (8, 0, 77));
                let operation_id =
                    self.file.insert(Operation { ended: Some("pending"), ..receive });
                let post_begin_ns = early(0);
                self.file.insert(Request { operation_id, post_begin_ns, ..Request::default() });
            }
            _ => {}
        }
    }

    /// All meet: blocking or not, with a root or without.
    fn meet(&self, step: &Step, name: &'static str) {
        let (begin, end) = (step.done[self.rank] + 500, step.met + self.rank as i64 * 50);
        let root = (name == "MPI_Bcast").then_some((step.number % RANKS) as i64);
        let operation = Operation { bytes: 64, peer: root, ..Operation::collective(name, 4) };
        if name.starts_with("MPI_I") {
            let wait = self.file.insert(Operation::other_call("MPI_Wait", 5));
            let call = self.call(wait, (begin + 20_000, end + 20_000), 1);
            self.request(operation, call, begin);
        } else {
            self.call(self.file.insert(operation), (begin, end), 0);
        }
    }
}

/// What happens between two meetings, on one clock, nanoseconds.
struct Step {
    number: usize,
    bytes: i64,
    distance: usize,
    begins: Vec<i64>,
    waits: Vec<i64>,
    done: Vec<i64>,
    met: i64,
}

impl Step {
    fn new(number: usize, from: i64, random: &mut Random) -> Step {
        let distance = 1 + random.below(4) as usize;
        let bytes = 1 << random.below(22);
        let begins: Vec<i64> = (0..RANKS).map(|_| from + random.below(60_000)).collect();
        let waits: Vec<i64> =
            begins.iter().map(|begin| begin + 2_000 + random.below(150_000)).collect();
        let mut step = Step { number, bytes, distance, begins, waits, done: Vec::new(), met: 0 };
        let transfer = 5_000 + bytes / 10;
        step.done = (0..RANKS)
            .map(|rank| {
                let (to, from) = step.neighbors(rank);
                let posted = step.begins[to].max(step.begins[from]).max(step.begins[rank]);
                (posted + 700 + transfer).max(step.waits[rank] + 500) + random.below(3_000)
            })
            .collect();
        step.met = step.done.iter().max().unwrap() + 8_000;
        step
    }

    fn neighbors(&self, rank: usize) -> (usize, usize) {
        ((rank + self.distance) % RANKS, (rank + RANKS - self.distance) % RANKS)
    }
}

const MEETINGS: [&str; 4] = ["MPI_Allreduce", "MPI_Bcast", "MPI_Ibarrier", "MPI_Barrier"];

/// What happens, and when that has ended.
fn steps() -> (Vec<Step>, i64) {
    let mut random = Random(16);
    let mut steps = Vec::new();
    let mut now = 1_000_000;
    for number in 0..STEPS {
        let step = Step::new(number, now, &mut random);
        now = step.met + 60_000;
        steps.push(step);
    }
    (steps, now)
}

/// Nine ranks on three hosts whose clocks differ. They exchange, and meet every third step.
fn write(directory: &Path) {
    let (steps, now) = steps();
    for rank in 0..RANKS {
        let host = format!("host{}", rank / RANKS_PER_HOST);
        let rank_ends = now + PLAIN as i64 * 1_000_000;
        let whole = Rank {
            world_size: RANKS as i64,
            host: &host,
            epoch_unix_ns: EPOCH_UNIX_NS + LEADS_NS[rank / RANKS_PER_HOST],
            end_ns: rank_ends,
            ..Rank::plain(rank as i64)
        };
        whole.write(directory, |file| {
            file.change(&format!("UPDATE communicator SET size = {RANKS}"));
            let writer = Writer { file, rank };
            if writer.is_threaded() {
                file.insert(Thread { id: Some(2), ..Thread::default() });
            }
            for step in &steps {
                writer.step(step);
                if step.number % 3 == 2 {
                    writer.meet(step, MEETINGS[step.number / 3 % MEETINGS.len()]);
                }
            }
            for step in steps.iter().skip(rank).step_by(11) {
                let (begin_ns, end_ns) = (step.begins[rank], step.done[rank] + 400);
                let wait_ns = (end_ns - begin_ns) / 2;
                file.insert(Starvation { begin_ns, end_ns, wait_ns });
            }
            writer.plain_messages(now);
            writer.gpus(&steps);
        });
    }
}

fn run() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    directory
}

fn answer(command: &str, run: &Path, more: &[&str]) -> String {
    let run = run.to_str().unwrap();
    let line: Vec<&str> = [command, run, "--format", "json"].iter().chain(more).copied().collect();
    let mut command = bare(&line);
    crate::fixture::printed(command.env("LAPSCOPE_CALIBRATION_DIR", "/nowhere/at/all"))
}

/// Answers are long: shows where they begin to differ.
fn check_same(whole: &str, in_parts: &str, case: &str) {
    let differs = whole.bytes().zip(in_parts.bytes()).position(|(a, b)| a != b);
    let at = differs.unwrap_or(whole.len().min(in_parts.len())).saturating_sub(200);
    let shown = |text: &str| text.chars().skip(at).take(500).collect::<String>();
    assert!(whole == in_parts, "{case}:\n{}\n{}", shown(whole), shown(in_parts));
}

#[test]
fn the_answer_does_not_depend_on_the_parts() {
    let directory = run();
    let counts = share!(0, vec!["7", "1", "64", "2"]);
    for command in ["report", "overlap", "thresholds"] {
        let whole = answer(command, directory.path(), &[]);
        assert!(whole.len() > 1_000, "{whole}");
        for parts in &counts {
            let in_parts = answer(command, directory.path(), &["--parts", parts]);
            check_same(&whole, &in_parts, &format!("{command} in {parts} parts"));
        }
    }
}

#[test]
fn messages_collectives_clocks_and_processors_are_in_the_answer() {
    let directory = run();
    let overlap = answer("overlap", directory.path(), &["--parts", "4"]);
    let overlap: Value = serde_json::from_str(&overlap).unwrap();
    assert!(overlap["matching"]["messages"].as_u64().unwrap() >= (RANKS * STEPS) as u64);
    assert_eq!(overlap["clocks"]["clocks"], 3);
    let offset = overlap["clocks"]["corrections"][1]["offset_ns"].as_i64().unwrap();
    assert!((offset - LEADS_NS[2]).abs() < 50_000, "{offset}");
    assert!(overlap["totals"]["exposed_no_processor_ns"].as_i64().unwrap() > 0);
    assert!(overlap["reference"]["collectives"]["samples"].as_u64().unwrap() > 0);
    assert!(overlap["totals"]["measured"].as_u64().unwrap() > 0);
    let report: Value = serde_json::from_str(&answer("report", directory.path(), &[])).unwrap();
    assert_eq!(
        (&report["steps"]["count"], &report["steps"]["ranks"]),
        (&STEPS.into(), &RANKS.into())
    );
    assert!(overlap["late_pairs"].as_array().unwrap().len() > 5);
    assert!(report["summary"]["overlapped_with_gpu_ns"].as_i64().unwrap() > 0);
    assert_eq!(report["head"]["accelerators"][0]["missing"], serde_json::json!({"not_named": 1}));
}

#[test]
fn what_is_left_over_and_kept_for_late_receives_does_not_depend_on_the_parts() {
    let directory = run();
    let end = steps().1 + PLAIN as i64 * 1_000_000;
    for rank in 0..RANKS {
        edit_rank(directory.path(), rank as i64, |file| {
            file.change("UPDATE rank SET end_ns = end_ns + 1000000");
            Writer { file, rank }.left_over(end);
        });
    }
    let whole = answer("report", directory.path(), &[]);
    let report: Value = serde_json::from_str(&whole).unwrap();
    let left_over = report["left_over"].as_array().unwrap().iter();
    let left_over: Vec<&str> = left_over.map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(left_over, ["message", "receive", "persistent_request"]);
    let kept = &report["unexpected"];
    assert_eq!((&kept["ranks"][0]["rank"], &kept["unknown"]), (&4.into(), &0.into()), "{kept}");
    for parts in share!(0, vec!["9", "2", "4"]) {
        let in_parts = answer("report", directory.path(), &["--parts", parts]);
        check_same(&whole, &in_parts, &format!("{parts} parts"));
    }
}

#[test]
fn some_ranks_are_looked_at_in_parts_too() {
    let directory = run();
    for more in [&["--rank", "4"][..], &["--rank", "0", "--rank", "8"]] {
        let whole = answer("overlap", directory.path(), more);
        let parts = [more, &["--parts", "5"]].concat();
        check_same(&whole, &answer("overlap", directory.path(), &parts), "some ranks");
    }
}

#[test]
fn little_memory_makes_parts() {
    let directory = run();
    let whole = answer("report", directory.path(), &[]);
    check_same(&whole, &answer("report", directory.path(), &["--memory", "16M"]), "16M");
    let refused = crate::fixture::lapscope(directory.path(), &["report", ".", "--memory", "12"]);
    let said = crate::fixture::text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("16M or more"), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_missing_in_parts_as_in_the_whole() {
    let directory = run();
    // is found only when the rows are read
    edit_rank(directory.path(), 5, |file| {
        file.change("UPDATE call SET begin_ns = -4 WHERE id = 17");
    });
    let whole = answer("overlap", directory.path(), &[]);
    assert!(whole.contains("rank-5.db") && whole.contains("damaged_file"), "{whole}");
    let in_parts = answer("overlap", directory.path(), &["--parts", "3"]);
    check_same(&whole, &in_parts, "without rank 5");
}

#[test]
fn pictures_do_not_depend_on_the_parts() {
    let directory = run();
    let drawn = |parts: Option<usize>| {
        let mut open = OpenRun::open(Some(directory.path())).unwrap();
        open.resources = Resources { parts, ..Resources::default() };
        let shown =
            TimelineChoice { ranks: Some("1-7".parse().unwrap()), ..TimelineChoice::default() };
        let pictured = pictures::build(&mut open, &[], ReportOptions::default(), &shown).unwrap();
        serde_json::to_string_pretty(&pictured.pictures).unwrap()
    };
    let whole = drawn(None);
    let read: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(read["bins"].as_array().unwrap().len(), RANKS);
    assert!(read["timeline"]["messages"].as_array().unwrap().len() > 1, "{whole}");
    for parts in share!(0, vec![4, 1, 9]) {
        check_same(&whole, &drawn(Some(parts)), &format!("pictures in {parts} parts"));
    }
}

#[test]
fn the_page_does_not_depend_on_the_parts() {
    let directory = run();
    let whole = page(directory.path(), &[]);
    assert!(whole.len() > 10_000);
    for more in share!(0, vec![&["--parts", "8"][..], &["--memory", "16M"]]) {
        check_same(&whole, &page(directory.path(), more), &format!("{more:?}"));
    }
}

/// What `lapscope part` says of this standard input.
fn part(arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut command: Command = bare(&[&["part"], arguments].concat());
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_no_question_is_refused() {
    for (arguments, input, expected) in [
        (&["--ranks", "0-3"][..], &b""[..], "the question cannot be read"),
        (&["--ranks", "0-3"], b"rubbish", "the question cannot be read"),
        (&["--ranks", "three"], b"", "no list of places"),
        (&["--merge"], b"", "holds no partial result"),
        (
            &["--merge"],
            b"\xa3fformat\x19\x03\xe7hlapscopec9.9dbody\xf6",
            "of format 999, written by lapscope 9.9",
        ),
    ] {
        let (succeeds, said) = part(arguments, input);
        assert!(!succeeds && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_stretch_is_the_same_in_parts() {
    let directory = run();
    for command in ["report", "overlap", "thresholds"] {
        let stretch = match command {
            "report" => &["--step", "20-33"][..],
            _ => &["--from", "2ms", "--to", "9ms"],
        };
        let whole = answer(command, directory.path(), stretch);
        let parts = [stretch, &["--parts", "4"]].concat();
        check_same(&whole, &answer(command, directory.path(), &parts), command);
    }
}

/// Numbers of what begins before a moment and of what begins from then on add up, though hosts' clocks are apart.
#[test]
fn stretches_that_meet_make_the_whole() {
    const SUMS: [&str; 8] = [
        "run_ns",
        "mpi_ns",
        "posting_ns",
        "exposed_ns",
        "blocking_ns",
        "collective_ns",
        "requests",
        "calls",
    ];
    const OVERLAP: [&str; 5] =
        ["requests", "bytes", "exposed_ns", "reference_ns", "exposed_late_partner_ns"];
    let directory = run();
    let read = |command: &str, more: &[&str]| -> Value {
        serde_json::from_str(&answer(command, directory.path(), more)).unwrap()
    };
    let stretches =
        [&["--to", "5.5ms"][..], &["--from", "5500us", "--to", "0.02"], &["--from", "20ms"]];
    let check = |command: &str, of: &str, keys: &[&str]| {
        let whole = read(command, &[]);
        let parts: Vec<Value> = stretches.iter().map(|more| read(command, more)).collect();
        for key in keys {
            let value = |document: &Value| document[of][key].as_i64().unwrap();
            let sums: Vec<i64> = parts.iter().map(value).collect();
            let some = sums.iter().filter(|sum| **sum > 0).count();
            assert!(some > 1 || *key == "blocking_ns", "{key}: {sums:?}");
            assert_eq!(sums.iter().sum::<i64>(), value(&whole), "{command} {key}: {sums:?}");
        }
    };
    check("report", "totals", &SUMS);
    check("overlap", "totals", &OVERLAP);
    let calls = |document: &Value| -> i64 {
        let sites = document["sites"].as_array().unwrap().iter();
        sites.map(|site| site["calls"].as_i64().unwrap()).sum()
    };
    let of_parts: Vec<i64> = stretches.iter().map(|more| calls(&read("sites", more))).collect();
    assert_eq!(of_parts.iter().sum::<i64>(), calls(&read("sites", &[])));
    let named = &read("report", stretches[1])["stretch"];
    assert_eq!((&named["from_ns"], &named["to_ns"]), (&5_500_000.into(), &20_000_000.into()));
}
