//! `lapscope doctor` at programs of every MPI: what it says of a library is what the library says of itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lapscope_tests::mpi::{self, find_program, Mpi};
use lapscope_tests::{build, child, paths};
use serde_json::Value;

/// Its findings about `program`, with the MPI's own launchers in front of PATH.
fn findings(mpi: &Mpi, program: &Path, variables: &[(&str, &str)]) -> Vec<Value> {
    let mut command = child::command(paths::lapscope());
    command.arg("doctor").arg(program).args(["--format", "json"]);
    command.envs(mpi.environment.iter().copied()).envs(variables.iter().copied());
    command.env("PATH", path_with(mpi.launcher));
    answer(&mut command)
}

fn answer(command: &mut Command) -> Vec<Value> {
    let output = command.output().expect("a command");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    answer["findings"].as_array().expect("findings").clone()
}

fn path_with(launcher: &str) -> OsString {
    let own = find_program(launcher).expect("a launcher");
    let all = std::env::var_os("PATH").unwrap_or_default();
    let places = own.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&all));
    std::env::join_paths(places).expect("a path")
}

fn finding<'a>(findings: &'a [Value], topic: &str, name: &str) -> &'a Value {
    let found = findings.iter().find(|it| it["topic"] == topic && it["name"] == name);
    found.unwrap_or_else(|| panic!("no {topic}, {name} in {findings:#?}"))
}

fn says<'a>(finding: &'a Value, key: &str) -> &'a str {
    finding[key].as_str().unwrap_or_default()
}

/// Family, the variable that switches its progress on, and what its transports are told by.
fn expected(mpi: &Mpi) -> (&'static str, &'static str, &'static str) {
    match mpi.name {
        "openmpi" | "openmpi5" => ("Open MPI", "OMPI_MCA_btl_tcp_progress_thread", "ob1"),
        "intel" => ("Intel MPI", "I_MPI_ASYNC_PROGRESS", ""),
        _ => ("MPICH", "MPIR_CVAR_ASYNC_PROGRESS", "device ch4:"),
    }
}

/// The version that the program itself is told, on standard output.
fn told(mpi: &Mpi, program: &Path) -> String {
    let output = child::command(program).envs(mpi.environment.iter().copied()).output();
    String::from_utf8_lossy(&output.expect("a program").stdout).into_owned()
}

#[test]
fn every_mpi_is_asked() {
    for mpi in mpis!() {
        let program = build::app(mpi, "library_version");
        let (family, variable, transport) = expected(mpi);
        let found = findings(mpi, &program, &[(variable, "1")]);
        let said = finding(&found, "program", "MPI");
        assert_eq!(said["status"], "ok", "{}: {said}", mpi.name);
        // "Open MPI 4.1.4 (/lib/libmpi.so.40): recorder openmpi"
        let version =
            says(said, "says").strip_prefix(family).expect("the family").split_whitespace().next();
        let version = version.expect("a version");
        assert!(
            version.contains('.') && told(mpi, &program).contains(version),
            "{}: {version}",
            mpi.name
        );
        assert!(says(said, "says").ends_with(&format!("recorder {}", mpi.abi)), "{said}");
        if !transport.is_empty() {
            assert!(
                says(finding(&found, "transports", "built with"), "says").contains(transport),
                "{}",
                mpi.name
            );
        }
        let on = finding(&found, "progress", "async progress");
        assert_eq!(says(on, "says"), format!("{family}: on, {variable}=1"), "{}", mpi.name);
    }
    for mpi in mpis!() {
        let (family, variable, _) = expected(mpi);
        let found = findings(mpi, &build::app(mpi, "library_version"), &[]);
        let off = finding(&found, "progress", "async progress");
        assert_eq!(says(off, "says"), format!("{family}: off"));
        assert!(says(off, "advice").contains(&format!("export {variable}=1")), "{off}");
    }
}

