//! When a share may change, so that all shares together are never more than the whole.
//!
//! Members learn of each other at different times. Say that each learns within half of the bound `H` of a member that
//! joined, and that a member which others no longer count stops within half of `H`. Three rules are then enough:
//!
//! 1. A member that joins has nothing until `H` is over. By then, every other member counts it.
//! 2. A share that gets smaller is smaller at once.
//! 3. A share grows only when nothing smaller was seen for `H`. By then, members that left have stopped.
//!
//! The proof, for equal shares: look at any moment `t`. Every member that has a share joined before `t - H`. If it was
//! removed, that was after `t - H/2`. So it is in every view that was true in between. At `t - H/2` each member held
//! such a view, because views are no older than `H/2`, and its share at `t` is not larger than that view allows. So if
//! `n` members have a share, each share is at most `1/n`.
//!
//! Unequal shares need one view that all have seen, since two views may give the same part to different members. Their
//! source freezes a view for a round, and each member looks at least once in every round. At any moment, some members
//! may have seen the view of this round and all have seen the one before, which counts for `H`.

use crate::limit::Part;

/// Views that are remembered. Further ones are merged into the last, which makes the share smaller, never larger.
const MOST: usize = 16;

/// The share of one member.
#[derive(Debug)]
pub(super) struct Switch {
    /// Microseconds within which all members learn of a change.
    bound: u64,
    /// When it may begin to have a share. `None` if it is not a member.
    opens: Option<u64>,
    /// The share by the latest view.
    latest: Option<Part>,
    /// Until when the latest view counts if there is no newer one.
    pub(super) expires: u64,
    /// Smaller shares of earlier views, and until when each was the latest. The shares grow from first to last.
    earlier: Vec<(Part, u64)>,
    /// Whether views are ignored: the part is fixed, or the member has left.
    is_final: bool,
}

/// What a member may spend, and until when that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spend {
    pub(super) part: Option<Part>,
    /// When it changes if nothing else is seen; `u64::MAX` for never.
    pub(super) until: u64,
}

impl Switch {
    pub(super) const fn new(bound: u64) -> Self {
        Self {
            bound,
            opens: None,
            latest: None,
            expires: u64::MAX,
            earlier: Vec::new(),
            is_final: false,
        }
    }

    /// Has this part for ever.
    pub(super) fn fix(&mut self, part: Part) {
        (self.opens, self.latest, self.is_final) = (Some(0), Some(part), true);
    }

    /// Has nothing for ever.
    pub(super) fn leave(&mut self) {
        *self = Self { is_final: true, ..Self::new(self.bound) };
    }

    /// Uses the next view at once, because all others are known to count this member.
    pub(super) const fn open(&mut self) {
        self.opens = Some(0);
    }

    /// Learns of a view that gives this member `part` and counts until `expires`.
    pub(super) fn see(&mut self, now: u64, part: Option<Part>, expires: u64) {
        if self.is_final {
            return;
        }
        // If a view was not renewed in time, others may no longer count this member.
        let missed = self.latest.is_some() && self.expires <= now;
        if part.is_none() || missed {
            *self = Self::new(self.bound);
        }
        let Some(part) = part else { return };
        self.opens.get_or_insert(now.saturating_add(self.bound));
        if let Some(before) = self.latest.filter(|before| *before < part) {
            self.remember(before, now);
        }
        // Smaller ones count for longer from here on.
        self.earlier
            .retain(|(earlier, until)| *earlier < part && until.saturating_add(self.bound) > now);
        (self.latest, self.expires) = (Some(part), expires);
    }

    fn remember(&mut self, before: Part, now: u64) {
        self.earlier.retain(|(earlier, _)| *earlier < before);
        if self.earlier.len() < MOST {
            self.earlier.push((before, now));
        } else if let Some((_, until)) = self.earlier.last_mut() {
            *until = now;
        }
    }

