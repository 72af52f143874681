//! How many tests were injected, and what they took.

use std::ops::AddAssign;

use serde::Serialize;

use lapscope_data::model::Nanos;

/// What was injected; columns of the table `injection`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tests {
    /// Requests posted with injection on.
    pub requests: u64,
    pub tests: u64,
    /// Tests that moved something.
    pub found: u64,
    pub test_ns: Nanos,
    /// In tests that found nothing.
    pub idle_ns: Nanos,
    pub interrupts: u64,
    /// Interrupts at places where MPI could not be entered.
    pub deferred: u64,
    /// In interrupts, without their tests.
    pub interrupt_ns: Nanos,
}

impl Tests {
    /// Cost that bought nothing.
    pub fn cost(&self) -> Nanos {
        self.idle_ns + self.interrupt_ns
    }
}

impl AddAssign for Tests {
    fn add_assign(&mut self, other: Tests) {
        self.requests += other.requests;
        self.tests += other.tests;
        self.found += other.found;
        self.test_ns += other.test_ns;
        self.idle_ns += other.idle_ns;
        self.interrupts += other.interrupts;
        self.deferred += other.deferred;
        self.interrupt_ns += other.interrupt_ns;
    }
}