/// A file of Open MPI's settings counts, which the environment does not show.
#[test]
fn settings_of_files_count() {
    let Some(mpi) = mpi::named("openmpi") else { return };
    let home = tempfile::tempdir().expect("a directory");
    let settings = home.path().join(".openmpi");
    std::fs::create_dir(&settings).expect("a directory");
    std::fs::write(settings.join("mca-params.conf"), "btl_tcp_progress_thread = 1\n")
        .expect("a file");
    let program = build::app(mpi, "library_version");
    let home = home.path().to_str().expect("a name");
    let on = findings(mpi, &program, &[("HOME", home)]);
    let on = finding(&on, "progress", "async progress");
    assert_eq!(says(on, "says"), "Open MPI: on, by its own defaults or files");
}

/// The launcher that everybody types is another MPI's.
#[test]
fn launchers_of_other_mpis_are_told() {
    let (Some(open), Some(mpich)) = (mpi::named("openmpi"), mpi::named("mpich")) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let link = |name: &str, mpi: &Mpi| {
        let place = find_program(mpi.launcher).expect("a launcher").canonicalize().expect("a file");
        std::os::unix::fs::symlink(place, directory.path().join(name)).expect("a link");
    };
    link("mpirun", open);
    link("mpirun.mpich", mpich);
    let ask = |mpi: &Mpi| {
        let mut command = child::command(paths::lapscope());
        command.arg("doctor").arg(build::app(mpi, "library_version")).args(["--format", "json"]);
        answer(command.env("PATH", directory.path()))
    };
    let wrong = ask(mpich);
    let wrong = finding(&wrong, "MPI", "launcher");
    assert_eq!(
        (&wrong["status"], says(wrong, "advice")),
        (&"warn".into(), "start it with mpirun.mpich")
    );
    let right = ask(open);
    assert!(right.iter().all(|it| it["topic"] != "MPI" || it["name"] != "launcher"), "{right:#?}");
}

/// `broken_mpi.c` as the MPI library of a program that is not run.
fn program_of_broken_mpi(place: &Path, how: &str) -> PathBuf {
    let (library, program) = (place.join("libmpi.so.40"), place.join("program"));
    let source = |name: &str| paths::apps().join(name);
    let compile = |words: &[&Path], options: &[&str]| {
        let mut command = child::command("cc");
        let said = command.args(options).args(words).output().expect("a compiler");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    };
    let define = format!("-D{how}");
    compile(
        &[&source("broken_mpi.c"), Path::new("-o"), &library],
        &["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", &define],
    );
    compile(
        &[&source("unknown_program.c"), &library, Path::new("-o"), &program],
        &["-Wl,-rpath,$ORIGIN"],
    );
    program
}

/// A library that crashes while it is loaded, or when it is asked: said, and no harm done. The version is known where it
/// was told before.
#[test]
fn broken_libraries_do_no_harm() {
    let place = tempfile::tempdir().expect("a directory");
    for (how, words, name) in [
        ("CRASHES_LOADED", "killed by signal 11", "MPI"),
        ("CRASHES_ASKED", "killed by signal 11", "MPI"),
        ("CRASHES_LISTING", "Open MPI 4.1.99", "MPI"),
        ("TALKS", "Open MPI 4.1.99", "MPI"),
    ] {
        let program = program_of_broken_mpi(place.path(), how);
        let mut command = child::command(paths::lapscope());
        command.arg("doctor").arg(&program).args(["--format", "json"]).current_dir(place.path());
        let found = answer(&mut command);
        let said = finding(&found, "program", name);
        assert!(says(said, "says").contains(words), "{how}: {said}");
        assert_eq!(said["status"] == "ok", words.starts_with("Open MPI"), "{how}: {said}");
    }
    let left: Vec<_> = std::fs::read_dir(place.path()).expect("a directory").flatten().collect();
    assert_eq!(left.len(), 2, "only the library and the program: no core, {left:?}");
}
