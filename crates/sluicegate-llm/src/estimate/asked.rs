use crate::json::{JsonString, Name, Path, Visit};

/// What a request asks for. Where a name is there twice, the larger number counts, because parsers differ in which
/// one they take.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestFields {
    /// `max_tokens` and `max_completion_tokens`, of Chat Completions and Messages.
    max_tokens: Bound,
    max_completion_tokens: Bound,
    /// `max_output_tokens`, of Responses.
    max_output_tokens: Bound,
    /// `generationConfig.maxOutputTokens`, of Gemini.
    config: Bound,
    /// The largest bound of any other name, spelling or place. It raises the output and never lowers it, because the service may
    /// not know it.
    other: u64,
    /// Whether it begins like a document.
    pub(super) is_begun: bool,
    has_messages: bool,
    has_input: bool,
    has_contents: bool,
    /// How many answers the request asks for, by `n` and its like; how many prompts it has; and how many requests are in it.
    answers: u64,
    prompts: u64,
    requests: u64,
    /// Bytes of text.
    text: u64,
    /// Bytes that are in the place of an image or a file, and whether one of these is text.
    data: u64,
    has_text_as_data: bool,
    /// Images, recordings and files, and what the service keeps from earlier requests.
    pub(super) media: u64,
    /// Input as numbers of tokens.
    pub(super) tokens: u64,
}

/// How deep the names of a request's own fields are, such as `messages[0].role`.
const FIELDS: usize = 3;

/// No name of a field is longer.
const LONGEST_NAME: u64 = 40;

/// A bound of the output that an API has.
#[derive(Debug, Clone, Copy, Default)]
struct Bound {
    most: u64,
    /// Whether it is written as text, which some services read as a number and others do not, or is there a second time
    /// and says nothing.
    is_unsure: bool,
}

impl Bound {
    fn add(&mut self, number: Option<u64>, is_text: bool) {
        let number = number.unwrap_or(0);
        // For many services, zero is no bound.
        self.is_unsure |= is_text || number == 0;
        self.most = self.most.max(number);
    }

    fn output(self, default: u64) -> Option<u64> {
        let least = if self.is_unsure { default } else { 0 };
        (self.most > 0).then_some(self.most.max(least))
    }
}

impl RequestFields {
    /// Bytes of text.
    pub(super) fn text(&self) -> u64 {
        self.text.saturating_add(if self.has_text_as_data { self.data } else { 0 })
    }

    /// The output, or `default` for each answer if there is no bound.
    pub(super) fn output(&self, default: u64) -> u64 {
        // A service of one form ignores the bounds of another one.
        let (chat, input, contents) = (self.has_messages, self.has_input, self.has_contents);
        let bounds = [
            (self.max_tokens, input || contents),
            (self.max_completion_tokens, input || contents),
            (self.max_output_tokens, chat || contents),
            (self.config, chat || input),
        ];
        let (mut own, mut other) = (None, self.other);
        for (bound, is_foreign) in bounds {
            match is_foreign {
                true => other = other.max(bound.most),
                false => own = own.max(bound.output(default)),
            }
        }
        [self.answers, self.prompts, self.requests]
            .into_iter()
            .fold(own.unwrap_or(default).max(other), |all, each| all.saturating_mul(each.max(1)))
    }

    /// A number behind the name of a bound, whose place is not known.
    pub(super) fn found(&mut self, name: Name, number: Option<u64>) {
        let number = number.unwrap_or(0);
        match name {
            Name::N | Name::BestOf => self.answers = self.answers.max(number),
            _ => self.other = self.other.max(number),
        }
    }

    fn bound(&mut self, path: &Path, number: Option<u64>, is_text: bool) {
        let Some((names, name)) = bound_at(path) else { return };
        match (names, name) {
            ([], Name::MaxTokens) => self.max_tokens.add(number, is_text),
            ([], Name::MaxCompletionTokens) => self.max_completion_tokens.add(number, is_text),
            ([], Name::MaxOutputTokens) => self.max_output_tokens.add(number, is_text),
            ([Name::GenerationConfig], Name::GeminiMaxOutputTokens | Name::MaxOutputTokens) => {
                self.config.add(number, is_text);
            }
            // In other places, a name that short may mean anything.
            (
                [] | [Name::GenerationConfig | Name::OtherConfig | Name::Parameters],
                Name::N | Name::BestOf,
            )
            | ([Name::Item | Name::Batch, ..], Name::N | Name::BestOf) => self.found(name, number),
            (_, Name::N | Name::BestOf) => {}
            _ => self.found(name, number),
        }
    }
}

/// The bound of the output that the value at `path` is, and the names that lead to it.
pub(super) fn bound_at(path: &Path) -> Option<(&[Name], Name)> {
    // Some services read an array of one number as that number.
    let mut names = path.names();
    while let [rest @ .., Name::Item] = names {
        names = rest;
    }
    let (name, names) = names.split_last()?;
    (is_bound(*name) && !is_in_tool(names)).then_some((names, *name))
}

