use std::str;

use super::{Media, UsageReader};
use crate::usage::TokenUsage;

/// Reads the usage in a body that an adapter passes on. Without a reader, it does nothing.
#[derive(Debug)]
pub(crate) struct PassingUsage(
    // Boxed, because a reader is large, and bodies are moved.
    Option<Box<BodyReader>>,
);

#[derive(Debug)]
struct BodyReader {
    reader: UsageReader,
    /// How many bytes are to come, if the response declares that.
    left: Option<u64>,
}

impl PassingUsage {
    /// Reads nothing.
    pub(crate) const fn nothing() -> Self {
        Self(None)
    }

    /// Reads a body with these header fields, and reports to `usage`. It reads nothing if a [`UsageReader`] cannot read
    /// such a body.
    pub(crate) fn of<'h>(usage: &TokenUsage, line: impl Fn(&str) -> Option<&'h [u8]>) -> Self {
        let media = Media::of(line("content-type"), line("content-encoding"));
        let length = || str::from_utf8(line("content-length")?).ok()?.trim().parse().ok();
        Self(media.map(|media| {
            let reader = UsageReader::new(media, usage);
            Box::new(BodyReader { reader, left: length() })
        }))
    }

    /// These bytes have passed. With the last byte that the response declares, the body has ended: servers do not ask
    /// for more.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let Some(passing) = &mut self.0 else { return };
        passing.reader.read(bytes);
        passing.left = passing.left.map(|left| left.saturating_sub(bytes.len() as u64));
        if passing.left == Some(0) {
            self.end();
        }
    }

    /// The body has ended as it should. Later calls do nothing.
    pub(crate) fn end(&mut self) {
        if let Some(mut passing) = self.0.take() {
            passing.reader.finish();
        }
    }

    /// The body has failed. What was reported stays, and is not final. Later calls do nothing.
    pub(crate) fn fail(&mut self) {
        self.0 = None;
    }
}
