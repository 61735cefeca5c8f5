//! Decides whether a caller that was not admitted waits or gives up.

use std::time::Duration;

/// How long a caller waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Waits until it is admitted, however long that takes. This suits consumers of a queue. A cost that can never be
    /// admitted is refused.
    UntilAdmitted,
    /// At most so long: for a request that somebody waits for. It is refused at once if it would have to wait longer.
    AtMost(Duration),
    /// Not at all.
    Not,
}

/// The pause if it is unknown when there will be room, for example if only giving back makes room.
const BLIND: Duration = Duration::from_millis(50);

/// The shortest pause, so that a store that says "at once" and refuses again does not keep a processor busy.
const SHORTEST: Duration = Duration::from_millis(1);

impl Patience {
    /// What is left of it after `waited`; `None` for ever.
    pub(crate) fn left(self, waited: Duration) -> Option<Duration> {
        match self {
            Self::UntilAdmitted => None,
            Self::AtMost(most) => Some(most.saturating_sub(waited)),
            Self::Not => Some(Duration::ZERO),
        }
    }
}

/// How far ahead a place may be booked.
pub(super) fn ahead(left: Option<Duration>, look_again: Duration) -> Duration {
    left.map_or(look_again, |left| left.min(look_again))
}

/// When to look again if there is room in `retry_after`, if that is known, and no place could be booked. `None` to give up.
pub(super) fn next(
    left: Option<Duration>,
    look_again: Duration,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let pause = retry_after.map_or(BLIND, |wait| wait.max(SHORTEST)).min(look_again);
    let in_vain = match left {
        None => false,
        Some(left) => left.is_zero() || retry_after.unwrap_or(pause) > left,
    };
    (!in_vain).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_cannot_be_admitted_in_time_gives_up_at_once() {
        assert_eq!(next(Some(SECOND), SECOND, Some(SECOND + MS)), None);
        assert_eq!(next(Some(SECOND), SECOND, Some(SECOND)), Some(SECOND));
        assert_eq!(next(Some(Duration::ZERO), SECOND, None), None);
        assert_eq!(next(Some(Duration::ZERO), SECOND, Some(Duration::ZERO)), None);
        assert_eq!(next(Some(20 * MS), SECOND, None), None);
    }

    #[test]
    fn who_waits_for_longer_looks_again_from_time_to_time() {
        assert_eq!(next(None, SECOND, Some(3_600 * SECOND)), Some(SECOND));
        assert_eq!(next(None, SECOND, None), Some(BLIND));
        assert_eq!(next(None, SECOND, Some(Duration::ZERO)), Some(SHORTEST));
        assert_eq!(ahead(None, SECOND), SECOND);
        assert_eq!(ahead(Some(3 * MS), SECOND), 3 * MS);
    }
}
