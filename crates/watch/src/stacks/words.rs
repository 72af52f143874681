//! Where ranks are, in words.

use std::collections::HashMap;

use super::calls;
use super::nesting::is_call;
use super::place::{Doing, RankStack, ThreadStack, KEPT};
use lapscope_data::model::Rank;
use lapscope_data::symbols::{base_name, FrameName};
use lapscope_data::text::ranks::in_words;
use lapscope_data::text::{capitalized, list_ranks, plural};

/// Drivers of GPUs, and the runtime through which programs call NVIDIA's.
const OF_GPUS: [&str; 6] =
    ["libcuda.so", "libcudart.so", "libamdhip64.so", "libhsa-runtime64.so", "libze_", "libnvidia-"];

fn is_of(libraries: &[&str], frame: &FrameName) -> bool {
    let name = base_name(frame.module.as_deref().unwrap_or("?"));
    libraries.iter().any(|library| name.starts_with(library))
}

/// The innermost frame that is the program's, not the C library's or the kernel's.
fn innermost(frames: &[FrameName]) -> Option<&FrameName> {
    const OTHERS: [&str; 5] = ["libc.so", "libm.so", "libpthread.so", "ld-linux", "[vdso]"];
    frames.iter().find(|frame| !is_of(&OTHERS, frame)).or(frames.first())
}

/// The frames of a GPU's driver and those from its caller on, where they begin in one: there a rank waits for its GPU, or gives it work.
fn split_at_driver(frames: &[FrameName]) -> Option<(&[FrameName], &[FrameName])> {
    innermost(frames).filter(|frame| is_of(&OF_GPUS, frame))?;
    let within = frames.iter().position(|frame| is_of(&OF_GPUS, frame))?;
    let behind = frames[within..].iter().position(|frame| !is_of(&OF_GPUS, frame));
    Some(frames.split_at(behind.map_or(frames.len(), |behind| within + behind)))
}

/// "in cuStreamSynchronize of a GPU's driver, called at step x.cu:40"
fn in_driver((driver, caller): (&[FrameName], &[FrameName])) -> String {
    let called = driver.last().and_then(|frame| frame.function.as_deref());
    let place = called
        .map_or("in the driver of a GPU".to_owned(), |it| format!("in {it} of a GPU's driver"));
    let caller = innermost(caller).map(|it| format!(", called at {}", it.short()));
    place + &caller.unwrap_or_default()
}

impl RankStack {
    /// "in MPI_Recv, called at exchange ring.c:20", "outside of MPI, computing in fill ring.c:7".
    pub fn place(&self) -> String {
        match self.at.doing {
            Doing::Unknown => self.unseen(),
            _ => self.at.place(),
        }
    }

    /// What is known of one whose stack is not.
    fn unseen(&self) -> String {
        let problem = self.problem.as_deref().unwrap_or("nobody knows why");
        let why = problem.split_once(": ").map_or(problem, |(why, _)| why);
        let place = self.at.sleeps_in.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
        match self.at.runs {
            None => format!("not to be seen: {why}"),
            Some(true) => format!("on a processor, its stack not read: {why}"),
            Some(false) => format!("asleep{place}, its stack not read: {why}"),
        }
    }

    /// What it does, at the end of its call path.
    pub(super) fn leaf(&self) -> String {
        let at = &self.at;
        let moves = if at.stands { "" } else { ", moves" };
        let what = match (at.doing, &at.call) {
            (Doing::Unknown, _) => return self.unseen(),
            (Doing::Stopped, _) => "stopped".to_owned(),
            (_, Some(call)) => call.clone(),
            (Doing::Asleep, None) => {
                format!("asleep in {}", at.sleeps_in.as_deref().unwrap_or("the kernel"))
            }
            _ if split_at_driver(&at.frames).is_some() => "in the driver of a GPU".to_owned(),
            _ => "computes".to_owned(),
        };
        what + moves
    }
}

impl ThreadStack {
    /// As [`RankStack::place`].
    pub fn place(&self) -> String {
        let caller = self.frames.get(self.wrapper_frames..).filter(|it| !it.is_empty());
        let at = innermost(caller.unwrap_or(&self.frames))
            .map(FrameName::short)
            .unwrap_or_else(|| "an unknown place".to_owned());
        let outside = if self.within.is_some() { "" } else { "outside of MPI, " };
        let place = match (self.doing, &self.call, split_at_driver(&self.frames)) {
            (Doing::Unknown, ..) => return "not to be seen".to_owned(),
            (Doing::Stopped, ..) => format!("stopped, at {at}"),
            (Doing::Polls, Some(call), _) if calls::asks(call) => {
                format!("testing by {call} at {at}")
            }
            (Doing::Polls, Some(call), _) => format!("calling {call} again and again at {at}"),
            (_, Some(call), _) => format!("in {call}, called {}at {at}", self.by_wrapper()),
            (_, None, Some(driver)) => format!("{outside}{}", in_driver(driver)),
            (Doing::Asleep, None, None) => {
                let within = self.sleeps_in.as_ref().map(|it| format!(" in {it},"));
                format!("{outside}asleep{} at {at}", within.unwrap_or_default())
            }
            _ => format!("{outside}computing in {at}"),
        };
        let depth =
            (self.depth > self.frames.len()).then(|| format!(", {} calls deep", self.depth));
        place + &self.around() + &depth.unwrap_or_default()
    }

