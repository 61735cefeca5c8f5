/// How a client shares the windows of a server that tells the end of a window in whole seconds, and nothing else.
///
/// In a fixed window of a second the whole second is refused once the window is used up. A client that keeps to a pace is
/// refused late in the window, is told to wait for a second, and comes back late in the next one. So it sends its share
/// at the beginning of each window and stops by itself. Its share is what it was served in the last window in which it
/// asked until it was refused.
///
/// It has to ask for more now and then, because other clients leave. Each time costs a refusal. So it asks beyond its
/// share only in every second, fourth, … window: the smaller the share, the less often. All clients choose these windows
/// by the clock, so they ask in the same ones. Who asks alone would take the shares of those that do not.
///
/// A bucket looks the same until it is asked again before the second is over: it has filled a little. So the first request
/// beyond the share comes a quarter of a window later. If it is served, the server does not count by windows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Window {
    counting: Counting,
    /// When the present window began, in microseconds.
    begin: u64,
    /// Microseconds.
    length: u64,
    /// The share of a window, in 16ths of a request.
    share: u64,
    /// The part of a request that earlier windows left over, in 16ths.
    carry: u64,
    /// What is left of the share in this window, in requests.
    left: u64,
    /// Requests that were served since the window began, or since the last refusal.
    served: u64,
    /// When the first of them was served.
    first: u64,
    /// When the last request of the share was sent.
    last: u64,
    /// Requests that were sent in this window.
    sent: u64,
    /// Its own requests under way keep it from sending more of its share in this window.
    is_held: bool,
    /// How many windows in a row have ended like that.
    held: u32,
    /// A request beyond the share is under way.
    is_asking: bool,
    /// Others have used up a window before this client came: it waits for the beginning of the next one, and asks there
    /// until it is refused, because its share is out of date.
    is_late: bool,
    is_catching_up: bool,
}

/// How the server counts, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Counting {
    #[default]
    Unknown,
    /// By windows, unless a request after a pause is served.
    MaybeByWindows,
    ByWindows,
    Continuously,
}

/// Parts of a request in which shares are counted.
const UNIT: u64 = 16;

/// Requests that are served for each one that is refused, where clients ask by turns: at most a twelfth is refused.
const PER_REFUSAL: u64 = 12;

/// Requests of the share that are left for each one under way.
const TAPER: u64 = 4;

/// Held windows in a row after which as many requests may be under way as the share has.
const SLOW: u32 = TAPER.ilog2() + 1;

/// Windows from one in which a client asks beyond its share to the next, at most.
const RAREST: u64 = 16;

/// In one of this many windows, the first request beyond the share comes after a pause, in case the server has changed.
const REPEATED: u64 = 32;

const SECOND: u64 = 1_000_000;

/// The shortest and longest wait of which a whole second is so large a part that the end of the window is not known, in
/// microseconds.
const SHORTEST: u64 = SECOND / 2;
const LONGEST: u64 = 2 * SECOND;

/// Fewer requests are no share.
const ENOUGH: u64 = 2;

impl Window {
    /// Whether requests go by shares of windows, and not by a pace.
    pub(super) const fn applies(&self) -> bool {
        matches!(self.counting, Counting::MaybeByWindows | Counting::ByWindows)
    }

    /// When the next request may be sent, while this many are under way.
    pub(super) fn next(&mut self, now: u64, in_flight: u32) -> u64 {
        self.turn(now);
        let (end, in_flight) = (self.begin.saturating_add(self.length), u64::from(in_flight));
        if self.is_late && now > self.begin + self.length / 8 {
            return end;
        }
        self.is_late = false;
        // Where responses take that long, what was sent in earlier windows is counted there.
        let in_flight = if self.held > 0 { in_flight.min(self.sent) } else { in_flight };
        if self.left > 0 {
            // All that are under way when the window is used up are refused, so there are fewer towards its end. Where
            // responses take so long that the share is not used up, there have to be more.
            self.is_held = in_flight > 0 && self.taper() * in_flight > self.left;
            return if self.is_held { end } else { now };
        }
        let is_slow = self.taper() == 0 && !self.pauses();
        let asks_too_much = match is_slow {
            true => self.sent * PER_REFUSAL * UNIT > self.share * (PER_REFUSAL + 1),
            false => self.is_asking || in_flight * PER_REFUSAL * UNIT > self.share,
        };
        if asks_too_much {
            return end;
        }
        match () {
            () if self.pauses() => (self.last + self.length / 4).max(now).min(end),
            () if self.is_catching_up || self.asks() => now,
            () => end,
        }
    }

