//! Screens of every size.

use std::path::PathBuf;
use std::time::Duration;

use super::looker::JobMoment;
use super::view::drawn;
use lapscope_data::model::{Nanos, Rank};
use lapscope_data::state::Condition;
use lapscope_watch::live::{Alert, AlertKind, Moment, Pace, RankPace, SitePace, UnreturnedCall};

fn rank(number: i64) -> RankPace {
    let share = number as f64 / 10.0 % 1.0;
    let pace = Pace { calls_per_s: 1234.5, exposed_share: share, ..Pace::default() };
    RankPace {
        rank: Rank::of_first_world(number),
        host: "vm".into(),
        condition: Condition::Runs,
        is_stopped: false,
        calls: 100,
        pace,
        quiet_ns: Nanos(3_000_000),
        inside: (number % 2 == 1).then(|| UnreturnedCall {
            call: "MPI_Waitall".into(),
            site: None,
            since_ns: Nanos(2_000_000),
        }),
    }
}

fn seen(ranks: i64) -> JobMoment {
    let site = |number: i64| SitePace {
        call: format!("MPI_Wait{number}"),
        site: None,
        exposed_ns: Nanos(1_000_000_000),
        exposed_share: 0.1,
        calls: 7,
        ranks_inside: 1,
    };
    let total = Pace {
        calls_per_s: 99.0,
        messages_per_s: 5.5,
        bytes_per_s: 4096.0,
        exposed_share: 0.25,
        ..Pace::default()
    };
    let alert = Alert {
        kind: AlertKind::NoProgress,
        sentence: "no MPI call of any rank has ended for 34.0 s: see `lapscope hang`".into(),
        ranks: Vec::new(),
    };
    let moment = Moment {
        age_ns: Nanos(12_000_000_000),
        mpi_library: "An MPI".into(),
        command: "./app\x1b[2J \u{5bbd}".into(),
        world_size: ranks,
        hosts: 1,
        window_ns: Nanos(10_000_000_000),
        total,
        ranks: (0..ranks).map(rank).collect(),
        sites: (0..12).map(site).collect(),
        alerts: vec![alert],
        exposed_shares: vec![0.0, 0.25, 0.5, 1.0],
        ..Moment::default()
    };
    JobMoment { run: PathBuf::from("runs/a"), moment }
}

#[test]
fn a_screen_says_it_all() {
    let lines = drawn(seen(3), 80, 24, "");
    let expected = [
        "lapscope live  runs/a                                               12.0 s  runs",
        "3 ranks on vm · An MPI · ./app\\x1b[2J 宽",
        "exposed 25.0 % of the last 10.0 s  ▁▃▅█",
        "99.0 calls/s · 5.5 messages/s · 4.00 KiB/s",
        "! no MPI call of any rank has ended for 34.0 s: see `lapscope hang`",
        "",
        "RANKS        exposed  calls/s  by rank",
        "0              0.0 %     1235  3.00 ms outside MPI",
        "1 █           10.0 %     1235  2.00 ms MPI_Waitall",
        "2 ██          20.0 %     1235  3.00 ms outside MPI",
    ];
    assert_eq!(lines[..expected.len()], expected, "{}", lines.join("\n"));
    assert_eq!(lines.len(), 24);
    assert!(lines[23].starts_with("q quit · p pause"), "{}", lines[23]);
    let sites = lines.iter().position(|line| line.starts_with("SITES")).expect("sites");
    assert_eq!(lines[sites + 1], " 10.0 %   1.00 s  MPI_Wait0  1 inside");
    assert_eq!(sites, 11, "{}", lines.join("\n"));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    for ranks in [0, 1, 3, 33, 500] {
        for (columns, lines) in
            [(1, 1), (2, 3), (20, 5), (20, 1), (1, 50), (40, 10), (80, 24), (300, 100), (0, 0)]
        {
            for keys in ["", "h", "b", "bjjj", "sjsss", "p", "d"] {
                let drawn = drawn(seen(ranks), columns, lines, keys);
                assert!(drawn.len() <= usize::from(lines));
            }
        }
    }
    assert!(drawn(seen(1), 20, 5, "").join("\n").contains("RANKS"));
}

#[test]
fn many_ranks_are_put_together_and_scroll() {
    let all = drawn(seen(5000), 80, 24, "").join("\n");
    assert!(all.contains("put together") && all.contains("0-499 "), "{all}");
    let single = drawn(seen(5000), 80, 24, "b");
    assert!(single.iter().any(|line| line.contains("of 5000")), "{}", single.join("\n"));
    let scrolled = drawn(seen(5000), 80, 24, "bjjj").join("\n");
    assert!(scrolled.contains("4 to") && scrolled.contains("\n   3 "), "{scrolled}");
    let sorted = drawn(seen(3), 80, 24, "s").join("\n");
    assert!(sorted.contains("by least exposed"), "{sorted}");
}

#[test]
fn help_comes_and_goes() {
    let help = drawn(seen(3), 80, 24, "h").join("\n");
    assert!(help.contains("leave; the job goes on") && help.contains("any other key: back"));
    assert_eq!(drawn(seen(3), 80, 24, "hx"), drawn(seen(3), 80, 24, ""));
}

#[test]
fn a_terminal_without_utf8_gets_ascii() {
    let area = ratatui::layout::Rect::new(0, 0, 80, 24);
    let mut buffer = ratatui::buffer::Buffer::empty(area);
    super::screen::draw(&mut buffer, area, &seen(3), &mut Default::default(), None);
    super::letters::to_ascii(&mut buffer);
    let lines = super::letters::lines(&buffer);
    assert!(lines.iter().all(|line| line.is_ascii()), "{}", lines.join("\n"));
    assert_eq!(lines[2], "exposed 25.0 % of the last 10.0 s  .:+#");
}

/// Runs in a terminal of its own, started by the test below.
#[test]
#[ignore = "takes the terminal"]
fn panics_with_the_terminal_in_its_hands() {
    let _taken = super::terminal::Taken::take().expect("a terminal");
    panic!("on purpose");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let mut command = lapscope_fixture::child::command(std::env::current_exe().expect("this test"));
    let name = "live::tests::panics_with_the_terminal_in_its_hands";
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("TERM", "xterm");
    let mut terminal = lapscope_fixture::pty::Terminal::start(command, 80, 24);
    let status = terminal.end(Duration::from_secs(20)).expect("it ends");
    assert!(!status.success());
    let written = String::from_utf8_lossy(&terminal.written).into_owned();
    let (left, said) = (written.find("\x1b[?1049l"), written.find("on purpose"));
    assert!(written.contains("\x1b[?1049h"), "it was taken: {written}");
    assert!(left.is_some() && left < said, "given back before the panic speaks: {written}");
    assert!(written.contains("\x1b[?25h") && terminal.is_as_before());
}
