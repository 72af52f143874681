//! Where ranks are, in words.

use std::collections::HashMap;

use super::calls;
use super::nesting::is_call;
use super::place::{Doing, RankStack, KEPT};
use lapscope_data::model::Rank;
use lapscope_data::symbols::{base_name, FrameName};
use lapscope_data::text::ranks::in_words;
use lapscope_data::text::{capitalized, plural};

/// The innermost frame that is the program's, not the C library's or the kernel's.
fn innermost(frames: &[FrameName]) -> Option<&FrameName> {
    const OTHERS: [&str; 5] = ["libc.so", "libm.so", "libpthread.so", "ld-linux", "[vdso]"];
    let is_own = |frame: &&FrameName| {
        let name = base_name(frame.module.as_deref().unwrap_or("?"));
        !OTHERS.iter().any(|other| name.starts_with(other))
    };
    frames.iter().find(is_own).or(frames.first())
}

impl RankStack {
    /// "in MPI_Recv, called at exchange ring.c:20", "outside of MPI, computing in fill ring.c:7".
    pub fn place(&self) -> String {
        let caller = self.frames.get(self.wrapper_frames..).filter(|it| !it.is_empty());
        let at = innermost(caller.unwrap_or(&self.frames))
            .map(FrameName::short)
            .unwrap_or_else(|| "an unknown place".to_owned());
        let outside = if self.within.is_some() { "" } else { "outside of MPI, " };
        let place = match (self.doing, &self.call) {
            (Doing::Unknown, _) => return self.unseen(),
            (Doing::Stopped, _) => format!("stopped, at {at}"),
            (Doing::Polls, Some(call)) if calls::asks(call) => format!("testing by {call} at {at}"),
            (Doing::Polls, Some(call)) => format!("calling {call} again and again at {at}"),
            (_, Some(call)) => format!("in {call}, called {}at {at}", self.by_wrapper()),
            (Doing::Asleep, None) => {
                let within = self.sleeps_in.as_ref().map(|it| format!(" in {it},"));
                format!("{outside}asleep{} at {at}", within.unwrap_or_default())
            }
            _ => format!("{outside}computing in {at}"),
        };
        let depth = (self.depth > self.frames.len()).then(|| format!(", {} calls deep", self.depth));
        place + &self.around() + &depth.unwrap_or_default()
    }

    /// "by MPI_Reduce of libwatch.so "
    fn by_wrapper(&self) -> String {
        let wrapper = self.wrapper_frames.checked_sub(1).and_then(|at| self.frames.get(at));
        let library = wrapper.and_then(|it| it.module.as_deref()).map(base_name);
        match (&self.called_as, library) {
            (Some(call), Some(library)) => format!("by {call} of {library} "),
            (Some(call), None) => format!("by what stands for {call} "),
            (None, Some(library)) => format!("by {library} "),
            (None, None) => String::new(),
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

    /// What is known of one whose stack is not.
    fn unseen(&self) -> String {
        let problem = self.problem.as_deref().unwrap_or("");
        let why = problem.split_once(": ").map_or(problem, |(why, _)| why);
        let place = self.sleeps_in.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
        match self.runs {
            None => "gone".to_owned(),
            Some(true) => format!("on a processor, its stack not read: {why}"),
            Some(false) => format!("asleep{place}, its stack not read: {why}"),
        }
    }

    /// What it does, at the end of its call path.
    pub(super) fn leaf(&self) -> String {
        let moves = if self.stands { "" } else { ", moves" };
        let what = match (self.doing, &self.call) {
            (Doing::Unknown, _) => return self.unseen(),
            (Doing::Stopped, _) => "stopped".to_owned(),
            (_, Some(call)) => call.clone(),
            (Doing::Asleep, None) => {
                format!("asleep in {}", self.sleeps_in.as_deref().unwrap_or("the kernel"))
            }
            _ => "computes".to_owned(),
        };
        what + moves
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

/// The ranks that stand apart from most others, and where these are.
pub(super) fn sentence(ranks: &[RankStack]) -> String {
    if ranks.is_empty() {
        return "No rank was found.".to_owned();
    }
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
            Some(numbers) => in_words(&numbers, ranks.len()),
            None => format!(
                "process {}",
                members.iter().map(|it| it.pid.to_string()).collect::<Vec<_>>().join(", ")
            ),
        };
        let stand = members.iter().filter(|it| it.stands).count();
        let still = match stand {
            _ if members[0].doing == Doing::Unknown => "",
            0 => "; elsewhere at the first look",
            count if count == members.len() => " at both looks",
            _ => "; some moved between the looks",
        };
        let passed = match members.as_slice() {
            [only] => only.arguments.as_ref().map(|it| format!(" ({})", it.in_words())),
            _ => None,
        };
        let passed = passed.unwrap_or_default();
        format!("{who} {} {place}{passed}{still}", if members.len() == 1 { "is" } else { "are" })
    });
    let said: Vec<String> = said.map(|sentence| capitalized(&sentence)).collect();
    let mut text = said.join(". ");
    if groups.len() > MOST {
        let further = groups.len() - MOST;
        text += &format!(". Others are at {further} further place{}", plural(further as u64));
    }
    let all_stand =
        ranks.iter().all(|it| it.stands && it.call.is_some() && it.doing != Doing::Polls);
    if all_stand {
        text += ". So all that were looked at are inside MPI: they wait, or come back to the same place again and again";
    }
    text + "."
}
