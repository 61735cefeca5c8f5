/// The demand of one process for tokens of a limit. It is counted over spans of time, and the next span is expected to
/// be like the last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Demand {
    /// The number of the current span.
    index: u64,
    current: u64,
    previous: u64,
}

impl Demand {
    pub(super) fn add(&mut self, now: u64, span: u64, cost: u64) {
        *self = self.at(now, span);
        self.current = self.current.saturating_add(cost);
    }

    /// The demand of the current span and the one before.
    pub(super) fn seen(&self, now: u64, span: u64) -> u64 {
        let seen = self.at(now, span);
        seen.current.saturating_add(seen.previous)
    }

    /// The expected demand in a span: that of the current span, and a part of the previous one for the time that is left.
    pub(super) fn expected(&self, now: u64, span: u64) -> u64 {
        let seen = self.at(now, span);
        let rest = u128::from(span - now % span);
        let before = u128::from(seen.previous) * rest / u128::from(span);
        seen.current.saturating_add(before as u64)
    }

    /// The expected demand until the current span ends. Spans are counted from `ends`, which may be long ago.
    pub(super) fn until(&self, now: u64, span: u64, ends: u64) -> u64 {
        let rest = match ends.checked_sub(now) {
            Some(rest) if rest > 0 => rest.min(span),
            _ => span - now.saturating_sub(ends) % span,
        };
        let expected = u128::from(self.expected(now, span));
        (expected * u128::from(rest) / u128::from(span)) as u64
    }

    fn at(&self, now: u64, span: u64) -> Self {
        let index = now / span;
        match index.checked_sub(self.index) {
            Some(0) => *self,
            Some(1) => Self { index, current: 0, previous: self.current },
            // If the clock was set back, nothing is known.
            _ => Self { index, current: 0, previous: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_span_is_expected_to_be_like_the_last() {
        let mut demand = Demand::default();
        for now in 0..1_000 {
            demand.add(now, 100, 2);
            if now >= 100 {
                let expected = demand.expected(now, 100);
                assert!((198..=204).contains(&expected), "{now}: {expected}");
            }
        }
        assert_eq!(demand.expected(1_099, 100), 2);
        assert_eq!(demand.expected(1_200, 100), 0);
        assert_eq!(demand.expected(10, 100), 0, "the clock was set back");
    }
}
