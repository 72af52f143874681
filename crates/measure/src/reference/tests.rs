use super::*;

/// A small generator, so that a failure can be repeated: xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Evenly in 0..1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly in the exponent: 1 byte to 16 MB.
    fn bytes(&mut self) -> u64 {
        (self.share() * 24.0).exp2() as u64
    }
}

/// 800 ns and 0.1 ns a byte, 5 % of noise.
fn ideal(bytes: u64, random: &mut Random) -> i64 {
    ((800.0 + bytes as f64 * 0.1) * (1.0 + 0.05 * random.share())) as i64
}

fn node(bytes: u64, ns: i64) -> Sample {
    Sample { locality: Locality::Node, bytes, ns, is_upwards: true, is_disturbed: false }
}

fn collective(call: &str, ranks: u32, bytes: u64, ns: i64) -> CollectiveSample<'_> {
    CollectiveSample { call, is_request: false, is_disturbed: false, ranks, bytes, ns }
}

fn fit(samples: impl IntoIterator<Item = Sample>) -> Reference {
    Reference::fit(samples, [], ReferenceSource::Run)
}

#[test]
fn interrupted_transfers_hardly_count() {
    let mut random = Random(1);
    let clean: Vec<Sample> = (0..20_000)
        .map(|_| {
            let bytes = random.bytes();
            node(bytes, ideal(bytes, &mut random))
        })
        .collect();
    let mut disturbed = clean.clone();
    for sample in disturbed.iter_mut().filter(|_| random.share() < 0.2) {
        sample.ns *= 100;
    }
    let (clean, disturbed) = (fit(clean), fit(disturbed));
    for exponent in 0..24 {
        let bytes = 1 << exponent;
        let estimate = |fit: &Reference| fit.transfer(Locality::Node, bytes).unwrap().ns as f64;
        let ratio = estimate(&disturbed) / estimate(&clean);
        assert!((0.95..1.1).contains(&ratio), "{bytes} bytes: {ratio}");
    }
}

/// Ranks that lacked a processor in nine of ten transfers.
#[test]
fn the_low_end_of_a_disturbed_run_is_what_transfers_take() {
    let mut random = Random(5);
    let samples = (0..2_000).map(|_| {
        let wait = if random.share() < 0.9 { (random.share() * 2e7) as i64 } else { 0 };
        node(8192, ideal(8192, &mut random) + wait)
    });
    let found = fit(samples.collect::<Vec<_>>()).transfer(Locality::Node, 8192).unwrap();
    let alone = 1_619.0; // 800 ns, 0.1 ns a byte
    assert!((1.0..1.1).contains(&(found.ns as f64 / alone)), "{found:?}");
    assert!(found.low_ns <= found.ns && found.high_ns > 1_000_000, "the spread says so: {found:?}");
}

/// A calibration of 685 us where the run shows 534 us, and one of 100 us where it shows 400 us.
#[test]
fn the_quicker_of_calibration_and_run_is_believed() {
    let many = |bytes, ns| [node(bytes, ns)].repeat(8);
    let calibrated = [many(1 << 19, 600_000), many(1 << 20, 685_000), many(1 << 22, 900_000)];
    let mut reference = fit(calibrated.concat());
    let run = [many(1 << 20, 534_000), many(1 << 22, 2_000_000), [node(1 << 19, 1)].repeat(7)];
    let found = reference.correct_by(&fit(run.concat()));
    let of = |exponent: u32| reference.transfer(Locality::Node, 1 << exponent).unwrap().ns;
    assert_eq!((of(19), of(20), of(22)), (534_000, 534_000, 900_000));
    let said: Vec<_> =
        found.iter().map(|it| (it.is_quicker, it.calibrated_ns.0, it.run_ns.0)).collect();
    assert_eq!(said, [(false, 900_000, 2_000_000), (true, 685_000, 534_000)]);
}

