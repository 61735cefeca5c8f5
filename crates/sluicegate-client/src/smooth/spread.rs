//! Spreads what a fixed window admits over the window, by short delays.
//!
//! How much is released in each slot of the window is planned from what was wanted there in the windows before: slots that
//! want little get it, and the others the same level. A controller (proportional, integral, derivative) makes up for what
//! went otherwise. Its integral stands still while the rate is at a bound, so that nothing winds up while nobody comes.

use std::time::Duration;

use sluicegate::adapter::ConfigError;

use super::gate::Reserve;

/// The weight of the last window in what is remembered of a slot.
const NEWEST: f64 = 0.25;

/// The controller, for errors that are parts of the window's count: it makes up for an error in about a tenth of a window.
const PROPORTIONAL: f64 = 10.0;
const INTEGRAL: f64 = 5.0;
const DERIVATIVE: f64 = 0.02;

/// The most that is released, in relation to an even rate.
const FASTEST: f64 = 3.0;

/// Delays requests so that those of a window leave evenly, where they want more than the window admits.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_client::smooth::{Reserve, Spread};
///
/// // 100 in a second: a burst is spread by up to 50 ms, and a request that comes too early is told when to go.
/// let mut spread = Spread::new(100, Duration::from_secs(1), 20, Duration::from_millis(50))?;
/// let burst: Vec<_> = (0..20).map(|_| spread.reserve(Duration::ZERO, 1, None)).collect();
/// let admitted = burst.iter().filter(|wait| wait.is_ok()).count();
/// assert!((5..=7).contains(&admitted), "{admitted}");
/// # Ok::<(), sluicegate_client::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Spread {
    count: f64,
    /// In seconds.
    window: f64,
    most_delay: f64,
    /// What was wanted in each slot of the windows before.
    history: Vec<f64>,
    wanted: Vec<f64>,
    /// What is to be released in each slot of this window.
    plan: Vec<f64>,
    /// The number of the window.
    index: u64,
    /// What leaves in this window, and in the next one already.
    leaving: [f64; 2],
    /// When the next one may leave.
    next: f64,
    controller: Controller,
}

#[derive(Debug, Clone, Copy, Default)]
struct Controller {
    integral: f64,
    error: f64,
    at: f64,
}

impl Spread {
    /// Spreads `count` over each `window`. Windows begin at multiples of their length, and `slots` is the number of parts
    /// whose demand is remembered. No request is delayed by more than `most_delay`.
    ///
    /// # Errors
    ///
    /// When the count is zero, there are fewer than 2 or more than 1,000 slots, the window is shorter than a
    /// millisecond or longer than a day, or the delay is zero or longer than the window.
    pub fn new(
        count: u32,
        window: Duration,
        slots: usize,
        most_delay: Duration,
    ) -> Result<Self, ConfigError> {
        let fail = |sentence: String| Err(ConfigError::new(sentence));
        if count == 0 {
            return fail("the count of the window is 0: nothing would ever leave".to_owned());
        }
        if !(2..=1_000).contains(&slots) {
            return fail(format!("a window has 2 to 1,000 slots; {slots} were asked for"));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&window) {
            return fail(format!("the window is {window:?}, but must be from 1 ms to a day"));
        }
        if most_delay.is_zero() || most_delay > window {
            return fail(format!(
                "the delay is {most_delay:?}, but must be above 0 and within the window"
            ));
        }
        let each = f64::from(count) / slots as f64;
        Ok(Self {
            count: f64::from(count),
            window: window.as_secs_f64(),
            most_delay: most_delay.as_secs_f64(),
            history: vec![each; slots],
            wanted: vec![0.0; slots],
            plan: vec![each; slots],
            index: 0,
            leaving: [0.0; 2],
            next: 0.0,
            controller: Controller::default(),
        })
    }

    fn slot_length(&self) -> f64 {
        self.window / self.plan.len() as f64
    }

    /// Begins the window of `now`, if it has not.
    fn turn_to(&mut self, now: f64) {
        let index = (now / self.window) as u64;
        // A clock that steps back stays in its window.
        if index <= self.index {
            return;
        }
        let is_next = index == self.index + 1;
        for (history, wanted) in self.history.iter_mut().zip(&mut self.wanted) {
            *history += NEWEST * (*wanted - *history);
            *wanted = 0.0;
        }
        self.plan = plan(self.count, &self.history);
        self.leaving = [if is_next { self.leaving[1] } else { 0.0 }, 0.0];
        self.index = index;
        self.next = self.next.max(index as f64 * self.window);
        let at = index as f64 * self.window;
        self.controller = Controller { at, ..Controller::default() };
    }

