/// The most attempts to read the same twice. Files that change all the time take effect after that.
const LOOKS: u32 = 50;

/// What was read once and has not taken effect yet.
#[derive(Debug)]
pub(crate) struct Glimpse<S> {
    seen: S,
    /// How many attempts found something different from the one before.
    looks: u32,
}

impl<S: PartialEq> Glimpse<S> {
    /// What is to take effect now: what was seen, if it is not known and was the same at the previous attempt, so that a
    /// half-written file does not take effect.
    pub(crate) fn settled(glimpse: &mut Option<Self>, seen: S, is_known: bool) -> Option<S> {
        let before = glimpse.take();
        if is_known {
            return None;
        }
        let looks = before.as_ref().map_or(0, |before| before.looks);
        if looks < LOOKS && before.is_none_or(|before| before.seen != seen) {
            *glimpse = Some(Self { seen, looks: looks + 1 });
            return None;
        }
        Some(seen)
    }
}
