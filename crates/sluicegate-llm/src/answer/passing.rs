use std::str;

use sluicegate_core::adapter::{BodyGuard, Piece};

use super::{Media, UsageReader};
use crate::usage::TokenUsage;

/// Reads the usage in a body that an adapter passes on, as the guard of that body.
#[derive(Debug)]
pub(crate) struct PassingUsage {
    reader: UsageReader,
    /// How many bytes are to come, if the response declares that.
    left: Option<u64>,
}

impl PassingUsage {
    /// Reads a body with these header fields, and reports to `usage`. `None` if a [`UsageReader`] cannot read such a body.
    pub(crate) fn of<'h>(
        usage: &TokenUsage,
        line: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Option<Box<Self>> {
        let media = Media::of(line("content-type"), line("content-encoding"))?;
        let length = || str::from_utf8(line("content-length")?).ok()?.trim().parse().ok();
        Some(Box::new(Self { reader: UsageReader::new(media, usage), left: length() }))
    }
}

impl BodyGuard for PassingUsage {
    /// With the last byte that the response declares, the body has ended: servers do not ask for more. Of a body that fails,
    /// what was reported stays, and is not final.
    fn passed(&mut self, piece: Piece<'_>) -> bool {
        if let Piece::Data(bytes) = piece {
            self.reader.read(bytes);
            self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
            if self.left != Some(0) {
                return false;
            }
        }
        if piece != Piece::Failure {
            self.reader.finish();
        }
        true
    }
}