    /// What should have left by `into` the window.
    fn planned(&self, into: f64) -> f64 {
        let slots = into / self.slot_length();
        let slot = (slots as usize).min(self.plan.len() - 1);
        self.plan[..slot].iter().sum::<f64>() + self.plan[slot] * (slots - slot as f64).min(1.0)
    }

    /// What is released in a second, from `at` on.
    fn rate(&mut self, at: f64) -> f64 {
        let into = (at - self.index as f64 * self.window).clamp(0.0, self.window);
        let slot = ((into / self.slot_length()) as usize).min(self.plan.len() - 1);
        let error = (self.planned(into) - self.leaving[0]) / self.count;
        let even = self.count / self.window;
        let passed = (at - self.controller.at).max(0.0) / self.window;
        let slope = if passed > 0.0 { (error - self.controller.error) / passed } else { 0.0 };
        let integral = self.controller.integral + error * passed;
        let corrected =
            PROPORTIONAL * error + INTEGRAL * integral + DERIVATIVE * slope.clamp(-1.0, 1.0);
        let wanted = self.plan[slot] / self.slot_length() + corrected * even;
        let rate = wanted.clamp(even / 20.0, FASTEST * even);
        let is_bounded = rate != wanted;
        if !is_bounded {
            self.controller.integral = integral;
        }
        (self.controller.error, self.controller.at) = (error, at);
        rate
    }
}

impl Reserve for Spread {
    /// A wait that is longer than the longest delay is an error, however patient the caller is. So are more permits than a
    /// window has, which are never there.
    fn reserve(
        &mut self,
        now: Duration,
        permits: u32,
        patience: Option<Duration>,
    ) -> Result<Duration, Duration> {
        let (now, permits) = (now.as_secs_f64(), f64::from(permits));
        // More than a window has is never there.
        if permits > self.count {
            return Err(Duration::MAX);
        }
        self.turn_to(now);
        let into = now - self.index as f64 * self.window;
        let slot = ((into / self.slot_length()) as usize).min(self.wanted.len() - 1);
        self.wanted[slot] += permits;

        let mut leaves = self.next.max(now);
        let border = (self.index + 1) as f64 * self.window;
        // Waits are rounded up to a microsecond: what would leave just before the border leaves at it.
        let is_full = self.leaving[0] + permits > self.count;
        if leaves < border && (is_full || leaves + 2e-6 >= border) {
            leaves = border;
        }
        let wait = leaves - now;
        let longest = patience
            .map_or(self.most_delay, |patience| patience.as_secs_f64().min(self.most_delay));
        if wait > longest {
            return Err(Duration::from_secs_f64(wait));
        }
        let rate = match leaves < border {
            true => self.rate(leaves),
            false => self.count / self.window,
        };
        self.leaving[usize::from(leaves >= border)] += permits;
        self.next = leaves + permits / rate;
        Ok(Duration::from_micros((wait.max(0.0) * 1e6).ceil() as u64))
    }
}

