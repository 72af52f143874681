//! A knob with several values.

use crate::replay::scenario::Scenario;

/// One knob and the values that it is to have.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepAsked {
    /// As in a scenario: `bandwidth`, `latency`, `eager-limit`, `cpu`, `progress`.
    pub knob: String,
    pub points: Vec<SweepValue>,
}

/// A value of a knob.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepValue {
    /// As it was typed.
    pub text: String,
    /// In the knob's base unit: nanoseconds, bytes a second, bytes, a factor.
    pub number: f64,
    /// The scenario in which that knob alone is turned.
    pub scenario: Scenario,
}
