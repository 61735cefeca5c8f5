//! The usage that a model's answer reports, read as the bytes pass.

#[cfg(any(feature = "actix", feature = "tower"))]
mod passing;
mod sse;

#[cfg(any(feature = "actix", feature = "tower"))]
pub(crate) use self::passing::PassingUsage;
use self::sse::{BYTE_ORDER_MARK, Events, Sse};
use crate::json::{Json, JsonString, Name, Path, Visit};
use crate::usage::{TokenUsage, Usage};

/// Bytes of text for each token, where a text has to be counted without the model's own tokenizer. OpenAI's guide
/// "Rate limits" counts characters; the factor of four is from its article "What are tokens and how to count them?"
pub(crate) const BYTES_PER_TOKEN: u64 = 4;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
        let mut codings = content_encoding.unwrap_or_default().split(|byte| *byte == b',');
        if !codings.all(is_plain) {
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

/// Whether a body with this coding is not compressed.
pub(crate) fn is_plain(coding: &[u8]) -> bool {
    let coding = coding.trim_ascii();
    coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
}

/// Reads the usage in an answer in the form of OpenAI's, Anthropic's or Gemini's API, and reports it to a [`TokenUsage`].
///
/// It looks for numbers in the object `usage` or `usageMetadata` of a document, of its `message`, or of its `response`:
///
/// - OpenAI, Chat Completions: `prompt_tokens`, `completion_tokens`, `total_tokens`,
///   `prompt_tokens_details.cached_tokens`. A stream has them in its last event if the request has
///   `stream_options: {"include_usage": true}`.
/// - OpenAI, Responses: `input_tokens`, `output_tokens`, `total_tokens`, `input_tokens_details.cached_tokens`.
/// - Anthropic, Messages: `input_tokens`, `output_tokens`, `cache_creation_input_tokens`, `cache_read_input_tokens`. The
///   last two are not part of `input_tokens` there. Both count as input here, and what was read as cached. Gateways also
///   write them beside `prompt_tokens`, which includes them. Where there is a `total_tokens`, it is the total.
///   Where `iterations` says that more was used together, as in a compaction, that counts.
/// - Gemini: `promptTokenCount`, `toolUsePromptTokenCount`, `candidatesTokenCount`, `totalTokenCount`,
///   `cachedContentTokenCount`.
///
/// Nothing is kept of the answer but these numbers: the bytes may be cut anywhere, and lines have any length. Text that
/// the model writes is never taken for a usage. Of several reports the largest number counts, so an event that is
/// forged or repeated cannot lower it. A number that is negative is ignored.
///
/// Until the model reports its output, the output is estimated by the text so far: a token for each four bytes. A report
/// is not believed if more text follows it, or if it is below a quarter of that estimate.
///
/// The usage is [final](TokenUsage::is_final) where the answer says that nothing follows, because clients stop reading
/// there: at the end of the document, behind `[DONE]`, `message_stop`, `response.completed`, `response.incomplete` or
/// `response.failed`, and in [`finish`](Self::finish).
///
/// ```
/// use sluicegate_llm::{Media, TokenUsage, UsageReader};
///
/// let usage = TokenUsage::new();
/// let mut reader = UsageReader::new(Media::Events, &usage);
/// reader.read(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"comple");
/// reader.read(b"tion_tokens\":12,\"total_tokens\":21}}\n\ndata: [DONE]\n\n");
/// reader.finish();
/// assert_eq!((usage.usage().input, usage.usage().output), (9, 12));
/// assert!(usage.is_final());
/// ```
#[derive(Debug)]
pub struct UsageReader {
    sse: Option<Sse>,
    document: Document,
    handle: TokenUsage,
}

impl UsageReader {
    /// A reader that reports to `usage`.
    pub fn new(media: Media, usage: &TokenUsage) -> Self {
        let sse = (media == Media::Events).then(Sse::default);
        Self { sse, document: Document::new(), handle: usage.share() }
    }

    /// Reads the next bytes of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        match &mut self.sse {
            Some(sse) => sse.read(bytes, &mut self.document),
            None => {
                self.document.data(bytes);
                self.document.is_last |= self.document.has_closed;
            }
        }
        // A client that leaves right here owes at least what it has seen, whether a usage came or not.
        self.handle.report_seen(self.document.found.seen());
        // Of documents that have ended only. In the middle of one, the input may be there and the output not yet.
        self.handle.report(self.document.closed);
        // Not in the middle of one either, such as a usage behind `[DONE]`: the rest of it comes with the next piece.
        if self.document.is_last && !self.document.is_open() {
            self.finish();
        }
    }

    /// The body has ended as it should. If a usage was found, it is final.
    pub fn finish(&mut self) {
        let found = &self.document.found;
        self.handle.report(found.usage());
        if found.is_believed() {
            self.handle.finish();
        }
    }
}

