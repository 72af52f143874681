//! The sound run that variants are made of: two databases, and the spool of a killed rank.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{Rank, RANK_0, RANK_1};
use crate::watch::{commands, run_all, Answer};

const MORE: &str = "
INSERT INTO option VALUES (RANK, 'LAPSCOPE_CPU_TIME', 'on', 'environment'), (RANK, 'LAPSCOPE_INJECT_BUDGET', '3', 'default');
INSERT INTO environment VALUES (RANK, 'OMPI_MCA_btl', 'tcp,self');
INSERT INTO cvar VALUES (RANK, 'mpi_eager_limit', '4096');
INSERT INTO counter VALUES (RANK, 0, 'PAPI_TOT_INS', 'Instructions', '', NULL);
INSERT INTO call_counter SELECT id, 0, 1000 FROM call;
INSERT INTO injector VALUES (RANK, 'timer', NULL, 'perf', 100000000, 250, 900, 40, 5000);
INSERT INTO injection VALUES (RANK, 1, 1, 1, 1, 10, 20, 5, 5000, 2000, 30, 3, 900);
INSERT INTO communicator VALUES (2, RANK, 43, 0, 'inter', 1, 1, 0, 'MPI_Comm_spawn');
INSERT INTO communicator_member VALUES (2, 0, 0, RANK), (2, 1, 0, NULL);
";

/// Enough rows for several pages: a wait for two requests each microsecond.
fn many(rank: i64) -> String {
    let mut sql = String::from("BEGIN;\n");
    for i in 0..150 {
        let (call, request, begin) = (101 + i, 101 + 2 * i, 60_000 + 200 * i);
        sql += &format!("INSERT INTO call VALUES ({call}, 3, 1, {begin}, 50, 10, 5, 2, NULL);\n");
        for one in 0..2 {
            let (id, operation) = (request + one, 1 + one);
            sql += &format!(
                "INSERT INTO request VALUES ({id}, {operation}, {call}, 1, {}, 10, 5, 0, 1, 20, 30, 25, NULL, 1);\n",
                begin - 100 + one
            );
        }
    }
    sql += "COMMIT;\n";
    sql + &MORE.replace("RANK", &rank.to_string())
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
        for (number, rows) in [(0, RANK_0), (1, RANK_1)] {
            let rank = Rank { world_size: 4, ..Rank::new(number) };
            rank.write(&run, &format!("{rows}{}", many(number)));
        }
        spool(&run.join("rank-3.spool"));
        let mut base = Base { directory, said: BTreeMap::new(), rows: BTreeMap::new() };
        let place = tempfile::tempdir().unwrap();
        base.copy_to(&place.path().join("lapscope-1"));
        for (command, answer) in commands().iter().zip(run_all(place.path())) {
            let Answer { code, said, rows, .. } = answer;
            assert_eq!(code, Some(0), "{command:?}: {said:?}");
            base.said.entry(command[0].to_owned()).or_default().extend(said);
            base.rows.insert(command[0].to_owned(), rows.unwrap_or(0));
        }
        base
    }

    pub fn copy_to(&self, run: &Path) {
        std::fs::create_dir(run).unwrap();
        for entry in std::fs::read_dir(self.directory.path().join("run")).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, run.join(path.file_name().unwrap())).unwrap();
        }
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
    let host = lapscope::store::host_name();
    let made = Command::new(&program).arg(path).args([&host, boot.trim(), "3"]).status().unwrap();
    assert!(made.success());
}