    /// "through MPI_Reduce of libwatch.so "
    fn by_wrapper(&self) -> String {
        let wrapper = self.wrapper_frames.checked_sub(1).and_then(|at| self.frames.get(at));
        let library = wrapper.and_then(|it| it.module.as_deref()).map(base_name);
        match (self.called_as.as_ref().or(self.call.as_ref()), library) {
            (Some(call), Some(library)) => format!("through {call} of {library} "),
            _ => String::new(),
        }
    }

    /// What a function of the program's is within that MPI calls.
    fn around(&self) -> String {
        let Some(call) = &self.within else { return String::new() };
        let behind = self.frames.iter().position(is_call).map_or(self.frames.len(), |it| it + 1);
        let caller = innermost(&self.frames[behind..]);
        let caller = caller.map(|it| format!(", called at {}", it.short())).unwrap_or_default();
        match self.by_signal {
            true => format!(" (within a handler of a signal that interrupted {call}{caller})"),
            false => format!(" (within a function of the program's that {call} runs{caller})"),
        }
    }

    /// The places of its call path from the innermost on, by `name`; with what is between them.
    pub fn places(&self, name: impl Fn(&FrameName) -> String) -> Vec<String> {
        let mut places = Vec::with_capacity(self.frames.len());
        for (at, frame) in self.frames.iter().enumerate() {
            if at == KEPT && self.depth > self.frames.len() {
                places.push(format!("… {} calls …", self.depth - self.frames.len()));
            }
            match (is_call(frame), &frame.function) {
                (true, Some(call)) => places.extend(["(inside MPI)".to_owned(), call.clone()]),
                _ => places.push(name(frame)),
            }
        }
        places
    }
}

/// Ranks of several worlds are listed: how many a world has is not how many there are.
fn named(numbers: &[Rank], all: &[RankStack]) -> String {
    let mut worlds: Vec<i64> = all.iter().filter_map(|it| Some(it.rank?.world)).collect();
    worlds.sort_unstable();
    worlds.dedup();
    match worlds.len() {
        0 | 1 => in_words(numbers, all.len()),
        _ => format!("rank{} {}", plural(numbers.len() as u64), list_ranks(numbers)),
    }
}