/// The document that is read, one of many in a stream.
#[derive(Debug, Clone)]
struct Document {
    /// How many bytes of [`BYTE_ORDER_MARK`] are read. All of them, once something else has come.
    mark: usize,
    json: Json,
    done: Done,
    found: AnswerFields,
    /// What was found in the documents that were read to their end. A total without its parts would mean something else.
    closed: Usage,
    /// Whether the document has been read to its end.
    has_closed: bool,
    /// Whether it is the last one of the answer.
    is_last: bool,
}

impl Document {
    fn new() -> Self {
        Self {
            mark: 0,
            json: Json::new(),
            done: Done::default(),
            found: AnswerFields::default(),
            closed: Usage::default(),
            has_closed: false,
            is_last: false,
        }
    }

    /// Whether it has begun and not ended. `[DONE]` has ended, and is no JSON.
    fn is_open(&self) -> bool {
        self.json.has_begun() && !self.has_closed && !self.done.is_complete()
    }

    /// Skips the rest of a byte order mark at the beginning.
    fn skip_mark<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while let (Some(expected), [first, rest @ ..]) = (BYTE_ORDER_MARK.get(self.mark), bytes) {
            if first == expected {
                (self.mark, bytes) = (self.mark + 1, rest);
            } else {
                self.mark = BYTE_ORDER_MARK.len();
            }
        }
        bytes
    }

    fn close(&mut self) {
        self.has_closed = true;
        self.is_last |= self.found.close();
        self.closed = self.found.usage();
    }
}

impl Events for Document {
    fn data(&mut self, bytes: &[u8]) {
        let bytes = self.skip_mark(bytes);
        self.is_last |= self.done.read(bytes);
        self.json.read(bytes, &mut self.found);
        if self.json.is_complete() && !self.has_closed {
            self.close();
        }
    }

    fn end(&mut self) {
        if !self.has_closed {
            // What a broken document says does not reach into the next one.
            self.found.close();
        }
        self.mark = 0;
        self.json = Json::new();
        self.done = Done::default();
        self.has_closed = false;
    }
}

/// Looks for `[DONE]`, which is the data of the last event of OpenAI's streams.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// How many bytes of it are read. More than it has, once the data is something else.
    read: usize,
}

impl Done {
    const TEXT: &'static [u8] = b"[DONE]";

    /// Reads the next bytes of the data. Returns whether it is complete.
    fn read(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match Self::TEXT.get(self.read) {
                Some(expected) if byte == expected => self.read += 1,
                Some(_) if self.read == 0 && byte.is_ascii_whitespace() => {}
                Some(_) => self.read = usize::MAX,
                None => break,
            }
        }
        self.is_complete()
    }

    const fn is_complete(self) -> bool {
        self.read == Self::TEXT.len()
    }
}

/// The largest number of each kind.
#[derive(Debug, Clone, Default)]
struct AnswerFields {
    input: u64,
    output: u64,
    total: u64,
    /// A part of the input.
    cached: u64,
    /// Input beside `input`, or a part of it, as the total says.
    cache_creation: u64,
    cache_read: u64,
    /// Input that Gemini's own tools have found, beside `input`.
    tool_use: u64,
    /// What the iterations in the present document have used together: input, output, and what was written to the cache
    /// and read from it. The usage of Anthropic's API leaves those out that made a long conversation shorter.
    iterations: [u64; 4],
    /// Whether `input` is that of OpenAI's API, which includes what is cached.
    includes_cached: bool,
    /// Bytes of text that the model has written.
    text: u64,
    /// Those of them that may be an echo of the prompt, as the older Completions have it if `echo` is true.
    echo: u64,
    /// How much of the text was there when the model last said what the whole answer used. The `message_start` of
    /// Anthropic's API says only what is used at the beginning.
    covered: Option<u64>,
    /// Whether the present document says what the whole answer used. It covers all text of that document.
    says_usage: bool,
    /// Whether the present document is the last one of its stream.
    says_end: bool,
}

/// A report of less than a token for so many bytes of text is not believed. The tokenizers of large models take up to
/// 9 bytes of a text for a token, in the scripts of India and of the Caucasus, which have three bytes for a character.
const BELIEVED: u64 = 4 * BYTES_PER_TOKEN;

