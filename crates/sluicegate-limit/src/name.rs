use super::error::LimitError;

/// Longest name of a limit, in bytes: it is held in place, so that a limit stays a plain value.
const LONGEST: usize = 31;

/// A limit's name: printable ASCII, as the header fields demand. Empty: named after its rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Name {
    len: u8,
    bytes: [u8; LONGEST],
}

impl Name {
    pub(super) const NONE: Self = Self { len: 0, bytes: [0; LONGEST] };

    pub(super) const fn new(name: &str) -> Result<Self, LimitError> {
        let from = name.as_bytes();
        if from.is_empty() {
            return Err(LimitError::new("the name is empty"));
        }
        if from.len() > LONGEST {
            return Err(LimitError::new("the name is longer than 31 bytes"));
        }
        let mut bytes = [0; LONGEST];
        let mut i = 0;
        while i < from.len() {
            if from[i] < b' ' || from[i] > b'~' {
                return Err(LimitError::new(
                    "the name holds a character that is not printable ASCII",
                ));
            }
            bytes[i] = from[i];
            i += 1;
        }
        Ok(Self { len: from.len() as u8, bytes })
    }

    pub(super) const fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.len as usize).0
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.as_bytes()).ok().filter(|name| !name.is_empty())
    }
}