    /// What may be spent at `now`.
    pub(super) fn spend(&mut self, now: u64) -> Spend {
        let (Some(opens), Some(latest)) = (self.opens, self.latest) else {
            return Spend { part: None, until: u64::MAX };
        };
        if now < opens {
            return Spend { part: None, until: opens };
        }
        if self.expires <= now {
            return Spend { part: None, until: u64::MAX };
        }
        self.earlier.retain(|(_, until)| until.saturating_add(self.bound) > now);
        match self.earlier.first() {
            Some((part, until)) => Spend {
                part: Some(*part),
                until: self.expires.min(until.saturating_add(self.bound)),
            },
            None => Spend { part: Some(latest), until: self.expires },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: u64 = 1_000;

    fn part(switch: &mut Switch, now: u64) -> Option<(u64, u64)> {
        switch.spend(now).part.map(Part::as_ratio)
    }

    fn see(switch: &mut Switch, now: u64, members: u64) {
        switch.see(now, Some(Part::one_of(members)), u64::MAX);
    }

    fn member_of(members: u64) -> Switch {
        let mut switch = Switch::new(H);
        switch.open();
        see(&mut switch, 0, members);
        switch
    }

    #[test]
    fn a_member_that_joins_has_nothing_until_the_bound_is_over() {
        let mut switch = Switch::new(H);
        see(&mut switch, 5_000, 3);
        assert_eq!(switch.spend(5_999), Spend { part: None, until: 6_000 });
        assert_eq!(part(&mut switch, 6_000), Some((1, 3)));
    }

    #[test]
    fn a_share_shrinks_at_once_and_grows_after_the_bound() {
        let mut switch = member_of(4);
        see(&mut switch, 100, 5);
        assert_eq!(part(&mut switch, 100), Some((1, 5)));
        see(&mut switch, 200, 2);
        assert_eq!(part(&mut switch, 1_199), Some((1, 5)));
        assert_eq!(part(&mut switch, 1_200), Some((1, 2)));
    }

    #[test]
    fn a_share_grows_step_by_step_as_the_smaller_ones_are_over() {
        let mut switch = member_of(9);
        for (at, members) in [(10, 6), (20, 3), (30, 7), (40, 1)] {
            see(&mut switch, at, members);
        }
        let seen = [1_009, 1_010, 1_039, 1_040].map(|at| part(&mut switch, at));
        assert_eq!(seen, [Some((1, 9)), Some((1, 7)), Some((1, 7)), Some((1, 1))]);
    }

    #[test]
    fn a_number_that_was_read_half_written_is_never_spent() {
        let mut switch = member_of(40);
        // 41, of which only the first digit was there, and then all of it.
        see(&mut switch, 100, 4);
        assert_eq!(part(&mut switch, 350), Some((1, 40)));
        see(&mut switch, 350, 41);
        assert_eq!(part(&mut switch, 350), Some((1, 41)));
        assert_eq!(part(&mut switch, 9_000), Some((1, 41)));
    }

    #[test]
    fn a_member_that_is_dropped_begins_anew() {
        let mut switch = member_of(4);
        switch.see(100, None, u64::MAX);
        assert_eq!(part(&mut switch, 100), None);
        see(&mut switch, 200, 4);
        assert_eq!((part(&mut switch, 1_199), part(&mut switch, 1_200)), (None, Some((1, 4))));
    }

    #[test]
    fn a_view_that_is_not_renewed_in_time_ends_and_the_member_begins_anew() {
        let mut switch = Switch::new(H);
        switch.open();
        switch.see(0, Some(Part::one_of(2)), 500);
        assert_eq!(switch.spend(499), Spend { part: Some(Part::one_of(2)), until: 500 });
        assert_eq!(part(&mut switch, 500), None);
        switch.see(600, Some(Part::one_of(2)), 9_000);
        assert_eq!((part(&mut switch, 1_599), part(&mut switch, 1_600)), (None, Some((1, 2))));
    }

    #[test]
    fn views_beyond_those_that_are_remembered_make_the_share_smaller() {
        let mut switch = member_of(100);
        (1..=60).for_each(|at| see(&mut switch, at, 100 - at));
        assert_eq!(switch.earlier.len(), MOST);
        // Of the views that were merged, the smallest share counts, for as long as the last of them.
        assert_eq!(part(&mut switch, 1_050), Some((1, 85)));
        assert_eq!(part(&mut switch, 1_060), Some((1, 40)));
    }
}
