use super::Estimate;
use super::asked::RequestFields;
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
        let Document { json, mut scan, mut asked, length } = document;
        scan.finish(&mut asked);
        if unread > 0 || !json.is_complete() {
            let input = length.saturating_add(unread).div_ceil(BYTES_PER_TOKEN);
            return estimate.tokens(input, asked.output(0)).max(estimate.of_unknown());
        }
        let text = asked.text().div_ceil(BYTES_PER_TOKEN);
        let media = asked.media.saturating_mul(estimate.media);
        let input = text.saturating_add(media).saturating_add(asked.tokens);
        estimate.tokens(input, asked.output(estimate.output))
    }
}

impl Document {
    fn read(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let rest = self.json.read(bytes, &mut self.asked);
        self.scan.read(rest, &mut self.asked);
    }
}
