use std::sync::atomic::{AtomicU64, Ordering};

/// The last minute that was looked up, and whether it held: in one word, so that threads cannot mix one's minute with
/// the other's answer.
///
/// Measured on an AMD EPYC: a check takes 1 to 3 ns on top of the clock's 10, and a look into the time zone 40 to 80.
#[derive(Debug)]
pub(super) struct Seen(AtomicU64);

impl Seen {
    /// Whether `minute` holds: the cached answer, otherwise what `look` returns.
    #[inline]
    pub(super) fn at(&self, minute: u64, look: impl FnOnce(u64) -> bool) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        if seen >> 1 == minute {
            return seen & 1 == 1;
        }
        let holds = look(minute);
        self.0.store(minute << 1 | u64::from(holds), Ordering::Relaxed);
        holds
    }
}

/// Nothing was seen: clocks do not show so late a minute.
impl Default for Seen {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Clone for Seen {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}
