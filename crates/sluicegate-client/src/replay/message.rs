/// Whether `body` is exactly one message of gRPC: a flag, the length in four bytes, and as many bytes.
pub(super) fn is_one(body: &[u8]) -> bool {
    let Some((prefix, message)) = body.split_first_chunk::<5>() else { return false };
    let [_, length @ ..] = *prefix;
    u64::from(u32::from_be_bytes(length)) == message.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_is_told_from_none_two_and_a_half() {
        assert!(is_one(&[0, 0, 0, 0, 0]));
        assert!(is_one(&[1, 0, 0, 0, 2, 7, 7]));
        for other in [&[][..], &[0], &[0, 0, 0, 0, 2, 7], &[0; 10], &[0, 0, 0, 0, 1, 7, 7]] {
            assert!(!is_one(other), "{other:?}");
        }
    }
}
