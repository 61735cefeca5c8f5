//! Bans: a key that exceeds a limit, once or repeatedly, is refused for a while.
//!
//! Giving back lifts a ban made in error. With accounting by response, charges that will be given back can
//! fill a limit, and the next attempt is banned. When such charges, made before the ban, are given back,
//! and as much of them as has been refused since, the ban ends too.
//!
//! With `ban_after`, a refusal writes to the row: since when refusals count, and how many there were, in a
//! fixed window that begins with the first. Giving back takes refusals off this record as it lifts a ban:
//! once as much is given back as was refused since, of what was charged before the first refusal.

use core::time::Duration;

use super::check::{micros, valid};
use super::definition::Limit;
use super::earliest::Earliest;
use super::error::LimitError;
use super::exact::{EXACT, bounded};
use super::state::{Receipt, State};
use super::words::time_left;

impl Limit {
    /// Bans a key that exceeds the limit: the key is refused until `ban` after the moment at which it would have
    /// been admitted again (in a fixed window, its end). Attempts during a ban do not prolong it.
    ///
    /// The first refusal begins it, unless [`ban_after`](Self::ban_after) says otherwise.
    ///
    /// # Panics
    ///
    /// If the time is zero or has a fraction of a microsecond.
    #[track_caller]
    pub const fn ban(self, ban: Duration) -> Self {
        valid(self.try_ban(ban))
    }

    /// Like [`ban`](Self::ban), for values from configuration.
    ///
    /// # Errors
    ///
    /// If the time is zero or has a fraction of a microsecond.
    pub const fn try_ban(mut self, ban: Duration) -> Result<Self, LimitError> {
        self.ban = match micros(ban) {
            Ok(ban) => ban,
            Err(_) => return Err(LimitError::new("the ban is not a time in whole microseconds")),
        };
        self.checked()
    }

    /// Begins the [ban](Self::ban), which has to be set before, after this many `refusals` in a window of time that
    /// begins with the first of them. When the window is over, or a ban has begun, the next refusal is the first
    /// again. Refusals during a ban are not counted. After 1 refusal means at once, which is the default.
    ///
    /// Refusals are then written to the store, so each refusal costs as much as an admission.
    ///
    /// ```
    /// # extern crate sluicegate_limit as sluicegate;
    /// use std::time::Duration;
    /// use sluicegate::Limit;
    ///
    /// let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    /// let limit = Limit::per_minute(5).ban(minutes(10)).ban_after(3, minutes(1));
    /// assert_eq!(limit.to_string(), "5/minute ban 10 minutes after 3 in 1 minute");
    ///
    /// let mut state = limit.fresh();
    /// assert!(limit.take(&mut state, 0, 5).is_admitted());
    /// let banned = [(); 3].map(|()| limit.take(&mut state, 0, 1).is_banned());
    /// assert_eq!(banned, [false, false, true]);
    /// ```
    ///
    /// # Panics
    ///
    /// If [`try_ban_after`](Self::try_ban_after) returns an error.
    #[track_caller]
    pub const fn ban_after(self, refusals: u64, within: Duration) -> Self {
        valid(self.try_ban_after(refusals, within))
    }

    /// Like [`ban_after`](Self::ban_after), for values from configuration.
    ///
    /// # Errors
    ///
    /// If there is no ban, if the number of refusals is 0, or 2^52 or more, or if the time is zero or has a fraction
    /// of a microsecond.
    pub const fn try_ban_after(
        mut self,
        refusals: u64,
        within: Duration,
    ) -> Result<Self, LimitError> {
        if self.ban == 0 {
            return Err(LimitError::new(
                "refusals are counted towards a ban: say first how long it is",
            ));
        }
        if refusals == 0 {
            return Err(LimitError::new(
                "the ban begins after 0 refusals: nobody would be admitted",
            ));
        }
        if refusals >= EXACT / 2 {
            return Err(LimitError::new(
                "the ban begins after 2^52 refusals or more: too many to count",
            ));
        }
        let Ok(within) = micros(within) else {
            return Err(LimitError::new(
                "the time in which refusals count is not one in whole microseconds",
            ));
        };
        (self.after, self.within) = if refusals == 1 { (0, 0) } else { (refusals, within) };
        self.checked()
    }

    /// Counts a refusal, which may begin a ban.
    pub(super) fn strike(&self, state: &mut State, now: u64, cost: u64) {
        if time_left(state.ban, now) > 0 {
            state.refused = state.refused.saturating_add(cost);
            return;
        }
        let [since, count] = if self.struck_for(state, now) > 0 {
            state.refused = state.refused.saturating_add(cost);
            state.strikes
        } else {
            state.refused = cost;
            [now, 0]
        };
        if count + 1 < self.after {
            state.strikes = [since, count + 1];
            return;
        }
        let interval = match self.earliest(state, now, cost, 0) {
            Earliest::At(delay) => delay,
            Earliest::Unknown | Earliest::Never => 0,
        };
        state.strikes = [0; 2];
        state.ban = [now, bounded(interval + self.ban)];
    }

    /// For how much longer the counted refusals count; 0 if there are none.
    pub(super) fn struck_for(&self, state: &State, now: u64) -> u64 {
        let [since, count] = state.strikes;
        if self.after > 0 && count > 0 { time_left([since, self.within], now) } else { 0 }
    }

    /// Lifts the consequences of a charge that is given back: a ban that began while the charge counted, and refusals
    /// counted towards a ban, once as much is given back as was refused since.
    pub(super) fn pardon(&self, state: &mut State, receipt: &Receipt, now: u64, back: u64) {
        let is_banned = time_left(state.ban, now) > 0;
        let since = if is_banned { state.ban[0] } else { state.strikes[0] };
        let is_on_record = is_banned || self.struck_for(state, now) > 0;
        if is_on_record && !receipt.banned && self.counted(receipt, since) {
            // Without this charge, all refused requests would have been admitted.
            state.refused = state.refused.saturating_sub(back);
            if state.refused == 0 {
                (state.ban, state.strikes) = ([0; 2], [0; 2]);
            }
        }
    }
}