/// What is released in each slot: what is wanted, up to a level at which all of it is the count. What is left is divided
/// evenly.
fn plan(count: f64, history: &[f64]) -> Vec<f64> {
    let wanted: f64 = history.iter().sum();
    if wanted <= count {
        let each = (count - wanted) / history.len() as f64;
        return history.iter().map(|wanted| wanted + each).collect();
    }
    let mut sorted = history.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut left = count;
    let mut level = 0.0;
    for (at, wanted) in sorted.iter().enumerate() {
        level = left / (sorted.len() - at) as f64;
        if *wanted > level {
            break;
        }
        left -= wanted;
    }
    history.iter().map(|wanted| wanted.min(level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: usize = 20;

    struct Random(u64);

    impl Random {
        /// From 0 to 1, without 0.
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
        }
    }

    /// Requests come at random at `rate(time)` a second. Returns how many leave in each slot.
    fn run(
        mut reserve: impl FnMut(Duration) -> Option<Duration>,
        rate: impl Fn(f64) -> f64,
        seconds: usize,
    ) -> Vec<f64> {
        let (mut random, mut now) = (Random(7), 0.0);
        let mut slots = vec![0.0; seconds * SLOTS];
        loop {
            now += -random.next().ln() / rate(now);
            if now >= seconds as f64 {
                return slots;
            }
            if let Some(wait) = reserve(Duration::from_secs_f64(now)) {
                let slot = ((now + wait.as_secs_f64()) * SLOTS as f64) as usize;
                if let Some(slot) = slots.get_mut(slot) {
                    *slot += 1.0;
                }
            }
        }
    }

    fn variation(slots: &[f64]) -> f64 {
        let mean = slots.iter().sum::<f64>() / slots.len() as f64;
        let variance =
            slots.iter().map(|slot| (slot - mean).powi(2)).sum::<f64>() / slots.len() as f64;
        variance.sqrt() / mean
    }

    fn spread(count: u32) -> Spread {
        let (second, delay) = (Duration::from_secs(1), Duration::from_millis(50));
        Spread::new(count, second, SLOTS, delay).expect("it makes sense")
    }

    #[test]
    fn twice_the_demand_leaves_evenly_and_nothing_is_lost() {
        for count in [200, 1_000, 10_000] {
            let mut spread = spread(count);
            let seconds = if count > 1_000 { 6 } else { 30 };
            let rate = 2.0 * f64::from(count);
            let slots = run(|now| spread.reserve(now, 1, None).ok(), |_| rate, seconds);
            let settled = &slots[2 * SLOTS..];
            let throughput =
                settled.iter().sum::<f64>() / (f64::from(count) * (seconds - 2) as f64);
            let variation = variation(settled);
            assert!(variation <= 0.15 && throughput >= 0.99, "{count}: {variation}, {throughput}");
            for window in slots.chunks(SLOTS) {
                assert!(window.iter().sum::<f64>() <= f64::from(count), "{count}");
            }
        }
    }

    #[test]
    fn without_it_a_window_is_spent_in_its_first_half() {
        let mut left = (0, 0);
        let slots = run(
            |now| {
                let window = now.as_secs();
                left = if left.0 == window { (window, left.1 + 1) } else { (window, 1) };
                (left.1 <= 200).then_some(Duration::ZERO)
            },
            |_| 400.0,
            30,
        );
        assert!((0.9..1.2).contains(&variation(&slots)), "{}", variation(&slots));
    }

    #[test]
    fn a_demand_below_the_limit_is_hardly_delayed() {
        let mut spread = spread(1_000);
        let (mut waited, mut count) = (Duration::ZERO, 0);
        let slots = run(
            |now| {
                let wait = spread.reserve(now, 1, None).ok()?;
                (waited, count) = (waited + wait, count + 1);
                Some(wait)
            },
            |_| 400.0,
            10,
        );
        assert!(waited / count < Duration::from_millis(2), "{:?}", waited / count);
        assert!(slots.iter().sum::<f64>() > 0.99 * f64::from(count));
    }

    #[test]
    fn what_is_wanted_late_in_each_window_is_learned() {
        let mut spread = spread(1_000);
        // Hardly anything in the first half, three times the limit in the second.
        let rate = |now: f64| if now % 1.0 < 0.5 { 100.0 } else { 3_000.0 };
        let slots = run(|now| spread.reserve(now, 1, None).ok(), rate, 20);
        let used = slots[5 * SLOTS..].iter().sum::<f64>() / 15_000.0;
        assert!(used > 0.97, "{used}");
    }

    #[test]
    fn nothing_winds_up_while_nobody_comes() {
        let mut spread = spread(1_000);
        let rate = |now: f64| if now < 5.0 { 0.5 } else { 2_000.0 };
        let slots = run(|now| spread.reserve(now, 1, None).ok(), rate, 8);
        let fastest = slots.iter().copied().fold(0.0, f64::max);
        // Three times the even rate at most, and a request at each border.
        assert!(fastest <= 152.0, "{fastest}");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let (second, ms) = (Duration::from_secs(1), Duration::from_millis(1));
        for (count, window, slots, delay) in [
            (0, second, 20, ms),
            (1, Duration::ZERO, 20, ms),
            (1, second, 1, ms),
            (1, second, 20, Duration::ZERO),
            (1, second, 20, 2 * second),
        ] {
            assert!(Spread::new(count, window, slots, delay).is_err());
        }
    }
}
