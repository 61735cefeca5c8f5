//! The usage that a model's answer reports, read as the bytes pass.

use super::json::{Json, Name, Path, Seen, Visit};
use super::sse::{Events, Sse};
use crate::cost::llm::usage::{TokenUsage, Usage};

/// Bytes of text for each token, where a text has to be counted without the model's own tokenizer. OpenAI's guide
/// "Rate limits" counts characters; the factor of four is from its article "What are tokens and how to count them?"
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// One JSON document.
    Json,
    /// Server-sent events, each with a JSON document as its data.
    Events,
}

impl Media {
    /// The form that the fields `Content-Type` and `Content-Encoding` announce. `None` if a [`UsageReader`] cannot read
    /// it: because it is something else, or compressed.
    pub fn of(content_type: Option<&[u8]>, content_encoding: Option<&[u8]>) -> Option<Self> {
        if !content_encoding.is_none_or(is_plain) {
            return None;
        }
        let essence = content_type?.split(|byte| *byte == b';').next()?.trim_ascii();
        let is = |name: &[u8]| essence.eq_ignore_ascii_case(name);
        let suffix = essence.len().checked_sub(5).map(|at| &essence[at..]);
        if is(b"text/event-stream") {
            Some(Self::Events)
        } else if is(b"application/json")
            || suffix.is_some_and(|end| end.eq_ignore_ascii_case(b"+json"))
        {
            Some(Self::Json)
        } else {
            None
        }
    }
}

/// Whether a body with this `Content-Encoding` is not compressed.
pub(super) fn is_plain(coding: &[u8]) -> bool {
    let coding = coding.trim_ascii();
    coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
}

/// Reads the usage in an answer in the form of OpenAI's or Anthropic's API, and reports it to a [`TokenUsage`].
///
/// It looks for numbers in the object `usage` of a document, of its `message`, or of its `response`:
///
/// - OpenAI, Chat Completions: `prompt_tokens`, `completion_tokens`, `total_tokens`,
///   `prompt_tokens_details.cached_tokens`. A stream has them in its last event if the request has
///   `stream_options: {"include_usage": true}`.
/// - OpenAI, Responses: `input_tokens`, `output_tokens`, `total_tokens`, `input_tokens_details.cached_tokens`.
/// - Anthropic, Messages: `input_tokens`, `output_tokens`, `cache_creation_input_tokens`, `cache_read_input_tokens`. The
///   last two are not part of `input_tokens` there. Both count as input here, and what was read as cached.
///
/// Nothing is kept of the answer but these numbers: the bytes may be cut anywhere, and lines have any length. Text that
/// the model writes is never taken for a usage. Of several reports the largest number counts, so an event that is
/// forged or repeated cannot lower it. A number that is negative or not whole is ignored.
///
/// Until the model reports its output, the output is estimated by the text so far: a token for each four bytes.
///
/// ```
/// use sluicegate::cost::llm::{Media, TokenUsage, UsageReader};
///
/// let usage = TokenUsage::new();
/// let mut reader = UsageReader::new(Media::Events, usage.clone());
/// reader.read(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"comple");
/// reader.read(b"tion_tokens\":12,\"total_tokens\":21}}\n\ndata: [DONE]\n\n");
/// reader.finish();
/// assert_eq!((usage.usage().input, usage.usage().output), (9, 12));
/// assert!(usage.is_final());
/// ```
#[derive(Debug, Clone)]
pub struct UsageReader {
    sse: Option<Sse>,
    document: Document,
    handle: TokenUsage,
}

impl UsageReader {
    /// A reader that reports to `usage`.
    pub fn new(media: Media, usage: TokenUsage) -> Self {
        let sse = (media == Media::Events).then(Sse::default);
        let document = Document { json: Json::new(), found: Found::default() };
        Self { sse, document, handle: usage }
    }

    /// Reads the next bytes of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        match &mut self.sse {
            Some(sse) => sse.read(bytes, &mut self.document),
            None => self.document.data(bytes),
        }
        let found = &self.document.found;
        self.handle.report(found.usage());
        self.handle.report_seen(found.text.div_ceil(BYTES_PER_TOKEN));
    }

    /// The body has ended as it should. If a usage was found, it is final.
    pub fn finish(&mut self) {
        if self.document.found.is_complete {
            self.handle.finish();
        }
    }
}

#[derive(Debug, Clone)]
struct Document {
    json: Json,
    found: Found,
}

impl Events for Document {
    fn data(&mut self, bytes: &[u8]) {
        self.json.read(bytes, &mut self.found);
    }

    fn end(&mut self) {
        self.json = Json::new();
    }
}

/// The largest number of each kind.
#[derive(Debug, Clone, Default)]
struct Found {
    input: u64,
    output: u64,
    total: u64,
    /// A part of `input`.
    cached: u64,
    /// Input beside `input`.
    cache_creation: u64,
    cache_read: u64,
    /// Bytes of text that the model has written.
    text: u64,
    /// Whether the model has said what the whole answer used. The `message_start` of Anthropic's API says only what
    /// is used at the beginning.
    is_complete: bool,
}

impl Found {
    fn usage(&self) -> Usage {
        let beside = self.cache_creation.saturating_add(self.cache_read);
        let input = self.input.saturating_add(beside);
        // A total that is larger than its parts has parts that are not named, such as reasoning.
        let output = self.output.max(self.total.saturating_sub(input));
        Usage { input, output, cached: self.cached.saturating_add(self.cache_read).min(input) }
    }
}

impl Visit for Found {
    fn number(&mut self, path: &Path, number: Option<u64>) {
        use Name::{Message, Response, Usage};
        let ([Usage, name @ ..] | [Message | Response, Usage, name @ ..], Some(number)) =
            (path.names(), number)
        else {
            return;
        };
        let largest = match name {
            [Name::PromptTokens | Name::InputTokens] => &mut self.input,
            [Name::CompletionTokens | Name::OutputTokens] => &mut self.output,
            [Name::TotalTokens] => &mut self.total,
            [Name::PromptTokensDetails | Name::InputTokensDetails, Name::CachedTokens] => {
                &mut self.cached
            }
            [Name::CacheCreationInputTokens] => &mut self.cache_creation,
            [Name::CacheReadInputTokens] => &mut self.cache_read,
            _ => return,
        };
        *largest = number.max(*largest);
        let is_of_answer =
            matches!(name, [Name::CompletionTokens | Name::OutputTokens | Name::TotalTokens]);
        self.is_complete |= is_of_answer && path.names()[0] != Message;
    }

    fn string(&mut self, path: &Path, Seen { length, .. }: Seen<'_>) {
        use Name::{Choices, Delta, Item, Message, Text};
        let is_text = match path.names() {
            [Delta] | [Delta, Text] | [Choices, Item, Text] => true,
            [Choices, Item, Delta | Message, rest @ ..] => rest.last() == Some(&Text),
            _ => false,
        };
        if is_text {
            self.text = self.text.saturating_add(length);
        }
    }
}

#[cfg(test)]
mod tests;
