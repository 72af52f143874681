//! How far one clock is ahead of another, as a line over time.

use serde::{Deserialize, Serialize};

/// A lead of one clock over another: nanoseconds at moment 0, and per nanosecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub offset: f64,
    pub drift: f64,
}

impl Line {
    pub fn at(self, moment: f64) -> f64 {
        self.offset + self.drift * moment
    }

    /// Turns a moment of the leading clock into one of the other.
    pub fn correct(self, moment: i64) -> i64 {
        nearest((moment as f64 - self.offset) / (1.0 + self.drift))
    }

    /// The first moment of the other clock that is not before `moment` of the leading one.
    pub fn first_from(self, moment: i64) -> i64 {
        let mut first = nearest(self.offset + moment as f64 * (1.0 + self.drift));
        while self.correct(first - 1) >= moment {
            first -= 1;
        }
        while self.correct(first) < moment {
            first += 1;
        }
        first
    }

    /// The lead of C over A, given this one of B over A and that of C over B.
    pub fn then(self, next: Line) -> Line {
        // c = b + next(b), b = a + self(a)
        Line {
            offset: self.offset + next.at(self.offset),
            drift: self.drift + next.drift * (1.0 + self.drift),
        }
    }

    pub fn reversed(self) -> Line {
        // a = (b - offset) / (1 + drift)
        let scale = 1.0 / (1.0 + self.drift);
        Line { offset: -self.offset * scale, drift: scale - 1.0 }
    }
}

/// As `round() as i64`, which calls a function where the processor may have no instruction for it: every moment of a run goes through.
#[inline]
fn nearest(moment: f64) -> i64 {
    let whole = moment as i64;
    let rest = moment - whole as f64;
    whole.saturating_add(i64::from(rest >= 0.5) - i64::from(rest <= -0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_what_rounding_says() {
        let halves = (-9..9).map(|half| f64::from(half) / 2.0);
        let edges =
            [0.49999999999999994, 4503599627370497.5, 1e300, 9e15, -9.007199254740993e15, 1e18];
        let beside =
            |it: f64| [it, -it, f64::from_bits(it.to_bits() + 1), f64::from_bits(it.to_bits() ^ 1)];
        for moment in halves.chain(edges).flat_map(beside) {
            assert_eq!(nearest(moment), moment.round() as i64, "{moment}");
        }
    }

    #[test]
    fn lines_compose_and_reverse() {
        let (b, c) = (Line { offset: 1000.0, drift: 1e-4 }, Line { offset: -300.0, drift: -2e-4 });
        let a = 5_000_000i64;
        let on_b = a as f64 + b.at(a as f64);
        let on_c = on_b + c.at(on_b);
        assert!((b.then(c).at(a as f64) - (on_c - a as f64)).abs() < 1e-6);
        assert!((on_b + b.reversed().at(on_b) - a as f64).abs() < 1e-6);
        assert_eq!(b.correct(on_b.round() as i64), a);
    }
}
