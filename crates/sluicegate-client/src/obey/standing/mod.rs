//! What a client may send to one server, and when.
//!
//! No clock and no I/O: the time, and a random number for jitter, are passed in.

mod pace;
mod quotas;
mod rules;
mod window;

use std::time::Duration;

use self::pace::Pace;
use self::quotas::{Allowance, Quotas};
pub(super) use self::rules::Rules;
use super::signal::Signal;

/// What a client knows about the limits of one server. Times are microseconds on any clock that does not go back.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// Nothing is sent before: the server asked for that.
    not_before: u64,
    resume: Resume,
    in_flight: u32,
    /// Times that the server has refused since it last served.
    refusals: u32,
    /// By how much gaps are longer than what the quotas allow, in 16ths above 1.
    slowness: u32,
    /// When the next request may go, while requests are spread.
    next: u64,
    quotas: Quotas,
    pace: Pace,
}

/// What a request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may be sent.
    Go,
    /// It may be sent, and the others wait for its response.
    Probe,
    /// It may ask again after this time, or when a response has been observed.
    Wait(Duration),
}

/// What has to happen before requests are sent freely again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Resume {
    /// Nothing is known of the server: one request goes first.
    #[default]
    Meet,
    /// It has gone, at that time.
    Meeting(u64),
    Freely,
    /// One request goes first.
    Probe,
    /// It has gone, at that time.
    Probing(u64),
    /// How many requests may be under way at a time. Each response adds one.
    Ramp(u32),
}

/// How long the others wait for the first response of a server that is not known, in microseconds. A slow server is not
/// made slower than that.
const MEETING: u64 = 1_000_000;

/// A ramp ends when this many requests are under way.
const RAMP: u32 = 64;

/// The longest that gaps are stretched, in 16ths above 1: 64 times.
const SLOWEST: u32 = 16 * 63;

impl Standing {
    /// Whether a request may be sent `now`. After `Go` or `Probe`, tell how it ended, by [`observe`](Self::observe) or
    /// [`give_up`](Self::give_up).
    pub(super) fn ask(&mut self, now: u64, rules: &Rules) -> Turn {
        if now < self.not_before {
            return wait(self.not_before - now);
        }
        // A window that was nearly used up is over. Other clients have waited for that as well, so one request looks first.
        if self.quotas.expire(now) && self.resume == Resume::Freely {
            self.resume = Resume::Probe;
        }
        let turn = match self.resume {
            Resume::Probing(since) if now < since.saturating_add(rules.probe()) => {
                return wait(since + rules.probe() - now);
            }
            Resume::Meeting(since) if now < since.saturating_add(MEETING) => {
                return wait(since + MEETING - now);
            }
            Resume::Meet => {
                self.resume = Resume::Meeting(now);
                Turn::Go
            }
            // The first response takes too long: nothing is learned from waiting any longer.
            Resume::Meeting(_) => {
                self.resume = Resume::Freely;
                Turn::Go
            }
            Resume::Probe | Resume::Probing(_) => Turn::Probe,
            Resume::Ramp(most) if self.in_flight >= most => return wait(rules.probe()),
            Resume::Ramp(_) | Resume::Freely => Turn::Go,
        };
        match self.quotas.allowance(now, self.in_flight) {
            Allowance::Free => {
                let when = self.pace.next(now, self.in_flight);
                // A probe goes in the place of one that was given up. It has no such place in a window that is used up.
                if now < when && (turn != Turn::Probe || self.pace.is_by_windows()) {
                    return wait(when - now);
                }
                self.pace.sent(now);
            }
            Allowance::Until(when) => return wait(when - now),
            Allowance::Gap(gap) => {
                let next = now.saturating_add(rules.bounded(self.stretch(gap)));
                if now < self.next {
                    // A bad time may have left a gap that is longer than the one that holds now.
                    self.next = self.next.min(next);
                    return wait(self.next - now);
                }
                self.next = next;
            }
        }
        if turn == Turn::Probe {
            self.resume = Resume::Probing(now);
        }
        self.in_flight = self.in_flight.saturating_add(1);
        self.quotas.spend();
        turn
    }

