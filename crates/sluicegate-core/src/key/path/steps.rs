//! Counts the work for what a client can make long, for the tests and the fuzzer that bound it. It is counted where
//! `debug_assertions` are on, in tests of other crates too.

/// Adds bytes, segments, pairs or fields that were looked at.
#[inline]
#[cfg_attr(not(any(test, debug_assertions)), expect(unused_variables, reason = "only tests count"))]
pub fn step(steps: usize) {
    #[cfg(any(test, debug_assertions))]
    STEPS.set(STEPS.get() + steps);
}

/// The steps of this thread so far. 0 without `debug_assertions`.
pub fn steps() -> usize {
    #[cfg(any(test, debug_assertions))]
    return STEPS.get();
    #[cfg(not(any(test, debug_assertions)))]
    0
}

/// Counts a path that is parsed.
#[inline]
pub(crate) fn parse() {
    #[cfg(test)]
    PARSES.set(PARSES.get() + 1);
}

#[cfg(any(test, debug_assertions))]
thread_local! {
    pub(crate) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
thread_local! {
    pub(crate) static PARSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
