//! How many tokens a request may use, by its body.

mod asked;
mod charset;
mod scan;
mod text;
mod unicode;
mod unpack;

use self::unpack::{Budget, Contents, Named};
use crate::answer::is_plain;
use crate::tokens::EstimatedTokens;

/// How many tokens to reserve for a request, by its body: a JSON document in the form of OpenAI's, Anthropic's or Gemini's API.
///
/// The output is what the request allows: the largest of `max_tokens`, `max_completion_tokens`, `max_output_tokens` and
/// `generationConfig.maxOutputTokens`, times `n`, `best_of` or `candidateCount`, times the prompts and the requests of a
/// batch. Bounds in other places, of other APIs or that are written as text raise the output above
/// [`output`](Self::output), and never lower it. The input is a token for each four bytes of text, and [`media`](Self::media) for each image,
/// recording or file. Text is also what tools and their calls contain: names, numbers and all. Tokens that are given as
/// numbers count one each.
///
/// Services read more than JSON, so this does too, whatever the header fields say: UTF-16 and UTF-32, a byte order mark,
/// `NaN`, names in any case, numbers of any length, any nesting, and what is compressed by gzip, deflate, zstd or, where the
/// header names it, brotli, up to three times. A body that packs more than 32 bytes into one, beyond 128 KiB, is read in part
/// and counts as at least two million tokens. So does one of very many small blocks, and one in zstd that cannot be read. The
/// rest of a body that is not JSON is searched for bounds of the output. Such a body counts by its length, at least as
/// [`unknown`](Self::unknown), and at least as what was read of it as JSON.
///
/// The estimate errs on the high side on purpose, because what is reserved too much is given back, and what is reserved
/// too little is used before it is paid.
///
/// ```
/// use sluicegate_llm::Estimate;
///
/// let mut reader = Estimate::new().output(1_000).reader();
/// reader.read(br#"{"messages":[{"role":"user","content":"Say hello to Ada."}],"max_tok"#);
/// reader.read(br#"ens":50}"#);
/// let tokens = reader.finish();
/// assert_eq!((tokens.input, tokens.output), (6, 50));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    output: u64,
    media: u64,
    unknown: u64,
    larger: bool,
}

impl Estimate {
    /// 1,000 tokens of output where the request does not bound it, 1,600 for each image, and 4,000 for a request that
    /// cannot be read.
    pub const fn new() -> Self {
        Self { output: 1_000, media: 1_600, unknown: 4_000, larger: false }
    }

    /// The output of a request that does not bound it.
    #[must_use]
    pub const fn output(self, tokens: u64) -> Self {
        Self { output: tokens, ..self }
    }

    /// The input for each image, recording or file, of which neither the length nor the address says how many tokens it
    /// has. A reference counts like what it stands for: an address, the name of a file, `previous_response_id`. 1,600 by
    /// default: about what Anthropic's page "Vision" names for the largest image that is not scaled
    /// down.
    #[must_use]
    pub const fn media(self, tokens: u64) -> Self {
        Self { media: tokens, ..self }
    }

    /// The least input and output together of a request whose body is not such a document: it is compressed, or its
    /// header says so, or it is not JSON. 4,000 by default. A body that cannot be
    /// read counts a token for each four bytes, and what its header says changes nothing about that. A request without a
    /// body asks no model, and reserves nothing.
    ///
    /// Bodies that are compressed in another way than by gzip, deflate, brotli or zstd count by their compressed length. If
    /// your service unpacks them, unpack them before the estimate.
    #[must_use]
    pub const fn unknown(self, tokens: u64) -> Self {
        Self { unknown: tokens, ..self }
    }

    /// Reserves the larger of input and output instead of the sum for [`Count::All`](crate::Count::All), as OpenAI's
    /// guide "Rate limits" describes it. More requests fit, and those that use both exceed the limit until they
    /// have paid.
    #[must_use]
    pub const fn larger(self) -> Self {
        Self { larger: true, ..self }
    }

    /// Begins to read a body.
    pub fn reader(&self) -> EstimateReader {
        EstimateReader {
            estimate: *self,
            contents: Contents::new(),
            budget: Budget::new(),
            named: Named::default(),
            is_empty: true,
            is_plain: true,
            is_readable: true,
        }
    }

    const fn of_unknown(&self) -> EstimatedTokens {
        EstimatedTokens { input: self.unknown, output: self.unknown, all: self.unknown }
    }

    fn tokens(&self, input: u64, output: u64) -> EstimatedTokens {
        match self.larger {
            true => EstimatedTokens { input, output, all: input.max(output) },
            false => EstimatedTokens::new(input, output),
        }
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads the body of a request, in pieces of any length; see [`Estimate`]. It keeps nothing of it but some numbers, except
/// that brotli and zstd are unpacked in [`finish`](Self::finish), and kept until then as they were sent.
#[derive(Debug)]
pub struct EstimateReader {
    estimate: Estimate,
    contents: Contents,
    budget: Budget,
    /// By what the header says.
    named: Named,
    is_empty: bool,
    is_plain: bool,
    is_readable: bool,
}

impl EstimateReader {
    /// The request has a field `Content-Encoding` with this value. If that says anything but `identity`, the estimate is at
    /// least that of [`Estimate::unknown`], whatever the bytes are.
    pub fn encoding(&mut self, content_encoding: &[u8]) {
        for coding in content_encoding.split(|byte| *byte == b',') {
            if !is_plain(coding) {
                self.is_plain = false;
                self.named.add(coding);
            }
        }
    }

    /// The request has a field `Content-Type` with this value. If that names an encoding in which this service cannot read
    /// names and numbers, such as UTF-7, EBCDIC or Shift JIS, the body may ask for anything, and counts as at least two
    /// million tokens. JSON is in UTF-8 (RFC 8259, 8.1).
    pub fn content_type(&mut self, content_type: &[u8]) {
        self.is_readable &= charset::is_read(content_type);
    }

    /// Reads the next bytes of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        self.is_empty &= bytes.is_empty();
        self.budget.allow(bytes.len());
        self.contents.read(bytes, self.named, &mut self.budget);
    }

    /// The estimate, once the whole body was read.
    pub fn finish(mut self) -> EstimatedTokens {
        if self.is_empty {
            return EstimatedTokens::new(0, 0);
        }
        self.contents.end(self.named, &mut self.budget);
        let mut tokens = self.contents.tokens(&self.estimate, 0);
        if !self.is_readable {
            tokens = tokens.max(EstimatedTokens::of_any());
        }
        if self.is_plain { tokens } else { tokens.max(self.estimate.of_unknown()) }
    }
}

#[cfg(test)]
mod tests;
