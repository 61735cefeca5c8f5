//! What an Envoy may be spending.

use sluicegate_lease::Amount;

/// The assignments of a bucket that its Envoy may still keep to.
///
/// Envoy acknowledges nothing. So the largest of them counts until a report comes that was sent after a newer one had
/// arrived, or until the time to live has passed.
#[derive(Debug, Clone, Default)]
pub(super) struct OutstandingParts(Vec<SentPart>);

#[derive(Debug, Clone, Copy)]
struct SentPart {
    part: Amount,
    at: u64,
    /// When it has ended at the Envoy, even if it got there late.
    until: u64,
}

/// How long an assignment may be on its way, in milliseconds. A report that comes later was sent after it had arrived.
const ON_ITS_WAY: u64 = 1_000;
/// More than this count as one.
const MOST: usize = 8;

impl OutstandingParts {
    /// The most that the Envoy may be spending.
    pub(super) fn most(&self) -> Amount {
        self.0.iter().map(|sent| sent.part).max().unwrap_or_default()
    }

    /// What was sent last.
    pub(super) fn last(&self) -> Option<Amount> {
        self.0.last().map(|sent| sent.part)
    }

    /// When all of them have ended. The last one may end before others: leases were made shorter, and it may not have
    /// arrived.
    pub(super) fn until(&self) -> u64 {
        self.0.iter().map(|sent| sent.until).max().unwrap_or_default()
    }

    /// A new part was sent, which lasts until then. The same again for longer only renews the last.
    pub(super) fn sent(&mut self, now: u64, part: Amount, until: u64) {
        let last = self.0.last_mut().filter(|last| last.part == part && last.until <= until);
        if let Some(last) = last {
            last.until = until;
            return;
        }
        if self.0.len() >= MOST {
            // The two oldest become one, with the larger part and the later moments: that counts for too much or too
            // long, never for too little.
            let first = self.0.remove(0);
            self.0[0].part = self.0[0].part.max(first.part);
            self.0[0].until = self.0[0].until.max(first.until);
        }
        self.0.push(SentPart { part, at: now, until });
    }

    /// A report has come: what is on its way no longer has arrived.
    ///
    /// Returns whether less counts than before.
    pub(super) fn reported(&mut self, now: u64) -> bool {
        let before = self.most();
        // Messages of a stream arrive in their order. So the last one that has arrived has replaced all before it, and
        // what was sent behind it may have arrived or not: both count.
        let arrived = self.0.iter().rposition(|sent| sent.at.saturating_add(ON_ITS_WAY) <= now);
        if let Some(arrived) = arrived {
            self.0.drain(..arrived);
        }
        self.most() < before
    }

    /// The stream was lost. Nobody knows what had arrived, and no report will tell: what counts is the largest of all, and it
    /// counts until a part sent on another stream has arrived, or its time to live has passed.
    pub(super) fn lost(&mut self) {
        let (part, until, last) = (self.most(), self.until(), self.0.last().copied());
        self.0 = last.map(|last| SentPart { part, until, ..last }).into_iter().collect();
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_lease::Amount;

    use super::{MOST, OutstandingParts};

    fn parts(sent: &[(u64, u64)]) -> OutstandingParts {
        let mut parts = OutstandingParts::default();
        sent.iter().for_each(|&(now, part)| parts.sent(now, Amount::units(part), now + 20_000));
        parts
    }

    #[test]
    fn a_smaller_part_counts_once_a_report_proves_that_it_has_arrived() {
        let mut parts = parts(&[(0, 600), (5_000, 300)]);
        assert!(!parts.reported(5_900));
        assert_eq!(parts.most(), Amount::units(600));
        assert!(parts.reported(6_000));
        assert_eq!(parts.most(), Amount::units(300));
    }

    #[test]
    fn a_part_on_its_way_is_not_forgotten_for_one_that_has_arrived() {
        let mut parts = parts(&[(0, 600), (1_000, 100), (1_900, 400)]);
        parts.reported(2_000);
        assert_eq!(parts.most(), Amount::units(400));
        parts.sent(2_100, Amount::units(50), 22_100);
        parts.reported(2_900);
        assert_eq!(parts.most(), Amount::units(400));
    }

    #[test]
    fn many_changes_take_no_more_room_and_count_no_less() {
        let mut parts = parts(&[(0, 600)]);
        for now in 1..100 {
            parts.sent(now, Amount::units(now), 100);
        }
        assert_eq!((parts.most(), parts.until()), (Amount::units(600), 20_000));
        assert_eq!(parts.0.len(), MOST);
    }

    #[test]
    fn a_shorter_time_to_live_counts_once_a_report_proves_that_it_has_arrived() {
        let mut parts = parts(&[(0, 600)]);
        parts.sent(5_000, Amount::units(600), 15_000);
        parts.sent(5_100, Amount::units(600), 15_100);
        parts.reported(5_900);
        assert_eq!(parts.until(), 20_000);
        parts.reported(6_000);
        assert_eq!(parts.until(), 15_100);
    }

    #[test]
    fn after_a_loss_the_largest_counts() {
        let mut parts = parts(&[(0, 600), (5_000, 300)]);
        parts.lost();
        assert!(!parts.reported(60_000));
        assert_eq!(parts.most(), Amount::units(600));
        assert_eq!(parts.last(), Some(Amount::units(600)));
    }
}
