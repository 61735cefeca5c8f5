use super::Rate;
use super::model::{Counter, Log, Meter, Model, Weighing, Windows};

/// What an algorithm promises by its definition: how much it admits at most, and how much at least.
#[derive(Debug, Clone)]
pub struct Promise {
    /// Everything that is admitted fits this. Asked when a request goes ahead.
    pub(super) most: Model,
    /// Everything that fits this is admitted. Asked when a request arrives.
    pub(super) least: Model,
}

impl Promise {
    /// A token bucket, or GCRA: `burst + rate × t` in every interval `t`.
    pub fn bucket(rate: Rate, burst: u64) -> Self {
        Self::exactly(Model::Meter(Meter::new(rate, burst)))
    }

    /// A token bucket that gets `amount` tokens at a time. It is never ahead of a continuous one by more than one
    /// refill, nor behind.
    pub fn stepped(rate: Rate, burst: u64, amount: u64) -> Self {
        let meter = |burst| Model::Meter(Meter::new(rate, burst));
        Self { most: meter(burst + amount), least: meter(burst.saturating_sub(amount)) }
    }

    /// A leaky bucket: requests go ahead at even intervals, and `queue` of them may wait. A request with a larger
    /// cost leaves a longer gap before it.
    pub fn leaky(rate: Rate, queue: u64, cost: u64) -> Self {
        let meter = |burst| Model::Meter(Meter::new(rate, burst));
        Self { most: meter(cost), least: meter(queue + 1) }
    }

    /// `count` in each window. A window begins with its first request, or at a multiple of the period.
    pub fn windows(rate: Rate, from_first: bool) -> Self {
        Self::exactly(Model::Windows(Windows::new(rate, from_first)))
    }

    /// The weighted sum of two windows' counts within the limit.
    pub fn counter(rate: Rate, weighing: Weighing) -> Self {
        Self::exactly(Model::Counter(Counter::new(rate, weighing)))
    }

    /// `count` in any interval of one period.
    pub fn log(rate: Rate) -> Self {
        Self::exactly(Model::Log(Log::new(rate)))
    }

    /// The same, but a place may become free up to `resolution` microseconds late.
    pub fn sub_windows(rate: Rate, resolution: u64) -> Self {
        let late = Rate { period: rate.period + resolution, ..rate };
        Self { most: Model::Log(Log::new(rate)), least: Model::Log(Log::new(late)) }
    }

    fn exactly(model: Model) -> Self {
        Self { most: model.clone(), least: model }
    }
}
