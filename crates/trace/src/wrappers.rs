//! Functions that only pass on to MPI, as the communication layers of many programs do: what tells calls apart are their callers.
//!
//! Found in the call paths of the run: a small function in which each MPI call stands at one place, one call, or several that
//! all post, which was called from at least two places and called nothing else that came to MPI. What calls only such
//! functions may be one in its turn, and what only a wrapper calls is one.
//!
//! A function that posts and waits is an exchange, and no wrapper. Callers that say less than the function does (no
//! name, no line, an interpreter) end the search. It is decided when a run is read, from all of it, and databases keep
//! whole call paths; `diff` joins what it finds in both runs. A policy of injection names the whole way from the call
//! to the caller, since the address of the call is that of all its callers.
//!
//! Where Python calls a library that calls MPI, and no line of the library is known, the line of Python names the call.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use lapscope_data::model::{innermost_own, CallName, CallPath, Frame, Module};
use lapscope_data::places::Places;
use lapscope_data::symbols::{base_name, innermost_name, short_function, FrameName, NameFrames};

/// A function of more machine code than that does something of its own, bytes.
const MOST_BYTES: u64 = 1024;
/// Naming more addresses than that takes too long: nothing is found then.
const MOST_FRAMES: usize = 20_000;
/// Callers in these know nothing of the program.
const INTERPRETERS: [&str; 5] = ["libpython", "python", "libjulia", "julia", "libR.so"];

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct WrapperOptions {
    /// Functions that count as wrappers in any case; `*` stands for any letters.
    pub names: Vec<String>,
    /// Only those.
    pub none_found: bool,
}

impl WrapperOptions {
    /// `--wrapper` as typed: names, or `none`.
    pub fn new(typed: &[String]) -> WrapperOptions {
        let (none, names): (Vec<String>, Vec<String>) =
            typed.iter().cloned().partition(|name| name == "none");
        WrapperOptions { names, none_found: !none.is_empty() }
    }

    fn names(&self, function: &str) -> bool {
        let (bare, last) = (short_function(function), innermost_name(function));
        self.names.iter().any(|name| [function, &bare, &last].iter().any(|it| matches(name, it)))
    }
}

/// A function that only passes on to MPI.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Wrapper {
    /// Demangled.
    pub function: String,
    /// Name of the executable or library.
    pub module: String,
    /// The user said so.
    pub asked: bool,
}

/// A function's name and its module's.
type FunctionInModule<'a> = (&'a String, &'a String);

impl Wrapper {
    fn function(&self) -> FunctionInModule<'_> {
        (&self.function, &self.module)
    }
}

/// The wrappers of a run.
#[derive(Debug, Clone, Default)]
pub struct Wrappers {
    found: BTreeSet<Wrapper>,
    /// Whether what Python calls is named by its line.
    names_python: bool,
}

