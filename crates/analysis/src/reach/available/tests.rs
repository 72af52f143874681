//! Kernels whose times available are worked out by hand, and the same kernels as if measured.

use super::*;

fn kernel(words: u64, produced: Order, consumed: Order) -> Kernel {
    let (produce, consume) = (30.0, 10.0);
    let (after_production, before_consumption) = (500.0, 200.0);
    Kernel { words, produced, consumed, produce, consume, after_production, before_consumption }
}

#[test]
fn phiib_of_sweep3d_has_the_same_time_for_all_data() {
    let phiib = Kernel {
        words: 10,
        produced: Order::Same,
        consumed: Order::Same,
        produce: 1050.0,
        consume: 1050.0,
        after_production: 0.0,
        before_consumption: 0.0,
    };
    let times: Vec<f64> = (0..10).filter_map(|i| phiib.at(i)).collect();
    assert_eq!(times, [9450.0; 10], "published: 9.46 us");
    assert_eq!(phiib.worst(), Bounds::exactly(9450.0));
}

#[test]
fn phijb_of_sweep3d_hides_nothing() {
    let gap = 1000.0;
    let hidden = hidden_behind_consumption(18.4, 45.0, gap);
    assert!((hidden - 0.045).abs() < 1e-12, "{hidden}");
    assert_eq!(hidden_behind_consumption(1050.0, 1050.0, gap), 1.0, "phiib");
    assert_eq!(hidden_behind_consumption(2000.0, 500.0, gap), 0.25);
    assert_eq!(hidden_behind_consumption(0.0, 0.0, 0.0), 1.0);
}

#[test]
fn orders() {
    let worst = |produced, consumed| kernel(101, produced, consumed).worst();
    // the last word is written last and read last: 100 steps of consumption; the first 100 of production
    assert_eq!(worst(Order::Same, Order::Same), Bounds::exactly(700.0 + 1000.0));
    assert_eq!(worst(Order::Reverse, Order::Reverse), Bounds::exactly(700.0 + 1000.0));
    // one word is written last and read first
    assert_eq!(worst(Order::Same, Order::Reverse), Bounds::exactly(700.0));
    assert_eq!(worst(Order::Reverse, Order::Same), Bounds::exactly(700.0));
    assert_eq!(kernel(101, Order::Same, Order::Reverse).at(0), Some(700.0 + 3000.0 + 1000.0));
    assert_eq!(kernel(101, Order::Random, Order::Same).at(0), None);
}

/// Numbers below `below`, each as likely: a linear congruential generator.
fn shuffled(words: u64, state: &mut u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..words).collect();
    for place in (1..words as usize).rev() {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(place, (*state >> 33) as usize % (place + 1));
    }
    order
}

#[test]
fn random_order_is_told_by_its_median() {
    let random = kernel(1000, Order::Random, Order::Same);
    let Bounds { low, estimate: Some(estimate), high: Some(high) } = random.worst() else {
        panic!()
    };
    assert_eq!((low, high), (700.0, 700.0 + 999.0 * 10.0));
    let mut state = 1;
    let mut worst: Vec<f64> = (0..301)
        .map(|_| {
            let order = shuffled(1000, &mut state);
            let times =
                (0..).zip(&order).map(|(consumed, &produced)| random.of(produced, consumed));
            times.fold(f64::INFINITY, f64::min)
        })
        .collect();
    worst.sort_by(f64::total_cmp);
    let median = worst[150];
    assert!((median / estimate - 1.0).abs() < 0.1, "{median} {estimate}");
}

/// What watches would tell of a kernel, at these words of its buffers.
fn measured(kernel: &Kernel, words: &[u64]) -> (Profile, Profile) {
    let last = kernel.words - 1;
    let place = |order, i| if order == Order::Same { i } else { last - i };
    let profile = |time: &dyn Fn(u64) -> f64| {
        let position =
            |&i: &u64| Position { x: i as f64 / last as f64, time: Bounds::exactly(time(i)) };
        Profile::new(words.iter().map(position).collect(), 10).unwrap()
    };
    let before =
        |i| kernel.after_production + kernel.produce * (last - place(kernel.produced, i)) as f64;
    let after = |i| kernel.before_consumption + kernel.consume * place(kernel.consumed, i) as f64;
    (profile(&before), profile(&after))
}

#[test]
fn what_was_measured_gives_what_the_kernel_says() {
    for orders in [
        (Order::Same, Order::Same),
        (Order::Same, Order::Reverse),
        (Order::Reverse, Order::Same),
        (Order::Reverse, Order::Reverse),
    ] {
        let kernel = kernel(101, orders.0, orders.1);
        let (send, receive) = measured(&kernel, &[0, 40, 70, 100]);
        let available = Available::concurrent(Some(&send), Some(&receive));
        assert_eq!(available.sent_while_produced.worst, kernel.worst(), "{orders:?}");
        assert_eq!(available.sent_when_produced.worst, Bounds::exactly(kernel.independent()));
        assert_eq!(available.sent_when_produced.half, Bounds::exactly(kernel.independent()));
        // the first to be consumed waits as long as all; half of them 50 steps longer
        let received = available.received_while_consumed;
        assert_eq!(received.worst, Bounds::exactly(700.0));
        assert!((received.half.estimate.unwrap() - 1200.0).abs() < 10.0, "{received:?}");
        assert_eq!(send.per_word(101), Bounds::exactly(30.0));
        assert_eq!(receive.per_word(101), Bounds::exactly(10.0));
    }
}

#[test]
fn bounds_stay_bounds() {
    let (send, _) = measured(&kernel(101, Order::Same, Order::Same), &[0, 100]);
    let untouched = Bounds { low: 300.0, estimate: None, high: None };
    let touched = Bounds { low: 100.0, estimate: Some(150.0), high: Some(200.0) };
    let positions = vec![Position { x: 1.0, time: untouched }, Position { x: 0.0, time: touched }];
    let receive = Profile::new(positions, 10).unwrap();
    assert_eq!(receive.least(), touched, "the other is longer");
    let available = Available::concurrent(Some(&send), Some(&receive));
    let worst = available.sent_when_produced.worst;
    assert_eq!(worst, Bounds { low: 600.0, estimate: Some(650.0), high: Some(700.0) });
    // nothing limits the end, nor what lies on the way there
    assert_eq!(receive.at(0.5), Bounds { low: 200.0, estimate: None, high: None });
    let worst = available.sent_while_produced.worst;
    assert_eq!((worst.low, worst.estimate), (500.0 + 300.0, None));
    assert_eq!(receive.per_word(101), Bounds { low: 1.0, estimate: None, high: None });

    let one_side = Available::concurrent(Some(&send), None);
    let worst = one_side.sent_when_produced.worst;
    assert_eq!(worst, Bounds { low: 500.0, estimate: None, high: None });
}

#[test]
fn the_first_datum_of_a_pipeline_has_none() {
    let (send, receive) = measured(&kernel(101, Order::Same, Order::Same), &[0, 100]);
    let pipelined = Available::pipelined(Some(&send), Some(&receive));
    let none = Bounds { low: 0.0, estimate: Some(0.0), high: Some(700.0) };
    for of_data in pipelined.by_granularity() {
        assert_eq!(of_data.worst, none);
    }
    let either = Available::either(Some(&send), Some(&receive));
    let unknown = Bounds { low: 0.0, estimate: None, high: Some(1700.0) };
    assert_eq!(either.sent_while_produced.worst, unknown);
}
