//! Kernels whose times available are worked out by hand.

use lapscope_fixture::random::Random;

use super::*;

/// T_P 30, T_C 10, T_AP 500, T_AC 200 ns.
fn kernel(words: u64, produced: AccessOrder, consumed: AccessOrder) -> Transfer {
    Transfer {
        send: Profile::exactly(produced, 500.0, 30.0, words),
        receive: Profile::exactly(consumed, 200.0, 10.0, words),
        words,
    }
}

#[test]
fn phiib_of_sweep3d_has_the_same_time_for_all_data() {
    let side = Profile::exactly(AccessOrder::Same, 0.0, 1050.0, 10);
    let phiib = Transfer { send: side, receive: side, words: 10 };
    for i in 0..10 {
        let Some(ConfidenceBounds { estimate: Some(time), .. }) = phiib.at(f64::from(i) / 9.0)
        else {
            panic!()
        };
        assert!((time - 9450.0).abs() < 1e-6, "{i}: {time}; published: 9.46 us");
    }
    let worst = Available::concurrent(&phiib).sent_while_produced.worst;
    assert_eq!(worst, ConfidenceBounds::exactly(9450.0));
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
    let of = |produced, consumed| Available::concurrent(&kernel(101, produced, consumed));
    let all = |produced, consumed| of(produced, consumed).sent_while_produced;
    let exactly = |worst, half| DataTimes {
        worst: ConfidenceBounds::exactly(worst),
        half: ConfidenceBounds::exactly(half),
    };
    // the last word is written last and read last: 100 steps of consumption; the first 100 of production
    assert_eq!(all(AccessOrder::Same, AccessOrder::Same), exactly(1700.0, 700.0 + 1500.0 + 500.0));
    assert_eq!(all(AccessOrder::Reverse, AccessOrder::Reverse), exactly(1700.0, 2700.0));
    // one word is written last and read first
    assert_eq!(all(AccessOrder::Same, AccessOrder::Reverse), exactly(700.0, 2700.0));
    assert_eq!(all(AccessOrder::Reverse, AccessOrder::Same), exactly(700.0, 2700.0));
    // each word is read when it is there
    assert_eq!(all(AccessOrder::Same, AccessOrder::AtOnce), exactly(700.0, 2200.0));
    assert_eq!(all(AccessOrder::AtOnce, AccessOrder::AtOnce), exactly(700.0, 700.0));
    for (produced, consumed) in
        [(AccessOrder::Same, AccessOrder::Reverse), (AccessOrder::Random, AccessOrder::Same)]
    {
        let of = of(produced, consumed);
        assert_eq!(of.sent_when_produced, exactly(700.0, 700.0));
        // half of the words are read 50 steps behind the first
        assert_eq!(of.received_while_consumed, exactly(700.0, 1200.0));
    }
}

fn shuffled(words: u32, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..words).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, random.below(place as i64 + 1) as usize);
    }
    order
}

#[test]
fn random_order_is_told_by_its_median() {
    let words = 1000;
    let transfer = kernel(words.into(), AccessOrder::Random, AccessOrder::Same);
    assert_eq!(transfer.at(0.0), None);
    let DataTimes { worst, half } = Available::concurrent(&transfer).sent_while_produced;
    assert_eq!((worst.low, worst.high), (700.0, Some(700.0 + 999.0 * 10.0)));
    let mut random = Random(1);
    let mut of_orders: Vec<[f64; 2]> = (0..301)
        .map(|_| {
            let produced = shuffled(words, &mut random);
            let time = |(consumed, &produced): (u32, &u32)| {
                700.0 + 30.0 * f64::from(words - produced - 1) + 10.0 * f64::from(consumed)
            };
            let mut times: Vec<f64> = (0..).zip(&produced).map(time).collect();
            times.sort_by(f64::total_cmp);
            [times[0], times[500]]
        })
        .collect();
    of_orders.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let ratio = of_orders[150][0] / worst.estimate.unwrap();
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    let ratio = of_orders[150][1] / half.estimate.unwrap();
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // with nothing to wait for on one side the worst is what all have
    let at_once = Transfer {
        receive: Profile { order: AccessOrder::AtOnce, ..transfer.receive },
        ..transfer
    };
    let worst = Available::concurrent(&at_once).sent_while_produced.worst;
    assert_eq!(worst, ConfidenceBounds::exactly(700.0));
}

#[test]
fn bounds_stay_bounds() {
    let known = kernel(101, AccessOrder::Same, AccessOrder::Same);
    let receive = Profile {
        order: AccessOrder::Same,
        all: ConfidenceBounds { low: 100.0, estimate: Some(150.0), high: Some(200.0) },
        half: ConfidenceBounds { low: 300.0, estimate: None, high: None },
        word: Some(ConfidenceBounds { low: 1.0, estimate: None, high: None }),
    };
    let available = Available::concurrent(&Transfer { receive, ..known });
    let worst = ConfidenceBounds { low: 600.0, estimate: Some(650.0), high: Some(700.0) };
    assert_eq!(available.sent_when_produced.worst, worst);
    // the last word: 100 steps of at least 1 ns each; the first: 100 steps of production
    let worst = ConfidenceBounds { low: 700.0, estimate: None, high: Some(700.0 + 3000.0) };
    assert_eq!(available.sent_while_produced.worst, worst);

    let unordered = Profile { order: AccessOrder::Unknown, word: None, ..receive };
    let available = Available::concurrent(&Transfer { receive: unordered, ..known });
    let at_least = |low| ConfidenceBounds { low, estimate: None, high: None };
    // half of the send buffer has 2000, all of the receive buffer 100
    let expected = DataTimes { worst: at_least(600.0), half: at_least(2100.0) };
    assert_eq!(available.sent_while_produced, expected);

    let one_side = Available::concurrent(&Transfer { receive: Profile::UNKNOWN, ..known });
    assert_eq!(one_side.sent_when_produced.worst, at_least(500.0));
    assert_eq!(one_side.sent_while_produced.half, at_least(2000.0));
}

#[test]
fn the_first_datum_of_a_pipeline_has_none() {
    let transfer = kernel(101, AccessOrder::Same, AccessOrder::Same);
    let none = ConfidenceBounds { low: 0.0, estimate: Some(0.0), high: Some(700.0) };
    let Available { sent_while_produced, sent_when_produced, received_while_consumed } =
        Available::pipelined(&transfer);
    for of_data in [sent_while_produced, sent_when_produced, received_while_consumed] {
        assert_eq!(of_data.worst, none);
    }
    let unknown = ConfidenceBounds { low: 0.0, estimate: None, high: Some(1700.0) };
    assert_eq!(Available::either(&transfer).sent_while_produced.worst, unknown);
}