#[test]
fn nonblocking_collectives_have_times_of_their_own() {
    let blocking = collective("MPI_Alltoall", 4, 4096, 5_000);
    let own = CollectiveSample { is_request: true, ns: 9_000, ..blocking };
    let of = |samples: Vec<CollectiveSample<'static>>| {
        let fitted = Reference::fit([], samples.repeat(3), ReferenceSource::Run);
        let ns = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.ns);
        (
            ns(fitted.collective("MPI_Alltoall", 4, 4096)),
            ns(fitted.nonblocking_collective("MPI_Alltoall", 4, 4096)),
        )
    };
    assert_eq!(of(vec![blocking, own]), (Some(5_000), Some(9_000)));
    assert_eq!(of(vec![blocking]), (Some(5_000), Some(5_000)));
    assert_eq!(of(vec![own]), (None, Some(9_000)));
}

#[test]
fn estimates_are_monotone_ordered_and_within_what_was_measured() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let samples: Vec<Sample> = (0..random.next() % 400 + 3)
            .map(|_| node(random.bytes(), (random.share() * 20.0).exp2() as i64))
            .collect();
        let (least, most) = samples
            .iter()
            .fold((i64::MAX, 0), |(least, most), s| (least.min(s.ns), most.max(s.ns)));
        let fitted = fit(samples);
        let Some((first, last)) =
            fitted.points(Locality::Node).first().zip(fitted.points(Locality::Node).last())
        else {
            continue;
        };
        let (first, last) = (first.bytes.ceil() as u64, last.bytes as u64);
        let mut before = Estimate { ns: 0, low_ns: 0, high_ns: 0 };
        for step in 0..=500 {
            let bytes = first + last.saturating_sub(first) * step / 500;
            let now = fitted.transfer(Locality::Node, bytes).unwrap();
            assert!(now.low_ns <= now.ns && now.ns <= now.high_ns, "seed {seed}: {now:?}");
            assert!(
                least.max(1) <= now.low_ns && now.high_ns <= most.max(1),
                "seed {seed}: {now:?}"
            );
            let falls =
                now.ns < before.ns || now.low_ns < before.low_ns || now.high_ns < before.high_ns;
            assert!(!falls, "seed {seed}, {bytes} bytes: {now:?} behind {before:?}");
            before = now;
        }
    }
}

#[test]
fn paths_do_not_mix() {
    let sample =
        |locality, ns| Sample { locality, bytes: 100, ns, is_upwards: true, is_disturbed: false };
    let samples = [
        sample(Locality::Node, 300),
        sample(Locality::Network, 20_000),
        sample(Locality::SelfRank, 90),
    ];
    let fitted = fit(samples.repeat(3));
    let of = |locality| fitted.transfer(locality, 100).unwrap().ns;
    let all = Locality::ALL.map(of);
    assert_eq!(all, [90, 300, 20_000]);
    assert_eq!(fitted.transfer(Locality::Node, 1_000_000), None);
}

#[test]
fn collectives_between_measured_numbers_of_ranks() {
    let sample = |ranks, ns| collective("MPI_Allreduce", ranks, 8, ns);
    let samples = [sample(2, 1000), sample(8, 3000)].repeat(5);
    let fitted = Reference::fit([], samples, ReferenceSource::Run);
    let of = |ranks| fitted.collective("MPI_Allreduce", ranks, 8).map(|estimate| estimate.ns);
    assert_eq!((of(2), of(4), of(8)), (Some(1000), Some(2000), Some(3000)));
    assert_eq!((of(1), of(9)), (None, None));
    assert_eq!(fitted.collective("MPI_Bcast", 2, 8), None);
}

