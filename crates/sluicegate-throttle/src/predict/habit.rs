/// The sums follow this many requests.
const REQUESTS: f64 = 32.0;

/// How the costs of a flow's requests compare with the costs expected for their routes. Both are estimates, so they are
/// doubles.
///
/// A client can choose the expensive requests of a route whose mean is low. Because of this, they are predicted as
/// expensive after a few of them, while cheap requests of other clients stay cheap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habit {
    actual: f64,
    expected: f64,
    requests: f64,
}

impl Habit {
    pub(super) fn learn(&mut self, expected: f64, actual: f64) {
        let follow = |sum: &mut f64, new: f64| *sum += new - *sum / REQUESTS;
        follow(&mut self.actual, actual);
        follow(&mut self.expected, expected);
        // Forgotten like the sums, so it says how many requests they stand for.
        follow(&mut self.requests, 1.0);
    }

    /// By how much its requests cost more than expected, in parts of that, and how many requests tell so.
    #[inline]
    pub(super) fn deviation(&self) -> (f64, f64) {
        if self.requests > 0.0 {
            (self.actual / self.expected - 1.0, self.requests)
        } else {
            (0.0, 0.0)
        }
    }

    /// How many times the cost expected for a route its requests are expected to cost.
    #[inline]
    pub(super) fn factor(&self, credibility: &Credibility) -> f64 {
        1.0 + credibility.deviation(self.actual, self.expected, self.requests)
    }
}

/// The sums follow this many requests.
const FOLLOWED: f64 = 1_024.0;

/// A request counts as many times as its flow has earlier ones, up to this.
const MOST: f64 = 4.0;

/// A square that says nothing beside one that was seen.
const LITTLE: f64 = 1e-9;

/// How far the costs of a flow's own requests are to be believed, after Bühlmann ("Experience rating and credibility",
/// 1967): `n / (n + k)` for `n` requests, where `k` is the variance within flows divided by the variance between them.
///
/// Where all flows draw from the same costs, what the last requests of one have cost is chance, however much it differs
/// from the mean. Where each flow has costs of its own, a few requests show them.
///
/// Costs count relative to what is expected for their route. The variance between flows is the mean product of a
/// request's deviation and the mean deviation of the earlier requests of its flow. The two have nothing in common except
/// their flow. Until something is known, flows are believed, because a dear one is to be told from the others at once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Credibility {
    /// Squared deviations of requests: both variances.
    squares: f64,
    /// Products with the deviation of the flow: the variance between flows.
    products: f64,
}

impl Credibility {
    /// A request deviates by `deviation`, and the last `requests` of its flow by `flow`, on average.
    #[inline]
    pub(super) fn learn(&mut self, deviation: f64, flow: f64, requests: f64) {
        // The more there are, the more their mean says. But a flow that is new must not wait for the others.
        let weight = requests.min(MOST);
        let follow = |sum: &mut f64, new: f64| *sum += new - *sum * (1.0 / FOLLOWED);
        follow(&mut self.squares, weight * deviation * deviation);
        follow(&mut self.products, weight * deviation * flow);
    }

    /// Part of the deviation, between none and all of it, of a flow whose `requests` have cost `actual` where `expected`
    /// was expected: `(actual - expected) / expected`, times its credibility.
    #[inline]
    pub(super) fn deviation(&self, actual: f64, expected: f64, requests: f64) -> f64 {
        let between = self.products + LITTLE;
        if between <= 0.0 || requests <= 0.0 {
            return 0.0;
        }
        // All that is not between flows. Rounding and chance can make it less than nothing.
        let within = (self.squares + LITTLE - between).max(0.0);
        let own = requests * between;
        (actual - expected) * own / (expected * (own + within))
    }
}
