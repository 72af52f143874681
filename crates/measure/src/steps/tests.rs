use super::anchor::{candidates, choose};
use super::events::{Caller, Events, StepEvent, Tree, NOBODY};
use super::*;
use lapscope_data::model::Frame;
use lapscope_trace::made_up::MadeUp;
use lapscope_trace::stats::scramble;
use lapscope_trace::Mark;
use lapscope_trace::Presence;

/// A rank's calls: functions are letters, the last of them MPI's.
struct Program {
    tree: Tree,
    list: Vec<StepEvent>,
    now: i64,
    noise: u64,
    /// For how long it keeps the processor and then has to wait for it, at random; `None`: it is alone there.
    shares: Option<(u64, u64)>,
    /// When it next has to wait.
    next_pause: i64,
}

impl Program {
    fn new() -> Program {
        Program {
            tree: Tree::new(),
            list: Vec::new(),
            now: 0,
            noise: 0,
            shares: None,
            next_pause: 0,
        }
    }

    fn path(callers: &str) -> Vec<Caller> {
        let (functions, call) = callers.split_at(callers.len() - 1);
        let frame = |at: char| Caller::Frame(Frame { module: None, address: at as u64, level: 0 });
        let call = Caller::Call(u32::from(call.as_bytes()[0]));
        functions.chars().map(frame).chain([call]).collect()
    }

    /// Computes, and differs from one time to the next by a tenth.
    fn compute(&mut self, ns: i64) {
        self.noise += 1;
        self.now += ns + (scramble(self.noise) % (ns as u64 / 10 + 1)) as i64;
        let Some((keeps, waits)) = self.shares else { return };
        while self.now > self.next_pause {
            let random = scramble(self.noise + self.next_pause as u64);
            let paused = (waits / 2 + random % waits) as i64;
            self.now += paused;
            self.next_pause += paused + 1 + (scramble(random) % (2 * keeps)) as i64;
        }
    }

    fn call(&mut self, callers: &str) {
        self.call_to(callers, NOBODY);
    }

    fn call_to(&mut self, callers: &str, peer: u32) {
        self.compute(200);
        let leaf = self.tree.add(Program::path(callers));
        self.list.push(StepEvent { begin: self.now, end: self.now + 3_000, leaf, peer });
        self.now += 3_000;
    }

    fn steps(self) -> Option<usize> {
        steps_of(vec![self]).map(|counts| counts[0])
    }
}

/// How many steps each of these ranks made.
fn steps_of(ranks: Vec<Program>) -> Option<Vec<usize>> {
    let events = |program: Program| Events::new(program.list, program.tree);
    let mut ranks: Vec<Events> = ranks.into_iter().map(events).collect();
    let found: Vec<_> = ranks.iter_mut().map(candidates).collect();
    let anchor = choose(&found)?;
    Some(ranks.iter().map(|events| anchor.boundaries(events).len()).collect())
}

/// Posts to so many neighbours in a loop, and waits for all at once.
fn exchange(program: &mut Program, function: &str, neighbors: u32) {
    for neighbor in 0..neighbors {
        program.call_to(&format!("{function}r"), neighbor);
    }
    for neighbor in 0..neighbors {
        program.call_to(&format!("{function}s"), neighbor);
    }
    program.call(&format!("{function}w"));
}

#[test]
fn a_loop_is_counted_and_what_is_in_front_of_it_and_behind_is_not() {
    for neighbors in [1, 2, 6] {
        let mut program = Program::new();
        program.call("maB");
        exchange(&mut program, "mi", neighbors);
        for step in 0..40 {
            program.compute(1_000_000);
            exchange(&mut program, "mx", neighbors);
            if step % 10 == 9 {
                program.call("moA"); // output, now and then
            }
        }
        program.call("mfA");
        assert_eq!(program.steps(), Some(40), "{neighbors} neighbours");
    }
}

/// Six swaps, each with a receive, a send and a wait.
fn swaps(program: &mut Program, function: &str) {
    some_swaps(program, function, 6);
}

fn some_swaps(program: &mut Program, function: &str, swaps: u32) {
    for swap in 0..swaps {
        program.call_to(&format!("mv{function}r"), swap / 2);
        program.call_to(&format!("mv{function}s"), swap / 2);
        program.call(&format!("mv{function}w"));
    }
}

/// As LAMMPS: forces are sent back every step; positions are sent every step but every tenth, in which atoms move between ranks.
#[test]
fn a_step_that_does_something_else_is_a_step() {
    for is_only_forward in [false, true] {
        let mut program = Program::new();
        for step in 0..250 {
            if step % 10 == 9 {
                program.call("mveE");
                swaps(&mut program, "b");
                program.compute(1_500_000);
            } else {
                swaps(&mut program, "f");
            }
            program.compute(1_000_000);
            if !is_only_forward {
                swaps(&mut program, "g");
                program.compute(50_000);
            }
            if step % 100 == 99 {
                program.call("mvtA");
            }
        }
        // with nothing that is done in each step, steps are missed, and none is better
        let expected = (!is_only_forward).then_some(250);
        assert_eq!(program.steps(), expected, "only forward: {is_only_forward}");
    }
}

