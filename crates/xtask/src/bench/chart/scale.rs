/// From figures to places on an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    /// The ends of the axis for `low` and `high`.
    from: f64,
    to: f64,
}

impl Scale {
    /// Logarithmic, from one round figure to another, with all of `figures` between.
    pub(super) fn logarithmic(figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = range(figures.filter(|figure| *figure > 0.0));
        let steps: Vec<f64> =
            (-6..15).flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * ten(power))).collect();
        let below = steps.iter().copied().rfind(|step| *step <= low);
        let above = steps.iter().copied().find(|step| *step >= high && *step > low);
        let low = below.unwrap_or(low);
        Self { logarithmic: true, low, high: above.unwrap_or(high), from, to }
    }

    /// Linear, from zero to the greatest of `figures`.
    pub(super) fn linear(figures: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let high = range(figures).1.max(f64::MIN_POSITIVE);
        Self { logarithmic: false, low: 0.0, high, from, to }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// A figure outside of the axis is drawn at its end.
    pub(super) fn place(&self, figure: f64) -> f64 {
        let figure = figure.clamp(self.low, self.high);
        let part = if self.logarithmic {
            (figure / self.low).ln() / (self.high / self.low).ln()
        } else {
            (figure - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    /// Round figures along the axis, not too many.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high / 5.0);
            return (0..=10)
                .map(|i| f64::from(i) * step)
                .filter(|tick| *tick <= self.high)
                .collect();
        }
        let within = |tick: &f64| *tick >= self.low * 0.999 && *tick <= self.high * 1.001;
        let of = |digits: &[f64]| -> Vec<f64> {
            let each = (-6..15).flat_map(|power| digits.iter().map(move |n| n * ten(power)));
            each.filter(within).collect()
        };
        let all = of(&[1.0, 2.0, 5.0]);
        if all.len() > 10 { of(&[1.0]) } else { all }
    }
}

fn range(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    figures.fold((f64::INFINITY, 0.0), |(low, high), figure| (figure.min(low), figure.max(high)))
}

/// The next 1, 2 or 5 times a power of ten that is not below `figure`.
fn step(least: f64) -> f64 {
    let power = ten(least.log10().floor() as i32);
    [1.0, 2.0, 5.0]
        .map(|n| n * power)
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

fn ten(power: i32) -> f64 {
    10_f64.powi(power)
}