/// Whether it is the name of a bound of the output.
pub(super) const fn is_bound(name: Name) -> bool {
    matches!(
        name,
        Name::BestOf
            | Name::GeminiMaxOutputTokens
            | Name::MaxCompletionTokens
            | Name::MaxOutputTokens
            | Name::MaxTokens
            | Name::N
            | Name::OtherBound
    )
}

impl Visit for RequestFields {
    fn open(&mut self, path: &Path) {
        use Name::{Batch, Contents, Input, Item, Messages, Prompt};
        self.is_begun = true;
        match path.names() {
            [Messages | Prompt, Item] => self.has_messages = true,
            [Input, _] => self.has_input = true,
            [Contents, _] => self.has_contents = true,
            [Item, _] => self.requests += 1,
            [names @ .., Batch, Item, _] if !is_in_tool(names) => self.requests += 1,
            [names @ .., Prompt, Item, _] if !is_in_tool(names) => self.prompts += 1,
            _ => {}
        }
    }

    fn number(&mut self, path: &Path, number: Option<u64>) {
        self.bound(path, number, false);
        if let [Name::Prompt | Name::Input | Name::Tokens, Name::Item, ..] = path.names() {
            self.tokens += 1;
        }
    }

    fn string(
        &mut self,
        path: &Path,
        JsonString { beginning, length, number, is_solid }: JsonString<'_>,
    ) {
        self.bound(path, number, true);
        match path.names() {
            [Name::Prompt] => self.has_messages = true,
            [Name::Input] => self.has_input = true,
            [names @ .., Name::Prompt, Name::Item] if !is_in_tool(names) => self.prompts += 1,
            [.., Name::MediaType] => self.has_text_as_data |= is_text(beginning),
            _ => {}
        }
        let (media, text) = match place(path.names(), beginning) {
            Place::Text => (false, true),
            // Text has spaces. In no other place is text taken for an image because it looks like one.
            Place::Data => (is_solid, !is_solid),
            Place::Reference => (length > 0, !is_solid),
        };
        if media {
            self.media += 1;
        }
        if text {
            self.text = self.text.saturating_add(length);
        } else {
            self.data = self.data.saturating_add(length);
            self.has_text_as_data |= data_url(beginning).is_some_and(is_text);
        }
    }

    fn word(&mut self, path: &Path, length: u64) {
        // Nearer to the outside are fields of the API. Further inside are tools and what they were called with, which
        // the model reads with its names.
        let names = path.names();
        if names.len() > FIELDS || length > LONGEST_NAME || is_in_tool(names) {
            self.text = self.text.saturating_add(length);
        }
    }
}

/// Whether a value with these names before it is a part of a tool or of its call, which a model reads.
fn is_in_tool(names: &[Name]) -> bool {
    let is_inside = |name: &Name| matches!(name, Name::Tool | Name::Input | Name::Parameters);
    names.first() == Some(&Name::Tool) || names.iter().skip(1).any(is_inside)
}

fn data_url(beginning: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = beginning.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case(b"data:").then_some(rest)
}

/// Whether a type of media is one of text. A data URL without a type is text (RFC 2397).
fn is_text(media_type: &[u8]) -> bool {
    const APPLICATIONS: [&[u8]; 16] = [
        b"csv",
        b"ecmascript",
        b"graphql",
        b"javascript",
        b"json",
        b"jsonl",
        b"ndjson",
        b"php",
        b"python",
        b"python-code",
        b"rtf",
        b"sh",
        b"sql",
        b"toml",
        b"typescript",
        b"xml",
    ];
    let ends = |byte: &u8| matches!(byte, b';' | b',');
    let essence = media_type.split(ends).next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    let Some(kind) = essence.strip_prefix(b"application/") else {
        return essence.is_empty() || essence.starts_with(b"text/");
    };
    let kind = kind.strip_prefix(b"x-").unwrap_or(kind);
    APPLICATIONS.contains(&kind)
        || [&b"+json"[..], b"+xml", b"yaml"].iter().any(|end| kind.ends_with(end))
}

/// What a string is, by its place.
enum Place {
    Text,
    /// An image, a recording or a file.
    Data,
    /// The address or the name of one, or of what the service keeps. How much there is the request does not say.
    Reference,
}

fn place(names: &[Name], beginning: &[u8]) -> Place {
    use Name::{
        Audio, CachedContent, Conversation, Data, FileData, FileReference, Id, Input, Item,
        MediaUrl, Parameters, PreviousResponseId, Prompt, Source, Type, Url,
    };
    // A model reads what is in tools, and in the input that it has given to them.
    if is_in_tool(names) || names.first() == Some(&Parameters) {
        return Place::Text;
    }
    match names {
        [.., Source, Data] | [.., FileData] => Place::Data,
        [.., MediaUrl] | [.., MediaUrl | Source, Url] => Place::Reference,
        [.., FileReference] | [.., FileReference, Item] => Place::Reference,
        [.., Url] if data_url(beginning).is_some() => Place::Data,
        [PreviousResponseId | CachedContent] | [Conversation, ..] | [Prompt, Id] => {
            Place::Reference
        }
        [.., Item, Audio, Id] => Place::Reference,
        [Input, Item, Type] if beginning == b"item_reference" => Place::Reference,
        _ => Place::Text,
    }
}
