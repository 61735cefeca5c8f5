use super::frames::Frames;

/// Counts messages in a body of `grpc-web-text`, which is in Base64. Each part of it may end with padding.
///
/// A client can say that its body is such a text where it is not, so the bytes are counted as they are too, and the larger
/// number counts.
#[derive(Debug)]
pub(super) struct Text {
    decoded: Frames,
    plain: Frames,
    /// The letters that do not make a whole byte yet.
    bits: u32,
    letters: u32,
    /// How many messages were found in each way, and how many of them were told.
    in_decoded: u64,
    in_plain: u64,
    told: u64,
}

/// How many bytes are decoded at once.
const PIECE: usize = 384;

impl Default for Text {
    fn default() -> Self {
        Self {
            decoded: Frames::of_web(),
            plain: Frames::of_web(),
            bits: 0,
            letters: 0,
            in_decoded: 0,
            in_plain: 0,
            told: 0,
        }
    }
}

impl Text {
    /// How many messages more begin in `bytes`.
    pub(super) fn read(&mut self, bytes: &[u8]) -> u64 {
        self.in_plain += self.plain.read(bytes);
        let (mut piece, mut length) = ([0; PIECE], 0);
        for byte in bytes {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                // The rest of a part is not a whole byte.
                b'=' => {
                    self.letters = 0;
                    continue;
                }
                _ => continue,
            };
            self.bits = self.bits << 6 | u32::from(value);
            self.letters += 1;
            // Each letter but the first of four completes a byte.
            let spare = match self.letters {
                1 => continue,
                2 => 4,
                3 => 2,
                _ => {
                    self.letters = 0;
                    0
                }
            };
            let [.., byte] = (self.bits >> spare).to_be_bytes();
            piece[length] = byte;
            length += 1;
            if length == PIECE {
                self.in_decoded += self.decoded.read(&piece);
                length = 0;
            }
        }
        self.in_decoded += self.decoded.read(&piece[..length]);
        let total = self.in_decoded.max(self.in_plain);
        total - std::mem::replace(&mut self.told, total)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn count(text: &[u8], piece: usize) -> u64 {
        let mut reader = Text::default();
        text.chunks(piece).map(|part| reader.read(part)).sum()
    }

    #[test]
    fn messages_in_base64_are_counted_however_they_are_padded_and_divided() {
        for length in 0..6 {
            let message = [&[0, 0, 0, 0, length][..], &vec![7; length.into()]].concat();
            let trailers = [0x80, 0, 0, 0, 1, 9];
            let whole = STANDARD.encode([message.repeat(50), trailers.to_vec()].concat());
            let parts = STANDARD.encode(&message).repeat(50) + &STANDARD.encode(trailers);
            for text in [whole, parts] {
                for piece in [1, 2, 3, 64, text.len()] {
                    assert_eq!(count(text.as_bytes(), piece), 50, "{length}, in parts of {piece}");
                }
            }
        }
    }

    #[test]
    fn a_body_that_is_no_text_is_counted_as_it_is() {
        let message = [0, 0, 0, 0, 2, b'A', b'A'];
        assert_eq!(count(&message.repeat(50), 9), 50);
    }
}
