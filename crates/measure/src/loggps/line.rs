//! Straight lines through times by size, with few outliers or many.

/// A time and how much it counts.
#[derive(Debug, Clone, Copy)]
pub struct WeightedPoint {
    pub x: f64,
    pub y: f64,
    /// How far it may be off: its weight is the inverse square.
    pub sigma: f64,
}

/// `base` at 0, and `slope`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Line {
    pub base: f64,
    pub slope: f64,
}

/// Iterations of the reweighting, and beyond how many typical residuals a point loses weight (Huber's 1.345).
const ITERATIONS: usize = 8;
const HUBER: f64 = 1.345;

impl Line {
    pub fn at(self, x: f64) -> f64 {
        self.base + self.slope * x
    }

    /// The line through times that something takes: neither its base nor its slope is negative. `None` of nothing.
    pub fn through(points: &[WeightedPoint]) -> Option<Line> {
        robust(points, |points, weights| {
            Some(not_negative(points, weights, least_squares(points, weights)?))
        })
    }

    /// The line through differences of times. `None` of nothing.
    pub fn of_differences(points: &[WeightedPoint]) -> Option<Line> {
        robust(points, least_squares)
    }
}

/// Weighted least squares, reweighted so that outliers pull little (Huber 1964).
fn robust(
    points: &[WeightedPoint],
    fit: impl Fn(&[WeightedPoint], &[f64]) -> Option<Line>,
) -> Option<Line> {
    let mut weights: Vec<f64> = points.iter().map(|point| point.sigma.powi(-2)).collect();
    let mut line = fit(points, &weights)?;
    for _ in 0..ITERATIONS {
        let residual = |point: &WeightedPoint| (point.y - line.at(point.x)).abs() / point.sigma;
        let typical =
            lapscope_trace::stats::median(points.iter().map(residual).collect())? / 0.6745;
        for (weight, point) in weights.iter_mut().zip(points) {
            let far = residual(point) / (HUBER * typical).max(f64::MIN_POSITIVE);
            *weight = point.sigma.powi(-2) / far.max(1.0);
        }
        line = fit(points, &weights)?;
    }
    Some(line)
}

fn sum(points: &[WeightedPoint], weights: &[f64], of: fn(&WeightedPoint) -> f64) -> f64 {
    points.iter().zip(weights).map(|(point, weight)| weight * of(point)).sum()
}

fn least_squares(points: &[WeightedPoint], weights: &[f64]) -> Option<Line> {
    let sum = |of| sum(points, weights, of);
    let total = sum(|_| 1.0);
    if points.is_empty() || total <= 0.0 {
        return None;
    }
    let (x, y) = (sum(|point| point.x) / total, sum(|point| point.y) / total);
    let (xx, xy) = (sum(|point| point.x * point.x) / total, sum(|point| point.x * point.y) / total);
    let spread = xx - x * x;
    let slope = if spread > 1e-12 * xx { (xy - x * y) / spread } else { 0.0 };
    Some(Line { base: y - slope * x, slope })
}

/// The best line of those that have no negative part.
fn not_negative(points: &[WeightedPoint], weights: &[f64], line: Line) -> Line {
    let sum = |of| sum(points, weights, of);
    if line.slope < 0.0 {
        Line { base: (sum(|point| point.y) / sum(|_| 1.0)).max(0.0), slope: 0.0 }
    } else if line.base < 0.0 {
        let slope = sum(|point| point.x * point.y) / sum(|point| point.x * point.x);
        Line { base: 0.0, slope: slope.max(0.0) }
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: impl Fn(f64) -> f64) -> Vec<WeightedPoint> {
        let sizes = (0..20).map(|exponent| f64::from(1 << exponent));
        sizes.map(|x| WeightedPoint { x, y: of(x), sigma: of(x).max(1.0) }).collect()
    }

    #[test]
    fn outliers_pull_little() {
        let mut all = points(|x| 300.0 + 0.25 * x);
        let exact = Line::through(&all).unwrap();
        assert!((exact.base - 300.0).abs() < 1e-6 && (exact.slope - 0.25).abs() < 1e-9);
        for far in [3, 9, 17] {
            all[far].y *= 4.0;
        }
        let line = Line::through(&all).unwrap();
        assert!((line.base / 300.0 - 1.0).abs() < 0.05, "{line:?}");
        assert!((line.slope / 0.25 - 1.0).abs() < 0.05, "{line:?}");
    }

    #[test]
    fn no_time_is_negative() {
        let falls = Line::through(&points(|x| 5000.0 - 0.001 * x)).unwrap();
        assert!(falls.slope == 0.0 && falls.base > 0.0);
        let steep = Line::through(&points(|x| 2.0 * x - 1.5)).unwrap();
        assert!(steep.base == 0.0 && steep.slope > 0.0);
        assert_eq!(Line::through(&[]), None);
    }
}
