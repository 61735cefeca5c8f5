use core::{error, fmt};

/// Most of a text that an error quotes, in bytes: configuration can be arbitrarily long.
const QUOTED: usize = 64;

/// Why a limit cannot be made: a sentence that names the bad part.
///
/// ```
/// # extern crate sluicegate_limit as sluicegate;
/// use sluicegate::Limit;
///
/// let error = "0/minute".parse::<Limit>().unwrap_err();
/// assert_eq!(error.to_string(), "in `0/minute`: the count is 0: nothing would ever be admitted");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LimitError {
    reason: &'static str,
    /// Held in place, so that the error can be made in a constant.
    text: [u8; QUOTED],
    len: usize,
}

impl LimitError {
    /// For a store that cannot keep a limit: `reason` is a sentence that says what it
    /// cannot do.
    pub const fn new(reason: &'static str) -> Self {
        Self { reason, text: [0; QUOTED], len: 0 }
    }

    /// This error, naming the text that the limit was read from.
    #[doc(hidden)]
    pub fn in_text(mut self, text: &str) -> Self {
        let mut len = text.len().min(QUOTED);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.text[..len].copy_from_slice(&text.as_bytes()[..len]);
        self.len = len;
        self
    }

    pub(crate) const fn reason(&self) -> &'static str {
        self.reason
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match core::str::from_utf8(&self.text[..self.len]) {
            Ok(text) if !text.is_empty() => write!(f, "in `{text}`: {}", self.reason),
            _ => f.write_str(self.reason),
        }
    }
}

impl fmt::Debug for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LimitError({self})")
    }
}

impl error::Error for LimitError {}