/// A calibration up to 4 MiB, and a run of 32 MiB: each has its sizes.
#[test]
fn what_a_calibration_does_not_cover_comes_from_the_run() {
    let (mib, kib) = (1u64 << 20, 1u64 << 10);
    let calibrated = [node(kib, 1_000), node(4 * mib, 400_000)].repeat(3);
    let barrier = |ranks, bytes, ns| collective("MPI_Bcast", ranks, bytes, ns);
    let mut reference = Reference::fit(
        calibrated,
        [barrier(2, 8, 500), barrier(2, kib, 900)].repeat(3),
        ReferenceSource::None,
    );
    let own = |bytes, ns| [node(bytes, ns)].repeat(3);
    let network = Sample {
        locality: Locality::Network,
        bytes: kib,
        ns: 70_000,
        is_upwards: true,
        is_disturbed: false,
    };
    let samples = [own(2 * mib, 9), own(32 * mib, 3_600_000), vec![network; 3]].concat();
    let run = Reference::fit(
        samples,
        [barrier(2, mib, 90_000), barrier(2, 8, 1)].repeat(3),
        ReferenceSource::Run,
    );
    assert_eq!(reference.transfer(Locality::Node, 32 * mib), None);

    let taken = reference.complete_with(run);
    let of = |bytes| reference.transfer(Locality::Node, bytes).map(|estimate| estimate.ns);
    assert_eq!(of(32 * mib), Some(3_600_000));
    assert_eq!(of(18 * mib), Some(2_000_000), "between the two as between any");
    assert_eq!((of(kib), of(4 * mib)), (Some(1_000), Some(400_000)), "what was measured stands");
    assert_eq!(reference.transfer(Locality::Network, kib).unwrap().ns, 70_000);
    let bcast = |bytes| reference.collective("MPI_Bcast", 2, bytes).unwrap().ns;
    assert_eq!((bcast(8), bcast(mib)), (500, 90_000));

    let localities = [
        TakenLocality { locality: Locality::Node, whole: false, bytes: [32 * mib; 2] },
        TakenLocality { locality: Locality::Network, whole: true, bytes: [kib; 2] },
    ];
    assert_eq!(
        (taken.localities, taken.collectives),
        (localities.into(), vec!["MPI_Bcast".to_owned()])
    );
    let of_run: Vec<Option<u64>> = reference
        .describe()
        .localities
        .iter()
        .map(|locality| locality.coverage.of_run.map(|run| run.min_bytes))
        .collect();
    assert_eq!(of_run, [Some(32 * mib), Some(kib)]);
}

#[test]
fn a_description_says_what_is_covered() {
    let samples = [node(100, 1000), node(100, 1100), node(100, 1200), node(4096, 5000)];
    let description = fit(samples).describe();
    assert_eq!((description.samples, description.localities.len()), (3, 1));
    let coverage = &description.localities[0].coverage;
    assert_eq!((coverage.sizes, coverage.min_bytes, coverage.max_bytes), (1, 100, 100));
    assert!((coverage.spread.unwrap() - 98.0 / 1100.0).abs() < 1e-9);
    assert!(fit([]).is_empty() && fit([]).describe().collectives.spread.is_none());
}

#[test]
fn a_reference_is_the_same_after_writing_and_reading() {
    let mut random = Random(7);
    let samples = (0..500).map(|_| {
        let bytes = random.bytes();
        node(bytes, ideal(bytes, &mut random))
    });
    let collective = collective("MPI_Bcast", 4, 64, 900);
    let fitted = Reference::fit(samples, [collective; 3], ReferenceSource::None);
    let text = serde_json::to_string(&fitted).unwrap();
    let read: Reference = serde_json::from_str(&text).unwrap();
    let of = |reference: &Reference| reference.transfer(Locality::Node, 4096).unwrap();
    assert_eq!(of(&read), of(&fitted));
    assert_eq!(read.collective("MPI_Bcast", 4, 64).unwrap().ns, 900);
}

/// How long ten million samples take: `cargo test --release -- --ignored --nocapture ten_million`.
#[test]
#[ignore = "prints a time, tests nothing"]
fn ten_million_samples() {
    let mut random = Random(3);
    let samples: Vec<Sample> = (0..10_000_000)
        .map(|_| {
            let bytes = random.bytes();
            node(bytes, ideal(bytes, &mut random))
        })
        .collect();
    let begin = std::time::Instant::now();
    let fitted = fit(samples);
    lapscope_data::say!("{:?} for {} samples", begin.elapsed(), fitted.describe().samples);
}