impl Wrappers {
    /// Judges by all calls of a run and where they were made.
    pub fn find(uses: &Uses<'_>, asked: &WrapperOptions, names: &mut dyn NameFrames) -> Wrappers {
        let frames: HashSet<Frame> =
            uses.paths.iter().flat_map(|path| &path.frames).copied().collect();
        let mut wrappers = Wrappers { names_python: !asked.none_found, ..Wrappers::default() };
        if frames.len() > MOST_FRAMES && asked.names.is_empty() {
            return wrappers;
        }
        let steps: Vec<Vec<PathStep>> =
            uses.paths.iter().map(|path| steps(path, uses.modules, names)).collect();
        let mut at = vec![0; steps.len()];
        let mut called_by_one: Vec<(Wrapper, FunctionInModule<'_>)> = Vec::new();
        loop {
            let known = wrappers.found.len();
            for ((function, module), seen) in look(uses, &steps, &at) {
                let is_asked = asked.names(function) && !seen.places.is_empty();
                let is_found = !asked.none_found && seen.passes_on() && seen.is_small(names);
                if !is_asked && !is_found {
                    continue;
                }
                let (function, module) = (function.clone(), module.clone());
                let wrapper = Wrapper { function, module, asked: is_asked };
                let caller = seen.only_caller().filter(|_| !is_asked);
                called_by_one.extend(caller.map(|caller| (wrapper.clone(), caller)));
                wrappers.found.insert(wrapper);
            }
            if wrappers.found.len() == known {
                break;
            }
            for (at, steps) in at.iter_mut().zip(&steps) {
                *at = wrappers.caller(steps);
            }
        }
        // From the outermost inwards: callers were found later.
        for (wrapper, caller) in called_by_one.iter().rev() {
            if !wrappers.found.iter().any(|found| found.function() == *caller) {
                wrappers.found.remove(wrapper);
            }
        }
        wrappers
    }

    /// Names every path by the caller of the wrappers that it ends in. `modules` are those that frames index into.
    pub fn set_callers<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a mut CallPath>,
        modules: &[Module],
        names: &mut dyn NameFrames,
    ) {
        let lines: Vec<bool> = modules.iter().map(|it| it.python_function().is_some()).collect();
        for path in paths {
            let is_line = |frame: &Frame| frame.module.is_some_and(|module| lines[module as usize]);
            let is_python = self.names_python && path.frames.iter().any(is_line);
            if self.found.is_empty() && !is_python {
                continue;
            }
            let steps = steps(path, modules, names);
            let mut at = self.caller(&steps);
            if is_python {
                at += steps[at..].iter().position(PathStep::has_line).unwrap_or(0);
            }
            path.caller = steps.get(at).filter(|_| at > 0).map(|step| step.frame);
        }
    }

    /// Also those of another run, so that both are named alike.
    pub fn join(&mut self, other: &Wrappers) {
        self.found.extend(other.found.iter().cloned());
    }

    /// Whether one of them has such a name.
    pub fn has(&self, name: &str) -> bool {
        let asked = WrapperOptions { names: vec![name.to_owned()], none_found: true };
        self.found.iter().any(|wrapper| asked.names(&wrapper.function))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Wrapper> {
        self.found.iter()
    }

    /// The first step, from the innermost outwards, that is no wrapper.
    fn caller(&self, steps: &[PathStep]) -> usize {
        let mut at = 0;
        while steps.get(at + 1).is_some_and(|next| self.passes_on(&steps[at], next)) {
            at += 1;
        }
        at
    }

    fn passes_on(&self, step: &PathStep, caller: &PathStep) -> bool {
        let wrapper = self.found.iter().find(|it| step.function() == Some(it.function()));
        wrapper.is_some_and(|it| {
            !caller.name.is_start_code() && (it.asked || step.is_named_by(caller))
        })
    }
}

/// The calls of a run, and where they were made.
#[derive(Debug)]
pub struct Uses<'a> {
    pub calls: &'a [CallName],
    pub paths: &'a [CallPath],
    pub modules: &'a [Module],
    /// Indices of a call and of a path, each pair once.
    pub pairs: BTreeSet<(usize, usize)>,
}

impl<'a> From<&'a Places> for Uses<'a> {
    fn from(places: &'a Places) -> Uses<'a> {
        let Places { calls, paths, modules, .. } = places;
        Uses { calls, paths, modules, pairs: places.uses().collect() }
    }
}

/// A function on a call path; inlined ones are steps of their own.
#[derive(Debug)]
struct PathStep {
    frame: Frame,
    name: FrameName,
    module: String,
}

impl PathStep {
    fn function(&self) -> Option<FunctionInModule<'_>> {
        self.name.function.as_ref().map(|function| (function, &self.module))
    }

    /// Whether `caller` says at least as much of where in the program that is.
    fn is_named_by(&self, caller: &PathStep) -> bool {
        caller.name.function.is_some()
            && (caller.name.line.is_some() || self.name.line.is_none())
            && !caller.name.is_start_code()
            && !caller.name.is_mpi()
            && (caller.name.is_python()
                || !INTERPRETERS.iter().any(|prefix| caller.module.starts_with(prefix)))
    }

    /// Whether it is a known line of the program.
    fn has_line(&self) -> bool {
        self.name.line.is_some() && !self.name.is_python_layer()
    }

    /// Addresses of one line are one place.
    fn place(&self) -> (Option<u32>, u64) {
        let address = if self.name.line.is_some() { 0 } else { self.frame.address };
        (self.name.line, address)
    }
}