    /// Notes the response of a request that was allowed by `turn`. `random` is any number, for jitter.
    pub(super) fn observe(
        &mut self,
        now: u64,
        signal: &Signal,
        turn: Turn,
        rules: &Rules,
        random: u32,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.quotas.update(now, signal, self.in_flight, rules, random);
        match signal.refused {
            true => self.refused(now, signal, rules, random),
            false => self.served(now, turn, !signal.quotas.is_empty()),
        }
    }

    /// Notes what a server says in the response to a request that was sent to another one, which redirected it.
    pub(super) fn hear(&mut self, now: u64, signal: &Signal, rules: &Rules, random: u32) {
        self.quotas.update(now, signal, self.in_flight, rules, random);
        if signal.refused {
            self.refused(now, signal, rules, random);
        }
    }

    /// Notes the end of a request that was allowed by `turn` and has no response.
    pub(super) fn give_up(&mut self, turn: Turn) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match self.resume {
            Resume::Probing(_) if turn == Turn::Probe => self.resume = Resume::Probe,
            Resume::Meeting(_) => self.resume = Resume::Meet,
            _ => {}
        }
    }

    /// Whether it can be forgotten without losing anything.
    pub(super) fn is_idle(&self, now: u64) -> bool {
        self.in_flight == 0
            && now >= self.not_before
            && matches!(self.resume, Resume::Freely | Resume::Meet)
            && self.quotas.is_idle(now)
    }

    /// Whether no response can make the wait of a request shorter.
    pub(super) fn is_final(&self, now: u64) -> bool {
        now < self.not_before || self.in_flight == 0
    }

    /// Until when it holds requests back, if it does.
    pub(super) const fn not_before(&self) -> u64 {
        self.not_before
    }

    fn refused(&mut self, now: u64, signal: &Signal, rules: &Rules, random: u32) {
        // Those that were under way at the first refusal are refused, too: that is the same news.
        let is_news = now >= self.not_before && self.resume != Resume::Probe;
        if is_news {
            self.refusals = self.refusals.saturating_add(1);
            self.slowness = (2 * self.slowness + 16).min(SLOWEST);
        }
        let asked = signal.wait();
        let pace = &self.pace;
        let micros =
            rules.wait_after(asked, self.refusals, pace.gap(), pace.is_by_windows(), random);
        match signal.quotas.is_empty() {
            true if is_news => {
                let is_demanded = asked.is_some_and(|asked| !asked.is_zero());
                let pause = asked.map_or(micros, |asked| rules.capped(asked));
                self.pace.refused(now, pause, is_demanded);
            }
            true => {}
            false => self.pace.forget(),
        }
        // The longest of all demands holds: responses to requests that were under way may come in any order.
        self.not_before = self.not_before.max(now.saturating_add(micros));
        self.resume = Resume::Probe;
    }

    fn served(&mut self, now: u64, turn: Turn, tells_quotas: bool) {
        match tells_quotas {
            true => self.pace.forget(),
            false => self.pace.served(now),
        }
        // Rounded up, so that it comes back to nothing.
        self.slowness -= self.slowness.div_ceil(64);
        self.resume = match (self.resume, turn) {
            (Resume::Meet | Resume::Meeting(_), _) => Resume::Freely,
            // The remaining quota determines the pace.
            (Resume::Probing(_), Turn::Probe) if tells_quotas => Resume::Freely,
            (Resume::Probing(_), Turn::Probe) => Resume::Ramp(2),
            // The window that was over has been told anew.
            (Resume::Probe, _) if tells_quotas && self.refusals == 0 => Resume::Freely,
            (Resume::Ramp(most), _) if most >= RAMP || tells_quotas => Resume::Freely,
            (Resume::Ramp(most), _) => Resume::Ramp(most + 1),
            (resume, _) => resume,
        };
        // Halved and not forgotten: a server that serves one request in between is still overloaded.
        if turn == Turn::Probe {
            self.refusals /= 2;
        }
    }

    fn stretch(&self, gap: u64) -> u64 {
        gap.saturating_add(gap.saturating_mul(u64::from(self.slowness)) / 16)
    }
}

fn wait(micros: u64) -> Turn {
    Turn::Wait(Duration::from_micros(micros))
}

#[cfg(test)]
mod contention_tests;
#[cfg(test)]
mod tests;
