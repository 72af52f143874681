//! Which thread of a rank did what.

use serde::{Deserialize, Serialize};

use super::endpoint::NONE;

/// Threads of one rank, numbered in the order in which rows first name them. Most ranks have one, and then nothing is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Threads {
    ids: Vec<i64>,
    /// Of what is kept there are none: how many threads there are is known.
    #[serde(skip)]
    of_calls: Numbers,
    #[serde(skip)]
    of_endpoints: Numbers,
}

/// The thread of each of many.
#[derive(Debug, Clone, Default)]
struct Numbers {
    /// So many at the beginning are of the first thread.
    of_first: usize,
    others: Vec<u16>,
}

impl Numbers {
    fn push(&mut self, number: u16) {
        if number == 0 && self.others.is_empty() {
            self.of_first += 1;
        } else {
            self.others.push(number);
        }
    }

    #[inline]
    fn get(&self, index: u32) -> u16 {
        let other = (index as usize).checked_sub(self.of_first);
        other.and_then(|other| self.others.get(other)).copied().unwrap_or(0)
    }
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

    /// How many there are, at least one.
    pub fn count(&self) -> usize {
        self.ids.len().max(1)
    }

    /// The thread that made a call.
    #[inline]
    pub fn of_call(&self, call: u32) -> u16 {
        debug_assert!(call != NONE);
        self.of_calls.get(call)
    }

    /// The thread that posted an endpoint.
    #[inline]
    pub fn of_endpoint(&self, endpoint: u32) -> u16 {
        self.of_endpoints.get(endpoint)
    }
}