/// From the caller of MPI outwards.
fn steps(path: &CallPath, modules: &[Module], names: &mut dyn NameFrames) -> Vec<PathStep> {
    let first = innermost_own(path, modules).unwrap_or(0);
    let mut steps = Vec::new();
    for &frame in path.frames.iter().skip(first) {
        for (level, name) in (0..).zip(names.name(frame)) {
            let module = base_name(name.module.as_deref().unwrap_or("")).to_owned();
            steps.push(PathStep { frame: Frame { level, ..frame }, name, module });
        }
    }
    steps
}

/// What was seen of a function.
#[derive(Debug, Default)]
struct FunctionUse<'a> {
    /// Lines by call.
    places: HashMap<&'a str, HashSet<(Option<u32>, u64)>>,
    callers: HashSet<(FunctionInModule<'a>, (Option<u32>, u64))>,
    /// The machine code that it is part of, where it was not inlined.
    codes: HashSet<Frame>,
    /// Something that it does besides passing on, or a caller that says less than it does.
    does_more: bool,
    waits: bool,
}

impl<'a> FunctionUse<'a> {
    /// Wherever it is called from.
    fn passes_on(&self) -> bool {
        let mut places = self.places.values();
        !self.does_more
            && !self.places.is_empty()
            && places.all(|places| places.len() == 1)
            && (self.places.len() == 1 || !self.waits)
    }

    /// The caller of what is called at one place: that has to be a wrapper, too.
    fn only_caller(&self) -> Option<FunctionInModule<'a>> {
        let only = self.callers.iter().next().filter(|_| self.callers.len() == 1);
        only.map(|(function, _)| *function)
    }

    fn is_small(&self, names: &mut dyn NameFrames) -> bool {
        let is_small = |&code| names.code_bytes(code).is_some_and(|bytes| bytes <= MOST_BYTES);
        self.codes.iter().all(is_small)
    }
}

/// Looks at every function on the way from `at`, the callers of MPI as far as they are known, outwards.
fn look<'a>(
    uses: &'a Uses<'_>,
    steps: &'a [Vec<PathStep>],
    at: &[usize],
) -> BTreeMap<FunctionInModule<'a>, FunctionUse<'a>> {
    let mut functions: BTreeMap<_, FunctionUse<'a>> = BTreeMap::new();
    for &(call, path) in &uses.pairs {
        let call = &uses.calls[call];
        if matches!(call.role.as_str(), "CONTROL" | "BOUND") {
            continue;
        }
        let ways = &steps[path][at[path]..];
        for outer in ways.iter().skip(1).filter_map(PathStep::function) {
            functions.entry(outer).or_default().does_more = true;
        }
        let [step, caller @ ..] = ways else { continue };
        let Some(function) = step.function() else { continue };
        let seen = functions.entry(function).or_default();
        seen.places.entry(&call.name).or_default().insert(step.place());
        seen.waits |= call.role != "POST";
        if !step.name.inlined {
            seen.codes.insert(step.frame);
        }
        let caller = caller.first().filter(|caller| step.is_named_by(caller));
        match caller.and_then(|caller| Some((caller.function()?, caller.place()))) {
            Some(caller) => seen.callers.extend([caller]),
            None => seen.does_more = true,
        }
    }
    functions
}

