//! Numbers of tokens as JSON writes them.

/// Whether a number may go on with this byte.
pub(super) const fn goes_on(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// The number, rounded up; `u64::MAX` if it is larger. `None` if it is negative or malformed.
///
/// JSON has one type of numbers: `1000`, `1000.0` and `1e3` are the same, and a service may accept each of them.
pub(in crate::cost::llm) fn whole(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(text.parse().unwrap_or(u64::MAX));
    }
    let number: f64 = text.parse().ok()?;
    // The cast saturates.
    (number >= 0.0).then(|| number.ceil() as u64)
}
