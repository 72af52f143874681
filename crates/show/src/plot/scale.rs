//! From quantities to places on an axis, and the ticks of it.

/// What an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Message sizes: logarithmic, powers of two.
    Bytes,
    /// 0 to 100, and further where values are.
    Percent,
    /// Microseconds, logarithmic.
    TimeLog,
    /// Microseconds, from 0.
    Time,
    /// A ratio, from 0.
    Ratio,
    /// A ratio, logarithmic.
    RatioLog,
    /// Bytes a second, from 0.
    Rate,
    /// Bytes a second, logarithmic.
    RateLog,
}

/// An axis from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    quantity: Quantity,
    /// In logarithms where it is logarithmic.
    low: f64,
    high: f64,
    /// Whether the low end of a logarithmic axis is the place of 0.
    has_zero: bool,
}

/// A value that is written at an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    pub value: f64,
    pub label: String,
}

/// Percentages further out than this are drawn at the edge: one outlier does not squeeze all others.
const PERCENT_LIMITS: (f64, f64) = (-20.0, 140.0);

impl Quantity {
    fn base(self) -> Option<f64> {
        match self {
            Quantity::Bytes => Some(2.0),
            Quantity::TimeLog | Quantity::RatioLog | Quantity::RateLog => Some(10.0),
            Quantity::Percent | Quantity::Time | Quantity::Ratio | Quantity::Rate => None,
        }
    }
}

impl Scale {
    /// An axis that has room for all values.
    pub fn new(quantity: Quantity, values: impl IntoIterator<Item = f64>) -> Scale {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        match quantity.base() {
            Some(base) => Scale::logarithmic(quantity, base, &values),
            None => Scale::linear(quantity, &values),
        }
    }

    fn logarithmic(quantity: Quantity, base: f64, values: &[f64]) -> Scale {
        let positive = values.iter().filter(|value| **value > 0.0).map(|value| value.log(base));
        let (mut low, mut high) = extent(positive).unwrap_or((0.0, 1.0));
        if high - low < 0.5 {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let has_zero = values.iter().any(|value| *value <= 0.0);
        if has_zero {
            low -= (high - low) * 0.15;
        }
        Scale { quantity, low, high, has_zero }
    }

    fn linear(quantity: Quantity, values: &[f64]) -> Scale {
        let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
        let (low, high) = match quantity {
            Quantity::Percent => {
                let (least, most) = PERCENT_LIMITS;
                (low.clamp(least, 0.0), high.clamp(100.0, most))
            }
            _ => (low.min(0.0), if high > 0.0 { high } else { 1.0 }),
        };
        Scale { quantity, low, high, has_zero: false }
    }

    /// Whether a value has a place on this axis.
    pub fn takes(&self, value: f64) -> bool {
        value.is_finite() && (self.quantity.base().is_none() || value > 0.0 || self.has_zero)
    }

    /// Whether a value is between the ends.
    pub fn contains(&self, value: f64) -> bool {
        self.takes(value) && (-1e-9..=1.0 + 1e-9).contains(&self.share(value))
    }

    /// 0 at the low end, 1 at the high end; what is beyond is put there.
    pub fn place(&self, value: f64) -> f64 {
        self.share(value).clamp(0.0, 1.0)
    }

    fn share(&self, value: f64) -> f64 {
        let value = match self.quantity.base() {
            Some(_) if value <= 0.0 => return 0.0,
            Some(base) => value.log(base),
            None => value,
        };
        (value - self.low) / (self.high - self.low)
    }

    /// The value that has that place.
    pub fn value(&self, place: f64) -> f64 {
        let value = self.low + place * (self.high - self.low);
        match self.quantity.base() {
            Some(_) if self.has_zero && place <= 0.0 => 0.0,
            Some(base) => base.powf(value),
            None => value,
        }
    }

    /// At most `most` values to be written at it.
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(2);
        let mut values = match self.quantity {
            Quantity::Bytes => self.powers(2.0, most, &[2, 4, 5, 10, 20]),
            Quantity::TimeLog | Quantity::RatioLog | Quantity::RateLog => self.decades(most),
            Quantity::Percent => {
                let step = if most >= 5 { 25 } else { 50 };
                (0..=100).step_by(step).map(f64::from).collect()
            }
            Quantity::Time | Quantity::Ratio | Quantity::Rate => self.round_steps(most),
        };
        if self.has_zero {
            values.insert(0, 0.0);
        }
        values.iter().map(|value| Tick { value: *value, label: self.label(*value) }).collect()
    }

    /// Powers of `base` whose exponents are multiples of the smallest step that gives at most `most`.
    fn powers(&self, base: f64, most: usize, steps: &[usize]) -> Vec<f64> {
        let low = if self.has_zero { self.low + (self.high - self.low) * 0.12 } else { self.low };
        let exponents = |step: usize| {
            let first = (low / step as f64 - 1e-9).ceil() as i32;
            let last = (self.high / step as f64 + 1e-9).floor() as i32;
            (first..=last).map(move |place| place * step as i32).collect::<Vec<_>>()
        };
        let choices = steps.iter().map(|step| exponents(*step));
        let fitting = choices.into_iter().find(|exponents| exponents.len() <= most);
        fitting.unwrap_or_default().into_iter().map(|exponent| base.powi(exponent)).collect()
    }

