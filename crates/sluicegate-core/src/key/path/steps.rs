//! Counts the paths that are parsed, and the bytes and segments that are looked at, for the tests that bound the work.

/// Adds to the count of bytes and segments that were looked at.
#[inline]
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests count"))]
pub(crate) fn step(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
}

/// Counts a path that is parsed.
#[inline]
pub(crate) fn parse() {
    #[cfg(test)]
    PARSES.set(PARSES.get() + 1);
}

#[cfg(test)]
thread_local! {
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    pub(crate) static PARSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
