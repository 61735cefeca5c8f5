use super::Estimate;
use super::asked::{RequestFields, bound_at};
use super::scan::Scan;
use super::unicode::Unicode;
use crate::answer::BYTES_PER_TOKEN;
use crate::json::Json;
use crate::tokens::EstimatedTokens;

/// Reads the body of a request that is not compressed, or no longer.
#[derive(Debug, Clone)]
pub(super) struct Text {
    unicode: Unicode,
    document: Document,
}

#[derive(Debug, Clone)]
struct Document {
    json: Json,
    scan: Scan,
    asked: RequestFields,
    /// In bytes of UTF-8.
    length: u64,
}

impl Text {
    pub(super) fn new() -> Self {
        let document = Document {
            json: Json::new(),
            scan: Scan::default(),
            asked: RequestFields::default(),
            length: 0,
        };
        Self { unicode: Unicode::new(), document }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        let Self { unicode, document } = self;
        unicode.read(bytes, &mut |bytes| document.read(bytes));
    }

    /// What the text asks for. `unread` bytes more are behind it.
    pub(super) fn finish(self, estimate: &Estimate, unread: u64) -> EstimatedTokens {
        let Self { mut unicode, mut document } = self;
        unicode.finish(&mut |bytes| document.read(bytes));
        let Document { mut json, mut scan, mut asked, length } = document;
        let is_complete = json.is_complete();
        json.finish(&mut asked);
        scan.finish(&mut asked);
        let text = asked.text().div_ceil(BYTES_PER_TOKEN);
        let media = asked.media.saturating_mul(estimate.media);
        let input = text.saturating_add(media).saturating_add(asked.tokens);
        if unread > 0 || !is_complete {
            let length = length.saturating_add(unread).div_ceil(BYTES_PER_TOKEN);
            // A service may read the document all the same. A byte behind it lowers nothing.
            let output = if asked.is_begun { estimate.output.min(estimate.unknown) } else { 0 };
            let tokens = estimate.tokens(length.max(input), asked.output(output));
            return tokens.max(estimate.of_unknown());
        }
        estimate.tokens(input, asked.output(estimate.output))
    }
}

impl Document {
    fn read(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let rest = self.json.read(bytes, &mut self.asked);
        if let Some((path, number)) = self.json.take_broken() {
            if let Some((_, name)) = bound_at(path) {
                self.scan.begin(name, number);
            }
        }
        self.scan.read(rest, &mut self.asked);
    }
}
