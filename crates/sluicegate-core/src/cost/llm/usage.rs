use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
/// Leave a clone in the response's extensions, and report to it while the body is made. The request is settled by
/// [`By::settle_tokens`](crate::rule::By::settle_tokens) when the body has ended. Clones report together.
///
/// A usage is final once [`finish`](Self::finish) was called. If the body ends before that, because the client has gone
/// or the model failed, the request is charged the larger of what was reserved and what was reported.
///
/// ```
/// use sluicegate::cost::llm::{TokenUsage, Usage};
///
/// let usage = TokenUsage::new();
/// let reported = usage.clone();
/// // response.extensions_mut().insert(usage);
/// // … and when the model has said how many tokens it used:
/// reported.report(Usage::new(120, 45));
/// reported.finish();
/// # drop(usage);
/// ```
#[derive(Debug, Clone, Default)]
pub struct TokenUsage(Arc<Reported>);

#[derive(Debug, Default)]
struct Reported {
    input: AtomicU64,
    output: AtomicU64,
    cached: AtomicU64,
    /// The output by the text so far.
    seen: AtomicU64,
    is_final: AtomicBool,
}

impl TokenUsage {
    /// Nothing is reported yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports what was used so far. A number that is smaller than one reported before is ignored, because usage
    /// only grows.
    pub fn report(&self, usage: Usage) {
        self.0.input.fetch_max(usage.input, Ordering::Relaxed);
        self.0.output.fetch_max(usage.output, Ordering::Relaxed);
        self.0.cached.fetch_max(usage.cached, Ordering::Relaxed);
    }

    /// Reports output tokens that are estimated from text. They count until the usage is final.
    pub(crate) fn report_seen(&self, output: u64) {
        self.0.seen.fetch_max(output, Ordering::Relaxed);
    }

    /// What was reported is all that was used.
    pub fn finish(&self) {
        self.0.is_final.store(true, Ordering::Release);
    }

    /// Whether [`finish`](Self::finish) was called.
    pub fn is_final(&self) -> bool {
        self.0.is_final.load(Ordering::Acquire)
    }

    /// What was reported so far.
    pub fn usage(&self) -> Usage {
        let seen = if self.is_final() { 0 } else { self.0.seen.load(Ordering::Relaxed) };
        Usage {
            input: self.0.input.load(Ordering::Relaxed),
            output: self.0.output.load(Ordering::Relaxed).max(seen),
            cached: self.0.cached.load(Ordering::Relaxed),
        }
    }
}
