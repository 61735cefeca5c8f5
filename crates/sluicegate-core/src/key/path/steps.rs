//! Counts the bytes and segments that are looked at, for the test that bounds the work.

/// Adds to the count of bytes and segments that were looked at.
#[inline]
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests count"))]
pub(crate) fn step(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps);
}

#[cfg(test)]
thread_local! {
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
