use core::time::Duration;

/// The verdict about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may go ahead, once `wait` has passed.
    Admit {
        /// Zero, unless a place was booked ahead.
        wait: Duration,
    },
    /// It may not.
    Refuse {
        /// How long until it would be admitted, if nobody else spends; `None` if that is unknown because only giving
        /// back makes room.
        retry_after: Option<Duration>,
    },
    /// It can never be admitted as it is, however long the client waits: the cost is more than one of the
    /// limits ever allows, or would always keep the request in a leaky bucket's queue for longer than it may
    /// wait. Nothing is charged, and nothing is recorded as a refusal.
    Never,
}

impl Verdict {
    /// Whether the request may go ahead, now or after [`wait`](Self::wait).
    #[inline]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// How long an admitted request waits before it goes; zero for a refused one.
    #[inline]
    pub const fn wait(&self) -> Duration {
        match *self {
            Self::Admit { wait } => wait,
            Self::Refuse { .. } | Self::Never => Duration::ZERO,
        }
    }

    /// Whether the request can never be admitted as it is: see [`Never`](Self::Never).
    #[inline]
    pub const fn never_fits(&self) -> bool {
        matches!(self, Self::Never)
    }

    /// When a refused request would be admitted; `None` for an admitted one, for one that [never
    /// fits](Self::never_fits), and if it is unknown.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match *self {
            Self::Admit { .. } | Self::Never => None,
            Self::Refuse { retry_after } => retry_after,
        }
    }
}
