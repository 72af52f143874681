//! What is summed over the calls of one kind at one place.

use serde::{Deserialize, Serialize};

use std::ops::AddAssign;

use lapscope_data::db::RequestRow;
use lapscope_data::model::{Bytes, CallRow, Nanos, TallyRow};

/// Sums over calls or requests that have something in common. Definitions of the times are in `schema/README.md`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCell {
    /// Calls.
    pub count: u64,
    pub bytes: Bytes,
    /// In the calls themselves: posting for requests, the whole call for all others.
    pub inside: Nanos,
    /// Taken out of `inside`: a GPU of the rank computed meanwhile.
    #[serde(default)]
    pub beside_gpu: Nanos,
    /// Requests: their share of the calls that ended them, duration / requests ended by that call.
    pub completion: Nanos,
    /// Requests whose completing call is known; `window` is summed over these.
    pub ended: u64,
    /// From the end of the post to the begin of the completing call.
    pub window: Nanos,
    /// Requests that the posting thread itself completed; `mpi` and `compute` are summed over these.
    pub timed: u64,
    /// Inside other MPI calls during the window.
    pub mpi: Nanos,
    /// The rest of the window: outside MPI.
    pub compute: Nanos,
    /// Unsuccessful tests that covered a request.
    pub unsuccessful_tests: u64,
    /// Requests that never ended, calls that never returned.
    pub pending: u64,
}

impl CallCell {
    /// All the run time that is laid to these calls.
    pub fn time(&self) -> Nanos {
        self.inside + self.completion
    }

    /// Takes out of the calls what a GPU computed in, at most all of them, and says how much that was.
    pub fn lay_to_gpu(&mut self, ns: Nanos) -> Nanos {
        let taken = ns.min(self.inside).max(Nanos(0));
        self.inside = self.inside - taken;
        self.beside_gpu += taken;
        taken
    }

    /// Adds a call that blocked or completed something.
    pub fn add_call(&mut self, bytes: Bytes, call: &CallRow) {
        self.count = self.count.saturating_add(1);
        self.bytes += bytes;
        match call.duration {
            Some(duration) => self.inside += duration,
            None => self.pending += 1,
        }
    }

    /// Adds a request; `completion` is the call that ended it and this request's share of that call.
    pub fn add_request(
        &mut self,
        bytes: Bytes,
        request: &RequestRow,
        completion: Option<(&CallRow, Nanos)>,
    ) {
        self.count = self.count.saturating_add(1);
        self.bytes += bytes;
        self.inside += request.post;
        self.unsuccessful_tests =
            self.unsuccessful_tests.saturating_add(request.unsuccessful_tests);
        let Some((call, share)) = completion else {
            self.pending += 1;
            return;
        };
        let window = request_window(request, call);
        self.completion += share;
        self.ended = self.ended.saturating_add(1);
        self.window += window;
        if let Some(mpi) = request.mpi {
            self.timed = self.timed.saturating_add(1);
            self.mpi += mpi;
            self.compute += window - mpi;
        }
    }

    /// Adds calls that were kept as sums only.
    pub fn add_tally(&mut self, tally: &TallyRow, is_post: bool) {
        self.count = self.count.saturating_add(tally.count);
        self.bytes += tally.bytes;
        self.inside += tally.inside;
        self.completion += tally.completion;
        if is_post {
            self.ended = self.ended.saturating_add(tally.count);
            self.timed = self.timed.saturating_add(tally.count);
            self.window += tally.window;
            self.mpi += tally.mpi;
            self.compute += tally.window - tally.mpi;
        }
    }
}

/// From the end of the post to the begin of the completing call.
pub fn request_window(request: &RequestRow, completion: &CallRow) -> Nanos {
    completion.begin - request.post_begin - request.post
}

impl AddAssign<&CallCell> for CallCell {
    fn add_assign(&mut self, other: &CallCell) {
        self.count = self.count.saturating_add(other.count);
        self.bytes += other.bytes;
        self.inside += other.inside;
        self.beside_gpu += other.beside_gpu;
        self.completion += other.completion;
        self.ended = self.ended.saturating_add(other.ended);
        self.window += other.window;
        self.timed = self.timed.saturating_add(other.timed);
        self.mpi += other.mpi;
        self.compute += other.compute;
        self.unsuccessful_tests = self.unsuccessful_tests.saturating_add(other.unsuccessful_tests);
        self.pending += other.pending;
    }
}