    /// Notes a request that is sent.
    pub(super) fn sent(&mut self, now: u64) {
        self.sent += 1;
        match self.left.checked_sub(1) {
            Some(left) => (self.left, self.last) = (left, now),
            None => self.is_asking = true,
        }
    }

    /// Notes a request that was served.
    pub(super) fn served(&mut self, now: u64) {
        if self.served == 0 {
            self.first = now;
        }
        self.served += 1;
        if self.is_asking && self.pauses() {
            self.counting = Counting::Continuously;
        }
        self.is_asking = false;
    }

    /// Notes a refusal after which the client has to wait for so long. `is_first` if it knows no pace yet.
    pub(super) fn refused(&mut self, now: u64, wait: u64, is_first: bool) {
        if self.counting == Counting::Continuously {
            return;
        }
        if !(SHORTEST..=LONGEST).contains(&wait) {
            return self.forget();
        }
        let reset = now.saturating_add(wait);
        match self.applies() {
            true => self.learn(reset, wait),
            // What was served over a longer time is no share of a window.
            false
                if is_first
                    && self.served >= ENOUGH
                    && now.saturating_sub(self.first) <= wait / 2 =>
            {
                self.counting = Counting::MaybeByWindows;
                (self.begin, self.length, self.share) = (now, wait, self.served * UNIT);
            }
            false => {}
        }
        (self.is_asking, self.left, self.served) = (false, 0, 0);
        if self.share < UNIT && self.applies() {
            self.forget();
        }
    }

    /// The server does not say when to come back, or for longer than this is made for.
    pub(super) fn forget(&mut self) {
        if self.applies() {
            *self = Self::default();
        }
    }

    /// What a refusal says about the window and the share.
    fn learn(&mut self, reset: u64, wait: u64) {
        let (end, got) = (self.begin.saturating_add(self.length), self.served * UNIT);
        (self.is_held, self.held) = (false, 0);
        if self.is_asking {
            self.counting = Counting::ByWindows;
        }
        self.is_late = self.served == 0;
        self.is_catching_up = self.is_late;
        if self.is_late {
            self.share -= self.share / 8;
            // It came before the window began.
            if reset < end {
                self.begin = reset.saturating_sub(self.length);
            }
            return;
        }
        // A wait in whole seconds says of a reset only within which second it is.
        let precision = if wait % SECOND == 0 { SECOND } else { SECOND / 1_000 };
        if end > reset || end.saturating_add(precision) <= reset {
            match reset.saturating_sub(self.begin) {
                // Its request has taken longer than a window lasts, so it does not tell how long that is.
                length if length > 2 * LONGEST => self.begin = reset.saturating_sub(self.length),
                length => self.length = length.max(SHORTEST),
            }
        }
        // One bad window does not take more than a quarter away.
        self.share = got.max(self.share - self.share / 4);
    }

    /// Begins the window that `now` is in.
    fn turn(&mut self, now: u64) {
        let passed = now.saturating_sub(self.begin) / self.length;
        if passed == 0 {
            return;
        }
        self.begin += passed * self.length;
        let is_wasted = self.is_held && 2 * self.left * UNIT > self.share;
        self.is_held = false;
        self.share = self.share.max(self.served * UNIT);
        self.carry += self.share;
        (self.left, self.carry) = (self.carry / UNIT, self.carry % UNIT);
        (self.served, self.sent, self.is_asking) = (0, 0, false);
        if is_wasted {
            self.held = (self.held + 1).min(SLOW);
            // Requests take too long to find out.
            if self.held == SLOW && self.counting == Counting::MaybeByWindows {
                self.counting = Counting::Continuously;
            }
        }
    }

    /// The number of the window, which is the same for all clients.
    const fn number(&self) -> u64 {
        self.begin.saturating_add(self.length / 2) / self.length
    }

    /// How many requests of the share are left for each one under way: fewer, the more windows were held.
    const fn taper(&self) -> u64 {
        TAPER >> self.held
    }

    /// Whether it asks beyond its share in this window.
    fn asks(&self) -> bool {
        let every = match self.taper() {
            0 => RAREST,
            _ => (PER_REFUSAL * UNIT).div_ceil(self.share).next_power_of_two().min(RAREST),
        };
        self.number() % every == 0
    }

    /// Whether the first request beyond its share comes after a pause.
    fn pauses(&self) -> bool {
        self.counting == Counting::MaybeByWindows || self.number() % REPEATED == REPEATED - 1
    }
}