impl AnswerFields {
    fn usage(&self) -> Usage {
        let Self { input, output, total, .. } = *self;
        // OpenAI counts cached tokens within `prompt_tokens`, Anthropic beside `input_tokens`. Gateways write both
        // kinds into one answer, so the total, where there is one, bounds what is added.
        let beside = match self.includes_cached {
            true => 0,
            false => self.cache_creation.saturating_add(self.cache_read),
        };
        let beside = beside.saturating_add(self.tool_use);
        let beside = match total {
            0 => beside,
            total => beside.min(total.saturating_sub(input.saturating_add(output))),
        };
        let input = input.saturating_add(beside);
        // A total that is larger than its parts has parts that are not named, such as reasoning.
        let output = output.max(total.saturating_sub(input));
        Usage { input, output, cached: self.cached.max(self.cache_read).min(input) }
    }

    /// The output by the text so far.
    fn seen(&self) -> u64 {
        self.text.div_ceil(BYTES_PER_TOKEN)
    }

    /// Whether the model has said what the answer used, and it can be true.
    fn is_believed(&self) -> bool {
        // A usage is about the text that came before it. Where text follows it, it was a report on the way, as each
        // event of some streams has one, and not the last word.
        let covered = if self.says_usage { Some(self.text) } else { self.covered };
        let usage = self.usage();
        let echo = self.echo.min(usage.input.saturating_mul(BYTES_PER_TOKEN));
        covered == Some(self.text) && usage.output >= (self.text - echo) / BELIEVED
    }

    /// The document has ended. Returns whether it is the last one.
    fn close(&mut self) -> bool {
        let [input, output, cache_creation, cache_read] = std::mem::take(&mut self.iterations);
        self.input = self.input.max(input);
        self.output = self.output.max(output);
        self.cache_creation = self.cache_creation.max(cache_creation);
        self.cache_read = self.cache_read.max(cache_read);
        if std::mem::take(&mut self.says_usage) {
            self.covered = Some(self.text);
        }
        std::mem::take(&mut self.says_end)
    }
}

impl Visit for AnswerFields {
    fn number(&mut self, path: &Path, number: Option<u64>) {
        use Name::{Message, Response, Usage};
        let names = of_answer(path);
        let ([Usage, name @ ..] | [Message | Response, Usage, name @ ..], Some(number)) =
            (names, number)
        else {
            return;
        };
        if let [Name::Iterations, Name::Item, name] = name {
            let at = match name {
                Name::InputTokens => 0,
                Name::OutputTokens => 1,
                Name::CacheCreationInputTokens => 2,
                Name::CacheReadInputTokens => 3,
                _ => return,
            };
            self.iterations[at] = self.iterations[at].saturating_add(number);
            return;
        }
        let largest = match name {
            [Name::PromptTokens] => {
                self.includes_cached = true;
                &mut self.input
            }
            [Name::InputTokens] => &mut self.input,
            [Name::CompletionTokens | Name::OutputTokens] => &mut self.output,
            [Name::TotalTokens] => &mut self.total,
            [Name::PromptTokensDetails | Name::InputTokensDetails, Name::CachedTokens] => {
                &mut self.cached
            }
            [Name::CacheCreationInputTokens] => &mut self.cache_creation,
            [Name::CacheReadInputTokens] => &mut self.cache_read,
            [Name::ToolUsePromptTokens] => &mut self.tool_use,
            _ => return,
        };
        *largest = number.max(*largest);
        let is_of_answer =
            matches!(name, [Name::CompletionTokens | Name::OutputTokens | Name::TotalTokens]);
        self.says_usage |= is_of_answer && names[0] != Message;
    }

    fn string(&mut self, path: &Path, JsonString { beginning, length, .. }: JsonString<'_>) {
        use Name::{Annotations, Choices, Delta, Item, Message, Output, Text, Tokens, Type};
        let names = of_answer(path);
        let is_text = match names {
            [Type] => {
                self.says_end |= LAST_EVENTS.contains(&beginning);
                false
            }
            [Delta] | [Delta, Text] | [Choices, Item, Text] => true,
            [Text, Item, Text] | [Output, Item, Text, Item, Text] => true,
            [Choices, Item, Delta | Message | Text, rest @ ..] => {
                // What a search has found was written by others: `annotations`, and the `context` of Azure's answers.
                rest.last() == Some(&Text)
                    && !rest.contains(&Annotations)
                    && rest.first() != Some(&Tokens)
            }
            _ => false,
        };
        if is_text {
            self.text = self.text.saturating_add(length);
        }
        if let [Choices, Item, Text] = names {
            self.echo = self.echo.saturating_add(length);
        }
    }
}

/// The names that lead to a value of an answer. Gemini's API sends a stream as one array of answers, if it is not asked for
/// events.
fn of_answer(path: &Path) -> &[Name] {
    match path.names() {
        [Name::Item, names @ ..] | names => names,
    }
}

/// The types of events behind which no other follows.
const LAST_EVENTS: [&[u8]; 4] =
    [b"message_stop", b"response.completed", b"response.incomplete", b"response.failed"];

#[cfg(test)]
mod tests;
