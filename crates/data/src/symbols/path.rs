//! A call path with names.

use super::{FrameName, NameFrames};
use crate::model::Frame;

/// The frames of a path from the caller of MPI outwards to `main`: neither what MPI, or what brings it to Python, does before it
/// comes to the wrapped call, nor what runs below `main`.
pub fn name_path(frames: &[Frame], names: &mut dyn NameFrames) -> Vec<FrameName> {
    of_program(frames.iter().flat_map(|&frame| names.name(frame)).collect())
}

/// The same of a path that has names.
pub fn of_program(mut named: Vec<FrameName>) -> Vec<FrameName> {
    // Never cut the caller of MPI itself, whatever it is called.
    if let Some(start) = named.iter().skip(1).position(FrameName::is_start_code) {
        named.truncate(start + 1);
    }
    while named.len() > 1 && named.last().is_some_and(FrameName::is_unnamed_libc) {
        named.pop();
    }
    let line = named.iter().position(FrameName::is_python);
    let is_inside =
        |frame: &&FrameName| frame.is_mpi() || (line.is_some() && frame.is_python_layer());
    let inside = named.iter().take_while(is_inside).count();
    if inside < named.len() {
        named.drain(..inside);
    } else if let Some(line) = line {
        named.drain(..line);
    }
    named
}
