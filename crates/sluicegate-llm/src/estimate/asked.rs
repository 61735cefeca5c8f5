use crate::json::{JsonString, Name, Path, Visit};

/// What a request asks for. Where a name is there twice, the larger number counts, because parsers differ in which
/// one they take.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestFields {
    pub(super) output: Option<u64>,
    pub(super) answers: u64,
    /// A bound of the output is written as text, which some services read as a number.
    pub(super) is_unsure: bool,
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

impl RequestFields {
    /// Bytes of text.
    pub(super) fn text(&self) -> u64 {
        self.text.saturating_add(if self.has_text_as_data { self.data } else { 0 })
    }

    /// A number behind the name of a bound.
    pub(super) fn bound(&mut self, name: Name, number: Option<u64>) {
        match name {
            Name::MaxTokens => self.output = self.output.max(number),
            Name::N | Name::BestOf => self.answers = self.answers.max(number.unwrap_or(0)),
            _ => {}
        }
    }
}

impl Visit for RequestFields {
    fn number(&mut self, path: &Path, number: Option<u64>) {
        match path.names() {
            [name] | [Name::GenerationConfig, name] => self.bound(*name, number),
            [Name::Prompt | Name::Input, Name::Item, ..] => self.tokens += 1,
            _ => {}
        }
    }

    fn string(
        &mut self,
        path: &Path,
        JsonString { beginning, length, number, is_solid }: JsonString<'_>,
    ) {
        if let [name] | [Name::GenerationConfig, name] = path.names() {
            self.bound(*name, number);
            self.is_unsure |= *name == Name::MaxTokens;
        }
        if path.names().last() == Some(&Name::MediaType) {
            self.has_text_as_data |= is_text(beginning);
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
            self.has_text_as_data |= beginning.strip_prefix(b"data:").is_some_and(is_text);
        }
    }

    fn word(&mut self, path: &Path, length: u64) {
        // Nearer to the outside are fields of the API. Further inside are tools and what they were called with, which
        // the model reads with its names.
        if path.names().len() > FIELDS {
            self.text = self.text.saturating_add(length);
        }
    }
}

/// Whether a type of media is one of text.
fn is_text(media_type: &[u8]) -> bool {
    media_type.get(..5).is_some_and(|text| text.eq_ignore_ascii_case(b"text/"))
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
        MediaUrl, PreviousResponseId, Prompt, Source, Tool, Type, Url,
    };
    // A model reads what is in tools, and in the input that it has given to them.
    if names.contains(&Tool) || names.iter().skip(1).any(|name| *name == Input) {
        return Place::Text;
    }
    match names {
        [.., Source, Data] | [.., FileData] => Place::Data,
        [.., MediaUrl] | [.., MediaUrl | Source, Url] | [.., FileReference] => Place::Reference,
        [.., Url] if beginning.starts_with(b"data:") => Place::Data,
        [PreviousResponseId | CachedContent] | [Conversation, ..] | [Prompt, Id] => {
            Place::Reference
        }
        [.., Item, Audio, Id] => Place::Reference,
        [Input, Item, Type] if beginning == b"item_reference" => Place::Reference,
        _ => Place::Text,
    }
}
