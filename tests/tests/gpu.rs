//! Programs that use a GPU, by a stand-in for its driver whose memory nobody else may touch: lapscope does not, and says what
//! it does not see.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use lapscope_tests::answer::{ask, rows, text};
use lapscope_tests::launch::{place, Form, Job, Outcome};
use lapscope_tests::mpi::Mpi;
use lapscope_tests::{build, paths};

fn run(mpi: &Mpi, form: Form, settings: &[(&str, &str)], place: &Path) -> Outcome {
    let driver = place.join("libcuda.so.1");
    fs::copy(build::library(mpi, "gpu_driver"), &driver).expect("a copy");
    let shim = build::library(mpi, "gpu_mpi");
    let both = format!("{}:{}", paths::preload_library().display(), shim.display());
    let preload: OsString = if form == Form::Bare { shim.into() } else { both.into() };
    let job = Job::new(mpi, 2, build::app(mpi, "gpu"), form, place).env("LD_PRELOAD", preload);
    let job = job.env("GPU_DRIVER", driver.into_os_string());
    settings.iter().fold(job, |job, (name, value)| job.env(name, *value)).run()
}

/// What a copy, a watched buffer or an injected test would do to it is a crash.
#[test]
fn memory_of_a_device_is_not_touched() {
    let ways: [&[(&str, &str)]; 3] = [
        &[("LAPSCOPE_BUFFER_SENDS", "1m")],
        &[("LAPSCOPE_REACH", "on"), ("LAPSCOPE_REACH_SHARE", "100")],
        &[("LAPSCOPE_INJECT", "timer"), ("LAPSCOPE_INJECT_MIN_BYTES", "1")],
    ];
    for (turn, settings) in ways.into_iter().enumerate() {
        for mpi in mpis!(turn) {
            let bare_place = place();
            let bare = run(mpi, Form::Bare, &[], bare_place.path());
            assert_eq!(bare.stdout, "20 of 20 right\n", "{bare:?}");
            let place = place();
            let with = run(mpi, Form::Preload, settings, place.path());
            assert_eq!((with.code, &with.stdout), (0, &bare.stdout), "{settings:?}: {with:?}");
            let report = ask("report", &place.path().join("run"));
            let said = rows(&report, "problems").iter().find(|it| it["kind"] == "accelerator");
            let said = said.unwrap_or_else(|| panic!("nothing of a GPU: {}", report["problems"]));
            assert!(text(said, "message").contains("libcuda"), "{said}");
            if settings[0].0 == "LAPSCOPE_INJECT" {
                let ranks = rows(&report["injection"], "ranks").iter();
                let refused = ranks.filter(|it| it["problem"].to_string().contains("uses a GPU"));
                assert_eq!(refused.count(), 2, "{:#}", report["injection"]);
            }
            println!("{}, {settings:?}: {}", mpi.name, with.stdout.trim_end());
        }
    }
}
