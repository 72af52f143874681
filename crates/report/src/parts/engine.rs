//! Who asks the parts.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use anyhow::Result;

use super::load::Run;
use super::partial::{Partial, Question};
use lapscope_data::files::give_back_freed_memory;
use lapscope_data::text::progress::Progress;

/// Asks every part a question, and puts the answers together.
pub trait Engine {
    /// # Errors
    /// A part could not answer, for another reason than files that cannot be read.
    fn ask(&mut self, run: &Run, question: &Question, parts: &[Vec<u32>]) -> Result<Partial>;

    /// Memory is for so many parts at once, as far as that is the engine's to decide.
    fn look_side_by_side(&mut self, _parts: usize) {}
}

/// This process: parts side by side, so many at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local {
    side_by_side: usize,
}

impl Engine for Local {
    fn look_side_by_side(&mut self, parts: usize) {
        self.side_by_side = parts;
    }

    fn ask(&mut self, run: &Run, question: &Question, parts: &[Vec<u32>]) -> Result<Partial> {
        let progress = Progress::default();
        progress.expect(parts.iter().map(|part| part.len() as u64).sum());
        let next = AtomicUsize::new(0);
        let stops = AtomicBool::new(false);
        let merged: Mutex<Option<Result<Partial>>> = Mutex::new(None);
        // threads of their own, not those that share the work of one part: these would begin another part meanwhile
        let work = || {
            while !stops.load(Ordering::Relaxed) {
                let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let answer = run.answer(question, part);
                give_back_freed_memory(); // the next part may be read by other threads
                progress.add(part.len() as u64);
                stops.fetch_or(matches!(answer, Partial::Unreadable(_)), Ordering::Relaxed);
                let mut merged = merged.lock().expect("no thread panics with it");
                *merged = Some(match merged.take() {
                    Some(known) => known.and_then(|known| known.merge(answer)),
                    None => Ok(answer),
                });
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.side_by_side.clamp(1, parts.len().max(1)) {
                scope.spawn(work);
            }
        });
        let merged = merged.into_inner().expect("no thread panics with it");
        merged.unwrap_or_else(|| anyhow::bail!("there is no rank to look at"))
    }
}