/// Ranks that have to wait for a processor in the middle of anything: single segments look like two steps, and single bursts like two.
#[test]
fn a_busy_machine_hides_no_steps() {
    let rank = |noise: u64, shares: (u64, u64), swaps: u32| {
        let mut program = Program { noise, shares: Some(shares), ..Program::new() };
        for step in 0..100 {
            if step % 20 == 19 {
                program.call("mveE");
                some_swaps(&mut program, "b", swaps);
                program.compute(100_000);
            } else {
                some_swaps(&mut program, "f", swaps);
            }
            program.compute(800_000);
            if step % 10 == 4 {
                program.call("mvtA");
            }
            program.compute(400_000);
            some_swaps(&mut program, "g", swaps);
            program.compute(300_000);
        }
        program
    };
    for shares in [(300_000, 3_000_000), (1_000_000, 10_000_000), (2_000_000, 4_000_000)] {
        for seed in 0..8 {
            let ranks = (0..3)
                .map(|place| rank(10_000 * (3 * seed + place), shares, 4 + 2 * (seed % 2) as u32))
                .collect();
            assert_eq!(steps_of(ranks), Some(vec![100; 3]), "{shares:?}, {seed}");
        }
    }
}

#[test]
fn an_inner_loop_is_no_step() {
    for is_one_function in [true, false] {
        let mut program = Program::new();
        for step in 0..12 {
            program.compute(4_000_000);
            program.call("maH");
            if is_one_function {
                program.call("msB"); // in front of the inner loop
            }
            for _ in 0..30 + step {
                program.compute(80_000);
                program.call("msC");
                program.call("msD");
            }
        }
        assert_eq!(program.steps(), Some(12), "in a function: {is_one_function}");
    }
}

#[test]
fn what_does_not_recur_has_no_steps() {
    let mut random = Program::new();
    for number in 0..300u64 {
        random.compute(10_000 + (scramble(number) % 100_000) as i64);
        let site = ["maA", "mbB", "mcC", "mdD", "meE"][scramble(number + 7) as usize % 5];
        random.call(site);
    }
    assert_eq!(random.steps(), None);
    let mut few = Program::new();
    for _ in 0..4 {
        few.compute(100_000);
        few.call("maA");
    }
    assert_eq!(few.steps(), None, "too few");
    assert_eq!(Program::new().steps(), None);
    let mut phases = Program::new();
    for phase in ["ma", "mb", "mc"] {
        for _ in 0..20 {
            phases.compute(1_000_000);
            exchange(&mut phases, phase, 2);
        }
    }
    assert_eq!(phases.steps(), None, "none of three phases is the program");
}

/// Steps of 1 ms on two ranks, the second a little later; the last rank of three does nothing.
fn run(counts: [usize; 2]) -> Trace {
    let mut run = MadeUp::new(3);
    for (rank, count) in counts.into_iter().enumerate() {
        run.compute(rank, 1_000 * (rank as i64 + 1));
        for _ in 0..count {
            let request = run.ireceive(rank, 1, 1 - rank, 100, 10);
            let send = run.isend(rank, 2, 1 - rank, 100, 10);
            run.compute(rank, 900_000);
            run.wait(rank, 3, &[request, send]);
            run.compute(rank, 99_980);
        }
    }
    run.finish()
}

#[test]
fn ranks_step_by_their_own_moments() {
    let trace = run([20, 20]);
    let rule = StepRule::find(&trace, &sample(3)).unwrap();
    let steps: Vec<Vec<(i64, i64)>> = (0..3).map(|rank| rule.boundaries(&trace, rank)).collect();
    assert_eq!((steps[0].len(), steps[1].len(), steps[2].len()), (20, 20, 0));
    assert_eq!(steps[0][4], (1_000 + 4_000_000, 1_000 + 5_000_000));
    assert_eq!(steps[1][4].0, steps[0][4].0 + 1_000);
    assert_eq!(steps[0][19].1, 1_000 + 19_900_020, "the last ends with its last call");
    let plan = Plan::new(rule.clone(), &StepCounts::count(&trace, &rule, None)).unwrap();
    assert_eq!((plan.count, plan.ranks, plan.others, plan.without), (20, 2, 0, 1));
    let stretch = StepCounts::count(&trace, &rule, Some((3, 4, 20))).stretch(3);
    assert_eq!(stretch.ranks[0], (2_001_000, 4_001_000));
    assert_eq!(stretch.ranks[2], (2_001_000, 4_002_000), "who has no steps is looked at meanwhile");
    let mut sums = StepSums::default();
    for rank in [2, 1, 0] {
        sums.merge(Stepper::new(&trace, rank, Some(&plan)).finish());
    }
    assert_eq!((sums.cells.len(), sums.cells[4].times, sums.cells[4].ns), (20, 2, 2_000_000));
    assert_eq!((sums.cells[4].begin, sums.cells[4].end), (4_001_000, 5_002_000));
    assert_eq!(sums.span(5, 6), Some(((5, 6), (4_001_000, 6_002_000))));
    assert_eq!((sums.span(0, 1), sums.span(20, 21)), (None, None));
    assert_eq!(sums.costliest(), None, "nothing waits");
    // two ranks fill 19.9 ms and the 20 ns of their last wait by steps; the third makes none
    let time = 19_900_020;
    assert_eq!((sums.useful.ranks, sums.useful.longest), (2, time));
    sums.cells[7].spent.exposed.transfer = 3;
    sums.cells[9].spent.exposed.late_partner = 5;
    assert_eq!(sums.costliest(), Some(((10, 10), (9_001_000, 10_002_000))));
}

