use std::sync::atomic::{AtomicU64, Ordering};

use sluicegate_core::cost::RunningCost;

/// Which tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Count {
    /// Input and output, including input that the model read from its cache. The default.
    #[default]
    All,
    /// Input and output, without input that the model read from its cache.
    Uncached,
    /// Input, including what the model read from its cache.
    Input,
    /// Input, without what the model read from its cache.
    UncachedInput,
    /// Output.
    Output,
}

/// How many tokens a request used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the request, including `cached`.
    pub input: u64,
    /// Tokens of the answer, including those of reasoning that is not shown.
    pub output: u64,
    /// The part of `input` that the model read from its cache.
    pub cached: u64,
}

impl Usage {
    /// These tokens of the request and of the answer.
    pub const fn new(input: u64, output: u64) -> Self {
        Self { input, output, cached: 0 }
    }

    /// Sets the part of the input that the model read from its cache.
    #[must_use]
    pub const fn cached(mut self, cached: u64) -> Self {
        self.cached = cached;
        self
    }

    /// The number of tokens that `count` counts.
    pub fn counted(&self, count: Count) -> u64 {
        let uncached = self.input.saturating_sub(self.cached);
        match count {
            Count::All => self.input.saturating_add(self.output),
            Count::Uncached => uncached.saturating_add(self.output),
            Count::Input => self.input,
            Count::UncachedInput => uncached,
            Count::Output => self.output,
        }
    }
}

/// The tokens that a request uses, reported while its answer is streamed.
///
/// Leave its [`running_cost`](Self::running_cost) in the response's extensions, and report to it while the body is made. The
/// request is settled by [`used_tokens`](crate::used_tokens) when the usage is final, or the body has ended.
///
/// A usage is final once [`finish`](Self::finish) was called. If the body ends before that, because the client has gone
/// or the model failed, the request is charged the larger of what was reserved and what was reported.
///
/// ```
/// use sluicegate_llm::{TokenUsage, Usage};
///
/// let usage = TokenUsage::new();
/// let cost = usage.running_cost();
/// // response.extensions_mut().insert(cost);
/// // … and when the model has said how many tokens it used:
/// usage.report(Usage::new(120, 45));
/// usage.finish();
/// assert!(cost.is_final());
/// ```
#[derive(Debug)]
pub struct TokenUsage(
    // Not to be cloned, so that nobody leaves it itself in a response, where no limit looks for it. Its parts are
    // always `UsageParts`.
    RunningCost,
);

#[derive(Debug, Default)]
struct UsageParts {
    input: AtomicU64,
    output: AtomicU64,
    cached: AtomicU64,
    /// The output by the text so far.
    seen: AtomicU64,
}

impl TokenUsage {
    /// Nothing is reported yet.
    pub fn new() -> Self {
        Self(RunningCost::with_parts(UsageParts::default()))
    }

    /// The usage that a response's cost is made of, if it is one.
    pub fn of(cost: RunningCost) -> Option<Self> {
        cost.parts::<UsageParts>().is_some().then(|| Self(cost))
    }

    /// What to leave in the response's extensions.
    pub fn running_cost(&self) -> RunningCost {
        self.0.clone()
    }

    /// The same usage, for one more who reports to it.
    pub(crate) fn share(&self) -> Self {
        Self(self.0.clone())
    }

    fn reported(&self) -> &UsageParts {
        self.0.parts().expect("`new` and `of` take no other parts")
    }

    /// Reports what was used so far. A number that is smaller than one reported before is ignored, because usage
    /// only grows.
    pub fn report(&self, usage: Usage) {
        let reported = self.reported();
        reported.input.fetch_max(usage.input, Ordering::Relaxed);
        reported.output.fetch_max(usage.output, Ordering::Relaxed);
        reported.cached.fetch_max(usage.cached, Ordering::Relaxed);
    }

    /// Reports output tokens that are estimated from text. They count until the usage is final.
    pub(crate) fn report_seen(&self, output: u64) {
        self.reported().seen.fetch_max(output, Ordering::Relaxed);
    }

    /// What was reported is all that was used.
    pub fn finish(&self) {
        self.0.finish();
    }

    /// Whether [`finish`](Self::finish) was called.
    pub fn is_final(&self) -> bool {
        self.0.is_final()
    }

    /// What was reported so far.
    pub fn usage(&self) -> Usage {
        let reported = self.reported();
        let seen = if self.is_final() { 0 } else { reported.seen.load(Ordering::Relaxed) };
        Usage {
            input: reported.input.load(Ordering::Relaxed),
            output: reported.output.load(Ordering::Relaxed).max(seen),
            cached: reported.cached.load(Ordering::Relaxed),
        }
    }
}

impl Default for TokenUsage {
    fn default() -> Self {
        Self::new()
    }
}
