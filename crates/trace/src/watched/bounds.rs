//! Times that watches tell, some of them as bounds only.

/// A time as one watch tells it, nanoseconds: somewhere between two bounds, which are one where it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeBounds {
    pub least: f64,
    /// Infinite where nothing limits it.
    pub most: f64,
}

impl TimeBounds {
    pub fn exactly(ns: f64) -> TimeBounds {
        TimeBounds { least: ns, most: ns }
    }

    /// Right-censored: it was watched for so long and nothing happened.
    pub fn at_least(ns: f64) -> TimeBounds {
        TimeBounds { least: ns, most: f64::INFINITY }
    }

    /// Left-censored.
    pub fn at_most(ns: f64) -> TimeBounds {
        TimeBounds { least: 0.0, most: ns }
    }

    pub fn is_exact(self) -> bool {
        self.least == self.most
    }

    /// The lesser of two times.
    pub fn min(self, other: TimeBounds) -> TimeBounds {
        TimeBounds { least: self.least.min(other.least), most: self.most.min(other.most) }
    }

    /// This time less another, which may be negative.
    pub fn less(self, other: TimeBounds) -> TimeBounds {
        TimeBounds { least: self.least - other.most, most: self.most - other.least }
    }

    pub fn map(self, change: impl Fn(f64) -> f64) -> TimeBounds {
        TimeBounds { least: change(self.least), most: change(self.most) }
    }
}