/// The ranks that stand apart from most others, and where these are.
pub(super) fn sentence(ranks: &[RankStack], ended: &[Rank]) -> String {
    if ranks.is_empty() {
        return "No rank was found.".to_owned();
    }
    let gone = match ended.len() {
        0 => String::new(),
        1 => format!("Rank {} has ended. ", list_ranks(ended)),
        _ => format!("Ranks {} have ended. ", list_ranks(ended)),
    };
    let mut groups: Vec<(String, Vec<&RankStack>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for rank in ranks {
        let place = rank.place();
        let at = *known.entry(place).or_insert_with_key(|place| {
            groups.push((place.clone(), Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(rank);
    }
    groups.sort_by_key(|(_, members)| members.len());
    const MOST: usize = 3;
    let said = groups.iter().rev().take(MOST).rev().map(|(place, members)| {
        let numbers: Option<Vec<Rank>> = members.iter().map(|it| it.rank).collect();
        let who = match numbers {
            Some(numbers) => named(&numbers, ranks),
            None => format!(
                "process {}",
                members.iter().map(|it| it.pid.to_string()).collect::<Vec<_>>().join(", ")
            ),
        };
        let stand = members.iter().filter(|it| it.at.stands).count();
        let still = match stand {
            _ if members[0].at.doing == Doing::Unknown => "",
            0 => "; elsewhere at the first look",
            count if count == members.len() => " at both looks",
            _ => "; some moved between the looks",
        };
        let passed = match members.as_slice() {
            [only] => only.at.arguments.as_ref().map(|it| format!(" ({})", it.in_words())),
            _ => None,
        };
        let passed = passed.unwrap_or_default();
        format!("{who} {} {place}{passed}{still}", if members.len() == 1 { "is" } else { "are" })
    });
    let said: Vec<String> = said.map(|sentence| capitalized(&sentence)).collect();
    let mut text = gone + &said.join(". ");
    if groups.len() > MOST {
        let further = groups.len() - MOST;
        text += &format!(". Others are at {further} further place{}", plural(further as u64));
    }
    let is_in_mpi = |it: &ThreadStack| it.stands && it.call.is_some() && it.doing != Doing::Polls;
    let computes = |it: &RankStack| it.other_threads.iter().any(|it| it.doing == Doing::Computes);
    let all_stand = ranks.iter().all(|it| is_in_mpi(&it.at) && !computes(it));
    if all_stand {
        text += ". So all that were looked at are inside MPI: they wait, or come back to the same place again and again";
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::made::{frame, rank};

    /// In a function that MPI calls, or in a handler that interrupted MPI.
    fn within(by_signal: bool) -> RankStack {
        let mut reduce = frame("MPI_Reduce", 1);
        (reduce.module, reduce.file) = (Some("/usr/lib/libmpi.so.40".to_owned()), None);
        let frames = vec![frame("combine", 7), reduce, frame("step", 40), frame("main", 50)];
        let mut rank = rank(3, "a", None, frames);
        (rank.at.within, rank.at.by_signal) = (Some("MPI_Reduce".to_owned()), by_signal);
        rank
    }

    #[test]
    fn what_is_inside_of_mpi_is_said() {
        let mut rank = within(false);
        assert_eq!(
            rank.place(),
            "computing in combine x.c:7 (within a function of the program's that MPI_Reduce runs, called at step x.c:40)"
        );
        assert_eq!(
            rank.at.places(FrameName::brief),
            ["combine x.c:7", "(inside MPI)", "MPI_Reduce", "step x.c:40", "main x.c:50"]
        );
        rank.at.call = Some("MPI_Recv".to_owned());
        rank.at.doing = Doing::InMpi;
        assert!(rank.place().starts_with("in MPI_Recv, called at combine x.c:7 (within "));
        assert!(within(true).place().contains(
            "(within a handler of a signal that interrupted MPI_Reduce, called at step x.c:40)"
        ));
    }

    #[test]
    fn the_program_s_line_is_named_where_a_library_passes_calls_on() {
        let frames = vec![frame("log", 3), frame("MPI_Allreduce", 5), frame("step", 40)];
        let mut rank = rank(0, "a", Some("MPI_Barrier"), frames);
        (rank.at.wrapper_frames, rank.at.called_as) = (2, Some("MPI_Allreduce".to_owned()));
        assert_eq!(
            rank.place(),
            "in MPI_Barrier, called through MPI_Allreduce of app at step x.c:40"
        );
        rank.at.called_as = None;
        assert_eq!(
            rank.place(),
            "in MPI_Barrier, called through MPI_Barrier of app at step x.c:40"
        );
    }

    #[test]
    fn what_is_known_of_one_that_is_not_to_be_seen_is_said() {
        let mut rank = rank(0, "a", None, Vec::new());
        rank.at.doing = Doing::Unknown;
        rank.problem = Some("it may not be traced: a debugger holds it, or".to_owned());
        assert_eq!(rank.leaf(), "on a processor, its stack not read: it may not be traced");
        (rank.at.runs, rank.at.sleeps_in) = (Some(false), Some("read".to_owned()));
        assert_eq!(rank.place(), "asleep in read, its stack not read: it may not be traced");
        rank.at.runs = None;
        assert_eq!(rank.place(), "not to be seen: it may not be traced");
    }

    /// As in cudaStreamSynchronize, which spins, or sleeps.
    #[test]
    fn who_waits_for_a_gpu_does_not_compute() {
        let of = |module: &str, function: &str| FrameName {
            module: Some(module.to_owned()),
            ..frame(function, 1)
        };
        let frames = vec![
            of("/lib/libc.so.6", "sched_yield"),
            of("/lib/libcuda.so.535.104.05", "f"),
            of("/cuda/libcudart.so.12", "cudaStreamSynchronize"),
            frame("step", 40),
        ];
        let mut rank = rank(0, "a", None, frames);
        let expected =
            "outside of MPI, in cudaStreamSynchronize of a GPU's driver, called at step x.c:40";
        assert_eq!(rank.place(), expected);
        assert!(rank.leaf().starts_with("in the driver of a GPU"), "{}", rank.leaf());
        rank.at.doing = Doing::Asleep;
        assert_eq!(rank.place(), expected);
        let nameless = FrameName { function: None, ..of("/lib/libcuda.so.1", "") };
        (rank.at.frames, rank.at.depth) = (vec![nameless.clone()], 1);
        assert_eq!(rank.place(), "outside of MPI, in the driver of a GPU");
        rank.at.frames = vec![frame("host_function", 3), nameless];
        rank.at.doing = Doing::Computes;
        assert_eq!(rank.place(), "outside of MPI, computing in host_function x.c:3");
    }

    #[test]
    fn the_middle_of_a_deep_path_is_counted() {
        let deep = |at: usize| frame("deep", at as u32);
        let mut rank = rank(0, "a", Some("MPI_Recv"), (0..2 * KEPT).map(deep).collect());
        rank.at.depth = 5000;
        let places = rank.at.places(FrameName::brief);
        assert_eq!((places.len(), places[KEPT].as_str()), (257, "… 4744 calls …"));
        assert_eq!(rank.place(), "in MPI_Recv, called at deep x.c:0, 5000 calls deep");
    }
}
