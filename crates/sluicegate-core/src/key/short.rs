use std::fmt;

/// The longest text that is held in place. Nearly all header names are shorter.
const IN_PLACE: usize = 47;

/// A copy of a text. It allocates only if the text is long.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ShortText {
    InPlace { bytes: [u8; IN_PLACE], len: u8 },
    Long(Box<str>),
}

impl ShortText {
    pub(super) fn new(text: &str) -> Self {
        let mut bytes = [0; IN_PLACE];
        match bytes.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Self::InPlace { bytes, len: text.len() as u8 }
            }
            None => Self::Long(text.into()),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            // The bytes were copied from a whole `str`.
            Self::InPlace { bytes, len } => {
                std::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default()
            }
            Self::Long(text) => text,
        }
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;

    use super::*;

    #[test]
    fn a_text_of_any_length_reads_as_it_was() {
        for len in [0, 1, IN_PLACE - 1, IN_PLACE, IN_PLACE + 1, 4_000] {
            let text: String = "zwölf".chars().cycle().take(len).collect();
            assert_eq!(ShortText::new(&text).as_str(), text);
        }
    }

    #[test]
    fn a_short_text_is_copied_without_allocating() {
        let short = "x".repeat(IN_PLACE);
        assert_eq!(measure(|| drop(ShortText::new(&short))).count_total, 0);
    }
}
