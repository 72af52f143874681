//! Which thread of a rank did what.

use super::endpoint::NONE;

/// Threads of one rank, numbered in the order in which rows first name them. Most ranks have one, and then nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    ids: Vec<i64>,
    of_calls: Vec<u16>,
    of_endpoints: Vec<u16>,
}

impl Threads {
    /// Its number, by `thread.id` of the file.
    pub(super) fn number(&mut self, id: i64) -> u16 {
        if self.ids.last() == Some(&id) {
            return (self.ids.len() - 1) as u16;
        }
        let known = self.ids.iter().position(|&known| known == id);
        known.unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        }) as u16
    }

    pub(super) fn add_call(&mut self, id: i64) {
        let number = self.number(id);
        self.of_calls.push(number);
    }

    /// Adds the thread that posted an endpoint.
    pub(super) fn add_endpoint(&mut self, id: i64) {
        let number = self.number(id);
        self.of_endpoints.push(number);
    }

    /// Lets go of what says nothing.
    pub(super) fn finish(&mut self) {
        if self.ids.len() <= 1 {
            (self.of_calls, self.of_endpoints) = (Vec::new(), Vec::new());
        }
    }

    /// How many there are, at least one.
    pub fn count(&self) -> usize {
        self.ids.len().max(1)
    }

    /// The thread that made a call.
    #[inline]
    pub fn of_call(&self, call: u32) -> u16 {
        debug_assert!(call != NONE);
        self.of_calls.get(call as usize).copied().unwrap_or(0)
    }

    /// The thread that posted an endpoint.
    #[inline]
    pub fn of_endpoint(&self, endpoint: u32) -> u16 {
        self.of_endpoints.get(endpoint as usize).copied().unwrap_or(0)
    }
}
