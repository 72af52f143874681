//! What a run stores of its surroundings: the limits that MPI has, and nothing that is secret.

use std::fs;
use std::path::Path;

use lapscope_tests::differential::outcome_differences;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::{build, rows};

/// Stands in every place where a secret might be found.
const SECRET: &str = "correct-horse-battery";

/// One of every kind that was once stored: of the launcher, of the transport, of the MPI.
const SECRET_VARIABLES: [&str; 6] = [
    "SLURM_JWT",
    "FI_AUTH_KEY",
    "I_MPI_HYDRA_PASSWORD",
    "OMPI_MCA_btl_auth_token",
    "UCX_SOME_CREDENTIAL",
    "AWS_SECRET_ACCESS_KEY",
];

/// Files below `directory` that hold the secret, as bytes.
fn files_with_the_secret(directory: &Path) -> Vec<String> {
    let holds = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
    };
    let files = rows::files(directory);
    files.iter().filter(|path| holds(path)).map(|path| path.display().to_string()).collect()
}

fn with_secrets(mut job: Job<'_>) -> Job<'_> {
    for name in SECRET_VARIABLES {
        job = job.env(name, SECRET);
    }
    job.env("UCX_ADDRESS", format!("tcp://user:{SECRET}@node:80")).args([
        "--input".to_owned(),
        "a.dat".to_owned(),
        "--password".to_owned(),
        SECRET.to_owned(),
        format!("--api-key={SECRET}"),
        format!("https://user:{SECRET}@host/file"),
    ])
}

#[test]
fn no_secret_is_stored() {
    for mpi in mpis!() {
        let program = build::app(mpi, "alone");
        for convert in ["on", "off"] {
            let place = place();
            let job = Job::new(mpi, 2, &program, Form::Preload, place.path());
            let with = with_secrets(job.env("LAPSCOPE_CONVERT", convert)).run();
            assert_eq!(with.code, 0, "{}", with.stderr);
            let run = place.path().join("run");
            assert!(rows::files(&run).len() >= 2, "{}: nothing was recorded", mpi.name);
            assert_eq!(files_with_the_secret(&run), Vec::<String>::new(), "{}", mpi.name);
            for path in rows::databases(&run) {
                let command = rows::value(&rows::open(&path), "SELECT command FROM rank");
                let shown = "--input a.dat --password (withheld) --api-key=(withheld) https://(withheld)@host/file";
                assert!(command.ends_with(shown), "{command}");
                let kept = "SELECT value FROM environment WHERE name = 'FI_AUTH_KEY'";
                assert_eq!(rows::value(&rows::open(&path), kept), "(withheld)");
            }
        }
    }
}

#[test]
fn command_lines_are_left_out_where_asked() {
    for mpi in mpis!() {
        let place = place();
        let program = build::app(mpi, "alone");
        let job = Job::new(mpi, 2, &program, Form::Preload, place.path());
        let with = job.env("LAPSCOPE_COMMAND_LINE", "off").args(["--mesh", "private.mesh"]).run();
        assert_eq!(with.code, 0, "{}", with.stderr);
        for path in rows::databases(&place.path().join("run")) {
            let command = rows::value(&rows::open(&path), "SELECT command FROM rank");
            assert_eq!(command, program.to_str().unwrap(), "{}", mpi.name);
        }
    }
}

/// A limit that is set by hand stands in the database as MPI has it, or as the environment does, where MPIs take theirs from it.
#[test]
fn limits_are_those_in_force() {
    for mpi in mpis!() {
        let (variable, table, name) = if mpi.abi == "openmpi" {
            ("OMPI_MCA_btl_tcp_eager_limit", "cvar", "btl_tcp_eager_limit")
        } else {
            let name = "MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE";
            (name, "environment", name)
        };
        let place = place();
        let program = build::app(mpi, "alone");
        let job = Job::new(mpi, 2, &program, Form::Preload, place.path());
        let with = job.env(variable, "54321").run();
        assert_eq!(with.code, 0, "{}", with.stderr);
        let databases = rows::databases(&place.path().join("run"));
        assert_eq!(databases.len(), 2, "{}", mpi.name);
        for path in databases {
            let query = format!("SELECT value FROM {table} WHERE name = '{name}'");
            assert_eq!(rows::value(&rows::open(&path), &query), "54321", "{}", mpi.name);
        }
    }
}

/// A program that uses MPI's tools interface itself, before, during and behind MPI, sees what it sees without lapscope.
#[test]
fn the_tools_interface_is_the_programs_own() {
    for mpi in mpis!() {
        let program = build::app(mpi, "tools_interface");
        for order in ["before", "behind"] {
            let run = |form| {
                let place = place();
                Job::new(mpi, 2, &program, form, place.path()).args([order]).run()
            };
            let (bare, with) = (run(Form::Bare), run(Form::Preload));
            assert_eq!(bare.code, 0, "{} {order}: {}", mpi.name, bare.stderr);
            let differences = outcome_differences(&bare, &with);
            assert!(differences.is_empty(), "{} {order}: {}", mpi.name, differences.join("\n"));
        }
    }
}
