use crate::key::KeyBuf;

/// The longest text that is lower-cased on the stack: the length of the longest DNS name.
const ON_STACK: usize = 255;

/// Pushes `text` in lower case, ASCII only.
pub(super) fn push_lowercase(key: &mut KeyBuf, text: &str) {
    let bytes = text.as_bytes();
    if !bytes.iter().any(u8::is_ascii_uppercase) {
        return key.push(bytes);
    }
    let mut room = [0; ON_STACK];
    match room.get_mut(..bytes.len()) {
        Some(lower) => {
            lower.copy_from_slice(bytes);
            lower.make_ascii_lowercase();
            key.push(lower);
        }
        None => key.push(&bytes.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_dropped_at_any_length() {
        for len in [1, 254, 255, 256, 4_000] {
            let (mut upper, mut lower) = (KeyBuf::new(), KeyBuf::new());
            push_lowercase(&mut upper, &"X".repeat(len));
            lower.push("x".repeat(len).as_bytes());
            assert_eq!(upper, lower);
        }
    }
}