    /// Powers of ten; twice and five times these where there are few.
    fn decades(&self, most: usize) -> Vec<f64> {
        let tens = self.powers(10.0, most, &[1, 2, 3, 6]);
        if tens.len() > 2 {
            return tens;
        }
        let low = if self.has_zero { self.low + (self.high - self.low) * 0.12 } else { self.low };
        let inside = |value: &f64| (low - 1e-9..=self.high + 1e-9).contains(&value.log10());
        let decades = low.floor() as i32..=self.high.ceil() as i32;
        let all = |digits: &'static [f64]| {
            let values = decades
                .clone()
                .flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)));
            values.filter(inside).collect::<Vec<_>>()
        };
        let choices = [all(&[1.0, 2.0, 5.0]), all(&[1.0, 3.0])];
        choices.into_iter().find(|values| values.len() <= most).unwrap_or(tens)
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn round_steps(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most as f64;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let (first, last) =
            ((self.low / step).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last).map(|place| place as f64 * step).collect()
    }

    /// Microseconds in the unit of the highest tick, without the unit.
    pub fn bare(&self, us: f64) -> String {
        match self.high {
            high if high < 999.5 => short(us),
            high if high < 999.5e3 => short(us / 1e3),
            _ => short(us / 1e6),
        }
    }

    fn label(&self, value: f64) -> String {
        match self.quantity {
            Quantity::Bytes => lapscope_data::text::units::round_bytes(value as u64),
            Quantity::Percent => format!("{value:.0} %"),
            Quantity::Time | Quantity::TimeLog => time(value),
            Quantity::Ratio | Quantity::RatioLog => short(value),
            Quantity::Rate | Quantity::RateLog => rate(value),
        }
    }
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |extent, value| match extent {
        Some((low, high)) => Some((value.min(low), value.max(high))),
        None => Some((value, value)),
    })
}

/// Microseconds, as short as they go: "0", "50 ns", "2.5 µs", "10 ms".
pub fn time(us: f64) -> String {
    match us.abs() {
        0.0 => "0".to_owned(),
        n if n < 0.9995 => format!("{} ns", short(us * 1e3)),
        n if n < 999.5 => format!("{} µs", short(us)),
        n if n < 999.5e3 => format!("{} ms", short(us / 1e3)),
        _ => format!("{} s", short(us / 1e6)),
    }
}

/// Bytes a second, as short as they go: "0", "500 MB/s", "2.5 GB/s".
fn rate(bytes: f64) -> String {
    match bytes.abs() {
        0.0 => "0".to_owned(),
        n if n < 999.5 => format!("{} B/s", short(bytes)),
        n if n < 999.5e3 => format!("{} KB/s", short(bytes / 1e3)),
        n if n < 999.5e6 => format!("{} MB/s", short(bytes / 1e6)),
        n if n < 999.5e9 => format!("{} GB/s", short(bytes / 1e9)),
        _ => format!("{} TB/s", short(bytes / 1e12)),
    }
}

/// Three digits without zeros that say nothing.
fn short(value: f64) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:.1e}");
    }
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v => (2 - v.log10().floor() as i32).clamp(0, 9) as usize,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale, most: usize) -> Vec<String> {
        scale.ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn sizes_are_powers_of_four() {
        let scale = Scale::new(Quantity::Bytes, [1024.0, 65536.0]);
        assert_eq!(labels(&scale, 8), ["1 KiB", "4 KiB", "16 KiB", "64 KiB"]);
        assert_eq!(scale.place(1024.0), 0.0);
        assert_eq!(scale.place(8192.0), 0.5);
    }

    #[test]
    fn nothing_has_a_place_on_a_logarithmic_axis() {
        let scale = Scale::new(Quantity::Bytes, [0.0, 1.0, 4194304.0]);
        assert_eq!(scale.place(0.0), 0.0);
        assert!(scale.place(1.0) > 0.1);
        assert_eq!(labels(&scale, 6)[0], "0 B");
        assert!(!Scale::new(Quantity::Bytes, [1.0]).takes(0.0));
        assert!(Scale::new(Quantity::Bytes, [0.0]).place(0.0).is_finite());
        assert!(Scale::new(Quantity::Bytes, []).place(5.0).is_finite());
    }

    #[test]
    fn times_have_their_unit() {
        let scale = Scale::new(Quantity::TimeLog, [1.0, 100_000.0]);
        assert_eq!(labels(&scale, 6), ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]);
        let scale = Scale::new(Quantity::Time, [0.0, 2_100.0]);
        assert_eq!(labels(&scale, 5), ["0", "500 µs", "1 ms", "1.5 ms", "2 ms"]);
    }

    #[test]
    fn outliers_are_drawn_at_the_edge() {
        let scale = Scale::new(Quantity::Percent, [5.0, 900.0]);
        assert_eq!(scale.place(900.0), 1.0);
        assert!(!scale.contains(900.0) && scale.contains(5.0));
        assert_eq!(labels(&scale, 6), ["0 %", "25 %", "50 %", "75 %", "100 %"]);
    }
}