/// Whether `text` is `pattern`, in which `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.any(|at| matches(rest, &text[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames are named by function and line; those with a `/` are inlined functions, the innermost first.
    struct Names(Vec<&'static str>);

    impl NameFrames for Names {
        fn name(&mut self, frame: Frame) -> Vec<FrameName> {
            let all: Vec<&str> = self.0[frame.address as usize].split('/').collect();
            let name = |(at, text): (usize, &&str)| {
                let (function, line) = text.split_once(':').unwrap_or((text, ""));
                let python = (frame.module == Some(1)).then(|| "/opt/halo.py".to_owned());
                FrameName {
                    function: (!function.is_empty()).then(|| function.to_owned()),
                    offset: None,
                    file: python.clone(),
                    line: line.parse().ok(),
                    column: None,
                    module: python.or(Some("/opt/app".into())),
                    address: frame.address,
                    inlined: at + 1 < all.len(),
                }
            };
            all.iter().enumerate().map(name).skip(frame.level as usize).collect()
        }

        fn column(&mut self, _: Frame) -> Option<u32> {
            None
        }

        fn show_column(&mut self, _: Frame) {}

        fn code_bytes(&mut self, frame: Frame) -> Option<u64> {
            let name = self.0[frame.address as usize];
            Some(if name.starts_with("large") { MOST_BYTES + 1 } else { MOST_BYTES })
        }
    }

    /// Calls with their paths, innermost first; what each is named by.
    fn named(asked: &[&str], calls: &[(&str, &[&'static str])]) -> Vec<String> {
        let mut names = Names(Vec::new());
        let module =
            |path: &str, build_id: &str| Module { path: path.into(), build_id: build_id.into() };
        let modules = [module("/opt/app", ""), module("/opt/halo.py", "python:any")];
        let (mut names_of_calls, mut paths) = (Vec::new(), Vec::new());
        for (call, frames) in calls {
            let role = match *call {
                "MPI_Isend" | "MPI_Irecv" => "POST",
                "MPI_Comm_dup" => "CONTROL",
                _ => "COMPLETE",
            };
            names_of_calls
                .push(CallName { role: role.into(), ..CallName::unknown((*call).into()) });
            let frames = frames.iter().map(|name| {
                let known = names.0.iter().position(|known| known == name);
                let address = known.unwrap_or_else(|| {
                    names.0.push(name);
                    names.0.len() - 1
                });
                let module = Some(u32::from(name.starts_with("py_")));
                Frame { module, address: address as u64, level: 0 }
            });
            paths.push(CallPath { frames: frames.collect(), ..CallPath::default() });
        }
        let asked =
            WrapperOptions::new(&asked.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        let pairs = (0..calls.len()).map(|at| (at, at)).collect();
        let uses = Uses { calls: &names_of_calls, paths: &paths, modules: &modules, pairs };
        let wrappers = Wrappers::find(&uses, &asked, &mut names);
        wrappers.set_callers(&mut paths, &modules, &mut names);
        let site = |path: &CallPath| lapscope_data::model::site_frame(path, &modules);
        let frames = paths.iter().filter_map(site);
        frames.filter_map(|frame| names.name(frame).swap_remove(0).function).collect()
    }

    #[test]
    fn a_function_that_passes_on_from_two_places_is_named_by_its_callers() {
        let calls: &[(&str, &[&str])] = &[
            ("MPI_Isend", &["post:3", "step:10", "main:1"]),
            ("MPI_Isend", &["post:3", "step:11", "main:1"]),
            ("MPI_Comm_dup", &["post:2", "step:11", "main:1"]),
        ];
        assert_eq!(named(&[], calls)[..2], ["step", "step"]);
        assert_eq!(named(&["none"], calls)[..2], ["post", "post"]);
        assert_eq!(named(&[], &calls[..1]), ["post"], "from one place");
        assert_eq!(named(&["po*"], &calls[..1]), ["step"], "from one place, but asked for");
    }

    #[test]
    fn what_does_more_than_pass_on_is_no_wrapper() {
        let two = |call: &'static str, function: &'static str| {
            [
                (call, vec![function, "step:10", "main:1"]),
                (call, vec![function, "step:11", "main:1"]),
            ]
        };
        let all = |calls: Vec<(&'static str, Vec<&'static str>)>| {
            let calls: Vec<(&str, &[&str])> =
                calls.iter().map(|(call, frames)| (*call, frames.as_slice())).collect();
            named(&[], &calls)
        };
        let exchange = [two("MPI_Irecv", "exchange:3"), two("MPI_Waitall", "exchange:5")];
        assert_eq!(all(exchange.concat()), ["exchange"; 4]);
        let lines = [two("MPI_Isend", "post:3"), two("MPI_Isend", "post:4")];
        assert_eq!(all(lines.concat()), ["post"; 4], "two places");
        let posts = [two("MPI_Irecv", "both:3"), two("MPI_Isend", "both:4")];
        assert_eq!(all(posts.concat()), ["step"; 4], "each call at one place, and nothing waits");
        assert_eq!(all(two("MPI_Isend", "large:3").to_vec()), ["large"; 2]);
        let calls_more = vec![("MPI_Waitall", vec!["inner:1", "post:7", "step:10", "main:1"])];
        assert_eq!(
            all([two("MPI_Isend", "post:3").to_vec(), calls_more].concat())[..2],
            ["post"; 2]
        );
    }

    #[test]
    fn layers_lie_on_layers() {
        let calls: &[(&str, &[&str])] = &[
            ("MPI_Isend", &["mpi_isend:3", "layer:5", "step:10", "main:1"]),
            ("MPI_Isend", &["mpi_isend:3", "layer:5", "other:20", "main:1"]),
            ("MPI_Isend", &["mpi_isend:3", "third:9", "main:2"]),
        ];
        assert_eq!(named(&[], calls), ["step", "other", "third"]);
        let calls: &[(&str, &[&str])] = &[
            ("MPI_Waitall", &["waitall:3", "finish:5", "step:10", "main:1"]),
            ("MPI_Waitall", &["waitall:3", "finish:5", "other:20", "main:1"]),
        ];
        assert_eq!(named(&[], calls), ["step", "other"], "one function calls the inner one");
        assert_eq!(named(&[], &calls[..1]), ["waitall"]);
    }

    #[test]
    fn inlined_functions_are_functions() {
        let calls: &[(&str, &[&str])] = &[
            ("MPI_Isend", &["post:3/step:10", "main:1"]),
            ("MPI_Isend", &["post:3/step:11", "main:1"]),
        ];
        assert_eq!(named(&[], calls), ["step", "step"]);
    }

    #[test]
    fn callers_that_say_less_name_nothing() {
        let from = |a: &'static str, b: &'static str| {
            named(&[], &[("MPI_Isend", &["post:3", a]), ("MPI_Isend", &["post:3", b])])
        };
        assert_eq!(from("step", "other"), ["post"; 2], "without lines");
        assert_eq!(from("", ""), ["post"; 2]);
        assert_eq!(from("main:1", "__libc_start_main"), ["post"; 2]);
    }

    #[test]
    fn a_library_without_lines_is_named_by_the_line_of_python_that_called_it() {
        let calls: &[(&str, &[&str])] = &[
            ("MPI_Allreduce", &["dot", "solve", "py_step:7", "py_main:9"]),
            ("MPI_Allreduce", &["dot", "extension:3", "py_step:7", "py_main:9"]),
            ("MPI_Allreduce", &["dot:4", "py_step:7"]),
            ("MPI_Allreduce", &["dot", "main:1"]),
        ];
        assert_eq!(named(&[], calls), ["py_step", "extension", "dot", "dot"]);
        assert_eq!(named(&["none"], calls), ["dot"; 4]);
    }

    #[test]
    fn names_may_have_stars() {
        let asked = WrapperOptions::new(&["plib::*send".into(), "hypre_*_I*".into()]);
        assert!(asked.names("plib::isend(int)") && asked.names("hypre_MPI_Isend"));
        assert!(!asked.names("plib::sends") && !asked.names("hypre_MPI_Send"));
        assert!(WrapperOptions::new(&["isend".into()]).names("a::b::isend(double*)"));
    }
}
