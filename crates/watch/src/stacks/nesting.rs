//! What is inside of what on a stack: MPI calls within the program, functions of the program's that MPI calls, libraries that pass
//! calls on, handlers of signals.

use super::calls;
use super::layers::Layer;
use lapscope_data::symbols::{of_program, FrameName};

/// Where a thread is.
#[derive(Debug, Default, PartialEq)]
pub struct Nesting {
    /// The MPI call that it is inside of, and in nothing else within; of a library that passes calls on the one that this makes.
    pub call: Option<String>,
    /// From the caller of that call, or the innermost function, out to `main`. Of MPI only calls are left, in which functions of the
    /// program's run.
    pub frames: Vec<FrameName>,
    /// How many of them, from the first on, are those of a library that passes calls on.
    pub wrapper_frames: usize,
    /// The call that the program made, where that library makes another one.
    pub called_as: Option<String>,
    /// The MPI call within which a function of the program's runs.
    pub within: Option<String>,
    /// That function is a handler of a signal: MPI did not call it.
    pub by_signal: bool,
    /// The outermost frame of the call, among all.
    pub entry: Option<usize>,
}

/// Frames of MPI one behind the other, and of what passes calls on to it.
struct InMpi {
    /// Places among all frames: of the outermost, and of the outermost that is MPI's.
    outermost: usize,
    entry: Option<usize>,
    /// The outermost call that MPI names, and the one that is passed on.
    call: Option<String>,
    wrapped: Option<String>,
}

impl InMpi {
    fn begin(at: usize) -> InMpi {
        InMpi { outermost: at, entry: None, call: None, wrapped: None }
    }

    fn add(&mut self, at: usize, layer: Layer, function: &str) {
        let call = calls::name_of(function);
        match layer {
            Layer::Mpi => {
                self.entry.get_or_insert(at);
                self.call = self.call.take().or(call);
            }
            // a binding of Fortran's calls the one of C, which may be passed on
            Layer::Wrapper if self.entry.is_none() || self.call == call => {
                (self.entry, self.call, self.wrapped) = (None, None, call);
            }
            _ => {}
        }
    }
}

/// A call within which the program runs, and where its function begins, its outermost frame.
struct Around {
    of_mpi: InMpi,
    begin: usize,
    by_signal: bool,
}

/// `names`: innermost first; `layers`: of each.
pub fn nesting(names: &[FrameName], layers: &[Layer]) -> Nesting {
    // where MPI, or what records, handles a signal without the program, it interrupts what goes on
    let handled = layers.iter().position(|it| *it == Layer::Signal).filter(|&at| {
        let has = |layer| layers[..at].contains(&layer);
        has(Layer::Mpi) && !has(Layer::Program) && !has(Layer::Wrapper)
    });
    if let Some(signal) = handled {
        let outside = nesting(&names[signal + 1..], &layers[signal + 1..]);
        return Nesting { entry: outside.entry.map(|it| it + signal + 1), ..outside };
    }
    let mut around: Vec<Around> = Vec::new();
    let mut of_mpi: Option<InMpi> = None;
    for at in (0..names.len()).rev() {
        let function = names[at].function.as_deref().unwrap_or("");
        match (layers[at], &mut of_mpi) {
            (Layer::Mpi | Layer::Wrapper, within) => {
                within.get_or_insert_with(|| InMpi::begin(at)).add(at, layers[at], function);
            }
            (Layer::Program | Layer::Signal, Some(it)) if it.entry.is_some() => {
                let by_signal = layers[at] == Layer::Signal;
                let of_mpi = of_mpi.take().expect("it is there");
                around.push(Around { of_mpi, begin: at, by_signal });
            }
            _ => {}
        }
    }
    place(names, layers, of_mpi, &around)
}

fn place(
    names: &[FrameName],
    layers: &[Layer],
    of_mpi: Option<InMpi>,
    around: &[Around],
) -> Nesting {
    let call = of_mpi.as_ref().and_then(|it| call_of(names, it));
    // threads of MPI's own are called by nobody
    let inside = of_mpi.filter(|_| call.is_some());
    let end_of = |depth: usize| around.get(depth).map_or(names.len(), |it| it.begin + 1);
    // of what passes calls on, then of the program
    let outside = |it: Option<&InMpi>, end: usize| {
        let begin = it.and_then(|it| it.entry).map_or(0, |entry| entry + 1);
        let outermost = it.map_or(0, |it| it.outermost + 1);
        let wrapper = (begin..outermost).filter(|&at| layers[at] != Layer::Mpi);
        let wrapper: Vec<FrameName> = wrapper.map(|at| names[at].clone()).collect();
        (wrapper, of_program(names[outermost..end].to_vec()))
    };
    let (wrapper, program) = outside(inside.as_ref(), end_of(around.len().wrapping_sub(1)));
    let wrapper_frames = wrapper.len();
    let mut frames = [wrapper, program].concat();
    for (depth, it) in around.iter().enumerate().rev() {
        let entry = it.of_mpi.entry.map(|entry| &names[entry]);
        frames.extend(entry.map(|entry| as_call(entry, call_of(names, &it.of_mpi))));
        let (wrapper, program) = outside(Some(&it.of_mpi), end_of(depth.wrapping_sub(1)));
        frames.extend(wrapper.into_iter().chain(program));
    }
    let wrapped = inside.as_ref().and_then(|it| it.wrapped.clone());
    let innermost = around.last();
    Nesting {
        frames,
        wrapper_frames,
        called_as: wrapped.filter(|it| Some(it) != call.as_ref()),
        call,
        within: innermost.map(|it| within(names, &it.of_mpi)),
        by_signal: innermost.is_some_and(|it| it.by_signal),
        entry: inside.and_then(|it| it.entry),
    }
}

/// The call of MPI that it is, where somebody has called it; a function of MPI where none is named.
fn call_of(names: &[FrameName], it: &InMpi) -> Option<String> {
    let entry = &names[it.entry?];
    let caller = names.get(it.outermost + 1);
    let is_called = caller.is_some_and(|it| !it.is_start_code() && !it.is_unnamed_libc());
    let function = || entry.function.clone().filter(|_| is_called);
    let unnamed = || is_called.then(|| "a function of MPI".to_owned());
    it.call.clone().or_else(|| it.wrapped.clone()).or_else(function).or_else(unnamed)
}

fn within(names: &[FrameName], it: &InMpi) -> String {
    call_of(names, it).unwrap_or_else(|| "a thread of MPI".to_owned())
}

/// What is left of MPI in a call path: `MPI_Allreduce`.
fn as_call(entry: &FrameName, call: Option<String>) -> FrameName {
    FrameName { function: call, offset: None, file: None, line: None, ..entry.clone() }
}

/// Whether a frame of a call path is a call of MPI's, in which a function of the program's runs.
pub fn is_call(frame: &FrameName) -> bool {
    frame.is_mpi() && frame.file.is_none() && frame.offset.is_none()
}

#[cfg(test)]
mod tests;
