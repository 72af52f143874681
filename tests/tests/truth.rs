//! What could have been overlapped, where it is known: messages that are under way together beside a computation, with and without
//! tests in it. `make truth-check` prints the table.

use std::path::{Path, PathBuf};

use lapscope_fixture::share::is_all;
use lapscope_tests::answer::{ask, number};
use lapscope_tests::bed::Bed;
use lapscope_tests::build;
use lapscope_tests::launch::{place, Form, Job};
use lapscope_tests::mpi::{self, Mpi};
use lapscope_tests::trials;

/// Messages under way together between two ranks.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    messages: u32,
    sizes: &'static str,
    directions: &'static str,
    /// Computation in percent of what the messages take without any.
    compute: u64,
}

/// What a run takes, nanoseconds; the first, which says what messages take without computation, has so many steps.
const RUN_NS: f64 = 1.2e9;
const FIRST_STEPS: u32 = 20;
const BYTES: u32 = 2 << 20;
/// Two runs of one program differ by so much of their time, and tests find the end of a transfer so much later.
const NOISE: f64 = 0.04;

fn kernels() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for messages in [1, 2, 4, 8] {
        for sizes in ["equal", "mixed"] {
            for directions in ["one", "both"] {
                for compute in [10, 50, 100, 200, 400] {
                    kernels.push(Kernel { messages, sizes, directions, compute });
                }
            }
        }
    }
    kernels.retain(|kernel| kernel.messages > 1 || kernel.sizes == "equal");
    kernels
}

fn job<'a>(
    mpi: &'a Mpi,
    bed: Bed,
    form: Form,
    kernel: Kernel,
    (compute_ns, steps): (u64, u32),
    place: &'a Path,
) -> Job<'a> {
    let Kernel { messages, sizes, directions, .. } = kernel;
    let arguments = [
        messages.to_string(),
        BYTES.to_string(),
        sizes.into(),
        directions.into(),
        compute_ns.to_string(),
        steps.to_string(),
    ];
    bed.around(mpi, Job::new(mpi, 2, build::app(mpi, "truth"), form, place)).args(arguments)
}

/// What a step takes, nanoseconds.
fn step_ns(job: &Job<'_>) -> f64 {
    let outcome = job.run();
    let took = outcome.stdout.trim().parse();
    took.unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

#[test]
fn what_could_have_been_overlapped_is_within_its_bounds() {
    let intel = mpi::named("intel").filter(|_| is_all());
    for (turn, mpi) in mpi::debian().into_iter().chain(intel).enumerate() {
        // over shared memory copies are work, and what others do to the processors is more than what tests bring
        let is_shared = is_all() && mpi.name != "intel";
        let beds =
            if is_shared { &[Bed::SlowLink, Bed::SharedMemory][..] } else { &[Bed::SlowLink] };
        for &bed in beds.iter().filter(|bed| bed.is_there(mpi)) {
            let place = place();
            let calibration = calibrate(mpi, bed, place.path());
            for kernel in share!(turn, kernels()) {
                let what = format!("{kernel:?}, {}, {}", mpi.name, bed.word());
                trials::up_to_three(&what, || is_within(mpi, bed, &calibration, kernel));
            }
        }
    }
}

/// What transfers take, one by one and together.
fn calibrate(mpi: &Mpi, bed: Bed, place: &Path) -> PathBuf {
    let file = place.join("calibration.json");
    let words = ["--seconds".as_ref(), "6".as_ref(), "--output".as_ref(), file.as_os_str()];
    let job = Job::calibrate(mpi, &words, &[], place);
    let outcome = bed.around(mpi, job).run();
    assert_eq!(outcome.code, 0, "{}: {outcome:?}", mpi.name);
    file
}

fn is_within(mpi: &Mpi, bed: Bed, calibration: &Path, kernel: Kernel) {
    let places = [place(), place(), place()];
    let alone = step_ns(&job(mpi, bed, Form::Bare, kernel, (0, FIRST_STEPS), places[0].path()));
    let compute = (alone * kernel.compute as f64 / 100.0) as u64;
    let steps = (RUN_NS / (alone + compute as f64)).clamp(12.0, 1000.0) as u32;
    let what = (compute, steps);
    let tested = job(mpi, bed, Form::Bare, kernel, what, places[1].path()).args(["tested"]);
    let recorded = job(mpi, bed, Form::Preload, kernel, what, places[2].path());
    let (with, without) = (step_ns(&tested), step_ns(&recorded));
    let kept = recorded.run_directory().join("calibration.json");
    std::fs::copy(calibration, kept).expect("the run directory");
    let report = ask("report", &recorded.run_directory());
    assert_eq!(report["overlap"]["reference"]["source"]["kind"], "calibration", "{report:#}");
    let run = number(&report["totals"], "run_ns");
    let share = |key: &str| number(&report["summary"], key) / run;
    let high = share("overlappable_high_ns");
    let in_steps = without * f64::from(steps) * 2.0 / run;
    let truth = (in_steps * (1.0 - with / without)).max(0.0); // tests may cost more than they bring
    let Kernel { messages, sizes, directions, compute } = kernel;
    println!(
        "{:9} {:13} {messages} {sizes:5} {directions:4} compute {compute:>3} %  {:>5.1} % {:>5.1} %",
        mpi.name, bed.word(), 100.0 * truth, 100.0 * high
    );
    let computed = 1.0 - number(&report["totals"], "mpi_ns") / run;
    assert!(high <= computed, "{high} {computed}");
    assert!(truth < high + NOISE, "{truth:.3} {high:.3}");
}
