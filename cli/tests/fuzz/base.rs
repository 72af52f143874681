//! The sound run that variants are made of: two databases, and the spool of a killed rank.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use lapscope_fixture::small::{self, IRECV, ISEND, WAITALL};
use lapscope_fixture::tables::{
    Call, Communicator, Counter, Cvar, Injection, Injector, Member, Rank, Request, Setting,
    Variable, Watch, WatchLeftOut, Watcher,
};
use lapscope_fixture::{call_id, Fixture, SECOND_TOUCH};

use super::watch::{commands, run_all, Answer};

fn more(file: &Fixture, rank: i64) {
    file.insert(Setting { name: "LAPSCOPE_CPU_TIME", value: "on", ..Setting::default() });
    file.insert(Setting { name: "LAPSCOPE_INJECT_BUDGET", value: "3", source: "default" });
    file.insert(Variable { name: "OMPI_MCA_btl", value: "tcp,self" });
    file.insert(Cvar { name: "mpi_eager_limit", value: "4096" });
    let (name, description) = ("PAPI_TOT_INS", "Instructions");
    file.insert(Counter { name, description, ..Counter::default() });
    file.change(
        "INSERT INTO call_counter (call_row_id, number, value) SELECT id, 0, 1000 FROM call",
    );
    inject(file);
    watch(file);
    let (kind, size, name) = ("inter", 1, "MPI_Comm_spawn");
    let spawned = Communicator { kind, size, name, ..Communicator::default() };
    let id = file.insert(Communicator { identity: 43, remote_size: 1, ..spawned });
    for (remote, world_rank) in [(0, Some(rank)), (1, None)] {
        file.insert(Member { communicator_id: id, remote, world_rank, ..Member::default() });
    }
}

fn inject(file: &Fixture) {
    file.insert(Injector {
        clock: Some("perf"),
        ab_slot_ns: Some(100_000_000),
        test_ns: Some(250),
        interrupt_ns: Some(900),
        check_ns: Some(40),
        spent_ns: 5_000,
        ..Injector::default()
    });
    file.insert(Injection {
        call_id: call_id("MPI_Isend"),
        call_path_id: Some(1),
        requests: 10,
        tests: 20,
        found: 5,
        test_ns: 5_000,
        idle_ns: 2_000,
        interrupts: 30,
        deferred: 3,
        interrupt_ns: 900,
        ..Injection::default()
    });
}

fn watch(file: &Fixture) {
    file.insert(Watcher { spent_ns: 40_000, ..Watcher::default() });
    file.insert(WatchLeftOut { reason: "share", buffers: 12 });
    for word in 0..20 {
        let place = (8 * word, 1_000);
        file.insert(Watch::send(ISEND, 2_500, place, 100 * (21 - word)));
        let received = Watch::receive(IRECV, (2_800, 30_001), place, 100 * word);
        file.insert(Watch { copy_path_id: Some(SECOND_TOUCH), ..received.clone() });
        file.insert(Watch { let_go: Some("late"), ..received.untouched() });
    }
}

/// Enough rows for several pages: a wait for two requests each microsecond.
fn many(file: &Fixture) {
    for i in 0..150 {
        let begin = 60_000 + 200 * i;
        let call = file.insert(Call {
            operation_id: WAITALL,
            begin_ns: begin,
            duration_ns: Some(50),
            user_ns: Some(10),
            system_ns: Some(5),
            completed: 2,
            ..Call::default()
        });
        for (one, operation_id) in [(0, ISEND), (1, IRECV)] {
            file.insert(Request {
                operation_id,
                completion_id: Some(call),
                post_begin_ns: begin - 100 + one,
                post_ns: 10,
                mpi_ns: Some(5),
                unsuccessful_tests: 1,
                first_unsuccessful_test_ns: Some(20),
                last_unsuccessful_test_ns: Some(30),
                last_incomplete_ns: Some(25),
                injection_arm: Some(1),
                ..Request::default()
            });
        }
    }
}

pub struct Base {
    directory: tempfile::TempDir,
    /// Of each command: what it says on standard error, and how many rows it finds.
    pub said: BTreeMap<String, BTreeSet<String>>,
    pub rows: BTreeMap<String, u64>,
}

impl Base {
    pub fn new() -> Base {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        for (number, rows) in [(0, small::rank_0 as fn(&Fixture)), (1, small::rank_1)] {
            let rank = Rank { world_size: 4, ..Rank::new(number) };
            rank.write(&run, |file| {
                rows(file);
                many(file);
                more(file, number);
            });
        }
        spool(&run.join("rank-3.spool"));
        let mut base = Base { directory, said: BTreeMap::new(), rows: BTreeMap::new() };
        let (place, _) = base.copy();
        for (command, answer) in commands().iter().zip(run_all(place.path())) {
            let Answer { code, said, rows, .. } = answer;
            assert_eq!(code, Some(0), "{command:?}: {said:?}");
            base.said.entry(command[0].to_owned()).or_default().extend(said);
            base.rows.insert(command[0].to_owned(), rows.unwrap_or(0));
        }
        base
    }

    /// A place with a copy of it, as commands name it, and where that is.
    pub fn copy(&self) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("lapscope-1");
        std::fs::create_dir(&run).unwrap();
        for entry in std::fs::read_dir(self.directory.path().join("run")).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, run.join(path.file_name().unwrap())).unwrap();
        }
        (place, run)
    }
}

/// Made by the builder of the C tests.
fn spool(path: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let builder = here.join("../interposer/test");
    let directory = tempfile::tempdir().unwrap();
    let program: PathBuf = directory.path().join("spool");
    let compiled = Command::new("cc")
        .arg("-I")
        .arg(&builder)
        .args(["-D_GNU_SOURCE", "-O1", "-o"])
        .arg(&program)
        .args([here.join("tests/fuzz/spool.c"), builder.join("spool_builder.c")])
        .status()
        .unwrap();
    assert!(compiled.success());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let host = lapscope_data::store::host_name();
    let made = Command::new(&program).arg(path).args([&host, boot.trim(), "3"]).status().unwrap();
    assert!(made.success());
}