#[test]
fn ranks_that_do_not_agree_have_no_steps() {
    let trace = run([20, 31]);
    let found = StepRule::find(&trace, &[0, 1]);
    assert_eq!(found, Err(NoSteps::NothingRecurs));
    let of_first = StepRule::find(&trace, &[0]).unwrap();
    let why = Plan::new(of_first.clone(), &StepCounts::count(&trace, &of_first, None)).unwrap_err();
    assert_eq!(why, NoSteps::RanksDiffer { all: 2, ranks: 1, count: 31 });
}

#[test]
fn many_steps_are_put_together() {
    let mut cells = 0;
    for (count, in_cell) in [(4_096u64, 1u64), (4_097, 2), (100_000, 32)] {
        let marks = (0..count).map(|step| Mark { at: step as i64 * 10, level: 2, name: None });
        let mut trace = MadeUp::new(1).finish();
        trace.ranks[0].marks = marks.collect();
        let plan =
            Plan::new(StepRule::Marks, &StepCounts::count(&trace, &StepRule::Marks, None)).unwrap();
        let sums = Stepper::new(&trace, 0, Some(&plan)).finish();
        assert_eq!((sums.steps_in_cell, sums.cells[0].times), (in_cell, in_cell));
        let begin = in_cell as i64 * 10;
        let of_cell = ((in_cell + 1, 2 * in_cell), (begin, 2 * begin));
        assert_eq!(sums.span(in_cell + 1, in_cell + 1), Some(of_cell));
        cells = cells.max(sums.cells.len());
    }
    assert_eq!(cells, 4_096);
}

#[test]
fn marked_regions_are_nested_and_steps_of_most_time() {
    let mut trace = MadeUp::new(1).finish();
    trace.mark_names = ["step", "solve", "once", "open"].map(str::to_owned).to_vec();
    let mut marks = vec![(0, 1, 2)];
    for step in 0..4 {
        let at = 100 * step + 10;
        marks.extend([(at, 1, 0), (at + 20, 1, 1), (at + 30, 1, 0), (at + 40, -1, 0)]);
        marks.extend([(at + 60, -1, 1), (at + 80, -1, 0)]);
    }
    marks.extend([(450, -1, 2), (460, 1, 3), (470, -1, 1)]);
    let mark = |(at, level, name)| Mark { at, level, name: Some(name) };
    trace.ranks[0].marks = marks.into_iter().map(mark).collect();
    trace.ranks[0].presence = Presence::new(vec![(0, 20), (5_000, 6_000)]);
    let useful = Stepper::new(&trace, 0, None).finish().regions["step"].useful;
    // four times 80 ns, though 10 ns of them lie in two regions of the name; 10 ns of the first are inside MPI
    assert_eq!((useful.longest, useful.sum), (320, 310));
    let regions = marked::regions(&trace, 0);
    assert_eq!(regions["solve"], [(30, 70), (130, 170), (230, 270), (330, 370)]);
    assert_eq!((regions["step"].len(), regions["step"][1]), (8, (40, 50)));
    assert_eq!(regions["once"], [(0, 450)]);
    assert!(!regions.contains_key("open"), "what has no end is no region");
    assert_eq!(StepRule::find(&trace, &[0]), Ok(StepRule::Region("step".to_owned())));
    let begins = [5, 105, 205].map(|at| Mark { at, level: 2, name: None });
    trace.ranks[0].marks.extend(begins);
    assert_eq!(
        StepRule::find(&trace, &[0]),
        Ok(StepRule::Marks),
        "steps that the program names as such"
    );
    trace.ranks.push(MadeUp::new(1).finish().ranks.remove(0));
    assert_eq!(StepRule::find(&trace, &[0, 1]), Ok(StepRule::Marks), "a rank that marks nothing");
    assert_eq!(StepRule::Marks.boundaries(&trace, 0)[..2], [(5, 105), (105, 205)]);
}
