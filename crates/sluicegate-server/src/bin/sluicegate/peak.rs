//! The minute with the most events.

/// Counts events by the minute. Times do not go back.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    minute: (u64, u64),
    highest: (u64, u64),
}

impl Peak {
    /// Something happened in this minute.
    pub(crate) fn add(&mut self, minute: u64) {
        if minute != self.minute.0 {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        if self.minute.1 > self.highest.1 {
            self.highest = self.minute;
        }
    }

    /// The first minute with the most events, and how many it has.
    pub(crate) const fn highest(&self) -> (u64, u64) {
        self.highest
    }
}
