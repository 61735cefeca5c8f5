//! How many tokens a request may use, by its body.

use super::estimated::EstimatedTokens;
use super::json::{Json, Name, Path, Seen, Visit, number_in};
use super::reader::{BYTES_PER_TOKEN, is_plain};

/// How many tokens to reserve for a request, by its body: a JSON document in the form of OpenAI's or Anthropic's API.
///
/// The output is what the request allows: the largest of `max_tokens`, `max_completion_tokens` and `max_output_tokens`,
/// times `n` or `best_of`. The input is a token for each four bytes of text, and [`media`](Self::media) for each image,
/// recording or file. Text is also what tools and their calls contain: names, numbers and all. Tokens that are given as
/// numbers count one each.
///
/// The estimate errs on the high side on purpose, because what is reserved too much is given back, and what is reserved
/// too little is used before it is paid.
///
/// ```
/// use sluicegate::cost::llm::Estimate;
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
    /// has. 1,600 by default: about what Anthropic's page "Vision" names for the largest image that is not scaled
    /// down.
    #[must_use]
    pub const fn media(self, tokens: u64) -> Self {
        Self { media: tokens, ..self }
    }

    /// The input and output together of a request whose body is not such a document: it is compressed, nested more than
    /// 128 levels deep, or not JSON. 4,000 by default. A body that begins like such a document reserves at least a token
    /// for each four bytes, because a service may read what this reader does not. A request without a body asks no
    /// model, and reserves nothing.
    #[must_use]
    pub const fn unknown(self, tokens: u64) -> Self {
        Self { unknown: tokens, ..self }
    }

    /// Reserves the larger of input and output instead of the sum for [`Count::All`](super::Count::All), as OpenAI's
    /// guide "Rate limits" describes it. More requests fit, and those that use both exceed the limit until they
    /// have paid.
    #[must_use]
    pub const fn larger(self) -> Self {
        Self { larger: true, ..self }
    }

    /// Whether a body with this `Content-Encoding` can be read: it is not compressed. A client may send `identity`, which
    /// says the same as no field, and must not get an estimate for less than it sends.
    pub fn reads(content_encoding: &[u8]) -> bool {
        is_plain(content_encoding)
    }

    /// Begins to read a body.
    pub fn reader(&self) -> EstimateReader {
        EstimateReader {
            estimate: *self,
            json: Json::new(),
            asked: Asked::default(),
            length: 0,
            first: None,
        }
    }

    /// The estimate for a request that cannot be read.
    pub const fn of_unknown(&self) -> EstimatedTokens {
        EstimatedTokens { input: self.unknown, output: self.unknown, all: self.unknown }
    }
}

impl Default for Estimate {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads the body of a request, in pieces of any length; see [`Estimate`]. It keeps nothing of it but some numbers.
#[derive(Debug, Clone)]
pub struct EstimateReader {
    estimate: Estimate,
    json: Json,
    asked: Asked,
    /// In bytes.
    length: u64,
    /// The first byte that may begin a document.
    first: Option<u8>,
}

impl EstimateReader {
    /// Reads the next bytes of the body.
    pub fn read(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.first = self.first.or_else(|| bytes.iter().copied().find(begins));
        self.json.read(bytes, &mut self.asked);
    }

    /// The estimate, once the whole body was read.
    pub fn finish(self) -> EstimatedTokens {
        let Self { estimate, json, asked, length, first } = self;
        if length == 0 {
            return EstimatedTokens::new(0, 0);
        }
        let answers = asked.answers.max(1);
        if !json.is_complete() {
            let unknown = estimate.of_unknown();
            if first != Some(b'{') {
                return unknown;
            }
            let input = length.div_ceil(BYTES_PER_TOKEN);
            let output = asked.output.unwrap_or(0).saturating_mul(answers);
            return EstimatedTokens {
                input: input.max(unknown.input),
                output: output.max(unknown.output),
                all: input.saturating_add(output).max(unknown.all),
            };
        }
        let data = if asked.has_text_as_data { asked.data } else { 0 };
        let text = asked.text.saturating_add(data).div_ceil(BYTES_PER_TOKEN);
        let media = asked.media.saturating_mul(estimate.media);
        let input = text.saturating_add(media).saturating_add(asked.tokens);
        let default = if asked.is_unsure { estimate.output } else { 0 };
        let output = asked.output.unwrap_or(estimate.output).max(default);
        let output = output.saturating_mul(answers);
        let all = match estimate.larger {
            true => input.max(output),
            false => input.saturating_add(output),
        };
        EstimatedTokens { input, output, all }
    }
}

/// What a request asks for. Where a name is there twice, the larger number counts, because parsers differ in which
/// one they take.
#[derive(Debug, Clone, Default)]
struct Asked {
    output: Option<u64>,
    answers: u64,
    /// A bound of the output is written as text, which some services read as a number.
    is_unsure: bool,
    /// Bytes of text.
    text: u64,
    /// Bytes that are in the place of an image or a file, and the kind of one of these is text.
    data: u64,
    has_text_as_data: bool,
    media: u64,
    /// Input as numbers of tokens.
    tokens: u64,
}

impl Visit for Asked {
    fn number(&mut self, path: &Path, number: Option<u64>) {
        match path.names() {
            [Name::MaxTokens | Name::MaxCompletionTokens | Name::MaxOutputTokens] => {
                self.output = self.output.max(number);
            }
            [Name::N | Name::BestOf] => self.answers = self.answers.max(number.unwrap_or(0)),
            [Name::Prompt | Name::Input, Name::Item, ..] => self.tokens += 1,
            _ => {}
        }
    }

    fn string(&mut self, path: &Path, Seen { beginning, length, is_solid }: Seen<'_>) {
        let is_media = match path.names() {
            [Name::MaxTokens | Name::MaxCompletionTokens | Name::MaxOutputTokens] => {
                self.output = self.output.max(number_in(beginning.trim_ascii()));
                self.is_unsure = true;
                false
            }
            [Name::N | Name::BestOf] => {
                self.answers = self.answers.max(number_in(beginning.trim_ascii()).unwrap_or(0));
                false
            }
            [.., Name::MediaType] => {
                self.has_text_as_data |= beginning.starts_with(b"text/");
                false
            }
            [.., Name::ImageUrl] | [.., Name::ImageUrl, Name::Url] => true,
            [.., Name::Data | Name::FileData] => true,
            [.., Name::Url] => beginning.starts_with(b"data:"),
            _ => false,
        };
        // Text has spaces. In no other place is text taken for an image because it looks like one.
        if is_media && is_solid {
            self.media += 1;
            self.data = self.data.saturating_add(length);
        } else {
            self.text = self.text.saturating_add(length);
        }
    }

    fn word(&mut self, path: &Path, length: u64) {
        // Nearer to the outside are fields of the API. Further inside are tools and what they were called with, which the
        // model reads with its names.
        if path.names().len() > FIELDS {
            self.text = self.text.saturating_add(length);
        }
    }
}

/// How deep the names of a request's own fields are, such as `messages[0].role`.
const FIELDS: usize = 3;

/// Whether a document may begin with this byte. A byte order mark and white space may come before it.
fn begins(byte: &u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf)
}

#[cfg(test)]
mod tests;
